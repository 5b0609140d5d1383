"""A fresh system of a distribution, in namespaces of its own, made by debootstrap."""

import os
import pathlib
import shutil
import signal
import subprocess
import tempfile

# The release's name, its archive, the keys that sign it, and its parts.
DEBIAN = ("http://deb.debian.org/debian", "debian-archive-keyring.gpg", "main")
UBUNTU = ("http://archive.ubuntu.com/ubuntu", "ubuntu-archive-keyring.gpg", "main,universe")
RELEASES = {"bookworm": DEBIAN, "trixie": DEBIAN, "noble": UBUNTU, "resolute": UBUNTU}
# Of Ubuntu's keys Debian has no package; this one comes by TLS.
UBUNTU_KEYS = ("https://archive.ubuntu.com/ubuntu/pool/main/u/ubuntu-keyring/"
               "ubuntu-keyring_2023.11.28.1_all.deb")


def archive(release, cache):
    """The release's base system as a tar file, made once."""
    file = cache / f"{release}.tar"
    if file.exists():
        return file
    cache.mkdir(parents=True, exist_ok=True)
    mirror, keys, parts = RELEASES[release]
    with tempfile.TemporaryDirectory(dir=cache) as folder:
        folder = pathlib.Path(folder)
        keyring = pathlib.Path("/usr/share/keyrings") / keys
        if not keyring.exists():
            run("curl", "-sSfL", "-o", folder / "keys.deb", UBUNTU_KEYS)
            run("dpkg-deb", "-x", folder / "keys.deb", folder / "keys")
            keyring = folder / "keys" / "usr/share/keyrings" / keys
        # All of Ubuntu's releases are made in the same way, also those that it does not know yet.
        script = "/usr/share/debootstrap/scripts/" + ("gutsy" if parts != "main" else "sid")
        # In namespaces of its own, with which its mounts go.
        run("unshare", "--mount", "--propagation", "private", "debootstrap", "--variant=minbase",
            f"--keyring={keyring}", f"--components={parts}", release, folder / "root", mirror,
            script, timeout=1200)
        run("tar", "-C", folder / "root", "-cf", folder / "tar", ".")
        os.rename(folder / "tar", file)
    return file


def run(*arguments, timeout=300, status=0, **more):
    result = subprocess.run(
        [str(argument) for argument in arguments], stdin=subprocess.DEVNULL, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout, **more)
    assert status is None or result.returncode == status, (
        f"{arguments}: {result.returncode}\n{result.stdout[-6000:]}")
    return result.stdout


class Root:
    """The system, with the machine's network and FUSE, and a user."""

    # Mounted below the folder only, and only in here; everybody may open /dev/fuse, as a machine
    # with udev has it.
    BEGIN = """
        mount --rbind /dev "$1/dev" && mount -t proc proc "$1/proc" &&
        mount -t tmpfs none "$1/run" && mknod -m 666 "$1/run/fuse" c 10 229 &&
        mount --bind "$1/run/fuse" "$1/dev/fuse" &&
        mount -t tmpfs none "$1/tmp" && exec sleep infinity
    """

    def __init__(self, release, cache, folder):
        self.path = folder / release
        self.path.mkdir()
        run("tar", "-C", self.path, "-xf", archive(release, cache))
        shutil.copy("/etc/resolv.conf", self.path / "etc" / "resolv.conf")
        # A machine that was booted has it; fusermount3 finds there who may unmount what.
        (self.path / "etc" / "mtab").unlink(missing_ok=True)
        (self.path / "etc" / "mtab").symlink_to("../proc/self/mounts")
        self.process = subprocess.Popen(
            ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation", "private",
             "sh", "-c", self.BEGIN, "sh", str(self.path)],
            stdin=subprocess.DEVNULL, start_new_session=True)
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        while not (found := children.read_text().split()):
            assert self.process.poll() is None
        self.leader = found[0]
        self.inside("sh", "-c", "until mountpoint -q /tmp; do :; done")
        self.inside("useradd", "--create-home", "--shell", "/bin/bash", "ada")

    def inside(self, *arguments, **more):
        """Runs a program as root."""
        return run("nsenter", "-t", self.leader, "-m", "-p", "chroot", self.path, "env", "-i",
                   "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8",
                   "DEBIAN_FRONTEND=noninteractive", *arguments, **more)

    def ada(self, *arguments, **more):
        """Runs a program as the user, who is logged in on a terminal and has no desktop."""
        return self.inside("runuser", "-u", "ada", "--", "env", "HOME=/home/ada", "USER=ada",
                           *arguments, **more)

    @property
    def home(self):
        return self.path / "home" / "ada"

    def apt(self, *arguments):
        return self.inside("apt-get", "-q", "-y", "--no-install-recommends", *arguments,
                           timeout=900)

    def end(self):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        shutil.rmtree(self.path, ignore_errors=True)
