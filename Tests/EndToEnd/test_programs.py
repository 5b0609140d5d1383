"""Ordinary programs on the mount of each cloud; afterwards the cloud has what the disk has."""

import ctypes
import hashlib
import os
import pathlib
import shutil
import subprocess
import unicodedata

import pytest

from machine import CLOUDS, Machine, eventually


def files_of_package(package, into):
    """The files of an installed Debian package as a tree of their own."""
    listing = subprocess.run(["dpkg", "-L", package], capture_output=True, text=True, check=True)
    for name in listing.stdout.splitlines():
        path = pathlib.Path(name)
        target = into / name.lstrip("/")
        if path.is_symlink() and path.is_dir():
            continue  # /lib and the like, through which other names of the listing lead
        if any(above.is_symlink() for above in path.parents):
            continue
        if path.is_symlink():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.symlink_to(os.readlink(path))
        elif path.is_dir():
            target.mkdir(parents=True, exist_ok=True)
        elif path.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, target)
    return into


def small_tree(folder):
    """A tree with what programs stumble over."""
    (folder / "a" / "b").mkdir(parents=True)
    (folder / "empty folder").mkdir()
    (folder / "empty").write_bytes(b"")
    (folder / "a" / "one.txt").write_text("one\n")
    (folder / "a" / "b" / "Grüße 文字 🌍").write_text("names\n")
    (folder / "a" / ".hidden").write_text("dot\n")
    (folder / "a" / "big").write_bytes(os.urandom(2_500_000))
    (folder / "a" / "link").symlink_to("one.txt")
    return folder


