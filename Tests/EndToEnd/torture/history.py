"""Random histories: one machine beside a reference, or several machines and other people."""

import errno
import os
import random
import time

from machine import eventually
from torture import check
from torture.authors import CONFLICT, Author, Listing, join
from torture.check import Discrepancy
from torture.contents import FOLDER_NAMES, digest, file_names
from torture.figures import Figures
from torture.kinds import Misfit
from torture.ledger import Ledger, Witness
from torture.stations import NETWORK, Station
from torture.steps import Refused, Side, Step

# What looking may meet while another machine changes the tree, or no service answers.
EXCUSED = {
    errno.ENOENT, errno.ENOTDIR, errno.EIO, errno.ETIMEDOUT, errno.EHOSTUNREACH, errno.ESTALE}
# Calls that may have to ask the service for bytes.
READING = {"open", "read", "load", "list", "look", "readlink", "measure", "copy"}


class History:
    """One service, one seed, so many operations; `run` raises what is not as it must be."""

    def __init__(self, folder, kind, seed, operations, *, faults, kills, large=False):
        self.folder, self.seed = folder, seed
        self.operations, self.faults, self.kills, self.large = operations, faults, kills, large
        self.kind = kind(folder)
        self.ledger = Ledger(is_common=not kind.keeps_history)
        self.figures = Figures(histories=1)
        self.stations = []
        self.steps = 0
        self.record = open(folder / "history.log", "w")
        self.storms = self.kind.storms(self.chance("faults"))
        self.accidents = self.chance("accidents")

    def chance(self, purpose):
        """A source of chance that no other purpose disturbs."""
        return random.Random(f"{self.seed}/{purpose}")

    def station(self, name):
        station = Station(self.folder, self.kind, name, self.seed)
        self.stations.append(station)
        return station

    def note(self, words):
        self.storms.sign_of_life()
        self.record.write(f"{time.strftime('%H:%M:%S')} {self.steps:5} {words}\n")
        self.record.flush()

    def run(self):
        try:
            self.begin()
            self.kind.begin_counting()
            while self.steps < self.operations:
                self.accident()
                self.program()
            time.sleep(1 if self.faults else 0)
            self.storms.stop()
            self.note("quiet")
            self.finish()
            for station in self.stations:
                station.check_log()
        except BaseException as error:
            self.note(f"failed: {error}")
            raise
        finally:
            self.end()

    def accident(self):
        """Between two programs: new weather, a death to come, a remount, a rest."""
        chance = self.accidents.random()
        if self.faults and (chance < 0.1 or not self.figures.weathers):
            self.figures.weathers += 1
            self.note(f"weather: {self.storms.change()}")
        station = self.accidents.choice(self.stations)
        moment = self.accidents.uniform(0, 0.3)
        # Programs are quicker than uploads: now and then what they did comes to be sent.
        if chance > 0.75:
            time.sleep(moment)
        if self.kills and 0.1 < chance < 0.14 and station.killer is None:
            self.note(f"{station.name}: dies within {moment:.3f} s")
            station.kill_within(moment)
        elif 0.2 < chance < 0.21 and station.killer is None:
            without_cache = moment < 0.15
            self.note(f"{station.name}: unmounts{' and loses its cache' if without_cache else ''}")
            self.remount(station, without_cache)

    def end(self):
        for station in self.stations:
            self.figures.kills += station.kills
            self.figures.remounts += station.remounts
            self.figures.stranded += station.stranded
        self.figures.operations = self.steps
        self.figures.bytes_written = self.ledger.bytes
        if self.kind.is_running:
            self.figures.bytes_sent = self.kind.bytes_sent()
            self.figures.faults.update(self.storms.counts())
            self.storms.stop()
        for station in self.stations:
            station.leave()
        self.kind.stop()
        self.record.close()


