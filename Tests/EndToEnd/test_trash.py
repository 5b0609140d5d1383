"""What was deleted: listed with where it lay, and brought back."""

import json
import os
import sys
import time

import pytest

from machine import eventually, read
from servers import Server
from test_desktop_trash import Trash, settled

# Microsoft lets no program list the recycle bin.
WITH_TRASH = ["dropbox", "drive"]


@pytest.fixture(params=WITH_TRASH)
def cloud(request):
    return request.param


def listed(machine, *path):
    return json.loads(machine.oort("trash", *path, "--json"))["entries"]


def make(machine, drive):
    (drive / "papers" / "old").mkdir(parents=True)
    (drive / "papers" / "note.txt").write_text("the note")
    (drive / "papers" / "old" / "deep.txt").write_text("deep")
    (drive / "stays.txt").write_text("stays")
    machine.sync()


def test_a_file_comes_back(machine, clouds, cloud, drive):
    make(machine, drive)
    note = drive / "papers" / "note.txt"
    known = clouds.tree(cloud)["/papers/note.txt"]["id"]
    assert "The trash is empty." in machine.oort("trash")
    note.unlink()
    machine.sync()
    entry, = listed(machine)
    assert entry["path"] == str(note) and entry["account"] == cloud and entry["size"] == 8
    assert entry["kind"] == "file" and entry["deleted"] and entry["id"].startswith(f"{cloud}:")
    assert listed(machine, drive / "papers") == [entry]
    assert listed(machine, drive / "stays.txt") == []
    said = machine.oort("trash", drive)
    assert str(note) in said and entry["id"] in said and "8 B" in said
    assert f"{note} is back." in machine.oort("restore", note)
    # At once, with its id, and so its history and links.
    assert read(note) == "the note"
    assert clouds.tree(cloud)["/papers/note.txt"]["id"] == known
    assert listed(machine) == []
    machine.sync()
    assert machine.status_code() == 0


def test_a_folder_comes_back_with_all_in_it(machine, clouds, cloud, drive):
    make(machine, drive)
    machine.run("rm", "-r", drive / "papers")
    machine.sync()
    entry, = listed(machine)
    assert entry["path"] == str(drive / "papers")
    machine.oort("restore", drive / "papers")
    eventually(lambda: (drive / "papers" / "old" / "deep.txt").exists(), "all shows")
    assert read(drive / "papers" / "old" / "deep.txt") == "deep"
    assert read(drive / "papers" / "note.txt") == "the note"
    machine.sync()
    assert set(clouds.tree(cloud)) == {
        "/papers", "/papers/note.txt", "/papers/old", "/papers/old/deep.txt", "/stays.txt"}


def test_nothing_is_replaced(machine, clouds, cloud, drive):
    make(machine, drive)
    note = drive / "papers" / "note.txt"
    for text in ("first", "second"):
        note.write_text(text)
        machine.sync()
        note.unlink()
        machine.sync()
    note.write_text("the new one")
    machine.sync()
    said = machine.oort("restore", note, status=1)
    assert "is there" in said and "--to" in said
    back = drive / "back.txt"
    if cloud == "dropbox":
        # There a path that has a file again is no deleted one.
        said = machine.oort("restore", note, "--to", back, status=1)
        assert "nothing that lay at" in said
        note.unlink()
        machine.sync()
    machine.oort("restore", note, "--to", drive / "stays.txt", status=1)
    machine.oort("restore", note, "--to", back)
    assert not note.exists() or read(note) == "the new one"
    assert read(drive / "stays.txt") == "stays"
    assert read(back) == {"dropbox": "the new one", "drive": "second"}[cloud]
    # Another client took the name, which is not shown here yet.
    (drive / "papers" / "other.txt").write_text("other")
    machine.sync()
    (drive / "papers" / "other.txt").unlink()
    machine.sync()
    clouds.edit(cloud, "write", "/papers/other.txt", text="theirs")
    assert "nothing" in machine.oort("restore", drive / "papers" / "other.txt", status=1)
    assert clouds.content(cloud, "/papers/other.txt") == b"theirs"


