"""File managers on a screen: an open window sees what others change, Delete and its way back, and
Oort's extension in a real Nautilus."""

import json

import pytest

from machine import eventually, read
from screen import Screen
from session import children


@pytest.fixture
def screen(session, machine):
    return Screen(session, machine)


@pytest.fixture
def letters(machine, clouds):
    """A folder with two files at the service."""
    clouds.edit("drive", "write", "/Letters/one.txt", text="one")
    clouds.edit("drive", "write", "/Letters/two.txt", text="two")
    machine.login("drive")
    machine.mount()
    return machine.ready("drive") / "Letters"


def deleted(machine):
    """What the service's trash has."""
    return {entry["path"] for entry in json.loads(machine.oort("trash", "--json"))["entries"]}


def test_a_window_of_thunar_sees_what_others_do_and_deletes(machine, clouds, screen, letters):
    screen.start("thunar", letters)
    screen.shows("one.txt", "two.txt")
    # Somebody else, at the service.
    clouds.edit("drive", "write", "/Letters/three.txt", text="three")
    screen.shows("one.txt", "two.txt", "three.txt")
    clouds.edit("drive", "move", "/Letters/three.txt", to="/Letters/drei.txt")
    screen.shows("one.txt", "two.txt", "drei.txt")
    clouds.edit("drive", "remove", "/Letters/two.txt")
    screen.shows("one.txt", "drei.txt")
    # The Delete key, and what undoes it.
    before = clouds.tree("drive")
    screen.keys("ctrl+a", "Delete")
    eventually(lambda: not list(letters.iterdir()), "both are deleted")
    machine.sync()
    assert set(clouds.tree("drive")) == {"/Letters"}
    assert deleted(machine) >= {str(letters / "one.txt"), str(letters / "drei.txt")}
    screen.keys("ctrl+z")
    eventually(lambda: read(letters / "one.txt") == "one", "it is back")
    screen.shows("one.txt", "drei.txt")
    machine.sync()
    # The same files, and not new ones of their names.
    assert {path: item["id"] for path, item in clouds.tree("drive").items()} == {
        path: item["id"] for path, item in before.items()}


def test_nautilus_has_the_extension_and_deletes(machine, clouds, session, screen, letters):
    nautilus = screen.start("nautilus", letters)
    # It was asked of the files that the window shows.
    eventually(lambda: children(nautilus.pid, "oort"), "the extension hears of changes")
    before = clouds.tree("drive")
    # What its Delete key and its "Undo" do.
    operations = "org.gnome.Nautilus", "/org/gnome/Nautilus/FileOperations2"
    session.call(*operations, "org.gnome.Nautilus.FileOperations2.TrashURIs",
                 f"['file://{letters}/one.txt']", "@a{sv} {}")
    eventually(lambda: not (letters / "one.txt").exists(), "it is deleted")
    machine.sync()
    assert set(clouds.tree("drive")) == {"/Letters", "/Letters/two.txt"}
    assert str(letters / "one.txt") in deleted(machine)
    session.call(*operations, "org.gnome.Nautilus.FileOperations2.Undo", "@a{sv} {}")
    eventually(lambda: read(letters / "one.txt") == "one", "it is back")
    machine.sync()
    assert {path: item["id"] for path, item in clouds.tree("drive").items()} == {
        path: item["id"] for path, item in before.items()}


# The simulators' pictures have a sun, which is so large in Thunar's icons.
SUN, SUN_PIXELS = (255, 234, 151), 112


def test_thunar_draws_the_services_small_pictures(machine, clouds, screen):
    """Each of them, however the listing and the desktop's own maker of thumbnails come after one another."""
    count, length = 12, 3 << 20
    clouds.edits("dropbox", [{"op": "write", "path": f"/photos/{n:02}.jpg", "seed": n, "size": length}
                             for n in range(count)])
    machine.login("dropbox")
    machine.mount()
    photos = machine.ready("dropbox") / "photos"
    eventually((photos / f"{count - 1:02}.jpg").exists, "all are there")
    screen.start("thunar", photos)
    screen.move_pointer_away()
    eventually(lambda: screen.picture().count(*SUN) == count * SUN_PIXELS, "the window shows all of them")
    screen.keep_picture("thunar-thumbnails")
    assert "files/download" not in clouds.counts("dropbox")


# The colours of the emblems' discs (packaging/icons).
KEPT, HERE, SENDING, ATTENTION = (
    (0x2a, 0x45, 0xa8), (0x1f, 0x8a, 0x5b), (0x6b, 0x5a, 0x00), (0xc6, 0x28, 0x28))


def test_nautilus_draws_the_emblems(machine, clouds, screen, letters):
    """And draws others when something changes, while the window is open."""
    one, two = letters / "one.txt", letters / "two.txt"

    def emblems():
        picture = screen.picture()
        return {colour for colour in (KEPT, HERE, SENDING, ATTENTION) if picture.count(*colour) > 20}

    def shows(*colours):
        eventually(lambda: emblems() == set(colours), f"the window shows {colours}")

    nautilus = screen.start("nautilus", letters)
    screen.move_pointer_away()
    eventually(lambda: children(nautilus.pid, "oort"), "the extension hears of changes")
    shows()
    machine.oort("pin", one)
    shows(KEPT)
    two.read_text()
    shows(KEPT, HERE)
    machine.oort("pause")
    (letters / "three.txt").write_text("three")
    shows(KEPT, HERE, SENDING)
    clouds.edit("drive", "write", "/Letters/two.txt", text="theirs")
    eventually(lambda: read(two) == "theirs", "it shows")
    clouds.gates["drive"].shut()
    machine.oort("resume")
    two.write_text("mine")
    clouds.edit("drive", "write", "/Letters/two.txt", text="theirs again")
    clouds.gates["drive"].open()
    machine.sync()
    shows(KEPT, HERE, ATTENTION)
    screen.keep_picture("nautilus-emblems")
    machine.oort("resolve", two, "--keep", "theirs")
    machine.sync()
    machine.oort("unpin", one)
    machine.oort("free", "--all")
    shows()
