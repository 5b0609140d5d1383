"""An OpenCloud, simulated: its spaces, what it looks over first, what it keeps of what was deleted."""

import json
import os
import random

import pytest

from cloud_servers import CloudServer
from machine import OORT, eventually, read
from test_registration import Terminal


@pytest.fixture
def server(folder):
    server = CloudServer("opencloud", folder)
    yield server
    server.stop()


def sign_in(machine, server, name, *options, status=0):
    token = server.password()
    return machine.oort(
        "login", "webdav", f"{server.base}/opencloud.example.org/files/spaces/personal/ada",
        "--user", "ada", "--password-file", "-", "--name", name, *options, input=token + "\n",
        status=status)


@pytest.fixture
def drive(machine, server):
    sign_in(machine, server, "cloud")
    machine.mount()
    return machine.ready("cloud")


def ask(machine, *arguments):
    return json.loads(machine.oort(*arguments, "--json"))


def test_a_day_at_an_opencloud(machine, server, drive):
    # The server checks every upload before it shows it, and folders show changes below them late.
    server.control("PUT", "habits", {"processing": 2, "lag": 1})
    (drive / "papers" / "deep").mkdir(parents=True)
    (drive / "papers" / "100% ü.txt").write_text("the note")
    large = random.Random(1).randbytes(70 << 20)
    (drive / "papers" / "deep" / "large.bin").write_bytes(large)
    machine.sync()
    tree = server.tree()
    assert set(tree) == {"/papers", "/papers/100% ü.txt", "/papers/deep", "/papers/deep/large.bin"}
    assert machine.status_code() == 0
    calls = json.loads(server.control("GET", "counts"))
    assert calls["PATCH data"]["calls"] >= 7
    # Another client writes, moves and deletes.
    server.control("POST", "edits", [
        {"op": "write", "path": "/papers/100% ü.txt", "text": "theirs"},
        {"op": "move", "path": "/papers/deep/large.bin", "to": "/large.bin"},
        {"op": "write", "path": "/new/of theirs.txt", "text": "new"},
        {"op": "trash", "path": "/papers/deep"}])
    eventually(lambda: read(drive / "papers" / "100% ü.txt") == "theirs", "their words", 240)
    eventually((drive / "large.bin").exists, "their move")
    eventually(lambda: not (drive / "papers" / "deep").exists(), "their deletion")
    eventually(lambda: read(drive / "new" / "of theirs.txt") == "new", "their file")
    assert (drive / "large.bin").read_bytes() == large
    machine.sync()
    assert machine.status_code() == 0


def test_a_large_file_goes_up_once_though_the_server_is_slow_to_make_it(machine, server, drive):
    # The last part is answered by a proxy in the server's place, which reads all of it meanwhile.
    server.control("PUT", "habits", {"finishing": 6})
    first, second = (random.Random(seed).randbytes(65 << 20) for seed in (3, 4))
    (drive / "large.bin").write_bytes(first)
    machine.sync()
    assert json.loads(server.control("GET", "counts"))["PATCH data"]["calls"] == 7
    # A save while the outcome of the previous upload is unknown is no conflict.
    server.control("PUT", "habits", {"finishing": 3})
    (drive / "large.bin").write_bytes(second)
    eventually(lambda: json.loads(server.control("GET", "counts"))["PATCH data"]["calls"] == 14,
               "all of the second content is sent")
    (drive / "large.bin").write_bytes(first)
    machine.sync()
    assert set(server.tree()) == {"/large.bin"}
    assert (drive / "large.bin").read_bytes() == first


def test_two_saves_of_one_file_are_both_kept(machine, server, drive):
    (drive / "report.txt").write_text("first")
    machine.sync()
    machine.unmount()
    server.control("POST", "edit", {"op": "write", "path": "/report.txt", "text": "theirs"})
    machine.mount("--poll-interval", "600s")
    (drive / "report.txt").write_text("mine")
    machine.oort("sync", "--timeout", "120s", status=None)
    def both():
        texts = {read(path) for path in drive.glob("report*.txt")}
        return texts == {"theirs", "mine"}
    eventually(both, "both are there")
    eventually(lambda: len(server.tree()) == 2, "the server has both")