def test_by_id_and_where_the_folder_is_gone(machine, clouds, cloud, drive):
    make(machine, drive)
    (drive / "papers" / "note.txt").unlink()
    machine.sync()
    entry, = listed(machine)
    if cloud == "drive":
        # At Dropbox it goes with its folder.
        machine.run("rm", "-r", drive / "papers")
        machine.sync()
    assert "no such-thing" in machine.oort("restore", f"{cloud}:such-thing", status=1)
    machine.oort("restore", entry["id"], "--to", drive)
    assert read(drive / "note.txt") == "the note"


def test_what_the_cloud_has_not_heard(machine, clouds, cloud, drive):
    make(machine, drive)
    machine.oort("pause")
    (drive / "stays.txt").unlink()
    said = machine.oort("restore", drive / "stays.txt", status=1)
    assert "has not heard" in said and "oort sync" in said
    machine.oort("resume")
    machine.sync()
    machine.oort("restore", drive / "stays.txt")
    assert read(drive / "stays.txt") == "stays"


def test_many_are_listed_and_a_lost_answer_does_no_harm(machine, clouds, cloud, drive):
    for number in range(60):
        (drive / f"file {number}").write_text(f"{number}")
    machine.sync()
    for number in range(60):
        (drive / f"file {number}").unlink()
    machine.sync()
    assert {entry["name"] for entry in listed(machine)} == {f"file {n}" for n in range(60)}
    route = {"dropbox": "files/restore", "drive": "files.update"}[cloud]
    clouds.fault(cloud, route=route, fault="done_but_no_answer")
    machine.oort("restore", drive / "file 7")
    assert read(drive / "file 7") == "7"
    assert [path for path in clouds.tree(cloud)] == ["/file 7"]


def papers(machine):
    """A folder with eight files that was deleted at Dropbox, where it comes back file by file."""
    machine.login("dropbox")
    machine.mount()
    folder = machine.ready("dropbox") / "papers"
    folder.mkdir()
    for number in range(8):
        (folder / f"f{number}").write_text(f"{number}")
    machine.sync()
    return folder


def is_whole(folder):
    return {path.name: read(path) for path in folder.iterdir()} == {
        f"f{number}": f"{number}" for number in range(8)}


@pytest.mark.clouds("dropbox")
@pytest.mark.parametrize("place", ["where it lay", "another place"])
def test_a_folder_that_came_back_in_part_goes_on(machine, clouds, place):
    folder = papers(machine)
    machine.run("rm", "-r", folder)
    machine.sync()
    target, to = folder, []
    if place == "another place":
        target = folder.with_name("again")
        to = ["--to", target]
    for skipped in (3, 2):
        clouds.fault("dropbox", route="files/restore", fault="no_answer", skipping=skipped, times=20)
        said = machine.oort("restore", folder, *to, status=1)
        clouds.no_faults("dropbox")
        assert f"not whole, {3 if skipped == 3 else 5} of 8 files" in said and str(folder) in said
    assert f"{target} is back." in machine.oort("restore", folder, *to)
    eventually(lambda: is_whole(target), "all of it shows")
    assert len(clouds.tree("dropbox")) == 9
    if not to:
        # It is no restore that could go on any more.
        said = machine.oort("restore", folder, status=1)
        assert "is there" in said and f"oort trash {folder}" in said


@pytest.mark.clouds("dropbox")
def test_a_folder_comes_back_where_the_answer_to_its_making_is_lost(machine, clouds):
    folder = papers(machine)
    machine.run("rm", "-r", folder)
    machine.sync()
    clouds.fault("dropbox", route="files/create_folder_v2", fault="done_but_no_answer")
    machine.oort("restore", folder)
    eventually(lambda: is_whole(folder), "all of it shows")


