"""What a mount keeps in memory of what is over."""

import pathlib
import re

import pytest

# Bytes that may stay of each file that was sent: what is known of it, for the next `ls`.
A_FILE = 20_000


def anonymous_bytes(machine):
    """The mount's own memory that is in use, without what is mapped from files."""
    status = pathlib.Path(f"/proc/{machine.process}/status").read_text()
    return int(re.search(r"RssAnon:\s+(\d+) kB", status)[1]) * 1024


@pytest.mark.parametrize("cloud", ["dropbox", "drive"])
def test_of_files_that_were_sent_nothing_stays_in_memory(machine, cloud):
    machine.login(cloud)
    machine.mount()
    drive = machine.ready(cloud)

    def send(name, count):
        folder = drive / name
        folder.mkdir()
        for number in range(count):
            (folder / f"{number}.txt").write_text(f"{name} {number}" * 500)
        machine.sync(drive)

    send("first", 200)  # what a mount needs for work of any length
    before = anonymous_bytes(machine)
    send("second", 600)
    grown = (anonymous_bytes(machine) - before) / 600
    print(f"{cloud}: {grown:.0f} bytes a file")
    assert grown < A_FILE
