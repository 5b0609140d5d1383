"""Work of which it is known at any moment what must be there after a crash, and crashes."""

import contextlib
import errno
import fcntl
import hashlib
import mmap
import os
import pathlib
import random
import shutil
import struct
import subprocess

import pytest

from machine import alive, eventually


def seeds(default):
    """The seed of a run: `OORT_SEED` repeats one; it is printed with a failure."""
    seed = os.environ.get("OORT_SEED", default)
    print(f"OORT_SEED={seed}")
    return seed


class Writer:
    """Random work in one folder.

    `files` is what was acknowledged, by name; `under_way` what the call that did not return may
    have made of it.
    """

    def __init__(self, folder, seed, largest=60_000):
        self.folder = folder
        self.random = random.Random(seed)
        self.largest = largest
        self.files = {}
        self.under_way = {}
        self.part = None
        self.descriptors = {}
        self.touched_again = set()
        self.number = 0

    def begin(self):
        os.makedirs(self.folder, exist_ok=True)

    # Calls

    def call(self, outcome, function, *arguments):
        """A system call that makes `outcome` of some names (None: not there)."""
        self.under_way = outcome
        result = function(*arguments)
        for name, content in outcome.items():
            if content is None:
                self.files.pop(name, None)
            else:
                self.files[name] = content
        self.under_way, self.part = {}, None
        return result

    def path(self, name):
        return os.path.join(self.folder, name)

    def open(self, name, flags):
        outcome = {}
        if flags & os.O_TRUNC or name not in self.files:
            outcome = {name: b""}
        self.descriptors[name] = self.call(outcome, os.open, self.path(name), flags, 0o644)

    def write(self, name, offset):
        data = self.random.randbytes(self.random.randint(1, self.largest))
        while data:
            old = self.files[name]
            self.part = (name, offset, data)
            self.under_way = {name: overwritten(old, offset, data)}
            done = os.pwrite(self.descriptors[name], data, offset)
            self.files[name] = overwritten(old, offset, data[:done])
            self.under_way, self.part = {}, None
            # Less is written when the mount dies between two of the kernel's requests.
            data, offset = data[done:], offset + done

    def append(self, name):
        self.write(name, len(self.files[name]))

    def sync(self, name):
        self.call({}, os.fsync, self.descriptors[name])

    def close(self, name):
        self.call({}, os.close, self.descriptors.pop(name))

    # What a program does

    def step(self):
        closed = sorted(set(self.files) - set(self.descriptors))
        if self.descriptors and self.random.random() < 0.3:
            name = self.random.choice(sorted(self.descriptors))
            self.append(name)
            self.random.choice([self.sync, self.close])(name)
            return
        choices = [self.make] * 5
        if closed:
            choices += [self.change, self.empty, self.replace, self.rename, self.remove]
        act = self.random.choice(choices)
        act(*([] if act == self.make else [self.random.choice(closed)]))

    def make(self, name=None):
        self.number += 1
        name = name or f"file {self.number}"
        self.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        for _ in range(self.random.randint(0, 3)):
            self.append(name)
        if self.random.random() < 0.2:
            self.sync(name)
        if self.random.random() < 0.8 or len(self.descriptors) > 3:
            self.close(name)

    def change(self, name):
        self.touched_again.add(name)
        self.open(name, os.O_RDWR)
        self.write(name, self.random.randint(0, len(self.files[name])))
        self.close(name)

    def empty(self, name):
        self.touched_again.add(name)
        self.open(name, os.O_RDWR | os.O_TRUNC)
        self.append(name)
        self.close(name)

    def replace(self, name):
        self.touched_again.add(name)
        temporary = name + "~"
        # One that a crash left is taken anew.
        self.open(temporary, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        self.append(temporary)
        self.close(temporary)
        self.call({name: self.files[temporary], temporary: None}, os.replace,
                  self.path(temporary), self.path(name))

    def rename(self, name):
        self.number += 1
        new = f"moved {self.number}"
        self.touched_again.add(new)
        self.call({name: None, new: self.files[name]}, os.rename, self.path(name), self.path(new))

    def remove(self, name):
        self.call({name: None}, os.unlink, self.path(name))

    def end(self):
        for name in sorted(self.descriptors):
            self.close(name)

    # After a crash

    def forget_descriptors(self):
        for descriptor in self.descriptors.values():
            with contextlib.suppress(OSError):
                os.close(descriptor)
        self.descriptors = {}

    def check(self):
        """All that was acknowledged is there; a call that was under way is done or not."""
        self.forget_descriptors()
        there = read_all(self.folder)
        expected = {**self.files, **self.under_way}
        expected = {name: content for name, content in expected.items() if content is not None}
        if there != expected and there != self.files:
            self.check_part(there)
        # A file that a call under way touched was not written only once.
        self.touched_again.update(self.under_way)
        self.files, self.under_way, self.part = there, {}, None

    def check_part(self, there):
        """A write that did not return may have written a part."""
        if self.part:
            name, offset, data = self.part
            found = there.get(name, b"")
            count = len(os.path.commonprefix([found[offset:], data]))
            part = {**self.files, name: overwritten(self.files[name], offset, data[:count])}
            if there == part:
                return
        raise AssertionError(
            f"{self.folder}: after a crash there is\n{digest(there)}\nand not\n"
            f"{digest(self.files)}\nnor, changed by the call under way,\n{digest(self.under_way)}")


class Versions(Writer):
    """A writer that knows every content that a name ever had, and what was synchronised."""

    def __init__(self, folder, seed, largest=60_000):
        super().__init__(folder, seed, largest)
        self.ever = {}
        self.durable = {}

    def note(self):
        for name, content in self.files.items():
            self.ever.setdefault(name, set()).add(content)

    def write(self, name, offset):
        super().write(name, offset)
        self.note()

    def call(self, outcome, function, *arguments):
        result = super().call(outcome, function, *arguments)
        self.note()
        for name in outcome:
            # Changed since: this or that may be there.
            self.durable.pop(name, None)
        return result

    def keep(self, name):
        """Writes a file that is never touched again, synchronised before it is closed."""
        self.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        for _ in range(3):
            self.append(name)
        self.sync(name)
        kept = self.files.pop(name)
        os.close(self.descriptors.pop(name))
        self.durable[name] = kept

    def check_versions(self):
        """Nothing is there that never was; what cannot be read is refused, not made up."""
        self.forget_descriptors()
        self.torn = set()
        for entry in os.scandir(self.folder):
            try:
                content = pathlib.Path(entry.path).read_bytes()
            except OSError as error:
                assert error.errno == errno.EIO
                content = None
            if content not in self.ever[entry.name]:
                self.torn.add(entry.name)
        for name, content in self.durable.items():
            with open(self.path(name), "rb") as file:
                assert file.read() == content, f"{name} was synchronised"

    def check_service(self, machine, clouds, cloud):
        """Torn files are reported, and stay here; the service has all others."""
        pending = machine.account(cloud)["pending"]
        refused = {os.path.basename(change["path"]) for change in pending}
        assert self.torn <= refused, "what is torn is refused"
        for change in pending:
            assert "cannot be read from the local disk" in change["error"], change
        for item in clouds.items(cloud):
            if item["kind"] == "file":
                name = os.path.basename(item["path"])
                assert item["hash"] in {sha(content) for content in self.ever[name]}, item["path"]


def overwritten(old, offset, data):
    if not data:
        return old
    return old[:offset] + bytes(max(0, offset - len(old))) + data + old[offset + len(data):]


def read_all(folder):
    if not os.path.isdir(folder):
        return {}
    return {entry.name: pathlib.Path(entry.path).read_bytes() for entry in os.scandir(folder)}


def digest(files):
    return {name: content if content is None else f"{len(content)}:{sha(content)[:8]}"
            for name, content in sorted(files.items())}


def sha(content):
    return hashlib.sha256(content).hexdigest()


def check_service(clouds, cloud, writers, top):
    """The service has exactly what the writers know to be there, each item once."""
    writers = [writer for writer in writers if os.path.isdir(writer.folder)]
    wanted = {f"/{os.path.basename(writer.folder)}": None for writer in writers}
    for writer in writers:
        for name, content in writer.files.items():
            wanted[f"/{os.path.basename(writer.folder)}/{name}"] = sha(content)
    items = clouds.items(cloud)
    there = [(item["path"], item.get("hash")) for item in items]
    assert sorted(there, key=str) == sorted(wanted.items(), key=str)
    came = {item["path"]: len(item["hashes"]) for item in clouds.contents(cloud)
            if not item["trashed"]}
    for writer in writers:
        for name in writer.files:
            path = f"/{os.path.basename(writer.folder)}/{name}"
            if name not in writer.touched_again and "~" not in name:
                assert came[path] == 1, f"{path} came {came[path]} times"
    assert sorted(os.listdir(top)) == sorted(path[1:] for path in wanted if path.count("/") == 1)


class Faults:
    """What is preloaded into a mount: faults.c, and the numbers that it shares with the test."""

    KILL_BEFORE, KILL_WITHIN, KILL_AFTER, FAIL = 1, 2, 3, 4

    def __init__(self, folder):
        compiler = shutil.which("gcc") or shutil.which("clang") or shutil.which("cc")
        assert compiler, "a C compiler is needed for what is preloaded into the mount"
        self.library = folder / "faults.so"
        subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", self.library,
                        pathlib.Path(__file__).with_name("faults.c"), "-ldl"], check=True)
        self.path = folder / "faults"
        self.path.write_bytes(bytes(40))
        with open(self.path, "r+b") as file:
            self.memory = mmap.mmap(file.fileno(), 40)

    @property
    def count(self):
        return struct.unpack_from("<Q", self.memory)[0]

    def arm(self, after, action, error=0, times=1):
        """The call after so many more is the first of `times` that are hit."""
        self.first = first = self.count + after
        # The first call to be hit comes last: until then nothing is.
        struct.pack_into("<QQQ", self.memory, 16, first + times - 1, action, error)
        struct.pack_into("<Q", self.memory, 8, first)

    def fail(self, error):
        """From now on every call that changes something fails."""
        self.arm(1, self.FAIL, error, times=1 << 40)

    def disarm(self):
        struct.pack_into("<Q", self.memory, 8, 0)

    def mount(self, machine, status=0):
        machine.environment.update(LD_PRELOAD=str(self.library), OORT_TEST_FAULTS=str(self.path))
        try:
            return machine.oort("mount", str(machine.mount_point), "--verbose", status=status)
        finally:
            del machine.environment["LD_PRELOAD"], machine.environment["OORT_TEST_FAULTS"]


