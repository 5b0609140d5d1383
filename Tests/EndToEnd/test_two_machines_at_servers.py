"""Two machines with one account at a server of a person's own: each shows what the other does, and what both
do at one time is kept."""

import os
import shutil

import pytest

from machine import Machine, eventually
from places import Place
from test_servers import local_tree
from test_two_machines import at_once


@pytest.fixture(params=["sftp", "webdav", "seaweedfs", "ftp"])
def place(request, folder, clouds):
    place = Place(request.param, folder, clouds)
    yield place
    place.stop()


@pytest.fixture
def machines(folder, clouds, place):
    """Two machines with their folders of the account."""
    machines = [Machine(folder, clouds, name) for name in ("one", "two")]
    try:
        for machine in machines:
            place.login(machine)
            machine.mount()
        for machine in machines:
            place.ready(machine)
        yield machines
        for machine in machines:
            assert "Fatal error" not in machine.log()
    finally:
        for machine in machines:
            machine.clean()


@pytest.fixture
def drives(machines, place):
    return [machine.mount_point / place.name for machine in machines]


def shows(drive, wanted):
    """Whether exactly this shows; nothing is known while names and contents change under who looks."""
    try:
        return local_tree(drive) == wanted
    except OSError:
        return False


def agree(place, machines, drives, wanted):
    """Fails where not both come to show exactly this, and the server to hold it, with nothing left to do."""
    for machine in machines:
        machine.sync()
    for drive in drives:
        eventually(lambda: shows(drive, wanted), "it shows there, too")
    assert place.tree() == wanted
    for machine in machines:
        account = machine.account(place.name)
        assert account["pending_count"] == 0 and account["refused_count"] == 0, account


def test_what_one_does_shows_at_the_other(place, machines, drives):
    """In turn, each goes on with what the other has done."""
    wanted = {}

    def check(new=(), gone=()):
        for name in gone:
            del wanted[name]
        wanted.update(new)
        agree(place, machines, drives, wanted)
    here, there = drives
    (here / "new").write_text("new")
    check({"new": b"new"})
    (there / "new").write_text("changed over there")
    check({"new": b"changed over there"})
    with open(here / "new", "a") as file:
        file.write(", and added to here")
    check({"new": b"changed over there, and added to here"})
    (there / "new").rename(there / "renamed")
    check({"renamed": wanted["new"]}, ["new"])
    (here / "folder" / "deep").mkdir(parents=True)
    (here / "folder" / "deep" / "file").write_text("deep")
    check({"folder": None, "folder/deep": None, "folder/deep/file": b"deep"})
    (there / "renamed").rename(there / "folder" / "deep" / "moved")
    check({"folder/deep/moved": wanted["renamed"]}, ["renamed"])
    (here / "folder").rename(here / "another")
    check({name.replace("folder", "another", 1): data for name, data in wanted.items()}, list(wanted))
    (there / "another" / "deep" / "file").unlink()
    check(gone=["another/deep/file"])
    shutil.rmtree(here / "another")
    check(gone=list(wanted))
    for machine in machines:
        assert machine.account(place.name)["conflicts"] == []


def test_what_both_save_is_kept_twice(place, machines, drives):
    (drives[0] / "report.txt").write_text("the first draft")
    agree(place, machines, drives, {"report.txt": b"the first draft"})
    for machine in machines:
        machine.oort("pause")
    for drive, text in zip(drives, ("mine", "theirs, which is longer")):
        (drive / "report.txt").write_text(text)
    # One after the other: of saves in one round trip some servers keep the last only.
    for machine in machines:
        machine.oort("resume")
        machine.sync()
    (copy,) = [name for name in os.listdir(drives[1]) if name.startswith("report (conflicted copy ")]
    assert copy.endswith(".txt")
    agree(place, machines, drives, {"report.txt": b"mine", copy: b"theirs, which is longer"})
    assert [copy in shown for shown in machines[1].account(place.name)["conflicts"]] == [True]
    assert machines[0].account(place.name)["conflicts"] == []


def test_a_part_of_what_the_other_replaced_lies_over_that(place, machines, drives):
    """Nothing of the file was read here, and the server no longer has what it was."""
    base, theirs = b"base " * 1_200_000, b"news " * 1_200_001
    (drives[0] / "disk.img").write_bytes(base)
    machines[0].sync()
    eventually(lambda: (drives[1] / "disk.img").exists(), "it shows there, too")
    machines[1].oort("pause")
    with open(drives[1] / "disk.img", "r+b", buffering=0) as file:
        file.seek(5_000_000)
        file.write(b"MINE")
    (drives[0] / "disk.img").write_bytes(theirs)
    machines[0].sync()
    machines[1].oort("resume")
    machines[1].sync()
    (copy,) = [name for name in os.listdir(drives[1]) if name != "disk.img"]
    mine = theirs[:5_000_000] + b"MINE" + theirs[5_000_004:len(base)]
    agree(place, machines, drives, {"disk.img": theirs, copy: mine})


def test_a_new_name_and_a_new_content_are_both_kept(place, machines, drives):
    """Without ids, which only FTP has of these, a new name is another file."""
    (drives[0] / "plan.txt").write_text("the first draft")
    agree(place, machines, drives, {"plan.txt": b"the first draft"})
    machines[1].oort("pause")
    (drives[1] / "plan.txt").write_text("the second draft")
    (drives[0] / "plan.txt").rename(drives[0] / "renamed.txt")
    machines[0].sync()
    machines[1].oort("resume")
    agree(place, machines, drives, {"renamed.txt": b"the second draft"} if place.kind == "ftp" else
          {"renamed.txt": b"the first draft", "plan.txt": b"the second draft"})
    for machine in machines:
        assert machine.account(place.name)["conflicts"] == []


def test_a_folder_that_both_make_is_one(place, machines, drives):
    for machine in machines:
        machine.oort("pause")
    for drive, name in zip(drives, ("one", "two")):
        (drive / "folder" / "sub").mkdir(parents=True)
        for above in ("folder", "folder/sub"):
            (drive / above / f"of {name}").write_text(f"{above} of {name}")
    at_once(*[lambda machine=machine: machine.oort("resume") for machine in machines])
    at_once(*[machine.sync for machine in machines])
    agree(place, machines, drives, {
        "folder": None, "folder/sub": None,
        **{f"{above}/of {name}": f"{above} of {name}".encode()
           for above in ("folder", "folder/sub") for name in ("one", "two")}})
    for machine in machines:
        assert machine.account(place.name)["conflicts"] == []
