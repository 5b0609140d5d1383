"""Each flag of `oort mount` does what its help says."""

import errno
import json
import os
import pwd
import signal
import stat
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import pytest

from machine import CLOUDS, OORT, eventually, read


@pytest.fixture
def account(machine, clouds, cloud):
    clouds.edit(cloud, "write", "/there.txt", text="there\n")
    machine.login(cloud)
    return cloud


@pytest.fixture(params=["dropbox"])
def cloud(request):
    """What a mount's flags do has nothing to do with the service."""
    return request.param


def test_read_only(machine, clouds, account):
    machine.mount("--read-only")
    drive = machine.ready(account)
    assert (drive / "there.txt").read_text() == "there\n"
    for change in (lambda: (drive / "new.txt").write_text("x"),
                   lambda: (drive / "there.txt").write_text("x"),
                   lambda: (drive / "there.txt").unlink(),
                   lambda: (drive / "folder").mkdir(),
                   lambda: os.rename(drive / "there.txt", drive / "renamed.txt"),
                   lambda: os.chmod(drive / "there.txt", 0o600)):
        with pytest.raises(OSError) as refusal:
            change()
        assert refusal.value.errno == errno.EROFS
    clouds.edit(account, "write", "/there.txt", text="changed there\n")
    eventually(lambda: read(drive / "there.txt") == "changed there\n", "the change shows")


def test_one_account_that_is_read_only(machine, clouds, account):
    """The setting holds for its account alone, and earlier writes stay and are reported."""
    machine.login("drive")
    machine.mount()
    drive, other = machine.ready(account), machine.ready("drive")
    (drive / "gone.txt").write_text("gone")
    machine.sync()
    (drive / "gone.txt").unlink()
    machine.sync()
    clouds.gates[account].shut()
    (drive / "kept.txt").write_text("kept\n")
    machine.unmount()
    settings = machine.settings()
    machine.write_settings(settings + f"\n[accounts.{account}]\nread_only = true\n")
    clouds.gates[account].open()
    machine.mount()
    machine.ready(account)
    (other / "new.txt").write_text("x")
    machine.sync(other)
    for change in (lambda: (drive / "new.txt").write_text("x"),
                   lambda: (drive / "there.txt").write_text("x"),
                   lambda: (drive / "there.txt").unlink(),
                   lambda: (drive / "folder").mkdir(),
                   lambda: os.rename(drive / "there.txt", other / "there.txt"),
                   lambda: os.rename(other / "new.txt", drive / "new.txt"),
                   lambda: os.setxattr(drive / "there.txt", "user.x", b"x"),
                   lambda: os.utime(drive / "there.txt")):
        with pytest.raises(OSError) as refusal:
            change()
        assert refusal.value.errno in (errno.EROFS, errno.EXDEV)
    # What was written before is shown, and is not sent.
    assert (drive / "kept.txt").read_text() == "kept\n"
    said = machine.oort("status", status=4)
    assert "read-only" in said and "kept.txt" in said, said
    assert "read-only" in machine.oort("sync", drive, status=1)
    assert "/kept.txt" not in clouds.tree(account)
    assert "read-only" in machine.oort("restore", drive / "gone.txt", status=1)
    clouds.edit(account, "write", "/there.txt", text="changed there\n")
    eventually(lambda: read(drive / "there.txt") == "changed there\n", "the change shows")
    # Without the setting it goes out.
    machine.unmount()
    machine.write_settings(settings)
    machine.mount()
    machine.sync()
    assert clouds.content(account, "/kept.txt") == b"kept\n"


def test_other_users(machine, account):
    if os.geteuid() != 0:
        pytest.skip("only root can become somebody else")
    machine.folder.parent.chmod(0o755)
    machine.folder.chmod(0o755)
    reads = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "cat",
             machine.mount_point / account / "there.txt"]
    machine.mount()
    machine.ready(account)
    assert machine.run(*reads, status=None).returncode != 0
    machine.unmount()
    # By `--allow-other` alone, other users still get no permissions.
    machine.mount("--allow-other")
    machine.ready(account)
    assert machine.run(*reads, status=None).returncode != 0
    for path in (machine.mount_point, machine.mount_point / account):
        assert machine.run("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "ls",
                           path, status=None).returncode != 0
    assert (machine.mount_point / account / "there.txt").stat().st_mode & 0o777 == 0o600
    machine.unmount()
    machine.mount("--allow-other", "--umask", "022")
    machine.ready(account)
    assert machine.run(*reads).stdout == "there\n"
    writes = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "touch",
              machine.mount_point / account / "there.txt"]
    assert machine.run(*writes, status=None).returncode != 0


