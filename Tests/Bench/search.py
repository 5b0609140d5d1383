"""How long a mount takes for a search in an account of a million names, and what its index weighs.

    swift build -c release --product oort && swift build -c release --product oort-simulate
    PYTHONPATH=Tests python3 -B -m Bench.search --oort .build/release/oort [--items 1000000]
"""

import argparse
import collections
import json
import os
import pathlib
import random
import shutil
import socket
import sqlite3
import statistics
import sys
import tempfile
import time

SEED = 14
ROUNDS = 25
SYLLABLES = ["ka", "lo", "mi", "ter", "ran", "sol", "ve", "bri", "no", "dex", "fu", "gal", "hem",
             "pi", "qua", "zu", "ström", "ård", "lé", "wan"]
COMMON = ["report", "invoice", "letter", "photo", "draft", "final", "notes", "plan", "budget",
          "holiday", "Übersicht", "Rechnung", "scan", "contract", "meeting"]
KINDS = ["pdf", "docx", "jpg", "txt", "xlsx", "png", "md", "mp4", "zip", "py"]
# What is asked for, and why it might be slow.
QUESTIONS = {
    "a rare word": ("{rare}", {}),
    "two words": ("{rare} report", {}),
    "a word and a year": ("invoice 2019", {}),
    "a frequent word": ("report", {}),
    "two frequent words": ("report final", {}),
    "two frequent words that no name has both of": ("img scan", {}),
    "three frequent words": ("report invoice final", {}),
    "an ending that a tenth has": ("jpg", {}),
    "the inside of a word": ("eport", {}),
    "one letter": ("r", {}),
    "one name of a million": ("{number}", {}),
    "a folder above": ("jpg {folder}", {}),
    "nothing": ("xyzzyplugh", {}),
    "nothing, of a frequent word": ("report xyzzyplugh", {}),
    "only pictures": ("report", {"kind": "image"}),
    "only videos of a frequent name": ("img", {"kind": "video"}),
    "only large files, of which there are none": ("report", {"larger": 1 << 30}),
    "only files of more than 1,000 bytes, of which there are none": ("report", {"larger": 1000}),
    "only what is newer than all": ("report", {"since": "2999-01-01T00:00:00Z"}),
    "only below a folder": ("report", {"in": "{path}"}),
    "two words, only below a folder": ("report final", {"in": "{path}"}),
    "only below an account": ("report", {"in": "{drive}"}),
}


def names(count):
    """Paths as people have them: frequent words, rare ones, numbers, years."""
    chosen = random.Random(SEED)
    rare = ["".join(chosen.choices(SYLLABLES, k=chosen.randint(2, 4))) for _ in range(40_000)]
    folders = [f"/{chosen.choice(COMMON)} {year}/{chosen.choice(rare)} {number}"
               for year in range(2005, 2025) for number in range(max(count // 1000, 20))]
    for number in range(count):
        words = chosen.choices(COMMON, k=chosen.randint(0, 2)) + [chosen.choice(rare)]
        if number % 3 == 0:
            words = [f"IMG_{number:07}"]
        chosen.shuffle(words)
        yield f"{chosen.choice(folders)}/{' '.join(words)} {number % 1000}.{chosen.choice(KINDS)}"


def asked(machine, body):
    """Seconds until the mount has answered, and how many results that were."""
    text = json.dumps(body).encode()
    beginning = time.perf_counter()
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(machine.folder / "run" / "oort" / "control.sock"))
        connection.sendall(b"POST /search HTTP/1.1\r\nHost: oort\r\nConnection: close\r\n"
                           b"Content-Length: %d\r\n\r\n" % len(text) + text)
        answer = b""
        while part := connection.recv(1 << 16):
            answer += part
    seconds = time.perf_counter() - beginning
    assert answer.startswith(b"HTTP/1.1 200"), answer[:500]
    return seconds, answer.count(b'"path"')


def processor(machine):
    """Seconds of the processor that the mount has had."""
    fields = pathlib.Path(f"/proc/{machine.process}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def weigh(catalog, folder):
    """Bytes of the catalog without the index of names, and of the index."""
    copy = folder / "weighed.sqlite"
    with sqlite3.connect(catalog) as original, sqlite3.connect(copy) as target:
        original.backup(target)
    sizes = collections.Counter()
    with sqlite3.connect(copy) as database:
        try:
            for name, size in database.execute("SELECT name, sum(pgsize) FROM dbstat GROUP BY name"):
                sizes["index" if name.startswith("search_") else "catalog"] += size
        except sqlite3.OperationalError:
            whole = copy.stat().st_size
            for table in ("search_index", "search_stale"):
                database.execute(f"DROP TABLE IF EXISTS {table}")
            database.commit()
            database.isolation_level = None
            database.execute("VACUUM")
            sizes["catalog"] = copy.stat().st_size
            sizes["index"] = whole - sizes["catalog"]
    return sizes["catalog"], sizes["index"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--oort", required=True, type=pathlib.Path)
    parser.add_argument("--items", type=int, default=1_000_000)
    options = parser.parse_args()
    os.environ["OORT"] = str(options.oort.resolve())
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "EndToEnd"))
    from machine import Clouds, Machine, eventually

    folder = pathlib.Path(tempfile.mkdtemp(prefix="oort-search-", dir="/var/tmp"))
    clouds = Clouds(folder, names=["dropbox"])
    machine = Machine(folder, clouds)
    machine.program = str(options.oort.resolve())
    machine.environment.pop("OORT_CHECK_CATALOG")
    try:
        edits, example = [], None
        for path in names(options.items):
            example = example or path
            edits.append({"op": "write", "path": path, "text": "x"})
            if len(edits) == 20_000:
                clouds.edits("dropbox", edits)
                edits = []
        if edits:
            clouds.edits("dropbox", edits)
        clouds.give_full_pages("dropbox")
        machine.login("dropbox")
        machine.mount()
        eventually(lambda: machine.account("dropbox")["state"] == "up to date", "all is known",
                   timeout=3600)
        drive = machine.mount_point / "dropbox"

        def is_indexed():
            said = machine.run(machine.program, "search", "xyzzyplugh", "--json", status=None).stdout
            return not json.loads(said)["notes"]

        eventually(is_indexed, "the index has all", timeout=3600)
        time.sleep(5)
        upper, lower = example.split("/")[1:3]
        number = f"IMG_{options.items // 6 * 3:07}"
        fills = {"rare": lower.split()[0], "number": number, "folder": lower,
                 "path": f"{drive}/{upper}", "drive": drive}
        print(f"OORT_SEED={SEED}\n{options.items} items, {ROUNDS} times each\n"
              "median (least, most), processor: ms")
        for title, (words, more) in QUESTIONS.items():
            words = words.format_map(fills).split()
            body = {"words": words, "limit": 100,
                    **{key: str(value).format_map(fills) if key == "in" else value
                       for key, value in more.items()}}
            asked(machine, body)
            before, times, found = processor(machine), [], 0
            for _ in range(ROUNDS):
                seconds, found = asked(machine, body)
                times.append(seconds * 1000)
            spent = (processor(machine) - before) * 1000 / ROUNDS
            print(f"{statistics.median(times):6.1f} ({min(times):.1f}, {max(times):.1f}), {spent:5.1f}: "
                  f"{title} ({' '.join(words)}): {found} results", flush=True)
        machine.unmount()
        catalog, index = weigh(machine.state / "catalog.sqlite", folder)
        print(f"the catalog has {catalog / options.items:.0f} bytes an item, the index of names "
              f"{index / options.items:.0f}: {100 * index / catalog:.1f}%")
    finally:
        machine.clean()
        clouds.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
