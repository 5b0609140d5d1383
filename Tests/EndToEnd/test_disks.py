"""Disks that lose power, fail, are full or turn read-only: finished or refused, never half."""

import errno
import os
import random
import signal

import pytest

from crash_kit import (
    Disk, Versions, flush_journal, lose_run, overwritten, seeds, sha, staged_file, wait_for_death)
from machine import eventually, read

MIB = 1 << 20


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
    machine.oort("sync", "--timeout", "300s", status=None)
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
    """Another program takes all room of a disk but some."""
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
    # Another program takes even the catalog's room.
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
    small = {path.name: path.read_bytes() for path in drive.iterdir()
             if path.name.startswith("small ")}
    for name, content in small.items():
        assert content == first[:len(content)]
        # What was refused in part does not go out before it is written anew.
        if content != first:
            (drive / name).write_bytes(first)
    clouds.gates[cloud].open()
    machine.sync()
    there = clouds.tree(cloud)
    assert there["/folder/second.bin"]["hash"] == sha(first)
    assert {path: item["hash"] for path, item in there.items() if "small" in path} == {
        f"/{name}": sha(first) for name in small}
    eventually(lambda: read(drive / "theirs.txt") == "theirs", "what others do shows")


def test_a_file_larger_than_the_cache(machine, clouds):
    """`cache_size` limits what is cached, and never what a program writes."""
    machine.write_settings('cache_size = "8M"\n' + machine.settings())
    machine.login("drive")
    machine.mount()
    drive = machine.ready("drive")
    clouds.gates["drive"].shut()
    content = random.Random(8).randbytes(40 * MIB)
    (drive / "large.bin").write_bytes(content)
    assert "no room" not in machine.oort("status")
    clouds.gates["drive"].open()
    machine.sync()
    assert clouds.tree("drive")["/large.bin"]["hash"] == sha(content)
    assert (drive / "large.bin").read_bytes() == content
    eventually(lambda: machine.status()["mount"]["cached_bytes"] <= 8 * MIB, "the limit is kept")


def test_a_part_of_a_file_that_does_not_fit(machine, clouds, disk):
    """What goes up has all of its bytes: a disk without room for them is not filled with some."""
    machine.write_settings('room_patience = "1s"\n' + machine.settings())
    machine.login("drive")
    machine.mount()
    drive = machine.ready("drive")
    content = bytearray(random.Random(5).randbytes(60 * MIB))
    (drive / "large.bin").write_bytes(content)
    machine.sync()
    machine.oort("free", "--all")
    fill(disk, spare=90 * MIB)
    with open(drive / "large.bin", "r+b") as file:
        file.seek(30 * MIB)
        file.write(b"changed")
    content[30 * MIB:30 * MIB + 7] = b"changed"
    said = machine.oort("sync", "--timeout", "20s", status=1)
    assert "large.bin" in said and "no room for all of it" in said, said
    assert "no room for all of it" in machine.oort("status")
    # Everything else goes on.
    assert disk.free() > 64 * MIB
    (drive / "other.txt").write_text("other")
    os.remove(drive / "other.txt")
    (drive / "another.txt").write_text("another")
    eventually(lambda: "/another.txt" in clouds.tree("drive"), "another file goes out")
    (disk.at / "filler").unlink()
    machine.sync()
    assert clouds.tree("drive")["/large.bin"]["hash"] == sha(bytes(content))
    assert (drive / "large.bin").read_bytes() == content


def test_parts_of_several_files_that_fit_one_at_a_time(machine, clouds, disk):
    """The file that gets the room is sent and gives it back; none takes what another one needs."""
    machine.write_settings('room_patience = "1s"\n' + machine.settings())
    machine.login("drive")
    machine.mount()
    drive = machine.ready("drive")
    contents = [bytearray(random.Random(number).randbytes(24 * MIB)) for number in range(3)]
    for number, content in enumerate(contents):
        (drive / f"{number}.bin").write_bytes(content)
    machine.sync()
    machine.oort("free", "--all")
    # 16 MiB stay free; one needs its bytes twice.
    fill(disk, spare=76 * MIB)
    for number, content in enumerate(contents):
        with open(drive / f"{number}.bin", "r+b") as file:
            file.seek(12 * MIB)
            file.write(b"changed")
        content[12 * MIB:12 * MIB + 7] = b"changed"
    least = []

    def all_arrived():
        least.append(disk.free())
        there = clouds.tree("drive")
        return all(there[f"/{number}.bin"]["hash"] == sha(bytes(content))
                   for number, content in enumerate(contents))

    eventually(all_arrived, "all go out, one after the other")
    assert min(least) > 8 * MIB
    machine.sync()
    (disk.at / "filler").unlink()
    for number, content in enumerate(contents):
        assert (drive / f"{number}.bin").read_bytes() == content, number


def test_a_file_that_does_not_fit_is_not_read_to_the_last_byte_of_room(machine, clouds, disk):
    machine.login("drive")
    machine.mount()
    drive = machine.ready("drive")
    content = random.Random(6).randbytes(60 * MIB)
    (drive / "large.bin").write_bytes(content)
    (drive / "small.txt").write_text("small")
    machine.sync()
    machine.oort("free", "--all")
    fill(disk, spare=30 * MIB)
    with open(drive / "large.bin", "rb") as file, pytest.raises(OSError) as refusal:
        while file.read(MIB):
            pass
    assert refusal.value.errno == errno.ENOSPC
    assert disk.free() > MIB
    assert (drive / "small.txt").read_text() == "small"
    os.remove(drive / "small.txt")
    (disk.at / "filler").unlink()
    machine.sync()
    assert set(clouds.tree("drive")) == {"/large.bin"}
    assert (drive / "large.bin").read_bytes() == content


@pytest.mark.parametrize("disk", ["state"], indirect=True)
def test_what_was_written_in_part_does_not_go_out(machine, clouds, disk):
    machine.write_settings('room_patience = "1s"\n' + machine.settings())
    machine.login("drive")
    machine.mount()
    drive = machine.ready("drive")
    (drive / "other.txt").write_text("other")
    with pytest.raises(OSError) as refusal:
        with open(drive / "huge.bin", "wb", buffering=0) as file:
            for _ in range(disk.free() // MIB):
                file.write(bytes(MIB))
    assert refusal.value.errno == errno.ENOSPC
    said = machine.oort("sync", "--timeout", "300s", status=1)
    assert "huge.bin" in said and "could not write all of it" in said
    assert set(clouds.tree("drive")) == {"/other.txt"}
    machine.unmount()
    machine.mount()
    machine.ready("drive")
    assert "could not write all of it" in machine.oort("sync", "--timeout", "300s", status=1)
    (drive / "huge.bin").write_text("small by now")
    machine.sync()
    assert clouds.content("drive", "/huge.bin") == b"small by now"


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


@pytest.mark.parametrize("disk", ["cache"], indirect=True)
def test_a_cache_on_a_disk_that_is_full_of_other_things(machine, clouds, disk):
    machine.login("drive")
    machine.mount()
    drive = machine.ready("drive")
    content = random.Random(9).randbytes(8 * MIB)
    (drive / "film.bin").write_bytes(content)
    machine.sync()
    machine.oort("free", "--all")
    fill(disk, spare=MIB)
    with pytest.raises(OSError) as refusal:
        (drive / "film.bin").read_bytes()
    assert refusal.value.errno == errno.ENOSPC
    assert "no room on the disk of the cache" in machine.oort("status", status=4)
    (disk.at / "filler").unlink()
    assert (drive / "film.bin").read_bytes() == content
    assert "no room" not in machine.oort("status")


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
