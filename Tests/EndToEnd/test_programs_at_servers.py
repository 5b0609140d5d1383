"""Ordinary programs on the mount of a server of a person's own; afterwards the server has what the disk
has, and a second machine shows it."""

import errno
import os
import shutil

import pytest

from machine import Machine, eventually
from servers import Server
from test_programs import commit_to_a_clone
from test_save_dances import office, replace, rsync
from test_servers import local_tree


@pytest.fixture(params=["sftp", "ftp", "webdav", "sabre", "seaweedfs"])
def server(request, folder):
    server = Server(request.param, folder)
    if server.kind == "seaweedfs":
        server.make_bucket()
    yield server
    server.stop()


def mounted(machine, server):
    """A machine's folder of the account."""
    machine.mount()
    return machine.ready("s3" if server.kind == "seaweedfs" else server.kind)


@pytest.fixture
def drive(machine, server):
    server.login(machine)
    return mounted(machine, server)


@pytest.fixture
def two(folder, clouds, server):
    """A second machine with the same account, not mounted yet."""
    machine = Machine(folder, clouds, "two")
    server.login(machine)
    yield machine
    machine.clean()


def arrives(server, there, wanted):
    """Fails where the server does not hold exactly this, or a second machine does not come to show it."""
    if server.kind != "seaweedfs":  # whose files lie in volumes
        server.holds(wanted)

    def is_shown():
        try:
            return local_tree(there) == wanted
        except OSError as error:
            # The content was replaced, and the machine has no news of its successor yet; or a file that a
            # program had beside the one that it saved was listed, and has gone since.
            if error.errno not in (errno.ESTALE, errno.ENOENT):
                raise
            return False
    eventually(is_shown, "the other machine shows it")


def tree_of(folder):
    """A tree with what programs stumble over."""
    (folder / "a" / "b").mkdir(parents=True)
    (folder / "empty folder").mkdir()
    (folder / "empty").write_bytes(b"")
    (folder / "a" / "one.txt").write_text("one\n")
    (folder / "a" / "b" / "Grüße 文字 🌍").write_text("names\n")
    (folder / "a" / ".hidden").write_text("dot\n")
    (folder / "a" / "big").write_bytes(os.urandom(2_500_000))
    for number in range(30):
        (folder / "a" / "b" / f"small {number}").write_text(f"{number}\n" * number)
    return folder


def below(name, folder):
    return {name: None} | {f"{name}/{path}": data for path, data in local_tree(folder).items()}


def mount_without_cache(machine):
    machine.unmount()
    shutil.rmtree(machine.cache)
    machine.mount()


def test_tar(machine, server, drive, folder, two):
    local = tree_of(folder / "tree")
    machine.run("tar", "-C", local, "-cf", folder / "t.tar", ".")
    (drive / "out").mkdir()
    machine.run("tar", "-C", drive / "out", "-xf", folder / "t.tar")
    machine.sync()
    arrives(server, mounted(two, server), below("out", local))
    mount_without_cache(machine)
    machine.run("tar", "-C", drive / "out", "-cf", folder / "back.tar", ".")
    (folder / "back").mkdir()
    machine.run("tar", "-C", folder / "back", "-xf", folder / "back.tar")
    machine.run("diff", "-r", local, folder / "back")


def test_rsync_sends_nothing_the_second_time(machine, server, drive, folder, two):
    local = tree_of(folder / "tree")
    for path in local.rglob("*"):
        os.utime(path, (1_600_000_000, 1_600_000_000))
    # Times of folders change at a server with all that comes into them.
    arguments = ["rsync", "-a", "--omit-dir-times", "--itemize-changes", f"{local}/", f"{drive}/tree/"]
    machine.run(*arguments)
    machine.sync()
    assert machine.run(*arguments).stdout == ""
    machine.unmount()
    machine.mount()
    assert machine.run(*arguments).stdout == ""
    arrives(server, mounted(two, server), below("tree", local))


def test_git(machine, server, drive, folder, two):
    commit_to_a_clone(machine, folder, drive)
    machine.sync()
    there = mounted(two, server) / "work"
    two.run("git", "-C", there, "fsck", "--strict")
    two.run("git", "clone", "-q", there, folder / "again")
    assert two.run("git", "-C", folder / "again", "log", "--format=%s").stdout == "second\nfirst\n"


def test_sqlite(machine, server, drive, two):
    database = drive / "data.sqlite"
    machine.run(
        "sqlite3", database,
        "create table t(n integer); with recursive c(n) as (select 1 union all select n+1 from c "
        "where n < 5000) insert into t select n from c; delete from t where n % 7 = 0;")
    machine.sync()
    there = mounted(two, server)
    arrives(server, there, {"data.sqlite": database.read_bytes()})
    result = two.run(
        "sqlite3", there / "data.sqlite", "pragma integrity_check; select count(*) from t;")
    assert result.stdout == "ok\n4286\n"


@pytest.mark.parametrize("save", [replace, rsync, office], ids=lambda save: save.__name__)
def test_saves(machine, server, drive, two, save):
    """Each save is one new content of the file, and nothing of the way there is left."""
    file = drive / "letter.txt"
    file.write_text("the first draft")
    machine.sync()
    there = mounted(two, server)
    arrives(server, there, {"letter.txt": b"the first draft"})
    text = "the first draft"
    for number in range(3):
        new = f"draft {number}, which is longer than the last one was" + "!" * number
        save(file, machine.sync if number == 1 else lambda: None, text, new)
        text = new
        machine.sync()
        arrives(server, there, {"letter.txt": text.encode()})
