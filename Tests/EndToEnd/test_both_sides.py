"""Changes on the other side, no network, crashes, two machines."""

import errno
import os
import shutil
import subprocess
import time

import pytest

from desk import BACKGROUND
from machine import CLOUDS, Machine, eventually, read


def test_remote_changes_appear(machine, clouds, cloud, drive):
    clouds.edit(cloud, "write", "/folder/file.txt", text="first\n")
    path = drive / "folder" / "file.txt"
    eventually(lambda: read(path) == "first\n", "the new file shows")
    clouds.edit(cloud, "write", "/folder/file.txt", text="second, and longer\n")
    eventually(lambda: read(path) == "second, and longer\n", "the new revision shows")
    assert path.stat().st_size == len("second, and longer\n")
    clouds.edit(cloud, "move", "/folder/file.txt", to="/folder/renamed.txt")
    eventually(lambda: os.listdir(drive / "folder") == ["renamed.txt"], "the new name shows")
    clouds.edit(cloud, "trash", "/folder/renamed.txt")
    eventually(lambda: os.listdir(drive / "folder") == [], "the file is gone")
    clouds.edit(cloud, "trash", "/folder")
    eventually(lambda: not (drive / "folder").exists(), "the folder is gone")


def test_edits_on_both_sides_are_both_kept(machine, clouds, cloud, drive):
    clouds.edit(cloud, "write", "/both.txt", text="base\n")
    path = drive / "both.txt"
    eventually(lambda: read(path) == "base\n", "the file shows")
    clouds.gates[cloud].shut()
    path.write_text("mine\n")
    clouds.edit(cloud, "write", "/both.txt", text="theirs\n")
    clouds.gates[cloud].open()
    machine.sync()
    contents = lambda: sorted(read(p) or "" for p in drive.iterdir())
    eventually(lambda: contents() == ["mine\n", "theirs\n"], "both edits show")
    assert read(path) == "theirs\n"
    copy = next(p.name for p in drive.iterdir() if p != path)
    assert copy.startswith("both (conflicted copy ") and copy.endswith(").txt")
    assert sorted(item["size"] for item in clouds.tree(cloud).values()) == [5, 7]
    assert any(copy in shown for shown in machine.account(cloud)["conflicts"])


@pytest.mark.parametrize("cloud", [
    *CLOUDS, *(pytest.param(name, marks=pytest.mark.clouds(name)) for name in ("box", "nextcloud")),
])
def test_a_part_of_what_others_replaced_meanwhile_lies_over_theirs(machine, clouds, cloud, drive):
    """Nothing of the file was read here: the copy has what can be had, and not half a file for ever."""
    base, theirs = "base " * 2000, "news " * 2000 + "and more"
    clouds.edit(cloud, "write", "/f.txt", text=base)
    path = drive / "f.txt"
    eventually(path.exists, "the file shows")
    clouds.gates[cloud].shut()
    with open(path, "r+b", buffering=0) as file:
        file.seek(1000)
        file.write(b"MINE")
    clouds.edit(cloud, "write", "/f.txt", text=theirs)
    clouds.gates[cloud].open()
    machine.sync()
    (copy,) = [p for p in drive.iterdir() if p != path]
    # These two give a file's former bytes, too.
    below = base if cloud in ("dropbox", "box") else theirs
    wanted = {"f.txt": theirs, copy.name: below[:1000] + "MINE" + below[1004:len(base)]}
    assert {p.name: read(p) for p in drive.iterdir()} == wanted
    assert {name: clouds.content(cloud, f"/{name}").decode() for name in wanted} == wanted
    account = machine.account(cloud)
    assert account["pending_count"] == 0 and account["refused_count"] == 0, account


