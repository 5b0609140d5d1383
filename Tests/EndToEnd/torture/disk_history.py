"""Every content that came to a folder of a disk, for as long as one looks."""

import ctypes
import os
import select
import struct
import threading

from torture.contents import digest

LIBRARY = ctypes.CDLL(None, use_errno=True)
IN_MOVED_TO, IN_CREATE = 0x80, 0x100
EVENT = struct.Struct("iIII")


class DiskHistory:
    """Gives each file a second name elsewhere when it first shows, so that its bytes stay.

    A server writes a content under a name of its own before it has its place: the file is known by the
    time that it is replaced or removed.
    """

    def __init__(self, root, folder):
        self.folder = folder
        folder.mkdir()
        self.inodes = set()
        self.watched = {}
        self.events = LIBRARY.inotify_init1(os.O_CLOEXEC)
        assert self.events >= 0, os.strerror(ctypes.get_errno())
        self.is_over, self.end = os.pipe()
        self._watch(os.fspath(root))
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def contents(self):
        found = set()
        for name in os.listdir(self.folder):
            with open(self.folder / name, "rb") as file:
                found.add(digest(file.read()))
        return found

    def stop(self):
        os.close(self.end)
        self.thread.join()
        os.close(self.events)
        os.close(self.is_over)

    def _watch(self, folder):
        number = LIBRARY.inotify_add_watch(
            self.events, os.fsencode(folder), IN_MOVED_TO | IN_CREATE)
        if number < 0:
            return  # gone by now
        self.watched[number] = folder
        try:
            names = os.listdir(folder)
        except OSError:
            return
        for name in names:
            self._found(os.path.join(folder, name))

    def _found(self, path):
        if os.path.islink(path):
            return
        if os.path.isdir(path):
            return self._watch(path)
        try:
            inode = os.lstat(path).st_ino
            if inode not in self.inodes:
                os.link(path, self.folder / str(inode), follow_symlinks=False)
                self.inodes.add(inode)
        except OSError:
            pass  # gone, or known by another name

    def _run(self):
        while True:
            ready, _, _ = select.select([self.events, self.is_over], [], [])
            if self.is_over in ready:
                return
            data, place = os.read(self.events, 1 << 16), 0
            while place < len(data):
                number, _, _, length = EVENT.unpack_from(data, place)
                name = data[place + EVENT.size:place + EVENT.size + length].rstrip(b"\0")
                place += EVENT.size + length
                if folder := self.watched.get(number):
                    self._found(os.path.join(folder, os.fsdecode(name)))
