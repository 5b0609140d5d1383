"""rclone and webdav4 at the simulated servers of ownCloud's family: what all of them are asked for.

Each server's module takes these checks over and says by REMOTE how its files are reached.
"""

import hashlib
import io
import subprocess

from webdav4.client import Client, ClientError, HTTPError

from run import Rclone, noise, tool


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


def webdav4(world, password=None):
    secret = password or world.tokens()["access_token"]
    return Client(world.module.REMOTE["url"], auth=(world.module.REMOTE["user"], secret), timeout=60)


def check_webdav4_round_trip(world):
    client = webdav4(world)
    contents = {"empty.txt": b"", "Grüße 🌋.txt": b"hello", "large.bin": noise(3 << 20, 1)}
    client.mkdir("by webdav4")
    for name, content in contents.items():
        client.upload_fileobj(io.BytesIO(content), f"by webdav4/{name}")
    tree = world.tree("sha256")
    listed = {entry["name"]: entry for entry in client.ls("by webdav4", detail=True)}
    for name, content in contents.items():
        path = f"by webdav4/{name}"
        assert tree["/" + path]["hash"] == hashlib.sha256(content).hexdigest(), path
        assert listed[path]["content_length"] == len(content), listed
        assert listed[path]["etag"] and listed[path]["type"] == "file", listed
        with client.open(path, "rb") as file:
            assert file.read() == content, path
    # A range of bytes, as a program reads it.
    with client.open("by webdav4/large.bin", "rb") as file:
        file.seek(1_000_000)
        assert file.read(100) == contents["large.bin"][1_000_000:1_000_100]


def check_webdav4_moves_copies_deletes(world):
    client = webdav4(world)
    client.mkdir("moving")
    client.upload_fileobj(io.BytesIO(b"text"), "moving/a")
    known = world.tree()["/moving/a"]["id"]
    client.move("moving/a", "moving/b c")
    assert world.tree()["/moving/b c"]["id"] == known
    client.copy("moving/b c", "moving/copy")
    for refused in (lambda: client.move("moving/copy", "moving/b c"),
                    lambda: client.mkdir("moving"), lambda: client.info("moving/none")):
        try:
            refused()
        except ClientError:
            continue
        raise AssertionError("done, although the name is taken or nothing is there")
    assert {path for path in world.tree() if path.startswith("/moving/")} == {
        "/moving/b c", "/moving/copy"}
    client.remove("moving")
    assert not any(path.startswith("/moving") for path in world.tree())


def check_webdav4_is_refused(world):
    try:
        webdav4(world, password="wrong").ls("")
    except HTTPError as error:
        assert error.status_code == 401, error
    else:
        raise AssertionError("let in by a wrong password")