@pytest.mark.parametrize("cloud", [*CLOUDS, pytest.param("box", marks=pytest.mark.clouds("box"))])
def test_who_reads_on_is_not_cut_by_who_looks_beside(machine, clouds, cloud, drive, folder):
    """Linux has one size for a file; the copy is all of what was opened, or fails."""
    text = "".join(f"{number:07} " for number in range(750_000))
    clouds.edit(cloud, "write", "/long.txt", text=text)
    path, copy = drive / "long.txt", folder / "copy"
    eventually(path.exists, "the file shows")
    machine.oort("limit", "--down", "3M")
    with subprocess.Popen(["cp", path, copy], stderr=subprocess.PIPE, text=True) as reader:
        eventually(lambda: copy.exists() and copy.stat().st_size > 0, "the first bytes are here")
        clouds.edit(cloud, "write", "/long.txt", text="short now")
        while reader.poll() is None:
            path.stat()
            os.listdir(drive)
        said = reader.stderr.read()
    if reader.returncode == 0:
        assert copy.read_text() == text
    else:
        assert "Stale file handle" in said
        # These two give no former bytes.
        assert cloud in ("drive", "onedrive")
    eventually(lambda: read(path) == "short now", "the new content shows")
    assert path.stat().st_size == len("short now")


@pytest.mark.parametrize("cloud", [
    *CLOUDS, *(pytest.param(name, marks=pytest.mark.clouds(name)) for name in ("box", "nextcloud")),
])
def test_a_handle_gives_bytes_of_one_revision(machine, clouds, cloud, drive):
    old = "".join(f"{number:07} " for number in range(750_000))
    clouds.edit(cloud, "write", "/long.txt", text=old)
    path = drive / "long.txt"
    eventually(path.exists, "the file shows")
    with open(path, "rb", buffering=0) as file:
        def part(offset):
            return os.pread(file.fileno(), 4096, offset)
        assert part(0) == old[:4096].encode()
        # At once: what was asked a moment ago is no answer now.
        clouds.edit(cloud, "write", "/long.txt", text="new" * 2_000_000)
        try:
            for offset in (5_000_000, 2_000_000, 3_500_000):
                assert part(offset) == old[offset:offset + 4096].encode()
        except OSError as error:
            assert error.errno == errno.ESTALE


