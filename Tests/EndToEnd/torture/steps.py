"""One system call each: what histories are made of, and a tree on which they are done."""

import ctypes
import dataclasses
import errno
import os
import pathlib

from torture.contents import digest, made

LIBRARY = ctypes.CDLL(None, use_errno=True)
RENAME_NOREPLACE, RENAME_EXCHANGE = 1, 2
MODES = {
    "create": os.O_CREAT | os.O_EXCL | os.O_RDWR,
    "replace": os.O_CREAT | os.O_TRUNC | os.O_RDWR,
    "append": os.O_CREAT | os.O_APPEND | os.O_RDWR,
    "change": os.O_RDWR,
    "read": os.O_RDONLY,
}


def rename(path, to, flags):
    if LIBRARY.renameat2(-100, os.fsencode(path), -100, os.fsencode(to), flags) != 0:
        raise OSError(ctypes.get_errno(), "renameat2")


@dataclasses.dataclass(frozen=True)
class Step:
    """A call by name, with arguments that are texts and numbers only."""

    call: str
    arguments: tuple = ()

    def __str__(self):
        return f"{self.call}({', '.join(map(repr, self.arguments))})"


@dataclasses.dataclass(frozen=True)
class Refused:
    """The error of a call, by its name in errno.h."""

    error: str


@dataclasses.dataclass
class Handle:
    descriptor: int
    path: str
    writes: bool
    # Whether something was written that no close has reported.
    is_dirty: bool = False
    # Whether its author removed the file's name; if another client's change brings the file back, the
    # handle's content is no longer the one that the author wants there.
    is_removed: bool = False


class Side:
    """A folder on which steps are done: a mount, or the reference."""

    def __init__(self, root, seed):
        self.root = pathlib.Path(root)
        self.seed = seed
        self.handles = {}

    def perform(self, step):
        """What the call gives, or its error; `None` for a handle that is not open."""
        try:
            return getattr(self, step.call)(*step.arguments)
        except OSError as error:
            return Refused(errno.errorcode.get(error.errno, str(error.errno)))
        except KeyError:
            return None

    def close_all(self):
        for handle in self.handles.values():
            try:
                os.close(handle.descriptor)
            except OSError:
                pass  # of a mount that is gone
        self.handles.clear()

    def at(self, path):
        return os.path.join(self.root, path)

    def whole(self, number):
        """All bytes behind a handle."""
        descriptor = self.handles[number].descriptor
        parts = []
        offset = 0
        while part := os.pread(descriptor, 1 << 20, offset):
            parts.append(part)
            offset += len(part)
        return b"".join(parts)

    # Handles.

    def open(self, number, path, mode):
        descriptor = os.open(self.at(path), MODES[mode], 0o644)
        is_dirty = mode in ("create", "replace")
        self.handles[number] = Handle(descriptor, path, mode != "read", is_dirty)

    def write(self, number, offset, content, size):
        handle = self.handles[number]
        data = made(self.seed, content, size)
        handle.is_dirty |= handle.writes
        if offset is None:
            return os.write(handle.descriptor, data)
        return os.pwrite(handle.descriptor, data, offset)

    def resize(self, number, size):
        handle = self.handles[number]
        handle.is_dirty |= handle.writes
        os.ftruncate(handle.descriptor, size)

    def read(self, number, offset, size):
        return digest(os.pread(self.handles[number].descriptor, size, offset))

    def measure(self, number):
        return os.fstat(self.handles[number].descriptor).st_size

    def copy(self, source, target):
        """The whole of one handle onto another."""
        reader, writer = self.handles[source].descriptor, self.handles[target]
        writer.is_dirty |= writer.writes
        count = 0
        while done := os.copy_file_range(reader, writer.descriptor, 1 << 30, count, count):
            count += done
        return count

    def sync(self, number):
        os.fsync(self.handles[number].descriptor)

    def close(self, number):
        os.close(self.handles.pop(number).descriptor)

    # Names.

    def mkdir(self, path):
        os.mkdir(self.at(path))

    def rmdir(self, path):
        os.rmdir(self.at(path))

    def unlink(self, path):
        os.unlink(self.at(path))

    def rename(self, path, to, how):
        flags = {"over": 0, "beside": RENAME_NOREPLACE, "exchange": RENAME_EXCHANGE}[how]
        rename(self.at(path), self.at(to), flags)

    def symlink(self, target, path):
        os.symlink(target, self.at(path))

    def readlink(self, path):
        return os.readlink(self.at(path))

    def list(self, path):
        return tuple(sorted(os.listdir(self.at(path))))

    # Attributes and contents by path.

    def truncate(self, path, size):
        os.truncate(self.at(path), size)

    def stamp(self, path, seconds):
        os.utime(self.at(path), (seconds, seconds))

    def look(self, path):
        found = os.lstat(self.at(path))
        kind = found.st_mode & 0o170000
        return kind, found.st_size if kind != 0o040000 else None

    def load(self, path):
        with open(self.at(path), "rb") as file:
            return digest(file.read())
