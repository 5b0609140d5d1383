"""Dropbox moves and deletes only so much by one request: what is more is deleted in parts."""

import shutil

import pytest

from machine import eventually

BOUND = 10


@pytest.fixture
def cloud():
    return "dropbox"


@pytest.fixture
def big(machine, clouds, cloud, drive):
    """A folder that is too much at once, with one in it that is too much itself."""
    for folder, count in (("big", 3), ("big/large", 30), ("big/small", 4), ("kept", 2)):
        (drive / folder).mkdir()
        for number in range(count):
            (drive / folder / f"{number}.txt").write_text(f"{folder} {number}")
    machine.sync()
    clouds.conditions(cloud, items_at_once=BOUND)
    clouds.forget_calls(cloud)
    return drive / "big"


KEPT = ["/kept", "/kept/0.txt", "/kept/1.txt"]


def test_a_folder_that_is_too_much_is_deleted(machine, clouds, cloud, drive, big):
    shutil.rmtree(big)
    machine.sync()
    assert sorted(clouds.tree(cloud)) == KEPT
    assert machine.account(cloud)["state"] == "up to date"
    # As one deletion, although each file was unlinked: refused, looked at, deleted in parts.
    routes = [call["route"] for call in clouds.calls(cloud)]
    assert routes.count("files/delete_v2") + routes.count("files/delete_batch") <= 8, routes


def test_what_somebody_else_put_elsewhere_meanwhile_stays(machine, clouds, cloud, drive, big):
    clouds.fault(cloud, route="files/delete_batch", fault="stall", seconds=20)
    shutil.rmtree(big)
    eventually(lambda: clouds.fault_counts(cloud), "it is deleted in parts")
    clouds.edit(cloud, "move", "/big/large/7.txt", to="/kept/seven.txt")
    machine.sync()
    assert sorted(clouds.tree(cloud)) == sorted([*KEPT, "/kept/seven.txt"])
    eventually((drive / "kept" / "seven.txt").exists, "it is here, too")
    assert (drive / "kept" / "seven.txt").read_text() == "big/large 7"


@pytest.mark.parametrize("route", ["files/delete_batch", "files/delete_batch/check",
                                   "files/delete_v2"])
def test_a_lost_answer(machine, clouds, cloud, drive, big, route):
    clouds.fault(cloud, route=route, fault="done_but_no_answer", skipping=1)
    shutil.rmtree(big)
    machine.sync()
    assert sorted(clouds.tree(cloud)) == KEPT
    assert sorted(p.name for p in drive.iterdir()) == ["kept"]


@pytest.mark.parametrize("skipping", [0, 1, 2])
def test_a_kill_in_its_midst(machine, clouds, cloud, drive, big, skipping):
    clouds.fault(cloud, route="files/delete_batch*", fault="stall", seconds=3600, times=None,
                 skipping=skipping)
    shutil.rmtree(big)
    eventually(lambda: clouds.fault_counts(cloud), "it is deleted in parts")
    machine.kill()
    clouds.no_faults(cloud)
    machine.mount()
    machine.ready(cloud)
    machine.sync()
    assert sorted(clouds.tree(cloud)) == KEPT
    assert sorted(p.name for p in drive.iterdir()) == ["kept"]


@pytest.mark.parametrize("skipping", [0, 2])
def test_what_came_before_it_is_begun_again_stays(machine, clouds, cloud, drive, big, skipping):
    clouds.fault(cloud, route="files/delete_batch*", fault="stall", seconds=3600, times=None,
                 skipping=skipping)
    shutil.rmtree(big)
    eventually(lambda: clouds.fault_counts(cloud), "it is deleted in parts")
    machine.kill()
    clouds.edit(cloud, "write", "/big/new.txt", text="theirs")
    clouds.edit(cloud, "write", "/big/large/new.txt", text="theirs, too")
    clouds.no_faults(cloud)
    machine.mount()
    machine.ready(cloud)
    machine.sync()
    assert sorted(clouds.tree(cloud)) == sorted(
        [*KEPT, "/big", "/big/large", "/big/large/new.txt", "/big/new.txt"])
    assert (big / "large" / "new.txt").read_text() == "theirs, too"


def test_one_that_is_too_much_to_be_moved_says_what_to_do(machine, clouds, cloud, drive, big):
    moved = drive / "moved"
    big.rename(moved)
    said = machine.oort("sync", status=1)
    assert str(moved) in said and "fewer at once" in said, said
    assert "move it back, and what is in it in parts" in said, said
    assert "/big/large/29.txt" in clouds.tree(cloud)
    assert (moved / "large" / "29.txt").read_text() == "big/large 29"
    # As it says.
    moved.rename(big)
    machine.sync()
    moved.mkdir()
    for child in list(big.iterdir()):
        if child.name != "large":
            child.rename(moved / child.name)
    (moved / "large").mkdir()
    for child in list((big / "large").iterdir()):
        child.rename(moved / "large" / child.name)
    (big / "large").rmdir()
    big.rmdir()
    machine.sync()
    tree = clouds.tree(cloud)
    assert "/big" not in tree and len(tree) == len(KEPT) + 3 + 3 + 30 + 4
    assert clouds.content(cloud, "/moved/large/29.txt") == b"big/large 29"
