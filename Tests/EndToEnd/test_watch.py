"""`oort watch`: every change in the mount, by programs of this machine and by other clients."""

import json
import os
import signal
import subprocess
import threading

import pytest

from machine import OORT, eventually


class Watch:
    """An `oort watch --json` that is ready, and the events that it wrote."""

    def __init__(self, machine, *arguments):
        self.process = subprocess.Popen(
            [str(OORT), "watch", *map(str, arguments), "--json"], env=machine.environment,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.events = []
        threading.Thread(target=self._read, daemon=True).start()
        eventually(lambda: self.events or self.process.poll() is not None, "the watch begins")
        assert self.events and self.events[0]["event"] == "ready", self.process.stderr.read()

    def _read(self):
        for line in self.process.stdout:
            self.events.append(json.loads(line))

    def told(self, event, path, **more):
        """Waits for an event about a path; the event."""
        wanted = {"event": event, "path": str(path), **more}

        def find():
            events = list(self.events)
            return next((e for e in events if wanted.items() <= e.items()), None)

        return eventually(find, f"{wanted} among {self.events}")

    def of(self, path):
        return [e["event"] for e in self.events if e.get("path") == str(path)]

    def end(self):
        self.process.kill()
        self.process.wait(timeout=60)


@pytest.fixture
def watch(machine, drive):
    """Watches a mount that has nothing to do."""
    machine.sync()
    watch = Watch(machine)
    yield watch
    watch.end()


def test_changes_of_this_machine_and_of_others(machine, clouds, cloud, drive, watch):
    # A name that would set the window's title is exact here.
    letter = drive / "a letter\x1b]0;x\x07 ä.txt" if cloud == "drive" else drive / "a letter ä.txt"
    letter.write_text("dear")
    made = watch.told("created", letter, origin="here", kind="file")
    assert made["time"].endswith("Z")
    watch.told("changed", letter, content=True, origin="here")
    watch.told("sent", letter)
    folder = drive / "folder"
    folder.mkdir()
    watch.told("created", folder, kind="folder")
    os.rename(letter, folder / "moved.txt")
    watch.told("moved", folder / "moved.txt", **{"from": str(letter)})
    os.chmod(folder / "moved.txt", 0o600)
    watch.told("changed", folder / "moved.txt", content=False)
    machine.sync()

    clouds.edit(cloud, "write", "/folder/theirs.txt", text="theirs")
    watch.told("created", folder / "theirs.txt", origin="cloud", kind="file")
    # A watcher that gets the event finds the file.
    assert (folder / "theirs.txt").read_text() == "theirs"
    clouds.edit(cloud, "write", "/folder/theirs.txt", text="theirs, longer")
    watch.told("changed", folder / "theirs.txt", content=True, origin="cloud")
    assert (folder / "theirs.txt").read_text() == "theirs, longer"
    clouds.edit(cloud, "move", "/folder/theirs.txt", to="/theirs.txt")
    moved = eventually(
        lambda: [e for e in watch.events if e.get("path") == str(drive / "theirs.txt")],
        "the move is told")
    assert moved[0]["event"] in ("moved", "created") and moved[0]["origin"] == "cloud"
    clouds.edit(cloud, "remove", "/theirs.txt")
    watch.told("deleted", drive / "theirs.txt", origin="cloud")

    (folder / "moved.txt").unlink()
    watch.told("deleted", folder / "moved.txt", origin="here")
    folder.rmdir()
    watch.told("deleted", folder)
    # Each was reported once.
    assert watch.of(folder / "theirs.txt").count("created") == 1
    assert watch.of(folder).count("created") == 1
    assert "overflow" not in [e["event"] for e in watch.events]


def test_only_below_a_path_until_the_mount_ends(machine, clouds, cloud, drive):
    inside, outside = drive / "inside", drive / "outside"
    inside.mkdir()
    outside.mkdir()
    machine.sync()
    watch = Watch(machine, inside)
    (outside / "a").write_text("a")
    os.rename(outside / "a", inside / "b")
    watch.told("created", inside / "b", kind="file")
    os.rename(inside / "b", outside / "c")
    watch.told("deleted", inside / "b")
    os.rename(inside, drive / "elsewhere")
    watch.told("deleted", inside, kind="folder")
    paths = {e["path"] for e in watch.events if "path" in e}
    assert paths == {str(inside), str(inside / "b")}
    machine.unmount()
    assert watch.process.wait(timeout=120) == 1
    assert "The mount ended." in watch.process.stderr.read()


def test_how_it_ends(machine, clouds):
    machine.login("dropbox")
    assert "No mount is running" in machine.oort("watch", status=1)
    machine.mount()
    drive = machine.ready("dropbox")
    assert "is not there" in machine.oort("watch", drive / "nothing", status=1)
    assert "does not lie in the mount" in machine.oort("watch", "/etc", status=1)

    # By Ctrl-C, as every program.
    watch = Watch(machine, drive)
    watch.process.send_signal(signal.SIGINT)
    assert watch.process.wait(timeout=60) == -signal.SIGINT

    # It ends when its output is no longer read, even if nothing happens.
    reader, writer = os.pipe()
    silent = subprocess.Popen([str(OORT), "watch"], env=machine.environment, stdout=writer,
                              stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    os.close(writer)
    os.close(reader)
    assert silent.wait(timeout=60) == 0
    assert silent.stderr.read() == b""

    # A name cannot act on the terminal.
    lines = subprocess.Popen([str(OORT), "watch", str(drive)], env=machine.environment, text=True,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    heard = []
    threading.Thread(target=lambda: heard.extend(lines.stdout), daemon=True).start()
    count = 0

    def is_told():
        nonlocal count
        count += 1  # the first ones may come before the watch begins
        (drive / f"\x1b[2J{count}.txt").write_text("x")
        return any("created" in line for line in list(heard))

    eventually(is_told, "a line is written")
    lines.kill()
    lines.wait(timeout=60)
    created = next(line for line in heard if "created" in line)
    assert "\\u{1b}[2J" in created and "\x1b" not in "".join(heard)
