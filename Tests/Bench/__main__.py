"""Runs the scenarios; see scripts/bench."""

import argparse
import concurrent.futures
import itertools
import os
import pathlib
import shlex
import shutil
import sys
import time
import traceback

from . import metadata, profile
from .cloud import SERVERS, SERVICES, TITLES, hosts
from .report import Report, shown
from .road import Names, raise_loopback
from .scenarios import SCENARIOS, Scenario
from .stage import PROGRAMS, Figure, Options, Sources, Stage

# A program whose runs of one scenario have taken so many seconds is not run again.
LONG = 20.0
# Flags that name files of one machine.
UNSHOWN = ("--oort", "--simulate", "--rclone", "--juicefs", "--output")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="scripts/bench",
        description="Measures Oort beside rclone, both on the project's simulated services and on "
        "servers that nobody here wrote, behind the same network, and writes docs/benchmarks.md "
        "with its pictures (a full run only).")
    parser.add_argument("--quick", action="store_true",
                        help="smaller, each once, in two minutes; writes nothing")
    parser.add_argument("--long", action="store_true",
                        help="also an account of 1,050,501 entries")
    parser.add_argument("--only", action="append", metavar="SCENARIO",
                        choices=[scenario.name for scenario in SCENARIOS],
                        help="one scenario (may be repeated); writes nothing: "
                        + ", ".join(scenario.name for scenario in SCENARIOS))
    parser.add_argument("--service", action="append", choices=SERVICES + SERVERS,
                        help="one service (may be repeated); writes nothing")
    parser.add_argument("--program", action="append", choices=PROGRAMS,
                        help="one program; writes nothing")
    parser.add_argument("--latency", type=int, default=50, metavar="MS",
                        help="milliseconds before each answer (default: %(default)s)")
    parser.add_argument("--rate", type=float, default=20, metavar="MB/S",
                        help="megabytes a second of each request and answer (default: %(default)s)")
    parser.add_argument("--runs", type=int, metavar="N",
                        help="how often each is measured (default: 3); what took more than "
                        f"{LONG:.0f} s so far is not repeated")
    parser.add_argument("--output", type=pathlib.Path, metavar="FOLDER",
                        help="writes benchmarks.md and images/ there, whatever was run")
    parser.add_argument("--profiles", type=pathlib.Path, metavar="FOLDER",
                        help="writes there, by perf, where the mounting process's time goes in "
                        "each measurement, which slows it")
    parser.add_argument("--requests", type=pathlib.Path, metavar="FOLDER",
                        help="writes there the requests of each measurement at a simulated service: "
                        "when each began and ended, its bytes up and down, and what it was")
    for name, words in (("oort", "program"), ("simulate", "simulators"), ("rclone", "rclone"),
                        ("juicefs", "JuiceFS")):
        parser.add_argument(f"--{name}", type=pathlib.Path, required=True, metavar="PATH",
                            help=f"a {words} that is already there")
    return parser.parse_args()