@pytest.mark.clouds("drive")
def test_what_lay_in_a_folder_is_listed_beside_thousands(machine, clouds):
    clouds.edit("drive", "mkdir", "/Junk")
    clouds.edit("drive", "write", "/Papers/thesis.txt", text="the thesis")
    junk = [f"/Junk/{number}" for number in range(4200)]
    clouds.edits("drive", [{"op": "write", "path": path, "text": "x"} for path in junk])
    clouds.edit("drive", "trash", "/Papers/thesis.txt")
    clouds.edits("drive", [{"op": "trash", "path": path} for path in junk])
    machine.login("drive")
    machine.mount()
    drive = machine.ready("drive")
    assert "There is more" in machine.oort("trash", drive)
    entry, = listed(machine, drive / "Papers")
    assert entry["path"] == str(drive / "Papers" / "thesis.txt")
    assert "There is more" not in machine.oort("trash", drive / "Papers")


def test_a_link_comes_back_as_a_link(machine, clouds, cloud, drive):
    for target in ("first", "second"):
        (drive / "link").symlink_to(target)
        machine.sync()
        (drive / "link").unlink()
        machine.sync()
        assert str(drive / "link") in {entry["path"] for entry in listed(machine)}
        assert f"{drive / 'link'} is back." in machine.oort("restore", drive / "link")
        assert os.readlink(drive / "link") == target
        (drive / "link").unlink()
        machine.sync()
    machine.oort("restore", drive / "link", "--to", drive / "another")
    assert os.readlink(drive / "another") == "second"
    assert set(clouds.tree(cloud)) == {"/another.rclonelink"}


def test_names_of_all_kinds(machine, clouds, cloud, drive):
    name = "tab\there, 100% 'quoted' ünd 日本"
    (drive / name).write_text("odd")
    machine.sync()
    (drive / name).unlink()
    machine.sync()
    # Nothing of it acts on the terminal.
    assert "tab\\there" in machine.oort("trash")
    machine.oort("restore", drive / name)
    assert read(drive / name) == "odd"


def test_without_a_mount_and_with_bad_paths(machine, clouds, cloud, drive):
    make(machine, drive)
    assert "nothing that lay at" in machine.oort("restore", drive / "never.txt", status=1)
    assert "an account" in machine.oort("restore", drive, status=1)
    assert f"nothing that lay at or below {drive}/never.txt" in machine.oort("trash", drive / "never.txt")
    assert "does not lie in the mount" in machine.oort("trash", "/usr", status=1)
    assert "no account" in machine.oort("trash", machine.mount_point / "none", status=1)
    machine.oort("restore", status=2)
    machine.unmount()
    for arguments in (["trash"], ["restore", drive / "x"]):
        said = machine.oort(*arguments, status=1)
        assert "No mount is running" in said and "oort mount" in said


def test_onedrive_says_where_its_trash_is(machine, clouds):
    machine.login("onedrive")
    machine.mount()
    drive = machine.ready("onedrive")
    said = machine.oort("trash", drive, status=1)
    assert "web page" in said and "onedrive.com" in said
    # Among others it is a note.
    assert "web page" in machine.oort("trash", status=1)
    assert "web page" in machine.oort("restore", drive / "x", status=1)


def test_a_server_of_ones_own(machine, folder):
    server = Server("sftp", folder)
    try:
        server.login(machine)
        machine.mount()
        drive = machine.ready("sftp")
        (drive / "100% of it").mkdir()
        (drive / "100% of it" / "note.txt").write_text("the note")
        (drive / "top.txt").write_text("top")
        machine.sync()
        (drive / "100% of it" / "note.txt").unlink()
        (drive / "top.txt").unlink()
        machine.sync()
        entries = {entry["path"]: entry for entry in listed(machine)}
        assert set(entries) == {
            str(drive / "100% of it" / "note.txt"), str(drive / "top.txt")}
        assert entries[str(drive / "top.txt")]["size"] == 3
        machine.oort("restore", drive / "100% of it" / "note.txt")
        machine.oort("restore", entries[str(drive / "top.txt")]["id"], "--to", drive / "up.txt")
        assert read(drive / "100% of it" / "note.txt") == "the note"
        assert read(drive / "up.txt") == "top"
        assert listed(machine) == [] and list((server.root / ".oort-trash").iterdir()) == []
        (drive / "link").symlink_to("somewhere")
        for target in (drive / "link", drive / "another"):
            machine.sync()
            (drive / "link").unlink()
            machine.sync()
            machine.oort("restore", drive / "link", "--to", target)
            assert os.readlink(target) == "somewhere"
        assert os.readlink(server.root / "another") == "somewhere"
    finally:
        server.stop()


