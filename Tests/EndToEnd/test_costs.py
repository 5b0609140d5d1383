"""What ordinary acts cost at each service: every call is counted, and none may be more.

`desk.py` has what single acts cost; docs/costs.md says it in words.
"""

import os
import shutil
from collections import Counter

import pytest

from desk import (
    COPY, CREATE, CREATE_FOLDER, DELETE_EMPTY, DELETE_FOLDER, KNOWN, MOVE, REPLACE, SET_TIME, create_files,
    delete_files, sum_of)
from machine import CLOUDS

SERVICES = [*CLOUDS, "box"]
pytestmark = pytest.mark.clouds(*SERVICES)

MANY = 10_000
# Box's limits leave only so many calls a minute: elsewhere there are more.
SINGLY_DELETED = {"box": 20}
SMALL_FILES = {"box": 30}
FOLDERS = {"box": 60}
ENUMERATION = {
    "dropbox": {"files/list_folder": 1},
    "drive": {"files.list": 2},
    "onedrive": {"delta/get": 2},
    # A listing of each folder, and of the top.
    "box": {"folders/items/get": 61},
}


@pytest.fixture(params=SERVICES)
def cloud(request):
    return request.param


def prepare(clouds, cloud):
    clouds.edits(cloud, [
        {"op": "write", "path": f"/here/folder/file{number}", "text": "x"}
        for number in range(MANY)])
    clouds.edits(cloud, [
        {"op": "mkdir", "path": "/there"},
        {"op": "write", "path": "/copy/original.bin", "seed": 3, "size": 3_000_000},
        {"op": "write", "path": "/saves/there.txt", "text": "old"},
        {"op": "write", "path": "/same/file.txt", "text": "the same"},
        {"op": "mkdir", "path": "/time"},
        {"op": "mkdir", "path": "/known"},
    ])


@pytest.fixture(autouse=True)
def ids(desk, cloud):
    """Drive's ids for new items are asked for a thousand at a time: not by the act that counts."""
    first = desk.drive(cloud) / "first"
    if cloud == "drive" and not first.exists():
        first.mkdir()
        assert desk.cost(cloud) == sum_of(CREATE_FOLDER[cloud], {"files.generateIds": 1})


def below(clouds, cloud, folder):
    return [path for path in clouds.tree(cloud, "none") if path.startswith(folder + "/")]


def test_a_folder_of_ten_thousand_files_moves_by_one_call(desk, cloud):
    drive = desk.drive(cloud)
    assert len(os.listdir(drive / "here" / "folder")) == MANY
    desk.machine.run("mv", drive / "here" / "folder", drive / "there" / "renamed")
    assert desk.cost(cloud) == Counter(MOVE[cloud])
    assert len(below(desk.clouds, cloud, "/there/renamed")) == MANY
    assert below(desk.clouds, cloud, "/here") == []
    # Some of them, one by one, are deleted in the service's batches.
    count = SINGLY_DELETED.get(cloud, 200)
    for number in range(count):
        (drive / "there" / "renamed" / f"file{number}").unlink()
    assert desk.cost(cloud) == Counter(delete_files(cloud, count))
    assert len(below(desk.clouds, cloud, "/there/renamed")) == MANY - count


def test_an_empty_folder(desk, cloud):
    folder = desk.drive(cloud) / "empty"
    folder.mkdir()
    desk.cost(cloud)
    folder.rmdir()
    assert desk.cost(cloud) == Counter(DELETE_EMPTY[cloud])
    assert "/empty" not in desk.clouds.tree(cloud, "none")


def test_many_small_files(desk, cloud, folder):
    """They go up in the service's batches, and `rm -rf` of them all is one delete."""
    drive, machine = desk.drive(cloud), desk.machine
    local = folder / "many"
    local.mkdir()
    count = SMALL_FILES.get(cloud, 1000)
    for number in range(count):
        (local / f"file{number:04}").write_text(f"content {number} at {cloud}\n")
    (drive / "many").mkdir()
    assert desk.cost(cloud) == Counter(CREATE_FOLDER[cloud])
    machine.run("cp", "-r", f"{local}/.", drive / "many")
    cost = desk.cost(cloud)
    # Ids for new items are asked for by the thousand, with the first file of each thousand.
    assert cost.pop("files.generateIds", 0) <= (1 if cloud == "drive" else 0)
    assert cost == Counter(create_files(cloud, count))
    assert len(below(desk.clouds, cloud, "/many")) == count

    machine.run("rm", "-rf", drive / "many")
    assert desk.cost(cloud) == Counter(DELETE_FOLDER[cloud])
    assert below(desk.clouds, cloud, "/many") == []