class Alone(History):
    """One machine and no other client: the mount equals a folder on a disk at every moment."""

    # Calls that may have to ask the service for bytes.
    READING = READING

    def begin(self):
        self.one = self.station("one")
        (self.folder / "reference").mkdir()
        self.reference = Side(self.folder / "reference", self.seed)
        self.witness = Witness(self.ledger, "one", self.reference)
        self.author = Author(
            self.chance("programs"), lambda: Listing.of(self.reference.root), self.kind.refused,
            self.large)

    def program(self):
        for step in self.author.program():
            self.steps += 1
            self.note(step)
            if not self.perform(step):
                return
        if self.accidents.random() < 0.04:
            self.compare("the mount, while the history goes on")

    def perform(self, step):
        """Does a step on both sides; false when the mount died and the program with it."""
        result = self.patiently(lambda: self.one.side.perform(step), step.call in self.READING)
        is_short = step.call == "write" and isinstance(result, int) and result < step.arguments[3]
        if (isinstance(result, Refused) or is_short) and self.one.is_dead:
            self.recover(step)
            return False
        expected = self.on_reference(step)
        if result != expected:
            raise Discrepancy("unequal", f"{step}: {result} in place of {expected}")
        if self.one.is_dead:
            self.recover(None)
            return False
        return True

    def on_reference(self, step):
        self.witness.before(step)
        if step.call == "close":
            self.witness.closing(step.arguments[0])
        result = self.reference.perform(step)
        self.witness.after(step, result)
        return result

    def patiently(self, action, is_reading):
        """The result of an action, tried again while it needs a network that is not there."""
        for attempt in range(200):
            result = action()
            needs_network = isinstance(result, Refused) and result.error in NETWORK
            if not (is_reading and needs_network) or self.one.is_dead:
                break
            if attempt == 20:
                self.note("weather: ended for a read")
                self.storms.end()
            time.sleep(0.1)
        return result

    def recover(self, step):
        """After a death: what was done is there, and the step under way is done or not."""
        self.one.revive()
        self.note("one: is back")
        try:
            self.compare("the mount after kill -9")
        except Discrepancy as without:
            if step is None:
                raise
            self.resume(step, without)
        self.close_on_reference()

    def close_on_reference(self):
        """The mount's handles are gone; so are the reference's, and the programs that had them."""
        for number in list(self.reference.handles):
            self.on_reference(Step("close", (number,)))
        self.author.forget_handles()

    def resume(self, step, without):
        """Does on the reference what the mount did of a step before it died."""
        before = self.bytes_of_reference()
        self.on_reference(step)
        after = self.bytes_of_reference()
        if step.call in ("write", "copy"):
            # A long write is several requests; the first ones may have been answered.
            for path in before.keys() & after.keys():
                if before[path] != after[path]:
                    data = (self.one.root / path).read_bytes()
                    same = common(data, after[path])
                    if data[same:] == before[path][same:]:
                        (self.reference.root / path).write_bytes(data)
        try:
            self.compare("the mount after kill -9")
        except Discrepancy as with_step:
            raise Discrepancy(
                "unequal", f"neither with nor without {step}: {with_step}; {without}") from None

    def bytes_of_reference(self):
        return {
            path: (self.reference.root / path).read_bytes()
            for path in Listing.of(self.reference.root).files}

    def remount(self, station, without_cache):
        self.close_on_reference()
        station.remount(without_cache)

    def compare(self, words):
        wanted = check.listing(self.reference.root)
        for attempt in range(100):
            try:
                shown = check.listing(self.one.root)
                break
            except OSError as error:
                if self.one.is_dead:
                    return  # the next step finds it so
                if attempt == 20:
                    self.storms.end()
                if attempt == 99:
                    raise
                time.sleep(0.1)
        check.same_trees(shown, wanted, words)

    def finish(self):
        if self.one.spare():
            self.recover_quietly()
        wanted = self.agree()
        fresh = self.station("fresh")
        shown = check.listing(fresh.root)
        check.same_trees(
            shown, wanted, "a fresh mount", times=self.kind.tells_times,
            # Each save within a second takes the next one (docs/providers/sftp.md).
            late=10 if self.kind.tells_by_second else 0)

    def agree(self, look_first=True):
        """Lets the service have everything, and compares all three; what the reference has."""
        for number in list(self.one.side.handles):
            self.perform(Step("close", (number,)))
        self.author.forget_handles()
        if look_first:
            self.compare("the mount before the last sync")
        self.one.settle()
        if self.one.stranded:
            raise Discrepancy("lost", "nobody else is there, and a change could not be completed")
        self.compare("the mount at the end")
        wanted = check.listing(self.reference.root)
        items = check.service_listing(self.kind.items())
        check.names_once(self.kind)
        check.same_as_service(wanted, items, "the reference and the service")
        contents = self.kind.contents()
        check.nothing_lost(check.all_of(contents), self.ledger)
        check.nothing_doubled(contents, self.ledger, history=self.kind.tells_hashes)
        check.conflicts_told(wanted, self.one.conflicts, self.one.recorded)
        return wanted

    def recover_quietly(self):
        self.compare("the mount after kill -9")
        self.close_on_reference()


