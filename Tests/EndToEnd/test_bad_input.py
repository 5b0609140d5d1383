"""Wrong input and broken surroundings: a clear message, an exit code, nothing lost, no trap."""

import errno
import json
import os
import pathlib
import shutil
import signal
import sqlite3
import subprocess

import pytest

from machine import OORT, Machine, eventually, read


@pytest.fixture
def drive_of_one(machine):
    machine.login("drive")
    machine.mount()
    return machine.ready("drive")


def test_usage(machine):
    for arguments in ([], ["--help"], ["mount", "--help"]):
        machine.oort(*arguments)
    for arguments in (["fly"], ["login"], ["mount", "--cache-size", "much"],
                      ["mount", "--poll-interval", "0"], ["sync", "--what"]):
        machine.oort(*arguments, status=2)


def test_unknown_names(machine):
    text = machine.oort("login", "floppy", "--token-file", "-", status=2, input="{}")
    assert "floppy" in text and "dropbox" in text
    text = machine.oort("logout", "nobody", status=1)
    assert "nobody" in text
    assert "No mount" in machine.oort("sync", status=1)
    assert "Not mounted" in machine.oort("status")
    assert json.loads(machine.oort("accounts", "--json")) == []


def test_wrong_tokens(machine, cloud):
    for text in ("", "{", "[]", "{}", '{"access_token": 3}', '{"access_token": ""}'):
        said = machine.oort("login", cloud, "--token-file", "-", status=1, input=text)
        assert "token" in said
    said = machine.oort("login", cloud, "--token-file", "-", status=1,
                        input='{"access_token": "wrong-token-value"}')
    assert "wrong-token-value" not in said
    assert cloud in said
    assert json.loads(machine.oort("accounts", "--json")) == []
    assert "token file" in machine.oort(
        "login", cloud, "--token-file", "/nonexistent", status=1).lower()


def test_settings(machine):
    for text, word in (("cache_sice = 1", "cache_sice"), ("poll_interval = true", "poll_interval"),
                       ("poll_interval = 0", "poll_interval"),
                       ("= 1", "line 1")):
        machine.write_settings(text)
        said = machine.oort("mount", status=1)
        assert word in said and "config.toml" in said


def test_mount_points(machine, folder):
    full = folder / "full"
    full.mkdir()
    (full / "file").write_text("x")
    assert "not empty" in machine.oort("mount", full, status=1)
    assert "not a folder" in machine.oort("mount", full / "file", status=1)
    assert "in use" in machine.oort("mount", "/proc", status=1)
    machine.mount()
    said = machine.oort("mount", folder / "elsewhere", status=1)
    assert str(machine.process) in said and str(machine.mount_point) in said
    other = Machine(folder, machine.clouds, "two")
    assert "in use" in other.oort("mount", machine.mount_point, status=1)
    assert "not mounted at" in machine.oort("unmount", folder / "elsewhere", status=1)
    machine.unmount()
    assert not os.path.ismount(machine.mount_point)
    machine.oort("unmount", status=1)


def test_a_dead_mount_is_replaced(machine, cloud, drive):
    machine.kill()
    machine.mount()
    assert os.path.ismount(machine.mount_point)


def test_signals_end_the_mount(machine):
    for signal in ("TERM", "INT", "HUP"):
        machine.mount()
        process = machine.process
        machine.run("kill", f"-{signal}", process)
        eventually(lambda: not os.path.exists(f"/proc/{process}"), f"{signal} ends the mount")
        assert not os.path.ismount(machine.mount_point)


def test_a_corrupt_catalog(machine, cloud, drive):
    (drive / "file.txt").write_text("x")
    machine.sync()
    machine.unmount()
    catalog = machine.state / "catalog.sqlite"
    for name in ("catalog.sqlite-wal", "catalog.sqlite-shm"):
        (machine.state / name).unlink(missing_ok=True)
    catalog.write_bytes(b"this is no database at all" * 1000)
    said = machine.oort("mount", machine.mount_point, status=1)
    assert "catalog.sqlite" in said and "damaged" in said
    catalog.unlink()
    machine.mount()
    assert (machine.ready(cloud) / "file.txt").read_text() == "x"


