"""The programs that mount: Oort with its defaults, the others with the flags that their documentation
advises."""

import json
import os
import pathlib
import pwd
import signal
import subprocess
import time
from typing import Protocol

from .cloud import TOP, Cloud
from .road import Names, wait_for
from .server import Served

# `rclone mount --help` and the backends' pages advise them, or an expert finds them there.
RCLONE_FLAGS = [
    "--vfs-cache-mode", "full",
    # "A reasonable place to start" for parallel reads.
    "--vfs-read-chunk-size", "4M", "--vfs-read-chunk-streams", "16",
    # Changes are sent when a file has rested as long as with Oort (the default is 5 s).
    "--vfs-write-back", "1s",
    "--vfs-fast-fingerprint",
    # The tree stays known; what others change is polled for.
    "--dir-cache-time", "1000h", "--poll-interval", "10s",
    "--transfers", "32", "--checkers", "32", "--tpslimit", "0",
    "--vfs-cache-max-size", "20G",
]
RCLONE_SERVICE_FLAGS = {
    "dropbox": ["--dropbox-batch-mode", "sync", "--dropbox-chunk-size", "144M"],
    # As many calls a second as an application of one's own may make.
    "drive": ["--drive-pacer-min-sleep", "10ms", "--drive-pacer-burst", "200",
              "--drive-chunk-size", "64M"],
    "onedrive": ["--onedrive-chunk-size", "50M"],
}
# What else mounts servers of one kind.
PEERS = {"sftp": "sshfs", "webdav": "davfs2", "s3": "juicefs"}
# The tree stays known for an hour, and several connections serve several programs.
SSHFS_OPTIONS = (
    "dir_cache=yes,dcache_timeout=3600,dcache_max_size=100000,kernel_cache,entry_timeout=3600,"
    "attr_timeout=3600,max_conns=8,reconnect")
# Changes are sent when a file has rested as long as with Oort (the default is 10 s), and nothing is
# locked, which would cost two requests a file.
DAVFS_SETTINGS = {
    "delay_upload": "1", "use_locks": "0", "dir_refresh": "3600", "file_refresh": "3600",
    "cache_size": "20000", "table_size": "32768", "buf_size": "64",
}
# Its guide to caches advises them, and `juicefs mount --help`.
JUICEFS_FLAGS = [
    # What is written is kept here and sent behind that, as with Oort and rclone; by default each
    # file's close waits until the store has it, which its guide says is slow with small files.
    "--writeback", "--max-uploads", "32", "--buffer-size", "1G",
    # The tree stays known to the kernel, as with sshfs.
    "--attr-cache", "3600s", "--entry-cache", "3600s", "--dir-entry-cache", "3600s",
    "--readdir-cache",
    # `find` would count the files of its own at the top.
    "--hide-internal",
]


class Program(Protocol):
    """A program that mounts one account."""

    name: str
    folder: pathlib.Path

    def mount(self) -> None:
        """Mounts; returns when the mount is there."""

    def wait_until_known(self) -> None:
        """Returns when the whole tree is known, or as far as the program learns it by itself."""

    def tail(self) -> str:
        """The end of what the process wrote."""

    def kill(self) -> None:
        """kill -9."""

    def stop(self) -> None:
        """Unmounts in an orderly way, what is pending stays."""

    @property
    def process(self) -> int:
        """The mounting process's id."""


