"""SFTP accounts that sign in with a password or a key's passphrase: OpenSSH's own server and client."""

import json
import os
import pathlib
import pty
import re
import select
import signal
import socket
import subprocess

import pytest

import secrets_scan
from machine import OORT, eventually, read
from servers import Server

pytestmark = pytest.mark.skipif(
    os.getuid() != 0, reason="only root gives a server a person with a password of its own")

PASSWORD = "Correct.Horse~Battery=7531"
SECOND = "zweites Paßwort 'mit' $Zeichen und \"mehr\""
PASSPHRASE = "Open.Sesame-And-Come-In=99"


class PasswordServer(Server):
    """OpenSSH's server for one person, who is known to it alone and not to the machine."""

    shell = "/bin/sh"
    # Files of the server's folder that it sees at other places than everybody else.
    binds = {"passwd": "/etc/passwd", "shadow": "/etc/shadow", "pam": "/etc/pam.d/sshd"}

    def __init__(self, folder, method="password", more=""):
        self.method = method
        self.more = more
        folder.chmod(0o711)
        super().__init__("sftp", folder)

    def set_password(self, password):
        hashed = subprocess.run(["openssl", "passwd", "-6", "-stdin"], input=password, text=True,
                                check=True, capture_output=True).stdout.strip()
        # In its place, since another file would not show where this one is mounted.
        (self.folder / "shadow").write_text(f"ada:{hashed}:19000:0:99999:7:::\nsshd:*:19000::::::\n"
                                            "root:*:19000::::::\n")

    def _sftp(self):
        super()._sftp()
        self.folder.chmod(0o711)
        key = (self.folder / "host.pub").read_text()
        (self.folder / "known").write_text(f"[127.0.0.1]:{self.port} {key}")
        os.chown(self.root, 4711, 4711)
        (self.folder / "passwd").write_text(
            "root:x:0:0:root:/root:/bin/bash\n"
            "sshd:x:102:65534::/run/sshd:/usr/sbin/nologin\n"
            f"ada:x:4711:4711:Ada:{self.root}:{self.shell}\n")
        if not (self.folder / "shadow").exists():
            self.set_password(PASSWORD)
        (self.folder / "pam").write_text(
            "auth required pam_unix.so nodelay\naccount required pam_permit.so\n"
            "session required pam_permit.so\n")
        by_pam = self.method == "keyboard-interactive"
        (self.folder / "config").write_text(f"""
Port {self.port}
ListenAddress 127.0.0.1
HostKey {self.folder}/host
PidFile none
LogLevel VERBOSE
AuthorizedKeysFile {self.folder}/authorized
PasswordAuthentication {"no" if by_pam else "yes"}
KbdInteractiveAuthentication {"yes" if by_pam else "no"}
UsePAM {"yes" if by_pam else "no"}
StrictModes no
Subsystem sftp internal-sftp
{self.more}
""")
        binds = " && ".join(f"mount --bind {self.folder}/{ours} {theirs}"
                            for ours, theirs in self.binds.items())
        return ["unshare", "--mount", "--propagation", "private", "sh", "-c",
                f"{binds} && exec /usr/sbin/sshd -D -e -f {self.folder}/config"]

    @property
    def beginning(self):
        """Where the account begins, as the server calls it."""
        return str(self.root)

    def options(self, known=True):
        place = self.folder / ("known" if known else "unknown")
        return [f"ada@127.0.0.1:{self.port}{self.beginning}", "--ssh-option",
                f"UserKnownHostsFile={place}", "--ssh-option", "GlobalKnownHostsFile=/dev/null",
                "--ssh-option", "IdentityAgent=none"]

    def sign_in(self, machine, secret, *more, status=0, known=True):
        return machine.oort("login", "sftp", *self.options(known), "--password-file", "-", *more,
                            input=f"{secret}\n", status=status)

    def count(self, verb, method="(?:password|keyboard-interactive/pam)"):
        """How many passwords, or whatever is meant, the server took ("Accepted") or refused ("Failed")."""
        log = (self.folder / "log").read_text(errors="replace")
        return len(re.findall(rf"^{verb} {method} for ada ", log, re.M))

    def has_logged(self, failed, accepted=None):
        """Waits for exactly so many logins in the server's log, which it writes after its answer."""
        def counts():
            return self.count("Failed"), self.count("Accepted") if accepted is not None else None
        eventually(lambda: counts() == (failed, accepted),
                   f"the server has logged {failed}, {accepted}", timeout=30)

    def cut(self):
        """Ends every session, as a network that goes does: the part that is root's, and the person's."""
        sessions, found = [], [self.process.pid]
        while found:
            children = pathlib.Path(f"/proc/{found.pop()}/task").glob("*/children")
            found += [int(child) for file in children for child in (read(file) or "").split()]
            sessions = list({*sessions, *found})
        for session in sessions:
            try:
                os.kill(session, signal.SIGKILL)
            except ProcessLookupError:
                pass  # it ended with another one

    def stop(self):
        self.cut()
        super().stop()


