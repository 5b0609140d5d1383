"""What the extensions of file managers share: emblems, menus, and how they hear of changes."""

import json
import os
import pathlib
import subprocess
import sys
import threading
import xml.etree.ElementTree as tree

import pytest

from machine import OORT, eventually

FILES = pathlib.Path(__file__).parents[2] / "packaging" / "desktop"
sys.path.insert(0, str(FILES))
import oort_files  # noqa: E402


def test_mount_points_are_read_as_the_kernel_writes_them(tmp_path):
    table = tmp_path / "mounts"
    table.write_text("oort /home/ada/my\\040clouds fuse.oort rw 0 0\n"
                     "x /mnt fuse.sshfs rw 0 0\noort /a\\134b fuse.oort rw 0 0\n")
    assert oort_files.mount_points(table) == ["/home/ada/my clouds", "/a\\b"]
    assert oort_files.account_path("/home/ada/my clouds/drive", ["/home/ada/my clouds"])
    assert not oort_files.account_path("/home/ada/my clouds", ["/home/ada/my clouds"])
    assert not oort_files.account_path("/home/ada/my clouds2/x", ["/home/ada/my clouds"])
    assert oort_files.path_of("file:///a%20b/%C3%A4") == "/a b/ä"
    assert oort_files.path_of("sftp://host/a") is None


@pytest.mark.parametrize("state, emblems, names", [
    (("online", "synced"), [], ["pin", "link", "versions", "open"]),
    (("cached", "synced"), ["emblem-default"], ["pin", "free", "link", "versions", "open"]),
    (("pinned", "pending"), ["emblem-synchronizing", "emblem-favorite"],
     ["unpin", "link", "versions", "open"]),
    (("online", "failing: full"), ["emblem-important"], ["pin", "link", "versions", "open"]),
    (("online", "pending", True), ["emblem-important"],
     ["pin", "link", "versions", "open", "mine", "theirs", "both"]),
])
def test_emblems_and_menus_say_how_a_file_is(state, emblems, names):
    state = oort_files.State(*state)
    assert state.emblems == emblems
    assert [entry.name for entry in oort_files.entries([state])] == names


def test_several_files_have_what_goes_with_several():
    states = [oort_files.State("pinned"), oort_files.State("cached")]
    assert [entry.name for entry in oort_files.entries(states)] == ["pin", "free"]
    entry = oort_files.entries([oort_files.State("pinned")] * 2)[0]
    assert entry.commands(["/a {}", "/b"]) == [["unpin", "/a {}"], ["unpin", "/b"]]


class Loop:
    """What a file manager's loop does, turn by turn."""

    def __init__(self, environment):
        self.environment, self.waiting, self.programs = environment, [], []

    def later(self, function):
        self.waiting.append(function)

    def after(self, seconds, function):
        self.later(function)

    def run(self, command, text, done):
        result = subprocess.run(command, input=text, env=self.environment, text=True,
                                capture_output=True, timeout=400)
        self.later(lambda: done(result.returncode, result.stdout, result.stderr))

    def lines(self, command, heard, ended):
        program = subprocess.Popen(command, env=self.environment, text=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        self.programs.append(program)

        def read():
            for line in program.stdout:
                self.later(lambda line=line: heard(line))
            self.later(ended)

        threading.Thread(target=read, daemon=True).start()

    def turn(self):
        for _ in range(len(self.waiting)):
            self.waiting.pop(0)()


@pytest.fixture
def oort(machine, folder):
    """What an extension has of the machine's mount; what it refreshed, and its clipboard."""
    refreshed, copied = [], []
    programs = folder / "programs"
    programs.mkdir()
    notify = programs / "notify-send"
    notify.write_text("#!/bin/sh\n")
    notify.chmod(0o755)
    machine.environment["PATH"] = f"{programs}:{os.environ['PATH']}"
    loop = Loop(machine.environment)
    oort = oort_files.Oort(loop, refreshed.append, copied.append, str(OORT),
                           lambda: [str(machine.mount_point)])
    oort.refreshed, oort.copied = refreshed, copied
    yield oort
    for program in loop.programs:
        program.kill()
        program.wait(timeout=60)


def test_emblems_follow_what_happens(machine, clouds, oort):
    machine.login("dropbox")
    machine.mount()
    drive = machine.ready("dropbox")
    clouds.edit("dropbox", "write", "/note.txt", text="note")
    note = drive / "note.txt"
    eventually(note.exists, "it is there")
    path = str(note)
    assert oort.is_ours(path) and not oort.is_ours("/etc/passwd")
    assert oort.menu(["/etc/passwd", path]) == []

    def emblems():
        """What the window shows after a turn."""
        oort.loop.turn()
        state = oort.state(path)
        return state and state.emblems

    def perform(name):
        oort.perform(next(entry for entry in oort.menu([path]) if entry.name == name), [path])

    eventually(lambda: emblems() == [], "the state is known")
    assert path in oort.refreshed
    # By the menu.
    perform("pin")
    eventually(lambda: emblems() == ["emblem-favorite"], "it is kept")
    perform("link")
    eventually(lambda: emblems() and oort.copied, "there is a link")
    assert oort.copied[0].startswith("https://")
    perform("unpin")
    eventually(lambda: emblems() == ["emblem-default"], "a copy is left")
    # By what a program does, and then by the cloud's having it: nobody asks again by himself.
    machine.oort("pause")

    def is_pending():
        note.write_text("changed here")
        return "emblem-synchronizing" in emblems()

    eventually(is_pending, "it is on its way")
    machine.oort("resume")
    eventually(lambda: "emblem-synchronizing" not in emblems(), "it is sent")


def test_thunar_gets_its_actions_and_loses_them_again(tmp_path):
    file = tmp_path / "config" / "Thunar" / "uca.xml"
    file.parent.mkdir(parents=True)
    file.write_text("<actions><action><name>Mine</name><unique-id>1</unique-id></action></actions>")
    environment = {**os.environ, "XDG_CONFIG_HOME": str(tmp_path / "config")}

    def names(word):
        subprocess.run([sys.executable, FILES / "thunar_actions.py", word], env=environment, check=True, timeout=60)
        return [name.text for name in tree.parse(file).iter("name")]

    ours = ["Oort: Keep Here", "Oort: Keep Here No Longer", "Oort: Free Up Space",
            "Oort: Copy Link", "Oort: Open in Browser"]
    assert names("add") == ["Mine", *ours]
    assert names("add") == ["Mine", *ours]
    assert names("remove") == ["Mine"]


def test_what_fails_in_a_menu_is_shown(machine, clouds, folder):
    programs = folder / "programs"
    programs.mkdir()
    told = folder / "told"
    notify = programs / "notify-send"
    notify.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >>"{told}"\n')
    notify.chmod(0o755)
    (programs / "oort").symlink_to(OORT)
    machine.environment["PATH"] = f"{programs}:{os.environ['PATH']}"
    machine.run(FILES / "file-action", "pin", "/etc/passwd", status=1)
    assert "No mount is running" in told.read_text()
    machine.run(FILES / "file-action", "remove", "/etc/passwd", status=2)
    machine.login("drive")
    machine.mount()
    drive = machine.ready("drive")
    (drive / "a b.txt").write_text("x")
    machine.sync()
    machine.run(FILES / "file-action", "pin", drive / "a b.txt", drive)
    pins = json.loads(machine.oort("pins", "--json"))
    assert str(drive / "a b.txt") in json.dumps(pins)
