"""Bad days of servers of a person's own, while they are mounted: what is wrong is reported in words, what was
written here stays here and goes up once the trouble ends, without a restart; no call is without an end.

One mount has an account at each kind of server, and each test is one trouble of several at once.
"""

import copy
import json
import os
import pathlib
import re
import shutil
import ssl
import subprocess
import tempfile
import urllib.parse
from xml.etree import ElementTree

import pytest

from machine import OORT, Clouds, Gate, Machine, eventually, remove
from relay import Cut, FaultyRelay
from servers import KEYS, Server
from strangers import PORTAL, Stranger, certificate
from test_bad_sign_ins import decent

pytestmark = pytest.mark.skipif(
    os.getuid() != 0, reason="only root has a disk of its own for each server")

HTTP = ["webdav", "nextcloud", "s3", "box"]
KINDS = [*HTTP, "sftp", "ftp"]
WRITES = {"PUT", "POST", "DELETE", "MKCOL", "MOVE", "COPY", "PROPPATCH"}
SECRETS = ["secret\n", KEYS["secret_access_key"]]


class BadRelay(FaultyRelay):
    """A relay, encrypted where it has a certificate, whose rule may answer in the server's place."""

    def __init__(self, target, pem=None, public=False):
        super().__init__(target)
        if public:
            self.public = self.port
        # Takes a handler and a request's body; whether it has answered.
        self.rule = None
        self.context = None
        if pem is not None:
            self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.context.load_cert_chain(pem)
            # Who goes on with an earlier session is shown no certificate.
            self.context.num_tickets = 0
            self.context.options |= ssl.OP_NO_TICKET
            self.server.socket = self.context.wrap_socket(
                self.server.socket, server_side=True, do_handshake_on_connect=False)

    def named(self, name, value):
        return super().named(name, value).replace(
            f"https://127.0.0.1:{self.target}", f"http://127.0.0.1:{self.target}")

    def forward(self, handler):
        # Whatever becomes of the next request does so at once.
        handler.close_connection = True
        if self.rule is None:
            return super().forward(handler)
        body = self.body_of(handler)
        if not self.rule(handler, body):
            answer, data = self.ask(handler, body)
            self.give(handler, answer.status, answer.getheaders(), data)


