"""Servers of SFTP besides OpenSSH's: AsyncSSH, and `rclone serve sftp`."""

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

    def _asyncssh(self):
        script = self.folder / "serve.py"
        script.write_text(ASYNCSSH)
        return [str(TOOLS / "python"), str(script), str(self.port), str(self.root),
                str(self.folder / "host"), str(self.folder / "user.pub")]

    def login(self, machine, name=None):
        key = (self.folder / "host.pub").read_text()
        known = self.folder / "known"
        known.write_text(f"[127.0.0.1]:{self.door} {key}")
        return machine.oort(
            "login", "sftp", f"127.0.0.1:{self.door}/", "--identity", self.folder / "user",
            "--ssh-option", f"UserKnownHostsFile={known}", "--ssh-option", "IdentityAgent=none",
            *(["--name", name] if name else []))
