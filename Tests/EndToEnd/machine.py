"""A machine with Oort on it, and the simulated clouds that it uses; each test has its own."""

import ctypes
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

import secrets_scan

OORT = pathlib.Path(os.environ.get("OORT", ".build/debug/oort")).resolve()
SIMULATORS = OORT.with_name("oort-simulate")
CLOUDS = ["dropbox", "drive", "onedrive"]
# All there, work pending, something needs a person, not mounted.
STATUS_CODES = (0, 3, 4, 5)


def eventually(condition, words, timeout=120):
    """Returns the condition's first true value; fails when there is none within the time.

    The time is for a machine of two slow cores on which other tests run.
    """
    deadline = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, f"not within {timeout} s: {words}"
        time.sleep(0.05)


def read(path):
    """A file's text; nothing while it cannot be read."""
    try:
        return path.read_text()
    except OSError:
        return None


def exchange_names(one, other):
    """renameat2(RENAME_EXCHANGE)."""
    here, exchanged = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    libc = ctypes.CDLL(None, use_errno=True)
    names = os.fsencode(one), os.fsencode(other)
    assert libc.renameat2(here, names[0], here, names[1], exchanged) == 0, ctypes.get_errno()


def held_port():
    """A loopback port for a server of this machine's, and the socket that keeps it from others.

    The kernel gives nobody a port that a socket is bound to; a server may listen there beside it,
    since both have SO_REUSEADDR and this one does not listen. Nothing answers before the server does.
    """
    place = socket.socket()
    place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    place.bind(("127.0.0.1", 0))
    return place.getsockname()[1], place


class Gate:
    """A loopback port before a simulator that can be shut: then connections are refused."""

    def __init__(self, target):
        self.target = target
        self.received = 0  # bytes from clients so far
        self.damage = None  # bytes on their way to clients, and what becomes of them
        self.connections = []
        self.listener = None
        # While the gate is shut, too: the settings name the port.
        self.port, self.place = held_port()
        self.open()

    def open(self):
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", self.port))
        listener.listen(128)
        self.listener = listener
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

    @property
    def is_shut(self):
        return self.listener.fileno() < 0

    def shut(self):
        if self.is_shut:
            return
        # A listener that is only closed stays alive inside accept(2) of its thread.
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        shut_down(*self.connections)
        self.connections.clear()

    def _accept(self, listener):
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                # A server that was killed is started again.
                client.close()
                continue
            for end in (client, server):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.connections += [client, server]
            for source, sink in ((client, server), (server, client)):
                arguments = (source, sink, source is client)
                threading.Thread(target=self._pump, args=arguments, daemon=True).start()

    def _pump(self, source, sink, is_up):
        try:
            while data := source.recv(1 << 16):
                if is_up:
                    self.received += len(data)
                elif self.damage:
                    data = data.replace(*self.damage)
                sink.sendall(data)
        except OSError:
            pass
        shut_down(source, sink)


def shut_down(*ends):
    for end in ends:
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


