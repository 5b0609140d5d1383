"""What scripts/bench writes, from figures that nobody measured."""

import pathlib
import sys
import xml.etree.ElementTree as XML

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from Bench.cloud import SERVICES  # noqa: E402
from Bench.report import Report  # noqa: E402
from Bench.scenarios import SCENARIOS  # noqa: E402
from Bench.stage import Figure, Options  # noqa: E402
from machine import OORT, SIMULATORS  # noqa: E402


def report():
    report = Report(Options(
        oort=OORT, simulate=SIMULATORS, rclone=pathlib.Path("/bin/true"), latency_ms=50,
        rate=20_000_000, runs=3, is_quick=False, is_long=False, profiles=None))
    for scenario in SCENARIOS:
        for service in scenario.services:
            for row in scenario.rows:
                for program in scenario.programs:
                    for value in (3, 1, 2):
                        report.add(service, row.key, program, Figure(
                            value * (2 if program == "rclone" else 1), calls=value))
    return report


def test_the_page_has_every_row_and_its_pictures_are_pictures(folder):
    report().write(folder, 60, "scripts/bench")
    text = (folder / "benchmarks.md").read_text()
    assert "{{" not in text
    for scenario in SCENARIOS:
        for row in scenario.rows:
            assert row.words in text
    pictures = sorted((folder / "images").iterdir())
    assert len(pictures) == 6
    for picture in pictures:
        assert f"images/{picture.name}" in text
        assert XML.parse(picture).getroot().tag.endswith("svg")


def test_medians_and_ratios():
    found = report()
    assert found.median("drive", "write", "rclone").value == 4
    assert found.median("drive", "write", "oort").calls == 2
    row = "| 256 MiB written, until the cloud has it | "
    line = next(line for line in found.overview(SERVICES).splitlines() if line.startswith(row))
    assert line.startswith(row + "4.00 s | **2.00 s** | 2.0× |")
    rate = next(line for line in found.overview(SERVICES).splitlines() if "MB/s" in line)
    assert "| 4 MB/s | **2 MB/s** | 0.5× |" in rate


def test_the_readmes_picture_is_replaced(folder):
    readme = folder / "README.md"
    readme.write_text("a\n<!-- benchmarks: begin -->\n<!-- benchmarks: end -->\nb\n")
    for _ in range(2):
        report().show_in(readme)
    text = readme.read_text()
    assert text.startswith("a\n") and text.endswith("\nb\n")
    assert text.count("docs/images/benchmarks-drive.svg") == 1
