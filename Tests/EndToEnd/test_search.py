"""Finding files in all clouds: by name and path, inside files, from the command and as a folder."""

import json
import os
import subprocess

import pytest

from machine import CLOUDS, OORT, eventually


def search(machine, *arguments, status=0):
    return json.loads(machine.oort("search", "--json", *arguments, status=status))


def paths(machine, *arguments, status=0):
    return [result["path"] for result in search(machine, *arguments, status=status)["results"]]


@pytest.fixture
def all_clouds(machine, clouds):
    """Three mounted accounts, each with a report in a folder and a text that speaks of glaciers."""
    for cloud in CLOUDS:
        clouds.edits(cloud, [
            {"op": "write", "path": f"/Projekte/2024/Jahresbericht {cloud}.pdf", "text": "x" * 3000},
            {"op": "write", "path": "/notes/trip.txt", "text": "We walked over glaciers all day."},
            {"op": "write", "path": "/notes/Übersicht.txt", "text": "none"},
            {"op": "write", "path": "/会议记录.docx", "text": "none"},
        ])
        machine.login(cloud)
    machine.mount()
    for cloud in CLOUDS:
        machine.ready(cloud)
    return machine.mount_point


def test_names_in_all_clouds(machine, clouds, all_clouds):
    top = all_clouds
    expected = {f"{top}/{cloud}/Projekte/2024/Jahresbericht {cloud}.pdf" for cloud in CLOUDS}
    assert set(paths(machine, "BERICHT")) == expected
    assert set(paths(machine, "jahresbericht", "projekte")) == expected
    assert paths(machine, "bericht", "dropbox", "2024") == [
        f"{top}/dropbox/Projekte/2024/Jahresbericht dropbox.pdf"]
    assert set(paths(machine, "ubersicht")) == {f"{top}/{c}/notes/Übersicht.txt" for c in CLOUDS}
    assert set(paths(machine, "会议")) == {f"{top}/{c}/会议记录.docx" for c in CLOUDS}
    assert set(paths(machine, "录")) == {f"{top}/{c}/会议记录.docx" for c in CLOUDS}
    # What is wanted of it.
    assert paths(machine, "bericht", "--in", f"{top}/dropbox") == [
        f"{top}/dropbox/Projekte/2024/Jahresbericht dropbox.pdf"]
    assert set(paths(machine, "projekte", "--kind", "folder")) == {
        f"{top}/{cloud}/Projekte" for cloud in CLOUDS}
    assert set(paths(machine, "bericht", "--kind", "document", "--larger", "2K")) == expected
    assert paths(machine, "bericht", "--larger", "1M", status=1) == []
    assert set(paths(machine, "bericht", "--newer", "1d")) == expected
    assert paths(machine, "bericht", "--newer", "2999-01-01", status=1) == []
    assert len(paths(machine, "bericht", "--limit", "2")) == 2
    # Each result is really there.
    for path in expected:
        assert os.stat(path).st_size == 3000
    said = machine.oort("search", "bericht", "drive")
    assert "2.9 KiB" in said and f"{top}/drive/Projekte/2024/Jahresbericht drive.pdf\n" in said


def test_a_search_follows_the_tree(machine, clouds, cloud, drive):
    """What is made, renamed and removed on either side is found so at once."""
    (drive / "folder").mkdir()
    (drive / "folder" / "invoice.txt").write_text("one")
    assert paths(machine, "invoice") == [f"{drive}/folder/invoice.txt"]
    os.rename(drive / "folder", drive / "taxes")
    assert paths(machine, "invoice", "taxes") == [f"{drive}/taxes/invoice.txt"]
    assert paths(machine, "invoice", "folder", status=1) == []
    os.rename(drive / "taxes" / "invoice.txt", drive / "bill.txt")
    assert paths(machine, "invoice", status=1) == []
    assert paths(machine, "bill") == [f"{drive}/bill.txt"]
    machine.sync()
    clouds.edit(cloud, "move", "/bill.txt", to="/quittance.txt")
    eventually(lambda: (drive / "quittance.txt").exists(), "the rename shows")
    assert paths(machine, "bill", status=1) == []
    assert paths(machine, "quittance") == [f"{drive}/quittance.txt"]
    os.remove(drive / "quittance.txt")
    assert paths(machine, "quittance", status=1) == []
    # After a restart, too, and without a mount.
    (drive / "last.txt").write_text("x")
    machine.unmount()
    assert paths(machine, "last") == [f"{cloud}/last.txt"]
    assert paths(machine, "last", "--in", f"{drive}") == [f"{cloud}/last.txt"]
    assert "No mount is running" in machine.oort("search", "last")
    machine.mount()
    assert paths(machine, "last") == [f"{drive}/last.txt"]


def test_many_names(machine, clouds, cloud):
    """More names than one step of the index has: all are found, by the index and beside it."""
    clouds.edits(cloud, [
        {"op": "write", "path": f"/many/scan {number:04}.txt", "text": "x"} for number in range(1500)])
    machine.login(cloud)
    machine.mount()
    drive = machine.ready(cloud)
    assert paths(machine, "scan 0777") == [f"{drive}/many/scan 0777.txt"]
    assert len(paths(machine, "scan", "--limit", "2000")) == 1500
    report = search(machine, "scan", "--limit", "10")
    assert len(report["results"]) == 10 and report["is_cut"]


