"""What `oort status` and `oort sync` report while a mount runs."""

import fcntl
import json
import os
import pty
import re
import select
import struct
import subprocess
import termios
import threading
import time

import pytest

from machine import CLOUDS, OORT, eventually


def test_status_is_watched(machine, cloud, drive):
    process = subprocess.Popen(
        [str(OORT), "status", "--watch", "--json"], env=machine.environment, text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        first = json.loads(process.stdout.readline())
        assert [account["name"] for account in first["accounts"]] == [cloud]
        machine.unmount()
        # It goes on over the end of the mount, one object a line.
        for line in process.stdout:
            if "mount" not in json.loads(line):
                break
        assert json.loads(line)["accounts"][0]["state"] == "not mounted"
    finally:
        process.kill()
        process.wait()


def test_df_tells_the_accounts_room_while_its_tree_is_read(machine, clouds, cloud):
    enumeration = {"dropbox": "files/list_folder", "drive": "files.list", "onedrive": "delta/get"}
    clouds.fault(cloud, route=enumeration[cloud], fault="stall", seconds=3600, times=None)
    total = 123 << 30
    clouds.conditions(cloud, total_bytes=total)
    machine.login(cloud)
    machine.mount()
    eventually(lambda: machine.account(cloud).get("total_bytes"), "the room is known")
    account = machine.account(cloud)
    assert account["state"] == "reading the tree" and account["total_bytes"] == total
    size = machine.run("df", "-B1", "--output=size", machine.mount_point / cloud).stdout.split()[-1]
    assert abs(int(size) - total) < 1 << 20


def test_what_goes_up_and_comes_down_is_told_with_its_progress(machine, clouds, cloud, drive):
    size = 24 << 20
    clouds.edit(cloud, "write", "/theirs.bin", seed=3, size=size)
    eventually((drive / "theirs.bin").exists, "the file is there")
    slow = 1 << 20
    clouds.weather(cloud, download_bytes_per_second=slow, upload_bytes_per_second=slow)

    def transfer(path, is_upload):
        """Somewhere in its midst."""
        for one in machine.account(cloud)["transfers"]:
            if one["path"] == str(path) and 0 < one["done_bytes"] < size:
                assert (one["is_upload"], one["total_bytes"]) == (is_upload, size)
                return one
        return None

    with open(drive / "theirs.bin", "rb") as theirs:
        reader = threading.Thread(target=theirs.read)
        reader.start()
        first = eventually(lambda: transfer(drive / "theirs.bin", False), "it is coming")
        eventually(
            lambda: (now := transfer(drive / "theirs.bin", False))
            and now["done_bytes"] > first["done_bytes"], "more of it is here")
        said = machine.oort("status")
        clouds.weather(cloud)
        reader.join(120)
    assert re.search(rf"  down: .*{drive / 'theirs.bin'} \d+% of 24 MiB", said), said
    eventually(lambda: machine.account(cloud)["transfers"] == [], "all of it is here")

    clouds.weather(cloud, upload_bytes_per_second=slow)
    (drive / "ours.bin").write_bytes(os.urandom(size))
    eventually(lambda: transfer(drive / "ours.bin", True), "it is on its way")
    clouds.weather(cloud)
    machine.sync()
    assert machine.account(cloud)["transfers"] == []


def test_a_path_is_synchronised_by_itself(machine, clouds):
    for cloud in CLOUDS:
        machine.login(cloud)
    machine.mount()
    drives = {cloud: machine.ready(cloud) for cloud in CLOUDS}
    there, elsewhere = drives["dropbox"] / "file.txt", drives["drive"] / "file.txt"
    clouds.gates["dropbox"].shut()
    for path in (there, elsewhere):
        path.write_text("x")
    for path in (elsewhere, drives["drive"], drives["onedrive"]):
        machine.sync(path)
    assert clouds.content("drive", "/file.txt") == b"x"
    for path in (there, drives["dropbox"], machine.mount_point):
        said = machine.oort("sync", "--timeout", "1s", path, status=1)
        assert str(there) in said and "1 change did not reach the cloud within 1s" in said
    assert "is not there" in machine.oort("sync", drives["drive"] / "none", status=1)
    assert "does not lie in the mount" in machine.oort("sync", "/etc", status=1)
    clouds.gates["dropbox"].open()
    machine.sync()
    assert clouds.content("dropbox", "/file.txt") == b"x"


def test_what_lies_in_a_refused_folder_is_told_and_not_waited_for(machine, clouds, cloud, drive):
    clouds.conditions(cloud, refused_names=["secret"])
    inner = drive / "secret" / "plans" / "file.txt"
    inner.parent.mkdir(parents=True)
    inner.write_text("kept")
    # No time limit of its own: it ends because nothing can move.
    said = machine.oort("sync", status=1)
    assert "cannot reach the cloud now" in said, said
    assert f"{inner}\n      waits for {drive}/secret\n" in said, said
    assert f"waits for {drive}/secret" in machine.oort("sync", inner, status=1)
    clouds.conditions(cloud)
    machine.sync()
    assert clouds.content(cloud, "/secret/plans/file.txt") == b"kept"


def test_what_waits_for_a_refused_change_is_not_waited_for(machine, clouds, cloud, drive):
    (drive / "old").mkdir()
    (drive / "old" / "file.txt").write_text("kept")
    machine.sync()
    clouds.conditions(cloud, refused_names=["secret"])
    (drive / "secret").mkdir()
    (drive / "old" / "file.txt").rename(drive / "secret" / "file.txt")
    # The folder can only go when the file has left it.
    (drive / "old").rmdir()
    said = machine.oort("sync", status=1)
    assert "cannot reach the cloud now" in said, said
    clouds.conditions(cloud)
    machine.sync()
    assert set(clouds.tree(cloud)) == {"/secret", "/secret/file.txt"}


def test_no_time_at_all_is_no_answer(machine, cloud, drive):
    """Nothing is claimed that was not looked at."""
    said = machine.oort("sync", "--timeout", "0s", status=None)
    assert "0 changes" not in said
    assert machine.sync() == ""


def test_a_mount_that_died_is_told_of(machine, clouds):
    machine.login("dropbox")
    machine.mount()
    process = machine.process
    machine.kill()
    assert machine.status()["died"]["process"] == process
    said = machine.oort("status")
    assert "did not end orderly" in said and str(process) in said and "oort.log" in said
    machine.mount()
    assert "died" not in machine.status()
    machine.unmount()
    assert "died" not in machine.status() and "orderly" not in machine.oort("status")


def test_the_exit_code_says_how_all_is(machine, clouds, cloud):
    machine.login(cloud)
    assert machine.status_code() == 5
    machine.mount()
    drive = machine.ready(cloud)
    machine.sync()
    assert machine.status_code() == 0
    clouds.gates[cloud].shut()
    (drive / "file.txt").write_text("x")
    assert machine.status_code() == 3
    clouds.gates[cloud].open()
    machine.sync()
    assert machine.status_code() == 0
    clouds.conditions(cloud, refused_names=["secret"])
    (drive / "secret").write_text("x")
    machine.oort("sync", status=1)
    eventually(lambda: machine.status_code() == 4, "it needs a person")
    account = machine.account(cloud)
    assert account["refused_count"] == 1 and account["state"] == "needs attention"
    clouds.conditions(cloud)
    machine.sync()
    assert machine.status_code() == 0
    machine.unmount()
    assert machine.status_code() == 5


def test_ten_lines_whatever_is_pending(machine, clouds, cloud, drive):
    clouds.conditions(cloud, refused_names=["secret"])
    (drive / "secret").mkdir()
    (drive / "secret" / "inner").write_text("x")
    machine.oort("sync", status=1)
    clouds.gates[cloud].shut()
    for number in range(1500):
        # Each another: of equal ones a service that copies makes all but the first by copying.
        (drive / f"{number}.txt").write_text(f"{number:0100}")
    said = machine.oort("status").split("\n\n")[1].splitlines()
    assert len(said) <= 10, said
    shown = "\n".join(said)
    assert "1,500 changes to go" in shown and f"waits for {drive}/secret" in shown, shown
    account = machine.account(cloud)
    assert account["pending_count"] == 1502 and account["refused_count"] == 2
    assert sum(group["count"] for group in account["waiting"]) == 1502
    assert account["pending_bytes"] == 150_001
    for change in account["pending"]:
        size = 1 if change["path"].endswith("inner") else 100
        known = ("folder", 0) if change["path"].endswith("secret") else ("upload", size)
        assert (change["kind"], change["bytes"]) == known, change
    said = machine.unmount()
    assert "Not in the cloud yet" in said and f"{cloud}: 1,502 changes, 146.5 KiB" in said, said
    assert "1,502 changes" in machine.oort("status")


@pytest.mark.parametrize("cloud", ["drive"])
def test_rate_and_time_left_are_measured(machine, clouds, cloud, drive):
    clouds.weather(cloud, upload_bytes_per_second=2 << 20)
    (drive / "big.bin").write_bytes(os.urandom(64 << 20))
    # At first the sockets' buffers take more.
    account = eventually(
        lambda: (now := machine.account(cloud)).get("seconds_left")
        and 1 << 20 < now["upload_bytes_per_second"] < 3 << 20 and now, "the rate is known")
    left = account["pending_bytes"] / account["upload_bytes_per_second"]
    assert abs(account["seconds_left"] - left) < 3, account
    said = machine.oort("status")
    assert re.search(r"up: 1 change to go, .* MiB, .* MiB/s, (about|some) ", said), said
    clouds.weather(cloud)
    machine.sync()
    account = machine.account(cloud)
    assert "seconds_left" not in account and "upload_bytes_per_second" not in account


@pytest.mark.parametrize("cloud", ["dropbox"])
def test_the_watch_fits_its_window(machine, clouds, cloud, drive):
    clouds.gates[cloud].shut()
    for number in range(40):
        (drive / f"{'long name ' * 12}{number}.txt").write_text("x")
    shown = window(
        machine, ["status", "--watch"], rows=7, columns=40,
        enough=lambda shown: shown.count(b"\x1b[J") >= 2)
    # What comes after the last end of a screen may be a part of one.
    shown = shown[:shown.rindex("\x1b[J")]
    screens = [part.split("\x1b[J")[0] for part in shown.split("\x1b[H")[1:]]
    assert len(screens) >= 2
    for screen in screens:
        lines = screen.replace("\x1b[K", "").split("\r\n")[:-1]
        assert 3 <= len(lines) <= 6 and all(len(line) <= 40 for line in lines), lines
        assert lines[0].startswith("Mounted at") and any(l.startswith("dropbox:") for l in lines)
    clouds.gates[cloud].open()


def window(machine, arguments, rows, columns, enough=lambda shown: False):
    """What a command writes to a terminal of this size until it ends, or until that is enough."""
    first, second = pty.openpty()
    fcntl.ioctl(second, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    process = subprocess.Popen(
        [str(OORT), *arguments], env=machine.environment, stdin=second, stdout=second,
        stderr=second)
    os.close(second)
    shown = b""
    deadline = time.monotonic() + 240
    try:
        while not enough(shown) and (left := deadline - time.monotonic()) > 0:
            if select.select([first], [], [], left)[0]:
                shown += os.read(first, 1 << 16)
    except OSError:
        pass  # The command has ended.
    finally:
        process.kill()
        process.wait()
        os.close(first)
    return shown.decode(errors="replace")


@pytest.mark.parametrize("cloud", ["drive"])
def test_sync_shows_its_progress_in_a_terminal(machine, clouds, cloud, drive):
    clouds.weather(cloud, upload_bytes_per_second=2 << 20)
    (drive / "big.bin").write_bytes(os.urandom(32 << 20))
    shown = window(machine, ["sync"], rows=24, columns=80)
    assert re.search(r"1 change to go, .*B/s", shown), shown
    assert "The clouds have everything." in shown
    assert "Not in the cloud" not in machine.unmount()


@pytest.mark.parametrize("cloud", ["drive"])
def test_the_log_has_paths(machine, clouds, cloud, drive):
    clouds.conditions(cloud, refused_names=["secret"])
    (drive / "secret").write_text("x")
    machine.oort("sync", status=1)
    assert "inode=" in machine.log()
    path = drive / "secret"
    for lines in (["-n", "100000"], ["--lines", "100000"]):
        assert f'path="{path}"' in machine.oort("log", *lines)
    assert machine.oort("log", "-n", "1").count("\n") == 1
    follower = subprocess.Popen(
        [str(OORT), "log", "-f", "-n", "0"], env=machine.environment, text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        machine.unmount()
        machine.mount()
        assert any("starting" in follower.stdout.readline() for _ in range(100))
    finally:
        follower.kill()
        follower.wait()
    machine.unmount()
    # Without a mount a path begins with its account.
    assert 'path="drive/secret"' in machine.oort("log", "-n", "100000")
    machine.oort("log", "-n", "-1", status=2)
    machine.oort("log", "-n", "many", status=2)


def test_a_log_that_is_not_there(machine):
    assert "no log" in machine.oort("log", status=1)


@pytest.mark.parametrize("cloud", ["drive"])
def test_metrics(machine, clouds, cloud, drive):
    clouds.edit(cloud, "write", "/theirs.bin", seed=3, size=5 << 20)
    eventually((drive / "theirs.bin").exists, "the file is there")
    (drive / "ours.bin").write_bytes(os.urandom(1 << 20))
    machine.sync()
    for _ in range(2):
        (drive / "theirs.bin").read_bytes()
        machine.run("sh", "-c", "echo 1 > /proc/sys/vm/drop_caches || true")
    said = machine.run(
        "curl", "-s", "--unix-socket", machine.folder / "run" / "oort" / "control.sock",
        "http://oort/metrics").stdout
    figures = dict(line.rsplit(" ", 1) for line in said.splitlines() if not line.startswith("#"))
    labels = 'account="drive",%sservice="drive"'
    assert figures['oort_pending_changes{account="drive",service="drive"}'] == "0"
    assert figures["oort_account_state{%s,state=\"up to date\"}" % (labels % "")] == "1"
    assert int(figures["oort_transferred_bytes_total{%s}" % (labels % 'direction="up",')]) > 1 << 20
    assert int(figures["oort_transferred_bytes_total{%s}" % (labels % 'direction="down",')]) > 5 << 20
    assert int(figures["oort_calls_total{%s}" % (labels % 'outcome="2xx",')]) > 5
    assert int(figures["oort_finished_changes_total{%s}" % (labels % "")]) == 1
    assert int(figures['oort_cache_misses_total{account="drive",service="drive"}']) > 0
    types = [line.split()[2] for line in said.splitlines() if line.startswith("# TYPE")]
    assert len(types) == len(set(types)) and {key.split("{")[0] for key in figures} == set(types)
