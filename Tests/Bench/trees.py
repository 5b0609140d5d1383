"""Scenarios in which programs walk over the account's tree, and the one in which nobody does
anything."""

import subprocess
import time

from .cloud import Edit
from .programs import Oort
from .stage import Stage


def tree(tops: int, folders: int, files: int) -> list[Edit]:
    """`tops` folders with `folders` folders each (none: the files lie in the former) with `files`
    files each."""
    places = [f"/top{top:03}" for top in range(tops)]
    if folders:
        places = [f"{place}/folder{number:03}" for place in places for number in range(folders)]
    return [
        {"op": "write", "path": f"{place}/file{number:02}", "text": "x"}
        for place in places for number in range(files)]


def find(stage: Stage, entries: int) -> None:
    """`find` over the account, which must have so many entries, its top folder included."""
    done = subprocess.run(
        ["find", str(stage.folder)], capture_output=True, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise AssertionError(f"find: {done.stderr.decode(errors='replace')[:500]}")
    if (found := done.stdout.count(b"\n")) != entries:
        raise AssertionError(f"find found {found} entries in place of {entries}")


def find_all(stage: Stage) -> None:
    """`find` over 11,001 entries: right after the first mount, again, and after a restart."""
    tops, entries = (50, 551) if stage.is_quick else (1000, 11_001)
    stage.cloud.edit(tree(tops, 0, 10))
    stage.real_network()
    stage.program.mount()
    with stage.measured("find.cold"):
        find(stage, entries)
    stage.program.wait_until_known()
    find(stage, entries)
    with stage.measured("find.warm"):
        find(stage, entries)
    stage.program.stop()
    stage.program.mount()
    with stage.measured("find.restart"):
        find(stage, entries)


def large_account(stage: Stage) -> None:
    """The first `find` over an account of 220,201 entries (`--long`: 1,050,501 at Dropbox)."""
    sizes = (500, 100, 20) if stage.service == "dropbox" else (200, 100, 10)
    if stage.is_quick:
        sizes = (20, 20, 10)
    tops, folders, files = sizes
    entries = 1 + tops + tops * folders + tops * folders * files
    stage.cloud.edit(tree(*sizes))
    stage.real_network()
    stage.program.mount()
    with stage.measured("large.first"):
        find(stage, entries)
    stage.program.wait_until_known()
    if isinstance(stage.program, Oort):
        stage.program.stop()
        stage.program.mount()
        with stage.measured("large.catalog") as figure:
            figure.value = stage.program.catalog_bytes() / entries
    else:
        stage.program.stop()
        stage.program.mount()
    with stage.measured("large.restart"):
        find(stage, entries)


def idle(stage: Stage) -> None:
    """Nobody does anything for a while; the value is the calls in a minute."""
    seconds = 12 if stage.is_quick else 30
    stage.mounted([{"op": "write", "path": "/a/file", "text": "x"}])
    # What a mount asks at its beginning is not asked by an idle one.
    time.sleep(3)
    mark = stage.cloud.road.mark()
    with stage.measured("idle") as figure:
        time.sleep(seconds)
        figure.value = stage.cloud.road.traffic(mark).calls * 60 / seconds
