#!/usr/bin/env python3
"""Drives a simulated service with clients that nobody here wrote.

usage: run.py SERVICE [--simulate PATH] [--only CHECK]      SERVICE: box, dropbox, googledrive,
                                                              nextcloud, onedrive, opencloud, owncloud,
                                                              s3

The clients (rclone, the service's official SDK) use the real host names, through a proxy that
inspects TLS with a CA of its own. Each service has a module NAME_clients.py beside this file with
functions called check_...(world); all of them run, each under a time limit, each failure is
printed, the exit code is 1 if there was any. Python packages: requirements.txt.
"""

import argparse
import importlib
import json
import os
import pathlib
import random
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
# Seconds for one check, and for one run of rclone in it.
CHECK_LIMIT = 180
RCLONE_LIMIT = 120


def tool(name):
    """A program of this interpreter's environment, else of PATH."""
    beside = pathlib.Path(sys.executable).parent / name
    found = str(beside) if beside.exists() else shutil.which(name)
    if not found:
        sys.exit(f"{name} is missing: pip install -r {HERE / 'requirements.txt'}")
    return found


def noise(size, seed):
    """Bytes that do not compress, the same in each run."""
    return random.Random(seed).randbytes(size)


class World:
    """A running simulator behind the proxy."""

    def __init__(self, module, folder, port, environment):
        self.module = module
        self.folder = pathlib.Path(folder)
        self.port = port
        self.environment = environment

    def control(self, method, path, body=None):
        """A call of the simulator's control, not through the proxy."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/_oort/{path}", data=data, method=method)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=60) as answer:
            return json.load(answer)

    def calm(self):
        """Fair weather, no faults, nothing counted."""
        self.control("DELETE", "faults")
        self.control("PUT", "weather", {})
        self.control("DELETE", "calls")

    def tokens(self):
        """A fresh pair of tokens."""
        return self.control("GET", "tokens")

    def tree(self, hash="none"):
        """The service's items by path (of several of one path the last)."""
        return {item["path"]: item for item in self.control("GET", f"tree?hash={hash}")}

    def calls(self, route):
        """How often a route was called."""
        return self.control("GET", "counts").get(route, {"calls": 0})["calls"]

    def edit(self, **fields):
        """An edit by somebody else."""
        self.control("POST", "edit", fields)

    def fault(self, route, fault, **fields):
        """Places a fault at the next request of a route."""
        self.control("POST", "faults", {"route": route, "fault": fault, **fields})


class Rclone:
    """rclone with one remote, called remote:."""

    def __init__(self, world, *flags, **options):
        self.world = world
        self.flags = flags
        self.place = pathlib.Path(tempfile.mkdtemp(dir=world.folder))
        self.config = self.place / "rclone.conf"
        self.configure(**options)

    def configure(self, **options):
        lines = "".join(f"{key} = {value}\n" for key, value in options.items())
        self.config.write_text("[remote]\n" + lines)

    def command(self, *arguments):
        return [
            tool("rclone"), "--config", str(self.config), "--low-level-retries", "10",
            "--retries", "1", "--timeout", "30s", *self.flags, *map(str, arguments),
        ]

    def __call__(self, *arguments, fails=False, text=True):
        done = subprocess.run(
            self.command(*arguments), env=self.world.environment, capture_output=True,
            timeout=RCLONE_LIMIT)
        if (done.returncode != 0) != fails:
            raise AssertionError(f"rclone {arguments}: {done.stderr.decode()[-2000:]}")
        return done.stdout.decode() if text else done.stdout

    def local(self, name, content):
        """A local file with this content, below `place`."""
        path = self.place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return path


def wait_for(condition, what, seconds=30):
    limit = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > limit:
            raise AssertionError(f"not within {seconds} s: {what}")
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


def run_check(check, world):
    """Whether a check passes within its time."""
    def expire(*_):
        raise TimeoutError(f"not done within {CHECK_LIMIT} s")

    began = time.monotonic()
    signal.signal(signal.SIGALRM, expire)
    signal.alarm(CHECK_LIMIT)
    try:
        world.calm()
        check(world)
    except Exception:
        traceback.print_exc(file=sys.stdout)
        return False
    finally:
        signal.alarm(0)
        print(f"{check.__name__}: {time.monotonic() - began:.1f} s", flush=True)
    return True


def run_checks(module, world, only):
    checks = [
        value for name, value in vars(module).items()
        if name.startswith("check_") and (only is None or name == only)
    ]
    if not checks:
        print(f"There is no check {only}.")
        return 1
    failed = [check.__name__ for check in checks if not run_check(check, world)]
    for name in failed:
        print(f"FAILED  {name}")
    print(f"{len(checks) - len(failed)} of {len(checks)} checks passed.")
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("service", choices=[
        "box", "dropbox", "googledrive", "nextcloud", "onedrive", "opencloud", "owncloud",
        "s3"])
    parser.add_argument(
        "--simulate", default=str(HERE.parent.parent / ".build/debug/oort-simulate"))
    parser.add_argument("--only", help="the one check to run")
    options = parser.parse_args()
    # The clients import this file by its name.
    sys.modules["run"] = sys.modules[__name__]
    module = importlib.import_module(options.service + "_clients")

    with tempfile.TemporaryDirectory(prefix="oort-foreign-") as folder:
        port_file = os.path.join(folder, "ports.json")
        log = open(os.path.join(folder, "log"), "w+")
        processes = []
        try:
            processes.append(subprocess.Popen(
                [options.simulate, "--port-file", port_file, module.SIMULATOR],
                stdout=log, stderr=log))
            wait_for(lambda: os.path.exists(port_file), "the simulator")
            with open(port_file) as file:
                simulator = json.load(file)[module.SIMULATOR]["port"]
            port = free_port()
            processes.append(subprocess.Popen(
                [tool("mitmdump"), "--quiet", "--listen-host", "127.0.0.1", "--listen-port",
                 str(port), "--set", f"confdir={folder}", "--set", "connection_strategy=lazy",
                 "--scripts", str(HERE / "route_to_simulators.py")],
                env=dict(os.environ, OORT_PORT_FILE=port_file), stdout=log, stderr=log))
            authority = os.path.join(folder, "mitmproxy-ca-cert.pem")
            wait_for(lambda: os.path.exists(authority) and is_open(port), "the proxy", 60)
            environment = dict(
                os.environ, HTTPS_PROXY=f"http://127.0.0.1:{port}", NO_PROXY="",
                https_proxy=f"http://127.0.0.1:{port}", SSL_CERT_FILE=authority,
                REQUESTS_CA_BUNDLE=authority, AWS_CA_BUNDLE=authority)
            os.environ.update(environment)
            world = World(module, folder, simulator, environment)
            status = run_checks(module, world, options.only)
            if status != 0:
                log.seek(0)
                print(log.read()[-4000:])
            return status
        finally:
            for process in reversed(processes):
                end(process)


if __name__ == "__main__":
    sys.exit(main())
