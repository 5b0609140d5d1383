"""Earlier contents of files: listed, read beside, and made current again."""

import json
import os
import signal
import subprocess

import pytest

from machine import OORT, eventually, read
from services import Service
from servers import Server

TEXTS = ["first", "the second", "and the third one"]


@pytest.fixture
def report(machine, drive):
    """A file with three contents."""
    path = drive / "report.txt"
    for text in TEXTS:
        path.write_text(text)
        machine.sync()
    return path


@pytest.fixture
def drive_with_report(machine, clouds):
    machine.login("drive")
    machine.mount()
    path = machine.ready("drive") / "report.txt"
    for text in TEXTS:
        path.write_text(text)
        machine.sync()
    return path


def listed(machine, path):
    return json.loads(machine.oort("versions", path, "--json"))["versions"]


def test_versions_are_listed_and_read(machine, clouds, cloud, drive, report, folder):
    versions = listed(machine, report)
    assert [version["size"] for version in versions] == [17, 10, 5]
    assert [version["is_current"] for version in versions] == [True, False, False]
    said = machine.oort("versions", report)
    assert "(current)" in said and all(version["id"] in said for version in versions)
    assert ("keeps an earlier version for ever" in said) == (cloud == "drive")
    for version, text in zip(versions, reversed(TEXTS)):
        target = folder / f"read {version['size']}"
        machine.oort("restore", report, "--version", version["id"], "--to", target)
        assert read(target) == text
        # Never over anything.
        target.write_text("mine")
        machine.oort("restore", report, "--version", version["id"], "--to", target, status=1)
        assert read(target) == "mine"
    # Into a folder, and into the mount itself.
    beside = folder / "beside"
    beside.mkdir()
    machine.oort("restore", report, "--version", versions[2]["id"], "--to", beside)
    assert read(beside / "report.txt") == "first"
    machine.oort("restore", report, "--version", versions[2]["id"], "--to", drive / "old.txt")
    assert read(drive / "old.txt") == "first" and read(report) == TEXTS[2]
    machine.sync()
    assert clouds.content(cloud, "/old.txt") == b"first"
    assert len(listed(machine, report)) == 3


def test_a_version_is_current_again(machine, clouds, cloud, drive, report):
    known = clouds.tree(cloud)["/report.txt"]["id"]
    versions = listed(machine, report)
    machine.oort("restore", report, "--version", versions[2]["id"])
    assert read(report) == "first"
    machine.sync()
    item = clouds.tree(cloud)["/report.txt"]
    assert clouds.content(cloud, "/report.txt") == b"first" and item["id"] == known
    assert set(clouds.tree(cloud)) == {"/report.txt"} and os.listdir(drive) == ["report.txt"]
    # What was current is an earlier one now.
    older = Service.on(clouds, cloud).older(item)
    assert [text.decode() for text in older] == TEXTS
    assert [version["size"] for version in listed(machine, report)] == [5, 17, 10, 5]
    said = machine.oort("restore", report, "--version", listed(machine, report)[0]["id"], status=1)
    assert "has now" in said


def test_unsent_changes_are_not_overwritten(machine, clouds, cloud, drive, report):
    versions = listed(machine, report)
    machine.oort("pause")
    report.write_text("mine, not sent")
    said = machine.oort("restore", report, "--version", versions[2]["id"], status=1)
    assert "does not have yet" in said and "oort sync" in said
    assert read(report) == "mine, not sent"
    machine.oort("resume")
    machine.sync()
    assert clouds.content(cloud, "/report.txt") == b"mine, not sent"
    with open(report, "a") as writer:
        writer.write("!")
        writer.flush()
        machine.oort("restore", report, "--version", versions[2]["id"], status=1)


def test_what_is_saved_meanwhile_stays(machine, clouds, drive_with_report):
    """Drive makes no version current by itself: its bytes come, and are saved over the file."""
    report = drive_with_report
    versions = listed(machine, report)
    clouds.fault("drive", route="revisions.get", fault="stall", seconds=20)
    restoring = subprocess.Popen(
        [str(OORT), "restore", str(report), "--version", versions[2]["id"]],
        env=machine.environment, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT)
    eventually(lambda: clouds.fault_counts("drive").get("stall"), "the bytes are asked for",
               timeout=60)
    report.write_text("mine, saved meanwhile")
    said = restoring.communicate(timeout=120)[0]
    # Sent by then or not: it is not what was there when the version was asked for.
    assert restoring.returncode == 1 and "nothing was restored" in said, said
    assert read(report) == "mine, saved meanwhile"
    assert os.listdir(report.parent) == ["report.txt"]


