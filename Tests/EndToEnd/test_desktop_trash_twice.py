"""Two things of one name in the desktop's trash: what comes back is the one that is taken out, whatever
the service's own trash knows of it."""

import os
import sqlite3
import time

import pytest

from machine import eventually, read
from servers import Server
from test_desktop_trash import Trash, settled

OLD, NEW = "OLD, the first report", "NEW, which is another one"


@pytest.fixture(params=[
    pytest.param(name, marks=pytest.mark.clouds(name if name in ("nextcloud", "drive") else "dropbox"))
    for name in ("sftp", "ftp", "seaweedfs", "nextcloud", "drive")])
def place(machine, folder, request):
    """The folder of an account, and its trash in the desktop."""
    kind = request.param
    server = None
    try:
        if kind in ("nextcloud", "drive"):
            machine.login(kind)
            account = kind
        else:
            server = Server(kind, folder)
            if kind == "seaweedfs":
                server.make_bucket(keeps_versions=True)
            server.login(machine)
            account = "s3" if kind == "seaweedfs" else kind
        machine.mount()
        yield machine.ready(account), Trash(machine)
    finally:
        if server:
            server.stop()


def put(machine, trash, path, text):
    """Makes a file that the service has, and moves it to the trash."""
    path.write_text(text)
    settled(machine)
    return trash.put(path)


def pass_time(until):
    eventually(lambda: time.time() > until, "the clock is there", timeout=60)


def test_the_second_comes_back_as_itself(machine, place):
    drive, trash = place
    one = put(machine, trash, drive / "report.txt", OLD)
    machine.sync()
    sent = time.time()
    pass_time(sent + 2)  # services name deletions by their seconds
    (drive / "report.txt").write_text(NEW)
    settled(machine)
    machine.oort("pause")
    two = trash.put(drive / "report.txt")
    # The first deletion is nearer by the clock than that of the second, which is sent now only.
    deleted = time.time()
    pass_time(deleted + (deleted - sent) + 2)
    machine.oort("resume")
    machine.sync()
    assert trash.names == {one, two}
    assert read(trash.bring_back(two)) == NEW
    assert trash.names == {one}
    os.rename(trash.folder / "files" / one, drive / "old.txt")
    assert read(drive / "old.txt") == OLD and read(drive / "report.txt") == NEW
    assert trash.names == set()


def test_the_first_comes_back_as_itself(machine, place):
    drive, trash = place
    one = put(machine, trash, drive / "report.txt", OLD)
    machine.sync()
    pass_time(time.time() + 2)
    two = put(machine, trash, drive / "report.txt", NEW)
    machine.sync()
    assert read(trash.bring_back(one)) == OLD
    # Its own place is taken now.
    with pytest.raises(FileExistsError):
        os.rename(trash.folder / "files" / two, drive / "report.txt")
    os.rename(trash.folder / "files" / two, drive / "new.txt")
    assert read(drive / "new.txt") == NEW and read(drive / "report.txt") == OLD


def test_beside_a_new_one(machine, place):
    drive, trash = place
    one = put(machine, trash, drive / "report.txt", OLD)
    machine.sync()
    (drive / "report.txt").write_text(NEW)
    settled(machine)
    os.rename(trash.folder / "files" / one, drive / "old.txt")
    assert read(drive / "old.txt") == OLD and read(drive / "report.txt") == NEW


def test_what_a_command_brings_back_is_forgotten_and_nothing_else(machine, place):
    """`oort restore` brings back what `rm` deleted last: what a file manager deleted before stays."""
    drive, trash = place
    one = put(machine, trash, drive / "report.txt", OLD)
    machine.sync()
    pass_time(time.time() + 2)
    (drive / "report.txt").write_text(NEW)
    settled(machine)
    (drive / "report.txt").unlink()
    machine.sync()
    machine.oort("restore", drive / "report.txt")
    assert read(drive / "report.txt") == NEW
    assert trash.names == {one}
    os.rename(trash.folder / "files" / one, drive / "old.txt")
    assert read(drive / "old.txt") == OLD
    two = put(machine, trash, drive / "other.txt", "another one")
    machine.sync()
    assert trash.names == {two}
    machine.oort("restore", drive / "other.txt")
    assert trash.names == set()


@pytest.mark.clouds("dropbox")
def test_what_nothing_tells_apart_is_not_guessed(machine, clouds):
    """Dropbox says neither the id nor the time of a deleted folder."""
    machine.login("dropbox")
    machine.mount()
    drive, trash = machine.ready("dropbox"), Trash(machine)
    names = []
    for text in (OLD, NEW):
        (drive / "papers").mkdir()
        (drive / "papers" / f"{text}.txt").write_text(text)
        settled(machine)
        names.append(trash.put(drive / "papers"))
        machine.sync()
    with pytest.raises(OSError):
        trash.bring_back(names[0])
    assert os.listdir(drive) == [] and trash.names == set(names)
    trash.bring_back(names[1])
    eventually(lambda: read(drive / "papers" / f"{NEW}.txt") == NEW, "all is back")
    assert trash.names == {names[0]}


@pytest.mark.clouds("dropbox")
def test_what_an_older_oort_deleted(machine, clouds, folder):
    """Neither its rows nor its folders at a server say which item it was."""
    server = Server("sftp", folder)
    try:
        server.login(machine)
        machine.mount()
        drive, trash = machine.ready("sftp"), Trash(machine)
        names = {}
        for name, texts in {"differ.txt": (OLD, NEW), "alike.txt": ("one", "two")}.items():
            names[name] = []
            for text in texts:
                pass_time(int(time.time()) + 1)
                names[name].append(put(machine, trash, drive / name, text))
                machine.sync()
        machine.unmount()
        with sqlite3.connect(machine.state / "catalog.sqlite") as catalog:
            assert catalog.execute("UPDATE trashed SET mark = NULL").rowcount == 4
        catalog.close()
        for path in (server.root / ".oort-trash").iterdir():
            seconds, number, *_, item = path.name.split("-")
            path.rename(path.with_name(f"{seconds}-{number}@{item.partition('@')[2]}"))
        machine.mount()
        machine.ready("sftp")
        assert read(trash.bring_back(names["differ.txt"][1])) == NEW
        with pytest.raises(OSError):
            trash.bring_back(names["alike.txt"][1])
        assert os.listdir(drive) == ["differ.txt"]
        assert trash.names == {names["differ.txt"][0], *names["alike.txt"]}
        assert read(trash.bring_back(names["alike.txt"][0])) == "one"
    finally:
        server.stop()
