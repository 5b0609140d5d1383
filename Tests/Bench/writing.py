"""Scenarios in which programs write, each until the cloud has it, which the simulator is asked."""

import shutil
import subprocess
import time
from collections.abc import Callable

from .reading import MIB, large
from .road import Road, file_hash, wait_for
from .stage import Figure, Stage


def write_large(stage: Stage) -> None:
    """A large file is copied into the mount."""
    size = (32 if stage.is_quick else 256) * MIB
    source = stage.sources.noise(size)
    stage.mounted([{"op": "mkdir", "path": "/in"}])
    with stage.measured("write"):
        shutil.copyfile(source, stage.folder / "in" / "big.bin")
        stage.cloud.wait(files=1, bytes=size)
    if stage.cloud.content_hash("/in/big.bin") != file_hash(source):
        raise AssertionError("the cloud has other bytes")


def write_small(stage: Stage) -> None:
    """Small files are written into one folder."""
    count = 100 if stage.is_quick else 500
    source = stage.sources.tree(count, 4096, 1)
    size = sum(file.stat().st_size for file in source.rglob("*.bin"))
    stage.mounted([{"op": "mkdir", "path": "/in"}])
    with stage.measured("files"):
        subprocess.run(
            ["cp", "-r", str(source / "folder000"), str(stage.folder / "in")], check=True)
        stage.cloud.wait(files=count, bytes=size)


def write_tree(stage: Stage) -> None:
    """A tree of 26 MB is copied into the mount: 2,000 files in 200 folders."""
    count, folders = (200, 20) if stage.is_quick else (2000, 200)
    source = stage.sources.tree(count, 13_000, folders)
    size = sum(file.stat().st_size for file in source.rglob("*.bin"))
    stage.mounted([{"op": "mkdir", "path": "/in"}])
    with stage.measured("tree"):
        subprocess.run(["cp", "-r", str(source), str(stage.folder / "in" / "tree")], check=True)
        stage.cloud.wait(files=count, bytes=size)


def tidy(stage: Stage) -> None:
    """`rm -rf` of a folder of 500 files, `mv` of one, `cp` of a large file inside the account.

    Each has two values: what the command takes, and until the cloud has it.
    """
    count, size = (100, 32 * MIB) if stage.is_quick else (500, 256 * MIB)
    stage.mounted([
        {"op": "mkdir", "path": "/there"}, large("/big.bin", size, 1),
        *({"op": "write", "path": f"/{folder}/file{number}", "text": "x"}
          for folder in ("rm", "mv") for number in range(count))])
    cloud = stage.cloud
    acts: dict[str, tuple[list[str], Callable[[], bool]]] = {
        "rm": (["rm", "-rf", "rm"], lambda: cloud.summary()["files"] == count + 1),
        "mv": (["mv", "mv", "there/moved"],
               lambda: cloud.has(f"/there/moved/file{count - 1}") and not cloud.has("/mv/file0")),
        "cp": (["cp", "big.bin", "there/copy.bin"], lambda: cloud.has("/there/copy.bin")),
    }
    for row, (command, is_there) in acts.items():
        seconds = 0.0
        with stage.measured(row + ".cloud"):
            began = time.monotonic()
            subprocess.run(command, cwd=stage.folder, check=True)
            seconds = time.monotonic() - began
            wait_for(is_there, f"the cloud has the {row}", 300)
        stage.figures[row] = Figure(seconds)


def killed_upload(stage: Stage) -> None:
    """The mounting process is killed half-way through an upload, and mounted again at once.

    The value is the bytes that went up in all, those of the cut requests included.
    """
    size = (40 if stage.is_quick else 200) * MIB
    source = stage.sources.noise(size)
    stage.mounted([{"op": "mkdir", "path": "/in"}])
    before, mark = Road.bytes_so_far(), stage.cloud.road.mark()
    shutil.copyfile(source, stage.folder / "in" / "big.bin")
    wait_for(lambda: Road.bytes_so_far() > before + size // 2, "half of it went up", 300)
    stage.program.kill()
    stage.program.mount()
    with stage.measured("killed") as figure:
        stage.cloud.wait(files=1, bytes=size)
        time.sleep(0.5)
        figure.value = stage.cloud.road.traffic(mark).up / 1e6
    if stage.cloud.content_hash("/in/big.bin") != file_hash(source):
        raise AssertionError("the cloud has other bytes")