class Clouds:
    """Simulators in a process of their own, each behind a gate: those of the three services, or others."""

    def __init__(self, folder, sample=False, of_bob=False, names=CLOUDS):
        self.names = names
        places = folder / "simulators.json"
        self.secret = folder / "secret"
        self.secret.write_text("client-secret-of-the-tests\n")
        arguments = ([] if sample else ["--empty"]) + (["--of-bob"] if of_bob else [])
        self.log = open(folder / "simulators.log", "w")
        self.process = subprocess.Popen(
            [str(SIMULATORS), "--port-file", str(places), *arguments, *names],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        eventually(lambda: places.exists() or self.process.poll() is not None, "they started")
        assert places.exists(), (folder / "simulators.log").read_text()
        self.services = json.loads(places.read_text())
        self.machines = []
        self.gates = {cloud: Gate(self.services[cloud]["port"]) for cloud in names}

    def stop(self):
        self.process.terminate()
        self.process.wait(timeout=120)
        self.log.close()
        for gate in self.gates.values():
            gate.shut()

    def settings(self):
        """The settings that lead Oort to the simulators in place of the real hosts."""
        lines = []
        for cloud in self.names:
            if cloud == "nextcloud":
                continue  # a server of a person's own, whose address is the account's
            lines += [f"[{cloud}]", 'client_id = "test-client"']
            if cloud in ("drive", "box"):
                # Google and Box give programs a secret and insist on it.
                lines.append(f'client_secret_file = "{self.secret}"')
            lines.append(f"[{cloud}.endpoints]")
            for host in self.services[cloud]["hosts"]:
                port = self.gates[cloud].port
                lines.append(f'"{host}" = "http://127.0.0.1:{port}/{host}"')
        return "\n".join(lines) + "\n"

    def control(self, cloud, method, path, body=None):
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.services[cloud]['port']}/_oort/{path}", method=method,
            data=None if body is None else json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=300) as answer:
            return answer.read()

    def tree(self, cloud, hash="sha256"):
        """Every item of the account by path; without hashes ("none") it is faster."""
        return {item["path"]: item for item in self.items(cloud, hash)}

    def items(self, cloud, hash="sha256"):
        """Every item of the account; some services hold a path twice."""
        return json.loads(self.control(cloud, "GET", f"tree?hash={hash}"))

    def contents(self, cloud):
        """Every revision of every file, the trash's too: path, trashed, hashes."""
        return json.loads(self.control(cloud, "GET", "contents"))

    def weather(self, cloud, **weather):
        """Latency and bandwidth from now on; fair without a word."""
        self.control(cloud, "PUT", "weather", weather)

    def give_full_pages(self, cloud):
        """An enumeration has as many items on a page as were asked for: for who counts calls."""
        self.control(cloud, "PUT", "pages", {"full": True})

    def lose_sessions(self, cloud):
        self.control(cloud, "POST", "sessions/lose")

    def content(self, cloud, path):
        return self.control(cloud, "GET", "content?path=" + urllib.parse.quote(path))

    def edit(self, cloud, operation, path, **more):
        """Makes a change as another client."""
        answer = self.control(cloud, "POST", "edit", {"op": operation, "path": path, **more})
        return json.loads(answer)["id"]

    def edits(self, cloud, edits):
        """Many such changes; much faster than one by one."""
        self.control(cloud, "POST", "edits", edits)

    def tokens(self, cloud):
        return json.loads(self.control(cloud, "GET", "tokens"))

    def await_quiet(self, cloud, but=()):
        """Returns when no call came for half a second, but those of some routes."""

        def count():
            return {route: calls for route, calls in self.counts(cloud).items()
                    if route not in but}

        known, since = count(), time.monotonic()

        def is_quiet():
            nonlocal known, since
            now = count()
            if now != known:
                known, since = now, time.monotonic()
            return time.monotonic() - since > 0.5

        eventually(is_quiet, "the service is left alone")

    def traffic(self, cloud):
        """Of each route: calls, bytes_in and bytes_out."""
        return json.loads(self.control(cloud, "GET", "counts"))

    def counts(self, cloud):
        return {route: count["calls"] for route, count in self.traffic(cloud).items()}

    def calls(self, cloud):
        """The requests in order: route, method, bytes_in."""
        return json.loads(self.control(cloud, "GET", "calls"))

    def forget_calls(self, cloud):
        self.control(cloud, "DELETE", "calls")

    def fault(self, cloud, **rule):
        self.control(cloud, "POST", "faults", rule)

    def fault_counts(self, cloud):
        """How often each kind of fault happened."""
        return json.loads(self.control(cloud, "GET", "faults"))

    def conditions(self, cloud, **conditions):
        """What the service refuses in this account; without any, all is as usual again."""
        self.control(cloud, "PUT", "account", conditions)

    def secrets(self, cloud):
        """Every token, code, verifier and secret address that was handed out or shown."""
        return json.loads(self.control(cloud, "GET", "secrets"))

    def leaks(self):
        """Where on any machine a secret of any cloud is that must not be there."""
        secrets, addresses = set(), set()
        for cloud in self.names:
            for secret in self.secrets(cloud):
                is_address = secret.startswith(("v1e.", "AFiuUpl"))
                (addresses if is_address else secrets).add(secret.encode())
        secrets.add(self.secret.read_text().strip().encode())
        told = []
        for machine in self.machines:
            told += secrets_scan.leaks(machine, secrets, addresses)
        return told

    def no_faults(self, cloud):
        self.control(cloud, "DELETE", "faults")