class Crowd(History):
    """Two machines on one account, and other people at the service itself."""

    # What two sides that do not know of each other yet may say of a path.
    USUAL = {
        "ENOENT", "EEXIST", "ENOTEMPTY", "ENOTDIR", "EISDIR", "EINVAL", "ELOOP", "EBADF",
        "ENAMETOOLONG"}

    def begin(self):
        self.crew = []
        for number, name in enumerate(["one", "two"]):
            station = self.station(name)
            author = Author(
                self.chance(f"programs of {name}"), lambda s=station: Listing.of(s.root),
                self.kind.refused, self.large, first=number * 10_000_000)
            self.crew.append((station, author, Witness(self.ledger, name, station.side)))
        self.others = self.chance("others")
        self.edits = 0
        # Names that were given in another way than by mkdir of a machine.
        self.renamed = set()

    def program(self):
        if self.others.random() < 0.15:
            return self.edit()
        station, author, witness = self.others.choice(self.crew)
        try:
            for step in author.program():
                self.steps += 1
                self.note(f"{station.name}: {step}")
                if not self.perform(station, witness, step):
                    author.forget_handles()
                    return
        except OSError as error:
            # While looking for what to do, or at what a step is about to change.
            self.excuse(station, author, Refused(os.strerror(error.errno)), error.errno)

    def perform(self, station, witness, step):
        """Does a step; false when the mount died."""
        if step.call == "close":
            try:
                witness.closing(step.arguments[0])
            except OSError as error:
                if station.is_dead:
                    raise
                # The service changed the file and can no longer give the rest of it.
                self.note(f"{station.name}: {error}")
        else:
            witness.before(step)
        if step.call == "rename":
            self.renamed |= {os.path.basename(path) for path in step.arguments[:2]}
        result = station.side.perform(step)
        if isinstance(result, Refused):
            if station.is_dead:
                self.revive(station)
                return False
            allowed = self.USUAL | (NETWORK | {"ESTALE"} if step.call in READING else set())
            if result.error not in allowed:
                raise Discrepancy("unequal", f"{station.name}: {step}: {result}")
        witness.after(step, result)
        if station.is_dead:
            self.revive(station)
            return False
        return True

    def excuse(self, station, author, refused, number):
        if station.is_dead:
            self.revive(station)
            author.forget_handles()
        elif number not in EXCUSED:
            raise Discrepancy("unequal", f"{station.name}: {refused}")

    def revive(self, station):
        station.revive()
        self.note(f"{station.name}: is back")
        # What was written through handles that no program closed.
        self.ledger.survived(self.digests(station))

    def remount(self, station, without_cache):
        self.let_go(station)
        station.remount(without_cache)

    def let_go(self, station):
        _, author, witness = next(c for c in self.crew if c[0] is station)
        for number in list(station.side.handles):
            self.perform(station, witness, Step("close", (number,)))
        author.forget_handles()

    def digests(self, station):
        """The contents that a machine shows, whatever moves while they are read."""
        found, paths = set(), None
        for attempt in range(100):
            try:
                shown = check.listing(station.root, without_stale=attempt > 20)
                found |= {entry[1] for entry in shown.values() if entry[0] == "file"}
                if shown.keys() == paths:
                    return found
                paths = shown.keys()
            except (OSError, Discrepancy) as error:
                if attempt == 20:
                    self.storms.end()
                if attempt == 99:
                    raise
                time.sleep(0.1)
        return found

    def edit(self):
        """Changes something at the service as another client."""
        items = [
            item for item in self.kind.items()
            if not CONFLICT.search(item["path"]) and not item["path"].endswith(".rclonelink")]
        folders = ["", *(i["path"].strip("/") for i in items if i["kind"] == "folder")]
        paths = [item["path"].strip("/") for item in items]
        chance = self.others.random()
        name = self.others.choice(file_names(self.kind.refused))
        folder = self.others.choice(folders)
        self.edits += 1
        if chance < 0.55 or not paths:
            files = [i["path"].strip("/") for i in items if i["kind"] == "file"]
            path = join(folder, name)
            if files and self.others.random() < 0.6:
                path = self.others.choice(files)
            text = f"<{self.seed}/others/{self.edits}> " + "words " * self.others.randint(0, 900)
            self.ledger.known.add(digest(text.encode()))
            if identity := self.attempt("write", path, text=text):
                self.ledger.closed("others", (identity, self.edits), text.encode(), path)
        elif chance < 0.65:
            self.attempt("mkdir", join(folder, self.others.choice(FOLDER_NAMES)))
        elif chance < 0.85:
            to = join(folder, f"moved {self.edits} {name}")
            self.attempt("move", self.others.choice(paths), to="/" + to)
        else:
            self.attempt("trash", self.others.choice(paths))

    def attempt(self, operation, path, **more):
        """The edit's item; nothing when the tree does not fit it any more."""
        self.figures.foreign_edits += 1
        self.note(f"others: {operation} {path!r} {more.get('to', '')}")
        self.renamed |= {os.path.basename(name) for name in (path, more.get("to", ""))}
        try:
            identity, ended = self.kind.edit(operation, "/" + path, **more)
        except Misfit:
            return None
        for content in ended:
            self.ledger.ended("others", None, content)
        return identity

    def finish(self):
        for station, author, _ in self.crew:
            if station.spare():
                self.ledger.survived(self.digests(station))
            self.let_go(station)
        self.agree()
        for station, _, _ in self.crew:
            for inode, original, size in station.given_up:
                self.ledger.given_up(station.name, inode, original, size)
        items = check.service_listing(self.kind.items())
        shown = [check.listing(station.root) for station, _, _ in self.crew]
        contents = self.kind.contents()
        # Where the last writer's content is there, another one has been: docs/reliability.md.
        kept = check.all_of(contents) if self.kind.has_conditions else self.kind.arrived()
        check.nothing_lost(kept, self.ledger)
        check.nothing_doubled(contents, self.ledger, history=False)
        if self.kind.name == "drive":
            check.folders_once(self.kind.items(), self.renamed)
        mixed = [p for p, e in shown[0].items() if e[0] == "file" and e[1] not in self.ledger.known]
        if mixed:
            raise Discrepancy("unequal", f"contents that nobody wrote: {mixed}")
        conflicts = [station.conflicts for station, _, _ in self.crew]
        for entries, own in zip(shown, conflicts):
            check.conflicts_told(
                entries, own, set().union(*conflicts, *(s.recorded for s, _, _ in self.crew)))
        self.figures.conflict_copies += sum(1 for p in shown[0] if CONFLICT.search(p))
        fresh = self.station("fresh")
        check.same_as_service(check.listing(fresh.root), items, "a fresh mount and the service")

    def agree(self):
        """Waits until every machine shows what the service holds, and nothing is pending."""
        last = []

        def is_agreed():
            try:
                for station, _, _ in self.crew:
                    station.settle()
                items = check.service_listing(self.kind.items())
                for station, _, _ in self.crew:
                    check.same_as_service(
                        check.listing(station.root), items, f"machine {station.name}")
                return all(s.account["pending_count"] == 0 for s, _, _ in self.crew)
            except (Discrepancy, OSError) as error:
                last[:] = [error]
                return False

        # What is stranded takes long to say so, and its end is news to the other machine.
        for station, _, _ in self.crew:
            station.settle()
        try:
            eventually(is_agreed, "both machines show the service's tree")
        except AssertionError as error:
            raise (last[0] if last else error)


def common(one, other):
    """How many bytes two texts have in common at their beginning."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    return low
