"""What programs do, as lists of steps: saves, copies, moves, and the dances of editors."""

import dataclasses
import os
import re

from torture.contents import FOLDER_NAMES, file_names, random_size
from torture.steps import Step

CONFLICT = re.compile(r" \(conflicted copy [^/]*\)[^/]*$")
# Where a sign-in tries what a server can do: there for a moment, also in other machines' mounts.
PROBE = re.compile(r"\.oort-probe-")


@dataclasses.dataclass
class Listing:
    """The paths that an author may choose from."""

    files: list
    folders: list
    links: list

    @classmethod
    def of(cls, root, top=""):
        """What lies below a folder, conflict copies left alone; the first is the folder itself."""
        listing = cls([], [top], [])
        for folder, folders, files in os.walk(os.path.join(root, top)):
            folders[:] = [name for name in folders if not PROBE.match(name)]
            place = os.path.relpath(folder, root)
            place = "" if place == "." else place + "/"
            folders.sort()
            for name in sorted(folders + files):
                path = place + name
                if CONFLICT.search(path):
                    continue
                if os.path.islink(os.path.join(folder, name)):
                    listing.links.append(path)
                elif name in folders:
                    listing.folders.append(path)
                else:
                    listing.files.append(path)
        return listing


class Author:
    """Chooses what is done next, from a seed and from what is there."""

    def __init__(self, random, look, refused, large=False, first=0):
        self.random = random
        self.look = look
        self.names = file_names(refused)
        self.large = large
        # Of contents and of handles: no two authors share any.
        self.counter = first
        self.held = []
        self.programs = {
            self.write_new: 18, self.write_over: 8, self.append: 6, self.change_middle: 6,
            self.cut: 4, self.make_folder: 8, self.rename: 14, self.exchange: 2,
            self.remove: 7, self.remove_folder: 3, self.remove_tree: 2, self.link: 3,
            self.copy: 4, self.copy_tree: 1, self.stamp: 4, self.save_by_replacing: 4,
            self.save_with_backup: 4, self.hold: 4, self.use_held: 6, self.let_go: 4,
            self.inspect: 7, self.build: 2,
        }

    def program(self):
        """The steps of the next program; some are meant to be refused."""
        program = self.choose()
        self.listing = self.look()
        return program()

    def choose(self):
        kinds, weights = zip(*self.programs.items())
        return self.random.choices(kinds, weights)[0]

    def forget_handles(self):
        self.held.clear()

    # Choosing.

    def number(self):
        self.counter += 1
        return self.counter

    def a_folder(self, deep=3):
        choices = [f for f in self.listing.folders if f.count("/") + (f != "") < deep]
        return self.random.choice(choices)

    def a_place(self):
        """A path for a file, which may be taken."""
        return join(self.a_folder(), self.random.choice(self.names))

    def a_folder_place(self):
        return join(self.a_folder(), self.random.choice(FOLDER_NAMES))

    def a_file(self):
        if not self.listing.files:
            return self.a_place()
        return self.random.choice(self.listing.files)

    def anything(self):
        every = self.listing.files + self.listing.folders[1:] + self.listing.links
        return self.random.choice(every) if every else self.a_place()

    # Contents.

    def written(self, handle, size=None):
        """Writes to a new handle from the start, in one to three parts."""
        size = random_size(self.random, self.large) if size is None else size
        steps = []
        offset = 0
        parts = self.random.randint(1, 3) if size > 100 else 1
        for part in range(parts):
            end = size * (part + 1) // parts
            steps.append(Step("write", (handle, offset, self.number(), end - offset)))
            offset = end
        return steps

    def saved(self, path, mode, sync=False):
        handle = self.number()
        steps = [Step("open", (handle, path, mode)), *self.written(handle)]
        if sync:
            steps.append(Step("sync", (handle,)))
        return [*steps, Step("close", (handle,))]

    def write_new(self):
        return self.saved(self.a_place(), "create", sync=self.random.random() < 0.2)

    def write_over(self):
        return self.saved(self.a_file(), "replace")

    def append(self):
        handle = self.number()
        size = self.random.randint(1, 2_000)
        return [
            Step("open", (handle, self.a_file(), "append")),
            Step("write", (handle, None, self.number(), size)), Step("close", (handle,))]

    def change_middle(self):
        handle = self.number()
        offset = self.random.choice([0, 10, 100, 4_096, 50_000])
        size = self.random.randint(1, 3_000)
        return [
            Step("open", (handle, self.a_file(), "change")),
            Step("write", (handle, offset, self.number(), size)), Step("close", (handle,))]

    def cut(self):
        return [Step("truncate", (self.a_file(), self.random.choice([0, 30, 1_000, 70_000])))]

    def copy(self, source=None, target=None):
        reader, writer = self.number(), self.number()
        source = source or self.a_file()
        target = target or self.a_place()
        return [
            Step("open", (reader, source, "read")),
            Step("open", (writer, target, "create")), Step("copy", (reader, writer)),
            Step("close", (writer,)), Step("close", (reader,))]

    def stamp(self):
        moment = self.random.randint(1_000_000_000, 1_700_000_000)
        return [Step("stamp", (self.a_file(), moment))]

    # Editors.

    def save_by_replacing(self):
        path = self.a_file()
        # No name that Oort leaves unsent at some service.
        temporary = path + self.random.choice([".tmp", "~new", ".new"])
        return [
            *self.saved(temporary, "create", sync=True), Step("rename", (temporary, path, "over"))]

    def save_with_backup(self):
        path = self.a_file()
        backup = path + "~"
        steps = [Step("rename", (path, backup, "over")), *self.saved(path, "create", sync=True)]
        if self.random.random() < 0.7:
            steps.append(Step("unlink", (backup,)))
        return steps

    # Names.

    def make_folder(self):
        return [Step("mkdir", (self.a_folder_place(),))]

    def rename(self):
        path = self.anything()
        chance = self.random.random()
        if chance < 0.15:
            to = self.anything()
        elif chance < 0.2:
            to = join(path, "inside")
        else:
            place = self.a_folder_place() if path in self.listing.folders else self.a_place()
            # A new name, a new folder, or both.
            to = self.random.choice([
                place, join(os.path.dirname(path), os.path.basename(place)),
                join(os.path.dirname(place), os.path.basename(path))])
        how = "beside" if self.random.random() < 0.15 else "over"
        return [Step("rename", (path, to, how))]

    def exchange(self):
        return [Step("rename", (self.anything(), self.anything(), "exchange"))]

    def remove(self):
        return [Step("unlink", (self.anything(),))]

    def remove_folder(self):
        return [Step("rmdir", (self.anything(),))]

    def remove_tree(self):
        top = self.a_folder(deep=4)
        return self.tree_removed(top) if top else []

    def tree_removed(self, top):
        below = lambda paths: [p for p in paths if p.startswith(top + "/")]
        files = below(self.listing.files) + below(self.listing.links)
        folders = sorted(below(self.listing.folders), key=lambda p: -p.count("/"))
        return [
            *(Step("unlink", (path,)) for path in files),
            *(Step("rmdir", (path,)) for path in folders), Step("rmdir", (top,))]

    def link(self):
        target = self.random.choice([*self.names, *FOLDER_NAMES, "src/x", "nowhere"])
        path = self.a_place()
        return [Step("symlink", (target, path)), Step("readlink", (path,))]

    def copy_tree(self):
        top = self.a_folder()
        if not top:
            return []
        target = self.a_folder_place()
        files = [p for p in self.listing.files if os.path.dirname(p) == top]
        steps = [Step("mkdir", (target,))]
        for path in files[:6]:
            steps += self.copy(path, join(target, os.path.basename(path)))
        return steps

    def build(self):
        """A small tree made at once, and moved or removed again as often as it stays."""
        top = self.a_folder_place()
        inner = join(top, "inner")
        steps = [Step("mkdir", (top,)), Step("mkdir", (inner,))]
        files = [join(self.random.choice([top, inner]), f"part {n}.o") for n in range(4)]
        for path in files:
            steps += self.saved(path, "create")
        fate = self.random.random()
        if fate < 0.3:
            steps += [Step("unlink", (path,)) for path in files]
            steps += [Step("rmdir", (inner,)), Step("rmdir", (top,))]
        elif fate < 0.7:
            steps.append(Step("rename", (top, self.a_folder_place(), "over")))
        return steps

    # Handles that stay open while other programs go on.

    def hold(self):
        if len(self.held) >= 3:
            return self.let_go()
        handle = self.number()
        self.held.append(handle)
        mode = self.random.choice(["change", "append", "read"])
        return [Step("open", (handle, self.a_file(), mode))]

    def use_held(self):
        if not self.held:
            return self.inspect()
        handle = self.random.choice(self.held)
        steps = [
            Step("write", (
                handle, self.random.choice([None, 0, 500]), self.number(),
                self.random.randint(1, 4_000))),
            Step("read", (handle, self.random.choice([0, 100]), 10_000)),
            Step("measure", (handle,)), Step("sync", (handle,)),
            Step("resize", (handle, self.random.choice([0, 700, 9_000])))]
        return self.random.sample(steps, self.random.randint(1, 2))

    def let_go(self):
        if not self.held:
            return self.inspect()
        handle = self.held.pop(self.random.randrange(len(self.held)))
        return [Step("close", (handle,))]

    # Looking.

    def inspect(self):
        path = self.anything()
        return [Step("look", (path,)), Step("load", (path,)), Step("list", (self.a_folder(4),))]


def join(folder, name):
    return f"{folder}/{name}" if folder else name
