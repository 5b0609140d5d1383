"""A session of a desktop: its bus, and who is on it.

The notification server and logind are python-dbusmock's, which write down what they are asked.
"""

import os
import pathlib
import re
import signal
import subprocess

from machine import eventually, read

DESKTOP = pathlib.Path(__file__).parents[2] / "packaging" / "desktop"
NOTIFICATIONS = ("org.freedesktop.Notifications", "/org/freedesktop/Notifications")
CONFIGURATION = """<busconfig>
  <type>session</type>
  <listen>unix:path={folder}/bus</listen>
  <servicedir>{folder}/services</servicedir>
  <policy context="default">
    <allow send_destination="*"/><allow receive_sender="*"/><allow own="*"/>
  </policy>
</busconfig>
"""


class Session:
    """A session: one bus for both, a notification server, logind, and a program that opens things."""

    def __init__(self, folder, environment):
        self.folder = folder / "session"
        self.folder.mkdir()
        self.processes = []
        bus = self.folder / "bus"
        (self.folder / "bus.conf").write_text(CONFIGURATION.format(folder=self.folder))
        self.environment = {
            "DBUS_SESSION_BUS_ADDRESS": f"unix:path={bus}",
            "DBUS_SYSTEM_BUS_ADDRESS": f"unix:path={bus}",
            "PATH": f"{self.folder}/bin:{os.environ['PATH']}",
        }
        # Whatever the bus starts works with the machine's mount.
        self.surroundings = {**environment, **self.environment}
        # What the bus starts for who calls its name: files of D-Bus, put here by a test.
        (self.folder / "services").mkdir()
        self.start("dbus-daemon", f"--config-file={self.folder}/bus.conf", "--nofork")
        eventually(bus.exists, "the bus is there")
        # Both are as they are on a person's machine: by the names that programs know.
        self._mock("notification_daemon", "notices", "--session",
                   "--parameters", '{"capabilities": "actions body body-markup"}')
        self._mock("logind", "logind", "--system")
        for name in (NOTIFICATIONS[0], "org.freedesktop.login1"):
            eventually(lambda: self.owns(name), f"{name} is there")
        (self.folder / "bin").mkdir()
        opener = self.folder / "bin" / "xdg-open"
        opener.write_text(f'#!/bin/sh\nprintf "%s\\n" "$1" >>"{self.folder}/opened"\n')
        opener.chmod(0o755)

    def start(self, *command, **more):
        """Starts a program of the session, which ends with it at the latest."""
        process = subprocess.Popen(
            command, env=self.surroundings,
            **{"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL,
               "stderr": subprocess.DEVNULL, **more})
        self.processes.append(process)
        return process

    def _mock(self, template, log, *arguments):
        # Debian's Python, which has the bus's library.
        self.start("/usr/bin/python3", "-m", "dbusmock", "--template", template,
                   "--logfile", str(self.folder / log), *arguments)

    def asking(self, name, path, method, *arguments):
        """The program that calls a method, in GVariant's text."""
        return ["gdbus", "call", "--session", "--dest", name, "--object-path", path,
                "--method", method, "--", *arguments]

    def _call(self, *question):
        return subprocess.run(self.asking(*question), env=self.surroundings, capture_output=True,
                              text=True, timeout=60)

    def call(self, *question):
        """What an object on the bus answers to a method; fails when it does not."""
        said = self._call(*question)
        assert said.returncode == 0, said.stderr
        return said.stdout

    def owns(self, name):
        said = self._call("org.freedesktop.DBus", "/org/freedesktop/DBus",
                          "org.freedesktop.DBus.NameHasOwner", name)
        return "true" in said.stdout

    def notices(self):
        """What was shown, with all that was said."""
        calls = re.split(r"(?m)^(?=\d+\.\d+ )", read(self.folder / "notices") or "")
        return [call for call in calls if ' Notify "Oort" ' in call]

    def inhibited(self):
        return [line for line in (read(self.folder / "logind") or "").splitlines()
                if " Inhibit " in line]

    def click(self, number):
        """Clicks the notice that was shown as the number-th, from 1."""
        self.call(*NOTIFICATIONS, "org.freedesktop.DBus.Mock.EmitSignal", NOTIFICATIONS[0],
                  "ActionInvoked", "us", f"[<uint32 {number}>, <'go'>]")

    def opened(self):
        return (read(self.folder / "opened") or "").splitlines()

    def stop(self):
        for process in reversed(self.processes):
            process.send_signal(signal.SIGKILL)
            process.wait(timeout=20)


def children(process, name):
    """The programs of this name that a process started and that still run."""
    found = []
    for status in pathlib.Path("/proc").glob("[0-9]*/status"):
        text = read(status) or ""
        if f"PPid:\t{process}\n" in text and f"Name:\t{name}" in text and "State:\tZ" not in text:
            found.append(int(status.parent.name))
    return found
