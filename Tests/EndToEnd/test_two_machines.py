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


def test_a_folder_that_both_make_at_once_is_one_folder(machines, clouds, folder):
    """Each makes a tree of its own with the same folders, within one round trip of the other."""
    # As long as both are sure to ask for news before either has made anything.
    clouds.weather("drive", latency_ms=2000)
    both = drives(machines)

    def make(drive, name):
        (drive / "d" / "sub").mkdir(parents=True)
        for place in ("d", "d/sub"):
            (drive / place / name).write_text(f"{place} of {name}")
            (drive / place / "both.txt").write_text(f"{place}/both.txt of {name}")

    def folders():
        return sorted(i["path"] for i in clouds.items("drive", "none") if i["kind"] == "folder")

    at_once(*[lambda d=d, n=n: make(d, n) for d, n in zip(both, ("one.txt", "two.txt"))])
    inode = [os.stat(drive / "d").st_ino for drive in both]
    eventually(lambda: folders().count("/d") == 2, "both have made theirs")
    clouds.weather("drive")
    eventually(lambda: folders() == ["/d", "/d/sub"], "there is one of each")
    for machine in machines:
        machine.sync()
    eventually(lambda: agreed(clouds, machines), "both show the same")
    assert [os.stat(drive / "d").st_ino for drive in both] == inode
    texts = sorted(f"{p} of {n}" for n in ("one.txt", "two.txt")
                   for p in ("d", "d/sub", "d/both.txt", "d/sub/both.txt"))
    third = Machine(folder, clouds, "three")
    try:
        third.login("drive")
        third.mount()
        third.ready("drive")
        assert agreed(clouds, [third])
        for drive in drives([*machines, third]):
            files = [path for path in drive.rglob("*") if path.is_file()]
            assert sorted(path.read_text() for path in files) == texts
    finally:
        third.clean()
    assert folders() == ["/d", "/d/sub"]
    check.folders_once(clouds.items("drive", "none"), set())


def test_the_torture_counts_folders_that_two_machines_made_as_doubled():
    def made(second, parent="root", kind="folder"):
        return {
            "kind": kind, "parts": ["d"], "path": "/d", "parent": parent,
            "created": f"2026-01-01T10:00:{second:02}.000Z"}

    check.folders_once([made(1), made(2, parent="other"), made(3, kind="file")], set())
    check.folders_once([made(1), made(2)], {"d"})
    check.folders_once([made(1), made(2) | {"created": "2026-01-01T10:03:00.000Z"}], set())
    with pytest.raises(check.Discrepancy, match="doubled: .* /d of "):
        check.folders_once([made(1), made(2)], set())
