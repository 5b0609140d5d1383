"""What stays on this machine by the person's rules (`ignore` in the settings)."""

import json
import os

import pytest

from machine import eventually, read

RULES = 'ignore = ["node_modules/", "*.tmp", "!keep.tmp"]\n'


@pytest.fixture
def drive(machine, cloud):
    machine.write_settings(
        RULES + machine.settings() + f'\n[accounts.{cloud}]\nignore = ["/build", ".venv/"]\n')
    machine.login(cloud)
    machine.mount()
    return machine.ready(cloud)


def sync_status(path):
    return os.getxattr(path, "user.oort.status").decode()


def test_what_matches_stays_here(machine, clouds, cloud, drive):
    project = drive / "project"
    package = project / "node_modules" / "m"
    package.mkdir(parents=True)
    (package / "index.js").write_text("code")
    (package / "link").symlink_to("index.js")
    # A name that a service may refuse is none of its business.
    (package / "a:b?").write_text("named as it likes")
    (project / "main.js").write_text("mine")
    (project / "draft.tmp").write_text("draft")
    (project / "keep.tmp").write_text("kept")
    (project / "build").write_text("not at the top")
    (drive / "build").mkdir()
    (drive / "build" / "out.o").write_bytes(bytes(100_000))
    machine.sync()
    sent = {"/project", "/project/main.js", "/project/keep.tmp", "/project/build"}
    assert set(clouds.tree(cloud)) == sent
    account = machine.account(cloud)
    assert account["pending_count"] == 0 and account["stays_here"] == 8, account
    assert "8 items stay here by your rules" in machine.oort("status")
    assert sync_status(package / "index.js") == "local"
    assert sync_status(project / "main.js") == "synced"
    # As on any disk, by programs that know of nothing.
    (package / "index.js").rename(package / "other.js")
    with open(project / "draft.tmp", "a") as file:
        file.write(" 2")
    machine.run("cp", project / "main.js", package / "copy.js")
    machine.run("git", "init", "-q", project / "node_modules" / "r")
    machine.run("git", "-C", project / "node_modules" / "r", "commit", "--allow-empty", "-qm", "x")
    machine.unmount()
    assert "kept here until" not in machine.oort("status")
    machine.mount()
    machine.ready(cloud)
    machine.run("git", "-C", project / "node_modules" / "r", "fsck", "--strict")
    assert read(package / "a:b?") == "named as it likes"
    assert read(package / "other.js") == "code" and os.readlink(package / "link") == "index.js"
    assert read(package / "copy.js") == "mine" and read(project / "draft.tmp") == "draft 2"
    machine.sync()
    assert set(clouds.tree(cloud)) == sent
    # No account is signed out that has something which is only here.
    said = machine.oort("logout", cloud, status=1)
    assert "stay here by your rules" in said
    # What is deleted here is gone, and nothing of it was ever at the service.
    machine.run("rm", "-r", project / "node_modules", drive / "build")
    assert machine.account(cloud)["stays_here"] == 1


def test_what_is_renamed_goes_out_and_does_not_come_in(machine, clouds, cloud, drive):
    (drive / ".venv" / "bin").mkdir(parents=True)
    (drive / ".venv" / "bin" / "python").write_text("program")
    (drive / "sent.txt").write_text("sent")
    machine.sync()
    assert set(clouds.tree(cloud)) == {"/sent.txt"}
    known = clouds.tree(cloud)["/sent.txt"]["id"]
    # Into such a folder `mv` copies and deletes, as from one disk to another.
    with pytest.raises(OSError) as refused:
        os.rename(drive / "sent.txt", drive / ".venv" / "sent.txt")
    assert refused.value.errno == 18
    machine.run("mv", drive / "sent.txt", drive / ".venv" / "sent.txt")
    machine.sync()
    assert clouds.tree(cloud) == {} and read(drive / ".venv" / "sent.txt") == "sent"
    (drive / ".venv").rename(drive / "venv")
    machine.sync()
    assert set(clouds.tree(cloud)) == {
        "/venv", "/venv/bin", "/venv/bin/python", "/venv/sent.txt"}
    assert clouds.content(cloud, "/venv/bin/python") == b"program"
    # What the service has by a name that matches stays there, saves of it, too.
    (drive / "venv" / "sent.txt").rename(drive / "notes.tmp")
    machine.sync()
    known = clouds.tree(cloud)["/notes.tmp"]["id"]
    (drive / "new.tmp").write_text("saved")
    (drive / "new.tmp").rename(drive / "notes.tmp")
    machine.sync()
    assert clouds.content(cloud, "/notes.tmp") == b"saved"
    assert clouds.tree(cloud)["/notes.tmp"]["id"] == known
    # Another client's is shown.
    clouds.edit(cloud, "write", "/theirs.tmp", text="theirs")
    eventually(lambda: read(drive / "theirs.tmp") == "theirs", "it is shown")


def test_other_rules_hold_from_the_next_mount_on(machine, clouds, cloud, drive):
    (drive / "a.tmp").write_text("a")
    (drive / "b.log").write_text("b")
    machine.sync()
    assert set(clouds.tree(cloud)) == {"/b.log"}
    machine.unmount()
    machine.write_settings(machine.settings().replace(RULES, 'ignore = ["*.log"]\n'))
    machine.mount()
    machine.ready(cloud)
    machine.sync()
    # What was held went out; what the service has already it keeps.
    assert clouds.content(cloud, "/a.tmp") == b"a" and "/b.log" in clouds.tree(cloud)
    (drive / "c.log").write_text("c")
    machine.sync()
    assert set(clouds.tree(cloud)) == {"/a.tmp", "/b.log"} and read(drive / "b.log") == "b"
    assert machine.account(cloud)["stays_here"] == 1


