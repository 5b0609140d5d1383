"""Figures in tables: on the terminal, and as docs/benchmarks.md with its pictures."""

import os
import pathlib
import platform
import re
import statistics
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable

from . import pictures
from .cloud import SERVERS, SERVICES, TITLES
from .programs import (
    DAVFS_SETTINGS, JUICEFS_FLAGS, PEERS, RCLONE_FLAGS, RCLONE_SERVICE_FLAGS, SSHFS_OPTIONS)
from .scenarios import SCENARIOS, Row, Scenario
from .stage import Figure, Options

PROGRAM_TITLES = {"rclone": "rclone", "sshfs": "sshfs", "davfs2": "davfs2",
                  "juicefs": "JuiceFS", "oort": "Oort", "disk": "local disk",
                  "passthrough": "C passthrough"}


def programs_of(service: str) -> list[str]:
    """The programs that are measured at a service, Oort the last."""
    return ["rclone", *([PEERS[service]] if service in PEERS else []), "oort"]


def shown(value: float, unit: str) -> str:
    """A value with as many digits as it deserves."""
    if unit == "s":
        digits = 0 if value >= 100 else 1 if value >= 10 else 2 if value >= 0.1 else 3
        return f"{value:.{digits}f} s"
    if unit in ("MB/s", "MB", "bytes"):
        return f"{value:.0f} {unit}"
    return f"{value:.0f}"


def median(figures: list[Figure]) -> Figure:
    """Of each field the median."""
    return Figure(*(
        statistics.median(getattr(figure, name) for figure in figures)
        for name in ("value", "calls", "up", "down", "cpu", "peak")))


def ratio(row: Row, rclone: float, oort: float) -> str:
    """How many times as good Oort is; nothing for counts."""
    if row.unit not in ("s", "MB/s") or min(rclone, oort) <= 0:
        return ""
    times = oort / rclone if row.is_rate else rclone / oort
    return f"{times:.0f}×" if times >= 10 else f"{times:.1f}×"


