"""Whose a file is, who changed it last, and whether others can reach it."""

import errno
import json
import os

import pytest

from machine import eventually

PEOPLE = ("owner", "createdBy", "modifiedBy", "shared")
pytestmark = pytest.mark.clouds("dropbox", "drive", "onedrive", "box")

TOLD = {
    "dropbox": {"shared": "yes"},
    "drive": {"owner": "Grace Other", "modifiedBy": "Grace Other", "shared": "yes"},
    "onedrive": {"createdBy": "Grace Example", "modifiedBy": "Grace Example", "shared": "yes"},
    "box": {"owner": "Grace Other", "createdBy": "Grace Other", "modifiedBy": "Grace Other",
            "shared": "yes"},
}


@pytest.fixture(params=sorted(TOLD))
def cloud(request):
    return request.param


def people(file):
    found = {}
    for name in PEOPLE:
        try:
            found[name] = os.getxattr(file, f"user.oort.{name}").decode()
        except OSError as error:
            assert error.errno == errno.ENODATA
    assert {f"user.oort.{name}" for name in found} <= set(os.listxattr(file))
    return found


def test_only_what_is_not_ones_own_names_a_person(machine, clouds, cloud, drive):
    clouds.edit(cloud, "share", "/theirs.txt", text="theirs")
    (drive / "mine.txt").write_text("mine")
    machine.sync()
    eventually((drive / "theirs.txt").exists, "the other one's file shows")
    assert people(drive / "theirs.txt") == TOLD[cloud]
    assert people(drive / "mine.txt") == {}
    machine.unmount()
    machine.mount()
    assert people(drive / "theirs.txt") == TOLD[cloud]


def test_a_conflict_names_who_wrote_theirs(machine, clouds, cloud, drive):
    file = drive / "file.txt"
    file.write_text("first")
    machine.sync()
    clouds.gates[cloud].shut()
    file.write_text("mine")
    clouds.edit(cloud, "share", "/file.txt", text="theirs")
    clouds.gates[cloud].open()
    eventually(lambda: json.loads(machine.oort("conflicts", "--json")), "there are two versions")
    [conflict] = json.loads(machine.oort("conflicts", "--json"))
    author = TOLD[cloud].get("modifiedBy")
    assert conflict["theirs"].get("author") == author
    assert author is None or author in machine.oort("conflicts")


def shared_with(file):
    return os.getxattr(file, "user.oort.sharedWith").decode()


@pytest.mark.parametrize("cloud", ["drive", "onedrive"], indirect=True)
def test_with_whom_a_file_is_shared_is_asked_for_by_name_only(machine, clouds, cloud, drive):
    (drive / "mine.txt").write_text("mine")
    (drive / "lent.txt").write_text("lent")
    machine.sync()
    clouds.edit(cloud, "lend", "/lent.txt", people=[
        {"name": "Grace Other"}, {"name": "Grace Other"}, {"name": "Staff\n", "group": True}])
    eventually(lambda: people(drive / "lent.txt") == {"shared": "yes"}, "the file is shared")
    machine.oort("share", drive / "lent.txt")
    clouds.forget_calls(cloud)

    def asked():
        return sum(count for route, count in clouds.counts(cloud).items()
                   if "permissions" in route)

    assert shared_with(drive / "lent.txt") == "Grace Other; Staff (group); anyone with the link"
    # Drive's answer may have a second page.
    assert asked() == 1 or cloud == "drive" and asked() == 2
    with pytest.raises(OSError) as refused:
        shared_with(drive / "mine.txt")
    assert refused.value.errno == errno.ENODATA
    clouds.gates[cloud].shut()
    # Nobody is asked by a program that shows all attributes; the answer holds for a while.
    for name in os.listxattr(drive / "lent.txt"):
        os.getxattr(drive / "lent.txt", name)
    assert "user.oort.sharedWith" not in os.listxattr(drive / "lent.txt")
    assert shared_with(drive / "lent.txt") == "Grace Other; Staff (group); anyone with the link"
    clouds.gates[cloud].open()


@pytest.mark.parametrize("cloud", ["box"], indirect=True)
def test_tags_are_shown_and_found(machine, clouds, cloud, drive):
    (drive / "scan.pdf").write_text("scan")
    machine.sync()
    clouds.edit(cloud, "tag", "/scan.pdf", tags=["Steuer 2026", "urgent", "urgent"])
    file = drive / "scan.pdf"
    eventually(lambda: "user.oort.tags" in os.listxattr(file), "the tags show")
    assert os.getxattr(file, "user.oort.tags") == b"Steuer 2026; urgent"

    def found(word, status=0):
        report = json.loads(machine.oort("search", "--json", word, status=status))
        return [result["path"] for result in report["results"]]

    assert found("steuer") == [str(file)]
    # A rename is told without the tags, which stay.
    clouds.edit(cloud, "move", "/scan.pdf", to="/letter.pdf")
    file = drive / "letter.pdf"
    eventually(file.exists, "the rename shows")
    assert found("urgent") == [str(file)]
    machine.unmount()
    machine.mount()
    assert os.getxattr(file, "user.oort.tags") == b"Steuer 2026; urgent"
    clouds.edit(cloud, "tag", "/letter.pdf", tags=[])
    eventually(lambda: "user.oort.tags" not in os.listxattr(file), "the tags are gone")
    assert found("urgent", status=1) == []
