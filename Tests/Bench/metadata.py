"""Warm metadata: commands over what was seen before, in a mount, on the local disk and on the floor
of FUSE.

The floor is libfuse's own example `passthrough_ll`, a file system in C over the local disk that
lets the kernel keep what it knows.
"""

import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import time
from dataclasses import dataclass

from .cloud import Edit
from .road import wait_for
from .stage import Figure, Stage
from .trees import tree

EXAMPLE = pathlib.Path("/usr/share/doc/libfuse3-dev/examples/passthrough_ll.c")
MODIFIED = 1_704_164_645
MODIFIED_TEXT = "2024-01-02T03:04:05Z"
# How often each command runs after the run that warms up.
REPEATS = 5


@dataclass
class Sizes:
    """How many entries each folder has."""

    folders: int
    listed: int
    sources: int


def sizes(is_quick: bool) -> Sizes:
    return Sizes(100, 1000, 500) if is_quick else Sizes(1000, 10_000, 5000)


def paths(size: Sizes) -> dict[str, str]:
    """The text of every file of the account, by path."""
    found = {edit["path"].replace("/", "/tree/", 1): "x" for edit in tree(size.folders, 0, 10)}
    found |= {f"/many/file{number:05}": "x" for number in range(size.listed)}
    found |= {
        f"/repository/part{number % 50:02}/source{number:04}.c": f"int answer{number};\n"
        for number in range(size.sources)}
    return found


def edits(size: Sizes) -> list[Edit]:
    """The same as edits at the service."""
    return [
        {"op": "write", "path": path, "text": text, "modified": MODIFIED_TEXT}
        for path, text in paths(size).items()]


def local_copy(folder: pathlib.Path, size: Sizes) -> pathlib.Path:
    """The same on the local disk, made once."""
    if not folder.exists():
        for path, text in paths(size).items():
            file = folder / path[1:]
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
            os.utime(file, (MODIFIED, MODIFIED))
    return folder


def run(command: list[str], expected: int | None) -> None:
    """Runs a command that must print so many lines."""
    done = subprocess.run(
        command, check=True, capture_output=True, stdin=subprocess.DEVNULL,
        env={**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_OPTIONAL_LOCKS": "1"})
    if expected is not None and (lines := done.stdout.count(b"\n")) != expected:
        raise AssertionError(
            f"{command} printed {lines} lines in place of {expected}: {done.stdout[:300]!r}")


def commands(
    folder: pathlib.Path, copy: pathlib.Path, git: pathlib.Path, size: Sizes
) -> dict[str, tuple[list[str], int]]:
    """Each row's command, and how many lines it prints."""
    repository = folder / "repository"
    return {
        "warm.find": (["find", str(folder / "tree")], 1 + size.folders * 11),
        "warm.ls": (["ls", "-l", str(folder / "many")], size.listed + 1),
        "warm.git": (
            ["git", f"--git-dir={git}", f"--work-tree={repository}", "status", "--porcelain"], 0),
        "warm.rsync": (
            ["rsync", "--archive", "--dry-run", "--itemize-changes", "--omit-dir-times",
             "--no-perms", "--no-owner", "--no-group", f"{copy}/repository/",
             f"{repository}/"], 0),
    }


def commit(repository: pathlib.Path, git: pathlib.Path) -> None:
    """Puts all files into a repository of git whose own folder lies elsewhere."""
    common = ["git", f"--git-dir={git}", f"--work-tree={repository}"]
    run([*common, "init", "--quiet"], None)
    run([*common, "add", "--all"], None)
    run([*common, "-c", "user.name=A", "-c", "user.email=a@example.com", "commit", "--quiet",
         "--message", "all"], None)


def median(command: list[str], lines: int) -> float:
    """The median of the seconds of several runs, after one that warms up."""
    run(command, lines)
    found = []
    for _ in range(REPEATS):
        began = time.monotonic()
        run(command, lines)
        found.append(time.monotonic() - began)
    return statistics.median(found)


def warm(stage: Stage) -> None:
    """The commands in a mount whose tree was seen before."""
    size = sizes(stage.is_quick)
    stage.cloud.edit(edits(size))
    stage.program.mount()
    stage.know()
    git = stage.place / "git"
    # git reads every file once; that is not what is measured.
    commit(stage.folder / "repository", git)
    stage.real_network()
    copy = local_copy(stage.sources.folder / "metadata", size)

    for row, (command, lines) in commands(stage.folder, copy, git, size).items():
        with stage.measured(row) as figure:
            figure.value = median(command, lines)


def floors(
    folder: pathlib.Path, copy: pathlib.Path, is_quick: bool
) -> dict[str, dict[str, Figure]]:
    """The rows' figures on the local disk, and on the passthrough where it can be built."""
    size = sizes(is_quick)
    local_copy(copy, size)
    disk = folder / "disk"
    local_copy(disk, size)
    git = folder / "git"
    commit(disk / "repository", git)
    found = {"disk": {
        row: Figure(median(command, lines))
        for row, (command, lines) in commands(disk, copy, git, size).items()}}
    if EXAMPLE.exists() and shutil.which("gcc"):
        passthrough = Passthrough(folder, disk)
        found["passthrough"] = {}
        for row, (command, lines) in commands(passthrough.mount_point, copy, git, size).items():
            # A mount for each, since it holds a descriptor for each file that the kernel knows.
            with passthrough:
                found["passthrough"][row] = Figure(median(command, lines))
    shutil.rmtree(disk)
    shutil.rmtree(git)
    return found


class Passthrough:
    """libfuse's example over a folder of the local disk."""

    def __init__(self, folder: pathlib.Path, source: pathlib.Path):
        self.binary = folder / "passthrough_ll"
        self.mount_point = folder / "passthrough"
        self.source = source
        flags = subprocess.run(
            ["pkg-config", "--cflags", "--libs", "fuse3"], check=True, capture_output=True,
            text=True).stdout.split()
        subprocess.run(
            ["gcc", "-O2", "-w", str(EXAMPLE), "-o", str(self.binary), *flags], check=True)

    def __enter__(self) -> None:
        self.mount_point.mkdir(exist_ok=True)
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        self.process = subprocess.Popen(
            [str(self.binary), "-f", "-o", f"source={self.source},cache=always,timeout=86400",
             str(self.mount_point)], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for(lambda: os.path.ismount(self.mount_point), "the passthrough mounts")

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait()
        subprocess.run(
            ["fusermount3", "-u", "-z", "-q", str(self.mount_point)], capture_output=True)