class Town:
    """A machine with an account at each kind of server, each behind something that can go wrong."""

    def __init__(self, folder):
        self.folder = folder
        self.clouds = Clouds(folder, names=["nextcloud", "box"])
        self.right = certificate(folder / "right.pem")
        self.expired = certificate(folder / "expired.pem", days=(-30, -1))
        self.machine = Machine(folder, self.clouds)
        self.disks = []
        self.servers = {kind: self.serve(kind) for kind in ("webdav", "sftp", "ftp", "s3")}
        self.relays = {}
        for kind in ("nextcloud", "box"):
            self.clouds.gates[kind].shut()
            self.relays[kind] = self.clouds.gates[kind] = BadRelay(self.clouds.services[kind]["port"])
        for kind in ("webdav", "s3"):
            port = self.servers[kind].port
            self.relays[kind] = BadRelay(port, self.right, public=kind == "webdav")
        for kind in ("sftp", "ftp"):
            self.relays[kind] = Gate(self.servers[kind].port)
            self.servers[kind].door = self.relays[kind].port
        trusted = [self.right, self.expired, self.servers["ftp"].folder / "cert.pem"]
        (folder / "trusted.pem").write_bytes(b"".join(file.read_bytes() for file in trusted))
        self.machine.write_settings(
            f'poll_interval = "1s"\nsettle = "100ms"\nca_file = "{folder}/trusted.pem"\n'
            + self.clouds.settings())

    def serve(self, kind):
        """A server whose files lie on a small disk, in the folder `part`."""
        if kind != "s3":
            place = self.folder / f"server-{kind}" / "root"
            disk = self.folder / f"disk-{kind}"
            disk.mkdir()
            subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "oort-test", disk], check=True)
            self.disks.append(disk)
        server = Server(kind, self.folder)
        if kind != "s3":
            subprocess.run(["mount", "--bind", disk, place], check=True)
            self.disks.append(place)
            place.chmod(0o777)
            (place / "part").mkdir()
            if kind == "webdav":
                shutil.chown(place / "part", "www-data", "www-data")
                place.chmod(0o777)
        return server

    def sign_in(self, kind):
        machine, server = self.machine, self.servers.get(kind)
        if kind in ("nextcloud", "box"):
            if kind == "nextcloud":
                self.clouds.edit(kind, "write", "/part/first", text="first")
                host = self.clouds.services[kind]["hosts"][0]
                token = self.clouds.tokens(kind)["access_token"]
                return machine.oort(
                    "login", kind, f"http://127.0.0.1:{self.relays[kind].port}/{host}", "--user",
                    "ada@example.com", "--root", "part", "--password-file", "-", "--name", kind,
                    input=token + "\n")
            return machine.login(kind, kind)
        place = f"127.0.0.1:{self.relays[kind].port}"
        match kind:
            case "webdav":
                return machine.oort("login", kind, f"https://{place}/part/", "--user", "ada",
                                    "--password-file", "-", "--name", kind, input="secret\n")
            case "s3":
                return machine.oort("login", kind, "bucket/part", "--endpoint", f"https://{place}",
                                    "--path-style", "--key-file", "-", "--name", kind,
                                    input=json.dumps(KEYS))
            case "ftp":
                return machine.oort("login", kind, f"ada@{place}{server.root}/part",
                                    "--password-file", "-", "--name", kind, input="secret\n")
            case "sftp":
                self.know_host()
                return machine.oort(
                    "login", kind, f"{place}{server.root}/part", "--identity",
                    server.folder / "user", "--ssh-option",
                    f"UserKnownHostsFile={server.folder}/known", "--ssh-option",
                    "GlobalKnownHostsFile=/dev/null", "--ssh-option", "IdentityAgent=none",
                    "--name", kind)

    def know_host(self):
        server = self.servers["sftp"]
        (server.folder / "known").write_text(
            f"[127.0.0.1]:{self.relays['sftp'].port} {(server.folder / 'host.pub').read_text()}")

    def drive(self, kind):
        return self.machine.mount_point / kind

    def account(self, kind):
        return self.machine.account(kind)

    def content(self, kind, name):
        """What the server has of a file; None where it has none."""
        if kind in ("nextcloud", "box"):
            place = f"/part/{name}" if kind == "nextcloud" else f"/{name}"
            if place not in self.clouds.tree(kind, "none"):
                return None
            return self.clouds.content(kind, place)
        try:
            return (self.servers[kind].files / "part" / name).read_bytes()
        except OSError:
            return None

    def write(self, kind, name, text):
        """Writes a file as another client."""
        match kind:
            case "nextcloud":
                self.clouds.edit(kind, "write", f"/part/{name}", text=text)
            case "box":
                self.clouds.edit(kind, "write", f"/{name}", text=text)
            case _:
                place = self.servers[kind].files / "part" / name
                place.write_text(text)
                if kind == "webdav":
                    shutil.chown(place, "www-data", "www-data")

    def cut(self, kind):
        """Ends the connections that there are."""
        gate = self.relays[kind]
        gate.shut()
        gate.connections.clear()
        gate.open()
        self.servers[kind].cut()

    def restart(self, kind):
        """Restarts a server that is no HTTP; it gets no request meanwhile."""
        self.relays[kind].shut()
        self.servers[kind].stop()
        self.servers[kind].start()
        self.relays[kind].open()

    def stop(self):
        self.machine.clean()
        for relay in self.relays.values():
            relay.shut()
        for server in self.servers.values():
            server.stop()
        self.clouds.stop()
        for disk in reversed(self.disks):
            subprocess.run(["umount", "-l", disk], check=False)


