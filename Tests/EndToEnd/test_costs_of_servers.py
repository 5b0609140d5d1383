"""What ordinary acts cost at servers of a person's own: every request of an act is counted.

What a look for news asks is left out; docs/costs.md says it all in words.
"""

import os
import re
import shutil
import time
from collections import Counter
from urllib.parse import parse_qs, urlsplit

import pytest

from cloud_servers import CloudServer
from machine import eventually
from relay import FaultyRelay
from servers import Server

pytestmark = pytest.mark.clouds()

TREE = 30
FOLDERS = 40
KEYS = 2100
# For each act the requests that the server got, without those of a look for news.
ACTS = {
    # Apache, which heeds conditions and takes no modified times.
    "webdav": {
        "new": {"PROPFIND 0": 3, "PUT": 1, "MOVE": 1},
        "content": {"PROPFIND 0": 4, "PUT": 1, "MOVE": 1},
        "time": {},
        "folder": {"PROPFIND 0": 2, "MKCOL": 1},
        "copy": {"PROPFIND 0": 4, "COPY": 1},
        "move": {"PROPFIND 0": 1, "MOVE": 1},
        "delete": {"DELETE": 1},
        "move folder": {"PROPFIND 0": 2, "MOVE": 1},
        "rm -rf": {"DELETE": 1},
    },
    # OpenSSH, without its looks and without the closing of files and folders, which its log does not
    # distinguish; a deletion makes a folder in the trash, and the trash, too.
    "sftp": {
        "new": {"limits": 1, "open": 1, "write": 1, "fsetstat": 1, "fsync": 1,
                "rename": 1},
        "content": {"open": 1, "write": 1, "fsetstat": 1, "fsync": 1,
                    "posix-rename": 1},
        "time": {"setstat": 1},
        "folder": {"mkdir": 1},
        "copy": {"open": 2, "copy-data": 1, "fsetstat": 1, "rename": 1, "setstat": 1},
        "move": {"rename": 1},
        "delete": {"mkdir": 2, "rename": 1},
        "move folder": {"rename": 1},
        "rm -rf": {"mkdir": 2, "rename": 1},
    },
    # ProFTPD, without what begins a connection or a transfer, and without listings, with which it is
    # looked for news, too; a copy is sent anew.
    "ftp": {
        "new": {"MLST": 4, "MDTM": 2, "STOR": 1, "MFMT": 1, "RNFR": 1, "RNTO": 1},
        "content": {"MLST": 5, "STOR": 1, "MFMT": 1, "RNFR": 1, "RNTO": 1},
        "time": {"MLST": 3, "MFMT": 1},
        "folder": {"MLST": 1, "MKD": 1},
        "copy": {"MLST": 4, "MDTM": 2, "STOR": 1, "MFMT": 1, "RNFR": 1, "RNTO": 1},
        "move": {"MLST": 3, "MDTM": 1, "RNFR": 1, "RNTO": 1},
        "delete": {"MLST": 1, "MKD": 2, "SITE": 1, "CHMOD": 1, "RNFR": 1, "RNTO": 1},
        "move folder": {"MLST": 3, "MDTM": 1, "RNFR": 1, "RNTO": 1},
        "rm -rf": {"MLST": 2, "MKD": 2, "RNFR": 1, "RNTO": 1},
    },
    # Nextcloud, simulated.
    "nextcloud": {
        "new": {"PROPFIND 0": 1, "PUT": 1},
        "content": {"PROPFIND 0": 1, "PUT": 1},
        "time": {"PROPFIND 0": 2, "PROPPATCH": 1},
        "folder": {"PROPFIND 0": 1, "MKCOL": 1},
        "copy": {"PUT": 1, "PROPFIND 0": 1},
        "move": {"PROPFIND 0": 1, "MOVE": 1},
        "delete": {"DELETE": 1},
        "move folder": {"PROPFIND 0": 1, "MOVE": 1},
        "rm -rf": {"PROPFIND 0": 1, "DELETE": 1},
    },
    # SeaweedFS, which heeds conditions and has no folders to move. A time is a copy onto itself.
    "seaweedfs": {
        "new": {"PUT": 1},
        "content": {"PUT": 1},
        "time": {"HEAD": 2, "PUT": 1},
        "folder": {"HEAD": 1, "PUT": 1},
        "copy": {"PUT": 1},
        "move": {"HEAD": 1, "PUT": 1, "DELETE": 1},
        "delete": {"DELETE": 1},
        # A look, a copy and a deletion of each file, and the folder's marker.
        "move folder": {"HEAD": TREE + 2, "PUT": TREE + 1, "LIST folder": 2, "DELETE": TREE + 1},
        # All keys by one request, and the marker.
        "rm -rf": {"HEAD": 1, "LIST folder": 3, "POST": 1, "DELETE": 1},
    },
}