def test_damaged_pages_of_the_catalog(machine, drive_of_one):
    """Damaged pages that are rarely read: the mount comes up, and says what is wrong and what to do."""
    for number in range(50):
        (drive_of_one / f"{number}.txt").write_text(str(number))
    machine.sync()
    assert machine.status()["mount"].get("trouble") is None
    machine.unmount()
    path = machine.state / "catalog.sqlite"
    with sqlite3.connect(path) as catalog:
        page, = catalog.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'node_by_hash'").fetchone()
        size, = catalog.execute("PRAGMA page_size").fetchone()
    catalog.close()
    with open(path, "r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xa5" * size)
    machine.mount()
    eventually(lambda: "damaged" in (machine.status()["mount"].get("trouble") or ""), "it is told")
    said = machine.oort("status")
    assert "catalog.sqlite is damaged" in said and "mount again" in said
    # As it advises.
    machine.unmount()
    for file in machine.state.glob("catalog.sqlite*"):
        file.unlink()
    machine.mount()
    machine.ready("drive")
    assert (drive_of_one / "7.txt").read_text() == "7"
    assert machine.status()["mount"].get("trouble") is None


def test_what_was_not_uploaded_outlives_its_catalog(machine, clouds, cloud, drive):
    clouds.gates[cloud].shut()
    (drive / "file.txt").write_text("the only copy")
    machine.unmount()
    for file in machine.state.glob("catalog.sqlite*"):
        file.unlink()
    clouds.gates[cloud].open()
    machine.mount()
    machine.ready(cloud)
    (drive / "new.txt").write_text("new")
    machine.sync()
    folder, = machine.status()["mount"]["folders_aside"]
    assert folder in machine.oort("status")
    # Not even a mount that knows the catalog now takes it for rubbish.
    machine.unmount()
    machine.mount()
    kept = [file.read_text() for file in pathlib.Path(folder).glob("*/*")]
    assert kept == ["the only copy"]
    shutil.rmtree(folder)
    assert machine.status()["mount"]["folders_aside"] == []


def test_answers_that_are_no_json(machine, clouds, cloud, drive):
    clouds.fault(cloud, route="*", fault="html", status=200, times=None)
    (drive / "file.txt").write_text("kept")
    machine.oort("sync", "--timeout", "2s", status=1)
    assert (drive / "file.txt").read_text() == "kept"
    assert os.listdir(drive) == ["file.txt"]
    clouds.no_faults(cloud)
    machine.sync()
    assert clouds.content(cloud, "/file.txt") == b"kept"


def test_signed_out(machine, clouds, cloud, drive):
    clouds.control(cloud, "POST", "tokens/revoke")
    (drive / "file.txt").write_text("kept")
    eventually(lambda: machine.account(cloud)["state"] == "trouble", "the trouble is told")
    assert "oort login" in machine.account(cloud)["trouble"]
    assert "oort login" in machine.oort("sync", "--timeout", "300s", status=1)
    machine.login(cloud, name=cloud)
    machine.sync()
    assert clouds.content(cloud, "/file.txt") == b"kept"


def test_accounts_come_and_go_while_mounted(machine, clouds):
    machine.mount()
    assert os.listdir(machine.mount_point) == []
    machine.login("drive", name="work")
    assert os.listdir(machine.mount_point) == ["work"]
    (machine.ready("work") / "file.txt").write_text("x")
    machine.sync()
    machine.oort("logout", "work")
    assert os.listdir(machine.mount_point) == []
    assert json.loads(machine.oort("accounts", "--json")) == []


def test_a_path_too_long_for_onedrive(machine, clouds):
    """Refused where it is made: in the mount it would wait for the cloud for ever."""
    machine.login("onedrive")
    machine.mount()
    folder = machine.ready("onedrive")
    for number in range(3):
        folder = folder / (str(number) * 99)
        folder.mkdir()
    (folder / ("x" * 100)).write_text("400 characters")
    outside = machine.mount_point / "onedrive" / "outside"
    outside.write_text("x")
    too_long = folder / ("x" * 101)
    for act in (too_long.mkdir, too_long.touch, lambda: too_long.symlink_to("x"),
                lambda: outside.rename(too_long)):
        with pytest.raises(OSError) as refusal:
            act()
        assert refusal.value.errno == errno.ENAMETOOLONG
    machine.sync()
    stored = f"/{folder.relative_to(outside.parent)}/{'x' * 100}"
    assert len(stored) == 401 and set(clouds.tree("onedrive")) >= {"/outside", stored}


def test_no_secret_in_the_log(machine, clouds, cloud, drive):
    (drive / "file.txt").write_text("x")
    machine.sync()
    clouds.control(cloud, "POST", "tokens/expire")
    (drive / "file2.txt").write_text("x")
    machine.sync()
    log = machine.log()
    assert log and "Bearer " not in log
    secrets = [
        word for file in machine.state.rglob("*token*") if file.is_file()
        for word in file.read_text(errors="replace").replace('"', " ").split() if len(word) > 16]
    for secret in secrets:
        assert secret not in log