@pytest.fixture(scope="module")
def town():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="oort-e2e-", dir="/tmp"))
    town = Town(folder)
    try:
        for kind in KINDS:
            town.sign_in(kind)
        town.machine.mount()
        for kind in KINDS:
            for file in ("kept", "edited"):
                (town.machine.ready(kind) / file).write_text(file)
            (town.drive(kind) / "folder").mkdir()
            (town.drive(kind) / "folder" / "inner").write_text("inner")
        for kind in KINDS:
            town.machine.sync(town.drive(kind))
        yield town
        log = town.machine.log()
    finally:
        town.stop()
        remove(folder)
    for word in ("Fatal error", "Illegal instruction", "Segmentation fault"):
        assert word not in log, log[-3000:]
    decent("\n".join(re.sub(r"\\u\{\w+\}", "", log).splitlines()), KEYS["secret_access_key"])


def show(*words):
    if os.environ.get("OORT_SHOW"):
        print(*words)


def endure(town, name, begin, end, says, may_arrive=False):
    """Has several accounts live through a trouble: `says` has the words of each, `begin` and `end` take
    the kind."""
    kinds = list(says)
    machine = town.machine
    for kind in kinds:
        begin(kind)
    try:
        for kind in kinds:
            (town.drive(kind) / name).write_text(f"{name} of {kind}")
            (town.drive(kind) / "edited").write_text(f"edited in {name} of {kind}")
        for kind in kinds:
            told = ""

            def is_told():
                nonlocal told
                told = machine.oort("sync", "--timeout", "1s", town.drive(kind),
                                    status=None if may_arrive else 1)
                told += town.account(kind).get("trouble", "")
                return re.search(says[kind], told, re.I)
            try:
                # Where the look for news met it first, nothing goes out, and nothing is reported before the
                # second look at a password, a minute later.
                eventually(is_told, f"{kind} tells", timeout=100)
            finally:
                show(f"---- {name}, {kind}:\n{told}{json.dumps(town.account(kind), indent=1)[:1500]}")
            for secret in SECRETS:
                decent(told or "nothing", secret)
            # What is here is here, and no call is without an end.
            assert (town.drive(kind) / "kept").read_text() == "kept"
            assert (town.drive(kind) / name).read_text() == f"{name} of {kind}"
            assert (town.drive(kind) / "edited").read_text() == f"edited in {name} of {kind}"
            assert (town.drive(kind) / "folder" / "inner").read_text() == "inner"
            assert {"kept", name, "folder"} <= set(os.listdir(town.drive(kind)))
            assert may_arrive or town.content(kind, name) is None
    finally:
        for kind in kinds:
            end(kind)
    for kind in kinds:
        eventually(lambda: machine.run(OORT, "sync", "--timeout", "20s", town.drive(kind), status=None)
                   .returncode == 0, f"{kind} works again", timeout=60)
        wanted = f"{name} of {kind}".encode()
        eventually(lambda: town.content(kind, name) == wanted, f"{kind} has it", timeout=20)
        eventually(lambda: town.content(kind, "edited") == b"edited in " + wanted,
                   f"{kind} has the edit", timeout=20)
        assert (town.drive(kind) / "kept").read_text() == "kept"
        account = town.account(kind)
        assert account["state"] == "up to date" and "trouble" not in account, account
        assert account["conflicts"] == []


def ruled(town, rule):
    """A trouble in which a rule answers in place of the servers that speak HTTP."""
    def begin(kind):
        town.relays[kind].rule = lambda handler, body: rule(town.relays[kind], kind, handler, body)

    def end(kind):
        town.relays[kind].rule = None
    return begin, end


# How each kind says no to a write.
XML, JSON, TEXT = "application/xml", "application/json", "text/plain"
SABRE = ('<?xml version="1.0"?><d:error xmlns:d="DAV:" xmlns:s="http://sabredav.org/ns">'
         "<s:exception>Sabre\\DAV\\Exception\\{}</s:exception><s:message>{}</s:message></d:error>")
STORE = "<Error><Code>{}</Code><Message>{}</Message></Error>"
READ_ONLY = {
    "nextcloud": (403, XML, SABRE.format("Forbidden", "The folder is read-only.")),
    "s3": (403, XML, STORE.format("AccessDenied", "Access Denied")),
    "box": (403, JSON, '{"type": "error", "status": 403, "code": "access_denied_insufficient_permissions",'
                       ' "message": "Access denied - insufficient permission"}')}
