"""Which author wrote which content, and which contents an author may still claim."""

import collections
import os
import stat

from torture.contents import EMPTY, digest
from torture.steps import Refused


class Ledger:
    """Follows every content from the close that made it to the step of its author that ended it.

    A content is a digest of a whole file. What an author closed must be found at the service
    until the same author overwrites it, truncates it or removes it: what cancels out before it
    is sent need not ever arrive. At a service that keeps nothing but what is current, whoever else
    had seen the content and then overwrote or removed it ended it, too: `is_common`.
    """

    def __init__(self, is_common=False):
        self.is_common = is_common
        # (author, content) -> how many files the author closed with it that are not ended.
        self.claims = collections.Counter()
        self.last = {}
        # (author, file) -> the contents that the author closed in it.
        self.written = collections.defaultdict(list)
        # How often a content may have been created at the service.
        self.allowed = collections.Counter()
        # The files that were renamed.
        self.renamed = set()
        # Whatever a file may be seen to hold.
        self.known = {EMPTY}
        # Where a content was last closed, for people.
        self.origins = {}
        self.sizes = {}
        self.bytes = 0

    def closed(self, author, inode, data, path):
        """A file holds this content, and its author has closed it."""
        content = digest(data)
        self.origins[content] = f"{author}'s {path}"
        self.sizes[content] = len(data)
        self.known.add(content)
        if content == EMPTY or self.last.get((author, inode)) == content:
            return
        self.last[author, inode] = content
        self.written[author, inode].append(content)
        self.claims[author, content] += 1
        # What has the old name of a renamed file may take over its item: then a copy is made of it.
        self.allowed[content] += 2 if (author, inode) in self.renamed else 1
        self.bytes += len(data)

    def survived(self, contents):
        """What files hold after a death: what was written and not closed was made once, too."""
        for content in contents:
            self.known.add(content)
            if content not in self.allowed:
                self.allowed[content] = 1

    def ended(self, author, inode, content):
        """The author destroys what a file holds."""
        claim = (author, content)
        if self.is_common and self.claims[claim] <= 0:
            claim = next((other for other, count in self.claims.items()
                          if count > 0 and other[1] == content), claim)
        if self.claims[claim] > 0:
            self.claims[claim] -= 1
        self.last.pop((author, inode), None)

    def given_up(self, author, inode, original, size):
        """What the author closed in a file cannot be completed any more, and is taken away.

        A conflict copy holds what the author closed in its original. Which content it was nobody can
        read; its size is known.
        """
        for content in self.written[author, inode] + self.written[author, original]:
            if self.sizes[content] == size:
                self.claims[author, content] = 0

    def moved(self, author, inode, content):
        """A file was renamed: what takes its place may be its successor, and itself a copy."""
        self.allowed[content] += 1
        self.renamed.add((author, inode))

    def all_removed(self):
        """Another author removed all files: the disk gives their inodes to new ones."""
        if self.is_common:
            self.claims.clear()
        self.last.clear()
        self.written.clear()
        self.renamed.clear()

    def describe(self, content):
        return f"{content[:12]} ({self.origins.get(content, 'unknown')})"

    def claimed(self):
        """The contents that must be at the service."""
        return {content for (_, content), count in self.claims.items() if count > 0}


class Witness:
    """Reports to a ledger what one author's steps do to contents, by looking at the author's side."""

    def __init__(self, ledger, author, side):
        self.ledger, self.author, self.side = ledger, author, side
        # The file that the step under way removes.
        self.removed = None

    def before(self, step):
        """Notes what the step is about to destroy or to rename; raises what looking raises."""
        ledger = self.ledger
        self.removed = None
        match step.call, step.arguments:
            case ("write" | "resize" | "copy"), arguments:
                number = arguments[1] if step.call == "copy" else arguments[0]
                handle = self.side.handles.get(number)
                if handle and not self._is_removed(handle):
                    content = digest(self.side.whole(number))
                    self._ended(os.fstat(handle.descriptor).st_ino, content)
            case "open", (_, path, "replace"):
                self._ended_at(path, follows=True)
            case "truncate", (path, _):
                self._ended_at(path, follows=True)
            case "unlink", (path,):
                self.removed = self._ended_at(path)
            case "rename", (path, to, how):
                self._moved_at(path)
                if how == "exchange":
                    self._moved_at(to)
                elif how == "over" and path != to:
                    self._moved_at(to)
                    self.removed = self._ended_at(to)

    def after(self, step, result):
        """Notes what the step closed."""
        if isinstance(result, Refused):
            return
        if self.removed is not None:
            for handle in self.side.handles.values():
                if os.fstat(handle.descriptor).st_ino == self.removed:
                    handle.is_removed = True
        if step.call == "truncate":
            path = step.arguments[0]
            with open(self.side.at(path), "rb") as file:
                self.ledger.closed(
                    self.author, os.fstat(file.fileno()).st_ino, file.read(), path)

    def closing(self, number):
        """To be called before a handle is closed; what it holds is its author's."""
        handle = self.side.handles.get(number)
        if not handle or not handle.is_dirty or self._is_removed(handle):
            return
        inode = os.fstat(handle.descriptor).st_ino
        self.ledger.closed(self.author, inode, self.side.whole(number), handle.path)

    @staticmethod
    def _is_removed(handle):
        # The kernel calls a path "(deleted)", too, when another author moved the file.
        return handle.is_removed or os.fstat(handle.descriptor).st_nlink == 0

    def _content(self, path, follows=False):
        path = self.side.at(path)
        try:
            found = os.stat(path) if follows else os.lstat(path)
            if not stat.S_ISREG(found.st_mode):
                return None
            with open(path, "rb") as file:
                return found.st_ino, digest(file.read())
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            if error.errno in (36, 40):  # ENAMETOOLONG, ELOOP
                return None
            raise

    def _ended_at(self, path, follows=False):
        """Notes that a file is destroyed; its inode, where there is one."""
        if found := self._content(path, follows):
            self._ended(*found)
            return found[0]
        return None

    def _ended(self, inode, content):
        self.ledger.ended(self.author, inode, content)

    def _moved_at(self, path):
        if found := self._content(path):
            self.ledger.moved(self.author, *found)