class CountingRelay(FaultyRelay):
    """Counts the requests of acts by their methods."""

    def __init__(self, target):
        super().__init__(target)
        self.public = self.port
        self.requests = Counter()

    def forward(self, handler):
        query = parse_qs(urlsplit(handler.path).query)
        name = handler.command
        if name == "PROPFIND":
            name += " " + handler.headers.get("Depth", "")
            if handler.path.rstrip("/").endswith("/files/ada"):
                name += " of all"
        elif "delete" in query:
            name = "DELETE many"
        elif "list-type" in query:
            name = "LIST folder" if "delimiter" in query else "LIST"
        with self.lock:
            self.requests[name] += 1
        super().forward(handler)


class Web:
    """Apache or SeaweedFS, behind a port that counts."""

    # A look for news lists folders, or everything.
    NEWS = {"webdav": {"PROPFIND 1"}, "seaweedfs": {"LIST"}}

    def __init__(self, kind, folder):
        self.kind = kind
        self.server = Server(kind, folder)
        if kind == "seaweedfs":
            self.server.make_bucket()
        self.relay = CountingRelay(self.server.port)
        self.server.door = self.relay.port
        if kind == "seaweedfs":
            self.relay.public = None

    def login(self, machine):
        self.server.login(machine)

    def forget(self):
        self.relay.requests.clear()

    def cost(self):
        return {name: count for name, count in self.relay.requests.items()
                if name not in self.NEWS[self.kind]}

    def listings(self):
        return sum(self.relay.requests[name] for name in self.NEWS[self.kind])

    def stop(self):
        self.server.stop()
        self.relay.shut()


class Cloud:
    """A Nextcloud, simulated, behind a port that counts."""

    # A look for news asks the folder of all files, as the room of the account is asked for, and lists.
    NEWS = {"PROPFIND 0 of all", "PROPFIND 1 of all", "PROPFIND 1"}

    def __init__(self, folder):
        self.kind = "nextcloud"
        self.server = CloudServer("nextcloud", folder)
        self.relay = CountingRelay(urlsplit(self.server.base).port)

    def login(self, machine):
        machine.oort(
            "login", "nextcloud", f"http://127.0.0.1:{self.relay.port}/cloud.example.org", "--user",
            "ada@example.com", "--password-file", "-", input=self.server.password() + "\n")

    def forget(self):
        self.relay.requests.clear()

    def cost(self):
        return {name: count for name, count in self.relay.requests.items() if name not in self.NEWS}

    def listings(self):
        return self.relay.requests["PROPFIND 1"] + self.relay.requests["PROPFIND 1 of all"]

    def stop(self):
        self.server.stop()
        self.relay.shut()


class Files:
    """ProFTPD, which writes down each command."""

    # What begins a connection or a transfer.
    SESSION = {"AUTH", "USER", "PASS", "PBSZ", "PROT", "FEAT", "OPTS", "PWD", "TYPE", "EPSV", "PASV", "CWD",
               "QUIT", "SYST", "CLNT", "NOOP", "HOST"}
    # A look for news lists folders.
    NEWS = {"MLSD"}

    def __init__(self, folder):
        self.kind = "ftp"
        self.server = Server("ftp", folder)
        self.log = self.server.folder / "commands"
        self.begin = 0

    def login(self, machine):
        self.server.login(machine)

    def forget(self):
        self.begin = self.log.stat().st_size if self.log.exists() else 0

    def requests(self):
        with open(self.log, errors="replace") as log:
            log.seek(self.begin)
            return Counter(log.read().split())

    def cost(self):
        return {name: count for name, count in self.requests().items()
                if name not in self.SESSION | self.NEWS}

    def listings(self):
        return self.requests()["MLSD"]

    def stop(self):
        self.server.stop()


