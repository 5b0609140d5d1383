"""Foreign servers of a person's own, each with its files in a folder."""

import grp
import hashlib
import json
import os
import pathlib
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

from machine import eventually, held_port

KINDS = ["sftp", "ftp", "webdav", "sabre", "s3"]
# The kinds that Apache serves, as another user where root starts it.
APACHE = ["webdav", "sabre"]
KEYS = {"access_key_id": "an-access-key", "secret_access_key": "a-secret-access-key"}
# The servers of PyPI, which `scripts/test` installs apart from the tests' own environment.
TOOLS = pathlib.Path(__file__).resolve().parents[2] / ".build" / "server-venv" / "bin"


def answers(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def below(process):
    """The processes that one has begun, and they."""
    try:
        text = pathlib.Path(f"/proc/{process}/task/{process}/children").read_text()
    except OSError:
        return []
    children = [int(child) for child in text.split()]
    return children + [each for child in children for each in below(child)]


def kill(process):
    try:
        os.kill(process, signal.SIGKILL)
    except ProcessLookupError:
        pass


def held_pair():
    """A port whose neighbour 10,000 above is free, too, and the sockets that keep both."""
    while True:
        port, place = held_port()
        above = socket.socket()
        above.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            above.bind(("127.0.0.1", port + 10_000))
            return port, place, above
        except (OSError, OverflowError):
            place.close()
            above.close()


class Server:
    """A server of one kind, that runs until it is stopped."""

    def __init__(self, kind, folder, rclone=None, is_implicit=False, subsystem="internal-sftp"):
        self.kind = kind
        self.subsystem = subsystem  # what serves SFTP
        self.rclone = rclone or pathlib.Path(sys.executable).with_name("rclone")
        self.is_implicit = is_implicit  # whether FTP is encrypted from the first byte
        self.folder = folder / f"server-{kind}"
        self.root = self.folder / "root"
        self.root.mkdir(parents=True)
        # While it is stopped, too: the account knows the port.
        self.port, *self.place = held_pair() if kind == "seaweedfs" else held_port()
        # Ports that only the server itself needs.
        self.others = []
        # The port that machines are given: that of whatever stands before the server.
        self.door = self.port
        self.process = None
        self.start()

    def start(self):
        arguments = getattr(self, f"_{self.kind}")()
        with open(self.folder / "log", "a") as log:
            self.process = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log, cwd=self.folder, start_new_session=True)
        eventually(lambda: answers(self.port) or self.process.poll() is not None, "it listens")
        assert self.process.poll() is None, (self.folder / "log").read_text()

    def stop(self):
        if self.kind in ("sftp", "ftp"):
            self.cut()
        self.process.terminate()
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._remove_sockets()

    def cut(self):
        """Ends every connection at once, where the server has a process for each."""
        for process in below(self.process.pid):
            kill(process)

    def kill(self):
        """Ends it as a power cut does, with all that it was about to do."""
        for process in [self.process.pid, *below(self.process.pid)]:
            kill(process)
        self.process.wait()
        self._remove_sockets()

    def _remove_sockets(self):
        """Removes what SeaweedFS leaves outside of its folder, by its ports and those 10,000 above."""
        if self.kind == "seaweedfs":
            for port in [self.port, *(ports[0] for ports in self.others)]:
                for number in (port, port + 10_000):
                    for socket_ in pathlib.Path("/tmp").glob(f"seaweedfs-*-{number}.sock"):
                        socket_.unlink(missing_ok=True)

    def _sftp(self):
        for name in ("host", "user"):
            if not (self.folder / name).exists():
                subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", name],
                               cwd=self.folder, check=True)
        shutil.copy(self.folder / "user.pub", self.folder / "authorized")
        if os.getuid() == 0:
            pathlib.Path("/run/sshd").mkdir(exist_ok=True)
        (self.folder / "config").write_text(f"""
Port {self.port}
ListenAddress 127.0.0.1
HostKey {self.folder}/host
PidFile none
AuthorizedKeysFile {self.folder}/authorized
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
StrictModes no
PermitRootLogin prohibit-password
# The user's own start files may do anything, such as lock out all logins when a session is cut.
SetEnv HOME={self.folder}
Subsystem sftp {self.subsystem}
""")
        return ["/usr/sbin/sshd", "-D", "-e", "-f", str(self.folder / "config")]

    def _ftp(self):
        """ProFTPD, encrypted and no other way."""
        self._make_certificate()
        secret = subprocess.run(["openssl", "passwd", "-5", "secret"], check=True,
                                capture_output=True, text=True).stdout.strip()
        users = self.folder / "users"
        users.write_text(f"ada:{secret}:{os.getuid()}:{os.getgid()}::{self.root}:/bin/sh\n")
        users.chmod(0o600)
        (self.folder / "config").write_text(f"""
LoadModule mod_tls.c
ServerType standalone
Port {self.port}
DefaultAddress 127.0.0.1
SocketBindTight on
UseReverseDNS off
DelayEngine off
User {pwd.getpwuid(os.getuid()).pw_name}
Group {grp.getgrgid(os.getgid()).gr_name}
RootLogin on
RequireValidShell off
AuthUserFile {users}
AuthOrder mod_auth_file.c
AuthPAM off
WtmpLog off
TransferLog none
PidFile {self.folder}/pid
ScoreboardFile {self.folder}/scoreboard
SystemLog {self.folder}/errors
LogFormat command "%m"
ExtendedLog {self.folder}/commands ALL command
AllowOverwrite on
Umask 022
TLSEngine on
TLSRequired on
TLSRSACertificateFile {self.folder}/cert.pem
TLSRSACertificateKeyFile {self.folder}/key.pem
TLSLog {self.folder}/tls
TLSOptions {"UseImplicitSSL" if self.is_implicit else "StdEnvVars"}
""")
        return ["/usr/sbin/proftpd", "-n", "-q", "-c", str(self.folder / "config")]

    def _make_certificate(self):
        if not (self.folder / "cert.pem").exists():
            subprocess.run(
                ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem",
                 "-out", "cert.pem", "-days", "3650", "-subj", "/CN=localhost", "-addext",
                 "subjectAltName=IP:127.0.0.1"], cwd=self.folder, check=True, capture_output=True)
        (self.folder / "key.pem").chmod(0o600)

    def _vsftpd(self):
        """vsftpd, which lists nothing for programs; its guest, `ftp`, needs a password of a list."""
        program = TOOLS / "vsftpd"
        assert program.exists(), f"{program} is missing: scripts/test unpacks it"
        self._make_certificate()
        (self.folder / "passwords").write_text("secret\n")
        (self.folder / "empty").mkdir(exist_ok=True)
        (self.folder / "config").write_text(f"""listen=YES
listen_address=127.0.0.1
listen_port={self.port}
background=NO
run_as_launching_user=YES
anonymous_enable=YES
local_enable=NO
ftp_username={pwd.getpwuid(os.getuid()).pw_name}
anon_root={self.root}
secure_chroot_dir={self.folder}/empty
secure_email_list_enable=YES
email_password_file={self.folder}/passwords
ssl_enable=YES
allow_anon_ssl=YES
force_anon_logins_ssl=YES
force_anon_data_ssl=YES
require_ssl_reuse=YES
ssl_ciphers=HIGH
rsa_cert_file={self.folder}/cert.pem
rsa_private_key_file={self.folder}/key.pem
xferlog_enable=YES
log_ftp_protocol=YES
vsftpd_log_file={self.folder}/commands
""")
        return [str(program), str(self.folder / "config")]

    def _webdav(self):
        secret = subprocess.run(["openssl", "passwd", "-apr1", "secret"], check=True,
                                capture_output=True, text=True).stdout.strip()
        (self.folder / "passwords").write_text(f"ada:{secret}\n")
        return self._apache(["authn_core", "authn_file", "authz_user", "auth_basic", "dir", "mime",
                             "dav", "dav_fs", "dav_lock"], f"""
TypesConfig /etc/mime.types
DocumentRoot {self.root}
DirectoryIndex disabled
DavLockDB {self.folder}/locks/db
<Directory {self.root}>
    Dav On
    AuthType Basic
    AuthName files
    AuthUserFile {self.folder}/passwords
    Require valid-user
</Directory>
""")

    def _sabre(self):
        """sabre/dav on files, set up as its own guide does, by Apache and PHP as hosters have them."""
        # No more extensions than it needs: they are loaded for each request.
        (self.folder / "php").mkdir(exist_ok=True)
        extensions = ["ctype", "dom", "mbstring"]
        (self.folder / "php" / "extensions.ini").write_text(
            "".join(f"extension={name}\n" for name in extensions))
        program = self.folder / "dav.php"
        program.write_text("""#!/usr/bin/php-cgi
<?php
error_reporting(E_ALL & ~E_DEPRECATED);
require 'Sabre/autoload.php';
class People extends Sabre\\DAV\\Auth\\Backend\\AbstractBasic {
    protected function validateUserPass($user, $password) {
        return $user === 'ada' && $password === 'secret';
    }
}
$server = new Sabre\\DAV\\Server(new Sabre\\DAV\\FS\\Directory(__DIR__ . '/root'));
$server->setBaseUri('/');
$server->addPlugin(new Sabre\\DAV\\Auth\\Plugin(new People(), 'files'));
$locks = new Sabre\\DAV\\Locks\\Backend\\File(__DIR__ . '/locks/locks');
$server->addPlugin(new Sabre\\DAV\\Locks\\Plugin($locks));
$server->addPlugin(new Sabre\\DAV\\Browser\\Plugin());
$server->exec();
""")
        program.chmod(0o755)
        return self._apache(["env", "alias", "cgi"], f"""
ScriptAlias / {program}/
SetEnv REDIRECT_STATUS 200
SetEnv PHP_INI_SCAN_DIR {self.folder}/php
<Directory {self.folder}>
    CGIPassAuth On
    Require all granted
</Directory>
""")

    def _apache(self, names, more):
        """Apache with some modules, and with more configuration than every Apache here gets."""
        modules = "/usr/lib/apache2/modules"
        loads = "\n".join(f"LoadModule {name}_module {modules}/mod_{name}.so"
                          for name in ["mpm_event", "authz_core", *names])
        shutil.chown(self.root, *(["www-data"] * 2)) if os.getuid() == 0 else None
        (self.folder / "locks").mkdir(exist_ok=True)
        os.chmod(self.folder / "locks", 0o777)
        person = "User www-data\nGroup www-data" if os.getuid() == 0 else ""
        (self.folder / "config").write_text(f"""
ServerRoot {self.folder}
ServerName 127.0.0.1
Listen 127.0.0.1:{self.port}
PidFile {self.folder}/pid
ErrorLog {self.folder}/errors
{loads}
{person}
KeepAliveTimeout 60
{more}""")
        for above in [self.folder, *self.folder.parents][:2]:
            os.chmod(above, 0o755)
        return ["/usr/sbin/apache2", "-DFOREGROUND", "-f", str(self.folder / "config")]

    def _s3(self):
        (self.root / "bucket").mkdir(exist_ok=True)
        return [str(self.rclone), "serve", "s3", "--addr", f"127.0.0.1:{self.port}", "--auth-key",
                ",".join(KEYS.values()), "--vfs-cache-mode", "full",
                "--vfs-write-back", "100ms", "--dir-cache-time", "1s", "--cache-dir",
                str(self.folder / "cache"), "--config", str(self.folder / "none"), str(self.root)]

    def _seaweedfs(self):
        """SeaweedFS, a store of S3 that heeds each condition; who asks without a key may do all."""
        program = TOOLS / "weed"
        assert program.exists(), f"{program} is missing: scripts/test installs it"
        rights = ["Admin", "Read", "Write", "List", "Tagging"]
        keys = {"accessKey": KEYS["access_key_id"], "secretKey": KEYS["secret_access_key"]}
        identities = [{"name": "anonymous", "actions": rights},
                      {"name": "ada", "actions": rights, "credentials": [keys]}]
        (self.folder / "s3.json").write_text(json.dumps({"identities": identities}))
        if not self.others:
            self.others = [held_pair() for _ in range(3)]
        master, volume, filer = (ports[0] for ports in self.others)
        return [str(program), f"-logdir={self.folder}", "server", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", f"-dir={self.root}",
                f"-master.port={master}", f"-volume.port={volume}", f"-filer.port={filer}", "-s3",
                f"-s3.port={self.port}", f"-s3.config={self.folder}/s3.json", "-volume.max=200",
                # Two stores would want the same ports for these.
                "-s3.port.iceberg=0", "-s3.port.lance=0",
                "-master.telemetry=false", "-master.volumeSizeLimitMB=64"]

    @property
    def files(self):
        """Where the account's files lie at the server."""
        return self.root / "bucket" if self.kind == "s3" else self.root

    def login(self, machine, name=None):
        """Signs a machine in."""
        # A kind that is no kind of account gives its name to the account.
        name = name or ("sabre" if self.kind == "sabre" else None)
        named = ["--name", name] if name else []
        if self.kind == "sftp":
            key = (self.folder / "host.pub").read_text()
            (self.folder / "known").write_text(f"[127.0.0.1]:{self.door} {key}")
            return machine.oort(
                "login", "sftp", f"127.0.0.1:{self.door}{self.root}", "--identity",
                self.folder / "user", "--ssh-option", f"UserKnownHostsFile={self.folder}/known",
                "--ssh-option", "IdentityAgent=none", *named)
        if self.kind == "ftp":
            machine.environment["SSL_CERT_FILE"] = str(self.folder / "cert.pem")
            scheme = "ftps://" if self.is_implicit else ""
            return machine.oort("login", "ftp", f"{scheme}ada@127.0.0.1:{self.door}",
                                "--password-file", "-", *named, input="secret\n")
        if self.kind in APACHE:
            return machine.oort("login", "webdav", f"http://127.0.0.1:{self.door}/", "--user", "ada",
                                "--password-file", "-", *named, input="secret\n")
        return machine.oort("login", "s3", "bucket", "--endpoint", f"http://127.0.0.1:{self.door}",
                            "--path-style", "--key-file", "-", *named, input=json.dumps(KEYS))

    def write(self, path, text):
        """Writes a file as another client: on the server's disk, or where that is cached, by rclone."""
        if self.kind == "seaweedfs":
            self.ask("PUT", path, text.encode())
            return
        if self.kind == "s3":
            self._rclone("rcat", path, input=text)
            # rclone's server gives new bytes at once, and the ETag of before until it wrote them to
            # its disk: until then Oort, which asks what it would replace, hears of the object before.
            wanted = hashlib.md5(text.encode()).hexdigest()
            eventually(lambda: self._etag(path) == wanted, "the server has what was written")
            return
        file = self.files / path
        file.write_text(text)
        if self.kind in APACHE and os.getuid() == 0:
            shutil.chown(file, "www-data", "www-data")

    def make_bucket(self, keeps_versions=False):
        """Makes SeaweedFS's bucket."""
        def made():
            try:
                self.ask("PUT")
                return True
            except OSError:
                return False
        eventually(made, "the store makes a bucket")
        if keeps_versions:
            self.ask("PUT", "?versioning=", b"<VersioningConfiguration><Status>Enabled</Status>"
                     b"</VersioningConfiguration>")

    def ask(self, method, path="", data=None):
        """Asks SeaweedFS, which needs no key, for something in the bucket, or of it (`?...`)."""
        separator = "" if path.startswith("?") else "/"
        address = f"http://127.0.0.1:{self.port}/bucket{separator}{urllib.parse.quote(path, safe='/?=')}"
        request = urllib.request.Request(address, method=method, data=data)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.read()

    def remove(self, path):
        """Removes a file as another client."""
        if self.kind == "s3":
            return self._rclone("deletefile", path)
        (self.files / path).unlink()

    def _rclone(self, command, path, *flags, **more):
        # Right after an object was replaced rclone's own server may answer with the one of before,
        # which rclone takes for damage.
        for _ in range(2):
            if self._run_rclone(command, path, *flags, **more).returncode == 0:
                return
        self._run_rclone(command, path, *flags, check=True, **more)

    def _etag(self, path):
        """The ETag that the server gives for an object; None where it gives none."""
        result = self._run_rclone("lsjson", path, "--stat", "--hash", capture_output=True)
        if result.returncode != 0:
            return None
        return (json.loads(result.stdout) or {}).get("Hashes", {}).get("md5")

    def names(self, folder):
        """The paths of the objects below a folder of rclone's store, as the store lists them now."""
        result = self._run_rclone("lsf", folder, "--recursive", "--files-only", capture_output=True)
        return set(result.stdout.splitlines())

    def _run_rclone(self, command, path, *flags, **more):
        remote = (f":s3,provider=Other,endpoint='http://127.0.0.1:{self.port}',"
                  + ",".join(f"{key}={value}" for key, value in KEYS.items()) + ":bucket/")
        return subprocess.run(
            [str(self.rclone), "--config", str(self.folder / "none"), command, remote + path, *flags],
            text=True, **more)

    def holds(self, wanted):
        """Fails where the server does not hold exactly this."""
        def difference():
            found = self.tree()
            return {path: (found.get(path, "missing"), wanted.get(path, "not wanted"))
                    for path in found.keys() | wanted.keys()
                    if found.get(path, "missing") != wanted.get(path, "missing")}
        # While rclone's store writes to its disk, a list of it may lack what it has given before.
        deadline = time.monotonic() + (60 if self.kind == "s3" else 0)
        while (left := difference()) and time.monotonic() < deadline:
            pass
        assert not left, str(left)[:2000]

    def tree(self):
        """What lies at the server: bytes by path, None for folders, without files of Oort's own."""
        if self.kind != "s3":
            return self._tree(self.files)
        # What rclone's store gives: some files that it gives, it never writes to its disk.
        with tempfile.TemporaryDirectory() as copy:
            self._rclone("copy", "", copy)
            return self._tree(pathlib.Path(copy))

    @staticmethod
    def _tree(folder):
        found = {}
        for path in sorted(folder.rglob("*")):
            name = str(path.relative_to(folder))
            if ".oort-" in name or ".DAV" in name:
                continue
            try:
                found[name] = None if path.is_dir() else path.read_bytes()
            except FileNotFoundError:
                continue  # what a server writes aside has its name by now
        return found
