"""Servers of SFTP that are locked down: no shell, a prison, one session or two, nothing but new
cryptography; and some that take no changes. Programs work there as at any other, and what such a server
does not have nobody hears of."""

import os
import random
import shutil

import pytest

import test_servers
from hardened_server import HardenedServer
from machine import OORT, eventually
from test_programs import small_tree
# Collected here too, with this module's `server`.
from test_programs_at_servers import (  # noqa: F401
    arrives, drive, local_tree, mounted, test_git, test_saves, test_tar, two)
from test_sftp_passwords import doctor
from test_trash import listed

pytestmark = pytest.mark.skipif(
    os.getuid() != 0, reason="only root gives a server a person, and a prison")


@pytest.fixture(params=[("key", 1), ("password", 2)], ids=lambda param: f"{param[0]}-{param[1]}")
def server(request, folder):
    server = HardenedServer(folder, *request.param)
    yield server
    server.stop()


@pytest.mark.parametrize("test", [
    test_servers.test_a_tree_goes_there_and_is_changed, test_servers.test_others_change_it,
    test_servers.test_both_sides_are_kept])
def test_it_is_as_any_server(machine, server, drive, folder, test):
    wanted = test.__code__.co_varnames[:test.__code__.co_argcount]
    values = {"machine": machine, "server": server, "drive": drive, "folder": folder}
    test(**{name: values[name] for name in wanted})


def at_rest(machine):
    """Fails if the account reports anything but that all is well."""
    account = machine.account("sftp")
    assert account["state"] == "up to date" and "trouble" not in account, account
    assert account["pending_count"] == 0 and account["conflicts"] == []
    assert machine.status_code() == 0
    assert doctor(machine)["state"] == "ok"


def logs_no_fault(machine):
    said = [line for line in machine.log().splitlines()
            if " error " in line or " warning " in line or "failed" in line]
    assert said == []


def test_what_it_does_not_have_shows_nowhere(machine, server, drive, folder):
    """Trees, many contents at once, the trash and what comes back from it."""
    local = small_tree(folder / "tree")
    machine.run("cp", "-r", local, drive / "tree")
    contents = {f"large {number}": random.Random(number).randbytes(3 << 20) for number in range(6)}
    for name, content in contents.items():
        (drive / name).write_bytes(content)
    machine.sync()
    machine.run("diff", "-r", "--no-dereference", local, server.files / "tree")
    for name, content in contents.items():
        assert (server.files / name).read_bytes() == content
        assert (server.files / name).stat().st_uid == 4711
    assert os.listdir(server.root) == ["files"]
    # All of it comes back, several contents at a time.
    machine.oort("free", str(drive))
    machine.run("sh", "-c", f"cat '{drive}'/large* >/dev/null & cat '{drive}'/large*5 '{drive}'/large*1; wait")
    machine.run("diff", "-r", "--no-dereference", local, drive / "tree")
    (drive / "tree" / "a" / "one.txt").unlink()
    machine.run("rm", "-rf", drive / "tree" / "a" / "b")
    machine.sync()
    assert {entry["path"] for entry in listed(machine)} == {
        str(drive / "tree" / "a" / "one.txt"), str(drive / "tree" / "a" / "b")}
    machine.oort("restore", drive / "tree" / "a" / "one.txt")
    machine.oort("restore", drive / "tree" / "a" / "b")
    machine.run("diff", "-r", "--no-dereference", local, drive / "tree")
    machine.run("diff", "-r", "--no-dereference", local, server.files / "tree")
    machine.run("rm", "-rf", drive / "tree", *(drive / name for name in contents))
    machine.sync()
    server.holds({})
    at_rest(machine)
    logs_no_fault(machine)


def test_a_server_of_few_sessions_sees_one_login(machine, server):
    """What finds no session of its own has one of those that there are, and signs in nowhere again."""
    server.login(machine)
    before = server.logins()
    machine.mount()
    drive = machine.ready("sftp")
    contents = {f"large {number}": random.Random(number).randbytes(4 << 20) for number in range(4)}
    for name, content in contents.items():
        (drive / name).write_bytes(content)
    machine.sync()
    server.holds(contents)
    machine.oort("free", str(drive))
    assert local_tree(drive) == contents
    assert server.logins() == before + 1
    at_rest(machine)
    logs_no_fault(machine)


@pytest.fixture
def reader(folder):
    """A server that takes no changes of what lies there."""
    server = HardenedServer(folder)
    (server.files / "folder").mkdir()
    for name in ("kept", "gone", "old", "folder/inner"):
        server.write(name, name)
    yield server
    server.stop()


def change(drive):
    """A new file, another content, a folder, a deletion, a new name: the files that there are then."""
    (drive / "new").write_text("new")
    (drive / "kept").write_text("changed")
    (drive / "made").mkdir()
    (drive / "made" / "deep").write_text("deep")
    (drive / "gone").unlink()
    (drive / "old").rename(drive / "renamed")
    return {"folder": None, "folder/inner": b"folder/inner", "kept": b"changed", "made": None,
            "made/deep": b"deep", "new": b"new", "renamed": b"old"}


def refused(machine, drive):
    """What `oort sync` says once all that was changed is refused, and what was removed shows again, as it
    does after the second refusal."""
    said = ""

    def is_refused():
        nonlocal said
        said = machine.oort("sync", status=1)
        account = machine.account("sftp")
        return (drive / "gone").exists() and account["pending_count"] == account["refused_count"]
    eventually(is_refused, "all of it is refused")
    assert "cannot reach the cloud now" in said and "may not do this" in said, said
    for name in ("new", "kept", "made", "renamed"):
        assert str(drive / name) in said, said
    assert machine.account("sftp")["state"] == "needs attention"
    assert machine.account("sftp")["pending_count"] == 5
    assert "gone was not deleted and is shown again" in machine.oort("status")


def test_a_server_that_only_gives(machine, reader):
    """Each change is refused in words, delays nothing, and is no longer pending once it is undone."""
    before = reader.tree()
    reader.turn(read_only=True)
    reader.login(machine)
    machine.mount()
    drive = machine.ready("sftp")
    assert local_tree(drive) == before
    at_rest(machine)
    change(drive)
    refused(machine, drive)
    (drive / "renamed").rename(drive / "old")
    (drive / "new").unlink()
    shutil.rmtree(drive / "made")
    (drive / "kept").unlink()
    # The refused content goes with the file, which is shown again after the second refusal, too.
    eventually(lambda: machine.run(OORT, "sync", "--timeout", "20s", status=None).returncode == 0,
               "nothing is left to be sent")
    eventually(lambda: local_tree(drive) == before, "all is as at the server")
    assert machine.account("sftp")["pending_count"] == 0
    reader.holds(before)


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_server_that_only_gives_for_a_while(machine, reader, is_killed):
    """What was changed meanwhile is kept here and goes out once that is over, without a restart or with one."""
    reader.login(machine)
    machine.mount()
    drive = machine.ready("sftp")
    before = reader.tree()
    reader.turn(read_only=True)
    wanted = change(drive)
    refused(machine, drive)
    reader.holds(before)
    if is_killed:
        machine.kill()
        machine.mount()
        machine.ready("sftp")
    reader.turn(read_only=False)
    # An item whose deletion was refused is shown again, and is not deleted later.
    wanted["gone"] = b"gone"
    machine.sync()
    eventually(lambda: local_tree(drive) == wanted, "the mount shows what was changed")
    reader.holds(wanted)
    at_rest(machine)