class Shell:
    """OpenSSH, whose SFTP server writes down each request."""

    LOOKS = {"lstat", "stat", "opendir", "readdir", "close", "closedir", "statvfs", "readlink", "realpath"}

    def __init__(self, folder, options="", has_shell=True):
        self.kind = "sftp"
        self.log = folder / "sftp.log"
        program = f"/usr/lib/openssh/sftp-server -e -l DEBUG3 {options} 2>>{self.log}"
        self.server = Server(
            "sftp", folder, subsystem=program if has_shell else f"{program}\nForceCommand {program}")
        self.begin = 0

    def login(self, machine):
        self.server.login(machine)

    def forget(self):
        self.begin = self.log.stat().st_size if self.log.exists() else 0

    def requests(self):
        with open(self.log, errors="replace") as log:
            log.seek(self.begin)
            text = log.read()
        names = re.findall(r"request \d+: ([a-z-]+)", text)
        return Counter(name for name in names if name != "sent")

    def cost(self):
        return {name: count for name, count in self.requests().items() if name not in self.LOOKS}

    def listings(self):
        return self.requests()["opendir"]

    def stop(self):
        self.server.stop()


@pytest.fixture(params=["webdav", "nextcloud", "sftp", "ftp", "seaweedfs"])
def server(request, folder):
    makers = {"nextcloud": Cloud, "sftp": Shell, "ftp": Files,
              "sftp without a shell": lambda folder: Shell(folder, has_shell=False)}
    maker = makers.get(request.param)
    server = maker(folder) if maker else Web(request.param, folder)
    yield server
    server.stop()


@pytest.fixture
def drive(machine, server):
    machine.write_settings('poll_interval = "1h"\nsettle = "1h"\n')
    server.login(machine)
    machine.mount()
    drive = machine.ready("s3" if server.kind == "seaweedfs" else server.kind)
    (drive / "here").mkdir()
    (drive / "there").mkdir()
    machine.sync()
    return drive


@pytest.fixture
def old_sftp(folder):
    """OpenSSH as it was before it had copies of its own."""
    server = Shell(folder, "-P copy-data")
    yield server
    server.stop()


def test_a_copy_sends_no_bytes_where_a_shell_makes_it(machine, old_sftp):
    server = old_sftp
    server.login(machine)
    machine.mount()
    drive = machine.ready("sftp")
    content = os.urandom(3 << 20)
    (drive / "a film").write_bytes(content)
    machine.sync()
    server.forget()
    machine.run("cp", drive / "a film", drive / "it's a copy")
    machine.sync()
    assert (server.server.root / "it's a copy").read_bytes() == content
    assert server.requests()["write"] == 0
    assert server.requests()["rename"] == 1


def test_acts(machine, server, drive, folder):
    def cost(act):
        act()
        server.forget()
        machine.oort("sync", "--timeout", "300s", timeout=320)
        return server.cost()

    here, there = drive / "here", drive / "there"
    found = {}
    found["new"] = cost(lambda: (here / "file").write_text("new"))
    found["content"] = cost(lambda: (here / "file").write_text("another content"))
    found["time"] = cost(lambda: os.utime(here / "file", (1_600_000_000,) * 2))
    found["folder"] = cost(lambda: (here / "folder").mkdir())
    found["copy"] = cost(lambda: shutil.copyfile(here / "file", here / "copy"))
    found["move"] = cost(lambda: os.rename(here / "copy", there / "moved"))
    # Apache's tag of a file says nothing in the file's first second.
    eventually(lambda: time.time() - (there / "moved").stat().st_mtime > 2, "the file is old")
    found["delete"] = cost(lambda: (there / "moved").unlink())

    def fill():
        for number in range(TREE):
            (here / "folder" / f"file {number}").write_text(f"{number}")
    fill()
    machine.sync()
    found["move folder"] = cost(lambda: os.rename(here / "folder", there / "folder"))
    found["rm -rf"] = cost(lambda: shutil.rmtree(there / "folder"))
    assert found == ACTS[server.kind]


