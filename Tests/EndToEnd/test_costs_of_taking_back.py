"""What taking back and sharing cost at each service: every call is counted, and none may be more.

docs/costs.md says it in words.
"""

import json
from collections import Counter

import pytest

from desk import BACKGROUND
from machine import CLOUDS

SERVICES = [*CLOUDS, "box"]
pytestmark = pytest.mark.clouds(*SERVICES)

# What a mount asks by itself beside what a command needs: sign-in, room, news.
BESIDE = {
    "oauth2/token", "users/get_current_account", "users/get_space_usage",
    "files/list_folder/longpoll", "files/list_folder/continue", "oauth.token", "about.get",
    "changes.list", "changes.getStartPageToken", "oauth/token", "me", "drive", "delta/get",
    *BACKGROUND["box"] - {"folders/items/get"}}


@pytest.fixture(params=SERVICES)
def cloud(request):
    return request.param


def prepare(clouds, cloud):
    clouds.give_full_pages(cloud)
    clouds.edits(cloud, [
        {"op": "write", "path": "/trash/one.txt", "text": "one"},
        {"op": "write", "path": "/trash/folder/two.txt", "text": "two"},
        {"op": "write", "path": "/trash/folder/three.txt", "text": "three"},
        {"op": "write", "path": "/share/file.txt", "text": "file"},
    ] + [{"op": "write", "path": "/versions/file.txt", "text": text} for text in ("a", "b", "c")])


def cost(desk, cloud, *arguments):
    """What a command says, and the calls that it took, with those for the news that it made."""
    desk.clouds.await_quiet(cloud)
    desk.clouds.forget_calls(cloud)
    said = desk.machine.oort(*arguments)
    desk.clouds.await_quiet(cloud)
    return said, Counter({
        route: count for route, count in desk.clouds.counts(cloud).items()
        if route not in BESIDE})


# The service's trash, what lay there last and whether it lies elsewhere; the name in the folder; the act;
# the folder once more.
RESTORE = {
    "dropbox": {"files/list_folder": 2, "files/list_revisions": 2, "files/get_metadata": 3,
                "files/restore": 1},
    # Twice more for what was removed here within two minutes: lists may lag.
    "drive": {"files.list": 3, "drives.list": 1, "files.get": 4, "files.update": 1},
    # Whether the name is free is asked by what begins an upload.
    "box": {"folders/trash/items/get": 1, "files/content/options": 1, "files/post": 1,
            "folders/items/get": 1},
}
# Of two files: at Dropbox file by file, elsewhere the folder, which is listed then.
RESTORE_FOLDER = {
    "dropbox": {"files/list_folder": 3, "files/list_revisions": 4, "files/get_metadata": 4,
                "files/create_folder_v2": 1, "files/restore": 2},
    "drive": {"files.list": 4, "drives.list": 1, "files.get": 4, "files.update": 1},
    "box": {"folders/trash/items/get": 1, "files/content/options": 1, "folders/post": 1,
            "folders/items/get": 3},
}


@pytest.mark.parametrize("cloud", ["dropbox", "drive", "box"])
def test_the_trash(desk, cloud):
    drive = desk.drive(cloud)
    one = drive / "trash" / "one.txt"
    one.unlink()
    desk.machine.sync()
    said, listing = cost(desk, cloud, "trash", drive / "trash")
    assert str(one) in said
    assert listing == Counter({
        "dropbox": {"files/list_folder": 1, "files/list_revisions": 1, "files/get_metadata": 1},
        "drive": {"files.list": 1, "drives.list": 1},
        "box": {"folders/trash/items/get": 1}}[cloud])
    assert cost(desk, cloud, "restore", one)[1] == Counter(RESTORE[cloud])
    desk.machine.run("rm", "-r", drive / "trash" / "folder")
    desk.machine.sync()
    assert cost(desk, cloud, "restore", drive / "trash" / "folder")[1] == Counter(
        RESTORE_FOLDER[cloud])


def test_versions(desk, cloud):
    path = desk.drive(cloud) / "versions" / "file.txt"
    _, listing = cost(desk, cloud, "versions", path)
    assert listing == Counter({
        "dropbox": {"files/list_revisions": 1},
        # Which one is current, the item says.
        "drive": {"files.get": 1, "revisions.list": 1},
        "onedrive": {"versions/get": 1},
        "box": {"files/get": 1, "files/versions/get": 1}}[cloud])
    versions = json.loads(desk.machine.oort("versions", path, "--json"))["versions"]
    old = versions[-1]["id"]
    _, reading = cost(desk, cloud, "restore", path, "--version", old, "--to",
                      desk.machine.folder / f"old {cloud}")
    assert reading == listing + Counter({
        "dropbox": {"files/download": 1},
        # Kept for ever, and read.
        "drive": {"revisions.get": 2},
        "onedrive": {"versions/get": 1, "download": 1},
        # The address of the bytes, and the bytes.
        "box": {"files/content/get": 1, "download": 1}}[cloud])
    _, restoring = cost(desk, cloud, "restore", path, "--version", old)
    # Whether the content is still the one that is known, the act, the file as it is then.
    assert restoring == listing + Counter({
        "dropbox": {"files/get_metadata": 2, "files/restore": 1},
        # What is read is a save of the file, which goes out as any other.
        "drive": {"revisions.get": 2},
        "onedrive": {"item/get": 2, "versions/post": 1},
        "box": {"files/get": 2, "files/versions/current/post": 1}}[cloud])


def test_links(desk, cloud):
    path = desk.drive(cloud) / "share" / "file.txt"
    known = Counter({
        "dropbox": {"sharing/list_shared_links": 1},
        "drive": {"permissions": 1},
        "onedrive": {"permissions/get": 1},
        "box": {"files/get": 1}}[cloud])
    # Drive's address of the item is asked for by itself.
    address = Counter({"drive": {"files.get": 1}}.get(cloud, {}))
    assert cost(desk, cloud, "share", path)[1] == known + address + Counter({
        "dropbox": {"sharing/create_shared_link_with_settings": 1},
        "drive": {"permissions": 1},
        "onedrive": {"createLink/post": 1},
        # Looked at once more right before: another wish would change the link that people have.
        "box": {"files/get": 1, "files/put": 1}}[cloud])
    assert cost(desk, cloud, "share", path)[1] == known + address
    assert cost(desk, cloud, "unshare", path)[1] == known + address + Counter({
        "dropbox": {"sharing/revoke_shared_link": 1},
        "drive": {"permissions.one": 1},
        "onedrive": {"permissions/delete": 1},
        "box": {"files/put": 1}}[cloud])
