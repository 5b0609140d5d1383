"""The icon in the panel, on a real session bus: the panel is python-dbusmock's, asked by `gdbus`."""

import os
import re
import shutil
import subprocess

import pytest

from machine import OORT, alive, eventually, read
from session import DESKTOP, children
from test_conflicts import make

WATCHER, PANEL = "org.kde.StatusNotifierWatcher", "/StatusNotifierWatcher"
ITEM, MENU = "org.kde.StatusNotifierItem", "com.canonical.dbusmenu"


class Panel:
    """A panel of the desktop, which comes and goes, and the messages that it gets."""

    def __init__(self, session):
        self.session, self.process, self.count = session, None, 0

    def come(self):
        self.count += 1
        self.process = self.session.start(
            "/usr/bin/python3", "-m", "dbusmock", "--session", "--logfile", str(self.log),
            "org.example.Panel", PANEL, WATCHER)
        eventually(lambda: self.session.owns("org.example.Panel"), "the panel is there")
        self.session.call("org.example.Panel", PANEL, "org.freedesktop.DBus.Mock.AddMethod", WATCHER,
                          "RegisterStatusNotifierItem", "s", "", "")
        # Known by its name once it takes icons, as a panel is.
        self.session.call("org.example.Panel", PANEL, "org.freedesktop.DBus.Mock.AddMethod", "x.y",
                          "Own", "", "", f"self.name = dbus.service.BusName('{WATCHER}', self.connection)")
        self.session.call("org.example.Panel", PANEL, "x.y.Own")

    @property
    def log(self):
        return self.session.folder / f"panel{self.count}"

    def go(self):
        self.process.kill()
        self.process.wait(timeout=60)

    def icons(self):
        """The names of the icons that were registered with this one."""
        return re.findall(r'RegisterStatusNotifierItem "([^"]*)"', read(self.log) or "")


class Icon:
    """The icon as a panel sees it."""

    def __init__(self, session, name):
        self.session, self.name = session, name
        self.process = int(name.split("-")[1])

    def property(self, name):
        said = self.session.call(self.name, "/StatusNotifierItem",
                                 "org.freedesktop.DBus.Properties.Get", ITEM, name)
        return said.split("<", 1)[1].rsplit(">", 1)[0].strip("'")

    def lines(self):
        """The lines of the menu: their words, with their numbers."""
        said = self.session.call(self.name, "/MenuBar", f"{MENU}.GetLayout", "0", "-1", "[]")
        return {words.replace("__", "_"): number for number, words in
                re.findall(r"<\((\d+), \{'label': <['\"](.*?)['\"]>", said)}

    def click(self, words):
        """Clicks the line of the menu that begins with these words, once it is there."""
        def number():
            return next((n for line, n in self.lines().items() if line.startswith(words)), None)

        self.session.call(self.name, "/MenuBar", f"{MENU}.Event",
                          eventually(number, f"the menu has {words}"), "clicked", "<''>", "0")

    def shows(self, icon, status="Active"):
        eventually(lambda: self.property("IconName") == icon, f"the icon is {icon}")
        assert self.property("Status") == status


@pytest.fixture
def installed(folder):
    """A folder with Oort as a package lays it; the program in it."""
    program = folder / "usr" / "bin" / "oort"
    program.parent.mkdir(parents=True)
    try:
        os.link(OORT, program)
    except OSError:
        shutil.copy(OORT, program)
    (folder / "usr" / "share" / "oort").mkdir(parents=True)
    (folder / "usr" / "share" / "oort" / "desktop").symlink_to(DESKTOP)
    return program


@pytest.fixture
def panel(session):
    return Panel(session)


def shown(panel):
    """The icon that the panel shows."""
    name, = eventually(panel.icons, "an icon is shown")
    return Icon(panel.session, name)


def trays(machine):
    return children(machine.process, "python3")