def test_inside_files(machine, clouds, all_clouds):
    top = all_clouds
    expected = {f"{top}/{cloud}/notes/trip.txt" for cloud in CLOUDS}
    # A name is found without the services.
    for cloud in CLOUDS:
        clouds.forget_calls(cloud)
    assert paths(machine, "glaciers", status=1) == []
    assert not any("search" in route for cloud in CLOUDS for route in clouds.counts(cloud))
    report = search(machine, "glaciers", "--content")
    assert {result["path"] for result in report["results"]} == expected
    assert {result["found"] for result in report["results"]} == {"content"}
    assert report["notes"] == []
    # Once each, although both find it.
    assert sorted(paths(machine, "trip", "--content")) == sorted(expected)
    assert paths(machine, "glaciers", "--content", "--in", f"{top}/drive/notes") == [
        f"{top}/drive/notes/trip.txt"]
    assert paths(machine, "glaciers", "--content", "--kind", "image", status=1) == []
    # The services' indexes are late: what went to the trash is not shown.
    for cloud in CLOUDS:
        clouds.edit(cloud, "trash", "/notes/trip.txt")
    for cloud in CLOUDS:
        eventually(lambda: not (top / cloud / "notes" / "trip.txt").exists(), "it is gone")
    assert paths(machine, "glaciers", "--content", status=1) == []
    # One account cannot be asked; the others answer.
    clouds.gates["drive"].shut()
    clouds.edit("onedrive", "write", "/new.txt", text="More glaciers.")
    report = search(machine, "glaciers", "--content", status=0)
    assert [result["path"] for result in report["results"]] == [f"{top}/onedrive/new.txt"]
    assert any(note.startswith("drive was not searched") for note in report["notes"])


def test_pages_of_contents(machine, clouds, cloud):
    clouds.edits(cloud, [
        {"op": "write", "path": f"/many/file{number:03}.txt", "text": "about moraines"}
        for number in range(230)])
    machine.login(cloud)
    machine.mount()
    drive = machine.ready(cloud)
    found = paths(machine, "moraines", "--content", "--limit", "1000")
    assert sorted(found) == [f"{drive}/many/file{number:03}.txt" for number in range(230)]


def test_the_folder_of_searches(machine, clouds, all_clouds):
    top = all_clouds
    assert sorted(os.listdir(top)) == sorted(CLOUDS)
    found = machine.run("find", top, "-name", ".search*").stdout
    assert found == ""
    folder = top / ".search" / "bericht 2024"
    assert os.listdir(top / ".search") == []
    names = machine.run("ls", folder).stdout.splitlines()
    assert sorted(names) == sorted(f"Jahresbericht {cloud}.pdf" for cloud in CLOUDS)
    for cloud in CLOUDS:
        link = folder / f"Jahresbericht {cloud}.pdf"
        assert link.is_symlink() and link.read_bytes() == b"x" * 3000
        assert link.resolve() == top / cloud / "Projekte" / "2024" / link.name
    # Three of one name.
    names = os.listdir(top / ".search" / "trip")
    assert sorted(names) == ["trip (2).txt", "trip (3).txt", "trip.txt"]
    assert {os.path.realpath(top / ".search" / "trip" / name) for name in names} == {
        f"{top}/{cloud}/notes/trip.txt" for cloud in CLOUDS}
    assert os.listdir(top / ".search" / "no such thing") == []
    # It follows the tree.
    (top / "drive" / "trip too.txt").write_text("x")
    eventually(lambda: "trip too.txt" in os.listdir(top / ".search" / "trip"), "it is found")
    # Nothing in it can be changed, and what desktops look for everywhere is not searched.
    for change in (["mkdir", folder / "new"], ["rm", folder / "Jahresbericht drive.pdf"],
                   ["touch", folder / "new"], ["rmdir", folder], ["mkdir", top / ".search" / ".x"],
                   ["mv", top / "drive" / "trip too.txt", folder / "x"]):
        result = machine.run(*change, status=None)
        assert result.returncode != 0, change
        assert "Read-only" in result.stdout or "Permission" in result.stdout, result.stdout
    assert not (top / ".search" / ".git").exists()
    assert (top / "drive" / "trip too.txt").exists()
    machine.sync()


def test_what_cannot_be_searched(machine, clouds, cloud):
    said = machine.oort("search", "x", status=1)
    assert "nothing is known of any cloud" in said and "oort login" in said
    machine.login(cloud)
    machine.mount()
    drive = machine.ready(cloud)
    (drive / "file.txt").write_text("x")
    assert "Nothing was found for \"nowhere\"" in machine.oort("search", "nowhere", status=1)
    assert "nothing to look for" in machine.oort("search", "!?", status=1)
    assert "is not there" in machine.oort("search", "x", "--in", f"{drive}/none", status=1)
    assert "is not a folder" in machine.oort("search", "x", "--in", f"{drive}/file.txt", status=1)
    assert "does not lie in the mount" in machine.oort("search", "x", "--in", "/etc", status=1)
    for wrong in (["--newer", "tomorrow"], ["--newer", "2026-02-30"], ["--newer", "7"],
                  ["--kind", "thing"], ["--larger", "much"], ["--limit", "0"]):
        assert wrong[0] in machine.oort("search", "x", *wrong, status=2), wrong
    # A name that acts on a terminal is shown, not carried out.
    (drive / "evil\u202ename.txt").write_text("x")
    result = subprocess.run([OORT, "search", "evil"], env=machine.environment, capture_output=True)
    assert result.returncode == 0 and "\u202e".encode() not in result.stdout
    assert b"\\u{202e}" in result.stdout
