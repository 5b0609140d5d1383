"""JuiceFS at a store: the volume that it keeps there, seen as a bench's cloud, and its mount."""

import contextlib
import os
import pathlib
import signal
import subprocess
from collections.abc import Iterator

from .cloud import TOP, Cloud, Edit
from .programs import JUICEFS_FLAGS, Mounting
from .road import Names, file_hash, wait_for
from .server import KEYS, Served

# Where the pieces are, below the volume's name.
PIECES = "chunks"


class Volume(Served):
    """A store with the pieces of files, and the database that has their tree."""

    def __init__(
        self, folder: pathlib.Path, kind: str, rclone: pathlib.Path, names: Names,
        program: pathlib.Path
    ):
        super().__init__(folder, kind, rclone)
        self.folder = folder
        self.names = names
        self.program = program
        self.database = f"sqlite3://{folder}/tree.db"
        self.top = self.server.files / TOP / PIECES
        self.mounts = 0
        try:
            subprocess.run(
                [program, "format", self.database, TOP, "--storage", "s3", "--bucket",
                 f"http://127.0.0.1:{self.road.port}/bucket"],
                env={**os.environ, "ACCESS_KEY": KEYS["access_key_id"],
                     "SECRET_KEY": KEYS["secret_access_key"]},
                check=True, capture_output=True, stdin=subprocess.DEVNULL)
        except BaseException:
            self.stop()
            raise

    def edit(self, edits: list[Edit]) -> None:
        """Changes that were made before, by another mount; paths are below the volume's top.

        It puts the pieces onto the store's disk itself, as other programs' files are put there: a
        store that was sent them would have them in a cache of its own.
        """
        with self.opened("--storage", "file", "--bucket", f"{self.server.files}/") as top:
            for edit in edits:
                path = top / edit["path"].lstrip("/")
                if edit["op"] == "mkdir":
                    path.mkdir(parents=True, exist_ok=True)
                else:
                    path.parent.mkdir(parents=True, exist_ok=True)
                    self.write(path, edit)
        # It shows what it knew of its disk for a second.
        pieces = {
            str(piece.relative_to(self.top)) for piece in self.top.rglob("*") if piece.is_file()}
        wait_for(lambda: pieces <= self.server.names(f"{TOP}/{PIECES}"),
                 "the store lists what is there")

    def wait(self, seconds: float = 900, **wanted: int) -> None:
        """Returns when the store has pieces of so many bytes; of files it knows nothing.

        rclone's store leaves some objects under the name under which they came, and some twice.
        """
        def is_so() -> bool:
            found = self.found()
            return found is not None and found["bytes"] >= wanted["bytes"]

        wait_for(is_so, f"the store has pieces of {wanted}", seconds)

    def content_hash(self, path: str) -> str:
        """The SHA-256 of a file as another mount reads it from the store."""
        with self.opened() as top:
            return file_hash(top / path.lstrip("/"))

    @contextlib.contextmanager
    def opened(self, *flags: str) -> Iterator[pathlib.Path]:
        """The folder of a mount that is not measured, which has a cache of its own and has sent
        what was written as soon as a file is closed."""
        self.mounts += 1
        mount = JuiceFS(self.folder / f"mount{self.mounts}", self, self.names, self.program)
        mount.flags = list(flags)
        try:
            mount.mount()
            yield mount.folder
            mount.stop()
        finally:
            mount.kill()


class JuiceFS(Mounting):
    """`juicefs mount` of the volume: one process that serves, and one that watches over it."""

    name = "juicefs"

    def __init__(self, place: pathlib.Path, cloud: Cloud | Served, names: Names, program: pathlib.Path):
        super().__init__(place, cloud, names)
        assert isinstance(cloud, Volume)
        self.volume = cloud
        self.program = program
        self.flags = JUICEFS_FLAGS

    @property
    def process(self) -> int:
        return self.serving()[0]

    def serving(self) -> list[int]:
        """What the watching process began, from whichever of its threads."""
        assert self.child is not None
        lists = pathlib.Path(f"/proc/{self.child.pid}/task").glob("*/children")
        return [int(child) for children in lists for child in children.read_text().split()]

    def mount(self) -> None:
        self.begin(
            str(self.program), "mount", self.volume.database, str(self.mount_point),
            "--cache-dir", str(self.place / "cache"), "--no-usage-report", *self.flags)

    def _end(self, number: signal.Signals) -> None:
        serving = self.serving() if self.child else []
        super()._end(number)
        if number == signal.SIGKILL:
            # It outlives the one that watched over it.
            for process in serving:
                os.kill(process, number)
                os.waitpid(process, 0)

    def wait_until_known(self) -> None:
        """It knows its tree from the database."""