FULL = {
    "nextcloud": (507, XML, SABRE.format("InsufficientStorage", "Insufficient space")),
    "s3": (507, XML, STORE.format("QuotaExceeded", "The bucket is full.")),
    "box": (403, JSON, '{"type": "error", "status": 403, "code": "storage_limit_exceeded",'
                       ' "message": "Account storage limit reached"}')}


def refusing(answers):
    """A rule that refuses each write, as the kind does."""
    def rule(relay, kind, handler, body):
        if handler.command not in WRITES or "token" in handler.path:
            return False
        status, mime, text = answers[kind]
        relay.give(handler, status, [("Content-Type", mime)], text.encode())
        return True
    return rule


def either(town, others, rule):
    """A trouble that a rule makes where it is HTTP, and a function of the kind and of whether it begins
    elsewhere."""
    begin_http, end_http = ruled(town, rule)
    kinds = set(others[0])

    def begin(kind):
        others[1](kind, True) if kind in kinds else begin_http(kind)

    def end(kind):
        others[1](kind, False) if kind in kinds else end_http(kind)
    return begin, end


def test_a_captive_portal(town):
    stranger = Stranger("portal")

    def elsewhere(kind, begins):
        town.relays[kind].target = stranger.port if begins else town.servers[kind].port
        town.cut(kind)

    def rule(relay, kind, handler, body):
        relay.give(handler, 200, [("Content-Type", "text/html")], PORTAL)
        return True
    try:
        endure(town, "portal", *either(town, (["sftp", "ftp"], elsewhere), rule),
               {"webdav": "log in first", "nextcloud": "log in first|other bytes|waits its turn",
                "s3": "log in first", "box": "log in first",
                **{kind: "cannot be reached" for kind in ["sftp", "ftp"]}})
    finally:
        stranger.stop()


def test_a_portal_that_sends_elsewhere(town):
    def rule(relay, kind, handler, body):
        relay.give(handler, 302, [("Location", "http://portal.invalid/login")], b"")
        return True
    endure(town, "redirect", *ruled(town, rule), {kind: "log in first" for kind in HTTP})


def test_a_portal_that_finds_nothing(town):
    def rule(relay, kind, handler, body):
        relay.give(handler, 404, [("Content-Type", "text/html")], PORTAL)
        return True
    endure(town, "404", *ruled(town, rule), {kind: "2 changes did not reach" for kind in HTTP})


