"""The services' own thumbnails, where file managers look for theirs: no photo is downloaded for them."""

import contextlib
import hashlib
import os
import re
import shutil
import stat
import struct
import subprocess
import zlib

import pytest

from machine import eventually

PHOTOS = 12
LENGTH = 3 << 20
CLOUDS = ["dropbox", "onedrive"]
CONTENTS = {"dropbox": {"files/download"}, "onedrive": {"content/get", "download"}}


def sent(clouds, cloud):
    """The bytes that a service gave away, in all."""
    return sum(route["bytes_out"] for route in clouds.traffic(cloud).values())


def texts(png):
    """What a PNG says of itself, with its size; all its check sums are right."""
    data = png.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    place, found = 8, {}
    while place < len(data):
        length, = struct.unpack(">I", data[place:place + 4])
        body = data[place + 4:place + 8 + length]
        check, = struct.unpack(">I", data[place + 8 + length:place + 12 + length])
        assert zlib.crc32(body) == check
        if body[:4] == b"IHDR":
            found["size"] = struct.unpack(">II", body[4:12])
        if body[:4] == b"tEXt":
            key, value = body[4:].split(b"\0", 1)
            found[key.decode()] = value.decode()
        place += 12 + length
    return found


class Desktop:
    """What a desktop's programs see and do."""

    def __init__(self, machine, folder):
        self.machine = machine
        self.folder = folder
        self.cache = machine.folder / "cache" / "thumbnails"

    def program(self, name, of):
        """A program that is called as a desktop's is."""
        path = self.folder / name
        if not path.exists():
            shutil.copy(of, path)
        return path

    @contextlib.contextmanager
    def list(self, folder, program="nautilus"):
        """A program that lists a folder and stays, as a file manager does."""
        shows = subprocess.Popen(
            [self.program(program, "/bin/bash"), "-c", 'shown=("$1"/*); echo listed; read -r _',
             program, folder],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            assert shows.stdout.readline() == "listed\n"
            yield
        finally:
            shows.communicate(timeout=120)

    def make(self, file):
        """Has a maker of thumbnails read a file."""
        return self.machine.run(self.program("tumblerd", "/bin/cat"), file, status=None)

    def thumbnail(self, file):
        """The thumbnail that GIO has every program show of a file; nothing where that is not valid."""
        said = self.machine.run("gio", "info", "-a", "thumbnail::*", file).stdout
        path = re.search(r"thumbnail::path: (.*)", said)
        return path.group(1) if path and "thumbnail::is-valid: TRUE" in said else None

    def failed(self, file):
        return "thumbnail::failed: TRUE" in self.machine.run(
            "gio", "info", "-a", "thumbnail::*", file).stdout


@pytest.fixture
def desktop(machine, folder):
    return Desktop(machine, folder)


@pytest.fixture
def photos(machine, clouds, cloud):
    clouds.edits(cloud, [
        {"op": "write", "path": f"/photos/ä & (b) {number}.jpg", "seed": number, "size": LENGTH}
        for number in range(PHOTOS)])
    clouds.edit(cloud, "write", "/photos/letter.txt", text="x" * 100_000)
    clouds.edit(cloud, "write", "/photos/.hidden.jpg", seed=1, size=LENGTH)
    machine.login(cloud)
    machine.mount()
    photos = machine.ready(cloud) / "photos"
    eventually(lambda: len(list(photos.iterdir())) == PHOTOS + 2, "all are there")
    clouds.await_quiet(cloud)
    clouds.forget_calls(cloud)
    return photos


@pytest.mark.parametrize("cloud", CLOUDS)
def test_a_folder_that_a_file_manager_lists(machine, clouds, cloud, desktop, photos):
    before = sent(clouds, cloud)
    # A listing of anybody else's brings nothing.
    machine.run("ls", photos)
    pictures = sorted(photos.glob("ä*.jpg"))
    assert not desktop.cache.exists()
    # The kernel has kept that listing: the file manager looks at another one of the folder. A file may be
    # there a moment before the kernel has dropped the listing without it.
    for number in range(4):
        newest = photos / f"newest {number}.jpg"
        clouds.edit(cloud, "write", f"/photos/{newest.name}", seed=99 + number, size=LENGTH)
        eventually(newest.exists, "it is there")
        pictures.append(newest)
        with desktop.list(photos):
            try:
                eventually(lambda: all(desktop.thumbnail(picture) for picture in pictures),
                           "all have come", timeout=120 if number == 3 else 20)
                break
            except AssertionError:
                if number == 3:
                    raise
    assert sent(clouds, cloud) - before < len(pictures) * LENGTH * 0.05
    assert not CONTENTS[cloud] & set(clouds.counts(cloud)), clouds.counts(cloud)
    for size, edge in (("normal", 128), ("large", 256)):
        place = desktop.cache / size
        assert stat.S_IMODE(place.stat().st_mode) == 0o700
        # The larger one is made after the other.
        eventually(lambda: len(list(place.iterdir())) == len(pictures),
                   "nothing of a text, nothing hidden, nothing half made")
        files = list(place.iterdir())
        for file in files:
            assert stat.S_IMODE(file.stat().st_mode) == 0o600
            said = texts(file)
            assert max(said["size"]) <= edge and said["Software"] == "Oort"
    assert stat.S_IMODE(desktop.cache.stat().st_mode) == 0o700
    # Nothing is asked for twice.
    counts = clouds.counts(cloud)
    with desktop.list(photos):
        assert desktop.make(pictures[0]).returncode == 1
        clouds.await_quiet(cloud)
    assert {k: v for k, v in clouds.counts(cloud).items() if "humb" in k} == {
        k: v for k, v in counts.items() if "humb" in k}
    # Another revision gets another one.
    clouds.edit(cloud, "write", f"/photos/{pictures[1].name}", seed=7, size=LENGTH + 1)
    eventually(lambda: pictures[1].stat().st_size == LENGTH + 1, "it is another one")
    assert desktop.thumbnail(pictures[1]) is None
    # The listing has the same names, and the kernel still knows it; the maker of thumbnails asks.
    assert desktop.make(pictures[1]).returncode == 1
    eventually(lambda: desktop.thumbnail(pictures[1]), "it came anew")
    # With the account its pictures go.
    machine.oort("logout", cloud)
    assert not [file for file in desktop.cache.glob("*/*.png") if texts(file)["Software"] == "Oort"]


@pytest.mark.parametrize("cloud", CLOUDS)
def test_a_picture_that_a_maker_of_thumbnails_asks_for(machine, clouds, cloud, desktop, photos):
    pictures = sorted(photos.glob("ä*.jpg"))
    # What it could not make before is forgotten.
    uri = machine.run("gio", "info", "-a", "standard::name", pictures[0]).stdout
    name = hashlib.md5(re.search(r"uri: (.*)", uri).group(1).encode()).hexdigest()
    failed = desktop.cache / "fail" / "gnome-thumbnail-factory"
    failed.mkdir(parents=True)
    (failed / f"{name}.png").write_bytes(b"")
    result = desktop.make(pictures[0])
    assert result.returncode == 1 and "Permission denied" in result.stdout
    eventually(lambda: desktop.thumbnail(pictures[0]), "the service's is there")
    eventually(lambda: not desktop.failed(pictures[0]), "and none that failed")
    eventually(lambda: not (failed / f"{name}.png").exists(), "by whatever name")
    assert len(list((desktop.cache / "normal").iterdir())) == 1
    # Of what is here it makes its own.
    pictures[1].read_bytes()
    assert desktop.make(pictures[1]).returncode == 0
    assert len(list((desktop.cache / "normal").iterdir())) == 1
    # A scanner that is refused gets none.
    scanner = desktop.program("clamscan", "/bin/cat")
    assert machine.run(scanner, pictures[2], status=None).returncode == 1
    assert len(list((desktop.cache / "normal").iterdir())) == 1
    # No program's thumbnails are wanted.
    machine.unmount()
    machine.write_settings(machine.settings() + "[thumbnails]\nprograms = []\n")
    machine.mount()
    machine.ready(cloud)
    with desktop.list(photos):
        assert desktop.make(pictures[3]).returncode == 1
    assert len(list((desktop.cache / "normal").iterdir())) == 1


def test_without_a_network_nobody_waits_long(machine, clouds, desktop, folder):
    cloud = "dropbox"
    clouds.edits(cloud, [{"op": "write", "path": f"/{n}.jpg", "seed": n, "size": LENGTH}
                         for n in range(PHOTOS)])
    machine.login(cloud)
    machine.mount()
    drive = machine.ready(cloud)
    eventually(lambda: len(list(drive.iterdir())) == PHOTOS, "all are there")
    clouds.fault(cloud, route="files/get_thumbnail_v2", fault="stall", seconds=3600, times=None)
    result = machine.run("timeout", "60", desktop.program("tumblerd", "/bin/cat"), drive / "1.jpg",
                         status=None)
    assert result.returncode == 1 and "Permission denied" in result.stdout, result.stdout
    # A person's own reading goes on beside it.
    assert len((drive / "2.jpg").read_bytes()) == LENGTH
    machine.unmount()


def test_a_real_file_manager(machine, clouds, desktop, folder):
    """Thunar with Xfce's maker of thumbnails, on a screen that nobody sees."""
    cloud = "dropbox"
    count = 60
    clouds.edits(cloud, [{"op": "write", "path": f"/photos/{n:02}.jpg", "seed": n, "size": LENGTH}
                         for n in range(count)])
    machine.login(cloud)
    machine.mount()
    photos = machine.ready(cloud) / "photos"
    eventually(photos.exists, "it is there")
    clouds.await_quiet(cloud)
    clouds.forget_calls(cloud)
    before = sent(clouds, cloud)
    environment = {key: value for key, value in machine.environment.items()
                   if key not in ("DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "WAYLAND_DISPLAY")}
    screen = subprocess.Popen(
        ["xvfb-run", "-a", "-s", "-screen 0 1000x800x24", "dbus-run-session", "--", "thunar",
         str(photos)],
        env={**environment, "GDK_BACKEND": "x11", "NO_AT_BRIDGE": "1"}, start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        def missing():
            return [n for n in range(count) if not desktop.thumbnail(photos / f"{n:02}.jpg")]

        def is_done():
            if missing():
                return False
            clouds.await_quiet(cloud, but={"files/list_folder/longpoll", "files/list_folder/continue"})
            return not missing()

        eventually(is_done, "all have thumbnails, which nothing throws away", timeout=300)
    finally:
        os.killpg(screen.pid, 15)
        screen.wait(timeout=60)
    assert sent(clouds, cloud) - before < count * LENGTH * 0.05
    assert not CONTENTS[cloud] & set(clouds.counts(cloud)), clouds.counts(cloud)
