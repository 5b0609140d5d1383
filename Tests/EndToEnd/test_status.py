"""What `oort status` and `oort sync` tell while a mount runs."""

import json
import os
import subprocess
import threading

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
    slow = 4 << 20
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
        reader.join(60)
    assert "down " in said and f"of 24 MiB: {drive / 'theirs.bin'}" in said, said
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
