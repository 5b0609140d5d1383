"""A screen without a monitor (Xvfb), with file managers on it that a test works as a person does."""

import os
import pathlib
import subprocess
import urllib.parse

from machine import OORT, eventually
from session import DESKTOP

SERVICES = pathlib.Path("/usr/share/dbus-1/services")
COPIED = "x-special/gnome-copied-files"


class Screen:
    """A screen of the session's."""

    def __init__(self, session, machine):
        self.session = session
        reading, writing = os.pipe()
        session.start("Xvfb", "-displayfd", str(writing), "-screen", "0", "1000x700x24",
                      "-nolisten", "tcp", pass_fds=[writing])
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
        text = (DESKTOP / "oort-nautilus.py").read_text()
        (extensions / "oort.py").write_text(text.replace("/usr/share/oort/desktop", str(DESKTOP)))
        (session.folder / "bin" / "oort").symlink_to(OORT)
        more = {"DISPLAY": display, "GDK_BACKEND": "x11", "GSK_RENDERER": "cairo",
                "GSETTINGS_BACKEND": "memory", "XDG_DATA_HOME": str(data),
                # The system's Python for what has it inside.
                "PATH": f"{session.folder}/bin:/usr/bin:/bin"}
        session.surroundings.update(more)
        # What file managers have the bus start: the desktop's trash by gvfs.
        for name in ("org.gtk.vfs.Daemon", "org.gtk.vfs.Metadata"):
            file = SERVICES / f"{name}.service"
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

    def files(self):
        """The files that the window shows, by all of them being selected and copied."""
        self.keys("ctrl+a", "ctrl+c")
        copied = self._run("xclip", "-o", "-selection", "clipboard", "-t", COPIED).stdout
        return {pathlib.Path(urllib.parse.unquote(urllib.parse.urlsplit(address).path)).name
                for address in copied.splitlines()[1:]}

    def shows(self, *names):
        """Waits until the window shows just these files."""
        eventually(lambda: self.files() == set(names), f"the window shows {names}")
