"""Histories of files whose bytes are only at the service: they are not read before they are changed."""

import os
import time

from machine import eventually
from torture.authors import Author, Listing, join
from torture.contents import FOLDER_NAMES, spelled
from torture.history import READING, Alone
from torture.steps import Step

# Of a file up to this size all is fetched before its first change.
SMALL_BASE = 4 << 20
# Of the files that are at the service first, from the least to the most of each kind.
SIZES = [(0, 1), (2, 5_000), (2, 5_000), (5_000, 60_000), (5_000, 60_000), (60_000, 1_500_000)]


class Hasty(Author):
    """Does several things to the same few files, and reads none of them."""

    # How many of the paths that were named last are preferred to all others.
    RECENT = 4

    def __init__(self, *arguments, **more):
        super().__init__(*arguments, **more)
        self.recent = []
        self.programs = {
            self.copy: 14, self.copy_over: 5, self.copy_tree: 2, self.copy_held: 4,
            self.move_by_copy: 6, self.rename: 14, self.exchange: 5, self.remove: 9,
            self.remove_tree: 2, self.remove_folder: 1, self.make_folder: 2, self.write_new: 4,
            self.write_over: 7, self.append: 8, self.change_middle: 9, self.cut: 8,
            self.stamp: 3, self.link: 1, self.save_by_replacing: 6, self.save_with_backup: 6,
            self.hold: 9, self.use_held: 8, self.let_go: 4, self.inspect: 3,
        }

    def program(self):
        steps = super().program()
        for step in steps:
            paths = [a for a in step.arguments if isinstance(a, str)]
            if step.call == "open":
                paths = paths[:1]
            elif step.call == "rename":
                paths = paths[:2]
            self.recent = [*(p for p in self.recent if p not in paths), *paths][-self.RECENT:]
        return steps

    def a_file(self):
        return self.preferred(self.listing.files) or super().a_file()

    def anything(self):
        every = self.listing.files + self.listing.folders[1:] + self.listing.links
        return self.preferred(every) or super().anything()

    def preferred(self, paths):
        """Often one of the paths that were named last, where there is one."""
        known = set(paths)
        recent = [path for path in self.recent if path in known]
        return self.random.choice(recent) if recent and self.random.random() < 0.6 else None

    # Copies.

    def copy_over(self):
        """As `cp` does it when the target is there."""
        source, target = self.a_file(), self.a_file()
        if source == target:
            return self.copy(source)
        return self.copied(source, target, "replace")

    def copied(self, source, target, mode):
        reader, writer = self.number(), self.number()
        return [
            Step("open", (reader, source, "read")), Step("open", (writer, target, mode)),
            Step("copy", (reader, writer)), Step("close", (writer,)), Step("close", (reader,))]

    def move_by_copy(self):
        """As `mv` does it between file systems."""
        source, target = self.a_file(), self.a_place()
        if source == target:
            return self.rename()
        return [*self.copy(source, target), Step("unlink", (source,))]

    def copy_held(self):
        """What a handle has open, wherever its file is by now."""
        if not self.held:
            return self.hold()
        reader, writer = self.random.choice(self.held), self.number()
        return [
            Step("open", (writer, self.a_place(), "create")), Step("copy", (reader, writer)),
            Step("close", (writer,))]

    # Changes of a part.

    def change_middle(self):
        handle = self.number()
        offset = self.random.choice([0, 10, 4_096, 50_000, 1_000_000, SMALL_BASE + 100_000])
        steps = [Step("open", (handle, self.a_file(), "change"))]
        for _ in range(self.random.randint(1, 2)):
            steps.append(Step("write", (
                handle, offset, self.number(), self.random.randint(1, 3_000))))
            offset = self.random.choice([0, 100, 20_000, 500_000])
        return [*steps, Step("close", (handle,))]

    def cut(self):
        """Cuts or extends; of a file above the limit for small bases some stay above."""
        sizes = [0, 30, 1_000, 70_000, 1_000_000, SMALL_BASE, SMALL_BASE + 50_000]
        return [Step("truncate", (self.a_file(), self.random.choice(sizes)))]

    def use_held(self):
        if not self.held:
            return self.hold()
        handle = self.random.choice(self.held)
        steps = [
            Step("write", (
                handle, self.random.choice([None, 0, 500, 100_000]), self.number(),
                self.random.randint(1, 4_000))),
            Step("measure", (handle,)), Step("sync", (handle,)),
            Step("resize", (handle, self.random.choice([0, 700, 9_000, SMALL_BASE + 70_000])))]
        return self.random.sample(steps, self.random.randint(1, 2))

    def inspect(self):
        return [Step("look", (self.anything(),)), Step("list", (self.a_folder(4),))]


