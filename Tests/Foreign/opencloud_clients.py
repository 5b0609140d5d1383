"""The simulated OpenCloud under rclone, which speaks the dialect with uploads by TUS of its own."""

import hashlib
import os
import subprocess

from run import Rclone, tool

SIMULATOR = "opencloud"
HOST = "opencloud.example.org"
USER = "ada"
SPACE = "8f06d4a1-1111-4c2a-9d5e-000000000001$0c5d6b5e-2222-4b7f-8a31-000000000002"


def rclone(world, password=None, **options):
    secret = password or world.tokens()["access_token"]
    obscured = subprocess.run(
        [tool("rclone"), "obscure", secret], capture_output=True, check=True, text=True)
    return Rclone(
        world, type="webdav", vendor="infinitescale", user=USER,
        **{"pass": obscured.stdout.strip()}, url=f"https://{HOST}/dav/spaces/{SPACE}", **options)


def check_rclone_round_trip(world):
    remote = rclone(world)
    for number in range(40):
        remote.local(f"tree/file {number}.txt", b"content %d" % number)
    remote.local("tree/deep/er/Grüße 🌋 100%+&;#?.txt", b"hello")
    local = remote.place / "tree"
    # check compares the checksums that the server computed with what lies here.
    remote("copy", local, "remote:from rclone")
    remote("check", local, "remote:from rclone")
    tree = world.tree("sha256")
    for path in local.rglob("*"):
        item = tree["/from rclone/" + str(path.relative_to(local))]
        if path.is_file():
            assert item["hash"] == hashlib.sha256(path.read_bytes()).hexdigest(), path
    back = remote.place / "back"
    remote("copy", "remote:from rclone", back)
    for path in local.rglob("*"):
        if path.is_file():
            there = back / path.relative_to(local)
            assert there.read_bytes() == path.read_bytes(), path
            assert int(there.stat().st_mtime) == int(path.stat().st_mtime), path


def check_rclone_large(world):
    remote = rclone(world)
    content = os.urandom(23 << 20)
    remote.local("large/large.bin", content)
    remote("copy", remote.place / "large", "remote:large")
    assert world.calls("POST spaces") == 1
    assert world.calls("PATCH data") == 3, world.calls("PATCH data")
    item = world.tree("sha256")["/large/large.bin"]
    assert item["hash"] == hashlib.sha256(content).hexdigest()
    assert remote("cat", "--offset", "7000000", "--count", "100", "remote:large/large.bin",
                  text=False) == content[7000000:7000100]


def check_rclone_replaces(world):
    remote = rclone(world)
    remote.local("tree/a", b"first")
    remote("copy", remote.place / "tree", "remote:twice")
    known = world.tree()["/twice/a"]["id"]
    remote.local("tree/a", b"the second")
    remote("copy", remote.place / "tree", "remote:twice")
    assert remote("cat", "remote:twice/a") == "the second"
    assert world.tree()["/twice/a"]["id"] == known


def check_rclone_moves_copies_deletes(world):
    remote = rclone(world)
    remote.local("tree/a", b"a")
    remote("copy", remote.place / "tree", "remote:moves")
    remote("moveto", "remote:moves/a", "remote:moves/b c")
    remote("copyto", "remote:moves/b c", "remote:moves/copy")
    remote("mkdir", "remote:moves/folder")
    remote("move", "remote:moves", "remote:elsewhere/moves")
    names = sorted(path for path in world.tree() if path.startswith("/elsewhere/"))
    assert names == ["/elsewhere/moves", "/elsewhere/moves/b c", "/elsewhere/moves/copy",
                     "/elsewhere/moves/folder"], names
    remote("purge", "remote:elsewhere")
    assert not any(path.startswith("/elsewhere") for path in world.tree())


def check_rclone_quota(world):
    assert "Used" in rclone(world)("about", "remote:")


def check_rclone_is_refused(world):
    rclone(world, password="wrong")("lsf", "remote:", fails=True)
