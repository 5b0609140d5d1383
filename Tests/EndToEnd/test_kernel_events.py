"""The kernel's events for programs that watch a folder of the mount, when it changes elsewhere."""

import ctypes
import os
import pathlib
import struct

from machine import eventually

MODIFY, CREATE, DELETE, FOLDER = 0x2, 0x100, 0x200, 0x40000000
NAMES = {MODIFY: "modify", CREATE: "create", DELETE: "delete"}
LIBC = ctypes.CDLL(None, use_errno=True)


class Inotify:
    """The events that a folder's watcher gets: pairs of what happened and the name."""

    def __init__(self, folder):
        self.descriptor = LIBC.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        assert LIBC.inotify_add_watch(
            self.descriptor, os.fsencode(folder), MODIFY | CREATE | DELETE) >= 0
        self.events = []

    def told(self, what, name):
        def find():
            self.read()
            return (what, name) in self.events

        eventually(find, f"{what} {name} among {self.events}")

    def read(self):
        try:
            data = os.read(self.descriptor, 1 << 16)
        except BlockingIOError:
            return
        while data:
            _, mask, _, length = struct.unpack_from("iIII", data)
            name = os.fsdecode(data[16:16 + length].rstrip(b"\0"))
            data = data[16 + length:]
            ending = " folder" if mask & FOLDER else ""
            self.events += [(word + ending, name) for bit, word in NAMES.items() if mask & bit]

    def close(self):
        os.close(self.descriptor)


def helpers(machine):
    """The helper processes of the mount."""
    found = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            parent = int((process / "stat").read_text().rsplit(")", 1)[1].split()[1])
            words = (process / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if parent == machine.process and b"kernel-events-helper" in words:
            found.append(int(process.name))
    return found


def test_a_watched_folder_is_told_what_others_do(machine, clouds, cloud, drive):
    folder = drive / "shared"
    folder.mkdir()
    (folder / "mine.txt").write_text("mine")
    machine.sync()
    # No folder is watched: no helper is started.
    clouds.edit(cloud, "write", "/shared/unseen.txt", text="unseen")
    eventually((folder / "unseen.txt").exists, "it is there")
    assert helpers(machine) == []

    watch = Inotify(folder)
    new = folder / "new ä.txt"
    # What the kernel believes of the name is no obstacle.
    assert not new.exists()
    clouds.edit(cloud, "write", "/shared/new ä.txt", text="first")
    watch.told("create", new.name)
    assert new.read_text() == "first"
    clouds.edit(cloud, "write", "/shared/new ä.txt", text="second, longer")
    watch.told("modify", new.name)
    assert new.read_text() == "second, longer"
    clouds.edit(cloud, "mkdir", "/shared/sub")
    watch.told("create folder", "sub")
    assert (folder / "sub").is_dir()
    clouds.edit(cloud, "move", "/shared/new ä.txt", to="/shared/moved.txt")
    watch.told("create", "moved.txt")
    watch.told("delete", new.name)
    assert not new.exists() and (folder / "moved.txt").read_text() == "second, longer"
    clouds.edit(cloud, "remove", "/shared/moved.txt")
    watch.told("delete", "moved.txt")
    clouds.edit(cloud, "remove", "/shared/sub")
    watch.told("delete folder", "sub")
    assert sorted(os.listdir(folder)) == ["mine.txt", "unseen.txt"]
    assert len(helpers(machine)) == 1

    # Nothing of it was done: the cloud has what the others made of it, and waits for nothing.
    machine.sync()
    assert machine.account(cloud)["pending_count"] == 0
    held = {path for path, item in clouds.tree(cloud).items() if path.startswith("/shared/")}
    assert held == {"/shared/mine.txt", "/shared/unseen.txt"}
    # What programs do here is as ever.
    (folder / "mine.txt").write_text("mine again")
    (folder / "here.txt").write_text("here")
    (folder / "unseen.txt").unlink()
    watch.told("create", "here.txt")
    watch.told("delete", "unseen.txt")
    machine.sync()
    assert clouds.content(cloud, "/shared/here.txt") == b"here"
    assert clouds.content(cloud, "/shared/mine.txt") == b"mine again"
    assert "/shared/unseen.txt" not in clouds.tree(cloud)
    watch.close()
    # The helper goes with the mount.
    left = helpers(machine)
    machine.unmount()
    for process in left:
        eventually(lambda: not pathlib.Path(f"/proc/{process}").exists(), "the helper ends")
