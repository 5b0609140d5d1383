"""Two machines on one account: both see the same names."""

import collections
import os
import threading

import pytest

from machine import Machine, eventually
from torture import check


@pytest.fixture
def machines(folder, clouds):
    """Two machines with the Drive account."""
    machines = [Machine(folder, clouds, name) for name in ("one", "two")]
    try:
        for machine in machines:
            machine.login("drive")
            machine.mount()
        for machine in machines:
            machine.ready("drive")
        yield machines
    finally:
        for machine in machines:
            machine.clean()


def drives(machines):
    return [machine.mount_point / "drive" for machine in machines]


def agreed(clouds, machines):
    """Whether all machines show the service's items under the same names."""
    wanted = sorted(path for path, _, _ in check.service_listing(clouds.items("drive")))
    return all(paths(drive) == wanted for drive in drives(machines))


def paths(drive):
    """Every path below; nothing is opened, since names may change meanwhile."""
    return sorted(
        os.path.relpath(os.path.join(folder, name), drive)
        for folder, folders, files in os.walk(drive) for name in folders + files)


def at_once(*actions):
    threads = [threading.Thread(target=action) for action in actions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_names_taken_twice_have_the_same_numbers_everywhere(machines, clouds, folder):
    """Made by both machines and by others, removed and renamed: all show the same, a third too."""
    for number in range(3):
        at_once(*[
            lambda d=d: (d / f"f{number}.txt").write_text(f"{number} of {d}")
            for d in drives(machines)])
    for number in range(3):
        clouds.edit("drive", "write", [f"other{number}"], text="x")
        clouds.edit("drive", "move", [f"other{number}"], to=["f1.txt"])
    at_once(*[machine.sync for machine in machines])
    eventually(lambda: agreed(clouds, machines), "both show the same numbers")
    names = collections.Counter(item["path"] for item in clouds.items("drive", "none"))
    assert names["/f1.txt"] >= 4
    (drives(machines)[0] / "f1.txt").unlink()
    (drives(machines)[1] / "f1 (2).txt").rename(drives(machines)[1] / "renamed.txt")
    for machine in machines:
        machine.sync()
    eventually(lambda: agreed(clouds, machines), "the others follow")
    third = Machine(folder, clouds, "three")
    try:
        third.login("drive")
        third.mount()
        third.ready("drive")
        assert agreed(clouds, [third])
    finally:
        third.clean()
    assert os.path.exists(drives(machines)[0] / "f1.txt")
