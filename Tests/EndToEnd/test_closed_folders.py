"""Folders that the account's login may not look into: they are never empty folders."""

import errno
import os
import shutil

import pytest

from hardened_server import HardenedServer
from machine import OORT, eventually
from servers import Server

pytestmark = pytest.mark.skipif(
    os.getuid() != 0, reason="only root gives a server a person of its own")


class PersonalFTP(Server):
    """ProFTPD, whose login is no longer root after the sign-in."""

    def _ftp(self):
        arguments = super()._ftp()
        users = self.folder / "users"
        fields = users.read_text().split(":")
        fields[2:4] = ["4711", "4711"]
        users.write_text(":".join(fields))
        shutil.chown(self.root, 4711, 4711)
        for above in (self.folder, self.folder.parent):
            above.chmod(0o711)
        return arguments


SERVERS = {"sftp": HardenedServer, "ftp": lambda folder: PersonalFTP("ftp", folder),
           "webdav": lambda folder: Server("webdav", folder)}


# To sabre/dav a folder that PHP may not list is an empty one, so nobody can know better.
@pytest.fixture(params=SERVERS)
def server(request, folder):
    server = SERVERS[request.param](folder)
    yield server
    server.stop()


class Closed:
    """A folder at a server, its file in it, that is its login's and lets nobody in."""

    def __init__(self, server, mode=0):
        self.folder = server.files if server.kind == "sftp" else server.root
        self.folder = self.folder / "above" / "closed"
        self.folder.mkdir(parents=True)
        (self.folder / "kept").write_text("kept")
        owner = ("www-data", "www-data") if server.kind == "webdav" else (4711, 4711)
        for path in (self.folder.parent, self.folder, self.folder / "kept"):
            shutil.chown(path, *owner)
        self.folder.chmod(mode)

    def holds_all(self):
        return (self.folder / "kept").read_text() == "kept"


def mounted(machine, server):
    server.login(machine)
    machine.mount()
    return machine.ready(server.kind)


def is_closed(folder):
    """Whether a program that lists a folder hears that it may not."""
    with pytest.raises(OSError) as refusal:
        os.listdir(folder)
    return refusal.value.errno == errno.EACCES


def test_nothing_takes_it_for_empty(machine, server, folder):
    closed = Closed(server)
    drive = mounted(machine, server)
    there = drive / "above" / "closed"
    assert is_closed(there)
    for change in (there.rmdir, (there / "new").mkdir, (there / "kept").read_text,
                   lambda: (there / "kept").write_text("new")):
        with pytest.raises(PermissionError):
            change()
    (folder / "backup" / "closed").mkdir(parents=True)
    (folder / "backup" / "closed" / "old").write_text("old")
    assert machine.run("rsync", "-a", "--delete", f"{drive}/above/", folder / "backup",
                       status=None).returncode != 0
    assert (folder / "backup" / "closed" / "old").exists()
    assert machine.run("rm", "-rf", drive / "above", status=None).returncode != 0
    assert machine.run("mv", drive / "above", folder / "elsewhere", status=None).returncode != 0
    machine.run(OORT, "sync", "--timeout", "20s", status=None)
    assert closed.holds_all() and is_closed(there)
    # As after a restart, from what was kept of it.
    machine.unmount()
    machine.mount()
    machine.ready(server.kind)
    assert is_closed(there)


def test_it_opens_for_whoever_looks_again(machine, server):
    closed = Closed(server)
    drive = mounted(machine, server)
    there = drive / "above" / "closed"
    assert is_closed(there)
    closed.folder.chmod(0o755)
    assert os.listdir(there) == ["kept"]
    assert (there / "kept").read_text() == "kept"
    (there / "kept").unlink()
    machine.sync()
    assert not (closed.folder / "kept").exists()
    eventually(lambda: os.listdir(there) == [], "it is an empty folder")
    (there / "new").write_text("new")
    machine.sync()
    assert (closed.folder / "new").read_text() == "new"


def test_what_was_known_of_it_stays(machine, server):
    closed = Closed(server, mode=0o755)
    drive = mounted(machine, server)
    there = drive / "above" / "closed"
    assert (there / "kept").read_text() == "kept"
    closed.folder.chmod(0)
    machine.run(OORT, "sync", "--timeout", "20s", status=None)
    assert os.listdir(there) == ["kept"]
    assert (there / "kept").read_text() == "kept"
    with pytest.raises(OSError):
        there.rmdir()


def test_it_may_be_listed_and_not_entered(machine, server):
    closed = Closed(server, mode=0o644)
    drive = mounted(machine, server)
    there = drive / "above" / "closed"
    assert is_closed(there)
    with pytest.raises(PermissionError):
        there.rmdir()
    closed.folder.chmod(0o755)
    assert os.listdir(there) == ["kept"]


@pytest.mark.parametrize("server", ["sftp", "ftp"], indirect=True)
def test_a_box_to_drop_into(machine, server):
    """As `incoming` of old: one may put something into it, and have what one knows the name of."""
    closed = Closed(server, mode=0o300)
    drive = mounted(machine, server)
    there = drive / "above" / "closed"
    assert is_closed(there)
    assert not (there / "other").exists()
    assert (there / "kept").read_text() == "kept"
    (there / "new").write_text("new")
    (there / "folder").mkdir()
    (there / "folder" / "deep").write_text("deep")
    machine.sync()
    assert (closed.folder / "new").read_text() == "new"
    assert (closed.folder / "folder" / "deep").read_text() == "deep"
    # What somebody else has put there under a name is not written over.
    (closed.folder / "theirs").write_text("theirs")
    shutil.chown(closed.folder / "theirs", 4711, 4711)
    assert (there / "theirs").read_text() == "theirs"
    assert sorted(os.listdir(there)) == ["folder", "kept", "new", "theirs"]
    with pytest.raises(OSError):
        there.rmdir()
    assert closed.holds_all()
