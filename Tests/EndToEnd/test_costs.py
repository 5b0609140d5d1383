"""What the mount asks of the services, counted by the simulators."""

import os
import shutil

import pytest

from machine import eventually
from test_programs import saved_as_a_revision

# Asking changes nothing, whatever the method: Dropbox asks by POST.
QUESTIONS = (
    "files/list_folder", "files/get_metadata", "files/download", "files/list_revisions", "users/",
    "oauth", "batch", "check/", "files/search", "files/create_folder_batch/check",
    "files/delete_batch/check", "files/move_batch/check", "files/copy_batch/check")


def changes(clouds, cloud):
    """The calls that change something, by route, since they were last forgotten."""
    found = {}
    for call in clouds.calls(cloud):
        if call["method"] != "GET" and not call["route"].startswith(QUESTIONS):
            found[call["route"]] = found.get(call["route"], 0) + 1
    return found


def bytes_up(clouds, cloud):
    return sum(call["bytes_in"] for call in clouds.calls(cloud))


def test_a_removed_tree_is_one_delete(machine, clouds, cloud, drive):
    for number in range(1000):
        clouds.edit(cloud, "write", f"/tree/folder{number % 10}/file{number}", text="x")
    eventually(lambda: sum(len(files) for _, _, files in os.walk(drive / "tree")) == 1000,
               "the tree shows", timeout=60)
    clouds.forget_calls(cloud)
    machine.run("rm", "-rf", drive / "tree")
    machine.sync()
    assert clouds.tree(cloud) == {}
    assert sum(changes(clouds, cloud).values()) == 1, changes(clouds, cloud)


def test_a_moved_folder_is_one_call(machine, clouds, cloud, drive):
    for number in range(300):
        clouds.edit(cloud, "write", f"/here/folder/file{number}", text="x")
    clouds.edit(cloud, "mkdir", "/there")
    eventually(lambda: (drive / "there").exists() and (drive / "here" / "folder").exists()
               and len(os.listdir(drive / "here" / "folder")) == 300, "the tree shows")
    clouds.forget_calls(cloud)
    machine.run("mv", drive / "here" / "folder", drive / "there" / "renamed")
    machine.sync()
    assert len([p for p in clouds.tree(cloud) if p.startswith("/there/renamed/")]) == 300
    assert sum(changes(clouds, cloud).values()) == 1, changes(clouds, cloud)


def test_a_preserving_copy_is_one_upload_with_its_time(machine, clouds, cloud, drive, folder):
    local = folder / "file.bin"
    local.write_bytes(os.urandom(50_000))
    os.utime(local, (1_600_000_000, 1_600_000_000))
    machine.sync()
    clouds.forget_calls(cloud)
    machine.run("cp", "-p", local, drive / "file.bin")
    machine.sync()
    item = clouds.tree(cloud)["/file.bin"]
    assert item["modified"].startswith("2020-09-13T12:26:40")
    assert item["revisions"] == 1
    assert bytes_up(clouds, cloud) < 60_000
    # A Drive or Graph upload may open a session first; the bytes travel once, nothing follows.
    assert sum(changes(clouds, cloud).values()) <= 2, changes(clouds, cloud)


def test_a_copy_in_the_account_moves_no_bytes(machine, clouds, cloud, drive):
    clouds.edit(cloud, "write", "/original.bin", seed=3, size=3_000_000)
    eventually((drive / "original.bin").exists, "the original shows")
    machine.run("cp", drive / "original.bin", drive / "copy.bin")
    clouds.forget_calls(cloud)
    machine.sync()
    assert clouds.content(cloud, "/copy.bin") == clouds.content(cloud, "/original.bin")
    assert bytes_up(clouds, cloud) < 20_000, clouds.calls(cloud)


def test_known_content_is_not_sent_again(machine, clouds, cloud, drive, folder):
    local = folder / "file.bin"
    local.write_bytes(os.urandom(2_000_000))
    shutil.copyfile(local, drive / "first.bin")
    machine.sync()
    clouds.forget_calls(cloud)
    (drive / "second.bin").write_bytes(local.read_bytes())
    machine.sync()
    assert clouds.content(cloud, "/second.bin") == local.read_bytes()
    assert bytes_up(clouds, cloud) < 20_000, clouds.calls(cloud)


def test_ten_saves_are_one_upload(machine, clouds, cloud, drive):
    machine.sync()
    for number in range(10):
        (drive / "draft.txt").write_text(f"draft {number}\n" * 100)
    machine.sync()
    tree = clouds.tree(cloud)
    assert clouds.content(cloud, "/draft.txt") == b"draft 9\n" * 100
    # The settling time may end between two saves; never is every save an upload.
    assert tree["/draft.txt"]["revisions"] <= 3


def test_many_small_files_go_up_together(machine, clouds, cloud, drive, folder):
    local = folder / "many"
    local.mkdir()
    for number in range(300):
        (local / f"file{number}").write_text(f"content {number}\n")
    clouds.forget_calls(cloud)
    machine.run("cp", "-r", local, drive / "many")
    machine.sync()
    assert len([p for p in clouds.tree(cloud) if p.startswith("/many/")]) == 300
    # Dropbox takes many in one call, Drive each in one; Graph takes a file's time only with an
    # upload session, which is a call of its own.
    most = {"dropbox": 60, "drive": 310, "onedrive": 610}[cloud]
    assert sum(changes(clouds, cloud).values()) <= most, changes(clouds, cloud)


def test_a_save_after_the_temporary_file_went_up(machine, clouds, cloud, drive):
    clouds.edit(cloud, "write", "/note.txt", text="old")
    note = drive / "note.txt"
    eventually(note.exists, "the note is there")
    before = clouds.tree(cloud)["/note.txt"]
    temporary = drive / ".note.txt.tmp"
    temporary.write_text("new")
    machine.sync()
    assert "/.note.txt.tmp" in clouds.tree(cloud)
    os.replace(temporary, note)
    machine.sync()
    saved_as_a_revision(clouds, cloud, "/note.txt", before, b"new")


def test_rsync_over_a_file_is_a_revision(machine, clouds, cloud, drive, folder):
    clouds.edit(cloud, "write", "/data.bin", seed=1, size=200_000)
    eventually((drive / "data.bin").exists, "the file is there")
    before = clouds.tree(cloud)["/data.bin"]
    local = folder / "data.bin"
    local.write_bytes(os.urandom(210_000))
    machine.run("rsync", "-a", local, drive / "data.bin")
    machine.sync()
    saved_as_a_revision(clouds, cloud, "/data.bin", before, local.read_bytes())


@pytest.mark.parametrize("unmounts", [False, True], ids=["first", "after a restart"])
def test_a_find_over_a_thousand_folders(machine, clouds, cloud, unmounts):
    for number in range(1000):
        clouds.edit(cloud, "write", f"/folder{number}/file", text="x")
    machine.login(cloud)
    clouds.forget_calls(cloud)
    machine.mount()
    drive = machine.ready(cloud)
    if unmounts:
        machine.unmount()
        # The mount alone must know the tree: nobody answers.
        clouds.gates[cloud].shut()
        machine.mount()
    found = machine.run("find", drive, "-type", "f").stdout.split()
    assert len(found) == 1000
    if not unmounts:
        counts = clouds.counts(cloud)
        # 2,000 items in pages of 200 (Graph) to 1,000, a few polls; never a listing each.
        assert sum(counts.values()) < 60, counts