class Mounting:
    """What both programs share: one process in the foreground that holds one mount."""

    name = ""
    patience = 60.0

    def __init__(self, place: pathlib.Path, cloud: Cloud | Served, names: Names):
        self.place = place
        self.cloud = cloud
        self.mount_point = place / "mount"
        self.mount_point.mkdir(parents=True)
        self.folder = self.mount_point
        self.log = place / "log"
        self.child: subprocess.Popen[bytes] | None = None
        self.environment = {
            **{k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")},
            "HOME": str(place), "SSL_CERT_FILE": str(names.certificate), "LC_ALL": "C.UTF-8",
            "DBUS_SESSION_BUS_ADDRESS": "unix:path=/nonexistent",
            **{f"XDG_{kind}_HOME": str(place / kind.lower())
               for kind in ("CONFIG", "STATE", "CACHE")},
            "XDG_RUNTIME_DIR": str(place / "run"),
        }
        (place / "run").mkdir(mode=0o700)

    @property
    def process(self) -> int:
        assert self.child is not None
        return self.child.pid

    def begin(self, *command: str) -> None:
        """Starts the mounting process."""
        with open(self.log, "ab") as log:
            self.child = subprocess.Popen(
                command, env=self.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

        def is_there() -> bool:
            assert self.child is not None
            if self.child.poll() is not None:
                raise RuntimeError(f"{self.name} ended:\n{self.tail()}")
            return os.path.ismount(self.mount_point)

        wait_for(is_there, f"{self.name} mounts")

    def tail(self) -> str:
        """The end of what the process wrote."""
        return self.log.read_bytes()[-3000:].decode(errors="replace")

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def _end(self, number: signal.Signals) -> None:
        if self.child is not None and self.child.poll() is None:
            self.child.send_signal(number)
            try:
                self.child.wait(self.patience)
            except subprocess.TimeoutExpired:
                self.child.kill()
                self.child.wait()
        self.child = None
        subprocess.run(
            ["fusermount3", "-u", "-z", "-q", str(self.mount_point)], capture_output=True)


class Rclone(Mounting):
    """`rclone mount` of the account, a remote in its configuration."""

    name = "rclone"

    def __init__(self, place: pathlib.Path, cloud: Cloud | Served, names: Names, program: pathlib.Path):
        super().__init__(place, cloud, names)
        self.program = program
        options, self.top = cloud.rclone_remote()
        self.configuration = place / "rclone.conf"
        self.configuration.write_text(
            "[cloud]\n" + "".join(f"{key} = {value}\n" for key, value in options.items()))

    @staticmethod
    def flags(service: str) -> list[str]:
        """The flags of a mount of this service."""
        return RCLONE_FLAGS + RCLONE_SERVICE_FLAGS.get(service, [])

    def mount(self) -> None:
        self.begin(
            str(self.program), "mount", f"cloud:{self.top}", str(self.mount_point), "--config",
            str(self.configuration), "--cache-dir", str(self.place / "cache"),
            *self.flags(self.cloud.service))

    def wait_until_known(self) -> None:
        """It lists a folder when somebody opens it."""


class Sshfs(Mounting):
    """`sshfs` of a folder of the SFTP server."""

    name = "sshfs"

    def __init__(self, place: pathlib.Path, cloud: Cloud | Served, names: Names, program: pathlib.Path):
        super().__init__(place, cloud, names)
        assert isinstance(cloud, Served)
        self.served = cloud
        self.program = program

    def mount(self) -> None:
        server = self.served.server
        user = pwd.getpwuid(os.getuid()).pw_name
        known = self.place / "known-hosts"
        known.write_text(
            f"[127.0.0.1]:{self.served.road.port} {(server.folder / 'host.pub').read_text()}")
        self.begin(
            str(self.program), "-f", "-p", str(self.served.road.port), "-F", "/dev/null",
            "-o", f"IdentityFile={server.folder / 'user'}", "-o", f"UserKnownHostsFile={known}",
            "-o", "IdentityAgent=none", "-o", "BatchMode=yes", "-o", SSHFS_OPTIONS,
            f"{user}@127.0.0.1:{server.root}/{TOP}", str(self.mount_point))

    def wait_until_known(self) -> None:
        """It lists a folder when somebody opens it."""


class Davfs(Mounting):
    """davfs2's mount of the WebDAV server; it works behind the command that mounts."""

    name = "davfs2"

    def __init__(self, place: pathlib.Path, cloud: Cloud | Served, names: Names, program: pathlib.Path):
        super().__init__(place, cloud, names)
        self.program = program
        self.folder = self.mount_point / TOP
        self.address = f"http://127.0.0.1:{cloud.road.port}/"
        cache = place / "cache-davfs"
        cache.mkdir()
        # It works as a user of its own.
        cache.chmod(0o777)
        secrets = place / "secrets"
        secrets.write_text(f'"{self.address}" ada secret\n')
        secrets.chmod(0o600)
        self.settings = place / "davfs2.conf"
        self.settings.write_text("".join(
            f"{name} {value}\n" for name, value in
            {**DAVFS_SETTINGS, "secrets": str(secrets), "cache_dir": str(cache)}.items()))
        self.serving: int | None = None

    @property
    def process(self) -> int:
        assert self.serving is not None
        return self.serving

    def mount(self) -> None:
        with open(self.log, "ab") as log:
            subprocess.run(
                [str(self.program), self.address, str(self.mount_point), "-o",
                 f"conf={self.settings},uid={os.getuid()},gid={os.getgid()}"],
                env=self.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                check=True, timeout=60)
        name = str(self.mount_point).strip("/").replace("/", "-")
        file = pathlib.Path(f"/run/mount.davfs/{name}.pid")
        # The command may end before the process that it leaves behind has written its number.
        wait_for(lambda: file.exists() and file.read_text(), "davfs2 tells its process")
        self.serving = int(file.read_text())

    def _end(self, number: signal.Signals) -> None:
        if self.serving is None:
            return
        if number == signal.SIGKILL:
            os.kill(self.serving, number)
        # Without davfs2's own umount, which waits for a process that nobody has waited for; the
        # bench is the first process here, which has to. An orderly end sends what is pending.
        subprocess.run(["umount", "-i", "-l", str(self.mount_point)], capture_output=True)
        os.waitpid(self.serving, 0)
        self.serving = None

    def wait_until_known(self) -> None:
        """It lists a folder when somebody opens it."""


class Oort(Mounting):
    """`oort mount` with its defaults, after `oort login`."""

    name = "oort"

    def __init__(self, place: pathlib.Path, cloud: Cloud | Served, names: Names, program: pathlib.Path):
        super().__init__(place, cloud, names)
        self.program = program
        self.account = self.mount_point / cloud.service
        self.folder = self.account / TOP
        settings = place / "config" / "oort"
        settings.mkdir(parents=True)
        sign_in = cloud.oort_sign_in(place)
        (settings / "config.toml").write_text(sign_in.settings)
        self.command(
            "login", *sign_in.arguments, "--name", cloud.service, text=sign_in.text)

    def command(self, *arguments: str, text: str | None = None) -> str:
        """Runs a command of Oort's; what it says."""
        done = subprocess.run(
            [str(self.program), *arguments], env=self.environment, text=True, timeout=120,
            input=text, stdin=subprocess.DEVNULL if text is None else None, capture_output=True)
        # 3 is work that is pending, which is no failure of the status.
        if done.returncode not in ((0, 3) if arguments[0] == "status" else (0,)):
            raise RuntimeError(f"oort {arguments[0]}: {done.stdout}{done.stderr}")
        return done.stdout

    def mount(self) -> None:
        # The interval is what rclone's flags say, so that idle calls compare.
        self.begin(
            str(self.program), "mount", str(self.mount_point), "--foreground", "--poll-interval",
            "10s")
        wait_for(self.account.is_dir, "the account's folder")

    def wait_until_known(self) -> None:
        limit = time.monotonic() + 900
        while True:
            accounts = json.loads(self.command("status", "--json"))["accounts"]
            if accounts[0]["state"] in ("up to date", "syncing"):
                return
            if time.monotonic() > limit:
                raise TimeoutError(f"the tree is not known: {accounts[0]}")
            time.sleep(0.05)

    def catalog_bytes(self) -> int:
        """The size of the catalog on disk."""
        return sum(file.stat().st_size for file in (self.place / "state").rglob("*sqlite*"))
