"""What taking back and sharing cost at servers of a person's own, simulated: every request is counted.

docs/costs.md says it in words.
"""

import json
import time

import pytest

from cloud_servers import CloudServer
from machine import eventually

pytestmark = pytest.mark.clouds()

NEXTCLOUD_SHARES = "ocs/apps/files_sharing/api/v1/shares"
# For each act of each server all requests that it got, with the look for news after a restore.
ACTS = {
    "nextcloud": {
        "trash": {"PROPFIND trashbin": 1},
        # The trash, and the entry right before; the name, whether it is free, the file as it is then.
        "restore": {"PROPFIND trashbin": 2, "MOVE trashbin": 1, "PROPFIND files": 7},
        "restore a folder": {"PROPFIND trashbin": 2, "MOVE trashbin": 1, "PROPFIND files": 8},
        "versions": {"PROPFIND files": 2, "PROPFIND versions": 1},
        "read a version": {"PROPFIND files": 4, "PROPFIND versions": 1, "GET versions": 1},
        "restore a version": {"PROPFIND files": 6, "PROPFIND versions": 1, "MOVE versions": 1},
        "share": {f"GET {NEXTCLOUD_SHARES}": 1, f"POST {NEXTCLOUD_SHARES}": 1},
        "share again": {f"GET {NEXTCLOUD_SHARES}": 1},
        "list links": {f"GET {NEXTCLOUD_SHARES}": 1},
        "unshare": {f"GET {NEXTCLOUD_SHARES}": 1, f"DELETE {NEXTCLOUD_SHARES}/1": 1},
    },
    "opencloud": {
        "trash": {"PROPFIND trash-bin": 1},
        "restore": {"PROPFIND trash-bin": 1, "MOVE trash-bin": 1, "PROPFIND spaces": 4},
        "restore a folder": {"PROPFIND trash-bin": 1, "MOVE trash-bin": 1, "PROPFIND spaces": 5},
        "versions": {"PROPFIND spaces": 1, "PROPFIND versions": 1},
        "read a version": {"PROPFIND spaces": 2, "PROPFIND versions": 1, "GET versions": 1},
        "restore a version": {"PROPFIND spaces": 3, "PROPFIND versions": 1, "COPY versions": 1},
        "share": {"GET graph/permissions": 1, "POST graph/createLink": 1, "PROPFIND spaces": 2},
        "share again": {"GET graph/permissions": 1, "PROPFIND spaces": 1},
        # Each link's path by the item's id.
        "list links": {"GET graph/sharedByMe": 1, "PROPFIND meta": 1},
        "unshare": {"GET graph/permissions": 1, "DELETE graph/permissions": 1, "PROPFIND spaces": 1},
    },
    # A bucket that keeps versions: a copy of the version that was deleted.
    "s3": {
        "trash": {"ListObjectVersions": 1},
        "restore": {"ListObjectVersions": 1, "CopyObject": 1, "HeadObject": 1, "ListObjectsV2": 2},
        "versions": {"ListObjectVersions": 1},
        "read a version": {"ListObjectVersions": 1, "GetObject": 1},
        "restore a version": {"ListObjectVersions": 1, "CopyObject": 1, "HeadObject": 2},
        # The signature is made here.
        "share": {"HeadObject": 1},
    },
}


@pytest.fixture(params=ACTS)
def kind(request):
    return request.param


@pytest.fixture
def server(folder, kind):
    server = CloudServer(kind, folder)
    yield server
    server.stop()


@pytest.fixture
def drive(machine, server, kind, folder):
    machine.write_settings('poll_interval = "1h"\nsettle = "1h"\n')
    if kind == "s3":
        tokens = json.loads(server.control("GET", "tokens"))
        keys = folder / "keys"
        keys.write_text(json.dumps({"access_key_id": tokens["access_token"],
                                    "secret_access_key": tokens["refresh_token"]}))
        machine.oort("login", "s3", "ada-files", "--endpoint", f"{server.base}/s3.example.org",
                     "--key-file", keys, "--region", "us-east-1", "--name", kind)
    else:
        service, address, user = {
            "nextcloud": ("nextcloud", "cloud.example.org", "ada@example.com"),
            "opencloud": ("webdav", "opencloud.example.org/files/spaces/personal/ada", "ada"),
        }[kind]
        machine.oort("login", service, f"{server.base}/{address}", "--user", user,
                     "--password-file", "-", "--name", kind, input=server.password() + "\n")
    machine.mount()
    return machine.ready(kind)


def test_acts(machine, server, drive, kind, folder):
    (drive / "folder").mkdir()
    for name in ("folder/two.txt", "folder/three.txt", "one.txt"):
        (drive / name).write_text(name)
    path = drive / "versions.txt"
    for second, text in enumerate(["a", "bb", "ccc"]):
        path.write_text(text)
        machine.run("touch", "-d", f"2024-01-01 12:00:0{second}", path)
        machine.sync()
    (drive / "one.txt").unlink()
    machine.run("rm", "-r", drive / "folder")
    machine.sync()

    def counts():
        return {route: count["calls"] for route, count in json.loads(server.control("GET", "counts")).items()}

    def quiet():
        known, since = counts(), time.monotonic()

        def is_quiet():
            nonlocal known, since
            if (now := counts()) != known:
                known, since = now, time.monotonic()
            return time.monotonic() - since > 0.5

        eventually(is_quiet, "the server is left alone")
        return known

    found = {}

    def act(name, *arguments):
        quiet()
        server.control("DELETE", "calls")
        said = machine.oort(*arguments)
        found[name] = quiet()
        return said

    act("trash", "trash")
    act("restore", "restore", drive / "one.txt")
    if "restore a folder" in ACTS[kind]:
        act("restore a folder", "restore", drive / "folder")
        assert (drive / "folder/two.txt").read_text() == "folder/two.txt"
    old = json.loads(act("versions", "versions", path, "--json"))["versions"][-1]["id"]
    act("read a version", "restore", path, "--version", old, "--to", folder / "old")
    assert (folder / "old").read_text() == "a"
    act("restore a version", "restore", path, "--version", old)
    act("share", "share", path)
    if "unshare" in ACTS[kind]:
        act("share again", "share", path)
        act("list links", "share", "--list")
        act("unshare", "unshare", path)
    assert found == ACTS[kind]
    assert (drive / "one.txt").read_text() == "one.txt" and path.read_text() == "a"
