"""From one account to another of a different kind: `cp` and `mv` work as between two disks, what is on
its way either way is told, and a death in the midst loses nothing."""

import os
import random
import shutil
import subprocess
import threading

import pytest

from machine import Machine, eventually
from places import Place

# How many small files the tree has.
SMALL = 60
PAIRS = [("seaweedfs", "sftp"), ("webdav", "nextcloud"), ("dropbox", "sftp"), ("ftp", "webdav")]
pytestmark = pytest.mark.clouds("dropbox", "nextcloud")


@pytest.fixture(params=PAIRS, ids="-".join)
def places(request, folder, clouds, machine):
    """Two accounts, mounted."""
    places = []
    try:
        for kind in request.param:
            places.append(Place(kind, folder, clouds))
        for place in places:
            place.login(machine)
        machine.mount()
        for place in places:
            place.ready(machine)
        yield places
    finally:
        machine.clean()
        for place in places:
            place.stop()


def make_tree(folder, large=3 << 20):
    """Subfolders, names of all kinds, an empty file and an empty folder, a program, a link, and old times."""
    for name in ["a/b", "empty folder", "Grüße 文字", "income", "small"]:
        (folder / name).mkdir(parents=True)
    (folder / "a" / "empty").touch()
    (folder / "a" / "b" / "one #1; & 'y'.txt").write_text("one\n")
    (folder / "a" / "large").write_bytes(random.Random(1).randbytes(large))
    (folder / "Grüße 文字" / "日本語.txt").write_text("こんにちは")
    for number in range(SMALL):
        (folder / "small" / str(number)).write_text(f"content {number}\n" * (number + 1))
    # As a slash in a name at Drive is shown, and as somebody there could name a file.
    for name in ["income∕expenses.txt", "..∕..∕victim"]:
        (folder / name).write_text(name)
    (folder / "a" / "program").write_text("#!/bin/sh\necho it runs\n")
    (folder / "a" / "program").chmod(0o755)
    (folder / "a" / "link").symlink_to("b/one #1; & 'y'.txt")
    for number, path in enumerate(files(folder)):
        os.utime(path, (1_500_000_000 + number, 1_500_000_000 + number))
    return folder


def files(folder):
    """The files below a folder, in order; no links."""
    return [path for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink()]


def times(folder):
    """The seconds of the files' modified times."""
    return {str(path.relative_to(folder)): int(path.stat().st_mtime) for path in files(folder)}


def stored(local, name):
    """What an account is to hold of a local folder of this name."""
    found = {name: None}
    for path in local.rglob("*"):
        place = f"{name}/{path.relative_to(local)}"
        if path.is_symlink():
            found[place + ".rclonelink"] = os.readlink(path).encode()
        else:
            found[place] = None if path.is_dir() else path.read_bytes()
    return found


def holds(place, wanted):
    """Fails where the account does not hold exactly this."""
    found = place.tree()
    assert found.keys() == wanted.keys(), found.keys() ^ wanted.keys()
    assert [path for path in wanted if found[path] != wanted[path]] == []


def is_same(machine, local, there):
    machine.run("diff", "-r", "--no-dereference", local, there)
    assert os.readlink(there / "a" / "link") == os.readlink(local / "a" / "link")
    assert machine.run(there / "a" / "program").stdout == "it runs\n"


def filled(machine, places, folder, large=3 << 20):
    """The folders of both accounts, after a tree lies in the first and nothing of it is on this machine."""
    source, target = (machine.mount_point / place.name for place in places)
    local = make_tree(folder / "tree", large)
    machine.run("cp", "-a", local, source / "tree")
    machine.sync()
    machine.unmount()
    shutil.rmtree(machine.cache)
    machine.mount()
    for place in places:
        place.ready(machine)
    return local, source, target


def test_copies_and_moves(machine, places, folder, clouds):
    local, source, target = filled(machine, places, folder)
    machine.run("cp", "-r", source / "tree", target / "copied")
    is_same(machine, local, target / "copied")
    machine.run("cp", "-a", source / "tree", target / "kept")
    machine.run("cp", "-p", source / "tree" / "a" / "program", target / "program")
    machine.run("mv", source / "tree" / "a" / "large", target / "large")
    assert not (source / "tree" / "a" / "large").exists()
    machine.run("cp", "-p", target / "large", source / "tree" / "a" / "large")
    machine.run("mv", source / "tree", target / "moved")
    assert os.listdir(source) == []
    for name in ("kept", "moved"):
        is_same(machine, local, target / name)
        assert times(target / name) == times(local)
    machine.sync()
    holds(places[0], {})
    holds(places[1], {
        **stored(local, "copied"), **stored(local, "kept"), **stored(local, "moved"),
        "program": (local / "a" / "program").read_bytes(),
        "large": (local / "a" / "large").read_bytes()})
    assert machine.account(places[1].name)["conflicts"] == []
    # What another machine shows, which has only what the service has.
    other = Machine(folder, clouds, "two")
    try:
        places[1].login(other)
        other.mount()
        there = places[1].ready(other)
        for name in ("copied", "kept", "moved"):
            other.run("diff", "-r", "--no-dereference", local, there / name)
        if places[1].keeps_times:
            for name in ("kept", "moved"):
                assert times(there / name) == times(local)
            for path, original in [("program", "a/program"), ("large", "a/large")]:
                assert int((there / path).stat().st_mtime) == times(local)[original]
    finally:
        other.clean()


