"""Box, simulated: the most telling of what the other services go through, and what only Box has."""

import json

import pytest

from machine import eventually, read
from test_both_sides import (
    test_edits_on_both_sides_are_both_kept, test_nothing_is_lost_by_a_kill,
    test_remote_changes_appear)
from test_crashes import test_a_large_upload_survives_network_and_session
from test_programs import test_git, test_move_copy_and_remove
from test_registration import terminal, test_a_registration_is_led
from test_share import shared, test_a_link_is_made_once_and_taken_back
from test_sign_in import login, test_logout_revokes, test_with_a_browser, test_without_a_browser
from test_trash import test_a_file_comes_back, test_a_folder_comes_back_with_all_in_it
from test_versions import report, test_a_version_is_current_again

pytestmark = pytest.mark.clouds("box")

# What is imported to be run here, with the fixtures that it needs.
__all__ = [
    "login", "report", "shared", "terminal", "test_a_file_comes_back",
    "test_a_folder_comes_back_with_all_in_it", "test_a_large_upload_survives_network_and_session",
    "test_a_link_is_made_once_and_taken_back", "test_a_registration_is_led",
    "test_a_version_is_current_again", "test_edits_on_both_sides_are_both_kept", "test_git",
    "test_logout_revokes", "test_move_copy_and_remove", "test_nothing_is_lost_by_a_kill",
    "test_remote_changes_appear", "test_with_a_browser", "test_without_a_browser",
]


@pytest.fixture
def cloud():
    return "box"


def test_it_opens_the_web_page(machine, clouds, drive):
    note = drive / "papers" / "note.txt"
    note.parent.mkdir()
    note.write_text("the note")
    machine.sync()
    tree = clouds.tree("box")
    number = tree["/papers/note.txt"]["id"][1:]
    assert machine.oort("open", note, "--print").strip() == f"https://app.box.com/file/{number}"
    number = tree["/papers"]["id"][1:]
    assert machine.oort("open", note.parent, "--print").strip().endswith(f"/folder/{number}")
    assert machine.oort("open", drive, "--print").strip() == "https://app.box.com/folder/0"


@pytest.mark.sample
def test_a_web_link_is_a_small_file(machine, drive):
    link = drive / "Documents" / "Harbour webcam.url"
    assert "URL=https://example.com/harbour" in link.read_text()
    with pytest.raises(PermissionError):
        link.write_text("mine")


def test_no_one_signs_in_without_the_secret(machine, folder):
    settings = machine.settings().replace("client_secret_file", "# client_secret_file")
    machine.write_settings(settings)
    said = machine.oort("login", "box", "--no-browser", status=1)
    assert "--client-secret-file FILE" in said


def test_refresh_tokens_work_once_and_a_kill_loses_none(machine, clouds, cloud, drive):
    """After each refresh the machine dies; what it stored before lets it in again."""
    for number in range(3):
        clouds.control(cloud, "POST", "tokens/expire")
        (drive / f"{number}.txt").write_text(f"number {number}")
        machine.sync()
        machine.kill()
        machine.mount()
        machine.ready(cloud)
        assert read(drive / f"{number}.txt") == f"number {number}"
    assert clouds.counts(cloud)["oauth/token"] >= 3
    assert {f"/{number}.txt" for number in range(3)} <= set(clouds.tree(cloud))


def test_removing_a_tree_is_one_call(machine, clouds, cloud, drive):
    for number in range(5):
        (drive / "tree" / f"{number}").mkdir(parents=True)
        (drive / "tree" / f"{number}" / "file").write_text(f"{number}")
    machine.sync()
    clouds.forget_calls(cloud)
    machine.run("rm", "-r", drive / "tree")
    machine.sync()
    eventually(lambda: clouds.tree(cloud) == {}, "the tree is gone")
    counts = clouds.counts(cloud)
    deletions = {route: count for route, count in counts.items() if "delete" in route}
    assert deletions == {"folders/tree/delete": 1}, counts


# What a mount asks by itself, whatever the user does.
BACKGROUND = {
    "oauth/token", "users/me/get", "events/get", "events/options", "poll", "folders/items/get"}


def test_what_single_acts_cost(machine, clouds, cloud, drive):
    def cost(act):
        # The news of what went before cost what they cost.
        clouds.await_quiet(cloud, but=BACKGROUND)
        clouds.forget_calls(cloud)
        act()
        machine.sync()
        clouds.await_quiet(cloud, but=BACKGROUND)
        return {r: count for r, count in clouds.counts(cloud).items() if r not in BACKGROUND}

    note, folder = drive / "note.txt", drive / "folder"
    assert cost(lambda: note.write_text("one")) == {"upload/new": 1}
    assert cost(lambda: note.write_text("another one")) == {"files/get": 1, "upload/version": 1}
    assert cost(folder.mkdir) == {"folders/post": 1}
    assert cost(lambda: note.rename(folder / "moved.txt")) == {"files/put": 1}
    assert cost(lambda: folder.rename(drive / "renamed")) == {"folders/put": 1}
    assert cost((drive / "renamed" / "moved.txt").unlink) == {"files/get": 1, "files/delete": 1}
    assert cost((drive / "renamed").rmdir) == {"folders/delete": 1}


def sign_in_at(machine, clouds, root, *more, status=0):
    tokens = clouds.tokens("box")
    return machine.oort(
        "login", "box", "--root", root, "--token-file", "-", *more, status=status,
        input=json.dumps({name: tokens[name] for name in ("access_token", "refresh_token")}))


