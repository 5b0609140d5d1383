"""The mount as a service: a systemd of the user's own starts it, watches it and starts it again."""

import os
import pathlib
import signal
import socket
import subprocess

import pytest

from machine import OORT, alive, eventually, read

SYSTEMD = pathlib.Path("/usr/lib/systemd/systemd")
CGROUPS = pathlib.Path("/sys/fs/cgroup")


class Session:
    """A systemd of the user's own, with a mount namespace and control groups apart from the machine's.

    Commands of the machine run in that namespace from then on.
    """

    # systemd starts for a user only where a systemd started the machine, and puts its units below
    # the control group that it is started in.
    BEGIN = r"""
        for root in /sys/fs/cgroup /sys/fs/cgroup/*; do
            [ -e "$root/cgroup.procs" ] || continue
            mkdir "$root/$GROUP" && echo $$ >"$root/$GROUP/cgroup.procs"
        done 2>/dev/null
        mkdir -p /run/systemd && mount -t tmpfs none /run/systemd && mkdir /run/systemd/system
        unset GROUP
        exec /usr/lib/systemd/systemd --user --log-target=null
    """

    def __init__(self, machine):
        self.machine = machine
        self.group = f"oort-test-{os.getpid()}-{machine.folder.parent.name}"
        run = pathlib.Path(machine.environment["XDG_RUNTIME_DIR"])
        self.log = open(machine.folder / "systemd.log", "w")
        self.process = subprocess.Popen(
            ["unshare", "--mount", "--propagation", "private", "bash", "-c", self.BEGIN],
            env={**machine.environment, "GROUP": self.group},
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        eventually((run / "systemd" / "private").exists, "systemd answers")
        self.outside = machine.run
        machine.run = self.run

    def run(self, *arguments, **more):
        return self.outside("nsenter", "-t", self.process.pid, "-m", *arguments, **more)

    def systemctl(self, *arguments, status=0):
        return self.run("systemctl", "--user", "--no-pager", *arguments, status=status).stdout

    def show(self, name):
        return self.systemctl("show", "--value", "-p", name, "oort.service").strip()

    @property
    def daemon(self):
        """The service's process; 0 while there is none."""
        return int(self.show("MainPID"))

    def is_mounted(self):
        return "Mounted at" in self.machine.oort("status", status=None).split("\n")[0]

    def end(self):
        self.machine.run = self.outside
        self.process.terminate()
        try:
            self.process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()
        for root in [CGROUPS, *CGROUPS.glob("*")]:
            for folder, _, _ in os.walk(root / self.group, topdown=False):
                try:
                    os.rmdir(folder)
                except OSError:
                    pass


@pytest.fixture
def session(machine):
    if not SYSTEMD.exists() or os.getuid() != 0:
        pytest.skip("no systemd is installed, or this is not root")
    session = Session(machine)
    yield session
    session.end()


@pytest.fixture
def desktop(machine):
    """Programs of a desktop on which each notice is clicked at once, and what that opens stays open."""
    folder = machine.folder / "desktop"
    folder.mkdir()
    (folder / "bus").touch()
    for name, words in {
            "notify-send": 'case "$*" in *--action=go*) echo go ;; esac',
            "xdg-open": f'echo "$DISPLAY $1" >>"{folder}/opened"\n'
                        '[ -n "$DISPLAY" ] || exit 3\n'
                        f'echo $$ >"{folder}/process"\nexec sleep 3600'}.items():
        (folder / name).write_text(f"#!/bin/sh\n{words}\n")
        (folder / name).chmod(0o755)
    machine.environment["PATH"] = f"{folder}:{os.environ['PATH']}"
    machine.environment["DBUS_SESSION_BUS_ADDRESS"] = f"unix:path={folder}/bus"
    yield folder
    if (folder / "process").exists():
        try:
            os.kill(int(read(folder / "process")), signal.SIGKILL)
        except ProcessLookupError:
            pass


def unit(machine):
    return machine.folder / "config" / "systemd" / "user" / "oort.service"


def test_the_service_mounts_and_comes_back_with_all_that_was_pending(machine, clouds, session):
    machine.login("dropbox")
    said = machine.oort("service", "install")
    assert "starts at each login" in said
    assert session.systemctl("is-enabled", "oort").strip() == "enabled"
    assert "Mounted at" in session.show("StatusText")
    machine.ready("dropbox")
    file = machine.mount_point / "dropbox" / "file.txt"

    # One mount for each user; a second one is refused, and the message names the first.
    said = machine.oort("mount", status=1)
    assert "as the service oort.service" in said and "oort service remove" in said, said

    clouds.gates["dropbox"].shut()
    session.run("sh", "-c", f"echo kept >{file}; sync {file}")
    first = session.daemon
    os.kill(first, signal.SIGKILL)
    eventually(lambda: session.daemon not in (0, first) and session.is_mounted(),
               "it was started again")
    clouds.gates["dropbox"].open()
    machine.sync()
    assert clouds.content("dropbox", "/file.txt") == b"kept\n"

    # Ended by a person it stays so.
    said = machine.oort("unmount")
    assert "next login" in said
    assert session.systemctl("is-active", "oort", status=3).strip() == "inactive"
    session.systemctl("start", "oort")
    assert session.run("cat", file).stdout == "kept\n"

    machine.oort("service", "remove")
    assert not unit(machine).exists() and not session.is_mounted()
    assert "No service" in machine.oort("service", "remove", status=1)


def test_what_a_click_opens_is_the_persons(machine, clouds, desktop, session):
    # systemd has a path of its own.
    session.systemctl("set-environment", f"PATH={machine.environment['PATH']}")
    machine.login("dropbox")
    machine.oort("service", "install")
    machine.ready("dropbox")
    clouds.conditions("dropbox", total_bytes=1000)
    place = machine.mount_point / "dropbox"
    session.run("sh", "-c", f"head -c 100000 /dev/zero >{place}/large")

    def opened():
        return (read(desktop / "opened") or "").splitlines()
    # The desktop begins after the service: until then a click shows nothing, and the notice comes again.
    eventually(lambda: f" {place}" in opened(), "a click opens nothing")
    session.systemctl("set-environment", "DISPLAY=:77")
    eventually(lambda: f":77 {place}" in opened(), "the notice comes again, and a click shows the folder")
    process = int(read(desktop / "process"))
    machine.oort("unmount")
    assert not session.is_mounted() and alive(process)
    session.systemctl("start", "oort")
    session.systemctl("restart", "oort")
    machine.oort("service", "remove")
    assert not session.is_mounted() and alive(process)


def test_the_unit_lies_where_systemd_looks(machine, session):
    own, other = unit(machine), machine.folder / "other"
    # A shell that names other folders than the session does.
    machine.environment["XDG_CONFIG_HOME"] = str(other)
    machine.oort("service", "install")
    assert session.show("FragmentPath") == str(own) and session.is_mounted()
    assert f'Environment="XDG_CONFIG_HOME={other}"' in own.read_text()
    machine.oort("service", "remove")
    # A unit that systemd takes first is named, and none is installed.
    first = own.parent.parent / "user.control" / own.name
    first.parent.mkdir()
    first.write_text("[Service]\nExecStart=/bin/true\n")
    said = machine.oort("service", "install", status=1)
    assert str(first) in said and not own.exists()
    assert not (other / "systemd").exists()


def test_a_daemon_that_hangs_is_replaced(machine, session):
    drop_in = unit(machine).parent / "oort.service.d" / "soon.conf"
    drop_in.parent.mkdir(parents=True)
    drop_in.write_text("[Service]\nWatchdogSec=6s\nWatchdogSignal=SIGKILL\n")
    machine.oort("service", "install")
    first = session.daemon
    os.kill(first, signal.SIGSTOP)
    eventually(lambda: session.daemon not in (0, first) and session.is_mounted(),
               "another one runs")
    assert not alive(first)


def test_the_service_waits_for_a_mount_that_runs_already(machine, session):
    machine.login("drive")
    machine.mount()
    said = machine.oort("service", "install")
    assert "next login" in said and "oort unmount" in said
    assert session.systemctl("is-active", "oort", status=3).strip() == "inactive"
    machine.oort("unmount")
    session.systemctl("start", "oort")
    assert session.is_mounted()
    machine.oort("service", "remove")


def test_without_a_systemd_it_says_so(machine):
    said = machine.oort("service", "install", status=1)
    assert "systemd" in said and "autostart" in said
    machine.environment["PATH"] = "/nonexistent"
    assert "no systemd" in machine.oort("service", "install", status=1)
    assert not unit(machine).exists()


@pytest.mark.parametrize("kind", ["path", "abstract"])
def test_the_manager_hears_of_the_beginning_and_the_end(machine, kind):
    manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    manager.settimeout(120)
    address = str(machine.folder / "notify")
    manager.bind("\0" + address if kind == "abstract" else address)
    machine.environment["NOTIFY_SOCKET"] = "@" + address if kind == "abstract" else address
    machine.environment["WATCHDOG_USEC"] = "300000"
    daemon = subprocess.Popen(
        [str(OORT), "mount", str(machine.mount_point), "--foreground"], env=machine.environment,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        words = []
        while sum("READY=1" in word for word in words) < 1 or words.count("WATCHDOG=1") < 3:
            words.append(manager.recv(4096).decode())
        assert machine.mount_point.is_mount()
        daemon.terminate()
        while "STOPPING=1" not in words[-1]:
            words.append(manager.recv(4096).decode())
        assert daemon.wait(timeout=120) == 0
    finally:
        daemon.kill()
        daemon.wait()
        manager.close()
