"""Servers of ownCloud's family, simulated, which people sign in to by an address."""

import json
import subprocess
import urllib.request

from machine import SIMULATORS, eventually


class CloudServer:
    """A simulated server; what another client does goes past the protocol."""

    def __init__(self, name, folder):
        places = folder / f"{name}.json"
        self.log = open(folder / f"{name}.log", "w")
        self.process = subprocess.Popen(
            [str(SIMULATORS), "--port-file", str(places), "--empty", name],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        eventually(lambda: places.exists() or self.process.poll() is not None, "it started")
        self.base = f"http://127.0.0.1:{json.loads(places.read_text())[name]['port']}"

    def control(self, method, path, body=None):
        request = urllib.request.Request(
            f"{self.base}/_oort/{path}", method=method,
            data=None if body is None else json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.read()

    def password(self):
        """A new password for programs."""
        return json.loads(self.control("GET", "tokens"))["access_token"]

    def tree(self):
        return {item["path"]: item for item in json.loads(self.control("GET", "tree?hash=sha256"))}

    def stop(self):
        self.process.terminate()
        self.process.wait(timeout=120)
        self.log.close()