@pytest.fixture
def serve(folder):
    servers = []

    def start(*arguments, **more):
        servers.append(PasswordServer(folder, *arguments, **more))
        return servers[-1]
    yield start
    for server in servers:
        server.stop()


def processes_with(secret):
    """Processes that have a secret where others may read it: in arguments or environment."""
    found = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        for place in ("cmdline", "environ"):
            try:
                if secret.encode() in (process / place).read_bytes():
                    found.append(f"{process}/{place}")
            except OSError:
                pass
    return found


def doctor(machine):
    """What the doctor says of the account."""
    said = machine.run(OORT, "doctor", "--json", status=None)
    machine.said.append(said.stdout)
    [finding] = [f for f in json.loads(said.stdout)["findings"] if f["check"] == "account"]
    return finding


@pytest.mark.parametrize("method, more", [
    ("password", "ForceCommand internal-sftp\nMaxAuthTries 2"),
    ("keyboard-interactive", ""),
])
def test_a_password_lets_in_and_a_changed_one_asks_for_the_person(machine, serve, method, more):
    server = serve(method, more)
    said = server.sign_in(machine, "Not.The-Right=Password", status=1)
    assert "127.0.0.1 refuses the password; it was tried once" in said, said
    server.has_logged(1, 0)
    assert "sftp" not in machine.oort("accounts")
    said = server.sign_in(machine, PASSWORD)
    assert "What it signs in with lies in" in said
    assert doctor(machine)["state"] == "ok"

    machine.mount()
    drive = machine.ready("sftp")
    (drive / "one").write_text("one")
    machine.sync()
    server.holds({"one": b"one"})
    assert (server.files / "one").stat().st_uid == 4711
    for secret in (PASSWORD, "Not.The-Right=Password"):
        assert processes_with(secret) == []

    # The connection breaks, and is made anew without a person.
    before = server.count("Accepted")
    server.cut()
    (drive / "two").write_text("two")
    machine.sync()
    server.holds({"one": b"one", "two": b"two"})
    server.has_logged(1, before + 1)
    # So is it after a restart.
    machine.kill()
    machine.mount()
    machine.ready("sftp")
    (drive / "three").write_text("three")
    machine.sync()
    server.has_logged(1)

    # The server's password has changed: the old one is tried once, so that the login is not locked.
    server.set_password(SECOND)
    server.cut()
    eventually(lambda: "refuses the password" in machine.account("sftp").get("trouble", ""),
               "it is seen")
    trouble = machine.account("sftp")["trouble"]
    assert "Sign in again: oort login sftp --name sftp" in trouble, trouble
    server.write("theirs", "theirs")
    (drive / "four").write_text("four")
    assert "refuses the password" in machine.oort("sync", "--timeout", "3s", status=1)
    server.has_logged(2)
    found = doctor(machine)
    assert found["state"] == "trouble" and "refuses the password" in found["message"], found
    machine.unmount()
    found = doctor(machine)
    assert "refuses the password" in found["message"] and "oort login sftp" in found["advice"], found
    server.has_logged(3)
    machine.mount()
    eventually(lambda: "refuses the password" in machine.account("sftp").get("trouble", ""),
               "it is seen")
    server.has_logged(4)

    # Who signs in again goes on at once with what was kept.
    assert "mounted now" in server.sign_in(machine, SECOND, "--name", "sftp")
    machine.ready("sftp")
    machine.sync()
    server.holds({"one": b"one", "two": b"two", "three": b"three", "four": b"four",
                  "theirs": b"theirs"})
    server.has_logged(4)
    assert secrets_scan.leaks(machine, {PASSWORD.encode(), b"Not.The-Right=Password"}, set()) == []
    machine.unmount()
    kept = json.loads((machine.state / "tokens" / "sftp.json").read_text())
    assert kept["access_token"] == SECOND
    machine.oort("logout", "sftp")
    assert not list((machine.state / "tokens").glob("sftp*"))


