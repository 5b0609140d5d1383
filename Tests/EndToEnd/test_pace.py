"""Pauses and limits: what goes out when, how fast, and after a restart, too."""

import json
import os
import time

import pytest

from machine import CLOUDS, eventually


def test_nothing_is_sent_in_a_pause(machine, clouds, cloud, drive):
    clouds.edit(cloud, "write", "/theirs.txt", text="theirs")
    eventually((drive / "theirs.txt").exists, "the file is there")
    assert f"until oort resume: {cloud}" in machine.oort("pause", cloud)
    (drive / "mine.txt").write_text("mine")
    assert (drive / "theirs.txt").read_text() == "theirs"
    # News show all the same.
    clouds.edit(cloud, "write", "/later.txt", text="later")
    eventually((drive / "later.txt").exists, "news show in a pause")
    said = machine.oort("sync", status=1)
    assert "paused: oort resume" in said and str(drive / "mine.txt") in said, said
    assert machine.account(cloud)["state"] == "paused" and machine.status_code() == 3
    said = machine.oort("status")
    assert "paused until oort resume" in said and "waits for the end of the pause" in said
    machine.unmount()
    machine.mount()
    eventually(lambda: machine.account(cloud)["state"] == "paused", "a restart ends no pause")
    time.sleep(1.5)
    assert "/mine.txt" not in clouds.tree(cloud)
    assert machine.oort("resume", cloud) == "Nothing is paused.\n"
    machine.sync()
    assert clouds.content(cloud, "/mine.txt") == b"mine"
    assert machine.account(cloud)["state"] == "up to date"


def test_a_pause_ends_by_itself(machine, clouds, cloud, drive):
    end = time.monotonic() + 15
    said = machine.oort("pause", "--for", "15s")
    assert "Paused until 20" in said and cloud in said
    (drive / "mine.txt").write_text("mine")
    account = machine.account(cloud)
    time.sleep(1.5)
    tree = clouds.tree(cloud)
    # On a machine that was stalled for so long the pause may be over.
    if time.monotonic() < end:
        assert "paused_until" in account
        assert "/mine.txt" not in tree
    eventually(lambda: "/mine.txt" in clouds.tree(cloud), "it goes out by itself")
    assert "paused_until" not in machine.account(cloud)


def test_a_pause_stops_a_large_upload_which_goes_on_later(machine, clouds, cloud, drive):
    size = 40 << 20
    clouds.weather(cloud, upload_bytes_per_second=1 << 20)
    content = os.urandom(size)
    (drive / "big.bin").write_bytes(content)
    gate = clouds.gates[cloud]
    eventually(
        lambda: any(t["done_bytes"] > size // 3 for t in machine.account(cloud)["transfers"]),
        "a third is on its way")
    machine.oort("pause")
    eventually(lambda: machine.account(cloud)["transfers"] == [], "nothing is sent any more")

    def is_still():
        before = gate.received
        time.sleep(3)
        return gate.received - before < 1 << 16

    # What lay in the sockets' buffers still comes.
    eventually(is_still, "the line is still")
    assert "/big.bin" not in clouds.tree(cloud)
    clouds.weather(cloud)
    machine.oort("resume")
    machine.sync()
    assert clouds.content(cloud, "/big.bin") == content
    assert gate.received < size * 1.8, "most of what had arrived is not sent again"


def test_limits_hold_for_all_transfers_and_outlive_a_restart(machine, clouds, cloud, drive):
    size = 6 << 20
    clouds.edit(cloud, "write", "/theirs.bin", seed=3, size=size)
    eventually((drive / "theirs.bin").exists, "the file is there")
    assert machine.oort("limit") == "No limits.\n"
    assert machine.oort("limit", "--up", "1M") == "Limits: up 1 MiB/s\n"
    assert machine.oort("limit", "--down", "1M") == "Limits: up 1 MiB/s, down 1 MiB/s\n"
    machine.unmount()
    machine.mount()
    drive = machine.ready(cloud)
    assert "Limits: up 1 MiB/s, down 1 MiB/s" in machine.oort("status")

    def seconds(act):
        start = time.monotonic()
        act()
        return time.monotonic() - start

    def send(name):
        (drive / name).write_bytes(os.urandom(size))
        machine.sync()

    assert 4 < seconds(lambda: send("slow.bin"))
    assert 3 < seconds((drive / "theirs.bin").read_bytes)
    # With this one it would take 96 s.
    machine.oort("limit", "--up", "64K")
    assert machine.oort("limit", "--off") == "No limits.\n"
    assert "Limits" not in machine.oort("status")
    assert seconds(lambda: send("fast.bin")) < 60
    assert clouds.tree(cloud)["/slow.bin"]["size"] == size


@pytest.mark.parametrize("cloud", ["drive"])
def test_bad_input(machine, clouds, cloud):
    for arguments in (["pause"], ["resume"], ["limit"], ["limit", "--up", "1M"]):
        assert "No mount" in machine.oort(*arguments, status=1)
    for name in CLOUDS[:2]:
        machine.login(name)
    machine.mount()
    for command in ("pause", "resume"):
        said = machine.oort(command, "nobody", status=1)
        assert "nobody" in said and "dropbox, drive" not in said and "drive, dropbox" in said
    for arguments in (["--for", "0s"], ["--for", "soon"], ["--for=-5s"], ["drive", "dropbox"]):
        machine.oort("pause", *arguments, status=2)
    for arguments in (["--up", "much"], ["--off", "--up", "1M"]):
        machine.oort("limit", *arguments, status=2)
    assert "too low" in machine.oort("limit", "--up", "5", status=1)
    assert machine.oort("limit") == "No limits.\n"
    # One out of all.
    machine.oort("pause")
    said = machine.oort("resume", "drive")
    assert "dropbox" in said and "drive" not in said
    assert machine.oort("resume") == "Nothing is paused.\n"
    # A file that is none stops nothing.
    machine.unmount()
    (machine.state / "pace.json").write_text("{")
    machine.mount()
    assert machine.oort("limit") == "No limits.\n"
    assert "limits and pauses are not known" in machine.log()
    machine.oort("limit", "--up", "1M")
    assert json.loads((machine.state / "pace.json").read_text())["upload_limit"] == 1 << 20