def test_each_space_is_an_account(machine, server):
    sign_in(machine, server, "cloud")
    assert '"The Team"' in sign_in(machine, server, "none", "--space", "none such", status=1)
    sign_in(machine, server, "team", "--space", "The Team")
    machine.mount()
    (mine, team) = (machine.ready("cloud"), machine.ready("team"))
    (mine / "plan.txt").write_text("the plan")
    machine.sync()
    machine.run("mv", mine / "plan.txt", team / "plan.txt")
    machine.sync()
    assert read(team / "plan.txt") == "the plan" and not (mine / "plan.txt").exists()
    contents = json.loads(server.control("GET", "contents"))
    assert [item["trashed"] for item in contents] in ([True, False], [False, True])
    # What is deleted lies in the trash of its own space.
    trash = {entry["path"] for entry in ask(machine, "trash")["entries"]}
    assert trash == {str(mine / "plan.txt")}
    words = machine.oort("accounts", "--verbose")
    assert "cloud" in words and "team" in words


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
    machine.oort("restore", drive / "papers" / "old")
    server.control("POST", "faults", {"route": "MOVE trash-bin", "fault": "done_but_no_answer"})
    machine.oort("restore", drive / "papers" / "100% ü.txt")
    assert read(drive / "papers" / "old" / "deep.txt") == "deep"
    assert read(drive / "papers" / "100% ü.txt") == "the note"
    machine.sync()
    assert {path: item["id"] for path, item in server.tree().items()} == {
        path: item["id"] for path, item in known.items()}
    assert ask(machine, "trash")["entries"] == [] and machine.status_code() == 0


def test_versions_and_links(machine, server, drive, folder):
    path = drive / "report.txt"
    for second, text in enumerate(["first", "the second", "and the third"]):
        path.write_text(text)
        machine.run("touch", "-d", f"2024-01-01 12:00:0{second}", path)
        machine.sync()
    assert int(os.stat(path).st_mtime) % 60 == 2
    versions = ask(machine, "versions", path)["versions"]
    assert [version["size"] for version in versions] == [13, 10, 5]
    machine.oort("restore", path, "--version", versions[2]["id"], "--to", folder / "old")
    assert read(folder / "old") == "first" and read(path) == "and the third"
    machine.oort("restore", path, "--version", versions[1]["id"])
    assert read(path) == "the second"
    machine.sync()
    assert list(server.tree()) == ["/report.txt"] and machine.status_code() == 0
    made = ask(machine, "share", path)
    assert not made["existed"] and ask(machine, "share", path)["url"] == made["url"]
    assert [link["url"] for link in ask(machine, "share", "--list")["links"]] == [made["url"]]
    machine.oort("unshare", path)
    assert ask(machine, "share", "--list")["links"] == []


def test_a_token_is_told_nowhere(machine, server, drive):
    (drive / "large.bin").write_bytes(random.Random(2).randbytes(65 << 20))
    machine.sync()
    # Nor the addresses to which parts of uploads go, of which each is a permission.
    secrets = json.loads(server.control("GET", "secrets"))
    assert len(secrets) >= 2
    assert not any(secret in machine.log() for secret in secrets)


def test_name_and_token_are_asked_for_with_the_page_where_a_token_is_made(machine, server):
    token = server.password()
    for command in ("webdav", "nextcloud"):
        login = Terminal(
            [str(OORT), "login", command, f"{server.base}/opencloud.example.org/files",
             "--name", command, *(["--space", "The Team"] if command == "webdav" else [])],
            machine.environment)
        try:
            place = login.until(f"{server.base}/opencloud.example.org/account")
            login.until("The name with which you log in there:", place)
            login.type("ada")
            login.until("App token of ada:", place)
            login.type(token)
            eventually(lambda: login.process.poll() is not None, "it ended")
            assert login.process.returncode == 0, login.said
        finally:
            login.close()
    machine.mount()
    (machine.ready("nextcloud") / "file.txt").write_text("content")
    machine.sync()
    assert list(server.tree()) == ["/file.txt"]
    assert token not in machine.log()