def test_the_icon_says_how_all_is(machine, clouds, session, panel, installed):
    panel.come()
    cloud = "drive"
    machine.login(cloud)
    machine.login("dropbox")
    machine.run(installed, "mount", machine.mount_point)
    drive = machine.ready(cloud)
    machine.ready("dropbox")
    icon = shown(panel)
    icon.shows("oort")
    assert icon.property("Title") == "Oort" and "Up to date" in icon.property("ToolTip")
    assert list(icon.lines()) == [
        "Open Clouds", "drive: up to date", "dropbox: up to date", "Pause",
        "Show the Page in the Browser"]
    heard = session.start("gdbus", "monitor", "--session", "--dest", icon.name,
                          stdout=open(session.folder / "heard", "w"))
    icon.click("Open Clouds")
    eventually(lambda: session.opened() == [f"file://{machine.mount_point}"], "the mount is opened")
    icon.click("Pause")
    eventually(lambda: machine.account(cloud)["state"] == "paused", "it pauses")
    icon.shows("oort-paused")
    (drive / "waits.txt").write_text("waits")
    eventually(lambda: any(line.startswith("drive: paused, 1 change") for line in icon.lines()),
               "the menu says what waits")
    icon.click("Resume")
    eventually(lambda: machine.account(cloud)["state"] != "paused", "it goes on")
    machine.sync()
    icon.shows("oort")
    clouds.gates[cloud].shut()
    icon.shows("oort-offline")
    clouds.gates[cloud].open()
    icon.shows("oort")
    # What needs a person, and where it is.
    make(machine, clouds, cloud, drive, "a_<b>.txt")
    icon.shows("oort-attention", "NeedsAttention")
    icon.click("Two versions in drive: a_<b> (conflicted copy")
    eventually(lambda: session.opened()[1:] == [f"file://{drive}"], "its folder is opened")
    told = read(session.folder / "heard")
    for signal in ("NewIcon ()", "NewToolTip ()", "NewStatus ('NeedsAttention',)", "LayoutUpdated"):
        assert signal in told, told
    heard.kill()


def test_the_icon_is_there_while_a_panel_and_a_mount_are(machine, clouds, session, panel, installed):
    machine.login("drive")
    machine.run(installed, "mount", machine.mount_point)
    machine.ready("drive")
    tray, = eventually(lambda: trays(machine), "the tray's program waits")
    # Nothing is asked and nothing runs while there is no panel to show it.
    assert not children(tray, "oort")
    panel.come()
    icon = shown(panel)
    assert icon.process == tray
    eventually(lambda: children(tray, "oort"), "it hears of changes")
    panel.go()
    eventually(lambda: not children(tray, "oort"), "it does nothing without a panel")
    panel.come()
    assert shown(panel).name == icon.name
    # The page, which ends with the mount as the icon does.
    icon.click("Show the Page")
    page = eventually(session.opened, "the page is opened")
    assert page[0].startswith("file://") and "/oort-web-" in page[0]
    programs = eventually(
        lambda: len(children(tray, "oort")) == 2 and children(tray, "oort"), "it is served")
    machine.unmount()
    for process in (tray, *programs):
        eventually(lambda: not alive(process), "nothing is left")


def test_who_wants_no_icon_has_none(machine, clouds, session, panel, installed):
    machine.write_settings(machine.settings() + "\n[desktop]\ntray = false\n")
    panel.come()
    machine.login("drive")
    machine.run(installed, "mount", machine.mount_point)
    drive = machine.ready("drive")
    # By then the desktop was looked at.
    make(machine, clouds, "drive", drive)
    eventually(session.notices, "the desktop is told of things")
    assert not trays(machine) and not panel.icons()


def test_the_desktop_may_begin_after_the_mount(machine, clouds, session, panel):
    """A service of the person's systemd begins before any desktop: where windows are shown is what
    systemd knows when somebody clicks."""
    log = session.folder / "systemd"
    session.start("/usr/bin/python3", "-m", "dbusmock", "--session", "--logfile", str(log),
                  "org.freedesktop.systemd1", "/org/freedesktop/systemd1",
                  "org.freedesktop.systemd1.Manager")
    eventually(lambda: session.owns("org.freedesktop.systemd1"), "systemd is there")
    session.call("org.freedesktop.systemd1", "/org/freedesktop/systemd1",
                 "org.freedesktop.DBus.Mock.AddProperty", "org.freedesktop.systemd1.Manager",
                 "Environment", "<['DISPLAY=:77', 'SECRET=1', 'XAUTHORITY=/x=y']>")
    opener = session.folder / "bin" / "xdg-open"
    opener.write_text(
        f'#!/bin/sh\nerrors=$(readlink /proc/self/fd/2)\n'
        f'echo "$DISPLAY $XAUTHORITY $SECRET. $errors" >>"{session.folder}/opened"\n')
    machine.login("drive")
    machine.mount()
    machine.ready("drive")
    panel.come()
    bare = {name: value for name, value in {**os.environ, **machine.environment}.items()
            if name not in ("DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "SECRET")}
    tray = subprocess.Popen(["/usr/bin/python3", DESKTOP / "oort_tray.py", OORT], env=bare,
                            stdin=subprocess.PIPE)
    try:
        icon = shown(panel)
        icon.click("Open Clouds")
        # What is opened writes nowhere that ends with the icon.
        assert eventually(session.opened, "it is opened") == [":77 /x=y . /dev/null"]
    finally:
        # It ends with its input.
        tray.stdin.close()
        assert tray.wait(timeout=60) == 0