def test_the_passphrase_of_a_key_goes_to_no_server(machine, serve):
    server = serve()
    key = server.folder / "locked"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", PASSPHRASE, "-f", key], check=True)
    # The server does not know the key, and would take a password.
    said = server.sign_in(machine, PASSPHRASE, "--identity", key, status=1)
    assert "asks for a password" in said and str(key) in said, said
    server.has_logged(0)
    with open(server.folder / "authorized", "a") as known:
        known.write(key.with_suffix(".pub").read_text())
    said = server.sign_in(machine, "not the passphrase", "--identity", key, status=1)
    assert "the passphrase is not the key's" in said, said
    server.has_logged(0)
    server.sign_in(machine, PASSPHRASE, "--identity", key)
    machine.mount()
    drive = machine.ready("sftp")
    server.cut()
    (drive / "file").write_text("content")
    machine.sync()
    server.holds({"file": b"content"})
    server.has_logged(0)
    assert processes_with(PASSPHRASE) == []
    assert secrets_scan.leaks(machine, {PASSPHRASE.encode()}, set()) == []


def test_one_connection_has_all_sessions(machine, serve):
    server = serve(more="MaxSessions 1")
    (server.files / "large").write_bytes(os.urandom(8 << 20))
    server.sign_in(machine, PASSWORD)
    before = server.count("Accepted")
    machine.mount()
    drive = machine.ready("sftp")
    assert (drive / "large").read_bytes() == (server.files / "large").read_bytes()
    (drive / "mine").write_bytes(bytes(6 << 20))
    machine.sync()
    assert (server.files / "mine").stat().st_size == 6 << 20
    server.has_logged(0, before + 1)


def test_questions_that_nobody_here_may_answer(machine, serve):
    server = serve()
    # Whether this is the server that is meant.
    said = server.sign_in(machine, PASSWORD, status=1, known=False)
    assert "is not known yet (SHA256:" in said, said
    assert f"ssh -p {server.port} ada@127.0.0.1" in said, said
    assert not (server.folder / "unknown").exists()
    # What a host on the way asks: the password is not for that.
    known = server.folder / "known"
    way = (f"ProxyCommand=ssh -o UserKnownHostsFile={known} -o IdentityAgent=none -p {server.port} "
           "-W %h:%p ada@127.0.0.1")
    said = server.sign_in(machine, PASSWORD, "--ssh-option", way, status=1)
    assert "a host on the way to 127.0.0.1 asks" in said, said
    server.has_logged(0, 0)
    # A server that asks for nothing is not given anything.
    said = server.sign_in(machine, PASSWORD, "--ssh-option", "PreferredAuthentications=publickey",
                          "--ssh-option", "PubkeyAuthentication=no", status=1)
    assert "asks for no password" in said, said
    server.has_logged(0, 0)
    # A sign-in by key alone fails, too, where no person can be asked for a password.
    said = machine.oort("login", "sftp", *server.options(), status=1)
    assert "No key and no agent let you in" in said and "--password-file" in said, said


