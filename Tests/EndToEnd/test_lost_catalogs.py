"""A catalog that is lost, or an older copy of itself: what was not uploaded is never taken away."""

import pathlib

import pytest

from machine import eventually, read

ONLY = "the only copy"


@pytest.fixture
def drive(machine, clouds):
    """An account whose service cannot be reached, with a file that exists nowhere else."""
    machine.login("drive")
    machine.mount()
    drive = machine.ready("drive")
    (drive / "before.txt").write_text("sent before")
    machine.sync()
    clouds.gates["drive"].shut()
    (drive / "only.txt").write_text(ONLY)
    return drive


def lose(machine, *endings):
    for ending in endings:
        (machine.state / f"catalog.sqlite{ending}").unlink(missing_ok=True)


def aside(machine):
    """What lies in the folders that the status names."""
    folders = machine.status()["mount"]["folders_aside"]
    said = machine.oort("status")
    assert all(folder in said for folder in folders)
    return [file.read_text() for folder in folders for file in pathlib.Path(folder).glob("*/*")]


@pytest.mark.parametrize("endings", [
    ("-wal",), ("-shm",), ("-wal", "-shm"), ()], ids=lambda endings: " ".join(endings) or "none")
def test_a_catalog_that_was_closed_needs_only_its_main_file(machine, clouds, drive, endings):
    machine.unmount()
    lose(machine, *endings)
    machine.mount()
    assert (drive / "only.txt").read_text() == ONLY
    assert aside(machine) == []
    clouds.gates["drive"].open()
    machine.sync()
    assert clouds.content("drive", "/only.txt") == ONLY.encode()


@pytest.mark.parametrize("endings", [
    ("-wal",), ("-wal", "-shm"), ("",), ("", "-wal"), ("", "-wal", "-shm")],
    ids=lambda endings: " ".join(ending or "main" for ending in endings))
def test_a_catalog_that_a_kill_left_and_lost_parts_of(machine, clouds, drive, endings):
    machine.kill()
    lose(machine, *endings)
    clouds.gates["drive"].open()
    machine.mount()
    assert aside(machine) == [ONLY]
    drive = machine.ready("drive")
    eventually(lambda: read(drive / "before.txt") == "sent before", "the tree is read anew")
    (drive / "new.txt").write_text("new")
    machine.sync()
    machine.unmount()
    machine.mount()
    assert aside(machine) == [ONLY], "the next mount keeps it, and adds nothing"
    assert set(clouds.tree("drive")) == {"/before.txt", "/new.txt"}


def test_an_older_copy_of_the_catalog(machine, clouds, drive):
    machine.unmount()
    copy = (machine.state / "catalog.sqlite").read_bytes()
    machine.mount()
    (drive / "later.txt").write_text("later")
    machine.unmount()
    lose(machine, "", "-wal", "-shm")
    (machine.state / "catalog.sqlite").write_bytes(copy)
    clouds.gates["drive"].open()
    machine.mount()
    assert sorted(aside(machine)) == ["later", ONLY]
    machine.ready("drive")
    # Its bytes are not where the old catalog says: that is reported, and no others are sent in their place.
    machine.oort("sync", "--timeout", "20s", status=1)
    assert set(clouds.tree("drive")) == {"/before.txt"}
    assert (drive / "before.txt").read_text() == "sent before"


def test_kills_raise_no_false_alarm(machine, clouds, drive):
    for number in range(5):
        for step in range(30):
            (drive / f"{number} {step}").write_text(ONLY)
            (drive / f"{number} {step}").write_text("again")
            if step % 3 == 0:
                (drive / f"{number} {step}").unlink()
        machine.kill()
        machine.mount()
        assert aside(machine) == []
    assert (drive / "only.txt").read_text() == ONLY
