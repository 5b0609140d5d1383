"""Where a scenario runs: one program, one account of one service, all fresh; and its figures."""

import contextlib
import os
import pathlib
import random
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass

from .cloud import SERVERS, Cloud, Edit
from .juicefs import JuiceFS, Volume
from .profile import Recording
from .programs import Davfs, Oort, Program, Rclone, Sshfs
from .road import Names
from .server import Served

TICKS = os.sysconf("SC_CLK_TCK")
PROGRAMS = ["rclone", "sshfs", "davfs2", "juicefs", "oort"]


@dataclass
class Options:
    """What the command line says."""

    oort: pathlib.Path
    simulate: pathlib.Path
    rclone: pathlib.Path
    juicefs: pathlib.Path
    latency_ms: int
    rate: int
    runs: int
    is_quick: bool
    is_long: bool
    # Where profiles are written, and where the requests with their times; nil for none.
    profiles: pathlib.Path | None = None
    requests: pathlib.Path | None = None


@dataclass
class Figure:
    """What one measurement found.

    `value` is in the row's unit, mostly seconds; `cpu` in seconds and `peak` in bytes are the
    mounting process's; `calls`, `up` and `down` are the road's.
    """

    value: float = 0.0
    calls: int = 0
    up: int = 0
    down: int = 0
    cpu: float = 0.0
    peak: int = 0


def cpu_seconds(process: int) -> float:
    """The processor time of a process so far, user and system."""
    fields = pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def peak_bytes(process: int) -> int:
    """The most memory that a process had resident since `forget_peak`."""
    for line in pathlib.Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


def forget_peak(process: int) -> None:
    """Lets the peak begin anew."""
    pathlib.Path(f"/proc/{process}/clear_refs").write_text("5")


class Sources:
    """Local files that scenarios copy from, made once."""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        self.lock = threading.RLock()
        folder.mkdir()

    def noise(self, size: int) -> pathlib.Path:
        """A file of bytes that do not compress."""
        path = self.folder / f"noise-{size}"
        with self.lock:
            if not path.exists():
                numbers = random.Random(size)
                with open(path, "wb") as file:
                    for start in range(0, size, 1 << 20):
                        file.write(numbers.randbytes(min(1 << 20, size - start)))
        return path

    def tree(self, files: int, size: int, folders: int) -> pathlib.Path:
        """A tree of so many files of about `size` bytes in so many folders."""
        path = self.folder / f"tree-{files}-{size}-{folders}"
        with self.lock:
            if not path.exists():
                numbers = random.Random(files)
                for number in range(folders):
                    (path / f"folder{number:03}").mkdir(parents=True)
                for number in range(files):
                    place = path / f"folder{number % folders:03}" / f"file{number:05}.bin"
                    place.write_bytes(numbers.randbytes(size + number % 512 - 256))
        return path


class Stage:
    """One run of one scenario with one program."""

    def __init__(
        self, folder: pathlib.Path, options: Options, names: Names, sources: Sources,
        service: str, program: str
    ):
        self.options = options
        self.sources = sources
        self.service = service
        self.figures: dict[str, Figure] = {}
        self.place = folder
        folder.mkdir()
        (folder / "cloud").mkdir()
        self.cloud = self.make_cloud(folder / "cloud", names, program)
        try:
            makers = {
                "rclone": (Rclone, options.rclone), "oort": (Oort, options.oort),
                "sshfs": (Sshfs, pathlib.Path("sshfs")),
                "davfs2": (Davfs, pathlib.Path("mount.davfs")),
                "juicefs": (JuiceFS, options.juicefs)}
            make, binary = makers[program]
            self.program: Program = make(folder / program, self.cloud, names, binary)
        except BaseException:
            self.cloud.stop()
            raise

    def make_cloud(self, folder: pathlib.Path, names: Names, program: str) -> Cloud | Served:
        """The account's service or server."""
        options = self.options
        if program == "juicefs":
            return Volume(folder, self.service, options.rclone, names, options.juicefs)
        if self.service in SERVERS:
            return Served(folder, self.service, options.rclone)
        return Cloud(folder, options.simulate, self.service, names)

    @property
    def folder(self) -> pathlib.Path:
        """The account's folder in the mount."""
        return self.program.folder

    @property
    def is_quick(self) -> bool:
        return self.options.is_quick

    def real_network(self) -> None:
        """From now on the network is as the options say."""
        self.cloud.weather(self.options.latency_ms, self.options.rate)

    def mounted(self, edits: list[Edit]) -> None:
        """Mounts an account with this tree, which is known then, on a real network."""
        self.cloud.edit(edits)
        self.program.mount()
        self.know()
        self.real_network()

    def know(self) -> None:
        """Makes the tree known."""
        self.program.wait_until_known()
        subprocess.run(["find", str(self.folder)], check=True, stdout=subprocess.DEVNULL)

    @contextlib.contextmanager
    def measured(self, row: str) -> Iterator[Figure]:
        """Measures what is done inside; the value is the seconds unless the body sets it."""
        figure = Figure(-1)
        name = f"{row}-{self.service}-{self.program.name}"
        process = self.program.process
        forget_peak(process)
        recording = None
        if self.options.profiles:
            recording = Recording(process, self.options.profiles / f"{name}.data")
        mark, cpu, began = self.cloud.road.mark(), cpu_seconds(process), time.monotonic()
        moment = time.time()
        yield figure
        if figure.value < 0:
            figure.value = time.monotonic() - began
        # A request is in the road's log when it has ended.
        time.sleep(0.3 + self.options.latency_ms / 1000)
        if self.program.process == process:
            figure.cpu = cpu_seconds(process) - cpu
            figure.peak = peak_bytes(process)
        if recording:
            (self.options.profiles / f"{name}.md").write_text(recording.stop() + "\n")
        if self.options.requests and isinstance(self.cloud, Cloud):
            (self.options.requests / f"{name}.txt").write_text(
                self.cloud.road.timetable(mark, moment))
        traffic = self.cloud.road.traffic(mark)
        figure.calls, figure.up, figure.down = traffic.calls, traffic.up, traffic.down
        self.figures[row] = figure

    def end(self) -> None:
        """Leaves nothing behind."""
        try:
            self.program.kill()
        finally:
            self.cloud.stop()
            shutil.rmtree(self.place, ignore_errors=True)


def read_all(path: pathlib.Path, size: int) -> None:
    """Reads a file from start to end as `cat` does, and checks how long it is."""
    buffer = bytearray(1 << 17)
    count = 0
    with open(path, "rb", buffering=0) as file:
        while read := file.readinto(buffer):
            count += read
    if count != size:
        raise AssertionError(f"{path} has {count} bytes in place of {size}")
