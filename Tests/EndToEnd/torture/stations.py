"""A machine with a mount in which steps are done, and which may die at any moment."""

import contextlib
import errno
import os
import shutil
import sqlite3
import threading
import time

from machine import OORT, Machine, eventually
from torture.steps import Side

# What a read may say while the service cannot be reached.
NETWORK = {"EIO", "EHOSTUNREACH", "ETIMEDOUT"}


def is_stranded(change):
    """Whether a part of a file was changed whose rest the service can no longer give."""
    return any(
        words in (change.get("error") or "")
        for words in ("another revision is current", "newer revision", "content is shorter now",
                      "content has another size now", "is not at the service any longer",
                      "the content changed meanwhile"))


class Station:
    def __init__(self, folder, kind, name, seed):
        self.name, self.kind = name, kind
        self.machine = Machine(folder, kind, name)
        kind.login(self.machine)
        self.machine.mount()
        self.side = Side(self.machine.ready(kind.name), seed)
        self.killer = None
        self.kills = self.remounts = self.stranded = 0
        # What was taken away because the service can no longer give the rest of it: the inode, that of
        # the file of which it is the conflict copy, and the size.
        self.given_up = []

    @property
    def root(self):
        return self.side.root

    def kill_within(self, seconds):
        """Ends the mount's process by kill -9 so much later, whatever goes on then."""

        def kill():
            time.sleep(seconds)
            self.machine.kill()

        self.killer = threading.Thread(target=kill)
        self.killer.start()

    @property
    def is_dead(self):
        """Whether the mount was killed: it answers nothing, or its folder is empty already."""
        if self.killer is None:
            return False
        try:
            os.statvfs(self.machine.mount_point)
        except OSError as error:
            return error.errno in (errno.ENOTCONN, errno.ECONNABORTED)
        return not self.killer.is_alive() or not os.path.ismount(self.machine.mount_point)

    def revive(self):
        """Mounts again after a kill; all handles are gone."""
        self.killer.join()
        self.killer = None
        self.kills += 1
        self.side.close_all()
        self.machine.mount()

    def spare(self):
        """Waits for a kill that was ordered, and mounts again."""
        if self.killer is not None:
            self.revive()
            return True
        return False

    def remount(self, without_cache):
        """An ordinary unmount and mount; the cache may be deleted between."""
        self.remounts += 1
        self.side.close_all()
        self.machine.unmount()
        if without_cache:
            shutil.rmtree(self.machine.cache, ignore_errors=True)
        self.machine.mount()

    def settle(self):
        """Waits until the service has everything, and says so."""
        for _ in range(20):
            result = self.machine.run(str(OORT), "sync", "--timeout", "300s", status=None)
            if result.returncode == 0:
                break
            stranded = [change for change in self.account["pending"] if is_stranded(change)]
            assert stranded, f"oort sync: {result.returncode}\n{result.stdout}"
            for change in stranded:
                self.stranded += 1
                path = os.path.join(self.machine.mount_point, change["path"])
                file = os.lstat(path)
                self.given_up.append((file.st_ino, self.original(file.st_ino), file.st_size))
                os.unlink(path)
        eventually(lambda: self.account["pending_count"] == 0, "nothing is pending")

    def original(self, inode):
        """The file of which an inode is the conflict copy; None where it is none."""
        address = f"file:{self.machine.state}/catalog.sqlite?mode=ro"
        with contextlib.closing(sqlite3.connect(address, uri=True)) as catalog:
            row = catalog.execute(
                "SELECT original FROM conflict WHERE inode = ?", [inode]).fetchone()
        return row and row[0]

    @property
    def account(self):
        return self.machine.account(self.kind.name)

    @property
    def conflicts(self):
        """The conflict copies in the status, by paths below the account's folder."""
        return {path.removeprefix(f"{self.root}/") for path in self.account["conflicts"]}

    @property
    def recorded(self):
        """Every conflict copy that this machine made, ended or not, below the account's folder."""
        address = f"file:{self.machine.state}/catalog.sqlite?mode=ro"
        with contextlib.closing(sqlite3.connect(address, uri=True)) as catalog:
            return {path for path, in catalog.execute("""
                WITH RECURSIVE place(parent, path) AS (
                    SELECT node.parent, node.name FROM conflict JOIN node USING (inode)
                    UNION ALL
                    SELECT node.parent, node.name || '/' || place.path
                    FROM place JOIN node ON node.inode = place.parent WHERE node.parent != 1)
                SELECT path FROM place JOIN node ON node.inode = place.parent
                WHERE node.parent = 1""")}

    def check_log(self):
        log = self.machine.log()
        for word in ("Fatal error", "Illegal instruction", "Segmentation fault"):
            assert word not in log, log[-3000:]

    def leave(self):
        if self.killer is not None:
            self.killer.join()
        self.side.close_all()
        self.machine.clean()