class Bench:
    """One run of the bench."""

    def __init__(self, given: argparse.Namespace, folder: pathlib.Path):
        self.options = Options(
            oort=given.oort, simulate=given.simulate, rclone=given.rclone,
            juicefs=given.juicefs, latency_ms=given.latency, rate=int(given.rate * 1_000_000),
            runs=given.runs or (1 if given.quick else 3), is_quick=given.quick,
            is_long=given.long, profiles=given.profiles, requests=given.requests)
        self.folder = folder
        self.names = Names(folder, hosts(given.simulate, folder))
        self.sources = Sources(folder / "sources")
        self.report = Report(self.options)
        self.services: list[str] = given.service or SERVICES + SERVERS
        self.programs: list[str] = given.program or PROGRAMS
        self.failures: list[str] = []
        self.numbers = itertools.count(1)

    def run(self, scenarios: list[Scenario]) -> None:
        for scenario in scenarios:
            for program in scenario.waiting:
                if program in self.programs:
                    self.at_once(scenario, program)
            for service in self.services_of(scenario):
                self.alternate(scenario, service)
            if scenario.has_floors:
                self.measure_floors()

    def services_of(self, scenario: Scenario) -> list[str]:
        found = [service for service in self.services if service in scenario.services]
        if self.options.is_long and scenario.name == "large" and "dropbox" in self.services:
            found.append("dropbox")
        # Warm metadata depend on no service and are measured at whichever was asked for.
        return found or (self.services[:1] if scenario.has_floors else [])

    def at_once(self, scenario: Scenario, program: str) -> None:
        """A program that only waits, at all services at the same time."""
        with concurrent.futures.ThreadPoolExecutor() as pool:
            for service in self.services_of(scenario):
                pool.submit(self.measure, scenario, service, program)

    def alternate(self, scenario: Scenario, service: str) -> None:
        """The programs in turns, in the other order each time."""
        runs = 1 if scenario.is_once else self.options.runs
        spent = dict.fromkeys(PROGRAMS, 0.0)
        for number in range(runs):
            programs = [
                program for program in scenario.programs_at(service)
                if program in self.programs and program not in scenario.waiting]
            for program in programs if number % 2 == 0 else reversed(programs):
                if spent[program] > LONG:
                    continue
                began = time.monotonic()
                self.measure(scenario, service, program)
                spent[program] += time.monotonic() - began

    def measure(self, scenario: Scenario, service: str, program: str) -> None:
        number = next(self.numbers)
        words = f"{scenario.name} {TITLES[service]} {program}"
        try:
            stage = Stage(
                self.folder / f"stage{number}", self.options, self.names, self.sources,
                service, program)
            try:
                scenario.run(stage)
            except Exception:
                print(f"The end of what {program} wrote:\n{stage.program.tail()}", flush=True)
                raise
            finally:
                stage.end()
        except Exception as error:
            self.failures.append(f"{words}: {error}")
            print(f"FAILED  {words}", flush=True)
            traceback.print_exc(file=sys.stdout)
            return
        for row in scenario.rows:
            if figure := stage.figures.get(row.key):
                self.report.add(service, row.key, program, figure)
                print(line(words, row.words, row.unit, figure), flush=True)

    def measure_floors(self) -> None:
        """Warm metadata on the local disk and on the passthrough."""
        scenario = next(scenario for scenario in SCENARIOS if scenario.has_floors)
        for number in range(self.options.runs):
            folder = self.folder / f"floors{number}"
            folder.mkdir()
            try:
                found = metadata.floors(
                    folder, self.sources.folder / "metadata", self.options.is_quick)
            except Exception as error:
                self.failures.append(f"the floors: {error}")
                traceback.print_exc(file=sys.stdout)
                return
            for program, figures in found.items():
                for row, figure in figures.items():
                    for service in self.services_of(scenario):
                        self.report.add(service, row, program, figure)
                    print(f"{row:14} {program:24} {shown(figure.value, 's')}", flush=True)
            shutil.rmtree(folder)


def line(words: str, what: str, unit: str, figure: Figure) -> str:
    """A measurement as it is printed while the bench runs."""
    return (
        f"{words:34} {shown(figure.value, unit):>10}  {figure.calls:5} calls "
        f"{figure.up / 1e6:7.1f} MB up {figure.down / 1e6:7.1f} MB down {figure.cpu:6.2f} s CPU "
        f"{figure.peak / 1e6:5.0f} MB  {what}")


def shown_command(words: list[str]) -> str:
    """The command that repeats a run elsewhere: without what names this machine's files."""
    shown = ["scripts/bench"]
    rest = iter(words)
    for word in rest:
        if word in UNSHOWN:
            next(rest, None)
        elif not word.startswith(tuple(f"{flag}=" for flag in UNSHOWN)):
            shown.append(word)
    return shlex.join(shown)


def main() -> int:
    given = arguments()
    folder = pathlib.Path(os.environ["BENCH_FOLDER"])
    if given.profiles:
        if not profile.is_available():
            sys.exit("--profiles needs perf (Debian: linux-perf).")
        given.profiles.mkdir(parents=True, exist_ok=True)
    if given.requests:
        given.requests.mkdir(parents=True, exist_ok=True)
    raise_loopback()
    began = time.monotonic()
    bench = Bench(given, folder)
    chosen = [
        scenario for scenario in SCENARIOS
        if (scenario.name in given.only if given.only
            else scenario.is_in_quick or not given.quick)]
    bench.run(chosen)
    if given.quick:
        print("\nQuick: files and trees were smaller than the words say.")
    print(f"\n{bench.report.table()}\n\nDone in {time.monotonic() - began:.0f} s.")
    is_full = not (given.quick or given.only or given.service or given.program)
    if bench.failures:
        print("\n".join(["These measurements failed:", *bench.failures]))
        if not given.output:
            return 1
    if given.output or is_full:
        root = pathlib.Path(__file__).resolve().parents[2]
        output = given.output or root / "docs"
        bench.report.write(output, time.monotonic() - began, shown_command(sys.argv[1:]))
        if not given.output:
            bench.report.show_in(root / "README.md")
        print(f"Written: {output}/benchmarks.md")
    return 1 if bench.failures else 0


if __name__ == "__main__":
    sys.exit(main())
