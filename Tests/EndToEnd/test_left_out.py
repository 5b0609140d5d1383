"""Folders of a service that this machine does not want to see (`leave_out` in the settings)."""

import errno
import json
import os

import pytest

from machine import eventually, read


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def leave_out(machine, cloud, *folders):
    base = machine.settings().split("\n[accounts.")[0]
    machine.write_settings(base + f"\n[accounts.{cloud}]\nleave_out = {json.dumps(folders)}\n")


def refused(code, act, *arguments):
    with pytest.raises(OSError) as error:
        act(*arguments)
    assert error.value.errno == code, error.value


@pytest.fixture
def drive(machine, clouds, cloud):
    clouds.edits(cloud, [
        {"op": "write", "path": "/archive/old/secret-plan.txt", "text": "old"},
        {"op": "write", "path": "/archive/old/deep/secret-list.txt", "text": "deep"},
        {"op": "write", "path": "/archive/new/secret-idea.txt", "text": "new"},
        {"op": "write", "path": "/huge/film.bin", "seed": 1, "size": 1 << 20},
        {"op": "write", "path": "/note.txt", "text": "note"}])
    leave_out(machine, cloud, "/archive/old", "huge")
    machine.login(cloud)
    machine.mount()
    return machine.ready(cloud)


def test_it_is_nowhere_to_be_seen(machine, clouds, cloud, drive):
    assert names(drive) == ["archive", "note.txt"] and names(drive / "archive") == ["new"]
    for path in ("huge", "huge/film.bin", "archive/old", "archive/old/deep/secret-list.txt"):
        refused(errno.ENOENT, os.stat, drive / path)
    found = machine.oort("search", "secret")
    assert "secret-idea.txt" in found and "plan" not in found and "list" not in found
    assert [os.path.basename(os.readlink(path)) for path in
            (machine.mount_point / ".search" / "secret").iterdir()] == ["secret-idea.txt"]
    said = machine.oort("share", drive / "huge", status=1)
    assert "left out" in said and "leave_out" in said
    # What is kept here of the folder above is what is shown of it.
    machine.oort("pin", drive)
    eventually(lambda: os.getxattr(drive / "note.txt", "user.oort.availability") == b"pinned",
               "it is kept")
    eventually(lambda: [pin["progress"]["files_here"] for pin in
                        json.loads(machine.oort("pins", "--json"))] == [2], "all is here")
    clouds.await_quiet(cloud)
    assert sum(route["bytes_out"] for route in clouds.traffic(cloud).values()) < 1 << 20
    # What others do in it does not show here, and the feed goes on.
    clouds.edit(cloud, "write", "/huge/other.bin", text="other")
    clouds.edit(cloud, "write", "/news.txt", text="news")
    eventually(lambda: names(drive) == ["archive", "news.txt", "note.txt"], "the news are there")


def test_nothing_is_made_over_it_and_nothing_of_it_deleted(machine, clouds, cloud, drive):
    before = set(clouds.tree(cloud))
    (drive / "own.txt").write_text("own")
    refused(errno.EPERM, os.mkdir, drive / "huge")
    refused(errno.EPERM, (drive / "archive" / "old").write_text, "x")
    refused(errno.EPERM, os.rename, drive / "own.txt", drive / "huge")
    refused(errno.EPERM, os.symlink, "x", drive / "huge")
    # The folder that holds it stays where it is, and goes to no trash.
    refused(errno.EPERM, os.rename, drive / "archive", drive / "shelf")
    trash = machine.mount_point / f".Trash-{os.getuid()}"
    (trash / "info" / "archive.trashinfo").write_text("[Trash Info]\nPath=x\n")
    refused(errno.EPERM, os.rename, drive / "archive", trash / "files" / "archive")
    # Nor does another one come to where something of it would be hidden.
    os.mkdir(drive / "box")
    os.mkdir(drive / "box" / "old")
    said = machine.run("rm", "-rf", drive / "archive", status=None)
    assert said.returncode != 0 and "not empty" in said.stdout, said.stdout
    assert names(drive / "archive") == []
    refused(errno.EPERM, os.rename, drive / "box", drive / "archive")
    machine.sync()
    tree = set(clouds.tree(cloud))
    gone = {"/archive/new", "/archive/new/secret-idea.txt"}
    assert tree == before - gone | {"/own.txt", "/box", "/box/old"}
    assert clouds.content(cloud, "/archive/old/secret-plan.txt") == b"old"


def test_taken_out_of_the_settings_it_is_back(machine, clouds, cloud, drive):
    machine.unmount()
    leave_out(machine, cloud, "/archive/old/deep", "/not/there")
    machine.mount()
    machine.ready(cloud)
    assert names(drive) == ["archive", "huge", "note.txt"]
    assert read(drive / "archive" / "old" / "secret-plan.txt") == "old"
    assert names(drive / "archive" / "old") == ["secret-plan.txt"]
    # Of what is not there nothing is hidden, and nothing is in the way.
    refused(errno.EPERM, os.mkdir, drive / "archive" / "old" / "deep")
    os.mkdir(drive / "not")
    refused(errno.EPERM, os.mkdir, drive / "not" / "there")
    # An item that another client moves out of it appears; one that is moved into it vanishes.
    clouds.edit(cloud, "move", "/archive/old/deep/secret-list.txt", to="/list.txt")
    eventually(lambda: read(drive / "list.txt") == "deep", "it came")
    clouds.edit(cloud, "move", "/note.txt", to="/archive/old/deep/note.txt")
    eventually(lambda: not (drive / "note.txt").exists(), "it went")
    machine.unmount()
    machine.write_settings(machine.settings().split("\n[accounts.")[0])
    machine.mount()
    machine.ready(cloud)
    assert read(drive / "archive" / "old" / "deep" / "note.txt") == "note"


def test_a_mistake_is_told(machine):
    for wrong in ('["/"]', '["a/../b"]', '"/a"'):
        machine.write_settings(f"[accounts.work]\nleave_out = {wrong}\n")
        said = machine.oort("mount", machine.mount_point, status=1)
        assert "accounts.work.leave_out" in said, said
