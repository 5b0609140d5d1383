"""What can be played in the demo: each scene shows what it says, and puts the clouds back."""

import os
import signal
import subprocess

import pytest

from machine import OORT, eventually, read

pytestmark = pytest.mark.clouds()


@pytest.fixture
def demo(machine, folder):
    """A demo that runs, and the folder of its Google Drive."""
    place = folder / "demo"
    process = subprocess.Popen([str(OORT), "demo", str(place)], env=machine.environment, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        while not (line := process.stdout.readline()).strip().startswith("source "):
            assert line, "it ended"
        # This one, whatever else runs on the machine.
        home = os.path.dirname(line.strip().removeprefix("source "))
        machine.environment["OORT_FOLDER"] = home
        drive = place / "drive"
        eventually((drive / "Documents" / "Shopping list.txt").exists, "the sample account shows")
        yield drive
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=120)
        assert process.returncode == 0
    finally:
        process.kill()


def begin(machine, *arguments):
    return subprocess.Popen([str(OORT), "demo", "play", *arguments], env=machine.environment, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def play(machine, *arguments):
    said, _ = (scene := begin(machine, *arguments)).communicate(timeout=300)
    assert scene.returncode == 0, said
    return said


def until(scene, words):
    """What a scene says until it has said this."""
    said = ""
    while words not in said:
        line = scene.stdout.readline()
        assert line, said
        said += line
    return said


def test_each_scene(machine, demo):
    drive = demo
    shopping = drive / "Documents" / "Shopping list.txt"

    said = play(machine, "edit")
    assert "said Bob" in read(shopping) and read(shopping) in said
    assert (drive / "From Bob" / "note.txt").exists()

    said = play(machine, "conflict")
    copy, = (path for path in shopping.parent.iterdir() if "(conflicted copy " in path.name)
    assert str(copy) in said and "milk" in read(copy) and "wine" in read(shopping)
    assert str(copy) in machine.oort("conflicts", drive)
    machine.oort("resolve", shopping, "--keep", "both")

    # Programs read and write on; all of it goes out afterwards.
    scene = begin(machine, "offline", "--for", "1h")
    until(scene, "oort status")
    (drive / "mine.txt").write_text("hello")
    assert read(drive / "mine.txt") == "hello"
    assert machine.oort("sync", drive / "mine.txt", "--timeout", "1s", status=1)
    scene.send_signal(signal.SIGINT)
    said, _ = scene.communicate(timeout=300)
    assert scene.returncode == 0 and "The network is back" in said, said
    machine.oort("sync", drive, "--timeout", "300s")

    scene = begin(machine, "full", "--for", "1h")
    until(scene, "A file of 4 MB was written")
    large, = drive.glob("too large at *.bin")
    eventually(lambda: "sync" not in os.getxattr(large, "user.oort.status").decode(), "it is refused")
    assert large.stat().st_size == 4_000_000
    scene.send_signal(signal.SIGINT)
    said, _ = scene.communicate(timeout=300)
    assert scene.returncode == 0 and "has room again" in said, said
    machine.oort("sync", drive, "--timeout", "300s")

    said = play(machine, "slow", "--for", "1s")
    assert "no call was made for it" in said and "The line is fast again." in said
    machine.oort("sync", drive, "--timeout", "300s")


def test_bad_input(machine, demo):
    said = machine.oort("demo", "play", "edit", "--account", "none", status=1)
    assert "none" in said and "drive" in said
    machine.oort("demo", "play", "fly", status=2)
