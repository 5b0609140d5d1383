"""What the desktop is told of a mount: on a real session bus, by the programs of a real desktop."""

import os

import pytest

from machine import OORT, alive, eventually
from session import DESKTOP, children
from test_conflicts import make
from test_disks import disk
from test_sign_in import browse

# A fixture, imported to be used here.
__all__ = ["disk"]


def test_a_conflict_is_told_once_and_shown_by_a_click(machine, clouds, session):
    cloud = "drive"
    machine.login(cloud)
    machine.mount()
    drive = machine.ready(cloud)
    path, copy = make(machine, clouds, cloud, drive, "both & <b> \\74i\\76 \\377.txt")
    notice, = eventually(session.notices, "the conflict is told")
    assert "Two versions in drive" in notice
    # Markup of the specification's: what a name has of it is text.
    assert "both &amp; &lt;b&gt; \\74i\\76 \\377 (conflicted copy" in notice, notice
    session.click(1)
    assert eventually(session.opened, "the folder is shown") == [str(drive)]
    # A notice that was shown is not repeated when the mount starts again.
    machine.unmount()
    machine.mount()
    machine.ready(cloud)
    clouds.control(cloud, "POST", "tokens/revoke")
    notices = eventually(
        lambda: len(session.notices()) > 1 and session.notices(), "something else is told")
    assert len(notices) == 2 and "drive is signed out" in notices[1], notices
    # A click begins the sign-in in the browser.
    session.click(2)
    opened = eventually(
        lambda: len(session.opened()) > 1 and session.opened(), "the browser opens")
    browse(opened[1])
    eventually(lambda: machine.account(cloud)["state"] != "trouble", "it is signed in again")


def test_the_entry_of_the_desktops_menu_opens_the_persons_mount(machine, clouds, session):
    (session.folder / "bin" / "oort").symlink_to(OORT)
    machine.login("drive")
    machine.mount()
    machine.ready("drive")
    machine.run(DESKTOP.parent / "open-clouds")
    assert session.opened() == [str(machine.mount_point)]
    machine.unmount()
    # What cannot be mounted is said, as it is.
    (session.folder / "bin" / "oort").unlink()
    program = session.folder / "bin" / "oort"
    program.write_text("#!/bin/sh\n[ \"$1\" = mount ] || exit 5\n"
                       "printf '%s\\n' 'oort: <b> \\74i\\76' >&2\nexit 1\n")
    program.chmod(0o755)
    machine.run(DESKTOP.parent / "open-clouds", status=1)
    notice, = session.notices()
    assert '"Oort" "&lt;b&gt; \\74i\\76"' in notice


def test_a_notice_that_was_not_shown_is_shown_later(machine, clouds, session):
    """At the beginning of a session there may be no program yet to show it."""
    failed = session.folder / "failed"
    program = session.folder / "bin" / "notify-send"
    program.write_text(f'#!/bin/sh\n[ -e "{failed}" ] && exec /usr/bin/notify-send "$@"\n'
                       f'touch "{failed}"\nexit 1\n')
    program.chmod(0o755)
    machine.login("drive")
    machine.mount()
    drive = machine.ready("drive")
    make(machine, clouds, "drive", drive)
    eventually(failed.exists, "it is not shown")
    assert not session.notices()

    def told():
        # A change has the watch look at once.
        (drive / "another").write_text(os.urandom(4).hex())
        return session.notices()
    notice, = eventually(told, "it is shown")
    assert "Two versions in drive" in notice


def test_what_is_refused_is_told(machine, clouds, session):
    machine.login("dropbox")
    machine.mount()
    dropbox = machine.ready("dropbox")
    clouds.conditions("dropbox", total_bytes=1000)
    (dropbox / "folder").mkdir()
    (dropbox / "folder" / "large").write_bytes(os.urandom(100_000))
    notice, = eventually(session.notices, "that the account is full is told")
    assert "dropbox is full" in notice and "make room in the cloud" in notice
    session.click(1)
    assert eventually(session.opened, "the folder is shown") == [str(dropbox / "folder")]


@pytest.mark.parametrize("disk", ["state"], indirect=True)
def test_a_full_disk_is_told_once(machine, clouds, session, disk):
    machine.write_settings('room_patience = "1s"\n' + machine.settings())
    machine.login("drive")
    machine.mount()
    drive = machine.ready("drive")
    clouds.gates["drive"].shut()

    def fill():
        with pytest.raises(OSError), open(drive / "huge.bin", "ab", buffering=0) as file:
            while True:
                file.write(bytes(1 << 20))

    fill()
    # The notice that not everything is sent may come first.
    number, notice = eventually(
        lambda: next(((number, notice) for number, notice in enumerate(session.notices(), 1)
                      if "Your files cannot be written" in notice), None),
        "that the disk is full is told")
    assert "make room on the disk" in notice
    session.click(number)
    assert eventually(session.opened, "the mount is shown") == [str(machine.mount_point)]
    # While the disk is full, and over a restart, the notice is not repeated; others are shown.
    machine.unmount()
    machine.mount()
    machine.ready("drive")
    fill()
    clouds.gates["drive"].open()
    clouds.control("drive", "POST", "tokens/revoke")
    notices = eventually(
        lambda: "drive is signed out" in str(session.notices()) and session.notices(),
        "something else is told")
    assert sum("Your files cannot be written" in notice for notice in notices) == 1, notices


def test_sleep_waits_for_what_is_on_its_way(machine, clouds, session):
    machine.login("dropbox")
    machine.mount()
    dropbox = machine.ready("dropbox")
    process = machine.process
    assert not session.inhibited()
    machine.oort("limit", "--up", "64K")
    (dropbox / "film").write_bytes(os.urandom(8 << 20))
    asked = eventually(session.inhibited, "logind is asked to wait")
    assert ' Inhibit "sleep:shutdown" "Oort" ' in asked[0] and asked[0].endswith(' "delay"')
    assert eventually(lambda: children(process, "systemd-inhibit"), "the lock is held")
    machine.oort("limit", "--off")
    machine.sync()
    eventually(lambda: not children(process, "systemd-inhibit"), "the lock is given back")
    # The next time it is asked for again.
    machine.oort("limit", "--up", "64K")
    (dropbox / "another").write_bytes(os.urandom(8 << 20))
    eventually(lambda: len(session.inhibited()) > 1, "logind is asked once more")
    # Nothing that the mount started outlives it, however it ends.
    lock, = eventually(lambda: children(process, "systemd-inhibit"), "the lock is held")
    machine.kill()
    eventually(lambda: not alive(lock), "it ends with the mount")


def test_who_wants_to_hear_nothing_hears_nothing(machine, clouds, session):
    machine.write_settings(
        machine.settings() + "\n[desktop]\nnotices = false\ndelays_sleep = true\n")
    cloud = "onedrive"
    machine.login(cloud)
    machine.mount()
    drive = machine.ready(cloud)
    make(machine, clouds, cloud, drive)
    machine.oort("limit", "--up", "64K")
    (drive / "film").write_bytes(os.urandom(4 << 20))
    # It was looked at: sleep waits, and of the conflict nothing is said.
    eventually(session.inhibited, "logind is asked to wait")
    assert not session.notices()
