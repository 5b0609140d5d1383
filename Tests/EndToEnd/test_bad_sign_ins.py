"""Sign-ins that cannot work at servers of a person's own, and odd ones that must: each ends, says what is
wrong in words that a terminal survives, shows no secret, and leaves no account."""

import concurrent.futures
import datetime
import json
import os
import pathlib
import subprocess
import tempfile
import urllib.request

import pytest

from machine import Clouds, Machine, eventually, held_port, remove
from relay import Relay
from servers import KEYS, TOOLS, Server, answers
from strangers import Stranger, certificate

SECRET = "Open-Sesame.And=Come+In"
HTTP = ["webdav", "nextcloud", "s3", "box"]
# A server that is silent, too.
BOUND = 100
# The kinds that ask again without a good answer, and the strangers that they ask again.
PATIENT = ["s3", "box"]
ASKED_AGAIN = ["nothing", "another protocol", "half a head", "endless head"]


class SkewedStore(Relay):
    """A store of S3 whose clock is right, before a machine whose clock is 20 minutes off."""

    def forward(self, handler):
        now = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(minutes=20)
        said = datetime.datetime.strptime(
            handler.headers["x-amz-date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=datetime.timezone.utc)
        date = ("Date", now.strftime("%a, %d %b %Y %H:%M:%S GMT"))
        body = self.body_of(handler)
        if abs((now - said).total_seconds()) > 900:
            return self.give(
                handler, 403, [date, ("Content-Type", "application/xml")],
                b"<Error><Code>RequestTimeTooSkewed</Code><Message>The difference between the request "
                b"time and the current time is too large.</Message></Error>")
        answer, data = self.ask(handler, body)
        headers = [(name, value) for name, value in answer.getheaders() if name.lower() != "date"]
        self.give(handler, answer.status, [date, *headers], data)


class ReadOnlyStore(Relay):
    """A store of S3 whose key may read only."""

    def forward(self, handler):
        if handler.command in ("GET", "HEAD"):
            return super().forward(handler)
        self.body_of(handler)
        self.give(handler, 403, [("Content-Type", "application/xml")],
                  b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>")


class UnlistableStore(Relay):
    """A store of S3 whose key may do all with objects, and not list them."""

    def forward(self, handler):
        if handler.command != "GET" or "list-type" not in handler.path:
            return super().forward(handler)
        self.body_of(handler)
        self.give(handler, 403, [("Content-Type", "application/xml")],
                  b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>")


class OtherRegion(Relay):
    """A store of S3 whose bucket is elsewhere, and that does not say where."""

    def forward(self, handler):
        self.body_of(handler)
        self.give(handler, 301, [("Content-Type", "application/xml")],
                  b"<Error><Code>PermanentRedirect</Code><Message>The bucket you are attempting to "
                  b"access must be addressed using the specified endpoint.</Message></Error>")


class Street:
    """Every server that a sign-in may meet, real ones and strangers, and one machine."""

    def __init__(self, folder):
        self.folder = folder
        self.clouds = Clouds(folder, names=["nextcloud", "box"])
        self.machine = Machine(folder, self.clouds)
        self.servers = {kind: Server(kind, folder) for kind in ("webdav", "sftp", "ftp", "s3")}
        self.machines = {}
        self.strangers = {}
        self.relays = []
        self.port, self.place = held_port()  # at which nobody listens
        certificate(folder / "right.pem")
        certificate(folder / "expired.pem", days=(-30, -1))
        certificate(folder / "other host.pem", name="files.example.org")
        certificate(folder / "unknown.pem")
        trusted = [folder / "right.pem", folder / "expired.pem", folder / "other host.pem",
                   folder / "server-ftp" / "cert.pem"]
        (folder / "trusted.pem").write_bytes(b"".join(file.read_bytes() for file in trusted))
        self.pool = concurrent.futures.ThreadPoolExecutor(14)
        self.waiting = {}
        self.settings = f'ca_file = "{folder}/trusted.pem"\n' + self.machine.settings()
        self.machine.write_settings(self.settings)
        # They wait beside all other tests: for a minute, or to ask again for some seconds.
        silent = f"http://127.0.0.1:{self.stranger(None)}"
        for kind in [*HTTP, "sftp", "ftp"]:
            self.begin_to_wait(kind, silent)
        for kind in PATIENT:
            self.begin_to_wait(kind, "https://nowhere.invalid")
            self.begin_to_wait(kind, f"http://127.0.0.1:{self.port}")
            self.begin_to_wait(kind, f"https://127.0.0.1:{self.servers['webdav'].port}",
                               "not be encrypted")
            self.begin_to_wait(kind, f"http://127.0.0.1:{self.stranger('portal', 'right')}")
            for words in ASKED_AGAIN:
                self.begin_to_wait(kind, f"http://127.0.0.1:{self.stranger(words)}")

    def machine_of(self, kind):
        """A machine for sign-ins at one kind beside those at others."""
        if kind not in self.machines:
            self.machines[kind] = Machine(self.folder, self.clouds, f"machine-{kind}")
            self.machines[kind].write_settings(self.settings)
        return self.machines[kind]

    def relay(self, kind, target):
        self.relays.append(kind(target))
        return self.relays[-1].port

    def stranger(self, words, pem=None):
        """The port of a stranger that answers with these words."""
        if (words, pem) not in self.strangers:
            place = None if pem is None else self.folder / f"{pem}.pem"
            self.strangers[words, pem] = Stranger(words, place)
        return self.strangers[words, pem].port

    def sign_in(self, kind, address, *more, machine=None):
        """The arguments of a sign-in at an address such as `http://127.0.0.1:80`, and its input."""
        host = address.split("://")[-1]
        secret = SECRET + "\n"
        match kind:
            case "webdav" | "nextcloud":
                return [kind, address, "--user", "ada", "--password-file", "-", *more], secret
            case "s3":
                return ["s3", "bucket", "--endpoint", address, "--path-style", "--key-file", "-",
                        *more], json.dumps({**KEYS, "secret_access_key": SECRET})
            case "ftp":
                scheme = "ftps://" if address.startswith("https") else ""
                return ["ftp", f"{scheme}ada@{host}", "--password-file", "-", *more], secret
            case "sftp":
                return ["sftp", f"ada@{host}", "--ssh-option", "UserKnownHostsFile=/dev/null",
                        "--ssh-option", "IdentityAgent=none", "--password-file", "-",
                        *more], secret
            case "box":
                lines = ["[box]", 'client_id = "test-client"', "[box.endpoints]"]
                lines += [f'"{name}" = "{address}"' for name in self.clouds.services["box"]["hosts"]]
                place = machine.folder / "config" / "oort" / "config.toml"
                place.write_text(f'ca_file = "{self.folder}/trusted.pem"\n' + "\n".join(lines) + "\n")
                return ["box", "--token-file", "-", *more], json.dumps({"access_token": SECRET})

    def begin_to_wait(self, kind, address, *words):
        """Begins a sign-in that comes to nothing, on a machine of its own."""
        number = len(self.waiting)
        machine = self.machine_of(f"waiting-{number}")
        arguments, text = self.sign_in(kind, address, machine=machine)
        place = "nowhere" if kind == "s3" and "nowhere" in address else place_of(kind)
        self.waiting[number, kind, address] = self.pool.submit(
            self.refused, arguments, text, place, *words, machine=machine)

    def refused(self, arguments, text, *words, machine=None, status=1, secret=SECRET):
        """A sign-in that comes to nothing, in words."""
        machine = machine or self.machine
        said = machine.oort("login", *arguments, input=text, status=status, timeout=BOUND)
        show(arguments, said)
        for word in words:
            assert word.lower() in said.lower(), f"not said: {word}\n{said}"
        decent(said, secret)
        assert json.loads(machine.oort("accounts", "--json")) == []
        return said

    def taken(self, arguments, text, *words, machine=None, secret=SECRET):
        """A sign-in that works; the account goes again."""
        machine = machine or self.machine
        said = machine.oort("login", *arguments, input=text, timeout=BOUND)
        show(arguments, said)
        for word in words:
            assert word.lower() in said.lower(), f"not said: {word}\n{said}"
        decent(said, secret)
        account, = json.loads(machine.oort("accounts", "--json"))
        machine.oort("logout", account["name"])
        return said

    def stop(self):
        self.pool.shutdown()
        for each in [*self.strangers.values(), *self.servers.values()]:
            each.stop()
        for relay in self.relays:
            relay.shut()
        self.machine.clean()
        self.clouds.stop()


def show(arguments, said):
    if os.environ.get("OORT_SHOW"):
        print(f"---- {' '.join(map(str, arguments))}\n{said}")


def decent(said, secret=SECRET):
    assert secret not in said, said
    raw = [character for character in said if ord(character) < 32 and character not in "\n\t"
           or ord(character) == 127]
    assert not raw, repr(said)
    assert said.strip() and "Fatal error" not in said, said


@pytest.fixture(scope="module")
def street():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="oort-e2e-", dir="/tmp"))
    street = Street(folder)
    yield street
    street.stop()
    remove(folder)


# Strangers in the server's place, or none: the same at every kind.

STRANGERS = ["portal", "portal elsewhere", "json", "empty", "nothing", "another protocol",
             "half a head", "half a body", "endless head", "endless body"]


def at_once(street, kinds, act):
    """Does something at some kinds at once, since each waits most of its time; with a machine each."""
    def one(kind):
        machine = street.machine_of(kind)
        act(kind, machine)
    with concurrent.futures.ThreadPoolExecutor(len(kinds)) as pool:
        failures = {kind: done.exception() for kind, done in
                    {kind: pool.submit(one, kind) for kind in kinds}.items()}
    assert not any(failures.values()), "\n".join(
        f"{kind}: {error}" for kind, error in failures.items() if error)


def place_of(kind):
    """Who is named where nothing came about: Box is at one place only."""
    return "Box" if kind == "box" else "127.0.0.1"


def test_nobody_is_there(street):
    def act(kind, machine):
        for address in ["https://nowhere.invalid", f"http://127.0.0.1:{street.port}"]:
            arguments, text = street.sign_in(kind, address, machine=machine)
            street.refused(arguments, text, "nowhere" if "nowhere" in address else "127.0.0.1",
                           machine=machine)
    at_once(street, ["webdav", "nextcloud", "sftp", "ftp"], act)


def test_certificates(street):
    def act(kind, machine):
        for pem, word in [("unknown", "self-signed"), ("expired", "expired"),
                          ("other host", "match")]:
            address = f"https://127.0.0.1:{street.stranger('portal', pem)}"
            arguments, text = street.sign_in(kind, address, machine=machine)
            street.refused(arguments, text, "certificate", word, "ca_file", place_of(kind),
                           machine=machine)
    at_once(street, [*HTTP, "ftp"], act)


def test_encrypted_and_not(street):
    def act(kind, machine):
        arguments, text = street.sign_in(
            kind, f"https://127.0.0.1:{street.servers['webdav'].port}", machine=machine)
        street.refused(arguments, text, "not be encrypted", place_of(kind), machine=machine)
        if kind != "ftp":  # where one waits for the other, as for who says nothing
            arguments, text = street.sign_in(
                kind, f"http://127.0.0.1:{street.stranger('portal', 'right')}", machine=machine)
            street.refused(arguments, text, place_of(kind), machine=machine)
    at_once(street, ["webdav", "nextcloud", "ftp"], act)


def test_strangers(street):
    def act(kind, machine):
        for words in STRANGERS:
            if kind == "sftp" and words not in ("portal", "nothing", "another protocol"):
                continue  # what else ssh reads is ssh's
            if kind in PATIENT and words in ASKED_AGAIN:
                continue  # it waits already
            address = f"http://127.0.0.1:{street.stranger(words)}"
            arguments, text = street.sign_in(kind, address, machine=machine)
            street.refused(arguments, text, place_of(kind), machine=machine)
    at_once(street, [*HTTP, "sftp", "ftp"], act)


# What is refused, and what is odd and right, at the real servers.

ODD = ["a:b ümlaut ß", " spaces  within and around ", "100%25%", "q\"'\\$(x)&#?+/=\tx"]
FOLDERS = ["a b", "#1 what?", "100%41", "ümlaut+&=;"]


def passwords(street, kind, secrets):
    """Has a real server know one person for each of some passwords: p0, p1, ..."""
    server = street.servers[kind]
    lines = []
    for number, secret in enumerate(secrets):
        flag = "-apr1" if kind == "webdav" else "-5"
        hashed = subprocess.run(["openssl", "passwd", flag, "-stdin"], input=secret, text=True,
                                check=True, capture_output=True).stdout.strip()
        more = "" if kind == "webdav" else f":{os.getuid()}:{os.getgid()}::{server.root}:/bin/sh"
        lines.append(f"p{number}:{hashed}{more}\n")
    place = server.folder / ("passwords" if kind == "webdav" else "users")
    with open(place, "a") as file:
        file.write("".join(lines))


def test_odd_passwords_that_are_right(street):
    def act(kind, machine):
        passwords(street, kind, ODD)
        port = street.servers[kind].port
        # A text file may end with a line end, of whichever system.
        for number, (secret, end) in enumerate(zip(ODD, ["", "\n", "\r\n", "\n"])):
            person = f"p{number}"
            arguments = ["ftp", f"{person}@127.0.0.1:{port}"] if kind == "ftp" else [
                "webdav", f"http://127.0.0.1:{port}", "--user", person]
            street.taken([*arguments, "--password-file", "-"], secret + end, person, secret=secret,
                         machine=machine)
    at_once(street, ["webdav", "ftp"], act)


def test_password_files_that_hold_no_password(street):
    address = f"http://127.0.0.1:{street.servers['webdav'].port}"
    for text in ["", "\n", "\r\n", "two\nlines\n", "two\rlines", "nul\0", "x" * 70_000]:
        street.refused(["webdav", address, "--user", "ada", "--password-file", "-"], text,
                       "secret" if len(text) > 9999 else "password is empty, or more than one line")


def test_wrong_people(street):
    """The right name with a wrong password, and the reverse; the message is the same."""
    webdav, ftp = (street.servers[kind].port for kind in ("webdav", "ftp"))
    nextcloud = f"http://127.0.0.1:{street.clouds.gates['nextcloud'].port}/cloud.example.org"
    for person, text in [("ada", SECRET), ("nobody", "secret"), ("a\x1b[2Jb", SECRET)]:
        street.refused(["webdav", f"http://127.0.0.1:{webdav}", "--user", person,
                        "--password-file", "-"], text, "does not take the password of", "once")
        street.refused(["nextcloud", nextcloud, "--user", person, "--password-file", "-"], text,
                       "does not take the password of", "once")
        if "\x1b" not in person:
            street.refused(["ftp", f"{person}@127.0.0.1:{ftp}", "--password-file", "-"], text,
                           f"refuses {person}", "once")
    store = ["s3", "bucket", "--endpoint", f"http://127.0.0.1:{street.servers['s3'].port}",
             "--path-style", "--key-file", "-"]
    street.refused(store, json.dumps({**KEYS, "access_key_id": "another"}), "access key")
    street.refused(store, json.dumps({**KEYS, "secret_access_key": SECRET}), "secret key")
    for text in ["", "{", "[]", "{}", '{"access_key_id": "x"}', '{"access_key_id": 3}',
                 '{"access_key_id": "", "secret_access_key": ""}',
                 '{"access_key_id": "a\\nb", "secret_access_key": "c\\u0000d"}']:
        street.refused(store, text, "key")


def test_addresses(street):
    """What people paste: with a path, a slash at the end, a user; and what is no address."""
    ports = {kind: server.port for kind, server in street.servers.items()}
    (street.servers["webdav"].root / "part").mkdir()
    right = ["--password-file", "-"]
    password = f"ada:{SECRET}@127.0.0.1"

    def act(kind, machine):
        def taken(*arguments):
            street.taken([kind, *arguments, *right], "secret\n", machine=machine, secret="secret\n")

        def refused(*arguments, words=()):
            # Nothing at all is wrong usage.
            status = 2 if "" in arguments else 1
            street.refused([kind, *arguments], SECRET, *words, machine=machine, status=status)
        match kind:
            case "webdav":
                place = f"127.0.0.1:{ports[kind]}"
                taken(f"http://ada@{place}/part/")
                taken(f" DAV://{place}//part?x=1#y ", "--user", "ada")
                for address in ["", "http://", "ftp://127.0.0.1", "http://127.0.0.1:99999999/",
                                "http://[::1/", "http://127.0.0.1/%zz", "http://a b/",
                                "https://\x1b[2J.example.org", "http://example.org/"]:
                    refused("--user", "ada", *right, "--", address)
                refused(f"http://ada:{SECRET}@{place}/", *right, words=["password does not belong"])
            case "ftp":
                taken(f"ftp://ada@127.0.0.1:{ports[kind]}/~/")
                for address in ["", "@", ":21", password, "127.0.0.1:0", "127.0.0.1:99999",
                                "http://127.0.0.1", "\x1b[2J", "a b"]:
                    refused(*right, "--", address)
            case "sftp":
                for address in ["", "@", ":22", password, "127.0.0.1:0", "127.0.0.1:99999",
                                "http://127.0.0.1", "\x1b[2J", "a b", "-oProxyCommand=true"]:
                    refused("--", address)
            case "s3":
                for bucket in ["", "/", "a b", "..", "bucket:x", "\x1b[2J", "https://s3.example.org/b"]:
                    refused("--anonymous", "--", bucket)
                for endpoint in ["", "http://", "ftp://127.0.0.1", f"http://{password}", "\x1b[2J",
                                 "http://127.0.0.1:99999999"]:
                    refused("bucket", "--anonymous", "--endpoint", endpoint)
    at_once(street, ["webdav", "ftp", "sftp", "s3"], act)


def signing_in(street, kind):
    """The arguments of a sign-in that works, at a real server."""
    server = street.servers[kind]
    match kind:
        case "webdav":
            return ["webdav", f"http://127.0.0.1:{server.port}/", "--user", "ada",
                    "--password-file", "-"], "secret\n"
        case "ftp":
            return ["ftp", f"ada@127.0.0.1:{server.port}", "--password-file", "-"], "secret\n"
        case "sftp":
            key = (server.folder / "host.pub").read_text()
            (server.folder / "known").write_text(f"[127.0.0.1]:{server.port} {key}")
            return ["sftp", f"127.0.0.1:{server.port}", "--identity", server.folder / "user",
                    "--ssh-option", f"UserKnownHostsFile={server.folder}/known",
                    "--ssh-option", "IdentityAgent=none"], ""
        case "s3":
            return ["s3", "bucket", "--endpoint", f"http://127.0.0.1:{server.port}",
                    "--path-style", "--key-file", "-"], json.dumps(KEYS)


def secret_of(street, kind):
    """A new password for programs, since signing out takes one back."""
    return street.clouds.tokens(kind)["access_token"] + "\n" if kind == "nextcloud" else ""


def test_where_an_account_begins(street):
    at_once(street, ["webdav", "ftp", "sftp", "s3", "nextcloud"],
            lambda kind, machine: begin(street, kind, machine))


def begin(street, kind, machine):
    """Begins an account of a kind at each of some odd folders, and at what is none."""
    if kind == "nextcloud":
        clouds = street.clouds
        for name in FOLDERS:
            clouds.edit("nextcloud", "write", f"/{name}/there", text="there")
        clouds.edit("nextcloud", "write", "/file", text="a file")
        address = f"http://127.0.0.1:{clouds.gates['nextcloud'].port}/cloud.example.org"
        arguments = ["nextcloud", address, "--user", "ada@example.com", "--password-file", "-"]
        text, root = "", pathlib.Path("/")
    else:
        arguments, text = signing_in(street, kind)
        server = street.servers[kind]
        root = pathlib.Path("/") if kind in ("webdav", "s3") else server.root
        for name in FOLDERS:
            (server.files / name).mkdir(exist_ok=True)
            (server.files / name / "there").write_text("there")
        (server.files / "file").write_text("a file")
        if kind == "webdav":
            machine.run("chown", "-R", "www-data:", server.root)
    for name in FOLDERS:
        street.taken([*arguments, "--root", str(root / name)], secret_of(street, kind) or text,
                     machine=machine, secret="secret\n")
    if kind == "s3":
        return  # a prefix may be new, and a file may lie beside what begins with its name
    for name in ["none", "file", "\x1b[2J", b"\xff\xfe"]:
        place = os.fsencode(root) + b"/" + os.fsencode(name)
        street.refused([*arguments, "--root", os.fsdecode(place)], secret_of(street, kind) or text,
                       "folder", machine=machine, secret="secret\n")


def test_keys_and_hosts_of_ssh(street):
    server = street.servers["sftp"]
    place = f"127.0.0.1:{server.port}"
    user, folder = server.folder / "user", server.folder
    signing_in(street, "sftp")

    def arguments(identity=None, known="known", *more):
        return ["sftp", place, *(["--identity", identity] if identity else []),
                "--ssh-option", f"UserKnownHostsFile={folder}/{known}",
                "--ssh-option", "GlobalKnownHostsFile=/dev/null",
                "--ssh-option", "IdentityAgent=none", *more]
    street.taken(arguments(user), "")
    # The host.
    street.refused(arguments(user, "nobody"), "", "not known yet")
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / "other"], check=True)
    other = (folder / "other.pub").read_text()
    (folder / "changed").write_text(f"[127.0.0.1]:{server.port} {other}")
    street.refused(arguments(user, "changed"), "", "is not the one that is known", "ssh-keygen -R")
    # The key.
    street.refused(arguments(folder / "none"), "", "cannot be read")
    street.refused(arguments(folder), "", "cannot be read")
    street.refused(arguments(folder / "other"), "", "Permission denied", "passphrase")
    (folder / "open").write_bytes(user.read_bytes())
    (folder / "open").chmod(0o644)
    street.refused(arguments(folder / "open"), "", "others can read", "chmod 600")
    (folder / "odd").write_text("-----BEGIN OPENSSH PRIVATE KEY-----\nbm90IGEga2V5\n"
                                "-----END OPENSSH PRIVATE KEY-----\n")
    (folder / "text").write_text("this is no key at all\x1b[2J\n")
    for name in ["odd", "text"]:
        (folder / name).chmod(0o600)
        street.refused(arguments(folder / name), "", "no private key that ssh can read")
    street.refused(arguments(folder / "user.pub"), "", "user.pub")
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", SECRET, "-f", folder / "locked"],
                   check=True)
    street.refused(arguments(folder / "locked"), "", "passphrase", "--password-file")
    # No key, no agent.
    street.refused([*arguments()[:-1], "IdentityAgent=/nonexistent"], "", "No key and no agent")
    street.refused(["sftp", place, "--ssh-option", "nonsense"], "", "no option of ssh")
    street.refused([*arguments(user), "--ssh-option", "NoSuchOption=yes"], "", "NoSuchOption",
                   "--ssh-option")


