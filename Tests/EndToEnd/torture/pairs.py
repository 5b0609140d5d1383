"""Histories in which each thing that programs do comes right after each other one."""

import os
import shutil

from torture.authors import Listing, join
from torture.cold import SIZES, SMALL_BASE, Cold, Hasty
from torture.contents import FOLDER_NAMES
from torture.steps import Step


class Directed(Hasty):
    """Does in one folder after the other what is due there, to the few files of that folder."""

    # Few, so that a name is taken again when it is free.
    NAMES = 5

    def __init__(self, *arguments, pairs, **more):
        super().__init__(*arguments, **more)
        self.names = self.names[:self.NAMES]
        self.programs = [
            self.copy, self.copy_over, self.move_by_copy, self.move, self.move_over, self.exchange,
            self.move_in, self.move_out, self.move_folder, self.remove, self.remove_tree,
            self.write_new, self.write_over, self.append, self.change_middle, self.write_by_two,
            self.cut, self.stamp, self.save_by_replacing, self.save_with_backup,
            self.save_with_copy, self.save_aside, self.save_with_lock, self.save_anew,
            self.read_whole, self.read_part, self.hold, self.use_held,
        ]
        # What did not come after each yet.
        self.followers = {
            program: self.random.sample(self.programs, len(self.programs))
            for program in self.programs}
        self.pairs = pairs
        # (folder, program)
        self.due = []
        self.folder = self.last = None

    def sequence(self):
        """Two to five programs, pairs that did not come about yet first."""
        program = self.random.choice(
            [p for p in self.programs if self.followers[p]] or self.programs)
        chosen = [program]
        for _ in range(self.random.randint(1, 4)):
            left = self.followers[program]
            program = left.pop() if left else self.random.choice(self.programs)
            chosen.append(program)
        if self.use_held in chosen and self.hold not in chosen[:chosen.index(self.use_held)]:
            chosen.insert(0, self.hold)
        return chosen + [self.let_go] * chosen.count(self.hold)

    def choose(self):
        folder, program = self.due.pop(0)
        if folder == self.folder:
            self.pairs[self.last.__name__, program.__name__] += 1
        self.folder, self.last = folder, program
        return program

    # Choosing.

    def a_place(self):
        """A path for a file; one that is free, where there is one."""
        folder = self.a_folder()
        every = self.listing.files + self.listing.folders + self.listing.links
        paths = [join(folder, name) for name in self.names]
        return self.random.choice([p for p in paths if p not in every] or paths)

    def two_files(self):
        one = self.a_file()
        others = [path for path in self.listing.files if path != one]
        return one, self.random.choice(others) if others else self.a_place()

    def an_inner_folder(self):
        """A folder in that of the sequence, nothing where there is none."""
        inner = self.listing.folders[1:]
        return self.random.choice(inner) if inner else None

    # Names.

    def move(self):
        return [Step("rename", (self.a_file(), self.a_place(), "over"))]

    def move_over(self):
        return [Step("rename", (*self.two_files(), "over"))]

    def exchange(self):
        return [Step("rename", (*self.two_files(), "exchange"))]

    def copy_over(self):
        return self.copied(*self.two_files(), "replace")

    def move_in(self):
        path, folder, steps = self.a_file(), self.an_inner_folder(), []
        if folder is None or self.random.random() < 0.5:
            folder = self.a_folder_place()
            steps.append(Step("mkdir", (folder,)))
        return [*steps, Step("rename", (path, join(folder, os.path.basename(path)), "over"))]

    def move_out(self):
        """A file, and the folder goes when it was the last."""
        inner = [p for p in self.listing.files if os.path.dirname(p) != self.folder]
        if not inner:
            return self.move_in()
        path = self.preferred(inner) or self.random.choice(inner)
        return [
            Step("rename", (path, join(self.folder, os.path.basename(path)), "over")),
            Step("rmdir", (os.path.dirname(path),))]

    def move_folder(self):
        folder = self.an_inner_folder()
        if folder is None:
            return self.move_in()
        return [Step("rename", (folder, self.a_folder_place(), "over"))]

    def remove(self):
        return [Step("unlink", (self.a_file(),))]

    def remove_tree(self):
        folder = self.an_inner_folder()
        return self.tree_removed(folder) if folder else self.make_folder()

    # Changes.

    def write_by_two(self):
        """Two handles, each of which writes parts of its own; one is closed before the other."""
        path, one, two = self.a_file(), self.number(), self.number()
        offsets = [0, 4_096, 20_000, 100_000, SMALL_BASE + 100_000]
        steps = [
            Step("write", (handle, offset, self.number(), self.random.randint(1, 4_000)))
            for handle, offset in zip([one, two, two], self.random.sample(offsets, 3))]
        steps.insert(self.random.choice([2, 3]), Step("close", (one,)))
        return [
            Step("open", (one, path, "change")), Step("open", (two, path, "change")), *steps,
            Step("close", (two,))]

    # Editors.

    def save_with_copy(self):
        """The copy is the backup, and the file itself is written."""
        path = self.a_file()
        return self.with_backup(path, [
            *self.copied(path, path + "~", "replace"), *self.saved(path, "replace", sync=True)])

    def save_aside(self):
        """As gedit and Word: the original goes aside for a temporary file."""
        path = self.a_file()
        temporary = path + ".tmp"
        return self.with_backup(path, [
            *self.saved(temporary, "create", sync=True), Step("rename", (path, path + "~", "over")),
            Step("rename", (temporary, path, "over"))])

    def with_backup(self, path, steps):
        """A save whose backup stays or goes."""
        goes = self.random.random() < 0.5
        return [*steps, Step("unlink", (path + "~",))] if goes else steps

    def save_with_lock(self):
        """As LibreOffice."""
        path = self.a_file()
        folder, name = os.path.split(path)
        lock = join(folder, f".~lock.{name}#")
        temporary = join(folder, "lu28491a0bcd.tmp")
        return [
            *self.saved(lock, "create"), *self.saved(temporary, "create", sync=True),
            Step("rename", (temporary, path, "over")), Step("unlink", (lock,))]

    def save_anew(self):
        """As KeePassXC with its temporary file elsewhere."""
        path = self.a_file()
        return [Step("unlink", (path,)), *self.saved(path, "create")]

    # Reading.

    def read_whole(self):
        return [Step("load", (self.a_file(),))]

    def read_part(self):
        handle, offset = self.number(), self.random.choice([0, 100, 5_000, 300_000])
        return [
            Step("open", (handle, self.a_file(), "read")), Step("read", (handle, offset, 10_000)),
            Step("close", (handle,))]

    def let_go(self):
        """What was held open over other programs is written through, and closed."""
        steps = super().let_go()
        if self.random.random() < 0.7 and steps[0].call == "close":
            handle = steps[0].arguments[0]
            offset, size = self.random.choice([None, 0, 700]), self.random.randint(1, 4_000)
            steps.insert(0, Step("write", (handle, offset, self.number(), size)))
        return steps


