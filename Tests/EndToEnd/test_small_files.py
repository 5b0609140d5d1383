"""Folders of small files that programs read one after the other: the next ones are fetched meanwhile."""

import os
import random

from machine import eventually

COUNT = 200
SIZE = 5_000
# The route that brings a content, and the most requests by it for one: Drive is asked by the same one
# whether the revision is current, beside it; not once more, since the hash says what came.
READ = {"dropbox": ("files/download", 1), "drive": ("files.get", 2), "onedrive": ("download", 1)}


def prepare(clouds, cloud):
    clouds.edits(cloud, [
        {"op": "write", "path": f"/{folder}/file{number:03}", "text": text(folder, number)}
        for folder in ("all", "some", "random")
        for number in range(COUNT)])


def text(folder, number):
    return f"{folder}/{number:03} ".ljust(SIZE, ".")


def listed(folder):
    """The names in the order in which programs get them."""
    with os.scandir(folder) as entries:
        return [entry.name for entry in entries]


def settled(desk, cloud):
    """Requests for contents, and the bytes of their answers, when nothing is under way."""
    def count():
        of = desk.clouds.traffic(cloud).get(READ[cloud][0], {"calls": 0, "bytes_out": 0})
        return of["calls"], of["bytes_out"]

    def is_still():
        before = count()
        transfers = desk.machine.account(cloud)["transfers"]
        return transfers == [] and count() == before and [before]

    return eventually(is_still, "nothing is under way")[0]


def test_tar_reads_each_file_once(desk, cloud, folder):
    """Byte for byte and in order, by one request for each file."""
    source = desk.drive(cloud) / "all"
    assert len(listed(source)) == COUNT
    desk.clouds.forget_calls(cloud)
    desk.machine.run("tar", "-cf", folder / "all.tar", "-C", source, ".")
    calls, sent = settled(desk, cloud)
    assert COUNT <= calls <= COUNT * READ[cloud][1], desk.clouds.counts(cloud)
    assert COUNT * SIZE <= sent < COUNT * (SIZE + 1500)
    desk.machine.run("tar", "-xf", folder / "all.tar", "-C", folder)
    for number in range(0, COUNT, 7):
        assert (folder / f"file{number:03}").read_text() == text("all", number)
    # Contents that are here are not asked for again.
    desk.clouds.forget_calls(cloud)
    desk.machine.run("grep", "-r", "no such words", source, status=1)
    assert settled(desk, cloud) == (0, 0)


def test_who_stops_has_fetched_little_for_nothing(desk, cloud):
    source = desk.drive(cloud) / "some"
    names = listed(source)
    desk.clouds.forget_calls(cloud)
    for name in names[:2]:
        (source / name).read_bytes()
    assert settled(desk, cloud)[0] <= 2 * READ[cloud][1], "two files are no habit"
    for name in names[2:10]:
        (source / name).read_bytes()
    calls, sent = settled(desk, cloud)
    assert calls <= 20 * READ[cloud][1], "not more than was read"
    assert sent <= 20 * (SIZE + 1500)


def test_reading_here_and_there_fetches_nothing_else(desk, cloud):
    source = desk.drive(cloud) / "random"
    names = listed(source)
    desk.clouds.forget_calls(cloud)
    # From the end to the beginning, then far apart.
    chosen = names[:60:-3]
    for name in chosen:
        (source / name).read_bytes()
    assert settled(desk, cloud)[0] <= len(chosen) * READ[cloud][1]
    numbers = random.Random(7).sample(range(0, 60, 20), 3)
    for number in numbers:
        (source / names[number]).read_bytes()
    assert settled(desk, cloud)[0] <= (len(chosen) + 3) * READ[cloud][1]
