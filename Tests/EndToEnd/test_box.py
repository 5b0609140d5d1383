"""Box, simulated: the most telling of what the other services go through, and what only Box has."""

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
