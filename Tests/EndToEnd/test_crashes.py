"""kill -9, lost power, torn files, full and failing disks: finished or refused, never half."""

import errno
import os
import pathlib
import random
import shutil
import signal
import sqlite3
import threading

import pytest

from crash_kit import (
    Disk, Faults, Writer, check_service, flush_journal, overwritten, seeds, sha, wait_for_death)
from machine import alive, eventually, read

MIB = 1 << 20


# The process dies


# What a call in a mount that dies, or is dead, is told.
DEAD = (errno.ENOTCONN, errno.ECONNABORTED, errno.EIO)


def work(writer, process, enough, problems):
    """Works until the mount is gone; where it was there is nothing then."""
    try:
        while not enough.is_set():
            writer.step()
    except OSError as error:
        if error.errno not in DEAD and (error.errno != errno.ENOENT or alive(process)):
            problems.append(error)
    except Exception as error:
        problems.append(error)


def test_kills_under_load(machine, clouds, cloud, drive):
    seed = seeds(f"{cloud} 1")
    chance = random.Random(seed)
    writers = [Writer(drive / f"writer {number}", f"{seed} {number}") for number in range(3)]
    for writer in writers:
        writer.begin()
    for _ in range(3):
        enough = threading.Event()
        problems = []
        threads = [threading.Thread(target=work, args=(w, machine.process, enough, problems))
                   for w in writers]
        for thread in threads:
            thread.start()
        # A random moment is what is wanted, not a condition.
        enough.wait(chance.uniform(0.2, 1.2))
        machine.kill()
        enough.set()
        for thread in threads:
            thread.join(timeout=30)
            assert not thread.is_alive(), "a program hangs in a mount that was killed"
        assert not problems, problems
        machine.mount()
        for writer in writers:
            writer.check()
    machine.sync()
    check_service(clouds, cloud, writers, drive)
    assert sum(len(writer.files) for writer in writers) > 10, "hardly anything was written"


# Large uploads

# What a kill may cost: what was under way and not confirmed. Hashing takes its time in a debug build.
PARTS = {"dropbox": 32 * MIB, "drive": 16 * MIB, "onedrive": 10 * MIB}
SIZES = {"dropbox": 96 * MIB, "drive": 64 * MIB, "onedrive": 32 * MIB}


def large_upload(clouds, cloud, drive):
    """A file whose upload is under way, and a function that waits for so many bytes of it."""
    content = random.Random(5).randbytes(SIZES[cloud])
    clouds.weather(cloud, upload_bytes_per_second=24 * MIB)
    gate = clouds.gates[cloud]
    before = gate.received
    (drive / "large.bin").write_bytes(content)

    def received(count):
        eventually(lambda: gate.received - before >= count, f"{count} bytes arrived", timeout=90)

    return content, received, lambda: gate.received - before


def arrived(machine, clouds, cloud, content):
    clouds.weather(cloud)
    machine.sync()
    items = clouds.items(cloud)
    assert [(item["path"], item["hash"]) for item in items] == [("/large.bin", sha(content))]
    assert [len(item["hashes"]) for item in clouds.contents(cloud)] == [1]


def test_a_large_upload_goes_on_after_kills(machine, clouds, cloud, drive):
    content, received, count = large_upload(clouds, cloud, drive)
    size = len(content)
    for part in (0.4, 0.8):
        received(int(size * part))
        machine.kill()
        machine.mount()
    arrived(machine, clouds, cloud, content)
    assert count() <= size + 2 * PARTS[cloud] + MIB, f"{count() / MIB:.0f} MiB"


