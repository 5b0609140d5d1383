"""Links: made, found again, listed and taken back."""

import datetime
import json
import urllib.request

import pytest

from services import Service
from servers import Server


@pytest.fixture
def shared(machine, drive):
    """A file at the service."""
    path = drive / "for all" / "shared.txt"
    path.parent.mkdir()
    path.write_text("for all")
    machine.sync()
    return path


def link(machine, *arguments):
    return json.loads(machine.oort("share", *arguments, "--json"))


def listed(machine, *path):
    return json.loads(machine.oort("share", "--list", *path, "--json"))["links"]


def test_a_link_is_made_once_and_taken_back(machine, clouds, cloud, drive, shared):
    made = link(machine, shared)
    assert made["url"].startswith("https://") and made["account"] == cloud
    assert not made["may_edit"] and not made["has_password"] and not made["existed"]
    item = clouds.tree(cloud)["/for all/shared.txt"]
    service = Service.on(clouds, cloud)
    assert len(service.links({**item, "path": "/for all/shared.txt"})) == 1
    again = link(machine, shared)
    assert again["url"] == made["url"] and again["existed"]
    assert "may read it; it was there before" in machine.oort("share", shared)
    entry, = listed(machine, shared)
    assert entry["url"] == made["url"] and entry["path"] == str(shared)
    # OneDrive and Box list the links of one item only.
    below = [] if cloud in ("onedrive", "box") else [str(shared)]
    assert [entry["path"] for entry in listed(machine, shared.parent)] == below
    if cloud == "onedrive":
        assert "may have some" in machine.oort("share", "--list", shared.parent)
    assert made["url"] in machine.oort("unshare", shared)
    assert service.links({**item, "path": "/for all/shared.txt"}) == []
    assert "no link of its own" in machine.oort("unshare", shared, status=1)


def test_links_of_an_account(machine, clouds, cloud, drive, shared):
    made = link(machine, shared)
    of_folder = link(machine, shared.parent, "--edit")
    assert of_folder["may_edit"]
    if cloud == "onedrive":
        said = machine.oort("share", "--list", drive, status=1)
        assert "share --list PATH" in said
        assert "share --list PATH" in machine.oort("share", "--list", status=1)
        machine.oort("unshare", made["url"], status=1)
        machine.oort("unshare", shared)
        return
    assert {entry["path"] for entry in listed(machine)} == {str(shared), str(shared.parent)}
    assert machine.oort("share", "--list").count(str(shared.parent)) == 2
    assert made["url"] in machine.oort("unshare", made["url"])
    assert [entry["path"] for entry in listed(machine, drive)] == [str(shared.parent)]
    assert "No account lists this link" in machine.oort("unshare", made["url"], status=1)


def test_other_rights_need_another_link(machine, clouds, cloud, drive, shared):
    made = link(machine, shared)
    if cloud == "onedrive":
        assert link(machine, shared, "--edit")["url"] != made["url"]
        assert len(listed(machine, shared)) == 2
        return
    said = machine.oort("share", shared, "--edit", status=1)
    assert "has a link already, to read" in said and "oort unshare" in said
    assert [entry["may_edit"] for entry in listed(machine, shared)] == [False]


def test_an_end_and_a_password(machine, clouds, cloud, drive, shared, folder):
    secret = folder / "secret"
    secret.write_text("correct horse\n")
    options = ["--expires", "7d", "--password-file", secret]
    if cloud == "drive":
        assert "no links that end" in machine.oort("share", shared, "--expires", "7d", status=1)
        assert "no links with a password" in machine.oort(
            "share", shared, "--password-file", secret, status=1)
        assert listed(machine) == []
        return
    # A plan without them.
    said = machine.oort("share", shared, *options, status=1)
    assert "cannot do this" in said and "share without --expires" in said
    assert listed(machine, shared) == []
    clouds.conditions(cloud, paid_plan=True)
    made = link(machine, shared, *options)
    assert made["has_password"] and not made["may_edit"]
    end = datetime.datetime.fromisoformat(made["expires"].replace("Z", "+00:00"))
    left = end - datetime.datetime.now(datetime.timezone.utc)
    assert datetime.timedelta(days=6) < left <= datetime.timedelta(days=7)
    assert "correct horse" not in machine.log()
    entry, = listed(machine, shared)
    assert entry["has_password"] and entry["expires"] == made["expires"]


