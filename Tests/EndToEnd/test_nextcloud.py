"""A Nextcloud, simulated: what it keeps of what was deleted and overwritten, and its links."""

import base64
import datetime
import json
import os
import time
import urllib.parse
import urllib.request

import pytest

from cloud_servers import CloudServer
from machine import eventually, read


@pytest.fixture
def server(folder):
    server = CloudServer("nextcloud", folder)
    yield server
    server.stop()


def sign_in(machine, server, *options):
    password = server.password()
    machine.oort("login", "nextcloud", f"{server.base}/cloud.example.org", "--user",
                 "ada@example.com", "--password-file", "-", *options, input=password + "\n")


@pytest.fixture
def drive(machine, server):
    sign_in(machine, server)
    machine.mount()
    return machine.ready("nextcloud")


def ask(machine, *arguments):
    return json.loads(machine.oort(*arguments, "--json"))


def test_the_user_may_stand_in_the_address(machine, server):
    password = server.password()
    base = server.base.replace("://", "://ada%40example.com@")
    machine.oort("login", "nextcloud", f"{base}/cloud.example.org", "--password-file", "-",
                 input=password + "\n")
    machine.mount()
    machine.ready("nextcloud")


def test_the_trash(machine, server, drive):
    (drive / "papers" / "old").mkdir(parents=True)
    (drive / "papers" / "100% ü.txt").write_text("the note")
    (drive / "papers" / "old" / "deep.txt").write_text("deep")
    machine.sync()
    known = server.tree()
    (drive / "papers" / "100% ü.txt").unlink()
    machine.run("rm", "-r", drive / "papers" / "old")
    machine.sync()
    entries = {entry["path"]: entry for entry in ask(machine, "trash")["entries"]}
    assert set(entries) == {str(drive / "papers" / "100% ü.txt"), str(drive / "papers" / "old")}
    assert entries[str(drive / "papers" / "old")]["kind"] == "folder"
    machine.oort("restore", drive / "papers" / "old")
    machine.oort("restore", drive / "papers" / "100% ü.txt")
    assert read(drive / "papers" / "old" / "deep.txt") == "deep"
    assert read(drive / "papers" / "100% ü.txt") == "the note"
    machine.sync()
    after = server.tree()
    assert {path: item["id"] for path, item in after.items()} == {
        path: item["id"] for path, item in known.items()}
    assert ask(machine, "trash")["entries"] == [] and machine.status_code() == 0
    # Another client has the name by then, which is not shown here yet.
    (drive / "papers" / "100% ü.txt").unlink()
    machine.sync()
    server.control("POST", "edit",
                   {"op": "write", "path": "/papers/100% ü.txt", "text": "theirs"})
    assert "nothing was restored" in machine.oort(
        "restore", drive / "papers" / "100% ü.txt", status=1)
    machine.oort("restore", drive / "papers" / "100% ü.txt", "--to", drive / "back.txt")
    assert read(drive / "back.txt") == "the note"
    # An answer that is lost.
    (drive / "back.txt").unlink()
    machine.sync()
    server.control("POST", "faults", {"route": "MOVE trashbin", "fault": "done_but_no_answer"})
    machine.oort("restore", drive / "back.txt")
    assert read(drive / "back.txt") == "the note"


def test_a_folder_of_the_trash_comes_back_elsewhere(machine, server, drive):
    (drive / "papers" / "old").mkdir(parents=True)
    (drive / "papers" / "old" / "deep.txt").write_text("deep")
    (drive / "new").mkdir()
    machine.sync()
    known = server.tree()
    machine.run("rm", "-r", drive / "papers" / "old")
    machine.sync()
    (drive / "papers" / "old").write_text("a file of the same name")
    machine.sync()
    machine.oort("restore", drive / "papers" / "old", "--to", drive / "new" / "kept")
    assert read(drive / "new" / "kept" / "deep.txt") == "deep"
    assert read(drive / "papers" / "old") == "a file of the same name"
    machine.sync()
    after = server.tree()
    assert after["/new/kept"]["id"] == known["/papers/old"]["id"]
    assert after["/new/kept/deep.txt"]["id"] == known["/papers/old/deep.txt"]["id"]
    assert "/new/kept (restored)" not in after and "/papers/old (restored)" not in after



