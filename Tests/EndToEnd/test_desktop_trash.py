"""The Delete key of file managers: what they move to the mount's trash folder, as the desktop's own
programs do it."""

import os
import shutil
import subprocess
import urllib.parse

import pytest

from machine import eventually, read

# What a file manager calls when Delete is pressed.
GIO = shutil.which("gio")


class Trash:
    """The trash folder of a mount, by the steps of the freedesktop.org trash specification."""

    def __init__(self, machine):
        self.top = machine.mount_point
        self.folder = self.top / f".Trash-{os.getuid()}"

    @property
    def names(self):
        files = {path.name for path in (self.folder / "files").iterdir()}
        infos = {path.name for path in (self.folder / "info").iterdir()}
        assert infos >= {f"{name}.trashinfo" for name in files}
        return files

    def info(self, name):
        return self.folder / "info" / f"{name}.trashinfo"

    def put(self, path):
        """Moves something to the trash as GIO does; its name there."""
        name, number = path.name, 1
        while True:
            try:
                os.close(os.open(self.info(name), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
                break
            except FileExistsError:
                number += 1
                name = f"{path.name}.{number}"
        place = urllib.parse.quote(str(path.relative_to(self.top)))
        # Written beside, and renamed over it.
        beside = self.info(name).with_name(f"{name}.trashinfo.ABC123")
        beside.write_text(
            f"[Trash Info]\nPath={place}\nDeletionDate=2026-11-23T12:00:00\n")
        os.rename(beside, self.info(name))
        try:
            os.rename(path, self.folder / "files" / name)
        except OSError:
            self.info(name).unlink()
            raise
        return name

    def bring_back(self, name):
        """Brings something back to where its note says that it lay."""
        place, = [
            line.removeprefix("Path=") for line in self.info(name).read_text().splitlines()
            if line.startswith("Path=")]
        path = self.top / urllib.parse.unquote(place)
        os.rename(self.folder / "files" / name, path)
        self.info(name).unlink()
        return path


@pytest.fixture
def trash(machine, drive):
    return Trash(machine)


def settled(machine):
    machine.sync()
    assert machine.status_code() == 0


def test_a_file_goes_to_the_services_trash_and_comes_back(machine, clouds, cloud, drive, trash):
    note = drive / "päpers" / "a note 100%.txt"
    note.parent.mkdir()
    note.write_text("the note")
    settled(machine)
    assert trash.folder.name not in os.listdir(trash.top)
    assert trash.names == set()
    name = trash.put(note)
    assert not note.exists() and trash.names == {name}
    shown = (trash.folder / "files" / name).stat()
    assert shown.st_size == 8 and shown.st_nlink == 1
    with pytest.raises(PermissionError):
        (trash.folder / "files" / name).read_text()
    settled(machine)
    assert set(clouds.tree(cloud)) == {"/päpers"}
    # As before a restart, so after it.
    machine.unmount()
    machine.mount()
    machine.ready(cloud)
    assert trash.names == {name}
    assert trash.bring_back(name) == note
    assert read(note) == "the note"
    assert trash.names == set()
    settled(machine)
    assert set(clouds.tree(cloud)) == {"/päpers", "/päpers/a note 100%.txt"}
    assert clouds.content(cloud, "/päpers/a note 100%.txt") == b"the note"


def test_a_folder_goes_with_all_in_it(machine, clouds, cloud, drive, trash):
    (drive / "papers" / "old").mkdir(parents=True)
    (drive / "papers" / "note.txt").write_text("the note")
    (drive / "papers" / "old" / "deep.txt").write_text("deep")
    settled(machine)
    assert len(list((drive / "papers").rglob("*"))) == 3
    name = trash.put(drive / "papers")
    assert os.listdir(drive) == [] and trash.names == {name}
    settled(machine)
    assert not clouds.tree(cloud)
    trash.bring_back(name)
    deep = drive / "papers" / "old" / "deep.txt"
    eventually(lambda: read(deep) == "deep", "all is back", timeout=60)
    assert read(drive / "papers" / "note.txt") == "the note"
    assert trash.names == set()


@pytest.mark.clouds("dropbox")
def test_a_folder_that_came_back_in_part_goes_on(machine, clouds):
    machine.login("dropbox")
    machine.mount()
    drive, trash = machine.ready("dropbox"), Trash(machine)
    (drive / "papers").mkdir()
    for number in range(8):
        (drive / "papers" / f"f{number}").write_text(f"{number}")
    settled(machine)
    name = trash.put(drive / "papers")
    settled(machine)
    clouds.fault("dropbox", route="files/restore", fault="no_answer", skipping=3, times=20)
    with pytest.raises(OSError):
        trash.bring_back(name)
    clouds.no_faults("dropbox")
    assert trash.names == {name}
    trash.bring_back(name)
    texts = {f"f{number}": f"{number}" for number in range(8)}
    eventually(
        lambda: {path.name: read(path) for path in (drive / "papers").iterdir()} == texts,
        "all is back", timeout=60)
    assert trash.names == set() and len(clouds.tree("dropbox")) == 9


def test_at_once_and_with_names_that_are_alike(machine, clouds, cloud, drive, trash):
    for folder, text in (("one", "first"), ("two", "second")):
        (drive / folder).mkdir()
        (drive / folder / "same.txt").write_text(text)
    settled(machine)
    names = [trash.put(drive / folder / "same.txt") for folder in ("one", "two")]
    assert trash.names == set(names) and len(set(names)) == 2
    # The deletion has not been sent to the service yet; it is sent first.
    trash.bring_back(names[1])
    assert read(drive / "two" / "same.txt") == "second"
    assert trash.names == {names[0]}
    trash.bring_back(names[0])
    assert read(drive / "one" / "same.txt") == "first"


def test_a_link_comes_back_as_a_link(machine, clouds, cloud, drive, trash):
    (drive / "link").symlink_to("somewhere else")
    settled(machine)
    assert trash.put(drive / "link") == "link"
    settled(machine)
    os.rename(trash.folder / "files" / "link", drive / "another")
    assert set(clouds.tree(cloud)) == {"/another.rclonelink"}
    assert os.readlink(drive / "another") == "somewhere else"


def test_what_the_trash_could_not_give_back_stays(machine, clouds, cloud, drive, trash):
    (drive / "kept").mkdir()
    (drive / "kept" / "sent.txt").write_text("sent")
    settled(machine)
    machine.oort("pause")
    (drive / "new.txt").write_text("never sent")
    (drive / "kept" / "sent.txt").write_text("changed, and not sent")
    for path in (drive / "new.txt", drive / "kept" / "sent.txt", drive / "kept"):
        with pytest.raises(OSError, match="Invalid cross-device link"):
            trash.put(path)
    assert read(drive / "new.txt") == "never sent"
    assert read(drive / "kept" / "sent.txt") == "changed, and not sent"
    assert trash.names == set()
    machine.oort("resume")
    settled(machine)
    with open(drive / "new.txt", "a"):
        with pytest.raises(OSError, match="Invalid cross-device link"):
            trash.put(drive / "new.txt")
    # An account's own folder is nobody's to delete.
    with pytest.raises(OSError, match="Read-only file system"):
        trash.put(drive)
    assert trash.names == set() and read(drive / "new.txt") == "never sent"


def test_nothing_else_is_done_in_it(machine, clouds, cloud, drive, trash):
    (drive / "folder").mkdir()
    (drive / "folder" / "in it.txt").write_text("in it")
    (drive / "file.txt").write_text("file")
    settled(machine)
    folder, file = trash.put(drive / "folder"), trash.put(drive / "file.txt")
    files = trash.folder / "files"
    refused = [
        lambda: trash.info(file).unlink(),
        lambda: (trash.folder / "expunged").mkdir(),
        lambda: (trash.folder / "expunged" / "made").mkdir(),
        lambda: (files / folder).unlink(),
        lambda: (files / file).rmdir(),
        lambda: (files / "put here").write_text("x"),
        lambda: os.rename(files / file, files / "another"),
        lambda: os.listdir(files / folder),
        lambda: trash.info("large").write_text("x" * 100_000)]
    for act in refused:
        with pytest.raises(OSError):
            act()
    assert trash.names == {folder, file}
    (drive / "file.txt").write_text("another one")
    with pytest.raises(FileExistsError):
        os.rename(files / file, drive / "file.txt")  # would be over it
    assert read(drive / "file.txt") == "another one"
    settled(machine)
    assert clouds.content(cloud, "/file.txt") == b"another one"
    os.rename(files / file, drive / "elsewhere.txt")
    assert read(drive / "elsewhere.txt") == "file"


def test_what_is_deleted_in_it_is_in_the_services_trash_only(machine, clouds, cloud, drive, trash):
    """By unlinking, as KDE and trash-cli do, and by a move into `expunged`, as GIO does."""
    names = ["one.txt", "two.txt", "three", "four"]
    for name in names:
        if name.endswith(".txt"):
            (drive / name).write_text(f"the bytes of {name}")
        else:
            (drive / name).mkdir()
            (drive / name / "in it.txt").write_text(name)
    settled(machine)
    for name in names:
        assert trash.put(drive / name) == name
    files = trash.folder / "files"
    (files / "one.txt").unlink()
    os.rename(files / "two.txt", trash.folder / "expunged" / "12345")
    (files / "three").rmdir()
    assert trash.names == {"four"}
    os.rename(files / "four", trash.folder / "expunged" / "4")
    assert trash.names == set() and os.listdir(trash.folder / "info") == []
    assert os.listdir(trash.folder / "expunged") == []
    with pytest.raises(FileNotFoundError):
        os.rename(files / "one.txt", drive / "one.txt")
    settled(machine)
    assert not clouds.tree(cloud) and os.listdir(drive) == []
    machine.unmount()
    machine.mount()
    machine.ready(cloud)
    assert trash.names == set()
    if cloud != "onedrive":
        machine.oort("restore", drive / "two.txt")
        assert read(drive / "two.txt") == "the bytes of two.txt"


def test_what_came_back_in_another_way_is_no_longer_in_it(machine, clouds, cloud, drive, trash):
    if cloud == "onedrive":
        pytest.skip("Microsoft lists the recycle bin for nobody's program")
    (drive / "note.txt").write_text("the note")
    settled(machine)
    name = trash.put(drive / "note.txt")
    assert trash.names == {name}
    settled(machine)
    machine.oort("restore", drive / "note.txt")
    assert trash.names == set()
    with pytest.raises(FileNotFoundError):
        os.rename(trash.folder / "files" / name, drive / "twice.txt")


@pytest.mark.skipif(GIO is None, reason="needs gio")
def test_gio_says_the_truth_and_moves_it(machine, clouds, cloud, drive, trash):
    (drive / "letter.txt").write_text("the letter")
    settled(machine)
    path = drive / "letter.txt"
    asked = subprocess.run(
        [GIO, "info", "-a", "access::can-trash", path], text=True, capture_output=True, check=True,
        timeout=60)
    assert "access::can-trash: TRUE" in asked.stdout
    subprocess.run([GIO, "trash", path], check=True, timeout=60)
    assert not path.exists() and trash.names == {"letter.txt"}
    settled(machine)
    assert not clouds.tree(cloud)
    assert trash.bring_back("letter.txt") == path
    assert read(path) == "the letter"
    machine.oort("pause")
    (drive / "unsent.txt").write_text("unsent")
    said = subprocess.run(
        [GIO, "trash", drive / "unsent.txt"], text=True, capture_output=True, timeout=60)
    assert said.returncode != 0 and read(drive / "unsent.txt") == "unsent"
    machine.oort("resume")
