"""Both versions of a file that was changed on both sides: listed, compared, and put an end to."""

import json
import os

import pytest

from machine import eventually, read


@pytest.fixture
def conflict(machine, clouds, cloud, drive):
    """The paths of a file with another person's text and of the copy with ours."""
    return make(machine, clouds, cloud, drive)


def make(machine, clouds, cloud, drive, name="both.txt"):
    path = drive / name
    clouds.edit(cloud, "write", f"/{name}", text="one\nbase\nthree\n")
    eventually(lambda: read(path) == "one\nbase\nthree\n", "the file shows")
    clouds.gates[cloud].shut()
    path.write_text("one\nmine\nthree\n")
    clouds.edit(cloud, "write", f"/{name}", text="one\ntheirs\nthree\n")
    clouds.gates[cloud].open()
    machine.sync()
    eventually(lambda: read(path) == "one\ntheirs\nthree\n", "the other side's edit shows")
    stem = name.split(".")[0]
    copy, = (p for p in drive.iterdir() if p.name.startswith(f"{stem} (conflicted copy "))
    return path, copy


def listed(machine):
    return json.loads(machine.oort("conflicts", "--json"))


def test_a_conflict_is_listed_with_both_versions(machine, clouds, cloud, drive, conflict):
    path, copy = conflict
    shown, = listed(machine)
    assert shown["account"] == cloud
    assert shown["theirs"]["path"] == str(path) and shown["theirs"]["size"] == 17
    assert shown["mine"]["path"] == str(copy) and shown["mine"]["size"] == 15
    assert shown["mine"]["author"] == "this machine"
    assert shown["diff"] == "- theirs\n+ mine"
    said = machine.oort("conflicts")
    for words in (str(path), str(copy), "    - theirs\n    + mine\n", "oort resolve", "17 B"):
        assert words in said, said
    assert machine.status_code() == 4
    assert f"1 conflict copy, please look (oort conflicts): {copy}" in machine.oort("status")
    machine.unmount()
    # Without a mount what is known is said, with paths that begin at the account.
    shown, = listed(machine)
    assert shown["mine"]["path"] == f"{cloud}/{copy.name}" and "diff" not in shown
    assert "oort mount" in machine.oort("conflicts")
    assert "No mount" in machine.oort("resolve", copy, "--keep", "mine", status=1)
    for place in (drive, copy, cloud):
        assert str(copy.name) in machine.oort("conflicts", place)


def test_mine_is_kept(machine, clouds, cloud, drive, conflict):
    path, copy = conflict
    known = clouds.tree(cloud)["/both.txt"]["id"]
    assert "your version" in machine.oort("resolve", path, "--keep", "mine")
    assert listed(machine) == [] and not copy.exists()
    assert read(path) == "one\nmine\nthree\n"
    machine.sync()
    tree = clouds.tree(cloud)
    assert set(tree) == {"/both.txt"} and clouds.content(cloud, "/both.txt") == path.read_bytes()
    # History and links stay with the item.
    assert tree["/both.txt"]["id"] == known
    assert machine.status_code() == 0


def test_theirs_is_kept(machine, clouds, cloud, drive, conflict):
    path, copy = conflict
    machine.oort("resolve", copy, "--keep", "theirs")
    assert listed(machine) == [] and os.listdir(drive) == ["both.txt"]
    machine.sync()
    assert set(clouds.tree(cloud)) == {"/both.txt"}
    assert clouds.content(cloud, "/both.txt") == b"one\ntheirs\nthree\n"


def test_both_are_kept(machine, clouds, cloud, drive, conflict):
    path, copy = conflict
    machine.oort("resolve", path, "--keep", "both")
    assert listed(machine) == [] and machine.account(cloud)["conflicts"] == []
    assert path.exists() and copy.exists() and machine.status_code() == 0
    assert "no conflict of" in machine.oort("resolve", path, "--keep", "mine", status=1)
    machine.unmount()
    machine.mount()
    machine.ready(cloud)
    assert listed(machine) == []


@pytest.mark.parametrize("cloud", ["dropbox"])
@pytest.mark.parametrize("act", ["over", "rename", "move", "delete", "delete the other"])
def test_a_conflict_ends_by_what_a_person_does(machine, clouds, cloud, drive, conflict, act):
    path, copy = conflict
    (drive / "folder").mkdir()
    assert len(listed(machine)) == 1
    if act == "over":
        copy.rename(path)
    elif act == "rename":
        copy.rename(drive / "mine.txt")
    elif act == "move":
        path.rename(drive / "folder" / "both.txt")
    elif act == "delete":
        copy.unlink()
    else:
        path.unlink()
    assert listed(machine) == []
    machine.sync()
    assert machine.status_code() == 0