class Disk:
    """A small ext4 of its own, for a machine's state or cache."""

    # _IOR('X', 125, __u32) and EXT4_GOING_FLAGS_NOLOGFLUSH of Linux's fs/ext4/ext4.h.
    SHUTDOWN, WITHOUT_FLUSH = 0x8004587D, 2

    def __init__(self, image, at, size):
        if os.geteuid() != 0:
            pytest.skip("only root can mount a small disk")
        self.image, self.at = image, at
        with open(image, "wb") as file:
            file.truncate(size)
        # Blocks of a page, as on disks that people have: smaller ones are chosen for small disks, and
        # of a page that a program wrote at once the disk could then keep a part.
        subprocess.run(["mkfs.ext4", "-q", "-m", "0", "-b", "4096", image], check=True)
        at.mkdir(parents=True, exist_ok=True)
        if (result := self.mount(check=False)).returncode != 0:
            pytest.skip(f"no loop device can be mounted here: {result.stderr.strip()}")

    def mount(self, check=True):
        return subprocess.run(["mount", "-o", "loop", self.image, self.at], check=check,
                              stderr=subprocess.PIPE, text=True)

    def unmount(self):
        subprocess.run(["umount", self.at], check=True)
        # A sandbox that another program began meanwhile, a thumbnailer's say, keeps a disk mounted
        # for itself as long as it runs: what is mounted in that time is the disk without power.
        eventually(lambda: not self.loop_devices(), "nobody has the disk mounted")

    def loop_devices(self):
        return subprocess.run(["losetup", "--noheadings", "--associated", self.image], check=True,
                              stdout=subprocess.PIPE, text=True).stdout.split()

    def lose_power(self):
        """What is not on the disk now never will be."""
        folder = os.open(self.at, os.O_RDONLY)
        try:
            fcntl.ioctl(folder, self.SHUTDOWN, struct.pack("I", self.WITHOUT_FLUSH))
        finally:
            os.close(folder)

    def make_read_only(self):
        """As ext4 does by itself after an error of the disk's."""
        subprocess.run(["mount", "-o", "remount,abort", self.at], check=True)

    def free(self):
        room = os.statvfs(self.at)
        return room.f_bavail * room.f_frsize

    def clean(self):
        subprocess.run(["umount", "-l", self.at], stderr=subprocess.DEVNULL)


def staged_file(machine, content):
    """The file that holds what was written and not uploaded."""
    found = [path for path in (machine.state / "staged").rglob("*")
             if path.is_file() and path.read_bytes() == content]
    assert len(found) == 1, found
    return found[0]


def wait_for_death(process):
    eventually(lambda: not alive(process), "the mount died")


def lose_run(machine):
    """The machine was started anew since."""
    (machine.state / "catalog.sqlite-shm").unlink(missing_ok=True)
    (machine.state / "staged" / "boot").unlink(missing_ok=True)


def flush_journal(folder):
    """Brings the names of a disk to it, and not the bytes that others wrote."""
    with open(folder / "another file", "wb") as file:
        file.write(b"x")
        file.flush()
        os.fsync(file.fileno())


