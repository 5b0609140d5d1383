"""OpenSSH's server as careful administrators set it up."""

import os
import shutil

from test_sftp_passwords import PASSWORD, PasswordServer


class HardenedServer(PasswordServer):
    """SFTP and nothing else: no shell, a prison, few sessions, no old cryptography."""

    shell = "/usr/sbin/nologin"
    # A prison's folders up to the root are all root's, as /srv is and no folder of a test below /tmp.
    binds = {**PasswordServer.binds, "root": "/srv"}
    beginning = "/files"

    def __init__(self, folder, method="key", sessions=1):
        self.way_in = method
        self.is_read_only = False
        super().__init__(folder, more=f"""
MaxSessions {sessions}
MaxStartups 2:100:2
MaxAuthTries 2
LoginGraceTime 20
AllowUsers ada
PermitRootLogin no
PubkeyAuthentication {"yes" if method == "key" else "no"}
AuthenticationMethods {"publickey" if method == "key" else "password"}
HostKeyAlgorithms ssh-ed25519
PubkeyAcceptedAlgorithms ssh-ed25519
KexAlgorithms sntrup761x25519-sha512@openssh.com,curve25519-sha256
Ciphers chacha20-poly1305@openssh.com,aes256-gcm@openssh.com
MACs hmac-sha2-256-etm@openssh.com
Compression no
DisableForwarding yes
PermitTTY no
PermitUserEnvironment no
PermitUserRC no
ClientAliveInterval 30
""")

    def _sftp(self):
        arguments = super()._sftp()
        os.chown(self.root, 0, 0)
        self.root.chmod(0o755)
        if not self.files.exists():
            self.files.mkdir()
            shutil.chown(self.files, 4711, 4711)
        with open(self.folder / "config", "a") as config:
            config.write(f"""
Match User ada
    ChrootDirectory /srv
    ForceCommand internal-sftp{" -R" if self.is_read_only else ""}
""")
        return arguments

    @property
    def files(self):
        return self.root / "files"

    def turn(self, read_only):
        """Begins anew, and takes changes no longer or again."""
        self.is_read_only = read_only
        self.stop()
        self.start()

    def login(self, machine, name=None):
        named = ["--name", name] if name else []
        if self.way_in == "password":
            return self.sign_in(machine, PASSWORD, *named)
        return machine.oort("login", "sftp", *self.options(), "--identity", self.folder / "user",
                            *named)

    def logins(self):
        return self.count("Accepted", "publickey" if self.way_in == "key" else "password")