def output_of(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    return done.stdout.strip()


class Report:
    """All figures of one run of the bench."""

    def __init__(self, options: Options):
        self.options = options
        # As they are now: others may commit while it runs.
        self.versions = self.find_versions()
        self.figures: dict[tuple[str, str, str], list[Figure]] = defaultdict(list)

    def add(self, service: str, row: str, program: str, figure: Figure) -> None:
        self.figures[service, row, program].append(figure)

    def median(self, service: str, row: str, program: str) -> Figure | None:
        """The medians of a row; nil when it was not measured."""
        found = self.figures.get((service, row, program))
        return median(found) if found else None

    def runs(self, service: str, row: str, program: str) -> int:
        return len(self.figures.get((service, row, program), []))

    def rows(self, service: str, scenarios: list[Scenario]) -> list[Row]:
        """The rows that have a figure at this service."""
        return [
            row for scenario in scenarios for row in scenario.rows
            if any(self.median(service, row.key, program) for program in PROGRAM_TITLES)]

    @property
    def services(self) -> list[str]:
        return [service for service in SERVICES + SERVERS
                if any(key[0] == service for key in self.figures)]

    # Tables

    def table(self) -> str:
        """Everything, for the terminal."""
        lines = []
        for service in self.services:
            lines += ["", TITLES[service]]
            for row in self.rows(service, SCENARIOS):
                values = {
                    program: figure.value for program in PROGRAM_TITLES
                    if (figure := self.median(service, row.key, program))}
                times = ratio(row, values["rclone"], values["oort"]) \
                    if {"rclone", "oort"} <= values.keys() else ""
                figures = "  ".join(
                    f"{PROGRAM_TITLES[program]} {shown(value, row.unit):>9}"
                    for program, value in values.items())
                lines.append(f"  {row.words[:70]:70}  {figures}  {times}")
        return "\n".join(lines)

    def cell(self, service: str, row: Row, program: str) -> str:
        figure = self.median(service, row.key, program)
        if figure is None:
            return "–"
        mark = "¹" if self.runs(service, row.key, program) < 3 else ""
        return shown(figure.value, row.unit) + mark

    def overview(self, kinds: list[str]) -> str:
        """Of each row and each of these services both values and their ratio."""
        services = [service for service in self.services if service in kinds]
        heads = [
            f"{TITLES[service]}: "
            + " | ".join(PROGRAM_TITLES[program] for program in programs_of(service)) + " | "
            for service in services]
        columns = sum(len(programs_of(service)) + 1 for service in services)
        lines = ["| | " + " | ".join(heads) + " |", "|---|" + "--:|" * columns]
        for row in self.shared_rows():
            if not any(self.runs(service, row.key, "oort") for service in services):
                continue
            cells = []
            for service in services:
                rclone = self.median(service, row.key, "rclone")
                oort = self.median(service, row.key, "oort")
                times = ratio(row, rclone.value, oort.value) if rclone and oort else ""
                *others, _ = programs_of(service)
                cells += [*(self.cell(service, row, program) for program in others),
                          f"**{self.cell(service, row, 'oort')}**", times]
            lines.append(f"| {row.words} | " + " | ".join(cells) + " |")
        return "\n".join(lines)

    def shared_rows(self) -> list[Row]:
        """The rows that both programs have, but for warm metadata."""
        return [
            row for scenario in SCENARIOS
            if not scenario.has_floors and len(scenario.programs) == 2
            for row in scenario.rows if any(self.runs(s, row.key, "oort") for s in self.services)]

    def costs(self, service: str) -> str:
        """What each row costs: calls, bytes, processor time and memory of each program."""
        programs = programs_of(service)
        kinds: list[tuple[str, Callable[[Figure], str]]] = [
            ("calls", lambda f: f"{f.calls:.0f}"), ("MB up", lambda f: f"{f.up / 1e6:.1f}"),
            ("MB down", lambda f: f"{f.down / 1e6:.1f}"), ("CPU, s", lambda f: f"{f.cpu:.2f}"),
            ("memory, MB", lambda f: f"{f.peak / 1e6:.0f}" if f.peak else "–")]
        lines = [
            "| | " + "".join(f"{kind}" + " | " * len(programs) for kind, _ in kinds).strip(),
            "|---|" + "--:|" * (len(programs) * len(kinds)),
            "| | " + " | ".join(
                PROGRAM_TITLES[program] for _ in kinds for program in programs) + " |"]
        for row in self.shared_rows():
            figures = [self.median(service, row.key, program) for program in programs]
            if all(figure is None for figure in figures):
                continue
            cells = ["–" if figure is None else text(figure)
                     for _, text in kinds for figure in figures]
            lines.append(f"| {row.words} | " + " | ".join(cells) + " |")
        return "\n".join(lines)

    def warm(self) -> str:
        """Warm metadata beside the local disk and the floor of FUSE."""
        lines = ["| | local disk | C passthrough | Oort | rclone | Oort / local disk |",
                 "|---|--:|--:|--:|--:|--:|"]
        for scenario in SCENARIOS:
            for row in scenario.rows if scenario.has_floors else []:
                service = next((s for s in self.services if self.runs(s, row.key, "oort")), None)
                if service is None:
                    continue
                disk = self.median(service, row.key, "disk")
                oort = self.median(service, row.key, "oort")
                times = f"{oort.value / disk.value:.1f}" if disk and oort else ""
                cells = [self.cell(service, row, program)
                         for program in ("disk", "passthrough", "oort", "rclone")]
                lines.append(f"| {row.words} | {' | '.join(cells)} | {times} |")
        return "\n".join(lines)

    def alone(self) -> str:
        """What only Oort is measured with: the large accounts, and idle mounts."""
        lines = ["| | value | calls | CPU | peak memory |", "|---|--:|--:|--:|--:|"]
        for service in self.services:
            for scenario in SCENARIOS:
                for row in scenario.rows if scenario.programs == ["oort"] else []:
                    if figure := self.median(service, row.key, "oort"):
                        peak = f"{figure.peak / 1e6:.0f} MB" if figure.peak else "–"
                        lines.append(
                            f"| {TITLES[service]}: {scenario.at(service)}{row.words} | "
                            f"{self.cell(service, row, 'oort')} | {figure.calls:.0f} | "
                            f"{figure.cpu:.1f} s | {peak} |")
        return "\n".join(lines)

    # Files

    def write(self, folder: pathlib.Path, seconds: float, command: str) -> None:
        """Writes benchmarks.md and images/benchmarks-….svg."""
        images = folder / "images"
        images.mkdir(parents=True, exist_ok=True)
        shown_images = []
        for service in self.services:
            bars = [
                pictures.Group(re.sub("`", "", row.words), [
                    pictures.Bar(program, figure.value, shown(figure.value, row.unit))
                    for program in programs_of(service)
                    if (figure := self.median(service, row.key, program))])
                for row in self.shared_rows() if row.unit in ("s", "MB/s", "MB")
                and any(self.median(service, row.key, program) for program in programs_of(service))]
            name = f"benchmarks-{service}.svg"
            *others, last = [PROGRAM_TITLES[program] for program in programs_of(service)]
            title = f"{TITLES[service]}: {', '.join(others)} and {last}, {self.network(service)}"
            legend = {program: PROGRAM_TITLES[program] for program in programs_of(service)}
            (images / name).write_text(pictures.chart(title, legend, bars))
            shown_images.append(f"![{title}](images/{name})")
        text = (pathlib.Path(__file__).with_name("benchmarks.md.in")).read_text()
        fields = {
            "command": command, "date": time.strftime("%Y-%m-%d", time.gmtime()),
            "minutes": f"{seconds / 60:.0f}", "machine": self.machine(),
            "sizes": " Files and trees were smaller than the rows say." if self.options.is_quick
            else "",
            "versions": self.versions, "network": self.network(),
            "pictures": "\n\n".join(shown_images), "overview": self.overview(SERVICES),
            "servers": self.overview(SERVERS), "latency": str(self.options.latency_ms),
            "warm": self.warm(), "alone": self.alone(),
            "costs": "\n\n".join(
                f"### {TITLES[service]}\n\n{self.costs(service)}" for service in self.services),
            "flags": " ".join(RCLONE_FLAGS),
            "service_flags": "\n".join(
                f"- {TITLES[service]}: `{' '.join(flags)}`"
                for service, flags in RCLONE_SERVICE_FLAGS.items()),
            "sshfs": SSHFS_OPTIONS,
            "davfs2": ", ".join(f"{name} {value}" for name, value in DAVFS_SETTINGS.items()),
            "juicefs": " ".join(JUICEFS_FLAGS),
        }
        for name, value in fields.items():
            text = text.replace("{{" + name + "}}", value)
        (folder / "benchmarks.md").write_text(text)

    def show_in(self, readme: pathlib.Path) -> None:
        """Puts a picture between the README's two marks."""
        service = next((s for s in ("drive", "dropbox", "onedrive") if s in self.services), None)
        if service is None:
            return
        begin, end = "<!-- benchmarks: begin -->\n", "<!-- benchmarks: end -->"
        text = readme.read_text()
        before, rest = text.split(begin)
        after = rest.split(end)[1]
        title, image = TITLES[service], f"docs/images/benchmarks-{service}.svg"
        picture = f"![Bars: rclone and Oort at {title}]({image})"
        words = "*All services, calls, bytes and memory: [docs/benchmarks.md](docs/benchmarks.md).*"
        readme.write_text(f"{before}{begin}\n{picture}\n\n{words}\n\n{end}{after}")

    def network(self, service: str = "") -> str:
        if service in SERVERS:
            return f"{self.options.latency_ms} ms a round trip"
        return (f"{self.options.latency_ms} ms before each answer, "
                f"{self.options.rate / 1e6:g} MB/s a request")

    def machine(self) -> str:
        processor = next(
            (line.split(":", 1)[1].strip()
             for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines()
             if line.startswith("model name")), platform.machine())
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / (1 << 30)
        system = next(
            (line.split("=", 1)[1].strip('"')
             for line in pathlib.Path("/etc/os-release").read_text().splitlines()
             if line.startswith("PRETTY_NAME=")), "Linux")
        return (f"{os.cpu_count()} cores ({processor}), {memory:.0f} GiB of memory, {system}, "
                f"Linux {platform.release()}")

    def find_versions(self) -> str:
        oort = output_of(str(self.options.oort), "--version")
        commit = output_of(
            "git", "-C", str(pathlib.Path(__file__).parent), "-c", "safe.directory=*", "rev-parse",
            "--short", "HEAD")
        rclone = output_of(str(self.options.rclone), "version").split("\n")[0]
        peers = [
            next((line.split("  ")[0] for line in output_of(*command).splitlines()
                  if line.lower().startswith(name)), name)
            for name, command in (
                ("sshfs", ["sshfs", "--version"]), ("davfs2", ["mount.davfs", "--version"]),
                ("juicefs", [str(self.options.juicefs), "--version"]))]
        return ", ".join([f"Oort {oort or 'of'} commit {commit}", rclone, *peers])