def test_a_large_upload_survives_network_and_session(machine, clouds, cloud, drive):
    content, received, count = large_upload(clouds, cloud, drive)
    size = len(content)
    received(size // 2)
    clouds.gates[cloud].shut()
    machine.oort("sync", "--timeout", "1s", status=1)
    clouds.gates[cloud].open()
    lost = count()
    received(lost + size // 8)
    assert lost <= size and count() <= size + PARTS[cloud] + MIB, "it goes on, not from the start"
    machine.kill()
    clouds.lose_sessions(cloud)
    machine.mount()
    arrived(machine, clouds, cloud, content)
    assert count() <= 2 * size + 2 * PARTS[cloud] + MIB, f"{count() / MIB:.0f} MiB"


# The process dies in the midst of a call that changes its files


@pytest.fixture
def faults(folder):
    return Faults(folder)


def crash_in(machine, faults, writer, number, action, chance):
    """Works, dies at the `number`-th call that changes something, and is mounted again.

    Returns whether it died: there may have been fewer calls.
    """
    process = machine.process
    faults.arm(number, action)
    try:
        writer.begin()
        for _ in range(6):
            writer.step()
        writer.end()
        machine.oort("sync", "--timeout", "20s", status=None)
    except OSError as error:
        is_gone = error.errno == errno.ENOENT and faults.count >= faults.first
        assert error.errno in DEAD or is_gone, error
    has_died = faults.count >= faults.first
    if has_died:
        wait_for_death(process)
        if chance.random() < 0.3:
            # The one that mends dies, too.
            faults.arm(chance.randint(1, 15), action)
            faults.mount(machine, status=None)
        faults.disarm()
        if not machine.is_mounted:
            faults.mount(machine)
        writer.check()
    faults.disarm()
    return has_died


def test_a_death_at_any_call(machine, clouds, cloud, faults):
    """OORT_CRASHES=all tries each call, OORT_CRASHES=N so many of them."""
    seed = seeds(f"{cloud} 2")
    chance = random.Random(seed)
    machine.login(cloud)
    faults.mount(machine)
    drive = machine.ready(cloud)
    first = Writer(drive / "call none", seed)
    before = faults.count
    assert not crash_in(machine, faults, first, 1 << 40, Faults.KILL_BEFORE, chance)
    span = faults.count - before
    assert span > 50
    wish = os.environ.get("OORT_CRASHES", "5")
    count = span if wish == "all" else int(wish)
    writers = [first]
    for index in range(count):
        number = 1 + (index * span + chance.randrange(span)) // count
        action = chance.choice([Faults.KILL_BEFORE, Faults.KILL_WITHIN, Faults.KILL_AFTER])
        print(f"dies at call {number} of {span}, in way {action}")
        writer = Writer(drive / f"call {number}", f"{seed} {number}")
        print("died:", crash_in(machine, faults, writer, number, action, chance), faults.count)
        writers.append(writer)
    machine.sync()
    check_service(clouds, cloud, writers, drive)
    machine.unmount()
    with sqlite3.connect(machine.state / "catalog.sqlite") as catalog:
        assert catalog.execute("PRAGMA integrity_check").fetchone() == ("ok",)


# Torn files


def staged_file(machine, content):
    """The file that holds what was written and not uploaded."""
    found = [path for path in (machine.state / "staged").rglob("*")
             if path.is_file() and path.read_bytes() == content]
    assert len(found) == 1, found
    return found[0]


def wait_for_hashes(machine):
    """The bytes are known by their hashes, so that a change of any of them is seen."""
    def are_known():
        with sqlite3.connect(f"file:{machine.state}/catalog.sqlite?mode=ro", uri=True) as catalog:
            return catalog.execute(
                "SELECT count(*) FROM content WHERE is_staged AND hash IS NULL").fetchone() == (0,)
    eventually(are_known, "the contents are hashed")


@pytest.mark.parametrize("cloud", ["drive"])
def test_torn_staged_files(machine, clouds, cloud, drive):
    clouds.gates[cloud].shut()
    names = ["whole", "short", "gone", "torn", "long"]
    contents = {name: os.urandom(100_000) for name in names}
    for name in names:
        (drive / name).write_bytes(contents[name])
    wait_for_hashes(machine)
    machine.kill()
    files = {name: staged_file(machine, contents[name]) for name in names}
    os.truncate(files["short"], 40_000)
    files["gone"].unlink()
    with open(files["torn"], "r+b") as file:
        file.seek(90_000)
        file.write(bytes(10_000))
    with open(files["long"], "ab") as file:
        file.write(bytes(5000))
    machine.mount()
    with pytest.raises(OSError) as refusal:
        (drive / "gone").read_bytes()
    assert refusal.value.errno == errno.EIO
    assert (drive / "short").read_bytes() == contents["short"][:40_000]
    assert [(drive / name).stat().st_size for name in ("gone", "short")] == [100_000, 40_000]
    contents["long"] += bytes(5000)
    for name in ("whole", "long"):
        assert (drive / name).read_bytes() == contents[name]
    clouds.gates[cloud].open()
    said = machine.oort("sync", "--timeout", "60s", status=1)
    for name in ("short", "gone", "torn"):
        assert name in said and "cannot be read from the local disk" in said
    assert "60000 of 100000 bytes were lost" in said
    status = machine.oort("status")
    assert "short" in status and "60000 of 100000 bytes were lost" in status
    there = {path: item["hash"] for path, item in clouds.tree(cloud).items()}
    assert there == {f"/{name}": sha(contents[name]) for name in ("whole", "long")}
    # Written anew it is as good as any; removed it is forgotten.
    for name in ("short", "torn"):
        shutil.copyfile(files["whole"] if files["whole"].exists() else drive / "whole",
                        drive / name)
    os.remove(drive / "gone")
    machine.sync()
    assert {path: item["hash"] for path, item in clouds.tree(cloud).items()} == {
        **there, "/short": sha(contents["whole"]), "/torn": sha(contents["whole"])}


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
        """What is torn is told, and stays here; all else is there."""
        pending = machine.account(cloud)["pending"]
        refused = {os.path.basename(change["path"]) for change in pending}
        assert self.torn <= refused, "what is torn is refused"
        for change in pending:
            assert "cannot be read from the local disk" in change["error"], change
        for item in clouds.items(cloud):
            if item["kind"] == "file":
                name = os.path.basename(item["path"])
                assert item["hash"] in {sha(content) for content in self.ever[name]}, item["path"]


def keep_state(source, target):
    """Copies the catalog and the staged contents."""
    target.mkdir(exist_ok=True)
    shutil.rmtree(target / "staged", ignore_errors=True)
    shutil.copytree(source / "staged", target / "staged")
    for name in ("catalog.sqlite", "catalog.sqlite-wal"):
        shutil.copyfile(source / name, target / name)


@pytest.mark.parametrize("cloud", ["drive"])
def test_a_log_that_is_cut_anywhere(machine, clouds, cloud, drive):
    """The machine dies, and of the catalog's log only a part reached the disk."""
    seed = seeds("3")
    chance = random.Random(seed)
    clouds.gates[cloud].shut()
    writer = Versions(drive / "folder", seed)
    writer.begin()
    log = machine.state / "catalog.sqlite-wal"
    start = log.stat().st_size
    durable = []
    for number in range(5):
        for _ in range(4):
            writer.step()
        writer.keep(f"kept {number}")
        durable.append((log.stat().st_size, dict(writer.durable)))
    writer.end()
    machine.kill()
    size = log.stat().st_size
    assert size >= durable[-1][0] > durable[0][0], "the log was begun anew: do less"
    saved = machine.folder / "saved"
    keep_state(machine.state, saved)
    for cut in sorted({chance.randrange(start, size) for _ in range(3)} | {durable[2][0]}):
        print(f"the log is cut after {cut} of {size} bytes")
        keep_state(saved, machine.state)
        os.truncate(log, cut)
        lose_run(machine)
        machine.mount()
        writer.durable = next((known for end, known in reversed(durable) if end <= cut), {})
        if (drive / "folder").exists():
            writer.check_versions()
        else:
            assert not writer.durable
        if cut == durable[2][0]:
            clouds.gates[cloud].open()
            machine.oort("sync", "--timeout", "60s", status=None)
            writer.check_service(machine, clouds, cloud)
            clouds.gates[cloud].shut()
        machine.kill()


def lose_run(machine):
    """The machine was started anew since."""
    (machine.state / "catalog.sqlite-shm").unlink(missing_ok=True)
    (machine.state / "staged" / "boot").unlink(missing_ok=True)


@pytest.fixture
def disk(folder, machine, request):
    """A small disk below the machine's state, its cache, or both."""
    where = getattr(request, "param", "both")
    disk = Disk(folder / "image", folder / "disk", 176 * MIB)
    for part in ("state", "cache") if where == "both" else (where,):
        (disk.at / part).mkdir()
        (machine.folder / part).symlink_to(disk.at / part)
    yield disk
    machine.keep_log()
    machine.clean()
    disk.clean()


@pytest.mark.parametrize("cloud", ["drive"])
def test_lost_power(machine, clouds, cloud, disk):
    seed = seeds("4")
    old, base = os.urandom(200_000), os.urandom(3 * MIB)
    clouds.edit(cloud, "write", "/edited.bin", text="x")
    machine.login(cloud)
    machine.mount()
    drive = machine.ready(cloud)
    (drive / "edited.bin").write_bytes(base)
    machine.sync()
    clouds.gates[cloud].shut()
    writer = Versions(drive / "folder", seed)
    writer.begin()
    for number in range(3):
        for _ in range(4):
            writer.step()
        writer.keep(f"kept {number}")
    # A file that was synchronised is replaced by another: one of the two is there.
    writer.keep("replaced")
    writer.keep("new")
    either = {writer.durable["replaced"], writer.durable.pop("new")}
    replaced = staged_file(machine, writer.durable.pop("replaced"))
    os.replace(writer.path("new"), writer.path("replaced"))
    # A part of a file of the service's is changed, synchronised, and another part not.
    with open(drive / "edited.bin", "r+b") as file:
        file.write(b"durable")
        file.flush()
        os.fsync(file.fileno())
        file.seek(2 * MIB)
        file.write(b"perhaps" * 20_000)
    for _ in range(10):
        writer.step()
    eventually(lambda: not replaced.exists(), "what was replaced is taken away")
    flush_journal(disk.at)
    process = machine.process
    disk.lose_power()
    os.kill(process, signal.SIGKILL)
    wait_for_death(process)
    machine.clean()
    disk.unmount()
    disk.mount()
    lose_run(machine)
    machine.mount()
    writer.ever["replaced"] = writer.ever["new"] = either
    writer.check_versions()
    with open(writer.path("replaced"), "rb") as file:
        assert file.read() in either
    clouds.gates[cloud].open()  # what was in the cache may be lost, too
    edited = (drive / "edited.bin").read_bytes()
    new = b"durable" + base[7:]
    assert edited[:2 * MIB] == new[:2 * MIB], "what was synchronised is there"
    for start in range(2 * MIB, 3 * MIB, 4096):
        block = slice(start, start + 4096)
        assert edited[block] in (base[block], overwritten(base, 2 * MIB, b"perhaps" * 20_000)[block])
    machine.oort("sync", "--timeout", "60s", status=None)
    writer.ever["edited.bin"] = {base, edited}
    writer.check_service(machine, clouds, cloud)


# Full and failing disks


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EROFS, errno.EIO])
@pytest.mark.parametrize("cloud", ["drive"])
def test_a_disk_that_fails_for_a_while(machine, clouds, cloud, faults, error):
    machine.login(cloud)
    faults.mount(machine)
    drive = machine.ready(cloud)
    for name in ("one", "two"):
        (drive / name).write_bytes(os.urandom(50_000))
    machine.sync()
    clouds.gates[cloud].shut()
    (drive / "one").write_bytes(b"changed")
    (drive / "staged").write_bytes(b"not uploaded yet")
    held = open(drive / "held", "wb", buffering=0)
    held.write(b"before")
    clouds.gates[cloud].open()
    faults.fail(error)
    allowed = {error, errno.EIO}
    for act in (lambda: (drive / "new").write_bytes(b"x"), lambda: (drive / "folder").mkdir(),
                lambda: os.rename(drive / "one", drive / "three"),
                lambda: os.remove(drive / "two"), lambda: os.truncate(drive / "staged", 3),
                lambda: held.write(b"after"), lambda: os.fsync(held.fileno())):
        with pytest.raises(OSError) as refusal:
            act()
        assert refusal.value.errno in allowed, refusal.value
    assert (drive / "one").read_bytes() == b"changed"
    assert (drive / "staged").read_bytes() == b"not uploaded yet"
    assert sorted(os.listdir(drive)) == ["held", "new", "one", "staged", "two"] or \
        sorted(os.listdir(drive)) == ["held", "one", "staged", "two"]
    machine.oort("sync", "--timeout", "1s", status=1)
    assert machine.account(cloud)["pending_count"] >= 2
    faults.disarm()
    held.write(b"after")
    held.close()
    (drive / "new").write_bytes(b"new")
    (drive / "folder").mkdir()
    machine.sync()
    there = {path: item.get("hash") for path, item in clouds.tree(cloud).items()}
    assert there == {
        "/one": sha(b"changed"), "/two": sha((drive / "two").read_bytes()), "/folder": None,
        "/staged": sha(b"not uploaded yet"), "/held": sha(b"beforeafter"), "/new": sha(b"new")}