def test_what_nobody_waits_for_any_longer_is_not_fetched(machine, clouds, drive_with_report, folder):
    versions = listed(machine, drive_with_report)
    clouds.fault("drive", route="revisions.get", fault="stall", seconds=600)
    fetched = machine.folder / "cache" / "oort" / "versions"
    target = folder / "target"
    reading = subprocess.Popen(
        [str(OORT), "restore", str(drive_with_report), "--version", versions[2]["id"],
         "--to", str(target)],
        env=machine.environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL)
    eventually(lambda: clouds.fault_counts("drive").get("stall"), "the bytes are asked for",
               timeout=60)
    assert len(os.listdir(fetched)) == 1
    reading.send_signal(signal.SIGINT)
    reading.wait(timeout=60)
    eventually(lambda: not os.listdir(fetched), "it is given up", timeout=60)
    assert not target.exists()
    clouds.no_faults("drive")
    # What a mount that died left goes, too.
    machine.unmount()
    (fetched / "left").write_text("left")
    machine.mount()
    assert os.listdir(fetched) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_under_its_name_it_is_whole(machine, clouds, drive_with_report, folder, number):
    report = drive_with_report
    size = 48 << 20
    report.write_bytes(os.urandom(1 << 20) * 48)
    machine.sync()
    report.write_text("small")
    machine.sync()
    version, = (version for version in listed(machine, report) if version["size"] == size)
    place = folder / "place"
    place.mkdir()
    target = place / "restored.bin"
    restoring = subprocess.Popen(
        [str(OORT), "restore", str(report), "--version", version["id"], "--to", str(target)],
        env=machine.environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL)
    while restoring.poll() is None and not os.listdir(place):
        pass
    restoring.send_signal(number)
    restoring.wait(timeout=60)
    assert not target.exists() or target.stat().st_size == size
    if number == signal.SIGINT:
        assert os.listdir(place) in ([], ["restored.bin"])


def test_names_as_long_as_they_can_be_and_private_files(machine, clouds, cloud, drive, folder):
    report = drive / ("n" * 240 + ".txt")
    for text in TEXTS:
        report.write_text(text)
        machine.sync()
    report.chmod(0o600)
    oldest = listed(machine, report)[-1]
    machine.oort("restore", report, "--version", oldest["id"], "--to", folder / "private")
    assert read(folder / "private") == TEXTS[0]
    assert (folder / "private").stat().st_mode & 0o777 == 0o600
    machine.oort("restore", report, "--version", oldest["id"])
    assert read(report) == TEXTS[0] and os.listdir(drive) == [report.name]


def test_a_file_keeps_its_permissions(machine, clouds, cloud, report):
    versions = listed(machine, report)
    for mode in (0o750, 0o600):
        report.chmod(mode)
        machine.sync()
        machine.oort("restore", report, "--version", versions[2 if mode == 0o750 else 1]["id"])
        assert report.stat().st_mode & 0o7777 == mode
        machine.sync()


def test_a_lost_answer_is_said_and_the_file_shows_what_it_is(machine, clouds, cloud, report):
    versions = listed(machine, report)
    route = {"dropbox": "files/restore", "onedrive": "versions/post"}.get(cloud)
    if route is None:
        return  # Drive's is a save of the file.
    clouds.fault(cloud, route=route, fault="done_but_no_answer")
    if cloud == "dropbox":
        # Done once more it is the same.
        machine.oort("restore", report, "--version", versions[2]["id"])
    else:
        said = machine.oort("restore", report, "--version", versions[2]["id"], status=1)
        assert "no answer" in said and "oort versions" in said
    assert read(report) == "first"
    assert listed(machine, report)[0]["size"] == 5


def test_bad_input(machine, clouds, cloud, drive, report):
    assert "no version" in machine.oort("restore", report, "--version", "such", status=1)
    assert "is not there" in machine.oort("versions", drive / "none", status=1)
    assert "only files have versions" in machine.oort("versions", drive, status=1)
    machine.oort("pause")
    (drive / "new.txt").write_text("new")
    assert "not in the cloud yet" in machine.oort("versions", drive / "new.txt", status=1)
    machine.unmount()
    said = machine.oort("versions", report, status=1)
    assert "No mount is running" in said


def test_somebody_elses_change_is_seen_first(machine, clouds, cloud, drive, report):
    versions = listed(machine, report)
    clouds.edit(cloud, "write", "/report.txt", text="theirs")
    # Either it is known by now, and becomes an earlier version, or nothing is done.
    eventually(lambda: read(report) == "theirs", "it shows")
    machine.oort("restore", report, "--version", versions[2]["id"])
    machine.sync()
    item = clouds.tree(cloud)["/report.txt"]
    assert b"theirs" in Service.on(clouds, cloud).older(item)
    assert clouds.content(cloud, "/report.txt") == b"first"


@pytest.mark.parametrize("kind", ["sftp", "webdav"])
def test_a_server_without_versions(machine, folder, kind):
    server = Server(kind, folder)
    try:
        server.login(machine)
        machine.mount()
        drive = machine.ready(kind)
        (drive / "file").write_text("file")
        machine.sync()
        said = machine.oort("versions", drive / "file", status=1)
        assert "keeps no earlier contents" in said
    finally:
        server.stop()
