"""A screen without a monitor (Xvfb), with file managers on it that a test works as a person does."""

import os
import pathlib
import shutil
import struct
import subprocess
import urllib.parse
import zlib

from machine import OORT, eventually
from session import DESKTOP

SERVICES = pathlib.Path("/usr/share/dbus-1/services")
COPIED = "x-special/gnome-copied-files"
ICONS = DESKTOP.with_name("icons")
# Where pictures of the screen go, for people; nowhere unless the variable says so.
PICTURES = os.environ.get("OORT_SCREENSHOTS")


class Picture:
    """What the screen shows at a moment: rows of pixels, four bytes each (blue, green, red, none)."""

    def __init__(self, data):
        # X11/XWDFile.h: the file that Xvfb keeps its screen in.
        header = struct.unpack(">25I", data[:100])
        self.width, self.height, row = header[4], header[5], header[12]
        start = header[0] + 12 * header[19]
        self.rows = [data[start + y * row:][:4 * self.width] for y in range(self.height)]

    def count(self, red, green, blue):
        """How many pixels have a colour."""
        pixel = bytes([blue, green, red])
        return sum(row[x:x + 3] == pixel for row in self.rows for x in range(0, len(row), 4))

    @property
    def colours(self):
        """How many colours there are."""
        return len({row[x:x + 3] for row in self.rows for x in range(0, len(row), 4)})

    def save(self, path):
        """Writes it as PNG."""
        lines = bytearray()
        for row in self.rows:
            line = bytearray(3 * self.width)
            line[0::3], line[1::3], line[2::3] = row[2::4], row[1::4], row[0::4]
            lines += b"\0" + line

        def chunk(kind, data):
            return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

        head = struct.pack(">IIBBBBB", self.width, self.height, 8, 2, 0, 0, 0)
        pathlib.Path(path).write_bytes(
            b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(bytes(lines)))
            + chunk(b"IEND", b""))


class Screen:
    """A screen of the session's."""

    def __init__(self, session, machine):
        self.session = session
        reading, writing = os.pipe()
        self.folder = machine.folder / "screen"
        self.folder.mkdir()
        session.start("Xvfb", "-displayfd", str(writing), "-screen", "0", "1000x700x24",
                      "-fbdir", str(self.folder), "-nolisten", "tcp", pass_fds=[writing])
        os.close(writing)
        with os.fdopen(reading) as numbers:
            display = f":{numbers.readline().strip()}"
        # What turns or fades without a graphics card would take the processor.
        for version in ("3.0", "4.0"):
            settings = machine.folder / "config" / f"gtk-{version}" / "settings.ini"
            settings.parent.mkdir()
            settings.write_text("[Settings]\ngtk-enable-animations=false\n")
        data = machine.folder / "share"
        extensions = data / "nautilus-python" / "extensions"
        extensions.mkdir(parents=True)
        emblems = data / "icons" / "hicolor" / "scalable" / "emblems"
        emblems.mkdir(parents=True)
        for icon in ICONS.glob("emblem-*.svg"):
            shutil.copy(icon, emblems)
        text = (DESKTOP / "oort-nautilus.py").read_text()
        (extensions / "oort.py").write_text(
            text.replace("/usr/share/oort/desktop", str(DESKTOP))
            # A test waits for what a person sees within half a minute.
            + "\nimport oort_files\noort_files.BELIEVED = 1\n")
        (session.folder / "bin" / "oort").symlink_to(OORT)
        more = {"DISPLAY": display, "GDK_BACKEND": "x11", "GSK_RENDERER": "cairo",
                "GSETTINGS_BACKEND": "memory", "XDG_DATA_HOME": str(data),
                # The system's Python for what has it inside.
                "PATH": f"{session.folder}/bin:/usr/bin:/bin"}
        session.surroundings.update(more)
        # What file managers have the bus start: the desktop's trash by gvfs, and Xfce's maker of thumbnails.
        for file in [*(SERVICES / f"org.gtk.vfs.{name}.service" for name in ("Daemon", "Metadata")),
                     *SERVICES.glob("*humbnail*"), *SERVICES.glob("*umbler*")]:
            (session.folder / "services" / file.name).write_text(file.read_text())
        bus = "org.freedesktop.DBus", "/org/freedesktop/DBus"
        session.call(*bus, "org.freedesktop.DBus.ReloadConfig")
        session.call(*bus, "org.freedesktop.DBus.UpdateActivationEnvironment",
                     "{" + ", ".join(f"'{name}': '{value}'" for name, value in more.items()) + "}")

    def _run(self, *command):
        return subprocess.run(command, env=self.session.surroundings, capture_output=True,
                              text=True, timeout=60)

    def start(self, program, *arguments):
        """Starts a program; returns it when it shows a window."""
        process = self.session.start(program, *map(str, arguments))
        eventually(lambda: self._run("xdotool", "search", "--onlyvisible", "--class", program).stdout,
                   f"{program} shows a window")
        return process

    def keys(self, *keys):
        """Presses keys, as `xdotool` names them."""
        said = self._run("xdotool", "key", *keys)
        assert said.returncode == 0, said.stderr

    def move_pointer_away(self):
        """To where no window is."""
        self._run("xdotool", "mousemove", "990", "690")

    def picture(self):
        """What it shows now."""
        return Picture((self.folder / "Xvfb_screen0").read_bytes())

    def keep_picture(self, name):
        """Writes what it shows now for people who want to see it."""
        if PICTURES:
            self.picture().save(pathlib.Path(PICTURES) / f"{name}.png")

    def files(self):
        """The files that the window shows, by all of them being selected and copied."""
        self.keys("ctrl+a", "ctrl+c")
        copied = self._run("xclip", "-o", "-selection", "clipboard", "-t", COPIED).stdout
        return {pathlib.Path(urllib.parse.unquote(urllib.parse.urlsplit(address).path)).name
                for address in copied.splitlines()[1:]}

    def shows(self, *names):
        """Waits until the window shows just these files."""
        eventually(lambda: self.files() == set(names), f"the window shows {names}")
