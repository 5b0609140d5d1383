"""rclone at the simulated servers of ownCloud's family: what all of them are asked for.

Each server's module takes these checks over and says by REMOTE how rclone reaches it.
"""

import hashlib
import subprocess

from run import Rclone, tool


def rclone(world, password=None):
    secret = password or world.tokens()["access_token"]
    obscured = subprocess.run(
        [tool("rclone"), "obscure", secret], capture_output=True, check=True, text=True)
    return Rclone(
        world, type="webdav", **{"pass": obscured.stdout.strip()}, **world.module.REMOTE)


def check_rclone_round_trip(world):
    remote = rclone(world)
    for number in range(40):
        remote.local(f"tree/file {number}.txt", b"content %d" % number)
    remote.local("tree/deep/er/Grüße 🌋 100%+&;#?.txt", b"hello")
    remote.local("tree/empty", b"")
    local = remote.place / "tree"
    # check compares the checksums that the server has with what lies here.
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
