"""One simulated service with an account of its own, and its control."""

import http.client
import json
import pathlib
import subprocess
import urllib.parse
from dataclasses import dataclass
from typing import Any

from .road import Names, Road, wait_for

SERVICES = ["dropbox", "drive", "onedrive"]
# What is measured with a server that nobody here wrote.
SERVERS = ["sftp", "webdav", "s3"]
TITLES = {"dropbox": "Dropbox", "drive": "Google Drive", "onedrive": "OneDrive",
          "sftp": "SFTP", "webdav": "WebDAV", "s3": "S3"}
# Edits that are sent in one request.
MANY = 20_000

# The folder of the account in which everything happens: from an account's top, rclone 1.75 asks
# Dropbox for "//folder", which is no path there.
TOP = "bench"

Edit = dict[str, Any]

# The simulated account's drive, which rclone's `config` would ask for.
ONEDRIVE_DRIVE = "0f0978a1b2c3d4e5"


@dataclass
class SignIn:
    """How Oort signs in to an account: what its settings say, and the arguments and the input of
    `oort login`."""

    settings: str
    arguments: list[str]
    text: str | None


def hosts(simulate: pathlib.Path, folder: pathlib.Path) -> dict[str, list[str]]:
    """The real host names of every service."""
    port_file = folder / "hosts.json"
    process = subprocess.Popen(
        [str(simulate), "--port-file", str(port_file), "--empty"], stdin=subprocess.DEVNULL)
    try:
        wait_for(lambda: port_file.exists() or process.poll() is not None, "the simulators")
        found = json.loads(port_file.read_text())
    finally:
        process.kill()
        process.wait()
    return {service: found[service]["hosts"] for service in SERVICES}


class Cloud:
    """A running simulator behind its road."""

    def __init__(
        self, folder: pathlib.Path, simulate: pathlib.Path, service: str, names: Names
    ):
        self.service = service
        port_file = folder / "simulator.json"
        self.log = open(folder / "simulator.log", "w")
        self.process = subprocess.Popen(
            [str(simulate), "--port-file", str(port_file), "--empty", service],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        try:
            wait_for(lambda: port_file.exists() or self.process.poll() is not None, "a simulator")
            if not port_file.exists():
                raise RuntimeError((folder / "simulator.log").read_text())
            facts = json.loads(port_file.read_text())[service]
            self.port: int = facts["port"]
            self.road = Road(folder, names, service, self.port)
        except BaseException:
            self.process.kill()
            self.process.wait()
            raise
        self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)
        # Pages as full as were asked for, so that calls can be compared between runs.
        self.control("PUT", "pages", {"full": True})
        self.control("POST", "edit", {"op": "mkdir", "path": f"/{TOP}"})

    def stop(self) -> None:
        self.connection.close()
        self.road.stop()
        self.process.kill()
        self.process.wait()
        self.log.close()

    def control(self, method: str, path: str, body: Any = None) -> Any:
        """Asks the simulator itself, past the road; the answer's JSON."""
        data = None if body is None else json.dumps(body)
        try:
            self.connection.request(method, f"/_oort/{path}", body=data)
            answer = self.connection.getresponse()
        except (http.client.HTTPException, OSError):
            self.connection.close()
            self.connection.request(method, f"/_oort/{path}", body=data)
            answer = self.connection.getresponse()
        text = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{method} {path}: {answer.status} {text[:200]!r}")
        return json.loads(text)

    def weather(self, latency_ms: int = 0, rate: int | None = None) -> None:
        """From now on each answer comes so late, and each request and answer so slowly, in bytes a
        second."""
        limits = {} if rate is None else {
            "upload_bytes_per_second": rate, "download_bytes_per_second": rate}
        self.control("PUT", "weather", {"latency_ms": latency_ms, **limits})

    def edit(self, edits: list[Edit]) -> None:
        """Changes that somebody else makes, or that were made before; paths are below `TOP`."""
        for start in range(0, len(edits), MANY):
            self.control("POST", "edits", [
                {**edit, "path": f"/{TOP}{edit['path']}"} for edit in edits[start:start + MANY]])

    def summary(self) -> dict[str, int]:
        """How many items and files the account has, and the files' bytes."""
        return self.control("GET", "summary")

    def wait(self, seconds: float = 900, **wanted: int) -> None:
        """Returns when the account has exactly so many items, files or bytes."""
        def is_so() -> bool:
            summary = self.summary()
            return all(summary[key] == value for key, value in wanted.items())

        wait_for(is_so, f"the cloud has {wanted}", seconds)

    def has(self, path: str) -> bool:
        """Whether there is a file with bytes at this path below `TOP`."""
        place = urllib.parse.quote(f"/{TOP}{path}")
        self.connection.request(
            "GET", f"/_oort/content?path={place}", headers={"Range": "bytes=0-0"})
        answer = self.connection.getresponse()
        answer.read()
        return answer.status in (200, 206)

    def tokens(self) -> dict[str, str]:
        """A fresh pair of tokens, as after a sign-in."""
        return self.control("GET", "tokens")

    def rclone_remote(self) -> tuple[dict[str, str], str]:
        """rclone's options of the remote, and the path of `TOP` there."""
        token = json.dumps({
            **self.tokens(), "token_type": "Bearer", "expiry": "2099-01-01T00:00:00Z"})
        options = {
            "type": self.service, "client_id": "bench", "client_secret": "bench", "token": token}
        if self.service == "drive":
            options["scope"] = "drive"
        if self.service == "onedrive":
            options |= {"drive_id": ONEDRIVE_DRIVE, "drive_type": "personal"}
        return options, TOP

    def oort_sign_in(self, place: pathlib.Path) -> SignIn:
        """How Oort signs in; a file that the settings name is put into `place`."""
        settings = f'[{self.service}]\nclient_id = "bench"\n'
        if self.service == "drive":
            secret = place / "secret"
            secret.write_text("secret\n")
            secret.chmod(0o600)
            settings += f'client_secret_file = "{secret}"\n'
        tokens = self.tokens()
        return SignIn(settings, [self.service, "--token-file", "-"], json.dumps(
            {key: tokens[key] for key in ("access_token", "refresh_token")}))

    def content_hash(self, path: str) -> str:
        """The SHA-256 of a file at the service, its path below `TOP`."""
        items = self.control("GET", "tree?" + urllib.parse.urlencode({"hash": "sha256"}))
        return next(item["hash"] for item in items if item["path"] == f"/{TOP}{path}")