def names_below(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_an_account_begins_at_a_folder(machine, clouds):
    """What lies there is the account, whatever happens around it; what leaves the folder leaves the account."""
    clouds.edit("box", "write", "/Deep/Work/inside/one.txt", text="one")
    clouds.edit("box", "write", "/Deep/beside.txt", text="beside")
    clouds.edit("box", "write", "/Other/far/two.txt", text="two")
    sign_in_at(machine, clouds, "/Deep/Work/")
    machine.mount()
    work = machine.ready("box")
    assert names_below(work) == ["inside", "inside/one.txt"]
    assert "began at the folder Deep/Work" in machine.oort("accounts", "--verbose")

    (work / "mine").mkdir()
    (work / "mine" / "note.txt").write_text("a note")
    (work / "top.txt").write_text("at the top")
    machine.sync()
    tree = clouds.tree("box")
    assert clouds.content("box", "/Deep/Work/mine/note.txt") == b"a note"
    assert clouds.content("box", "/Deep/Work/top.txt") == b"at the top"

    # Others: within, around, into it with all that a folder has, and out of it.
    clouds.edit("box", "write", "/Deep/Work/theirs.txt", text="theirs")
    clouds.edit("box", "write", "/Other/far/three.txt", text="three")
    clouds.edit("box", "move", "/Other/far", to="/Deep/Work/near")
    clouds.edit("box", "move", "/Deep/Work/inside", to="/Other/outside")
    clouds.edit("box", "write", "/Other/outside/late.txt", text="late")
    expected = [
        "mine", "mine/note.txt", "near", "near/three.txt", "near/two.txt", "theirs.txt", "top.txt"]
    eventually(lambda: names_below(work) == expected, "the mount has what the folder has")
    assert read(work / "near" / "two.txt") == "two"

    # The folder is the same one wherever it lies.
    clouds.edit("box", "move", "/Deep/Work", to="/Deep/Renamed")
    clouds.edit("box", "move", "/Deep", to="/Other/Deeper")
    clouds.edit("box", "write", "/Other/Deeper/Renamed/after.txt", text="after")
    eventually(lambda: (work / "after.txt").exists(), "its news come")
    machine.unmount()
    machine.mount()
    machine.ready("box")
    (work / "top.txt").write_text("once more")
    machine.sync()
    assert clouds.content("box", "/Other/Deeper/Renamed/top.txt") == b"once more"
    assert clouds.tree("box")["/Other/Deeper/Renamed/top.txt"]["id"] == tree["/Deep/Work/top.txt"]["id"]
    assert names_below(work) == sorted([*expected, "after.txt"])


def test_a_folder_that_is_gone_takes_no_account_along(machine, clouds):
    """Its account stands still with a reason, keeps what is known, and goes on when the folder is back."""
    clouds.edit("box", "write", "/Deep/Work/kept.txt", text="kept")
    clouds.edit("box", "write", "/Deep/Work/sub/unread.txt", text="unread")
    clouds.edit("box", "write", "/other.txt", text="other")
    sign_in_at(machine, clouds, "Deep/Work", "--name", "work")
    machine.login("box", name="all")
    machine.mount()
    work, everything = machine.ready("work"), machine.ready("all")
    known = ["kept.txt", "sub", "sub/unread.txt"]
    assert names_below(work) == known
    assert read(work / "kept.txt") == "kept"
    # If a folder above is deleted, Box reports only that folder.
    clouds.edit("box", "trash", "/Deep")
    eventually(lambda: "cannot be found" in machine.oort("status", status=None), "status says why")
    (work / "new.txt").write_text("written meanwhile")
    (work / "sub" / "new.txt").write_text("written below")
    (work / "kept.txt").unlink()
    with pytest.raises(OSError):
        (work / "sub" / "unread.txt").read_text()
    known = ["new.txt", "sub", "sub/new.txt", "sub/unread.txt"]
    assert names_below(work) == known
    eventually(lambda: names_below(everything) == ["other.txt"], "the other account hears of it")
    machine.oort("restore", everything / "Deep")
    machine.sync()
    eventually(lambda: machine.account("work")["state"] == "up to date", "all is sent")
    assert clouds.content("box", "/Deep/Work/new.txt") == b"written meanwhile"
    assert clouds.content("box", "/Deep/Work/sub/new.txt") == b"written below"
    assert read(work / "sub" / "unread.txt") == "unread"
    assert names_below(work) == known
    expected = ["Deep", "Deep/Work", *(f"Deep/Work/{name}" for name in known), "other.txt"]
    eventually(lambda: names_below(everything) == expected, "the other account has it again")


def test_who_signs_in_again_begins_where_the_account_began(machine, clouds):
    clouds.edit("box", "write", "/Work/one.txt", text="one")
    clouds.edit("box", "write", "/two.txt", text="two")
    sign_in_at(machine, clouds, "Work", "--name", "work")
    machine.login("box", name="work")
    machine.mount()
    assert names_below(machine.ready("work")) == ["one.txt"]
    said = sign_in_at(machine, clouds, "/", "--name", "work", status=1)
    assert "already that of another account" in said
    sign_in_at(machine, clouds, "/", "--name", "all")
    assert names_below(machine.ready("all")) == ["Work", "Work/one.txt", "two.txt"]


def test_a_wrong_folder_to_begin_at_is_refused(machine, clouds):
    clouds.edit("box", "write", "/a file.txt", text="text")
    said = sign_in_at(machine, clouds, "No/such", status=1)
    assert "there is no /No" in said and "--root" in said
    said = sign_in_at(machine, clouds, "a file.txt", status=1)
    assert "no folder" in said and "--root" in said
    said = machine.oort("login", "drive", "--root", "Work", status=1)
    assert "cannot begin at a folder" in said
    assert json.loads(machine.oort("accounts", "--json")) == []