def test_answers_that_break_off(town):
    def rule(relay, kind, handler, body):
        answer, data = relay.ask(handler, body)
        if len(data) % 2:
            handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Le")
            raise Cut
        relay.give(handler, answer.status, answer.getheaders(), data + b"  ", len(data) // 2)
        return True
    # What arrived is no trouble, although its answer did not.
    endure(town, "broken", *ruled(town, rule), {kind: "" for kind in HTTP}, may_arrive=True)


def test_answers_without_an_end(town):
    def rule(relay, kind, handler, body):
        handler.send_response_only(207 if kind in ("webdav", "nextcloud") else 200)
        if len(handler.path) % 2:
            while True:
                handler.send_header("X-More", "x" * 1000)
                handler.flush_headers()
        handler.send_header("Content-Type", JSON if kind == "box" else XML)
        handler.end_headers()
        while True:
            handler.wfile.write(b" " * 65536)
    endure(town, "endless", *ruled(town, rule), {kind: "did not reach" for kind in HTTP})


DAV = "{DAV:}"
# Stores of S3 write its names without a prefix.
ElementTree.register_namespace("", "http://s3.amazonaws.com/doc/2006-03-01/")
BAD_NAMES = ["nul\0x", "a/b", "..", "esc\x1b[2Jx", "n" * 5000]
BAD_SIZES = ["-1", "99999999999999999999999", "many", "9223372036854775807"]
BAD_DATES = ["Sat, 01 Jan 0000 00:00:00 GMT", "Fri, 31 Dec 9999 23:59:59 GMT", "never"]


def with_bad_entries(kind, data):
    """A listing in which beside what is there lies what cannot be."""
    if kind == "box":
        value = json.loads(data)
        entries = value.get("entries") if isinstance(value, dict) else None
        kept = next((each for each in entries or [] if isinstance(each, dict)
                     and each.get("name") == "kept"), None)
        if kept is None:
            return data
        entries += [{**kept, "id": f"99{number}", "name": name}
                    for number, name in enumerate(BAD_NAMES)]
        entries += [{**kept, "id": f"98{number}", "name": f"size {number}", "size": size}
                    for number, size in enumerate([-1, 2**63 - 1, 1e300])]
        entries += [{**kept, "id": f"97{number}", "name": f"date {number}", "modified_at": date}
                    for number, date in enumerate(["0000-01-01T00:00:00Z", "9999-12-31T23:59:59Z"])]
        return json.dumps(value).encode()
    root = ElementTree.fromstring(data)
    for entry in list(root):
        place = entry.find(f"{DAV}href") if kind != "s3" else next(
            (each for each in entry if each.tag.endswith("Key")), None)
        if place is None or not (place.text or "").endswith("kept"):
            continue
        before = place.text.removesuffix("kept")

        def add(where, tag=None, text=None):
            twin = copy.deepcopy(entry)
            for each in twin.iter():
                if each.tag == place.tag:
                    each.text = where
                elif tag is not None and each.tag.endswith(tag):
                    each.text = text
            root.append(twin)
        for name in BAD_NAMES:
            quoted = urllib.parse.quote(name, safe="")
            add(before + (quoted if kind != "s3" or "\0" in name or "\x1b" in name else name))
        if kind != "s3":
            add("http://elsewhere.example.org/part/kept 2")
            add("/elsewhere/kept")
            add("%zz")
        # A store's listing that has no size of an object is none: nothing is believed of it.
        for number, size in enumerate(BAD_SIZES if kind != "s3" else []):
            add(f"{before}size{number}", "getcontentlength", size)
        for number, date in enumerate(BAD_DATES):
            add(f"{before}date{number}", "LastModified" if kind == "s3" else "getlastmodified", date)
    return ElementTree.tostring(root)


def test_listings_with_entries_that_cannot_be(town):
    """The others show and work, and nothing that is there goes."""
    machine = town.machine

    def rule(relay, kind, handler, body):
        answer, data = relay.ask(handler, body)
        mime = answer.headers.get("Content-Type", "")
        if answer.status < 300 and ("json" in mime or "xml" in mime) and b"kept" in data:
            data = with_bad_entries(kind, data)
        relay.give(handler, answer.status, answer.getheaders(), data)
        return True
    begin, end = ruled(town, rule)
    for kind in HTTP:
        begin(kind)
    try:
        for kind in HTTP:
            town.write(kind, "theirs", "theirs")
        for kind in HTTP:
            (town.drive(kind) / "mine").write_text("mine")
            eventually(lambda: (town.drive(kind) / "theirs").exists(), f"{kind} shows it", timeout=40)
            machine.run("ls", "-lR", town.drive(kind))
            for name in ["kept", "folder/inner", "mine"]:
                assert (town.drive(kind) / name).read_text() == name.split("/")[-1]
            assert (town.drive(kind) / "theirs").read_text() == "theirs"
            show(kind, sorted(os.listdir(town.drive(kind))))
    finally:
        for kind in HTTP:
            end(kind)
    for kind in HTTP:
        machine.sync(town.drive(kind))
        assert town.content(kind, "mine") == b"mine"


def test_who_may_only_read(town):
    def disk(kind, begins):
        place = town.folder / f"server-{kind}" / "root"
        subprocess.run(["mount", "-o", f"remount,bind,{'ro' if begins else 'rw'}", place], check=True)
    endure(town, "read-only", *either(town, (["webdav", "sftp", "ftp"], disk), refusing(READ_ONLY)),
           {**{kind: "may not do this: ask the owner" for kind in KINDS},
            # What Apache says of it is a fault of its own.
            "webdav": "it is asked what it did"})


def test_who_is_full(town):
    def disk(kind, begins):
        ballast = town.folder / f"disk-{kind}" / "ballast"
        if not begins:
            return ballast.unlink()
        with open(ballast, "wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(4096))
            except OSError:
                pass
    endure(town, "full", *either(town, (["webdav", "sftp", "ftp"], disk), refusing(FULL)),
           {kind: "account is full: make room" for kind in KINDS})


def test_the_folder_of_the_account_is_renamed(town):
    def rename(kind, begins):
        names = ("part", "elsewhere") if begins else ("elsewhere", "part")
        if kind == "nextcloud":
            town.clouds.edit(kind, "move", f"/{names[0]}", to=f"/{names[1]}")
        else:
            root = town.servers[kind].root
            (root / names[0]).rename(root / names[1])
    kinds = ["webdav", "nextcloud", "sftp", "ftp"]
    endure(town, "renamed", lambda kind: rename(kind, True), lambda kind: rename(kind, False),
           {**{kind: "the folder where the account begins is not there" for kind in kinds},
            # Whichever look comes first: at the account, or at the folder that is to hold the file.
            "sftp": "where the account begins cannot be found: No|the account's folder is not there",
            "ftp": "the account's folder .*is not there"})


def test_a_certificate_ends(town):
    def swap(kind, begins):
        if kind != "ftp":
            return town.relays[kind].context.load_cert_chain(town.expired if begins else town.right)
        server = town.servers["ftp"]
        if begins:
            for name in ("cert.pem", "key.pem"):
                shutil.move(server.folder / name, server.folder / f"kept-{name}")
                shutil.copy(town.expired, server.folder / name)
                (server.folder / name).chmod(0o600)
        else:
            for name in ("cert.pem", "key.pem"):
                shutil.move(server.folder / f"kept-{name}", server.folder / name)
        town.restart(kind)
    kinds = ["webdav", "s3", "ftp"]
    endure(town, "certificate", lambda kind: swap(kind, True), lambda kind: swap(kind, False),
           {kind: "certificate.*expired" for kind in kinds})


def test_a_host_key_changes(town):
    server = town.servers["sftp"]

    def swap(kind, begins):
        for name in ("host", "host.pub"):
            if begins:
                shutil.move(server.folder / name, server.folder / f"kept-{name}")
            else:
                shutil.move(server.folder / f"kept-{name}", server.folder / name)
        town.restart(kind)
    endure(town, "host key", lambda kind: swap(kind, True), lambda kind: swap(kind, False),
           {"sftp": "not the one that is known"})


def test_a_password_changes(town):
    def swap(kind, begins):
        server = town.servers.get(kind)
        match kind:
            case "nextcloud" | "box":
                if begins:
                    town.clouds.control(kind, "POST", "tokens/revoke")
            case "webdav":
                other(server.folder / "passwords", "ada:$apr1$x$0000000000000000000000\n", begins)
            case "ftp":
                users = (server.folder / "users").read_text()
                other(server.folder / "users", re.sub(r"ada:[^:]*:", "ada:$5$x$0:", users), begins)
                town.cut("ftp")
            case "sftp":
                other(server.folder / "authorized", "", begins)
                town.cut("sftp")
            case "s3":
                town.relays["s3"].rule = refuse_key if begins else None
        if not begins:
            town.sign_in(kind)

    def refuse_key(handler, body):
        town.relays["s3"].give(
            handler, 403, [("Content-Type", XML)],
            STORE.format("InvalidAccessKeyId", "The key does not exist.").encode())
        return True

    def other(file, text, begins):
        kept = file.with_name(f"kept-{file.name}")
        if begins:
            shutil.copy2(file, kept)
            file.write_text(text)
        else:
            kept.replace(file)
    endure(town, "password", lambda kind: swap(kind, True), lambda kind: swap(kind, False),
           {**{kind: f"oort login {kind}" for kind in ["s3", "box", "sftp", "ftp"]},
            # Once: it is looked at again; twice: sign in.
            **{kind: "(did|does) not take the password" for kind in ["webdav", "nextcloud"]}})
