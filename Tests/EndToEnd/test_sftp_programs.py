"""What `test_servers.py` asks of OpenSSH, asked of other servers of SFTP."""

import os

import pytest

import test_servers
from sftp_programs import SFTPProgram
# Collected here too, with this module's `server`.
from test_servers import (  # noqa: F401
    drive, test_a_killed_mount_sends_what_was_written, test_a_server_that_is_away,
    test_a_tree_goes_there_and_is_changed)


@pytest.fixture(params=["proftpd", "asyncssh", "rclone"])
def server(request, folder):
    server = SFTPProgram(request.param, folder)
    yield server
    server.stop()


# rclone's server keeps what it knows of its disk for a while: who changes that behind it is not seen.
@pytest.mark.parametrize("server", ["proftpd", "asyncssh"], indirect=True)
@pytest.mark.parametrize("test", [
    test_servers.test_others_change_it, test_servers.test_both_sides_are_kept,
    test_servers.test_a_folder_that_goes_later_leaves_what_came_into_it])
def test_others_work_there(machine, server, drive, test):
    test(machine, server, drive)


@pytest.mark.parametrize("server", ["gateway"], indirect=True)
def test_a_server_that_sets_no_times(machine, server, drive, folder):
    """Contents go there all the same, the times that programs set stay here, and nothing is told of room that
    nobody knows."""
    large = os.urandom(5 << 20)
    (folder / "local").write_bytes(large)
    os.utime(folder / "local", (1e9, 1e9))
    machine.run("cp", "-p", folder / "local", drive / "large")
    (drive / "small").write_text("one")
    machine.sync()
    server.holds({"large": large, "small": b"one"})
    (drive / "small").write_text("two")
    machine.sync()
    os.utime(drive / "small", (1e9, 1e9))
    machine.sync()
    server.holds({"large": large, "small": b"two"})
    assert [os.stat(drive / name).st_mtime for name in ("large", "small")] == [1e9, 1e9]
    machine.oort("free", str(drive))
    assert (drive / "large").read_bytes() == large
    account = machine.account("sftp")
    assert account["state"] == "up to date" and account["pending_count"] == 0, account
    assert machine.status_code() == 0
    assert os.statvfs(drive).f_bavail > 0
