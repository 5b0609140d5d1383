"""Names that nobody should give, given at the service: harmless on the mount, and usable."""

import errno
import os

import pytest

from machine import eventually

LONG = "n" * 10_000
NAMES = [
    "..", ".", "...", "/", "a/b", "../../etc/passwd", "nul\0inside", "\0", LONG, "m" * 10_000,
    "\u00fc" * 5_000, "\x1b[2Jred", "new\nline", "tab\t", "\x01\x7f", "\u202etxt.exe",
    "\u200f\u200e", "\ufeffbom", "e\u0301", "x" + "\u0301" * 3_000, " ", "~", "-rf",
    "%2e%2e%2f", "\\", "C:\\x", "*?<>|\"", "CON", "\U0001f30b",
    # What joins the character before it, which in a path is the slash.
    "\u0301 acute.txt", "\u200djoiner", "\ufe0fvariant", "\U0001f3ffskin", "\u0600.rclonelink.txt",
    # The other normal form of one above.
    "\u00e9",
]
# By paths only: a name with a slash would be another path, and these hold no empty parts.
# It also takes two normal forms for one name.
UNSAYABLE = {"dropbox": {"/", "a/b", "../../etc/passwd", "\u00e9"}}
MARKS = ["\u0301", "\u200d", "\ufe0f"]


def test_hostile_names(machine, clouds, cloud, drive):
    names = [name for name in NAMES if name not in UNSAYABLE.get(cloud, set())]
    contents = {}
    for number, name in enumerate(names):
        contents[f"content {number}"] = name
        clouds.edit(cloud, "write", [name], text=f"content {number}")
    clouds.edit(cloud, "write", ["folder", ".."], text="below")
    clouds.edit(cloud, "write", "/last.txt", text="last")
    eventually((drive / "last.txt").exists, "the last file shows")
    shown = os.listdir(os.fsencode(drive))
    for name in shown:
        assert name not in (b"", b".", b"..") and b"/" not in name and b"\0" not in name, name
        assert len(name) <= 255
        name.decode()  # is UTF-8
    assert len(shown) == len(set(shown)) == len(names) + 2, sorted(shown)
    # Each is a file with its own content, by its name as by the folder's listing.
    found = set()
    for name in shown:
        path = os.path.join(os.fsencode(drive), name)
        if os.path.isfile(path):
            with open(path, "rb") as file:
                found.add(file.read().decode())
    assert found == set(contents) | {"last"}
    assert [p.read_text() for p in (drive / "folder").iterdir()] == ["below"]
    machine.run("ls", "-la", drive)
    machine.run("find", drive, "-type", "f", "-exec", "cat", "{}", "+")
    # A removal hits the item that was meant.
    for name in shown[::2]:
        if name != b"folder":
            os.remove(os.path.join(os.fsencode(drive), name))
    machine.sync()
    left = os.listdir(os.fsencode(drive))
    assert len(clouds.tree(cloud)) == len(left) + 1
    machine.run("rm", "-rf", *[os.path.join(os.fsencode(drive), name).decode() for name in left])
    machine.sync()
    assert clouds.tree(cloud) == {}
    assert os.path.isdir(machine.folder), "nothing outside was touched"


@pytest.mark.parametrize("mark", MARKS, ids=lambda mark: f"U+{ord(mark):04X}")
def test_names_that_join_the_slash_before_them(machine, clouds, cloud, drive, mark):
    """A folder that holds only such names is not empty, and they lie nowhere else."""
    clouds.edit(cloud, "write", ["Team", "plain.txt"], text="plain")
    clouds.edit(cloud, "write", ["Team", f"{mark} secret.txt"], text="secret")
    clouds.edit(cloud, "write", ["Team", f"{mark} dir", f"{mark}inner.txt"], text="inner")
    clouds.edit(cloud, "write", [f"{mark} top.txt"], text="top")
    clouds.edit(cloud, "write", "/last.txt", text="last")
    eventually((drive / "last.txt").exists, "the last file shows")
    machine.ready(drive.name)
    assert sorted(os.listdir(drive)) == sorted(["Team", f"{mark} top.txt", "last.txt"])
    team = drive / "Team"
    assert sorted(os.listdir(team)) == sorted([f"{mark} dir", f"{mark} secret.txt", "plain.txt"])
    assert (team / f"{mark} dir" / f"{mark}inner.txt").read_text() == "inner"
    (team / "plain.txt").unlink()
    with pytest.raises(OSError) as refused:
        team.rmdir()
    assert refused.value.errno == errno.ENOTEMPTY
    (team / f"{mark} mine.txt").write_text("mine")
    (team / f"{mark} dir").rename(drive / f"{mark}moved")
    (drive / f"{mark} top.txt").write_text("changed")
    machine.sync()
    texts = {
        path: clouds.content(cloud, path) for path, item in clouds.tree(cloud).items()
        if item["kind"] == "file"}
    assert texts == {
        f"/Team/{mark} secret.txt": b"secret", f"/Team/{mark} mine.txt": b"mine",
        f"/{mark}moved/{mark}inner.txt": b"inner", f"/{mark} top.txt": b"changed",
        "/last.txt": b"last"}


def test_answers_that_are_no_utf8(machine, clouds, cloud, drive):
    (drive / "before.txt").write_text("before")
    machine.sync()
    clouds.fault(cloud, route="*", fault="broken_text", times=6)
    clouds.edit(cloud, "write", "/theirs.txt", text="theirs")
    (drive / "mine.txt").write_text("mine")
    assert (drive / "before.txt").read_text() == "before"
    machine.sync()
    eventually((drive / "theirs.txt").exists, "the news come")
    assert clouds.content(cloud, "/mine.txt") == b"mine"
    assert sorted(clouds.tree(cloud)) == ["/before.txt", "/mine.txt", "/theirs.txt"]
    assert sorted(os.listdir(drive)) == ["before.txt", "mine.txt", "theirs.txt"]
