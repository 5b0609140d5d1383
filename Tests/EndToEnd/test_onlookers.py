"""Programs that look at files which no person asked them to open cause no large downloads."""

import shutil
import subprocess
import sys

from machine import eventually

PHOTOS = 20
LENGTH = 200_000
THREADED = """
import sys, threading

with open("/proc/self/comm", "w") as own:
    own.write("clamscan")

def look():
    # As makers of thumbnails have it: the thread has a name of its own.
    with open("/proc/thread-self/comm", "w") as own:
        own.write("pool-worker")
    try:
        print(len(open(sys.argv[1], "rb").read()))
    except OSError as error:
        print(error.strerror)

thread = threading.Thread(target=look)
thread.start()
thread.join()
"""


def sent(clouds, cloud):
    """The bytes that a service gave away, in all."""
    return sum(route["bytes_out"] for route in clouds.traffic(cloud).values())


def test_a_folder_of_photos(machine, clouds, folder):
    cloud = "dropbox"
    clouds.edits(cloud, [{"op": "write", "path": f"/photos/{number}.jpg", "seed": number, "size": LENGTH}
                         for number in range(PHOTOS)])
    clouds.edit(cloud, "write", "/photos/small.jpg", text="x" * 1000)
    machine.login(cloud)
    machine.mount()
    photos = machine.ready(cloud) / "photos"
    eventually(lambda: len(list(photos.iterdir())) == PHOTOS + 1, "all are listed")
    # A process is known by its name.
    thumbnailer = folder / "tumblerd"
    shutil.copy("/bin/cat", thumbnailer)

    def look(name, program=thumbnailer):
        return subprocess.run([program, photos / name], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, env={"LC_ALL": "C"})

    clouds.await_quiet(cloud)
    before = sent(clouds, cloud)
    for number in range(PHOTOS):
        result = look(f"{number}.jpg")
        assert result.returncode == 1 and b"Permission denied" in result.stderr, result
    assert sent(clouds, cloud) - before < PHOTOS * LENGTH * 0.05
    assert clouds.counts(cloud).get("files/download", 0) == 0
    # By the name of the process, whatever its thread is called.
    result = subprocess.run([sys.executable, "-I", "-c", THREADED, photos / "0.jpg"],
                            stdout=subprocess.PIPE, text=True, env={"LC_ALL": "C"})
    assert result.stdout == "Permission denied\n", result
    # Small files are given, and those that were read before.
    assert look("small.jpg").stdout == b"x" * 1000
    assert len(look("0.jpg", "/bin/cat").stdout) == LENGTH
    assert len(look("0.jpg").stdout) == LENGTH
    # What was written here is here.
    (photos / "new.jpg").write_bytes(b"y" * LENGTH)
    assert len(look("new.jpg").stdout) == LENGTH
    # The person decides who it is, and how much.
    machine.unmount()
    machine.write_settings(
        machine.settings() + '[onlookers]\nprograms = ["clamscan"]\nlargest_download = "1M"\n')
    machine.mount()
    machine.ready(cloud)
    assert len(look("1.jpg").stdout) == LENGTH
    scanner = folder / "clamscan"
    shutil.copy("/bin/cat", scanner)
    assert len(look("2.jpg", scanner).stdout) == LENGTH, "it is smaller than that"
