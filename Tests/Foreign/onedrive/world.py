"""A simulator reached by the real host names, through a proxy with a test CA."""

import contextlib
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import time
import urllib.request

HERE = pathlib.Path(__file__).parent


class World:
    def __init__(self, simulator, hosts, folder):
        self.simulator = simulator
        self.folder = pathlib.Path(folder)
        self.ca = self.folder / "ca"
        self.ca.mkdir()
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.proxy = subprocess.Popen(
            [
                shutil.which("mitmdump", path=tools()), "-q", "--listen-host", "127.0.0.1",
                "--listen-port", str(self.port), "--set", f"confdir={self.ca}",
                "--set", "connection_strategy=lazy",
                "-s", str(HERE / "real_hosts.py"),
            ],
            env=os.environ | {"OORT_SIMULATOR": simulator, "OORT_HOSTS": ",".join(hosts)},
        )
        wait_for(lambda: (self.ca / "mitmproxy-ca-cert.pem").exists() and self.listens())

    def listens(self):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
            return True
        return False

    def stop(self):
        self.proxy.terminate()
        try:
            self.proxy.wait(10)
        except subprocess.TimeoutExpired:
            self.proxy.kill()
            self.proxy.wait()

    @property
    def environment(self):
        certificate = str(self.ca / "mitmproxy-ca-cert.pem")
        proxy = f"http://127.0.0.1:{self.port}"
        return os.environ | {
            "HTTPS_PROXY": proxy, "https_proxy": proxy, "SSL_CERT_FILE": certificate,
            "REQUESTS_CA_BUNDLE": certificate, "NO_PROXY": "127.0.0.1,localhost",
        }

    # The simulator's control.

    def control(self, method, path, body=None):
        request = urllib.request.Request(
            f"{self.simulator}/_oort/{path}", method=method,
            data=None if body is None else json.dumps(body).encode())
        with urllib.request.urlopen(request) as answer:
            return answer.read()

    def tokens(self):
        return json.loads(self.control("GET", "tokens"))

    def tree(self):
        return {entry["path"]: entry for entry in json.loads(self.control("GET", "tree?hash=md5"))}

    def counts(self):
        return json.loads(self.control("GET", "counts"))

    def edit(self, **fields):
        self.control("POST", "edit", fields)

    def fault(self, route, **fields):
        self.control("POST", "faults", {"route": route, **fields})


def tools():
    """Where the tools of this Python's environment are, then the usual places."""
    return os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"]


def wait_for(condition, seconds=30):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError("a condition did not come true")
        time.sleep(0.05)


def check(condition, what):
    if not condition:
        raise AssertionError(what)
    print(f"ok: {what}", flush=True)