def same_at_the_cloud(clouds, cloud, local, remote):
    """The cloud's tree below `remote` has exactly the local one's files, with their hashes."""
    wanted = {}
    for path in local.rglob("*"):
        name = f"{remote}/{path.relative_to(local)}"
        if path.is_symlink():
            content = os.readlink(path).encode()
            wanted[name + ".rclonelink"] = hashlib.sha256(content).hexdigest()
        elif path.is_dir():
            wanted[name] = "folder"
        else:
            wanted[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    found = {
        path: "folder" if item["kind"] == "folder" else item["hash"]
        for path, item in clouds.tree(cloud).items() if path.startswith(remote + "/")}
    assert found == wanted


def test_a_tree_goes_up_and_comes_back(machine, clouds, cloud, drive, folder):
    local = files_of_package("rsync", small_tree(folder / "tree"))
    machine.run("cp", "-r", local, drive / "tree")
    machine.run("diff", "-r", "--no-dereference", local, drive / "tree")
    machine.sync()
    same_at_the_cloud(clouds, cloud, local, "/tree")

    machine.unmount()
    shutil.rmtree(machine.cache)
    machine.mount()
    machine.run("diff", "-r", "--no-dereference", local, drive / "tree")

    other = Machine(folder, clouds, "two")
    try:
        other.login(cloud)
        other.mount()
        other.run("diff", "-r", "--no-dereference", local, other.ready(cloud) / "tree")
    finally:
        other.clean()


def test_move_copy_and_remove(machine, clouds, cloud, drive, folder):
    local = small_tree(folder / "tree")
    machine.run("cp", "-r", local, drive / "tree")
    machine.sync()
    clouds.forget_calls(cloud)
    machine.run("mv", drive / "tree", drive / "moved")
    machine.sync()
    same_at_the_cloud(clouds, cloud, local, "/moved")
    machine.run("cp", "-r", drive / "moved", drive / "copy")
    machine.run("diff", "-r", "--no-dereference", local, drive / "copy")
    machine.sync()
    same_at_the_cloud(clouds, cloud, local, "/copy")
    machine.run("rm", "-r", drive / "moved", drive / "copy")
    assert not (drive / "moved").exists()
    machine.sync()
    assert [path for path in clouds.tree(cloud) if path.startswith(("/moved", "/copy"))] == []


def test_tar(machine, clouds, cloud, drive, folder):
    local = small_tree(folder / "tree")
    machine.run("tar", "-C", local, "-cf", folder / "t.tar", ".")
    (drive / "out").mkdir()
    machine.run("tar", "-C", drive / "out", "-xf", folder / "t.tar")
    machine.run("diff", "-r", "--no-dereference", local, drive / "out")
    machine.run("tar", "-C", drive / "out", "-cf", folder / "back.tar", ".")
    (folder / "back").mkdir()
    machine.run("tar", "-C", folder / "back", "-xf", folder / "back.tar")
    machine.run("diff", "-r", "--no-dereference", local, folder / "back")
    machine.sync()
    same_at_the_cloud(clouds, cloud, local, "/out")


def test_rsync_sends_nothing_the_second_time(machine, clouds, cloud, drive, folder):
    local = small_tree(folder / "tree")
    arguments = ["rsync", "-a", "--itemize-changes", f"{local}/", f"{drive}/tree/"]
    machine.run(*arguments)
    machine.sync()
    assert machine.run(*arguments).stdout == ""
    machine.unmount()
    machine.mount()
    assert machine.run(*arguments).stdout == ""
    same_at_the_cloud(clouds, cloud, local, "/tree")


def commit_to_a_clone(machine, folder, drive):
    """A repository in the mount with a commit that it was cloned with, and one that was made there."""
    origin = folder / "origin"
    origin.mkdir()
    machine.run("git", "init", "-q", "-b", "main", origin)
    (origin / "file").write_text("first\n")
    machine.run("git", "-C", origin, "add", ".")
    machine.run("git", "-C", origin, "commit", "-q", "-m", "first")
    work = drive / "work"
    machine.run("git", "clone", "-q", origin, work)
    (work / "second").write_text("second\n")
    machine.run("git", "-C", work, "add", ".")
    machine.run("git", "-C", work, "commit", "-q", "-m", "second")
    return work


def test_git(machine, clouds, cloud, drive, folder):
    work = commit_to_a_clone(machine, folder, drive)
    machine.sync()
    same_at_the_cloud(clouds, cloud, work, "/work")
    machine.unmount()
    shutil.rmtree(machine.cache)
    machine.mount()
    machine.run("git", "-C", work, "fsck", "--strict")
    assert machine.run("git", "-C", work, "status", "--porcelain").stdout == ""
    assert machine.run("git", "-C", work, "log", "--format=%s").stdout == "second\nfirst\n"
    machine.run("git", "clone", "-q", work, folder / "again")
    assert (folder / "again" / "second").read_text() == "second\n"


def test_sqlite(machine, clouds, cloud, drive):
    database = drive / "data.sqlite"
    machine.run(
        "sqlite3", database,
        "create table t(n integer); with recursive c(n) as (select 1 union all select n+1 from c "
        "where n < 5000) insert into t select n from c; delete from t where n % 7 = 0;")
    machine.sync()
    machine.unmount()
    shutil.rmtree(machine.cache)
    machine.mount()
    result = machine.run("sqlite3", database, "pragma integrity_check; select count(*) from t;")
    assert result.stdout == "ok\n4286\n"
    assert clouds.content(cloud, "/data.sqlite") == database.read_bytes()
    assert [p for p in clouds.tree(cloud) if "data.sqlite" in p] == ["/data.sqlite"]


def test_parts_of_a_file_are_rewritten(machine, clouds, cloud, drive, folder):
    clouds.edit(cloud, "write", "/big.bin", seed=7, size=5_000_000)
    big = drive / "big.bin"
    eventually(big.exists, "the file is there")
    local = folder / "big.bin"
    local.write_bytes(clouds.content(cloud, "/big.bin"))
    patch = folder / "patch"
    patch.write_bytes(os.urandom(70_000))
    for target in (big, local):
        machine.run("dd", f"if={patch}", f"of={target}", "bs=1000", "seek=1234", "conv=notrunc",
                    "status=none")
        machine.run("dd", f"if={patch}", f"of={target}", "bs=1", "count=3", "seek=4999999",
                    "conv=notrunc", "status=none")
    machine.run("cmp", big, local)
    machine.sync()
    assert clouds.content(cloud, "/big.bin") == local.read_bytes()


def test_truncate(machine, clouds, cloud, drive, folder):
    clouds.edit(cloud, "write", "/t.bin", seed=8, size=1_000_000)
    remote, local = drive / "t.bin", folder / "t.bin"
    eventually(remote.exists, "the file is there")
    local.write_bytes(clouds.content(cloud, "/t.bin"))
    for size in ("300000", "500000", "0", "12"):
        machine.run("truncate", "-s", size, remote, local)
        machine.run("cmp", remote, local)
    machine.sync()
    assert clouds.content(cloud, "/t.bin") == bytes(12)


def test_an_unlinked_file_stays_readable(machine, clouds, cloud, drive):
    path = drive / "gone.txt"
    path.write_text("still here")
    with open(path) as file:
        path.unlink()
        assert not path.exists()
        assert file.read() == "still here"
    machine.sync()
    assert clouds.tree(cloud) == {}


def test_modes_and_times_survive_a_remount(machine, cloud, drive):
    script = drive / "script.sh"
    script.write_text("#!/bin/sh\necho ran\n")
    script.chmod(0o755)
    os.utime(script, (1_600_000_000, 1_600_000_000))
    machine.sync()
    machine.unmount()
    machine.mount()
    assert script.stat().st_mode & 0o777 == 0o755
    assert script.stat().st_mtime == 1_600_000_000
    assert machine.run(script).stdout == "ran\n"


def test_find_and_df(machine, clouds, cloud, drive, folder):
    local = small_tree(folder / "tree")
    machine.run("cp", "-r", local, drive / "tree")
    found = machine.run("find", ".", "-type", "f", cwd=drive / "tree").stdout
    wanted = machine.run("find", ".", "-type", "f", cwd=local).stdout
    assert sorted(found.split("\n")) == sorted(wanted.split("\n"))
    size, used = machine.run("df", "-B1", "--output=size,used", drive).stdout.split()[-2:]
    account = machine.account(cloud)
    assert abs(int(size) - account["total_bytes"]) < 1 << 20
    assert abs(int(used) - account["used_bytes"]) < 64 << 20


def test_walks_that_count_links_find_every_folder(drive):
    (drive / "a" / "b").mkdir(parents=True)
    (drive / "a" / "b" / "file").write_text("content")
    libc = ctypes.CDLL(None, use_errno=True)
    libc.fts_open.restype = libc.fts_read.restype = ctypes.c_void_p
    physical, without_looking = 0x10, 0x8  # FTS_PHYSICAL, FTS_NOSTAT
    walk = libc.fts_open((ctypes.c_char_p * 2)(os.fsencode(drive / "a"), None),
                         physical | without_looking, None)
    assert walk
    entries = 0
    while libc.fts_read(ctypes.c_void_p(walk)):
        entries += 1
    libc.fts_close(ctypes.c_void_p(walk))
    assert entries == 5, "a, b, file, and each folder once more at its end"


def test_what_the_service_says_of_an_upload_is_shown_at_once(machine, clouds, cloud):
    if cloud == "dropbox":
        pytest.skip("tells no type")
    # Long before the feed reports it.
    machine.write_settings('poll_interval = "1h"\nsettle = "200ms"\n' + clouds.settings())
    machine.login(cloud)
    machine.mount()
    drive = machine.ready(cloud)
    (drive / "small.png").write_bytes(b"a picture")
    (drive / "large.png").write_bytes(os.urandom(6_000_000))
    machine.sync()
    for name in ("small.png", "large.png"):
        assert os.getxattr(drive / name, "user.oort.mimeType") == b"image/png"
        # A save through a temporary file, of whose type nothing is known.
        temporary = drive / f".{name}.tmp"
        temporary.write_bytes(os.urandom(6_000_000))
        machine.sync()
        temporary.rename(drive / name)
        machine.sync()
        assert os.getxattr(drive / name, "user.oort.mimeType") == b"image/png"


def test_decomposed_names(machine, clouds, cloud, drive):
    """As macOS and its archives write them; Dropbox stores them composed."""
    composed, decomposed = (unicodedata.normalize(form, "Grüße") for form in ("NFC", "NFD"))
    (drive / decomposed).mkdir()
    (drive / decomposed / decomposed).write_text("first\n")
    machine.sync()
    stored = composed if cloud == "dropbox" else decomposed
    assert set(clouds.tree(cloud)) == {f"/{stored}", f"/{stored}/{stored}"}
    clouds.forget_calls(cloud)
    machine.unmount()
    machine.mount()
    machine.ready(cloud)
    assert os.listdir(drive) == os.listdir(drive / decomposed) == [decomposed]
    (drive / decomposed / decomposed).write_text("second\n")
    (drive / decomposed / decomposed).rename(drive / decomposed / f"{decomposed} 2")
    machine.sync()
    assert set(clouds.tree(cloud)) == {f"/{stored}", f"/{stored}/{stored} 2"}
    assert clouds.content(cloud, f"/{stored}/{stored} 2") == b"second\n"
    assert (drive / composed).exists() == (cloud == "dropbox")
    moves = sum(count for route, count in clouds.counts(cloud).items() if "move" in route)
    assert moves <= 1, clouds.counts(cloud)


def test_what_is_made_and_removed_is_never_sent(machine, clouds, cloud):
    # However long the machine takes between making a file and removing it.
    machine.write_settings('poll_interval = "1s"\nsettle = "1h"\n' + clouds.settings())
    machine.login(cloud)
    machine.mount()
    drive = machine.ready(cloud)
    machine.sync()
    clouds.forget_calls(cloud)
    for number in range(20):
        (drive / f"build{number}.o").write_bytes(os.urandom(100))
        (drive / f"build{number}.o").unlink()
    machine.sync()
    writes = {
        name: count for name, count in clouds.counts(cloud).items()
        if any(word in name.lower() for word in ("upload", "delete", "create_folder", "put"))}
    assert writes == {}


def test_move_between_accounts(machine, clouds, folder):
    for cloud in CLOUDS:
        machine.login(cloud)
    machine.mount()
    drives = [machine.ready(cloud) for cloud in CLOUDS]
    local = small_tree(folder / "tree")
    machine.run("cp", "-r", local, drives[0] / "tree")
    for source, target in zip(drives, drives[1:] + drives[:1]):
        machine.run("mv", source / "tree", target / "tree")
        assert not (source / "tree").exists()
        machine.run("diff", "-r", "--no-dereference", local, target / "tree")
    machine.sync()
    same_at_the_cloud(clouds, CLOUDS[0], local, "/tree")
    assert clouds.tree(CLOUDS[1]) == {} and clouds.tree(CLOUDS[2]) == {}