def test_a_tree_made_and_removed_sends_nothing(desk, cloud):
    drive = desk.drive(cloud)
    for number in range(200):
        (drive / "build" / f"{number % 10}").mkdir(parents=True, exist_ok=True)
        (drive / "build" / f"{number % 10}" / f"{number}.o").write_bytes(os.urandom(100))
    desk.machine.run("rm", "-rf", drive / "build")
    assert desk.cost(cloud) == Counter()
    assert below(desk.clouds, cloud, "/build") == []


def test_ten_writes_are_one_upload(desk, cloud):
    new, there = desk.drive(cloud) / "saves" / "new.txt", desk.drive(cloud) / "saves" / "there.txt"
    for file, cost in ((new, CREATE), (there, REPLACE)):
        for number in range(10):
            file.write_text(f"draft {number} of {file.name} at {cloud}\n")
        assert desk.cost(cloud) == Counter(cost[cloud])
        assert desk.clouds.content(cloud, f"/saves/{file.name}") == file.read_bytes()
    tree = desk.clouds.tree(cloud)
    assert tree["/saves/new.txt"]["revisions"] == 1
    assert tree["/saves/there.txt"]["revisions"] == 2


def test_a_preserving_copy_is_one_upload_with_its_time(desk, cloud, folder):
    local = folder / "file.bin"
    local.write_bytes(os.urandom(50_000))
    os.utime(local, (1_600_000_000, 1_600_000_000))
    desk.machine.run("cp", "-p", local, desk.drive(cloud) / "time" / "file.bin")
    assert desk.cost(cloud) == Counter(CREATE[cloud])
    item = desk.clouds.tree(cloud)["/time/file.bin"]
    assert item["modified"].startswith("2020-09-13T12:26:40")
    assert item["revisions"] == 1


def test_a_copy_in_the_account_moves_no_bytes(desk, cloud):
    folder = desk.drive(cloud) / "copy"
    desk.machine.run("cp", folder / "original.bin", folder / "copy.bin")
    assert desk.cost(cloud) == Counter(COPY[cloud])
    content = desk.clouds.content(cloud, "/copy/original.bin")
    assert desk.clouds.content(cloud, "/copy/copy.bin") == content
    desk.clouds.forget_calls(cloud)
    assert (folder / "copy.bin").read_bytes() == content


def test_known_content_is_not_sent_again(desk, cloud, folder):
    local = folder / "file.bin"
    local.write_bytes(os.urandom(500_000))
    shutil.copyfile(local, desk.drive(cloud) / "known" / "first.bin")
    assert desk.cost(cloud) == Counter(CREATE[cloud])
    second = desk.drive(cloud) / "known" / "second.bin"
    second.write_bytes(local.read_bytes())
    # Not within the second in which the first was written.
    os.utime(second, (1_600_000_000, 1_600_000_000))
    assert desk.cost(cloud) == Counter(KNOWN[cloud])
    assert desk.clouds.content(cloud, "/known/second.bin") == local.read_bytes()
    # What was written here is read here; Box's news of the copy may come by now.
    desk.clouds.forget_calls(cloud)
    assert second.read_bytes() == local.read_bytes()
    assert desk.clouds.counts(cloud).keys() <= {"events/get"}


def test_a_save_without_a_change_sends_the_time_alone(desk, cloud):
    # An equal hash of OneDrive's does not say that nothing was changed.
    cost = REPLACE if cloud == "onedrive" else SET_TIME
    file = desk.drive(cloud) / "same" / "file.txt"
    before = desk.clouds.tree(cloud)["/same/file.txt"]
    temporary = file.with_name(".file.txt.tmp")
    temporary.write_text("the same")
    os.replace(temporary, file)
    assert desk.cost(cloud) == Counter(cost[cloud])
    after = desk.clouds.tree(cloud)["/same/file.txt"]
    assert (after["id"], after["hash"]) == (before["id"], before["hash"])


@pytest.mark.parametrize("unmounts", [False, True], ids=["first", "after a restart"])
def test_a_find_over_many_folders(machine, clouds, cloud, unmounts):
    count = FOLDERS.get(cloud, 1000)
    clouds.edits(cloud, [
        {"op": "write", "path": f"/folder{number}/file", "text": "x"} for number in range(count)])
    clouds.give_full_pages(cloud)
    machine.write_settings('poll_interval = "1h"\n' + clouds.settings())
    machine.login(cloud)
    clouds.forget_calls(cloud)
    machine.mount()
    drive = machine.ready(cloud)
    if unmounts:
        machine.unmount()
        # The mount alone must know the tree: the service does not answer.
        clouds.gates[cloud].shut()
        machine.mount()
    found = machine.run("find", drive, "-type", "f").stdout.split()
    assert len(found) == count
    if not unmounts:
        # The items in the largest pages that each service gives; a listing for each folder only at Box,
        # which has no list of the whole tree.
        assert {route: count for route, count in clouds.counts(cloud).items()
                if any(word in route for word in ("list_folder", "files.list", "delta", "children", "items"))
                and "longpoll" not in route} == ENUMERATION[cloud]
