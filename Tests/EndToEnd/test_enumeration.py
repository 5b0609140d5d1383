"""What programs do while the tree of an account is still being read."""

import os

import pytest

from machine import eventually, read

# The route of an enumeration's pages, and how many requests of it come before the third page.
PAGES = {
    "dropbox": ("files/list_folder/continue", 1),
    "drive": ("files.list", 2),
    "onedrive": ("delta/get", 2),
}


@pytest.fixture
def amid(machine, clouds, cloud):
    """A mount that knows the documents, and is to wait for the rest of the account."""
    clouds.edits(cloud, [
        {"op": "mkdir", "path": "/docs"},
        {"op": "write", "path": "/docs/report.txt", "text": "first"},
        *({"op": "write", "path": f"/other/{number}.txt", "text": "x"} for number in range(12))])
    route, before = PAGES[cloud]
    clouds.fault(cloud, route=route, fault="stall", seconds=12, skipping=before)
    machine.login(cloud)
    machine.mount()
    # Before the first page shows anything, a look would be a listing of its own.
    eventually(lambda: clouds.fault_counts(cloud), "the third page is asked for")
    assert machine.account(cloud)["state"] != "up to date"
    return machine.mount_point / cloud / "docs"


def test_a_save_by_rename_keeps_the_file(machine, clouds, cloud, amid):
    report = amid / "report.txt"
    before = clouds.tree(cloud)["/docs/report.txt"]
    assert read(report) == "first"
    (amid / "report.tmp").write_text("second")
    (amid / "report.tmp").rename(report)
    inode = report.stat().st_ino
    eventually(lambda: clouds.content(cloud, "/docs/report.txt") == b"second", "it is sent")
    machine.ready(cloud)
    machine.sync()
    assert os.listdir(amid) == ["report.txt"]
    assert read(report) == "second"
    assert report.stat().st_ino == inode
    tree = clouds.tree(cloud)
    assert tree["/docs/report.txt"]["id"] == before["id"]
    assert tree["/docs/report.txt"]["size"] == 6
    assert len(tree) == 15
    assert sorted(os.listdir(amid.parent)) == ["docs", "other"]
    # One item with both revisions, and no other one of either content.
    revisions = [item["hashes"] for item in clouds.contents(cloud) if item["id"] == before["id"]]
    assert len(revisions) == 1 and len(revisions[0]) == 2


def test_what_is_made_meanwhile_stays(machine, clouds, cloud, amid):
    (amid / "new").mkdir()
    (amid / "new" / "file.txt").write_text("new")
    (amid / "report.txt").rename(amid / "new" / "moved.txt")
    inodes = [(amid / "new" / name).stat().st_ino for name in ("file.txt", "moved.txt")]
    eventually(
        lambda: {"/docs/new/file.txt", "/docs/new/moved.txt"} <= set(clouds.tree(cloud)), "both are sent")
    machine.ready(cloud)
    machine.sync()
    assert sorted(os.listdir(amid / "new")) == ["file.txt", "moved.txt"]
    assert [(amid / "new" / name).stat().st_ino for name in ("file.txt", "moved.txt")] == inodes
    assert len(clouds.tree(cloud)) == 17
