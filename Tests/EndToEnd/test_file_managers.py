"""What the extensions of file managers share: emblems, menus, and how they learn of changes."""

import configparser
import json
import os
import pathlib
import signal
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
    ours = f"rw,user_id={os.getuid()},group_id=0"
    others = f"rw,user_id={os.getuid()}1,group_id=0"
    table.write_text(f"oort /home/ada/my\\040clouds fuse.oort {ours} 0 0\n"
                     f"oort /home/bob/clouds fuse.oort {others} 0 0\n"
                     f"x /mnt fuse.sshfs {ours} 0 0\noort /a\\134b fuse.oort {ours} 0 0\n")
    assert oort_files.mount_points(table) == ["/home/ada/my clouds", "/a\\b"]
    assert oort_files.account_path("/home/ada/my clouds/drive", ["/home/ada/my clouds"])
    assert not oort_files.account_path("/home/ada/my clouds", ["/home/ada/my clouds"])
    assert not oort_files.account_path("/home/ada/my clouds2/x", ["/home/ada/my clouds"])
    assert oort_files.path_of("file:///a%20b/%C3%A4") == "/a b/ä"
    assert oort_files.path_of("sftp://host/a") is None


@pytest.mark.parametrize("state, emblems, names", [
    (("online", "synced"), [], ["pin", "link", "versions", "open"]),
    (("cached", "synced"), ["emblem-oort-here"], ["pin", "free", "link", "versions", "open"]),
    (("pinned", "pending"), ["emblem-oort-sending", "emblem-oort-kept"],
     ["unpin", "link", "versions", "open"]),
    (("online", "failing: full"), ["emblem-oort-attention"], ["pin", "link", "versions", "open"]),
    (("online", "pending", True), ["emblem-oort-attention"],
     ["pin", "link", "versions", "open", "mine", "theirs", "both"]),
])
def test_emblems_and_menus_say_how_a_file_is(state, emblems, names):
    state = oort_files.State(*state)
    assert state.emblems == emblems
    assert [entry.name for entry in oort_files.entries([state])] == names


