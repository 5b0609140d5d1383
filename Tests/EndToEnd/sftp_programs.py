"""Servers of SFTP besides OpenSSH's: ProFTPD's mod_sftp, AsyncSSH, and `rclone serve sftp`."""

import grp
import os
import pwd
import subprocess

from servers import TOOLS, Server

ASYNCSSH = """
import asyncio, sys, asyncssh

async def serve(port, root, host_key, keys):
    await asyncssh.listen(
        "127.0.0.1", port, server_host_keys=[host_key], authorized_client_keys=keys,
        sftp_factory=lambda channel: asyncssh.SFTPServer(channel, chroot=root))
    await asyncio.Event().wait()

asyncio.run(serve(int(sys.argv[1]), *sys.argv[2:]))
"""

# A server before an object store: it sets no times, and its disk tells no size.
GATEWAY = ASYNCSSH.replace("asyncssh.SFTPServer(channel", "Gateway(channel").replace("async def", """
class Gateway(asyncssh.SFTPServer):
    def setstat(self, path, attrs, *, follow_symlinks=True):
        raise asyncssh.SFTPPermissionDenied("SetStat is not supported")

    def fsetstat(self, file, attrs):
        raise asyncssh.SFTPPermissionDenied("SetStat is not supported")

    def statvfs(self, path):
        return asyncssh.SFTPVFSAttrs(bsize=512, frsize=512, namemax=255)

async def""", 1)


class SFTPProgram(Server):
    """A server of SFTP that is not OpenSSH's."""

    def __init__(self, program, folder):
        self.program = program
        super().__init__("sftp", folder)

    def _sftp(self):
        for name in ("host", "user"):
            if not (self.folder / name).exists():
                subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", name],
                               cwd=self.folder, check=True)
        return getattr(self, f"_{self.program}")()

    def _rclone(self):
        return [str(TOOLS / "rclone"), "serve", "sftp", str(self.root), "--addr",
                f"127.0.0.1:{self.port}", "--key", str(self.folder / "host"), "--authorized-keys",
                str(self.folder / "user.pub"), "--vfs-cache-mode", "off", "--dir-cache-time", "1s",
                "--config", str(self.folder / "none")]

    def _gateway(self):
        return self._asyncssh(GATEWAY)

    def _asyncssh(self, program=ASYNCSSH):
        script = self.folder / "serve.py"
        script.write_text(program)
        return [str(TOOLS / "python"), str(script), str(self.port), str(self.root),
                str(self.folder / "host"), str(self.folder / "user.pub")]

    def _proftpd(self):
        user = pwd.getpwuid(os.getuid()).pw_name
        users = self.folder / "users"
        users.write_text(f"{user}:*:{os.getuid()}:{os.getgid()}::{self.root}:/bin/sh\n")
        # ProFTPD reads keys in the format of RFC 4716.
        key = subprocess.run(["ssh-keygen", "-e", "-f", self.folder / "user.pub"], check=True,
                             capture_output=True, text=True).stdout
        (self.folder / "authorized").write_text(key)
        for private in (users, self.folder / "authorized"):
            private.chmod(0o600)
        (self.folder / "config").write_text(f"""
LoadModule mod_sftp.c
ServerType standalone
Port {self.port}
DefaultAddress 127.0.0.1
SocketBindTight on
UseReverseDNS off
DelayEngine off
User {user}
Group {grp.getgrgid(os.getgid()).gr_name}
RootLogin on
UseFtpUsers off
RequireValidShell off
DefaultRoot ~
AuthUserFile {users}
AuthOrder mod_auth_file.c
AuthPAM off
WtmpLog off
TransferLog none
PidFile {self.folder}/pid
ScoreboardFile {self.folder}/scoreboard
SystemLog {self.folder}/errors
AllowOverwrite on
Umask 022
SFTPEngine on
SFTPHostKey {self.folder}/host
SFTPAuthMethods publickey
SFTPAuthorizedUserKeys file:{self.folder}/authorized
SFTPLog {self.folder}/sftp
""")
        return ["/usr/sbin/proftpd", "-n", "-q", "-c", str(self.folder / "config")]

    def login(self, machine, name=None):
        key = (self.folder / "host.pub").read_text()
        known = self.folder / "known"
        known.write_text(f"[127.0.0.1]:{self.door} {key}")
        return machine.oort(
            "login", "sftp", f"127.0.0.1:{self.door}/", "--identity", self.folder / "user",
            "--ssh-option", f"UserKnownHostsFile={known}", "--ssh-option", "IdentityAgent=none",
            *(["--name", name] if name else []))