@pytest.mark.parametrize("cloud", [*CLOUDS, pytest.param("box", marks=pytest.mark.clouds("box"))])
@pytest.mark.parametrize("sizes", [(400_000, 700_000), (700_000, 400_000)])
def test_what_replaced_a_file_is_used_right_while_the_old_is_read(machine, clouds, cloud, drive, sizes):
    """By the size of the other, a program would write in the middle, or copy a part."""
    old, new = ("".join(f"{number:06}{word}" for number in range(size // 8))
                for size, word in zip(sizes, ("ab", "yz")))
    clouds.edit(cloud, "write", "/f.txt", text=old)
    path, copy = drive / "f.txt", drive / "copy.txt"
    eventually(path.exists, "the file shows")
    with open(path, "rb", buffering=0) as reader:
        def read_old():
            # All of it is here since the first read.
            assert os.pread(reader.fileno(), 4096, 100_000) == old[100_000:104_096].encode()
        read_old()
        clouds.edit(cloud, "write", "/f.txt", text=new)

        def shows():
            with open(path, "rb", buffering=0) as file:
                return os.fstat(file.fileno()).st_size == len(new)
        eventually(shows, "the new content shows")
        read_old()
        path.stat()
        machine.run("cp", path, copy)
        read_old()
        path.stat()
        with open(path, "r+b", buffering=0) as file:
            assert file.seek(0, os.SEEK_END) == len(new)
            file.write(b"and more")
    machine.sync()
    assert clouds.content(cloud, "/copy.txt") == new.encode()
    assert clouds.content(cloud, "/f.txt") == new.encode() + b"and more"


def test_an_edit_of_what_was_moved_since_it_was_opened_is_no_conflict(machine, clouds, cloud, drive):
    clouds.edit(cloud, "write", "/f.txt", text="base of which nobody has read a byte")
    path = drive / "f.txt"
    eventually(path.exists, "the file shows")
    with open(path, "r+b", buffering=0) as file:
        path.rename(drive / "g.txt")
        machine.sync()
        file.write(b"BASE")
    machine.sync()
    assert sorted(clouds.tree(cloud)) == ["/g.txt"]
    assert clouds.content(cloud, "/g.txt") == b"BASE of which nobody has read a byte"


def test_a_removed_folder_that_comes_back_can_be_used(machine, clouds, cloud, drive):
    folder = drive / "folder"
    folder.mkdir()
    (folder / "mine.txt").write_text("mine")
    machine.sync()
    # What is open below it keeps the kernel from forgetting the removed folder.
    with open(folder / "mine.txt") as held:
        clouds.gates[cloud].shut()
        clouds.edit(cloud, "write", "/folder/theirs.txt", text="theirs")
        (folder / "mine.txt").unlink()
        folder.rmdir()
        assert not folder.exists()
        clouds.gates[cloud].open()
        eventually(lambda: names(folder) == ["theirs.txt"], "it is back with what came into it")
        (folder / "new.txt").write_text("new")
        assert names(folder) == ["new.txt", "theirs.txt"]
        assert held.read() == "mine"
    machine.sync()
    assert sorted(clouds.tree(cloud)) == ["/folder", "/folder/new.txt", "/folder/theirs.txt"]


def test_a_folder_that_somebody_moves_can_be_used_by_who_stands_in_it(
        machine, clouds, cloud, drive):
    clouds.edit(cloud, "write", "/folder/file.txt", text="text")
    eventually(lambda: names(drive / "folder") == ["file.txt"], "the folder shows")
    standing = os.open(drive / "folder", os.O_RDONLY | os.O_DIRECTORY)
    try:
        clouds.edit(cloud, "move", "/folder", to="/moved")
        eventually(lambda: names(drive / "moved") == ["file.txt"], "it shows under its new name")
        assert not (drive / "folder").exists()
        assert os.listdir(standing) == ["file.txt"]
        with open("new.txt", "w", opener=lambda *a: os.open(*a, dir_fd=standing)) as file:
            file.write("new")
    finally:
        os.close(standing)
    machine.sync()
    assert clouds.content(cloud, "/moved/new.txt") == b"new"


def names(folder):
    """What a folder lists; None where it is not there."""
    try:
        return sorted(os.listdir(folder))
    except FileNotFoundError:
        return None


@pytest.mark.parametrize("cloud", ["dropbox"])
def test_what_is_made_in_a_folder_that_somebody_removed_stays(machine, clouds, cloud, drive):
    folder = drive / "folder"
    folder.mkdir()
    (folder / "old.txt").write_text("old")
    machine.sync()
    # A folder is made by its path: Dropbox makes the missing one above it, too, as another one.
    clouds.fault(cloud, route="files/list_folder/continue", fault="status", status=503, times=None)
    clouds.edit(cloud, "trash", "/folder")
    (folder / "new").mkdir()
    (folder / "new" / "deep.txt").write_text("deep")
    eventually(lambda: "/folder/new/deep.txt" in clouds.tree(cloud), "the new ones are there")
    made = (folder / "new" / "deep.txt").stat().st_ino
    # By the old folder's id nothing can be made any more.
    (folder / "mine.txt").write_text("mine")
    eventually(
        lambda: "looking again did not work" in machine.log(), "the old folder was asked for")
    assert names(folder) == ["mine.txt", "new", "old.txt"]
    assert names(folder / "new") == ["deep.txt"]
    clouds.no_faults(cloud)
    machine.sync()
    eventually(lambda: names(folder) == ["mine.txt", "new"], "the removed file is gone")
    assert (folder / "new" / "deep.txt").stat().st_ino == made
    assert sorted(clouds.tree(cloud)) == [
        "/folder", "/folder/mine.txt", "/folder/new", "/folder/new/deep.txt"]
    assert names(drive) == ["folder"]


def test_offline(machine, clouds, cloud, drive):
    clouds.edit(cloud, "write", "/read.txt", text="read before\n")
    clouds.edit(cloud, "write", "/unread.txt", text="never read\n")
    eventually(lambda: read(drive / "read.txt") == "read before\n", "the file shows")
    eventually((drive / "unread.txt").exists, "the other file shows")
    clouds.gates[cloud].shut()
    assert sorted(os.listdir(drive)) == ["read.txt", "unread.txt"]
    assert read(drive / "read.txt") == "read before\n"
    (drive / "new.txt").write_text("written offline\n")
    (drive / "folder").mkdir()
    os.rename(drive / "read.txt", drive / "folder" / "moved.txt")
    assert read(drive / "new.txt") == "written offline\n"
    assert "within 1s" in machine.oort("sync", "--timeout", "1s", status=1)
    assert machine.account(cloud)["pending_count"] > 0
    clouds.gates[cloud].open()
    machine.sync()
    assert clouds.content(cloud, "/new.txt") == b"written offline\n"
    assert clouds.content(cloud, "/folder/moved.txt") == b"read before\n"


def test_the_mount_comes_up_without_a_network(machine, clouds, cloud, drive):
    (drive / "kept.txt").write_text("kept\n")
    machine.sync()
    clouds.gates[cloud].shut()
    (drive / "later.txt").write_text("later\n")
    machine.unmount()
    machine.mount()
    assert sorted(os.listdir(drive)) == ["kept.txt", "later.txt"]
    assert read(drive / "later.txt") == "later\n"
    clouds.gates[cloud].open()
    machine.sync()
    assert clouds.content(cloud, "/later.txt") == b"later\n"


def test_nothing_is_lost_by_a_kill(machine, clouds, cloud, drive):
    big = os.urandom(3_000_000)
    (drive / "small.txt").write_text("small\n")
    (drive / "folder").mkdir()
    (drive / "folder" / "big.bin").write_bytes(big)
    machine.kill()
    machine.mount()
    assert (drive / "folder" / "big.bin").read_bytes() == big
    machine.sync()
    assert sorted(clouds.tree(cloud)) == ["/folder", "/folder/big.bin", "/small.txt"]
    assert clouds.content(cloud, "/folder/big.bin") == big


def test_faults_of_the_service_are_waited_out(machine, clouds, cloud, drive):
    for fault in ("status", "no_answer", "html", "done_but_no_answer"):
        clouds.fault(cloud, route="*", fault=fault, status=503, times=3)
        clouds.fault(cloud, route="*", fault="status", status=429, retry_after=1, times=1)
        (drive / f"{fault}.txt").write_text(fault)
        (drive / f"folder-{fault}").mkdir()
        machine.sync()
        clouds.no_faults(cloud)
    names = ("status", "no_answer", "html", "done_but_no_answer")
    wanted = sorted([f"/{n}.txt" for n in names] + [f"/folder-{n}" for n in names])
    assert sorted(clouds.tree(cloud)) == wanted


def test_two_machines(machine, clouds, cloud, drive, folder):
    other = Machine(folder, clouds, "two")
    try:
        other.login(cloud)
        other.mount()
        there = other.ready(cloud)
        (drive / "from-one.txt").write_text("one\n")
        (there / "from-two.txt").write_text("two\n")
        machine.sync()
        other.sync()
        eventually(lambda: read(drive / "from-two.txt") == "two\n", "one sees two's file")
        eventually(lambda: read(there / "from-one.txt") == "one\n", "two sees one's file")
    finally:
        other.clean()


@pytest.mark.sample
def test_the_sample_account_is_visible(machine, clouds, cloud, drive):
    names = os.listdir(drive)
    assert len(names) == len(set(names)) and names
    counted = sum(len(files) for _, _, files in os.walk(drive))
    remote = [item for item in clouds.tree(cloud).values() if item["kind"] != "folder"]
    assert counted >= len(remote)


@pytest.mark.sample
def test_a_find_costs_no_listings(machine, clouds, cloud, drive):
    # A mount asks these by itself, as often as a slow machine gives it time to.
    background = BACKGROUND[cloud] - {"files/list_folder", "files.list"}
    machine.sync()
    clouds.forget_calls(cloud)
    machine.run("find", drive)
    assert set(clouds.counts(cloud)) <= background, "a find over a known tree asks nothing"
    machine.unmount()
    machine.mount()
    # What the mount asks when it begins is no cost of the find's.
    clouds.await_quiet(cloud, but=background)
    clouds.forget_calls(cloud)
    machine.run("find", drive)
    assert set(clouds.counts(cloud)) <= background, "nor does one after a restart"


def test_idle_it_uses_no_cpu(machine, clouds, cloud, drive):
    machine.sync()
    fields = lambda: open(f"/proc/{machine.process}/stat").read().rsplit(")", 1)[1].split()

    def is_idle():
        before = sum(map(int, fields()[11:13]))
        polls = sum(clouds.counts(cloud).values())
        time.sleep(6)
        polls = sum(clouds.counts(cloud).values()) - polls
        used = sum(map(int, fields()[11:13])) - before
        print(f"{used} ticks of CPU for {polls} polls in 6 s")
        # A poll with its bookkeeping takes a few hundredths of a second in a debug build.
        return used <= 20 + 10 * polls

    # A fresh mount has work of its own, once.
    eventually(is_idle, "it comes to rest")


def test_extended_attributes_show_the_schema(machine, clouds, cloud, drive):
    identity = clouds.edit(cloud, "write", "/x.txt", text="x")
    path = drive / "x.txt"
    eventually(path.exists, "the file shows")
    names = os.listxattr(path)
    assert "user.oort.id" in names
    assert identity in os.getxattr(path, "user.oort.id").decode()
    os.setxattr(path, "user.mine", b"kept")
    machine.unmount()
    machine.mount()
    assert os.getxattr(path, "user.mine") == b"kept"


def test_a_revision_that_is_gone_is_asked_for(machine, clouds, cloud):
    machine.write_settings('poll_interval = "1h"\nsettle = "200ms"\n' + clouds.settings())
    clouds.edit(cloud, "write", "/file.txt", text="first")
    machine.login(cloud)
    machine.mount()
    path = machine.ready(cloud) / "file.txt"
    eventually(path.exists, "the file shows")
    clouds.edit(cloud, "write", "/file.txt", text="second, and longer")
    # Dropbox still gives the first. The others do not; but nothing of it was read yet.
    seen = path.read_text()
    assert seen == "second, and longer" or (cloud, seen) == ("dropbox", "first")
    assert seen == "first" or path.stat().st_size == len(seen)


@pytest.mark.parametrize("size", [50_000, 100_000, 200_000])
def test_an_open_file_keeps_its_revision(machine, clouds, cloud, drive, size):
    first, second = "first " * 16_667, "2nd\n" * (size // 4)
    clouds.edit(cloud, "write", "/file.txt", text=first)
    path = drive / "file.txt"
    eventually(lambda: read(path) == first, "the file shows")
    with open(path, "rb") as held:
        assert os.pread(held.fileno(), 10, 0) == first[:10].encode()
        clouds.edit(cloud, "write", "/file.txt", text=second)
        eventually(lambda: read(path) == second, "the new revision shows")
        # The kernel has one cache and one size for both.
        for _ in range(3):
            assert held.read().decode() == first
            held.seek(0)
            assert read(path) == second
            # Not before the reader of the older one rests: by another size Linux would cut what it gets.
            eventually(lambda: path.stat().st_size == len(second), "the new size shows")
    assert read(path) == second
    assert read(path) == second


def test_a_part_is_written_to_an_older_revision(machine, clouds, cloud, drive):
    first, second = b"first " * 20_000, b"2nd\n" * 5_000
    clouds.edit(cloud, "write", "/file.txt", text=first.decode())
    path = drive / "file.txt"
    eventually(lambda: read(path) == first.decode(), "the file shows")
    mine = first[:50_000] + b"mine" + first[50_004:]
    with open(path, "r+b", buffering=0) as held:
        assert held.read(10) == first[:10]
        clouds.edit(cloud, "write", "/file.txt", text=second.decode())
        eventually(lambda: read(path) == second.decode(), "the new revision shows")
        with open(path, "rb", buffering=0) as other:
            assert other.read() == second
            os.pwrite(held.fileno(), b"mine", 50_000)
            assert os.pread(held.fileno(), 1 << 20, 0) == mine
            assert os.pread(other.fileno(), 1 << 20, 0) == mine
    machine.sync()
    contents = lambda: sorted(p.read_bytes() for p in drive.iterdir())
    eventually(lambda: contents() == sorted([mine, second]), "both revisions show")
    assert path.read_bytes() == second