def losing(conflict, keep):
    """The file that a choice gives up."""
    path, copy = conflict
    return {"mine": path, "theirs": copy}[keep]


@pytest.mark.parametrize("cloud", ["dropbox"])
@pytest.mark.parametrize("keep", ["mine", "theirs"])
def test_what_is_given_up_is_sent_first(machine, clouds, cloud, drive, conflict, keep):
    lost = losing(conflict, keep)
    lost.write_text("an hour of further work\n")
    machine.oort("resolve", conflict[0], "--keep", keep)
    assert listed(machine) == []
    machine.sync()
    assert set(clouds.tree(cloud)) == {"/both.txt"}
    place = machine.folder / "back"
    if keep == "theirs":
        machine.oort("restore", lost, "--to", lost.with_name("back"))
        eventually(lambda: (drive / "back").exists(), "it is back")
        place = drive / "back"
    else:
        versions = json.loads(machine.oort("versions", lost, "--json"))["versions"]
        version, = (v for v in versions if v["size"] == len("an hour of further work\n"))
        machine.oort("restore", lost, "--version", version["id"], "--to", place)
    assert read(place) == "an hour of further work\n"


@pytest.mark.parametrize("cloud", ["dropbox", "drive"])
@pytest.mark.parametrize("keep", ["mine", "theirs"])
@pytest.mark.parametrize("why", ["paused", "offline", "open"])
def test_what_cannot_be_sent_is_not_given_up(machine, clouds, cloud, drive, conflict, keep, why):
    lost = losing(conflict, keep)
    before = {path: read(path) for path in conflict}
    if why == "paused":
        machine.oort("pause")
    elif why == "offline":
        clouds.gates[cloud].shut()
    with open(lost, "a") as file:
        file.write("further work")
        file.flush()
        if why != "open":
            file.close()
        said = machine.oort("resolve", conflict[1], "--keep", keep, status=1)
    assert f"{lost.name} has changes that the cloud does not have" in said.replace("'", ""), said
    assert "both files are as they were" in said
    assert read(lost) == before[lost] + "further work"
    assert len(listed(machine)) == 1
    machine.oort("resume")
    if why == "offline":
        clouds.gates[cloud].open()
    machine.sync()
    machine.oort("resolve", conflict[1], "--keep", keep)
    machine.sync()
    assert os.listdir(drive) == ["both.txt"]
    kept = conflict[1] if keep == "mine" else conflict[0]
    assert read(drive / "both.txt") == before[kept]


@pytest.mark.parametrize("cloud", ["drive"])
def test_an_edit_of_either_file_ends_nothing(machine, clouds, cloud, drive, conflict):
    for path in conflict:
        new = drive / "new.tmp"
        new.write_text("edited")
        new.rename(path)
        machine.sync()
        assert len(listed(machine)) == 1
        machine.run("sed", "-i", "s/edited/again/", path)
        machine.sync()
        assert len(listed(machine)) == 1


@pytest.mark.parametrize("cloud", ["onedrive"])
def test_bad_input(machine, clouds, cloud, drive, conflict):
    path, copy = conflict
    machine.oort("resolve", path, status=2)
    assert "nobody" in machine.oort("resolve", path, "--keep", "nobody", status=2)
    for name in (drive, drive / "none", "/etc/passwd", "none"):
        assert "no conflict of" in machine.oort("resolve", name, "--keep", "mine", status=1)
    assert len(listed(machine)) == 1
    for place in (path, copy, drive, machine.mount_point):
        assert str(copy) in machine.oort("conflicts", place)
    clouds.edit(cloud, "write", "/other.txt", text="other")
    eventually((drive / "other.txt").exists, "the file shows")
    assert machine.oort("conflicts", drive / "other.txt") == "There is no conflict.\n"
    assert "does not lie in the mount" in machine.oort("conflicts", "/etc", status=1)
    assert "is not there" in machine.oort("conflicts", drive / "none", status=1)
    assert "no account" in machine.oort("conflicts", machine.mount_point / "none", status=1)
    machine.unmount()
    for place in ("/etc", drive / "none"):
        said = machine.oort("conflicts", place, status=1)
        assert "nothing is known of" in said and str(machine.mount_point) in said, said


@pytest.mark.parametrize("cloud", ["drive"])
def test_without_a_conflict(machine, clouds, cloud, drive):
    assert machine.oort("conflicts") == "There is no conflict.\n"
    assert listed(machine) == []
