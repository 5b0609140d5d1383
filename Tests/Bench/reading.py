"""Scenarios in which programs read."""

import os
import random
import shutil
import statistics
import threading
import time

from .cloud import Edit
from .road import Road, wait_for
from .stage import Stage, read_all

MB = 1_000_000
MIB = 1 << 20


def large(path: str, size: int, seed: int) -> Edit:
    """A large file at the service."""
    return {"op": "write", "path": path, "seed": seed, "size": size}


def first_bytes(stage: Stage, paths: list[str]) -> float:
    """The median of the seconds until each file has given its first 4 KB."""
    found = []
    for path in paths:
        began = time.monotonic()
        with open(stage.folder / path, "rb", buffering=0) as file:
            file.read(4096)
        found.append(time.monotonic() - began)
        # What is read ahead would take the line from the next one.
        time.sleep(0.3)
    return statistics.median(found)


def read_through(stage: Stage) -> None:
    """A large file that was never read, from start to end, and the first byte of others."""
    size = (64 if stage.is_quick else 256) * MIB
    others = [f"other{number}.bin" for number in range(3)]
    stage.mounted([
        large("/big.bin", size, 1),
        *(large("/" + name, 8 * MIB, 2 + number) for number, name in enumerate(others))])
    with stage.measured("read.first") as figure:
        figure.value = first_bytes(stage, others)
    with stage.measured("read.whole") as figure:
        began = time.monotonic()
        read_all(stage.folder / "big.bin", size)
        figure.value = size / MB / (time.monotonic() - began)


class Upload:
    """A large file that is copied into the mount and goes up behind that."""

    def __init__(self, stage: Stage, size: int):
        source = stage.sources.noise(size)
        before = Road.bytes_so_far()
        self.copy = threading.Thread(
            target=shutil.copyfile, args=(source, stage.folder / "upload.bin"))
        self.copy.start()
        wait_for(lambda: Road.bytes_so_far() > before + 4 * MIB, "the upload has begun", 20)

    def forget(self) -> None:
        """Lets it go on; only the copying into the mount is waited for."""
        self.copy.join()


def small_file_while_uploading(stage: Stage) -> None:
    """Small files that were never read are opened and read while a large one goes up."""
    names = [f"small{number}.txt" for number in range(7)]
    stage.mounted([large("/" + name, 20_000, number) for number, name in enumerate(names)])
    upload = Upload(stage, (64 if stage.is_quick else 400) * MIB)
    with stage.measured("small.uploading") as figure:
        found = []
        for name in names:
            began = time.monotonic()
            read_all(stage.folder / name, 20_000)
            found.append(time.monotonic() - began)
        figure.value = statistics.median(found)
    upload.forget()


def random_reads(stage: Stage) -> None:
    """64 reads of 4 KB at random places of a file of 1 GiB that was never read."""
    size, count = 1 << 30, 16 if stage.is_quick else 64
    stage.mounted([large("/huge.bin", size, 5)])
    numbers = random.Random(7)
    with stage.measured("random") as figure:
        began = time.monotonic()
        file = os.open(stage.folder / "huge.bin", os.O_RDONLY)
        try:
            for _ in range(count):
                os.pread(file, 4096, numbers.randrange(size // 4096) * 4096)
        finally:
            os.close(file)
        figure.value = time.monotonic() - began


def film(stage: Stage) -> None:
    """A film of 2 MB/s is played from its middle while a large file goes up.

    The value is how far the player fell behind at worst, beginning with its first picture.
    """
    size, seconds, step = 1 << 30, 3 if stage.is_quick else 12, 250_000
    stage.mounted([large("/film.mkv", size, 6)])
    upload = Upload(stage, (64 if stage.is_quick else 400) * MIB)
    with stage.measured("film") as figure:
        worst = 0.0
        with open(stage.folder / "film.mkv", "rb", buffering=0) as file:
            file.seek(size // 2)
            file.read(step)
            began = time.monotonic()
            for number in range(1, seconds * 8):
                due = began + number * step / (2 * MB)
                if (early := due - time.monotonic()) > 0:
                    time.sleep(early)
                left = step
                while left > 0 and (part := file.read(left)):
                    left -= len(part)
                worst = max(worst, time.monotonic() - due)
        figure.value = worst
    upload.forget()