class Machine:
    """One user's settings, state, cache and mount."""

    def __init__(self, folder, clouds, name="one"):
        self.folder = folder / name
        self.clouds = clouds
        self.kept_log = ""
        # What commands said and which arguments processes had: nothing secret may be in them.
        self.said = []
        self.processes = []
        clouds.machines.append(self)
        self.mount_point = self.folder / "clouds"
        self.state = self.folder / "state" / "oort"
        self.cache = self.folder / "cache" / "oort"
        self.environment = {
            **{k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")},
            "HOME": str(self.folder),
            "XDG_CONFIG_HOME": str(self.folder / "config"),
            "XDG_STATE_HOME": str(self.folder / "state"),
            "XDG_CACHE_HOME": str(self.folder / "cache"),
            "XDG_RUNTIME_DIR": str(self.folder / "run"),
            "DBUS_SESSION_BUS_ADDRESS": "unix:path=/nonexistent",
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.com",
            "GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@example.com",
            "LC_ALL": "C.UTF-8",
            # A catalog that has become something that it must never be ends the daemon.
            "OORT_CHECK_CATALOG": "1",
        }
        (self.folder / "config" / "oort").mkdir(parents=True)
        (self.folder / "run").mkdir(mode=0o700)
        self.write_settings('poll_interval = "1s"\nsettle = "200ms"\n' + clouds.settings())

    def write_settings(self, text):
        (self.folder / "config" / "oort" / "config.toml").write_text(text)

    def settings(self):
        return (self.folder / "config" / "oort" / "config.toml").read_text()

    def oort(self, *arguments, status=0, timeout=400, **more):
        """Runs a command of Oort's, which ends with this code; all that it says.

        What `oort status` found is no failure of it, unless a code is asked for.
        """
        result = self.run(str(OORT), *arguments, status=None, timeout=timeout, **more)
        self.said.append(result.stdout)
        if process := self.process:
            self.processes.append(secrets_scan.arguments(process))
        codes = STATUS_CODES if arguments[:1] == ("status",) and status == 0 else (status,)
        assert status is None or result.returncode in codes, (
            f"oort {' '.join(map(str, arguments))}: {result.returncode}\n{result.stdout}")
        return result.stdout

    def run(self, *arguments, status=0, timeout=400, **more):
        """Runs any program; fails on another exit code."""
        result = subprocess.run(
            [str(argument) for argument in arguments], env=self.environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout,
            errors="surrogateescape",
            **({"stdin": subprocess.DEVNULL} if "input" not in more else {}), **more)
        if status is not None:
            assert result.returncode == status, f"{arguments}: {result.returncode}\n{result.stdout}"
        return result

    def login(self, cloud, name=None):
        tokens = self.clouds.tokens(cloud)
        if cloud == "nextcloud":
            host = self.clouds.services[cloud]["hosts"][0]
            return self.oort(
                "login", cloud, f"http://127.0.0.1:{self.clouds.gates[cloud].port}/{host}", "--user",
                "ada@example.com", "--password-file", "-", *(["--name", name] if name else []),
                input=tokens["access_token"] + "\n")
        token_file = json.dumps({k: tokens[k] for k in ("access_token", "refresh_token")})
        arguments = ["--name", name] if name else []
        return self.oort("login", cloud, "--token-file", "-", *arguments, input=token_file)

    def mount(self, *flags):
        return self.oort("mount", str(self.mount_point), "--verbose", *flags)

    def unmount(self):
        return self.oort("unmount")

    def sync(self, path=None):
        return self.oort("sync", "--timeout", "300s", *([str(path)] if path else []))

    def status(self):
        return json.loads(self.oort("status", "--json"))

    def status_code(self):
        """What a script hears of `oort status`."""
        return self.run(OORT, "status", status=None).returncode

    def account(self, name):
        return next(a for a in self.status()["accounts"] if a["name"] == name)

    def ready(self, name):
        """Waits until the account's whole tree is known."""
        eventually(
            lambda: self.account(name)["state"] in ("up to date", "syncing", "needs attention", "paused"),
            f"{name} has read its tree", timeout=180)
        return self.mount_point / name

    @property
    def is_mounted(self):
        return bool(self.process) and alive(self.process)

    @property
    def process(self):
        try:
            return int((self.state / "lock").read_text().split("\n")[0])
        except (OSError, ValueError):
            return None

    def kill(self):
        """kill -9; the next mount removes the dead one."""
        process = self.process
        os.kill(process, signal.SIGKILL)
        eventually(lambda: not alive(process), "the killed mount is gone")

    def log(self):
        return self.kept_log + "".join(
            file.read_text(errors="replace") for file in sorted(self.state.glob("oort.log*")))

    def keep_log(self):
        """Before the disk that has it is taken away."""
        self.kept_log = self.log()

    def clean(self):
        process = self.process
        if process and alive(process):
            subprocess.run([str(OORT), "unmount"], env=self.environment, timeout=90,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            if alive(process):
                os.kill(process, signal.SIGKILL)
        subprocess.run(["fusermount3", "-u", "-z", "-q", str(self.mount_point)],
                       stderr=subprocess.DEVNULL)


def alive(process):
    try:
        return pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def remove(folder):
    shutil.rmtree(folder, ignore_errors=True)
