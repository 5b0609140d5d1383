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
