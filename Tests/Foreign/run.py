#!/usr/bin/env python3
"""Drives a simulated service with clients that nobody here wrote.

usage: run.py SERVICE [--simulate PATH]      SERVICE: dropbox, ...

The clients (rclone, the service's official SDK) use the real host names, through a proxy that
inspects TLS with a CA of its own. Each service has a module NAME_clients.py beside this file with
functions called check_...(world); all of them run, each failure is printed, the exit code is 1 if
there was any. Python packages: requirements.txt.
"""

import argparse
import importlib
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent


def tool(name):
    """A program of this interpreter's environment, else of PATH."""
    beside = pathlib.Path(sys.executable).parent / name
    found = str(beside) if beside.exists() else shutil.which(name)
    if not found:
        sys.exit(f"{name} is missing: pip install -r {HERE / 'requirements.txt'}")
    return found


class World:
    """A running simulator behind the proxy."""

    def __init__(self, service, folder, facts, environment):
        self.service = service
        self.folder = pathlib.Path(folder)
        self.facts = facts
        self.environment = environment
        self.access_token = facts["access_token"]
        self.refresh_token = facts["refresh_token"]

    def control(self, method, path, body=None):
        """A call of the simulator's control, not through the proxy."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.facts['port']}/_oort/{path}", data=data, method=method)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request) as answer:
            return json.load(answer)

    def tree(self):
        """The service's files by path, with SHA-256."""
        return {item["path"]: item for item in self.control("GET", "tree")}

    def counts(self):
        return self.control("GET", "counts")

    def rclone(self, config, *arguments, check=True, text=True):
        """Runs rclone with a remote of the given options, called remote:."""
        path = self.folder / "rclone.conf"
        lines = "".join(f"{key} = {value}\n" for key, value in config.items())
        path.write_text("[remote]\n" + lines)
        result = subprocess.run(
            [tool("rclone"), "--config", str(path), "--low-level-retries", "5", "--retries", "1",
             *map(str, arguments)],
            env=self.environment, capture_output=True, text=text, timeout=300)
        if check and result.returncode != 0:
            raise AssertionError(f"rclone {arguments}: {result.stderr}")
        return result.stdout


def wait_for(condition, what, seconds=30):
    limit = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > limit:
            raise SystemExit(f"{what} did not come up")
        time.sleep(0.05)


def is_open(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def end(process):
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("service")
    parser.add_argument(
        "--simulate", default=str(HERE.parent.parent / ".build/debug/oort-simulate"))
    parser.add_argument("--only", help="the one check to run")
    options = parser.parse_args()
    module = importlib.import_module(options.service + "_clients")

    with tempfile.TemporaryDirectory(prefix="oort-foreign-") as folder:
        port_file = os.path.join(folder, "ports.json")
        log = open(os.path.join(folder, "log"), "w+")
        simulator = subprocess.Popen(
            [options.simulate, "--port-file", port_file, options.service],
            stdout=log, stderr=log)
        proxy = None
        try:
            wait_for(lambda: os.path.exists(port_file), "the simulator")
            with open(port_file) as file:
                facts = json.load(file)[options.service]
            port = free_port()
            proxy = subprocess.Popen(
                [tool("mitmdump"), "--quiet", "--listen-host", "127.0.0.1", "--listen-port",
                 str(port), "--set", f"confdir={folder}", "--set", "connection_strategy=lazy",
                 "--scripts", str(HERE / "route_to_simulators.py")],
                env=dict(os.environ, OORT_PORT_FILE=port_file), stdout=log, stderr=log)
            authority = os.path.join(folder, "mitmproxy-ca-cert.pem")
            wait_for(lambda: os.path.exists(authority) and is_open(port), "the proxy")
            environment = dict(
                os.environ, HTTPS_PROXY=f"http://127.0.0.1:{port}", NO_PROXY="",
                https_proxy=f"http://127.0.0.1:{port}", SSL_CERT_FILE=authority,
                REQUESTS_CA_BUNDLE=authority)
            os.environ.update(environment)
            world = World(options.service, folder, facts, environment)
            failures = 0
            for name in [n for n in dir(module) if n.startswith("check_")]:
                if options.only and options.only != name:
                    continue
                world.control("DELETE", "faults")
                try:
                    getattr(module, name)(world)
                    print(f"ok      {options.service}: {name}", flush=True)
                except Exception:
                    failures += 1
                    print(f"FAILED  {options.service}: {name}", flush=True)
                    traceback.print_exc()
            if failures:
                log.seek(0)
                print(log.read()[-4000:])
            return 1 if failures else 0
        finally:
            for process in (proxy, simulator):
                if process:
                    end(process)


if __name__ == "__main__":
    sys.exit(main())