@pytest.mark.parametrize("server", ["webdav", "sftp without a shell", "ftp"], indirect=True)
def test_the_first_look_lists_each_folder_once(machine, server):
    make_folders(server)
    assert first_look(machine, server) == 1 + 2 * FOLDERS


@pytest.mark.parametrize("server", ["sftp"], indirect=True)
def test_the_first_look_by_a_shell_lists_each_depth_at_once(machine, server):
    """SFTP itself lists the account's folder alone, and asks for the attributes of the others."""
    make_folders(server)
    assert first_look(machine, server) == 1
    requests = server.requests()
    assert requests["lstat"] == 1 + 2 * FOLDERS and requests["readdir"] == 2
    shown = sorted(path.relative_to(machine.mount_point / "sftp")
                   for path in (machine.mount_point / "sftp").rglob("*"))
    assert shown == sorted(path.relative_to(server.server.files) for path in server.server.files.rglob("*"))


def make_folders(server):
    for number in range(FOLDERS):
        folder = server.server.files / f"folder {number}" / "in it"
        folder.mkdir(parents=True)
        (folder / "file").write_text("x")


@pytest.mark.parametrize("server", ["seaweedfs"], indirect=True)
def test_the_first_look_at_a_bucket_is_a_page_for_each_thousand_keys(machine, server):
    for number in range(KEYS):
        server.server.ask("PUT", f"folder {number % 50}/file {number}", b"x")
    # And one that says whether the bucket is there.
    assert first_look(machine, server) == 1 + -(-KEYS // 1000)


@pytest.mark.parametrize("server", ["nextcloud"], indirect=True)
def test_a_poll_of_a_nextcloud_is_one_request_and_a_change_one_for_each_folder_above(machine, server):
    for number in range(FOLDERS):
        path = ["deep", f"folder {number}", "file"]
        server.server.control("POST", "edit", {"op": "write", "path": path, "text": "x"})
    first_look(machine, server, poll="1s")

    def polls(count):
        server.forget()
        eventually(
            lambda: server.relay.requests["PROPFIND 0 of all"] >= count, f"{count} polls")
        return set(server.relay.requests) == {"PROPFIND 0 of all"}
    eventually(lambda: polls(3), "polls ask for one tag only")
    server.forget()
    path = ["deep", "folder 7", "file"]
    server.server.control("POST", "edit", {"op": "write", "path": path, "text": "longer"})
    note = machine.mount_point.joinpath("nextcloud", *path)
    eventually(lambda: note.stat().st_size == 6, "the change shows")
    # The folder of all files, `deep` and the one that has it.
    assert server.listings() == 3


@pytest.mark.parametrize("server", ["sftp"], indirect=True)
def test_a_poll_of_unchanged_folders_asks_each_for_its_time_and_lists_none(machine, server):
    for number in range(FOLDERS):
        (server.server.files / f"folder {number}" / "in it").mkdir(parents=True)
    first_look(machine, server, poll="1s")
    count = 1 + 2 * FOLDERS

    def is_quiet():
        # A folder of a new time is listed once more with the next poll.
        server.forget()
        eventually(lambda: server.requests()["lstat"] >= 2 * count, "two polls")
        return not server.listings() and not server.cost()
    eventually(is_quiet, "nothing is listed")


def first_look(machine, server, poll="1h"):
    """Mounts an account for the first time; how often the server listed something."""
    machine.write_settings(f'poll_interval = "{poll}"\nsettle = "1h"\n')
    server.login(machine)
    server.forget()
    machine.mount()
    machine.ready("s3" if server.kind == "seaweedfs" else server.kind)
    return server.listings()
