"""GNOME's overview finds files of the clouds: its search provider on a real session bus, asked by
`gdbus`, started by the bus as the package has it."""

import ast
import os
import subprocess

import pytest

from machine import OORT, alive, eventually, read
from session import DESKTOP

NAME = "io.github.oort.Oort.SearchProvider"
PATH = "/io/github/oort/Oort/SearchProvider"
SERVICE = f"{NAME}.service"


class Overview:
    """What GNOME's overview asks, from a program that is not ours."""

    def __init__(self, session):
        self.session = session
        text = (DESKTOP / SERVICE).read_text().replace("/usr/share/oort/desktop", str(DESKTOP))
        (session.folder / "services" / SERVICE).write_text(text)
        (session.folder / "bin" / "oort").symlink_to(OORT)
        provider = dict(
            line.split("=") for line in (DESKTOP / f"{NAME}.ini").read_text().splitlines()[1:])
        assert (provider["BusName"], provider["ObjectPath"]) == (NAME, PATH)

    def asking(self, method, *arguments):
        return NAME, PATH, f"org.gnome.Shell.SearchProvider2.{method}", *arguments

    def _ask(self, method, *arguments):
        return self.session.call(*self.asking(method, *arguments))

    def find(self, *terms):
        return self._results("GetInitialResultSet", texts(terms))

    def find_among(self, found, *terms):
        return self._results("GetSubsearchResultSet", texts(found), texts(terms))

    def _results(self, method, *arguments):
        return ast.literal_eval(self._ask(method, *arguments).replace("@as ", ""))[0]

    def metas(self, *found):
        """What is shown of each result, as GVariant's text."""
        said = self._ask("GetResultMetas", texts(found))
        return ["{'id':" + one for one in said.split("{'id':")[1:]]

    def activate(self, path):
        self._ask("ActivateResult", text(path), texts(["x"]), "0")

    def launch(self, *terms):
        self._ask("LaunchSearch", texts(terms), "0")


def text(word):
    """A word as GVariant's text has it."""
    return "'" + word.replace("\\", "\\\\").replace("'", "\\'") + "'"


def texts(words):
    return "@as [" + ", ".join(map(text, words)) + "]"


@pytest.fixture
def overview(session):
    return Overview(session)


def address(path):
    """The address of a file, as another program makes it."""
    return subprocess.run(
        ["gio", "info", "-a", "id::file", path], capture_output=True, text=True, timeout=60,
        check=True).stdout.split("uri: ")[1].splitlines()[0]


def test_the_overview_finds_and_opens_files(machine, clouds, overview, session):
    clouds.edit("drive", "write", "/Letters/Räport & <b>one, 50% 'x'.pdf", text="of Drive")
    clouds.edit("dropbox", "write", "/--report.txt", text="of Dropbox")
    clouds.edit("dropbox", "mkdir", "/Old reports")
    machine.login("drive")
    machine.login("dropbox")
    machine.mount()
    drive, dropbox = machine.ready("drive"), machine.ready("dropbox")
    paper = str(drive / "Letters" / "Räport & <b>one, 50% 'x'.pdf")
    report, old = str(dropbox / "--report.txt"), str(dropbox / "Old reports")
    eventually(lambda: set(overview.find("report")) == {report, old}, "both are found")
    found = overview.find("rapo")
    assert found == [paper]
    assert overview.find_among(found, "rapo", "letters") == [paper]
    assert overview.find_among(found, "rapo", "nowhere") == []
    # Names are as they are; the overview escapes what it shows.
    of_paper, of_folder, of_report = overview.metas(paper, old, report)
    assert "Räport & <b>one, 50%" in of_paper and "pdf" in of_paper.split("'icon'")[1]
    assert "'description': <'~/clouds/drive/Letters'>" in of_paper
    assert "'folder'" in of_folder and "'name': <'--report.txt'>" in of_report
    assert "text-plain" in of_report
    overview.activate(paper)
    assert eventually(session.opened, "it is opened") == [address(paper)]
    # All that there is, in the file manager.
    overview.launch("report")
    opened = eventually(lambda: len(session.opened()) > 1 and session.opened(), "a folder is opened")
    folder = machine.mount_point / ".search" / "report"
    assert opened[1] == f"file://{folder}"
    assert {os.path.realpath(folder / name) for name in os.listdir(folder)} == {report, old}


def test_the_overview_may_ask_whatever_it_likes(machine, clouds, overview, session):
    # Without a mount there is nothing to open.
    assert overview.find("x") == []
    machine.login("drive")
    machine.mount()
    drive = machine.ready("drive")
    (drive / "--json").write_text("x")
    for terms in ([], [""], ["--help"], ["-x"], ["."], ["/"], ["'"], ["x" * 100_000],
                  ["word"] * 5000, ["\u202e\n\t"]):
        assert overview.find(*terms) == [], terms
    assert eventually(lambda: overview.find("--json"), "a name is no flag") == [str(drive / "--json")]
    # A result that no search gave is shown by its name, and a name is one line.
    unknown, = overview.metas("/somewhere/a\nb\u202ec")
    assert "'name': <'a\\\\u{a}b\\\\u{202e}c'>" in unknown, unknown
    for terms in (["..", "/../../etc"], [""], ["w" * 3000]):
        overview.launch(*terms)
    opened = eventually(lambda: len(session.opened()) == 3 and session.opened(), "all are opened")
    top = f"file://{machine.mount_point}"
    assert sorted(opened) == sorted([top, f"{top}/.search/etc", f"{top}/.search/{'w' * 100}"])
    overview.activate("relative")
    assert len(session.opened()) == 3


def test_a_search_ends_when_somebody_types_on(machine, clouds, overview, session):
    started = session.folder / "started"
    program = session.folder / "bin" / "oort"
    program.unlink()
    program.write_text(
        f'#!/bin/sh\ncase "$*" in *slow*) echo $$ >"{started}"; exec sleep 1000;; esac\n'
        f'exec "{OORT}" "$@"\n')
    program.chmod(0o755)
    machine.login("drive")
    machine.mount()
    drive = machine.ready("drive")
    (drive / "slow and quick").write_text("x")
    eventually(lambda: overview.find("quick"), "it is known")
    asked = session.start(*session.asking(*overview.asking("GetInitialResultSet", "['slow']")),
                          stdout=subprocess.PIPE, text=True)
    slow = int(eventually(lambda: read(started), "the first search is under way"))
    assert overview.find("quick") == [str(drive / "slow and quick")]
    assert asked.communicate(timeout=60)[0] == "(@as [],)\n"
    eventually(lambda: not alive(slow), "nothing is left of the first")
    # And by itself after a while.
    assert overview.find("slow") == []