def test_stores(street):
    """Regions, clocks, buckets and keys that may read only; moto is the store that has regions."""
    port, place = held_port()
    place.close()
    log = open(street.folder / "moto.log", "w")
    moto = subprocess.Popen([str(TOOLS / "moto_server"), "-H", "127.0.0.1", "-p", str(port)],
                            stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    text = json.dumps(KEYS)

    def arguments(bucket, at=port, *more):
        return ["s3", bucket, "--endpoint", f"http://127.0.0.1:{at}", "--path-style",
                "--key-file", "-", *more]
    try:
        eventually(lambda: answers(port), "moto listens")
        for bucket in ["bucket", "with.dots.in-it"]:
            request = urllib.request.Request(f"http://127.0.0.1:{port}/{bucket}", method="PUT")
            urllib.request.urlopen(request, timeout=60).close()
        street.refused(arguments("no-such-bucket"), text, "no-such-bucket", "no bucket of this name")
        street.taken(arguments("with.dots.in-it"), text)
        # What answers names the region in which the bucket is, or does not mind.
        street.taken(arguments("bucket", port, "--region", "eu-north-7"), text)
        street.taken(arguments("bucket", street.relay(SkewedStore, port)), text, "20 minutes behind")
        street.taken(arguments("bucket", street.relay(ReadOnlyStore, port)), text,
                     "can be read but not written")
        street.refused(arguments("bucket", street.relay(OtherRegion, port)), text, "--region")
        street.refused(arguments("bucket", street.relay(UnlistableStore, port)), text,
                       "may not list the bucket bucket", "s3:ListBucket")
    finally:
        moto.terminate()
        moto.wait()
        log.close()
    store = street.servers["s3"].port
    street.refused(arguments("none", store), text, "none", "no bucket of this name")


def test_who_waits_comes_to_an_end(street):
    """A sign-in ends where the other side is silent, and where it is asked again."""
    for waiting in street.waiting.values():
        waiting.result(timeout=2 * BOUND)