def test_other_rules_do_not_send_what_somebody_else_moved_out_of_its_rule(machine, clouds, cloud):
    settings = machine.settings()

    def mount_with(*rules):
        machine.write_settings(f"ignore = {json.dumps(rules)}\n" + settings)
        machine.mount()
        return machine.ready(cloud)

    machine.login(cloud)
    drive = mount_with("/work/secrets/", "id.key")
    (drive / "work" / "secrets").mkdir(parents=True)
    (drive / "work" / "plan.txt").write_text("plan")
    (drive / "work" / "secrets" / "key").write_text("secret 1")
    (drive / "id.key").write_text("secret 2")
    machine.sync()
    assert set(clouds.tree(cloud)) == {"/work", "/work/plan.txt"}
    clouds.edit(cloud, "move", "/work", to="/office")
    clouds.edit(cloud, "write", "/id.key", text="theirs")
    eventually(lambda: read(drive / "office" / "secrets" / "key") == "secret 1", "it is moved")
    eventually(lambda: read(drive / "id.key") == "theirs", "theirs is here")
    machine.sync()
    theirs = {"/id.key", "/office", "/office/plan.txt"}
    assert read(drive / "id (2).key") == "secret 2"
    assert set(clouds.tree(cloud)) == theirs and machine.account(cloud)["stays_here"] == 3
    machine.kill()
    # One rule more, which has nothing to do with any of it.
    drive = mount_with("/work/secrets/", "id.key", "*.log")
    (drive / "sent.txt").write_text("sent")
    machine.sync()
    theirs.add("/sent.txt")
    assert set(clouds.tree(cloud)) == theirs and machine.account(cloud)["stays_here"] == 3
    machine.unmount()
    # What held one of them is gone.
    drive = mount_with("id.key", "*.log")
    machine.sync()
    theirs |= {"/office/secrets", "/office/secrets/key"}
    assert set(clouds.tree(cloud)) == theirs and machine.account(cloud)["stays_here"] == 1
    # Its person's own act.
    (drive / "id (2).key").rename(drive / "id.txt")
    machine.sync()
    assert clouds.content(cloud, "/id.txt") == b"secret 2"


def test_what_stays_here_outlives_its_folder_at_the_service(machine, clouds, cloud, drive):
    (drive / "project" / "node_modules").mkdir(parents=True)
    (drive / "project" / "main.js").write_text("mine")
    (drive / "project" / "node_modules" / "m.js").write_text("only here")
    machine.sync()
    clouds.edit(cloud, "trash", "/project")
    eventually(lambda: not (drive / "project" / "main.js").exists(), "it is gone")
    assert read(drive / "project" / "node_modules" / "m.js") == "only here"
    machine.sync()
    assert read(drive / "project" / "node_modules" / "m.js") == "only here"
    assert json.loads(machine.oort("status", "--json"))["accounts"][0]["stays_here"] == 2


def test_a_mistake_in_the_rules_is_told(machine):
    machine.write_settings('ignore = "*.tmp"\n')
    said = machine.oort("mount", machine.mount_point, status=1)
    assert '"ignore"' in said and "list of texts" in said


# What each service refuses, and programs and other systems leave in any folder.
LITTER = {
    "dropbox": [".DS_Store", "Thumbs.db", "desktop.ini"],
    "onedrive": ["~$letter.docx", ".lock", "Desktop.ini"],
    "nextcloud": ["film.part", "Film.PART", "film.filepart"],
}


@pytest.mark.clouds(*LITTER)
def test_what_only_this_machine_needs_stays_here_by_itself(machine, clouds):
    for cloud in LITTER:
        machine.login(cloud)
    machine.mount()
    for cloud, names in LITTER.items():
        drive = machine.ready(cloud)
        source = machine.folder / "source" / cloud
        source.mkdir(parents=True)
        for name in [*names, "photo.jpg"]:
            (source / name).write_text(name)
        machine.run("cp", "-r", source, drive / "copied")
        machine.sync()
        assert set(clouds.tree(cloud)) == {"/copied", "/copied/photo.jpg"}
        assert machine.account(cloud)["stays_here"] == len(names)
        assert machine.account(cloud)["refused_count"] == 0
        for name in names:
            assert sync_status(drive / "copied" / name) == "local"
            assert read(drive / "copied" / name) == name
    machine.unmount()
    machine.mount()
    for cloud, names in LITTER.items():
        drive = machine.ready(cloud)
        # What was only here becomes a file of the service's by its name, and a revision of one.
        ids = set()
        for content in ("first", "second"):
            (drive / "copied" / names[0]).write_text(content)
            (drive / "copied" / names[0]).rename(drive / "letter")
            machine.sync()
            assert clouds.content(cloud, "/letter") == content.encode()
            ids.add(clouds.tree(cloud)["/letter"]["id"])
        assert len(ids) == 1
        # What is at the service is not to be called so.
        with pytest.raises(OSError) as refused:
            (drive / "letter").rename(drive / names[0])
        assert refused.value.errno == 22 and read(drive / "letter") == "second"
        machine.run("rm", "-r", drive / "copied")
        machine.sync()
        assert set(clouds.tree(cloud)) == {"/letter"}