def test_no_other_program_is_told(machine):
    """During a login another program asks over its socket, even as the same user."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(8)
        port = silent.getsockname()[1]
        login = subprocess.Popen(
            [OORT, "login", "sftp", f"ada@127.0.0.1:{port}", "--password-file", "-"],
            env=machine.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True)
        login.stdin.write(PASSWORD)
        login.stdin.close()
        [place] = eventually(lambda: list((machine.folder / "run" / "oort").glob("*/a")),
                             "it can be asked")
        assert place.stat().st_mode & 0o777 == 0o600
        assert place.parent.stat().st_mode & 0o777 == 0o700
        question = "ada@127.0.0.1's password: "
        with socket.socket(socket.AF_UNIX) as stranger:
            stranger.settimeout(30)
            stranger.connect(str(place))
            try:
                stranger.sendall(question.encode())
                stranger.shutdown(socket.SHUT_WR)
                assert stranger.recv(4096) == b""
            except (BrokenPipeError, ConnectionResetError):
                pass  # it was shown out at once
        asked = subprocess.run([place.parent / "oort-askpass", question], capture_output=True,
                               timeout=60)
        assert (asked.returncode, asked.stdout) == (1, b"")
        assert processes_with(PASSWORD) == []
        silent.close()
        login.wait(timeout=60)
    said = login.stdout.read()
    assert login.returncode == 1 and "cannot be reached" in said, said
    eventually(lambda: not list((machine.folder / "run" / "oort").glob("*/a")), "nobody listens")


class Terminal:
    """A person at a terminal, with a program in it."""

    def __init__(self, environment, *arguments):
        self.said = b""
        self.process, self.descriptor = pty.fork()
        if self.process == 0:
            os.execve(OORT, ["oort", *map(str, arguments)], environment)

    def expect(self, words, timeout=60):
        while words not in self.said:
            ready, _, _ = select.select([self.descriptor], [], [], timeout)
            assert ready, f"not said: {words} in {self.said}"
            try:
                self.said += os.read(self.descriptor, 4096)
            except OSError:  # the program has ended
                assert words in self.said, f"not said: {words} in {self.said}"

    def type(self, words):
        os.write(self.descriptor, words + b"\n")

    def end(self):
        _, status = os.waitpid(self.process, 0)
        os.close(self.descriptor)
        return os.waitstatus_to_exitcode(status)


def test_a_person_at_a_terminal_is_asked(machine, serve):
    server = serve()
    terminal = Terminal(machine.environment, "login", "sftp", *server.options(known=False))
    try:
        terminal.expect(b"Are you sure you want to continue connecting")
        terminal.type(b"yes")
        terminal.expect(b"Password of ada at 127.0.0.1: ")
        terminal.type(PASSWORD.encode())
        terminal.expect(b"the account is")
    except BaseException:
        os.kill(terminal.process, signal.SIGKILL)
        raise
    finally:
        code = terminal.end()
    assert code == 0
    assert PASSWORD.encode() not in terminal.said, "the password shows"
    server.has_logged(0, 2)
    machine.mount()
    drive = machine.ready("sftp")
    (drive / "file").write_text("content")
    machine.sync()
    server.holds({"file": b"content"})


def test_ctrl_c_at_the_password_ends_the_sign_in(machine, serve):
    server = serve()
    terminal = Terminal(machine.environment, "login", "sftp", *server.options())
    terminal.expect(b"Password of ada at 127.0.0.1: ")
    os.write(terminal.descriptor, b"half\x03")
    assert terminal.end() == -signal.SIGINT
    assert json.loads(machine.oort("accounts", "--json")) == []


def test_an_account_has_one_name(machine, serve):
    server = serve()
    server.sign_in(machine, PASSWORD)
    said = server.sign_in(machine, PASSWORD, "--name", "other", status=1)
    assert "already" in said and '"sftp"' in said, said
    assert [account["name"] for account in json.loads(machine.oort("accounts", "--json"))] == ["sftp"]


@pytest.mark.parametrize("option", ["StrictHostKeyChecking=no", "stricthostkeychecking accept-new=",
                                    "NoHostAuthenticationForLocalhost=yes"])
def test_whose_server_it_is_is_always_asked(machine, serve, option):
    server = serve()
    said = server.sign_in(machine, PASSWORD, "--ssh-option", option, known=False, status=1)
    assert "taken for yours" in said, said
    server.has_logged(0, 0)