def test_a_link_that_is_there_is_no_link_with_a_password(
        machine, clouds, cloud, drive, shared, folder):
    """OneDrive answers with the link that there is, Dropbox refuses a second one."""
    if cloud == "drive":
        return
    clouds.conditions(cloud, paid_plan=True)
    secret = folder / "secret"
    secret.write_text("correct horse\n")
    made = link(machine, shared)
    for options in (["--password-file", secret], ["--expires", "7d"]):
        said = machine.oort("share", shared, *options, status=1)
        assert "has a link already, to read" in said and "oort unshare" in said
        assert made["url"] not in said
    entry, = listed(machine, shared)
    assert entry["url"] == made["url"] and not entry["has_password"]
    machine.oort("unshare", shared)
    again = link(machine, shared, "--password-file", secret)
    assert again["has_password"] and again["url"] != made["url"]


def test_what_people_were_invited_to_is_no_link(machine, clouds, cloud, drive, shared):
    if cloud == "drive":
        return
    item = {**clouds.tree(cloud)["/for all/shared.txt"], "path": "/for all/shared.txt"}
    service = Service.on(clouds, cloud)
    service.share_with_members(item)
    known = service.links(item)
    assert known and listed(machine, shared) == []
    assert "no link of its own" in machine.oort("unshare", shared, status=1)
    assert service.links(item) == known
    if cloud == "onedrive":
        made = link(machine, shared)
        assert made["url"] not in known
        machine.oort("unshare", shared)
        assert service.links(item) == known


def test_a_lost_answer_makes_no_second_link(machine, clouds, cloud, drive, shared):
    route = {"dropbox": "sharing/create_shared_link_with_settings", "drive": "permissions",
             "onedrive": "createLink/post"}[cloud]
    clouds.fault(cloud, route=route, fault="done_but_no_answer",
                 skipping=1 if cloud == "drive" else 0)
    made = link(machine, shared)
    assert [entry["url"] for entry in listed(machine, shared)] == [made["url"]]


def test_bad_input(machine, clouds, cloud, drive, shared):
    machine.oort("share", status=2)
    machine.oort("share", shared, "--expires", "yesterday", status=2)
    machine.oort("share", shared, "--expires", "2020-01-31", status=2)
    machine.oort("share", "--list", "--edit", status=2)
    assert "has no password" in machine.oort(
        "share", shared, "--password-file", "/dev/null", status=1)
    assert "is not there" in machine.oort("share", drive / "none", status=1)
    assert "whole account" in machine.oort("share", drive, status=1)
    assert "does not lie in the mount" in machine.oort("share", "/usr/bin", status=1)
    machine.oort("pause")
    (drive / "new.txt").write_text("new")
    said = machine.oort("share", drive / "new.txt", status=1)
    assert "not in the cloud yet" in said and "oort sync" in said
    machine.unmount()
    for arguments in (["share", shared], ["share", "--list"], ["unshare", shared]):
        said = machine.oort(*arguments, status=1)
        assert "No mount is running" in said


@pytest.mark.parametrize("kind", ["sftp", "webdav"])
def test_a_server_without_links(machine, folder, kind):
    server = Server(kind, folder)
    try:
        server.login(machine)
        machine.mount()
        drive = machine.ready(kind)
        (drive / "file").write_text("file")
        machine.sync()
        title = {"sftp": "SFTP", "webdav": "WebDAV"}[kind]
        for arguments in (["share", drive / "file"], ["share", "--list", drive],
                          ["unshare", drive / "file"]):
            assert f"{title} has no links to share" in machine.oort(*arguments, status=1)
    finally:
        server.stop()


def test_a_signed_link_of_a_store(machine, folder):
    server = Server("s3", folder)
    try:
        server.login(machine)
        machine.mount()
        drive = machine.ready("s3")
        (drive / "folder").mkdir()
        path = drive / "folder" / "a b+ü.txt"
        path.write_text("for all")
        machine.sync()
        made = link(machine, path, "--expires", "1h")
        with urllib.request.urlopen(made["url"], timeout=60) as answer:
            assert answer.read() == b"for all"
        assert made["expires"] and "an-access-key" in made["url"]
        assert "a-secret-access-key" not in made["url"] and "X-Amz-Expires=3" in made["url"]
        # Where no end is wished, it is the latest that there is.
        assert "X-Amz-Expires=604800" in link(machine, path)["url"]
        assert "7 days at most" in machine.oort("share", path, "--expires", "30d", status=1)
        assert "to read only" in machine.oort("share", path, "--edit", status=1)
        assert "is a folder" in machine.oort("share", drive / "folder", status=1)
        assert "keeps no list" in machine.oort("share", "--list", path, status=1)
        assert "ends by itself" in machine.oort("unshare", path, status=1)
        assert made["url"] not in machine.log()
    finally:
        server.stop()
