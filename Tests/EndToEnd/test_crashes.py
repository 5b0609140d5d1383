"""kill -9 at any moment, and torn files: what was done is there, or refused, never half."""

import contextlib
import errno
import os
import pathlib
import random
import shutil
import sqlite3
import threading

import pytest

from crash_kit import (
    Faults, Versions, Writer, check_service, lose_run, seeds, sha, staged_file, wait_for_death)
from machine import alive, eventually

MIB = 1 << 20


# The process dies


# The errors of a call in a mount that dies, or is dead.
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
        # A random moment is what is wanted, but not before there is anything.
        enough.wait(chance.uniform(0.2, 1.2))
        eventually(lambda: problems or sum(len(writer.files) for writer in writers) > 15,
                   "something was written")
        machine.kill()
        enough.set()
        for thread in threads:
            thread.join(timeout=120)
            assert not thread.is_alive(), "a program hangs in a mount that was killed"
        assert not problems, problems
        machine.mount()
        for writer in writers:
            writer.check()
    machine.sync()
    check_service(clouds, cloud, writers, drive)
    assert sum(len(writer.files) for writer in writers) > 10, "hardly anything was written"


def dying(call):
    """A call in a mount that may die meanwhile."""
    with contextlib.suppress(OSError):
        call()


def waits_in_the_kernel(process, thread):
    for task in pathlib.Path(f"/proc/{process}/task").iterdir():
        name, state = (task / "stat").read_text().split("(", 1)[1].rsplit(")", 1)
        if name == thread:
            return state.split()[0] == "D"
    return False


# The kernel's matter, and so the same with every service.
@pytest.mark.parametrize("cloud", ["dropbox"], indirect=True)
def test_a_kill_ends_reads_that_the_news_of_a_change_waits_for(machine, clouds, cloud, drive):
    first, second = "first " * 500_000, "second " * 500_000
    clouds.edit(cloud, "write", "/file.txt", text=first)
    path = drive / "file.txt"
    eventually(lambda: path.exists() and path.stat().st_size == len(first), "the file shows")
    clouds.weather(cloud, download_bytes_per_second=10_000)
    reader = threading.Thread(target=lambda: dying(path.read_bytes))
    reader.start()
    eventually(lambda: "files/download" in clouds.counts(cloud), "the read is under way")
    clouds.edit(cloud, "write", "/file.txt", text=second)
    # No signal ends that wait, and the read's answer would.
    eventually(lambda: waits_in_the_kernel(machine.process, "fuse-teller"), "the news wait")
    machine.kill()
    reader.join(timeout=120)
    assert not reader.is_alive(), "a program hangs in a mount that was killed"
    clouds.weather(cloud)
    machine.mount()
    eventually(lambda: path.exists() and path.read_text() == second, "the change shows")


# Large uploads

# What a kill may cost: what was under way and not confirmed. Hashing takes its time in a debug build.
PARTS = {"dropbox": 16 * MIB, "drive": 16 * MIB, "onedrive": 10 * MIB, "box": 16 * MIB}
SIZES = {"dropbox": 96 * MIB, "drive": 64 * MIB, "onedrive": 32 * MIB, "box": 64 * MIB}


def large_upload(clouds, cloud, drive):
    """A file whose upload is under way, and a function that waits for so many bytes of it."""
    content = random.Random(5).randbytes(SIZES[cloud])
    clouds.weather(cloud, upload_bytes_per_second=8 * MIB)
    gate = clouds.gates[cloud]
    before = gate.received
    (drive / "large.bin").write_bytes(content)

    def received(count):
        eventually(lambda: gate.received - before >= count, f"{count} bytes arrived", timeout=240)

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
    said = machine.oort("sync", "--timeout", "300s", status=1)
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
    log = machine.state / "catalog.sqlite-wal"

    def salts():
        """Other ones each time that the log is begun anew (sqlite.org/fileformat2.html)."""
        with open(log, "rb") as file:
            return file.read(24)[16:]

    # Once a minute it is written into the catalog and begun anew.
    for _ in range(5):
        writer = Versions(drive / "folder", seed)
        writer.begin()
        start, first = log.stat().st_size, salts()
        durable = []
        for number in range(5):
            for _ in range(4):
                writer.step()
            writer.keep(f"kept {number}")
            durable.append((log.stat().st_size, dict(writer.durable)))
        writer.end()
        if salts() == first:
            break
        shutil.rmtree(drive / "folder")
    machine.kill()
    size = log.stat().st_size
    assert salts() == first and size >= durable[-1][0] > durable[0][0], "the log was begun anew"
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
            machine.oort("sync", "--timeout", "300s", status=None)
            writer.check_service(machine, clouds, cloud)
            clouds.gates[cloud].shut()
        machine.kill()
