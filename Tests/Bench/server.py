"""A server that nobody here wrote, behind a long line, in the place of a simulated service."""

import json
import os
import pathlib
import pwd
import shutil
import subprocess
import sys
import threading
import time

from .cloud import TOP, Edit, SignIn
from .road import Traffic, file_hash, wait_for

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "EndToEnd"))

import servers  # noqa: E402

# By this object a store has an empty folder.
HERE = ".here"
KEYS = {"access_key_id": "an-access-key", "secret_access_key": "a-secret-access-key"}


class Line:
    """The forwarder before one server; what it counts is bytes, since a request is no matter of it."""

    def __init__(self, port: int):
        self.process = subprocess.Popen(
            [sys.executable, "-B", "-m", "Bench.forwarder", str(port)], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.lock = threading.Lock()
        self.port = int(self._line())

    def _line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def _ask(self, command: str) -> str:
        assert self.process.stdin is not None
        with self.lock:
            self.process.stdin.write(command + "\n")
            self.process.stdin.flush()
            return self._line()

    def latency(self, milliseconds: int) -> None:
        """From now on a round trip takes so long."""
        self._ask(f"latency {milliseconds}")

    def mark(self) -> tuple[int, int]:
        """The bytes so far, up and down."""
        up, down = self._ask("traffic").split()
        return int(up), int(down)

    def traffic(self, mark: tuple[int, int] = (0, 0)) -> Traffic:
        """What went over it since the mark."""
        up, down = self.mark()
        return Traffic(0, up - mark[0], down - mark[1])

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()


class Served:
    """A running server behind its line, seen as a bench's cloud."""

    def __init__(self, folder: pathlib.Path, kind: str, rclone: pathlib.Path):
        self.service = kind
        self.rclone = rclone
        # A server that drops its rights must reach its files.
        for above in [folder, *folder.parents][:3]:
            above.chmod(0o755)
        self.server = servers.Server(kind, folder, rclone)
        try:
            self.road = Line(self.server.port)
        except BaseException:
            self.server.stop()
            raise
        self.top = self.server.files / TOP
        self.top.mkdir(exist_ok=True)
        self.own(self.top)

    def own(self, path: pathlib.Path) -> None:
        """Gives a file to whom the server works as."""
        if self.service == "webdav" and os.getuid() == 0:
            shutil.chown(path, "www-data", "www-data")

    def stop(self) -> None:
        self.road.stop()
        self.server.stop()
        for place in self.server.place:
            place.close()

    def weather(self, latency_ms: int = 0, rate: int | None = None) -> None:
        """From now on a round trip takes so long; no rate is kept, as many programs share one
        connection in different ways."""
        self.road.latency(latency_ms)

    def edit(self, edits: list[Edit]) -> None:
        """Changes that were made before; paths are below `TOP`."""
        before = time.time() - 3600
        for edit in edits:
            path = self.top / edit["path"].lstrip("/")
            missing = [above for above in path.parents if not above.exists()]
            path.parent.mkdir(parents=True, exist_ok=True)
            if edit["op"] == "mkdir":
                path.mkdir(exist_ok=True)
                if self.service == "s3":
                    # A store has no folders, but those of its objects.
                    (path / HERE).touch()
            else:
                self.write(path, edit)
            # Somebody made it an hour ago: Apache gives what is younger than a second no tag that
            # could guard a read.
            os.utime(path, (before, before))
            for made in [*missing, path]:
                self.own(made)
        if self.service == "s3":
            # rclone's server shows what it knew of its disk for a second.
            paths = {
                edit["path"].lstrip("/") + (f"/{HERE}" if edit["op"] == "mkdir" else "")
                for edit in edits}
            wait_for(lambda: paths <= self.server.names(TOP), "the server lists what is there")

    @staticmethod
    def write(path: pathlib.Path, edit: Edit) -> None:
        """Writes the file of an edit."""
        if "size" not in edit:
            path.write_text(edit["text"])
            return
        with open(path, "wb") as file, open("/dev/urandom", "rb") as noise:
            for start in range(0, edit["size"], 1 << 20):
                file.write(noise.read(min(1 << 20, edit["size"] - start)))

    def has(self, path: str) -> bool:
        """Whether there is a file at this path below `TOP`."""
        return (self.top / path.lstrip("/")).is_file()

    def found(self) -> dict[str, int] | None:
        """How many files the server's disk has, and their bytes; nil while a name changes."""
        sizes = []
        for place, _, names in os.walk(self.top):
            for name in names:
                try:
                    # What is on its way has another name there.
                    if ".oort-" not in name and not name.endswith(".partial") and name != HERE:
                        sizes.append(os.stat(os.path.join(place, name)).st_size)
                except FileNotFoundError:
                    return None
        return {"files": len(sizes), "bytes": sum(sizes)}

    def wait(self, seconds: float = 900, **wanted: int) -> None:
        """Returns when the server has exactly so many files or bytes."""
        def is_so() -> bool:
            found = self.found()
            return found is not None and all(found[key] == value for key, value in wanted.items())

        wait_for(is_so, f"the server has {wanted}", seconds)

    def content_hash(self, path: str) -> str:
        """The SHA-256 of a file at the server, its path below `TOP`."""
        return file_hash(self.top / path.lstrip("/"))

    # Signing in

    def rclone_remote(self) -> tuple[dict[str, str], str]:
        """rclone's options of the remote, and the path of `TOP` there."""
        port = self.road.port
        if self.service == "sftp":
            return {
                "type": "sftp", "host": "127.0.0.1", "port": str(port),
                "user": pwd.getpwuid(os.getuid()).pw_name,
                "key_file": str(self.server.folder / "user"),
            }, f"{self.server.root}/{TOP}"
        if self.service == "webdav":
            secret = subprocess.run(
                [self.rclone, "obscure", "secret"], check=True, capture_output=True, text=True)
            return {
                "type": "webdav", "url": f"http://127.0.0.1:{port}", "vendor": "other",
                "user": "ada", "pass": secret.stdout.strip()}, TOP
        return {
            "type": "s3", "provider": "Other", "endpoint": f"http://127.0.0.1:{port}",
            "force_path_style": "true", **KEYS}, f"bucket/{TOP}"

    def oort_sign_in(self, place: pathlib.Path) -> SignIn:
        """How Oort signs in."""
        port, folder = self.road.port, self.server.folder
        if self.service == "sftp":
            known = place / "known-hosts"
            known.write_text(f"[127.0.0.1]:{port} {(folder / 'host.pub').read_text()}")
            return SignIn("", ["sftp", f"127.0.0.1:{port}{self.server.root}", "--identity",
                               str(folder / "user"), "--ssh-option",
                               f"UserKnownHostsFile={known}", "--ssh-option",
                               "IdentityAgent=none"], None)
        if self.service == "webdav":
            return SignIn("", ["webdav", f"http://127.0.0.1:{port}/", "--user", "ada",
                               "--password-file", "-"], "secret\n")
        return SignIn("", ["s3", "bucket", "--endpoint", f"http://127.0.0.1:{port}",
                           "--path-style", "--key-file", "-"], json.dumps(KEYS))
