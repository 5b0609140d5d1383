"""What scripts/bench writes, from invented figures; and that it measures servers."""

import os
import pathlib
import subprocess
import sys
import xml.etree.ElementTree as XML

import pytest

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS))

from Bench.cloud import SERVERS, SERVICES  # noqa: E402
from Bench.report import Report  # noqa: E402
from Bench.scenarios import SCENARIOS  # noqa: E402
from Bench.stage import Figure, Options  # noqa: E402
from machine import OORT, SIMULATORS  # noqa: E402
from servers import TOOLS  # noqa: E402


def report():
    report = Report(Options(
        oort=OORT, simulate=SIMULATORS, rclone=pathlib.Path("/bin/true"),
        juicefs=pathlib.Path("/bin/true"), latency_ms=50, rate=20_000_000,
        runs=3, is_quick=False, is_long=False))
    for scenario in SCENARIOS:
        for service in scenario.services:
            for row in scenario.rows:
                for program in scenario.programs_at(service):
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


def test_a_server_has_the_column_of_its_peer():
    rows = report().overview(SERVERS).splitlines()
    titles = [cell.strip() for cell in rows[0].split("|")]
    assert titles[2:-2] == ["SFTP: rclone", "sshfs", "Oort", "", "WebDAV: rclone", "davfs2", "Oort",
                            "", "S3: rclone", "JuiceFS", "Oort"]
    assert {row.count("|") for row in rows} == {rows[1].count("|")}
    costs = report().costs("sftp").splitlines()
    assert {row.count("|") for row in costs} == {costs[1].count("|")}


@pytest.mark.skipif(os.getuid() != 0, reason="davfs2 mounts for root alone, or with an entry in fstab")
def test_servers_are_measured_beside_their_peers():
    """The smallest scenario with real servers, behind a line, and their real peers."""
    done = subprocess.run(
        [TESTS.parent / "scripts" / "bench", "--quick", "--only", "find", "--service", "sftp",
         "--service", "webdav", "--service", "s3", "--program", "oort", "--program", "sshfs",
         "--program", "davfs2", "--program", "juicefs", "--oort", OORT, "--simulate", SIMULATORS,
         "--rclone", pathlib.Path(sys.executable).with_name("rclone"),
         "--juicefs", TOOLS / "juicefs"],
        capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    for words in ("find SFTP oort", "find SFTP sshfs", "find WebDAV oort", "find WebDAV davfs2",
                  "find S3 oort", "find S3 juicefs"):
        # Cold, warm, and after a restart.
        assert done.stdout.count(words) == 3, done.stdout


def test_the_readmes_picture_is_replaced(folder):
    readme = folder / "README.md"
    readme.write_text("a\n<!-- benchmarks: begin -->\n<!-- benchmarks: end -->\nb\n")
    for _ in range(2):
        report().show_in(readme)
    text = readme.read_text()
    assert text.startswith("a\n") and text.endswith("\nb\n")
    assert text.count("docs/images/benchmarks-drive.svg") == 1