@pytest.mark.parametrize("flags, names", [
    ([], ["drive", "dropbox", "nextcloud", "onedrive", "s3"]),
    (["--all"], ["box", "drive", "dropbox", "nextcloud", "onedrive", "s3", "sftp", "weather",
                 "webdav"]),
])
def test_the_demo_leaves_nothing_behind(folder, machine, flags, names):
    mount_point = folder / "demo"
    if os.getuid() == 0:
        pathlib.Path("/run/sshd").mkdir(exist_ok=True)  # which OpenSSH's server wants of root only
    process = subprocess.Popen(
        [str(OORT), "demo", *flags, str(mount_point)], env=machine.environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        environment = None
        for line in process.stdout:
            if line.strip().startswith("source "):
                environment = line.strip().removeprefix("source ")
                break
        assert environment and os.path.exists(environment)
        assert sorted(os.listdir(mount_point)) == names
        for name in names:
            eventually(lambda name=name: name == "weather" or os.listdir(mount_point / name),
                       "the sample account shows")
        home = os.path.dirname(environment)
        demo = dict(machine.environment, OORT_FOLDER=home)
        for name in set(names) & {"s3", "sftp", "webdav"}:
            (mount_point / name / "Welcome.txt").write_text("written")
            subprocess.run([str(OORT), "sync", str(mount_point / name)], env=demo, check=True)
            subprocess.run([str(OORT), "demo", "play", "edit", "--account", name], env=demo,
                           check=True)
        versions = subprocess.run(
            [str(OORT), "versions", str(mount_point / "s3" / "Welcome.txt")], env=demo, check=True,
            capture_output=True, text=True).stdout.splitlines()
        assert len(versions) == 2 and "(current)" in versions[0], versions
        process.send_signal(2)
        process.communicate(timeout=120)
        assert process.returncode == 0
    finally:
        process.kill()
    assert not os.path.exists(home)
    eventually(lambda: not any(home in (read(process / "cmdline") or "")
                               for process in pathlib.Path("/proc").glob("[0-9]*")),
               "none of its processes is left")
    assert not os.path.ismount(mount_point) and not os.path.exists(mount_point)


def test_unmounting_what_is_in_use_names_who_uses_it(machine, drive):
    """A file that is open for writing, and a shell that stands in a folder."""
    file = drive / "open.txt"
    file.write_text("written")
    holder = subprocess.Popen(["sh", "-c", 'exec 3>>"$0"; echo more >&3; echo; cat', file],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    shell = subprocess.Popen(["sh", "-c", "echo; cat"], cwd=drive, stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE)
    try:
        for process in (holder, shell):
            process.stdout.readline()
        said = machine.unmount()
        assert f"process {holder.pid}: {drive.name}/open.txt" in said, said
        assert f"process {shell.pid}: in its folder" in said, said
        assert "Unmounted" in said
    finally:
        for process in (holder, shell):
            process.kill()
            process.wait()
    machine.mount()
    assert (drive / "open.txt").read_text() == "writtenmore\n"


def test_unmount_after_a_crash_finds_where_the_mount_was(machine):
    """Also where nothing but the dead mount's own record knows of the place."""
    elsewhere = machine.folder / "elsewhere"
    machine.oort("mount", str(elsewhere))
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        words = (read(process / "cmdline") or "").split("\0")
        if "fusermount3" in words[0] and str(elsewhere) in words:
            os.kill(int(process.name), signal.SIGKILL)
    machine.kill()
    assert f"{elsewhere} is free again" in machine.oort("unmount")
    assert str(elsewhere) in machine.oort("unmount", status=1)


@pytest.mark.parametrize("cloud", ["onedrive"])
def test_a_name_that_is_refused_is_told_in_words(machine, cloud, drive):
    watch = subprocess.Popen([OORT, "watch", "--json"], env=machine.environment, text=True,
                             stdout=subprocess.PIPE)
    try:
        assert json.loads(watch.stdout.readline())["event"] == "ready"
        for _ in range(3):
            with pytest.raises(OSError) as refusal:
                (drive / "a:b").write_text("x")
            assert refusal.value.errno == errno.EINVAL
        event = next(event for event in map(json.loads, watch.stdout)
                     if event["event"] == "refused")
        assert event["path"] == str(drive / "a:b") and ":" in event["reason"]
    finally:
        watch.kill()
        watch.wait()
    [refused] = machine.account(cloud)["refused_names"]
    assert refused["path"] == str(drive / "a:b") and "OneDrive" in refused["reason"]
    assert f"name not taken: {drive / 'a:b'} (OneDrive" in machine.oort("status")
    [line] = [line for line in machine.oort("log").splitlines() if "a name was refused" in line]
    assert "OneDrive" in line and "a:b" in line