def content(path):
    """A file's bytes; None where there is none."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def count(folder):
    """How many names a folder lists; none where there is no folder or no mount any longer."""
    try:
        return len(os.listdir(folder))
    except OSError:
        return 0


def links(*drives):
    """The targets of the tree's link where it is."""
    found = []
    for drive in drives:
        try:
            found.append(os.readlink(drive / "tree" / "a" / "link"))
        except FileNotFoundError:
            pass
    return found


@pytest.mark.parametrize("moment", ["copying", "removing"])
def test_a_death_in_the_midst_of_a_move_loses_nothing(machine, places, folder, moment):
    """Every file is whole at one of the two or at both, and who repeats the move has all at the new place."""
    local, source, target = filled(machine, places, folder)
    move = subprocess.Popen(["mv", source / "tree", target / "tree"], stdin=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL)
    try:
        if moment == "copying":
            eventually(lambda: count(target / "tree" / "small") > SMALL // 2, "some files are there")
        else:
            eventually(lambda: count(target / "tree" / "small") == SMALL
                       and 0 < count(source / "tree" / "small") < SMALL // 2 or move.poll() is not None,
                       "some files are gone")
        machine.kill()
    finally:
        code = move.wait()
    print(f"the move ended with {code}")
    machine.mount()
    for place in places:
        place.ready(machine)

    def look():
        """What is whole nowhere, and what is not whole at the new place."""
        lost, broken = [], []
        for path in files(local):
            name = path.relative_to(local)
            wanted = path.read_bytes()
            here, there = content(source / "tree" / name), content(target / "tree" / name)
            assert here in (None, wanted), f"{name} has changed"
            if wanted not in (here, there):
                lost.append(name)
            if there not in (None, wanted):
                assert wanted.startswith(there), f"{name} is no part of it"
                broken.append(name)
        assert os.readlink(local / "a" / "link") in links(source, target)
        return lost, broken

    def whole():
        lost, broken = look()
        assert lost == []
        # The one that was being written.
        assert len(broken) <= (1 if moment == "copying" else 0), broken
    whole()
    machine.sync()
    whole()
    for place, drive in zip(places, (source, target)):
        holds(place, stored(drive / "tree", "tree") if (drive / "tree").exists() else {})
    if (source / "tree").exists():
        machine.run("cp", "-a", f"{source}/tree/.", target / "tree")
        machine.run("rm", "-rf", source / "tree")
    is_same(machine, local, target / "tree")
    assert times(target / "tree") == times(local)
    machine.sync()
    holds(places[0], {})
    holds(places[1], stored(local, "tree"))


def test_the_progress_of_both_ways_is_told(machine, places, folder):
    large = 10 << 20
    local, source, target = filled(machine, places, folder, large)
    first, second = (place.name for place in places)
    machine.oort("pause", second)
    machine.oort("limit", "--down", "2M")

    def transfer(account, path, is_upload):
        """The large file's, somewhere in its midst."""
        for one in machine.account(account)["transfers"]:
            if one["path"] == str(path) and one["is_upload"] == is_upload:
                assert one["total_bytes"] == large, one
                if 0 < one["done_bytes"] < large:
                    return one
        return None

    def goes_on(*arguments):
        """It is seen on its way, and farther later."""
        before = eventually(lambda: transfer(*arguments), "it is on its way")["done_bytes"]
        eventually(lambda: (now := transfer(*arguments)) and now["done_bytes"] > before, "more of it is there")
    move = threading.Thread(target=machine.run, args=("mv", source / "tree", target / "tree"))
    move.start()
    try:
        goes_on(first, source / "tree" / "a" / "large", False)
    finally:
        machine.oort("limit", "--off")
        move.join(300)
    assert not move.is_alive() and not (source / "tree").exists()
    # All is here, and nothing at the other service. A link is a change without bytes.
    account = machine.account(second)
    assert account["pending_count"] == len(stored(local, "tree")), account
    assert account["pending_bytes"] == sum(path.stat().st_size for path in files(local)), account
    assert account["transfers"] == []
    assert places[1].tree() == {}
    machine.oort("limit", "--up", "1M")
    machine.oort("resume", second)
    goes_on(second, target / "tree" / "a" / "large", True)

    def agrees():
        """Of what is left the part that has gone is no longer counted.

        What goes out and what is left are read one after the other: a file may have gone between the two.
        """
        account = machine.account(second)
        left = {change["path"]: change["bytes"] for change in account["pending"]}
        done = sum(one["done_bytes"] for one in account["transfers"] if one["is_upload"])
        return (done > 0 and len(left) == account["pending_count"]
                and account["pending_bytes"] == sum(left.values()) - done)
    eventually(agrees, "the figures agree")
    machine.oort("limit", "--off")
    machine.sync()
    for name in (first, second):
        account = machine.account(name)
        assert (account["pending_count"], account["pending_bytes"]) == (0, 0), account
        assert account["transfers"] == [] and account["state"] == "up to date", account
    holds(places[0], {})
    holds(places[1], stored(local, "tree"))
