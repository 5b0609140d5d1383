"""The road to a simulated service that both programs take: real host names, TLS, HTTP/2, nginx.

The simulator itself adds the latency and limits the rate of each request, so the road is the same
for everybody. It exists in a network of the bench's own only (scripts/bench makes that).
"""

import ctypes
import fcntl
import hashlib
import os
import pathlib
import shutil
import socket
import struct
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass

# What each finished request cost on the road, headers included, cut ones too: bytes up and down, its
# end in seconds since 1970, how long it took, and what it was.
LOG_FORMAT = "$request_length $bytes_sent $msec $request_time $request_method $host$uri"

CONFIGURATION = """
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/nginx.log error;
worker_processes 2;
events {{ worker_connections 4096; }}
http {{
  log_format cost '{log_format}';
  access_log {log} cost;
  client_max_body_size 0;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  keepalive_timeout 1h;
  keepalive_requests 1000000;
  client_header_timeout 1h;
  client_body_timeout 1h;
  proxy_read_timeout 1h;
  proxy_send_timeout 1h;
  proxy_http_version 1.1;
  proxy_request_buffering off;
  proxy_buffering off;
  proxy_set_header Host $host;
  # A connection for each request: on a kept one, the simulator's answers in two parts would wait
  # for delayed acknowledgements.
  proxy_set_header Connection close;
  proxy_pass_request_headers on;
  large_client_header_buffers 8 128k;
  ssl_certificate {certificate};
  ssl_certificate_key {key};
  upstream simulator {{ server 127.0.0.1:{port}; }}
  server {{
    listen {address}:443 ssl http2 backlog=1024;
    location / {{ proxy_pass http://simulator; }}
  }}
}}
"""


@dataclass
class Traffic:
    """Requests that came to their end, and their bytes on the wire in each direction."""

    calls: int = 0
    up: int = 0
    down: int = 0


def wait_for(condition: Callable[[], object], words: str, seconds: float = 60) -> None:
    """Returns when the condition holds; fails when it does not within the time."""
    limit = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > limit:
            raise TimeoutError(f"not within {seconds:.0f} s: {words}")
        time.sleep(0.005)


def file_hash(path: pathlib.Path) -> str:
    """The SHA-256 of a local file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def raise_loopback() -> None:
    """Gives the bench's own network its loopback interface, which is down at first."""
    get_flags, set_flags, is_up = 0x8913, 0x8914, 1
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        request = struct.pack("16sh14x", b"lo", 0)
        flags = struct.unpack("16sh14x", fcntl.ioctl(probe, get_flags, request))[1]
        fcntl.ioctl(probe, set_flags, struct.pack("16sh14x", b"lo", flags | is_up))


class Names:
    """The services' host names, which lead to this machine for as long as the bench runs.

    Each service has an address of its own, so that several can run at once.
    """

    def __init__(self, folder: pathlib.Path, hosts: dict[str, list[str]]):
        self.certificate = folder / "certificate.pem"
        self.key = folder / "key.pem"
        self.addresses = {
            service: f"127.0.0.{10 + number}" for number, service in enumerate(hosts)}
        lines = ["127.0.0.1 localhost"] + [
            f"{self.addresses[service]} {host}" for service in hosts for host in hosts[service]]
        file = folder / "hosts"
        file.write_text("\n".join(lines) + "\n")
        libc = ctypes.CDLL(None, use_errno=True)
        bind = 4096
        if libc.mount(str(file).encode(), b"/etc/hosts", None, bind, None) != 0:
            raise OSError(ctypes.get_errno(), "mount --bind over /etc/hosts")
        names = ",".join(f"DNS:{host}" for found in hosts.values() for host in found)
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
             "-nodes", "-days", "2", "-subj", "/CN=The bench's road", "-addext",
             f"subjectAltName={names}", "-keyout", str(self.key), "-out", str(self.certificate)],
            check=True, capture_output=True)


class Road:
    """nginx before one simulator."""

    def __init__(self, folder: pathlib.Path, names: Names, service: str, port: int):
        self.address = names.addresses[service]
        self.log = folder / "requests"
        self.log.touch()
        # Its workers may run as another user.
        folder.chmod(0o755)
        configuration = folder / "nginx.conf"
        configuration.write_text(CONFIGURATION.format(
            folder=folder, log=self.log, log_format=LOG_FORMAT, certificate=names.certificate,
            key=names.key, port=port, address=self.address))
        program = shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin") or "nginx"
        self.process = subprocess.Popen(
            [program, "-c", str(configuration), "-e", str(folder / "nginx.log")],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for(self.is_open, "nginx listens")

    def is_open(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex((self.address, 443)) == 0

    def mark(self) -> int:
        """A place in the log of requests."""
        return self.log.stat().st_size

    def lines(self, mark: int = 0) -> list[list[str]]:
        """The requests that ended since the mark, in the parts of `LOG_FORMAT`."""
        with open(self.log, "rb") as log:
            log.seek(mark)
            text = log.read().decode(errors="replace")
        return [parts for line in text.splitlines() if len(parts := line.split(" ", 5)) == 6]

    def traffic(self, mark: int = 0) -> Traffic:
        """What ended since the mark."""
        lines = self.lines(mark)
        return Traffic(
            len(lines), sum(int(line[0]) for line in lines), sum(int(line[1]) for line in lines))

    def timetable(self, mark: int, began: float) -> str:
        """The requests that ended since the mark: when each began and ended, in seconds after the
        moment (seconds since 1970), its bytes and its name."""
        rows = []
        for up, down, end, taken, method, address in self.lines(mark):
            ended = float(end) - began
            rows.append(
                f"{ended - float(taken):8.3f} {ended:8.3f} {up:>10} {down:>10} {method} {address}\n")
        return "".join(sorted(rows))

    @staticmethod
    def bytes_so_far() -> int:
        """What went over all roads in both directions since the bench's network exists, requests
        under way included."""
        lines = pathlib.Path("/proc/net/dev").read_text().splitlines()
        loopback = next(line.split() for line in lines if line.strip().startswith("lo:"))
        # Everything passes the interface twice: before nginx and behind it.
        return int(loopback[9]) // 2

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