def test_a_folder_has_no_versions():
    names = [entry.name for entry in oort_files.entries([oort_files.State()], has_folder=True)]
    assert names == ["pin", "link", "open"]


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

    def attributes(self, path, names, done):
        def read(name):
            try:
                return os.getxattr(path, name).decode()
            except OSError:
                return ""

        self.later(lambda: done([read(name) for name in names]))

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

    def copy(text):
        copied.append(text)
        return True

    oort = oort_files.Oort(loop, refreshed.append, copy, str(OORT),
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
    eventually(lambda: emblems() == ["emblem-oort-kept"], "it is kept")
    perform("link")
    eventually(lambda: emblems() and oort.copied, "there is a link")
    assert oort.copied[0].startswith("https://")
    perform("unpin")
    eventually(lambda: emblems() == ["emblem-oort-here"], "a copy is left")
    # Emblems change when a program changes the file, and again when the cloud has it.
    machine.oort("pause")

    def is_pending():
        note.write_text("changed here")
        return "emblem-oort-sending" in emblems()

    eventually(is_pending, "it is on its way")
    machine.oort("resume")
    eventually(lambda: "emblem-oort-sending" not in emblems(), "it is sent")


def test_emblems_in_a_demo_follow_the_demo(machine, oort, monkeypatch):
    """It runs beside the person's own mount, and nothing of its environment is known."""
    # States are asked for again only after a notice of a change.
    monkeypatch.setattr(oort_files, "BELIEVED", 100_000)
    machine.login("dropbox")
    machine.mount()
    own = machine.ready("dropbox")
    place = machine.folder / "demo"
    demo = subprocess.Popen([str(OORT), "demo", str(place)], env=machine.environment, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        while "source " not in demo.stdout.readline():
            assert demo.poll() is None
        oort.find_mounts = lambda: [str(machine.mount_point), str(place)]
        oort.known_mounts = (0, [])

        def emblems(path):
            oort.loop.turn()
            state = oort.state(str(path))
            return state and state.emblems

        for folder in (place / "drive", own):
            note = folder / "note.txt"

            def is_pending(note=note):
                note.write_text(os.urandom(4).hex())
                return "emblem-oort-sending" in (emblems(note) or [])

            eventually(is_pending, "it is on its way")
            machine.oort("sync", str(note), "--timeout", "300s")
            eventually(lambda note=note: emblems(note) == ["emblem-oort-here"], "it is sent")
        # Entries of the menu, too.
        note = str(place / "drive" / "note.txt")
        oort.perform(next(entry for entry in oort.menu([note]) if entry.name == "pin"), [note])
        eventually(lambda: "emblem-oort-kept" in emblems(note), "it is kept")
        assert machine.oort("conflicts", str(place)).strip() == "There is no conflict."
    finally:
        demo.send_signal(signal.SIGINT)
        demo.communicate(timeout=120)


class Silent:
    """A loop with programs that say nothing, and files that are asked for by hand."""

    def __init__(self):
        self.waiting, self.questions, self.commands = [], [], []
        # What is not to happen before a state is no longer believed.
        self.much_later = []

    def after(self, seconds, function):
        (self.much_later if seconds >= oort_files.BELIEVED else self.waiting).append(function)

    def run(self, command, text, done):
        self.commands.append(command)

    def lines(self, command, heard, ended):
        self.heard = heard

    def attributes(self, path, names, done):
        self.questions.append((path, done))

    def turn(self):
        for _ in range(len(self.waiting)):
            self.waiting.pop(0)()

    def answer(self):
        """Every file is here, and synced."""
        while self.questions:
            self.questions.pop(0)[1](["cached", "synced"])


def test_a_mount_that_does_not_answer_is_asked_for_few_files_at_once():
    loop, refreshed = Silent(), []
    oort = oort_files.Oort(loop, refreshed.append, None, "oort", lambda: ["/c"])
    paths = [f"/c/box/{number}" for number in range(50)]
    for _ in range(3):
        for path in paths:
            assert oort.state(path) is None
    assert [path for path, _ in loop.questions] == paths[:oort_files.ASKED_AT_ONCE]
    loop.answer()
    assert refreshed == paths
    assert oort.state(paths[49]).emblems == ["emblem-oort-here"]


def test_what_a_window_shows_is_asked_for_again(monkeypatch):
    """For pins, and copies that come and go, of which no event tells; not for what was shown long ago."""
    loop, refreshed = Silent(), []
    oort = oort_files.Oort(loop, refreshed.append, None, "oort", lambda: ["/c"])
    paths = [f"/c/box/{number}" for number in range(2 * oort_files.IN_SIGHT)]
    for path in paths:
        oort.state(path)
    loop.answer()
    refreshed.clear()
    again, = loop.much_later
    loop.much_later.clear()
    monkeypatch.setattr(oort_files, "BELIEVED", 0)
    again()
    asked = []
    while loop.questions:
        path, done = loop.questions.pop(0)
        asked.append(path)
        done(["pinned" if path == paths[-1] else "cached", "synced"])
    assert asked == paths[-oort_files.IN_SIGHT:] and refreshed == paths[-1:]
    assert oort.states[paths[-1]][1].emblems == ["emblem-oort-kept"]
    # And so on, until there is no mount.
    again, = loop.much_later
    oort.known_mounts, oort.find_mounts = (0, []), lambda: []
    loop.much_later.clear()
    again()
    assert loop.questions == [] and loop.much_later == []


def test_many_changes_are_one_look_and_none_ends_the_emblems():
    loop, refreshed = Silent(), []
    oort = oort_files.Oort(loop, refreshed.append, None, "oort", lambda: ["/c"])
    paths = ["/c/box", "/c/box/a", "/c/box/a/deep", "/c/box/ab", "/c/drive"]
    for path in paths:
        oort.state(path)
    loop.answer()
    loop.turn()
    refreshed.clear()
    for line in ["7", "[]", '{"event": "changed", "path": 7}', "nothing"]:
        loop.heard(line)
    for _ in range(100):
        loop.heard(json.dumps({"event": "changed", "path": "/c/box/a"}))
    assert refreshed == [] and len(loop.waiting) == 1
    loop.turn()
    # The file, what lies below it, and what it lies in; each once.
    assert refreshed == ["/c/box", "/c/box/a", "/c/box/a/deep"]
    refreshed.clear()
    for number in range(2 * oort_files.KEPT):
        loop.heard(json.dumps({"event": "changed", "path": f"/c/drive/{number}"}))
    loop.turn()
    assert sorted(refreshed) == paths


def test_names_are_no_markup_in_notifications():
    loop = Silent()
    oort = oort_files.Oort(loop, None, lambda text: True, "oort", lambda: ["/c"])
    entry = oort_files.entries([oort_files.State()])[0]
    oort._performed(entry, "/c/x", 1, "", "oort: <b>a & b</b>.txt is not there")
    assert loop.commands[-1][-1] == "&lt;b&gt;a &amp; b&lt;/b&gt;.txt is not there"
    # The program would make letters of what follows a backslash, and dies of what is no UTF-8.
    oort._performed(entry, "/c/x", 1, "", "oort: \\74b\\76 \udcff is not there\nor gone")
    assert loop.commands[-1][-1] == "\\\\74b\\\\76 \\\\u{dcff} is not there\nor gone"


# What a file manager's Python is: the system's, with GIO.
SYSTEM_PYTHON = "/usr/bin/python3"
HAS_GIO = subprocess.run([SYSTEM_PYTHON, "-c", "from gi.repository import Gio"],
                         capture_output=True, timeout=60, check=False).returncode == 0
IN_A_FILE_MANAGER = """
import json, os, signal, sys
sys.path.insert(0, sys.argv[1])
from gi.repository import GLib
import oort_files, oort_loop
process, mount, path = int(sys.argv[2]), sys.argv[3], sys.argv[4]
main, loop = GLib.MainLoop(), oort_loop.Loop()
oort = oort_files.Oort(loop, lambda path: main.quit(), None, "false", lambda: [mount])
turns = []

def turn():
    turns.append(oort.state(path))
    if len(turns) == 5:
        os.kill(process, signal.SIGCONT)
    return len(turns) < 5

def hear(line):
    lines.append(line)
    raise ValueError("a line that nobody understands")

lines = []
loop.lines(["printf", "one\\ntwo\\n"], hear, lambda: None)
os.kill(process, signal.SIGSTOP)
GLib.timeout_add(20, turn)
GLib.timeout_add_seconds(300, main.quit)
main.run()
state = oort.state(path)
print(json.dumps([turns, state.availability, len(lines)]))
"""


@pytest.mark.skipif(not HAS_GIO, reason="the system's Python has no GIO")
def test_a_file_manager_draws_while_the_mount_does_not_answer(machine, clouds, folder):
    machine.login("dropbox")
    machine.mount()
    note = machine.ready("dropbox") / "note.txt"
    note.write_text("note")
    machine.sync()
    try:
        said = subprocess.run(
            [SYSTEM_PYTHON, "-c", IN_A_FILE_MANAGER, FILES, str(machine.process),
             str(machine.mount_point), str(note)],
            capture_output=True, text=True, timeout=120, check=True)
    finally:
        os.kill(machine.process, signal.SIGCONT)
    assert json.loads(said.stdout) == [[None] * 5, "cached", 2], said.stderr


@pytest.mark.skipif(not HAS_GIO, reason="the system's Python has no GIO")
def test_a_clipboard_that_never_ends_is_not_waited_for(folder):
    programs = folder / "programs"
    programs.mkdir()
    copy = programs / "wl-copy"
    copy.write_text(f"""#!/bin/sh
cat >"{folder}/copied"
echo $$ >"{folder}/new"
mv "{folder}/new" "{folder}/pid"
exec sleep 600
""")
    copy.chmod(0o755)
    script = """
import os, sys
sys.path.insert(0, sys.argv[1])
sys.modules["gi.repository.Gdk"] = None
from gi.repository import GLib
import oort_loop, oort_provider
main, loop = GLib.MainLoop(), oort_loop.Loop()
copied = oort_provider.copy_text("https://example.com/a", loop)
GLib.timeout_add(20, lambda: not os.path.exists(sys.argv[2]) or main.quit())
main.run()
print(copied)
"""
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
    try:
        said = subprocess.run([SYSTEM_PYTHON, "-c", script, FILES, folder / "pid"], env=environment,
                              capture_output=True, text=True, timeout=120, check=True)
        assert said.stdout == "True\n"
        assert (folder / "copied").read_text() == "https://example.com/a"
    finally:
        os.kill(int((folder / "pid").read_text()), signal.SIGKILL)


def test_thunar_gets_its_actions_and_loses_them_again(tmp_path):
    file = tmp_path / "config" / "Thunar" / "uca.xml"
    file.parent.mkdir(parents=True)
    file.write_text("<actions><action><name>Mine</name><unique-id>1</unique-id></action></actions>")
    environment = {**os.environ, "XDG_CONFIG_HOME": str(tmp_path / "config")}

    def names(word):
        subprocess.run([sys.executable, FILES / "thunar_actions.py", word], env=environment, check=True, timeout=60)
        return [name.text for name in tree.parse(file).iter("name")]

    ours = ["Oort: Keep Here", "Oort: Keep Here No Longer", "Oort: Free Up Space",
            "Oort: Copy Link", "Oort: Versions", "Oort: Open in Browser",
            "Oort: Resolve: Keep My Version", "Oort: Resolve: Keep the Cloud's Version",
            "Oort: Resolve: Keep Both"]
    assert names("add") == ["Mine", *ours]
    assert names("add") == ["Mine", *ours]
    assert names("remove") == ["Mine"]
    # Settings that lie elsewhere stay there.
    kept = tmp_path / "dotfiles" / "actions.xml"
    kept.parent.mkdir()
    file.replace(kept)
    file.symlink_to(kept)
    assert names("add") == ["Mine", *ours]
    assert file.is_symlink() and [each.name for each in kept.parent.iterdir()] == ["actions.xml"]


def test_dolphin_shows_the_entries_in_the_order_of_the_other_menus():
    menu = configparser.ConfigParser(interpolation=None)
    menu.optionxform = str
    menu.read(FILES / "oort-dolphin.desktop")
    actions = menu["Desktop Entry"]["Actions"].strip(";").split(";")
    # As Dolphin sorts them.
    assert actions == sorted(actions)
    ours = [name.text.removeprefix("Oort: ") for name in tree.parse(FILES / "thunar-actions.xml").iter("name")]
    assert [menu[f"Desktop Action {action}"]["Name"] for action in actions] == ours


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
    (programs / "oort").unlink()
    (programs / "oort").write_text('#!/bin/sh\necho "oort: <b>a & b</b>.txt is not there" >&2\nexit 1\n')
    (programs / "oort").chmod(0o755)
    machine.run(FILES / "file-action", "pin", "/etc/passwd", status=1)
    assert "&lt;b&gt;a &amp; b&lt;/b&gt;.txt is not there" in told.read_text()
    (programs / "oort").write_text("#!/bin/sh\nprintf 'oort: %s\\377' '\\74b' >&2\nexit 1\n")
    machine.run(FILES / "file-action", "pin", "/etc/passwd", status=1)
    assert told.read_text().endswith("\\\\74b\n")
    (programs / "oort").unlink()
    (programs / "oort").symlink_to(OORT)
    machine.run(FILES / "file-action", "remove", "/etc/passwd", status=2)
    machine.login("drive")
    machine.mount()
    drive = machine.ready("drive")
    (drive / "a b.txt").write_text("x")
    machine.sync()
    machine.run(FILES / "file-action", "pin", drive / "a b.txt", drive)
    pins = json.loads(machine.oort("pins", "--json"))
    assert str(drive / "a b.txt") in json.dumps(pins)


def test_versions_and_conflicts_in_menus_of_actions(machine, clouds, folder):
    """What Nautilus shows by itself, Thunar and Dolphin do by the same commands."""
    programs = folder / "programs"
    programs.mkdir()
    shown = folder / "shown"
    zenity = programs / "zenity"
    zenity.write_text(f'#!/bin/sh\n{{ printf "%s\\n" "$@"; cat; }} >"{shown}"\n')
    zenity.chmod(0o755)
    (programs / "oort").symlink_to(OORT)
    machine.environment["PATH"] = f"{programs}:{os.environ['PATH']}"
    clouds.edit("drive", "write", "/file.txt", text="first\n")
    machine.login("drive")
    machine.mount()
    drive = machine.ready("drive")
    file = drive / "file.txt"
    file.write_text("second\n")
    machine.sync()
    machine.run(FILES / "file-action", "versions", file)
    said = shown.read_text()
    assert "--title=Versions of file.txt" in said and str(len("first\n")) in said, said

    clouds.gates["drive"].shut()
    file.write_text("mine\n")
    clouds.edit("drive", "write", "/file.txt", text="theirs\n")
    clouds.gates["drive"].open()
    eventually(lambda: json.loads(machine.oort("conflicts", "--json")), "there are two versions")
    machine.sync()
    [copy] = [path for path in drive.iterdir() if "(conflicted copy " in path.name]
    machine.run(FILES / "file-action", "theirs", copy)
    eventually(lambda: not copy.exists(), "one of them is left")
    assert file.read_text() == "theirs\n"
    assert json.loads(machine.oort("conflicts", "--json")) == []