def test_the_cache_keeps_to_its_size(machine, clouds, account):
    for number in range(8):
        clouds.edit(account, "write", f"/file{number}", seed=number, size=1 << 20)
    machine.mount("--cache-size", "3M")
    drive = machine.ready(account)
    eventually((drive / "file7").exists, "the files show")
    for number in range(8):
        content = (drive / f"file{number}").read_bytes()
        assert content == clouds.content(account, f"/file{number}")
    assert machine.status()["mount"]["cache_limit"] == 3 << 20
    eventually(lambda: machine.status()["mount"]["cached_bytes"] <= 4 << 20, "it makes room")


def test_the_poll_interval(machine, clouds, cloud):
    """Drive has no long poll: only the interval decides when it is asked."""
    clouds.edit("drive", "write", "/there.txt", text="there\n")
    machine.login("drive")
    machine.mount("--poll-interval", "1h")
    drive = machine.ready("drive")
    machine.sync()
    assert (drive / "there.txt").read_text() == "there\n"
    clouds.edit("drive", "write", "/there.txt", text="changed there\n")
    time.sleep(3)  # three times the interval of the settings
    assert (drive / "there.txt").read_text() == "there\n"
    machine.unmount()
    machine.mount("--poll-interval", "200ms")
    eventually(lambda: read(drive / "there.txt") == "changed there\n", "the change shows")


def test_the_settling_time(machine, clouds, account):
    machine.mount("--settle", "1h")
    drive = machine.ready(account)
    (drive / "new.txt").write_text("new")
    time.sleep(2)  # ten times the time of the settings
    assert "/new.txt" not in clouds.tree(account)
    assert machine.account(account)["pending_count"] == 1
    machine.sync()
    assert clouds.content(account, "/new.txt") == b"new"


def test_certificates_that_are_not_there(machine, folder):
    said = machine.oort("mount", machine.mount_point, "--ca-file", folder / "none.pem", status=1)
    assert "none.pem" in said and "cannot be read" in said


def test_in_the_foreground(machine, account):
    with open(machine.folder / "words", "w") as words:
        process = subprocess.Popen(
            [str(OORT), "mount", str(machine.mount_point), "--foreground"],
            env=machine.environment, stdin=subprocess.DEVNULL, stdout=words, stderr=words)
    try:
        eventually(lambda: os.path.ismount(machine.mount_point), "it is mounted")
        eventually(lambda: "Mounted at" in (machine.folder / "words").read_text(), "it says so")
        assert machine.process == process.pid
        machine.unmount()
        assert process.wait(timeout=120) == 0
    finally:
        process.kill()
        process.wait()


def test_the_mount_point_from_the_settings(machine, clouds, folder):
    machine.write_settings(f'mount_point = "{folder}/elsewhere"\n' + clouds.settings())
    assert f"{folder}/elsewhere" in machine.oort("mount")
    assert os.path.ismount(folder / "elsewhere")
    machine.oort("unmount", folder / "elsewhere")
    assert not os.path.ismount(folder / "elsewhere")