class Cold(Alone):
    """One machine, in rounds: it knows the tree and no byte of it, and several programs hurry."""

    # A change of a part of a file that is not here asks the service for the rest.
    READING = READING | {"write", "truncate", "resize"}

    def begin(self):
        super().begin()
        self.author = Hasty(
            self.chance("programs"), lambda: Listing.of(self.reference.root), self.kind.refused,
            self.large)
        self.stocks = self.chance("stocks")
        self.stocked = self.left = self.rounds = 0

    def program(self):
        if self.left <= 0:
            self.next_round()
        self.left -= 1
        for step in self.author.program():
            self.steps += 1
            self.note(step)
            if not self.perform(step):
                return
        chance = self.accidents.random()
        if chance < 0.2:
            # What was done begins to be sent, and the next program meets it under way.
            time.sleep(self.accidents.uniform(0.2, 0.8))
        elif self.kills and chance < 0.24 and self.one.killer is None:
            self.die()

    def die(self):
        """A death between two programs: all that was acknowledged is there, and need not be read."""
        self.note("one: dies between two programs")
        self.one.kill_within(0)
        self.one.spare()
        self.close_on_reference()

    def recover(self, step):
        """After a death in a step everything was read: the round is over."""
        super().recover(step)
        self.left = 0

    def next_round(self):
        """All is sent and compared; then the cache goes, and new files are at the service."""
        self.storms.end()
        if self.one.spare():
            self.recover_quietly()
        if self.rounds:
            self.agree()
        self.rounds += 1
        self.note(f"round {self.rounds}")
        self.stock()
        self.remount(self.one, without_cache=True)
        wanted = outline(self.reference.root)
        eventually(lambda: outline(self.one.root) == wanted, "the mount knows the tree")
        if self.faults:
            self.figures.weathers += 1
            self.note(f"weather: {self.storms.change()}")
        self.left = self.stocks.randint(3, 10)

    def agree(self, look_first=None):
        # To look before all is sent fetches what is not here: it would hide what sending cannot.
        return super().agree(self.stocks.random() < 0.3 if look_first is None else look_first)

    def stock(self):
        """Puts files at the service and on the reference, until there are enough of each size."""
        listing = Listing.of(self.reference.root)
        sizes = [os.path.getsize(self.reference.at(path)) for path in listing.files]
        large = 4 if self.large else 1
        for _ in range(large - sum(size > SMALL_BASE for size in sizes)):
            self.put(listing, SMALL_BASE + self.stocks.randint(1, 1_500_000))
        for _ in range(max(2, 8 - len(sizes))):
            self.put(listing, self.stocks.randint(*self.stocks.choice(SIZES)))

    def put(self, listing, size):
        folders = [f for f in listing.folders if f.count("/") < 2]
        folder = self.stocks.choice([*folders, *FOLDER_NAMES])
        path = join(folder, self.stocks.choice(self.author.names))
        place = self.reference.at(path)
        if os.path.lexists(place) or not is_place(self.reference.at(folder)):
            path = f"stock {self.stocked}.dat"
        self.supply(path, size)

    def supply(self, path, size):
        """A new file at the service, and on the reference."""
        place = self.reference.at(path)
        self.stocked += 1
        text = spelled(self.seed, self.stocked, size)
        moment = self.stocks.randint(1_000_000_000, 1_700_000_000)
        self.note(f"stock: {path!r}, {size} bytes")
        os.makedirs(os.path.dirname(place), exist_ok=True)
        with open(place, "x") as file:
            file.write(text)
        modified = None
        if self.kind.lists_times:
            os.utime(place, (moment, moment))
            modified = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(moment))
        self.kind.edit("write", "/" + path, text=text, modified=modified)
        self.ledger.closed(self.witness.author, os.stat(place).st_ino, text.encode(), path)


def is_place(folder):
    """Whether a folder is there or can be made."""
    return os.path.isdir(folder) and not os.path.islink(folder) or not os.path.lexists(folder)


def outline(root):
    """The names below a folder, and the sizes of files; no byte is read."""
    found = {}
    for folder, folders, files in os.walk(root):
        for name in folders + files:
            path = os.path.join(folder, name)
            is_file = name in files and not os.path.islink(path)
            found[os.path.relpath(path, root)] = os.lstat(path).st_size if is_file else None
    return found