# Stands before an SFTP server, writes down which folders of the trash are opened, and keeps the first few
# of these requests back until there are eight.
RELAY = """
import subprocess, sys
server = subprocess.Popen(["/usr/lib/openssh/sftp-server"], stdin=subprocess.PIPE)
source, held, is_held = sys.stdin.buffer, [], True
while len(head := source.read(4)) == 4:
    body = source.read(int.from_bytes(head, "big"))
    if body[0] == 11 and b"/.oort-trash/" in body:
        with open(LOG, "a") as log:
            print("opened", file=log)
        if is_held:
            held.append(head + body)
            if len(held) < 8:
                continue
            head, body, is_held = b"", b"".join(held), False
    server.stdin.write(head + body)
    server.stdin.flush()
server.stdin.close()
server.wait()
"""


def test_a_servers_deletions_are_looked_into_together(machine, folder):
    script, log = folder / "relay.py", folder / "opened"
    script.write_text(RELAY.replace("LOG", repr(str(log))))
    server = Server("sftp", folder, subsystem=f"{sys.executable} {script}")
    try:
        server.login(machine)
        machine.mount()
        drive, trash = machine.ready("sftp"), Trash(machine)
        names = [f"{number}.txt" for number in range(12)]
        for name in names:
            (drive / name).write_text(name)
        settled(machine)
        for name in names:
            trash.put(drive / name)
        machine.sync()
        # One after the other they would wait for ever.
        assert {entry["name"] for entry in listed(machine, drive)} == set(names)
        assert len(log.read_text().split()) == 12
        log.unlink()
        assert read(trash.bring_back("7.txt")) == "7.txt"
        assert len(log.read_text().split()) == 1
    finally:
        server.stop()


@pytest.mark.parametrize("kind", ["sftp", "ftp"])
def test_what_lay_under_a_long_path(machine, folder, kind):
    server = Server(kind, folder)
    try:
        server.login(machine)
        machine.mount()
        drive, trash = machine.ready(kind), Trash(machine)
        deep = drive
        for number in range(9):
            deep = deep / ("Ж" * 60 + f"{number}%")
        deep.mkdir(parents=True)
        for name in ("one.txt", "two.txt", "three.txt"):
            (deep / name).write_text(name)
        settled(machine)
        (deep / "one.txt").unlink()
        (deep / "two.txt").unlink()
        names = [trash.put(deep / "three.txt")]
        machine.sync()
        assert {entry["path"] for entry in listed(machine, deep)} == {
            str(deep / name) for name in ("one.txt", "two.txt", "three.txt")}
        machine.oort("restore", deep / "one.txt")
        assert read(deep / "one.txt") == "one.txt"
        ids = {entry["name"]: entry["id"] for entry in listed(machine)}
        machine.oort("restore", ids["two.txt"])
        assert read(deep / "two.txt") == "two.txt"
        assert read(trash.bring_back(names[0])) == "three.txt"
        assert listed(machine) == [] and list((server.root / ".oort-trash").iterdir()) == []
        # A folder, and what was deleted by an older Oort, which left such a path out.
        names = [trash.put(deep)]
        older = server.root / ".oort-trash" / f"{int(time.time())}-ab12"
        older.mkdir()
        (older / "older.txt").write_text("older")
        machine.sync()
        trash.bring_back(names[0])
        eventually(lambda: read(deep / "one.txt") == "one.txt", "all is back")
        entry, = listed(machine)
        assert entry.get("path") is None
        machine.oort("restore", entry["id"], "--to", drive / "older.txt")
        assert read(drive / "older.txt") == "older"
    finally:
        server.stop()


def test_a_server_without_a_trash(machine, folder):
    server = Server("webdav", folder)
    try:
        server.login(machine)
        machine.mount()
        drive = machine.ready("webdav")
        assert "WebDAV has no trash" in machine.oort("trash", drive, status=1)
        assert "WebDAV has no trash" in machine.oort("trash", status=1)
        assert "WebDAV has no trash" in machine.oort("restore", drive / "x", status=1)
    finally:
        server.stop()