def test_a_fresh_mount_is_complete_in_its_first_moment(machine, clouds):
    """A backup that waits for the mount must not find an account's files gone."""
    for cloud in CLOUDS:
        clouds.edit(cloud, "write", "/there.txt", text="there\n")
        machine.login(cloud)
    machine.mount_point.mkdir(exist_ok=True)
    outside = machine.mount_point.stat().st_dev
    for _ in range(int(os.environ.get("OORT_MOUNTS", 8))):
        for cloud in CLOUDS:
            mounting = subprocess.Popen(
                [str(OORT), "mount", str(machine.mount_point)], env=machine.environment,
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
            while machine.mount_point.stat().st_dev == outside:
                assert mounting.poll() in (None, 0)
            assert (machine.mount_point / cloud / "there.txt").read_text() == "there\n"
            assert mounting.wait(timeout=120) == 0
            machine.unmount()
            for file in machine.state.glob("catalog.sqlite*"):
                file.unlink()


def test_the_state_belongs_to_the_user_alone(machine, account):
    machine.mount()
    for path in (machine.state, machine.cache, machine.folder / "run" / "oort"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert (machine.folder / "run" / "oort" / "control.sock").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("mask", ["8", "1000", "0o77", "x"])
def test_a_mask_that_is_none(machine, mask):
    assert "--umask must be octal" in machine.oort("mount", "--umask", mask, status=None)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be somebody else")
def test_nothing_stays_beneath_a_mount_that_died(machine):
    """A program that goes on writes into no bare folder, which the next mount would hide or refuse; what
    it writes in the moment of mounting lies beside the mount then."""
    user = pwd.getpwnam("games")
    # The folders of the tests are root's alone.
    home = Path(tempfile.mkdtemp(dir="/tmp"))
    os.chown(home, user.pw_uid, user.pw_gid)
    environment = {**machine.environment, "HOME": str(home), "XDG_RUNTIME_DIR": str(home),
                   **{f"XDG_{kind}_HOME": f"{home}/{kind.lower()}"
                      for kind in ("CONFIG", "STATE", "CACHE")}}

    def run(*arguments):
        return subprocess.run(
            arguments, env=environment, user=user.pw_uid, group=user.pw_gid, extra_groups=[],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            cwd="/", timeout=120)

    clouds = home / "clouds"
    ended = threading.Event()

    def write():
        while not ended.is_set():
            folder = Path("dropbox") / f"backup {len(tries)}"
            tries.append((folder, run("mkdir", "-p", clouds / folder).returncode == 0))

    tries = []
    writer = threading.Thread(target=write)
    try:
        assert run(OORT, "mount").returncode == 0
        writer.start()
        for _ in range(3):
            status = json.loads(run(OORT, "status", "--json").stdout)
            os.kill(status["mount"]["process"], signal.SIGKILL)
            before = len(tries)
            eventually(lambda: len(tries) > before + 2, "the program goes on")
            mounted = run(OORT, "mount")
            assert mounted.returncode == 0, mounted.stdout
        assert run(OORT, "unmount").returncode == 0
        before = len(tries)
        eventually(lambda: len(tries) > before + 2, "the program goes on")
        ended.set()
        writer.join()
        assert not list(clouds.iterdir())
        beside = [folder for folder in home.iterdir() if "found beneath" in folder.name]
        assert sum(was_made for _, was_made in tries) == sum(
            (found / folder).is_dir() for found in beside for folder, _ in tries), tries
        assert "Permission denied" in run("touch", clouds / "file").stdout
    finally:
        ended.set()
        run(OORT, "unmount")
        subprocess.run(["rm", "-rf", home], check=True)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be somebody else")
def test_what_fusermount3_says_of_a_mount_that_fails(machine):
    """It refuses a person without a name, which no check of Oort's looks for."""
    nobody = 54321
    # The folders of the tests are root's alone.
    place = subprocess.run(["mktemp", "-d"], check=True, capture_output=True, text=True)
    place = place.stdout.strip()
    os.chown(place, nobody, nobody)
    try:
        environment = {**machine.environment, "HOME": place,
                       **{f"XDG_{kind}_HOME": f"{place}/{kind.lower()}"
                          for kind in ("CONFIG", "STATE", "CACHE")},
                       "XDG_RUNTIME_DIR": place}
        result = subprocess.run(
            [OORT, "mount", f"{place}/clouds"], env=environment, user=nobody, group=nobody,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            cwd="/", timeout=120)
    finally:
        subprocess.run(["rm", "-rf", place], check=True)
    assert result.returncode == 1, result.stdout
    assert "could not determine username" in result.stdout, result.stdout
