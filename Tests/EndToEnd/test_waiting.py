"""What waits says so: why, what happens next, and it goes out by itself when the cause is gone."""

import os
import time

import pytest

from machine import eventually


def pending(machine, cloud, path):
    """What `oort status` says of one path; None when the cloud has it."""
    return next((c for c in machine.account(cloud)["pending"] if c["path"] == str(path)), None)


def refused(machine, cloud, path, words):
    """Waits until the path is shown as refused in these words, in both forms of the status."""
    eventually(
        lambda: (c := pending(machine, cloud, path)) and words in c.get("error", "")
        and "kept here" in c["next"], f"{path} is refused")
    # Seldom, a try of its own is under way in between.
    eventually(
        lambda: all(word in machine.oort("status") for word in (str(path), words, "kept here")),
        f"{path} is refused, in words for people")


def test_a_full_account(machine, clouds, cloud, drive):
    clouds.conditions(cloud, total_bytes=1000)
    path = drive / "big.bin"
    path.write_bytes(b"x" * 5000)
    (drive / "small.txt").write_text("fits")
    said = machine.oort("sync", status=1)
    assert str(path) in said and "the account is full" in said, said
    refused(machine, cloud, path, "the account is full")
    assert path.read_bytes() == b"x" * 5000
    assert sorted(clouds.tree(cloud)) == ["/small.txt"]
    # There is more room, of which Oort gets no notice.
    clouds.conditions(cloud, total_bytes=1_000_000)
    eventually(lambda: "/big.bin" in clouds.tree(cloud), "it goes out by itself")
    eventually(lambda: machine.account(cloud)["state"] == "up to date", "and nothing is pending")
    assert clouds.content(cloud, "/big.bin") == b"x" * 5000


def test_a_name_that_the_service_refuses(machine, clouds, cloud, drive):
    clouds.conditions(cloud, refused_names=["secret plan.txt"])
    path = drive / "secret plan.txt"
    path.write_text("mine")
    said = machine.oort("sync", status=1)
    assert str(path) in said, said
    change = pending(machine, cloud, path)
    assert change.get("error") and "kept here" in change["next"], change
    if cloud != "drive":
        # Drive has no code for a refused name: it says that it did not understand.
        assert "does not take the name" in change.get("error")
    assert path.read_text() == "mine"
    path.rename(drive / "plan.txt")
    eventually(lambda: sorted(clouds.tree(cloud)) == ["/plan.txt"], "renamed, it goes out")
    assert clouds.content(cloud, "/plan.txt") == b"mine"
    machine.sync()


def test_a_folder_that_may_only_be_read(machine, clouds, cloud, drive):
    clouds.edit(cloud, "mkdir", "/shared")
    eventually((drive / "shared").exists, "the folder shows")
    clouds.conditions(cloud, read_only=["/shared"])
    path = drive / "shared" / "new.txt"
    path.write_text("mine")
    said = machine.oort("sync", status=1)
    assert str(path) in said and "may not do this" in said, said
    refused(machine, cloud, path, "may not do this")
    assert path.read_text() == "mine"
    clouds.conditions(cloud)
    if cloud == "onedrive":
        machine.sync()  # Its feed says nothing of rights: tried again in time, or when told to.
    eventually(lambda: "/shared/new.txt" in clouds.tree(cloud), "it goes out by itself")
    assert clouds.content(cloud, "/shared/new.txt") == b"mine"


def test_a_right_that_is_taken_away(machine, clouds, drive, cloud):
    if cloud == "onedrive":
        pytest.skip("OneDrive tells no rights with its items")
    clouds.edit(cloud, "write", "/theirs.txt", text="theirs")
    path = drive / "theirs.txt"
    eventually(path.exists, "the file shows")
    clouds.gates[cloud].shut()
    path.write_text("mine")
    clouds.conditions(cloud, read_only=["/theirs.txt"])
    clouds.gates[cloud].open()
    refused(machine, cloud, path, "may no")
    said = machine.oort("sync", status=1)
    assert str(path) in said, said
    assert path.read_text() == "mine"
    assert clouds.content(cloud, "/theirs.txt") == b"theirs"
    clouds.conditions(cloud)
    eventually(
        lambda: clouds.content(cloud, "/theirs.txt") == b"mine", "given back, it goes out")


COPIES = {"dropbox": "files/copy_v2", "drive": "files.copy", "onedrive": "copy/post"}


def test_what_the_service_will_not_copy_is_sent(machine, clouds, cloud, drive):
    clouds.edit(cloud, "write", "/original.txt", text="of which no bytes are here")
    eventually((drive / "original.txt").exists, "the file shows")
    clouds.fault(cloud, route=COPIES[cloud], fault="status", status=403)
    machine.run("cp", drive / "original.txt", drive / "copy.txt")
    machine.sync()
    assert clouds.content(cloud, "/copy.txt") == b"of which no bytes are here"
    assert sorted(clouds.tree(cloud)) == ["/copy.txt", "/original.txt"]
    assert clouds.fault_counts(cloud).get("status 403") == 1


