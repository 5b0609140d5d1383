"""The web page of a file or folder."""

import os
import stat

from machine import eventually, read

# What each page's address begins with.
PAGES = {
    "dropbox": "https://www.dropbox.com/home",
    "drive": "https://drive.google.com/",
    "onedrive": "https://onedrive.live.com/",
    "box": "https://app.box.com/",
}


def test_it_is_printed_and_opened(machine, clouds, cloud, drive, folder):
    note = drive / "päpers" / "a note & more.txt"
    note.parent.mkdir()
    note.write_text("the note")
    machine.sync()
    page = machine.oort("open", note, "--print").strip()
    assert page.startswith(PAGES[cloud])
    assert machine.oort("open", note.parent, "--print").startswith(PAGES[cloud])
    assert machine.oort("open", drive, "--print").startswith(PAGES[cloud])
    if cloud == "dropbox":
        assert page == f"{PAGES[cloud]}/p%C3%A4pers?preview=a%20note%20%26%20more.txt"
    else:
        known = clouds.tree(cloud)["/päpers/a note & more.txt"]["id"]
        assert known.rsplit("!")[-1] in page
    # The desktop's program for addresses, which notes what it is asked to open.
    programs = folder / "programs"
    programs.mkdir()
    opened = folder / "opened"
    browser = programs / "xdg-open"
    browser.write_text(f'#!/bin/sh\nprintf %s "$1" >"{opened}.new"\nmv "{opened}.new" "{opened}"\n')
    browser.chmod(browser.stat().st_mode | stat.S_IXUSR)
    machine.environment["PATH"] = f"{programs}:{os.environ['PATH']}"
    assert machine.oort("open", note).strip() == page
    eventually(lambda: read(opened) == page, "the browser is asked", timeout=60)


def test_what_has_no_page_is_said(machine, clouds, cloud, drive):
    assert "is not there" in machine.oort("open", drive / "nothing", status=1)
    assert "folder of all accounts" in machine.oort("open", machine.mount_point, status=1)
    assert "does not lie in the mount" in machine.oort("open", "/etc/passwd", status=1)
    machine.oort("pause")
    (drive / "new.txt").write_text("new")
    assert "not in the cloud yet" in machine.oort("open", drive / "new.txt", status=1)
    machine.oort("resume")
    machine.sync()
    machine.unmount()
    assert "No mount is running" in machine.oort("open", drive / "new.txt", status=1)