class Pairs(Cold):
    """As `Cold`, in several folders of three files: a sequence in each, and nothing else."""

    # Sequences for which one sync is waited.
    FOLDERS = 6

    def begin(self):
        super().begin()
        self.author = Directed(
            self.chance("programs"),
            lambda: Listing.of(self.reference.root, self.author.folder), self.kind.refused,
            self.large,
            pairs=self.figures.pairs)

    def next_round(self):
        super().next_round()
        self.left = len(self.author.due)
        if self.stocks.random() < 0.3:
            # What one program did is still being sent when the next one comes.
            self.figures.weathers += 1
            self.note("weather: slow")
            self.storms.slow()

    def stock(self):
        """Puts new folders in the place of those that are done with."""
        for folder in sorted(os.listdir(self.reference.root)):
            self.kind.edit("trash", "/" + folder)
            shutil.rmtree(self.reference.at(folder))
        self.ledger.all_removed()
        self.author.due.clear()
        for number in range(self.FOLDERS):
            folder = f"round {self.rounds}, {number}"
            places = [folder, folder, self.stocks.choice([folder, f"{folder}/{FOLDER_NAMES[0]}"])]
            for place, name in zip(places, self.stocks.sample(self.author.names, len(places))):
                sizes = self.stocks.choice(SIZES)
                if self.large and self.stocks.random() < 0.1:
                    sizes = (SMALL_BASE + 1, SMALL_BASE + 1_500_000)
                self.supply(join(place, name), self.stocks.randint(*sizes))
            self.author.due += [(folder, program) for program in self.author.sequence()]