def test_what_arrives_damaged_is_not_done(machine, clouds, cloud, drive):
    content = os.urandom(300_000)
    # After the third failure it waits until a person asks for it. Drive's provider sends three times
    # itself before it is one.
    clouds.conditions(cloud, damaged_contents=4 if cloud == "drive" else 2)
    path = drive / "file.bin"
    path.write_bytes(content)
    change = eventually(
        lambda: (c := pending(machine, cloud, path)) and c.get("error") and c, "the damage is shown")
    assert "other bytes than were sent" in change.get("error"), change
    assert path.read_bytes() == content
    machine.sync()
    assert sorted(clouds.tree(cloud)) == ["/file.bin"], "no second item came of it"
    assert clouds.content(cloud, "/file.bin") == content
    assert sorted(p.name for p in drive.iterdir()) == ["file.bin"]
    # The same for a new revision.
    content = os.urandom(200_000)
    clouds.conditions(cloud, damaged_contents=3 if cloud == "drive" else 2)
    path.write_bytes(content)
    machine.sync()
    assert sorted(clouds.tree(cloud)) == ["/file.bin"]
    assert clouds.content(cloud, "/file.bin") == content


def test_an_open_file_is_not_done(machine, clouds, cloud, drive):
    path = drive / "open.txt"
    path.write_text("closed before")
    machine.sync()
    with open(path, "r+b", buffering=0) as file:
        file.write(b"CLOSED")
        said = machine.oort("sync", "--timeout", "3s", status=1)
        assert str(path) in said and "has it open" in said, said
        assert "has it open" in pending(machine, cloud, path)["next"]
        assert clouds.content(cloud, "/open.txt") == b"closed before"
    machine.sync()
    assert clouds.content(cloud, "/open.txt") == b"CLOSED before"


def test_a_document_that_stays_open_is_sent(machine, clouds, cloud, drive):
    """As LibreOffice has it: saved through a temporary file, and open for writing from then on."""
    path, temporary = drive / "report.odt", drive / "lu1.tmp"
    path.write_text("first")
    machine.sync()
    item = clouds.tree(cloud)["/report.odt"]["id"]
    for text in (b"second", b"third"):
        temporary.write_bytes(text)
        os.replace(temporary, path)
        with open(path, "r+b", buffering=0) as document:
            machine.sync()
            assert clouds.content(cloud, "/report.odt") == text
            document.write(text.upper())
            assert "has it open" in machine.oort("sync", "--timeout", "3s", status=1)
            assert clouds.content(cloud, "/report.odt") == text
        machine.sync()
        assert clouds.content(cloud, "/report.odt") == text.upper()
    assert clouds.tree(cloud)["/report.odt"]["id"] == item


def test_a_deletion_in_the_cloud_waits_for_an_open_document(machine, clouds, cloud, drive):
    path = drive / "report.odt"
    path.write_text("first")
    machine.sync()
    with open(path, "r+b", buffering=0) as document:
        clouds.edit(cloud, "trash", "/report.odt")
        change = eventually(lambda: pending(machine, cloud, path), "the change is heard of")
        assert change["action"] == "change in the cloud", change
        assert "the cloud's change shows when" in change["next"], change
        assert document.read() == b"first"
    eventually(lambda: not path.exists(), "closed, it shows what the cloud has")
    machine.sync()


def test_the_progress_of_an_upload(machine, clouds, cloud, drive):
    size = 24 << 20
    clouds.control(cloud, "PUT", "weather", {"upload_bytes_per_second": 1 << 20})
    path = drive / "big.bin"
    path.write_bytes(os.urandom(size))
    seen = []

    def watch():
        for transfer in machine.account(cloud)["transfers"]:
            assert transfer["path"] == str(path) and transfer["is_upload"]
            assert transfer["total_bytes"] == size
            if not seen or transfer["done_bytes"] > seen[-1]:
                # Of a second look, by which all of it may have arrived.
                if str(path) in machine.oort("status"):
                    seen.append(transfer["done_bytes"])
        return len([done for done in seen if 0 < done < size]) >= 2

    eventually(watch, "the bytes sent rise")
    clouds.control(cloud, "PUT", "weather", {})
    machine.sync()
    assert clouds.tree(cloud)["/big.bin"]["size"] == size


def test_a_refused_registration_is_no_lost_network(machine, clouds, cloud, drive):
    clouds.conditions(cloud, client_refusal="invalid_client")
    clouds.control(cloud, "POST", "tokens/expire")
    path = drive / "file.txt"
    path.write_text("kept")
    trouble = eventually(
        lambda: machine.account(cloud).get("trouble"), "the account is in trouble")
    assert "app registration" in trouble and "client_id" in trouble, trouble
    assert "oort login" in trouble
    assert machine.account(cloud)["state"] == "trouble"
    said = machine.oort("sync", status=1)
    assert str(path) in said and "app registration" in said, said
    clouds.conditions(cloud)
    machine.login(cloud)
    machine.sync()
    assert clouds.content(cloud, "/file.txt") == b"kept"