def fill(disk, spare=0):
    """Somebody else takes all room of a disk but some."""
    with open(disk.at / "filler", "wb", buffering=0) as file:
        for size in (MIB, 1024):
            try:
                while disk.free() > spare + size:
                    file.write(bytes(size))
            except OSError as error:
                assert error.errno == errno.ENOSPC


@pytest.mark.parametrize("disk", ["state", "both"], indirect=True)
@pytest.mark.parametrize("cloud", ["drive"])
def test_a_full_disk_refuses_and_loses_nothing(machine, clouds, cloud, disk):
    """A write waits for uploads to make room, of which there are none; then none waits.

    64 MiB of the disk are kept for the catalog, until somebody else takes them, too.
    """
    machine.write_settings('room_patience = "2s"\n' + machine.settings())
    machine.login(cloud)
    machine.mount()
    drive = machine.ready(cloud)
    clouds.edit(cloud, "write", "/theirs.txt", text="theirs")
    clouds.gates[cloud].shut()
    first = os.urandom(100_000)
    (drive / "first.bin").write_bytes(first)
    with pytest.raises(OSError) as refusal:
        with open(drive / "huge.bin", "wb", buffering=0) as file:
            for _ in range(disk.free() // MIB):
                file.write(bytes(MIB))
    assert refusal.value.errno == errno.ENOSPC
    assert disk.free() > 32 * MIB, "there is room for the catalog"
    assert "no room on the local disk" in machine.oort("status")
    # Names need no room but the catalog's.
    (drive / "folder").mkdir()
    os.rename(drive / "first.bin", drive / "folder" / "second.bin")
    size = (drive / "huge.bin").stat().st_size
    assert 0 < size < 176 * MIB
    # What is taken away makes room.
    os.remove(drive / "huge.bin")
    eventually(lambda: disk.free() > size, "the room is given back")
    (drive / "large.bin").write_bytes(bytes(size - 8 * MIB))
    os.remove(drive / "large.bin")
    # Somebody else takes even the catalog's room.
    fill(disk)
    refused = 0
    for number in range(200):
        try:
            (drive / f"small {number}").write_bytes(first)
        except OSError as error:
            assert error.errno == errno.ENOSPC
            refused += 1
            if refused > 5:
                break
    assert refused > 5
    assert (drive / "folder" / "second.bin").read_bytes() == first
    machine.oort("status")
    machine.kill()
    assert "no room" in machine.oort("mount", machine.mount_point, status=None) or \
        machine.is_mounted
    (disk.at / "filler").unlink()
    if not machine.is_mounted:
        machine.mount()
    small = {path.name for path in drive.iterdir() if path.name.startswith("small ")}
    clouds.gates[cloud].open()
    machine.sync()
    there = clouds.tree(cloud)
    assert there["/folder/second.bin"]["hash"] == sha(first)
    for name in small:
        content = (drive / name).read_bytes()
        assert content == first[:len(content)] and there[f"/{name}"]["hash"] == sha(content)
    assert {path[1:] for path in there if "small" in path} == small
    eventually(lambda: read(drive / "theirs.txt") == "theirs", "what others do shows")


@pytest.mark.parametrize("disk", ["cache"], indirect=True)
@pytest.mark.parametrize("cloud", ["drive"])
def test_a_full_cache_gives_way(machine, clouds, cloud, disk):
    """What is read is more than the cache's disk holds."""
    machine.login(cloud)
    machine.mount()
    drive = machine.ready(cloud)
    contents = [random.Random(number).randbytes(40 * MIB) for number in range(3)]
    for number, content in enumerate(contents):
        (drive / f"{number}.bin").write_bytes(content)
    machine.sync()
    fill(disk, spare=60 * MIB)
    for _ in range(2):
        for number, content in enumerate(contents):
            assert (drive / f"{number}.bin").read_bytes() == content, number


@pytest.mark.parametrize("cloud", ["drive"])
def test_a_disk_that_turns_read_only(machine, clouds, cloud, disk):
    """The kernel lets no more be written, as after an error of the disk; then it is mended."""
    machine.login(cloud)
    machine.mount()
    drive = machine.ready(cloud)
    clouds.gates[cloud].shut()
    with open(drive / "kept.bin", "wb") as file:
        file.write(b"kept")
        file.flush()
        os.fsync(file.fileno())
    process = machine.process
    disk.make_read_only()
    with pytest.raises(OSError) as refusal:
        (drive / "new.bin").write_bytes(b"new")
    assert refusal.value.errno in (errno.EROFS, errno.EIO)
    with pytest.raises(OSError) as refusal:
        os.remove(drive / "kept.bin")
    assert refusal.value.errno in (errno.EROFS, errno.EIO)
    assert (drive / "kept.bin").read_bytes() == b"kept"
    assert "read-only" in machine.oort("status")
    machine.oort("unmount", status=None)
    wait_for_death(process)
    said = machine.oort("mount", machine.mount_point, status=1)
    assert "read-only" in said.lower() or "permission" in said.lower(), said
    disk.unmount()
    disk.mount()
    machine.mount()
    clouds.gates[cloud].open()
    machine.sync()
    assert clouds.content(cloud, "/kept.bin") == b"kept"
    assert sorted(clouds.tree(cloud)) == ["/kept.bin"]