def test_versions(machine, server, drive, folder):
    path = drive / "report.txt"
    for second, text in enumerate(["first", "the second", "and the third"]):
        path.write_text(text)
        machine.run("touch", "-d", f"2024-01-01 12:00:0{second}", path)
        machine.sync()
    versions = ask(machine, "versions", path)["versions"]
    assert [version["size"] for version in versions] == [13, 10, 5]
    assert [version["is_current"] for version in versions] == [True, False, False]
    machine.oort("restore", path, "--version", versions[2]["id"], "--to", folder / "old")
    assert read(folder / "old") == "first" and read(path) == "and the third"
    machine.oort("restore", path, "--version", versions[1]["id"])
    assert read(path) == "the second"
    machine.sync()
    assert list(server.tree()) == ["/report.txt"] and machine.status_code() == 0
    assert "only files" in machine.oort("versions", drive, status=1)


def test_a_link_with_other_rights_is_no_link_to_read(machine, server, drive):
    (drive / "box").mkdir()
    (drive / "box" / "note.txt").write_text("for some")
    machine.sync()
    secret = base64.b64encode(f"ada@example.com:{server.password()}".encode()).decode()
    others = {}
    # Only to upload; to read and to upload; to read and change, but not to delete.
    for rights in ("4", "5", "7"):
        request = urllib.request.Request(
            f"{server.base}/cloud.example.org/ocs/v2.php/apps/files_sharing/api/v1/shares?format=json",
            data=urllib.parse.urlencode(
                {"path": "/box", "shareType": "3", "permissions": rights}).encode(),
            headers={"OCS-APIRequest": "true", "Authorization": f"Basic {secret}"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            others[rights] = json.load(answer)["ocs"]["data"]["url"]
    for flags, may_edit in (([], False), (["--edit"], True)):
        made = ask(machine, "share", drive / "box", *flags)
        assert not made["existed"] and made["may_edit"] == may_edit
        assert made["url"] not in others.values()
    listed = {link["url"]: link for link in ask(machine, "share", "--list", drive / "box")["links"]}
    assert len(listed) == 5
    for url in others.values():
        assert listed[url]["has_other_rights"] and not listed[url]["may_edit"]
    said = machine.oort("share", "--list", drive / "box")
    assert said.count("was set at the service") == 3 and said.count("may read it") == 1


def test_links(machine, server, drive, folder):
    (drive / "for all").mkdir()
    (drive / "for all" / "a & ü.txt").write_text("for all")
    machine.sync()
    path = drive / "for all" / "a & ü.txt"
    made = ask(machine, "share", path)
    assert not made["existed"] and not made["may_edit"]
    # A Nextcloud would make a second one.
    assert ask(machine, "share", path)["url"] == made["url"]
    secret = folder / "secret"
    secret.write_text("correct horse & more\n")
    special = ask(machine, "share", drive / "for all", "--edit", "--expires", "7d",
                  "--password-file", secret)
    assert special["may_edit"] and special["has_password"]
    end = datetime.datetime.fromisoformat(special["expires"].replace("Z", "+00:00"))
    left = end - datetime.datetime.now(datetime.timezone.utc)
    assert datetime.timedelta(days=6) < left < datetime.timedelta(days=9)
    links = {link["path"]: link["url"] for link in ask(machine, "share", "--list")["links"]}
    assert links == {str(path): made["url"], str(drive / "for all"): special["url"]}
    assert "correct horse" not in machine.log()
    server.control("POST", "faults", {
        "route": "POST ocs/apps/files_sharing/api/v1/shares", "fault": "done_but_no_answer"})
    editable = ask(machine, "share", path, "--edit")
    assert len(ask(machine, "share", "--list", path)["links"]) == 2
    machine.oort("unshare", editable["url"])
    machine.oort("unshare", path)
    assert [link["url"] for link in ask(machine, "share", "--list")["links"]] == [special["url"]]


def test_what_others_share_names_them(machine, server, drive):
    (drive / "mine.txt").write_text("mine")
    machine.sync()
    server.control("POST", "edit", {"op": "share", "path": "/theirs.txt", "text": "theirs"})
    eventually((drive / "theirs.txt").exists, "the other one's file shows")

    def told(name):
        return {key: os.getxattr(drive / name, key).decode()
                for key in os.listxattr(drive / name)
                if key.removeprefix("user.oort.") in ("owner", "shared")}

    theirs = {"user.oort.owner": "Grace Other", "user.oort.shared": "yes"}
    for _ in range(2):
        assert told("theirs.txt") == theirs and told("mine.txt") == {}
        machine.unmount()
        machine.mount()
        machine.ready("nextcloud")


def test_whom_a_file_is_shared_with_and_its_tags(machine, server, drive):
    (drive / "plan.txt").write_text("plan")
    machine.sync()
    server.control("POST", "edits", [
        {"op": "lend", "path": "/plan.txt", "people": [
            {"name": "Grace Other"}, {"name": "Staff; all", "group": True}]},
        {"op": "tag", "path": "/plan.txt", "tags": ["urgent", "R&D"]},
        # A tag alone changes no etag: what lies in a folder is listed when something in it changes.
        {"op": "write", "path": "/new.txt", "text": "new"}])
    eventually((drive / "new.txt").exists, "the folder was listed")
    told = {
        "user.oort.shared": "yes", "user.oort.sharedWith": "Grace Other; Staff, all (group)",
        "user.oort.tags": "R&D; urgent"}
    for _ in range(2):
        names = set(os.listxattr(drive / "plan.txt"))
        assert names >= told.keys()
        assert {name: os.getxattr(drive / "plan.txt", name).decode() for name in told} == told
        assert told.keys().isdisjoint(os.listxattr(drive / "new.txt"))
        found = ask(machine, "search", "urgent")["results"]
        assert [result["path"] for result in found] == [str(drive / "plan.txt")]
        machine.unmount()
        machine.mount()
        machine.ready("nextcloud")


def test_a_space_is_refused_before_a_browser_opens_where_the_server_has_none(machine, server):
    said = machine.oort("login", "nextcloud", f"{server.base}/cloud.example.org", "--no-browser",
                        "--space", "The Team", status=1)
    assert "Only an OpenCloud or ownCloud Infinite Scale has spaces" in said
    assert "In a browser" not in said


def test_a_password_that_is_typed_is_kept_nowhere(machine, server):
    machine.oort("login", "nextcloud", f"{server.base}/cloud.example.org", "--user",
                 "ada@example.com", "--password-file", "-", input="correct horse\n")
    machine.mount()
    drive = machine.ready("nextcloud")
    (drive / "file.txt").write_text("by the app password")
    machine.sync()
    assert "/file.txt" in server.tree()
    kept = [path for path in machine.folder.rglob("*")
            if path.is_file() and b"correct horse" in path.read_bytes()]
    assert kept == []


def test_no_app_password_stays_of_a_sign_in_that_failed(machine, server):
    sign_in(machine, server, "--name", "mine")
    server.control("POST", "edit", {"op": "write", "path": "/part/file.txt", "text": "text"})
    server.control("DELETE", "calls")

    def sign_in_below(name, status):
        # Another account, since it begins in another folder.
        return machine.oort("login", "nextcloud", f"{server.base}/cloud.example.org", "--user",
                            "ada@example.com", "--password-file", "-", "--root", "part", "--name",
                            name, input="correct horse\n", status=status)

    def removals():
        calls = json.loads(server.control("GET", "calls"))
        return [call["status"] for call in calls if call["route"].startswith("DELETE")]

    sign_in_below("mine", status=1)
    assert removals() == [200]
    # One that is kept stays.
    sign_in_below("part", status=0)
    assert removals() == [200]


def test_a_restored_backup_takes_nothing_away_before_a_new_sign_in(machine, server, drive):
    (drive / "since.txt").write_text("written since the backup")
    (drive / "older.txt").write_text("the newer content")
    machine.sync()
    # An administrator restores a backup, and says so.
    server.control("POST", "backup")
    server.control("POST", "edits", [
        {"op": "remove", "path": "/since.txt"},
        {"op": "write", "path": "/older.txt", "text": "the older content"}])
    machine.oort("sync", "--timeout", "300s", status=None)
    eventually(lambda: machine.account("nextcloud")["state"] == "trouble", "it is told")
    assert "restored from a backup" in machine.oort("status")
    assert read(drive / "since.txt") == "written since the backup"
    assert read(drive / "older.txt") == "the newer content"
    # Also after a restart, and what is written meanwhile waits.
    (drive / "new.txt").write_text("new")
    machine.unmount()
    machine.mount()
    eventually(lambda: machine.account("nextcloud")["state"] == "trouble", "it is told again")
    assert read(drive / "since.txt") == "written since the backup"
    assert "/new.txt" not in server.tree()
    # Who signs in again takes over what the server has.
    sign_in(machine, server, "--name", "nextcloud")
    machine.ready("nextcloud")
    machine.sync()
    eventually(lambda: not (drive / "since.txt").exists(), "what the server lacks is gone")
    eventually(lambda: read(drive / "older.txt") == "the older content", "what it has is here")
    eventually(lambda: "/new.txt" in server.tree(), "what was written meanwhile is there")


def test_notices_of_changes(machine, server):
    """With the app notify_push a change shows although the next poll is an hour away."""
    server.control("PUT", "habits", {"push": True})
    sign_in(machine, server)
    machine.write_settings('poll_interval = "1h"\nsettle = "100ms"\n')
    machine.mount()
    drive = machine.ready("nextcloud")
    eventually(lambda: pushes(server) == 1, "it listens")
    server.control("POST", "edit", {"op": "write", "path": "/theirs.txt", "text": "one"})
    eventually(lambda: (drive / "theirs.txt").exists(), "a new file shows")
    server.control("POST", "edit", {"op": "write", "path": "/theirs.txt", "text": "another"})
    eventually(lambda: read(drive / "theirs.txt") == "another", "a change shows")
    (drive / "mine.txt").write_text("mine")
    machine.sync()
    # Nothing is asked while nothing changes: what was there is known by now.
    eventually(lambda: is_still(server), "it is quiet")
    server.control("POST", "edit", {"op": "trash", "path": "/theirs.txt"})
    eventually(lambda: not (drive / "theirs.txt").exists(), "what is deleted goes")
    assert read(drive / "mine.txt") == "mine"
    # Who has no password any more hears nothing either, until there is a new one.
    server.control("POST", "tokens/revoke")
    server.control("POST", "edit", {"op": "write", "path": "/later.txt", "text": "later"})
    eventually(lambda: machine.account("nextcloud")["state"] == "trouble", "it is signed out")
    sign_in(machine, server)
    eventually(lambda: (drive / "later.txt").exists(), "all goes on with a new password")


def pushes(server):
    counts = json.loads(server.control("GET", "counts"))
    return sum(count["calls"] for route, count in counts.items() if route == "webSocket")


def is_still(server):
    """Whether the server was asked nothing for a second."""
    def calls():
        counts = json.loads(server.control("GET", "counts"))
        return sum(count["calls"] for count in counts.values())
    before = calls()
    time.sleep(1)
    return calls() == before
