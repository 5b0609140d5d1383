"""The services under torture, one class for each kind: what it promises, and what others do there.

A simulated service is asked by its control; at a server of a person's own others work on its disk, or
speak to it beside Oort.
"""

import calendar
import os
import pathlib
import re
import shutil
import time
import urllib.error
import urllib.parse
import urllib.request
import xml.etree.ElementTree

from machine import CLOUDS, Clouds, Gate, eventually
from relay import FaultyRelay
from servers import Server
from torture.contents import LINK_ENDING, digest
from torture.disk_history import DiskHistory
from torture.faults import RelayStorms, SimulatedStorms, WireStorms
from torture.rough_gate import RoughGate
from torture.steps import RENAME_EXCHANGE, RENAME_NOREPLACE, rename

# What Oort and the servers keep for themselves.
HIDDEN = re.compile(r"\.oort-|\.DAV$|\.davfs\.tmp")


class Misfit(Exception):
    """The other client's edit does not fit the present tree."""


class Kind:
    """A service that runs for one history."""

    name = ""
    # Characters that it refuses in names.
    refused = ""
    # Whether a new mount shows the times that programs set.
    tells_times = True
    # Whether it reports when an item was made, by which items of one name are numbered.
    tells_creation = True
    # Whether only whole seconds and the size distinguish two contents of a file.
    tells_by_second = False
    # Whether a mount sees the time that another client gave a file.
    lists_times = True
    # Whether it keeps what is overwritten or removed: no content that it ever had is gone then.
    keeps_history = True
    # Whether it reports the hash of each content: if not, a copy is not known to have the right content, and
    # that is sent once more as a new revision.
    tells_hashes = True
    # Whether it refuses what would replace another revision than the one that is known. Else the last
    # writer's content is there, and another one that came within the same moment is not.
    has_conditions = True

    def __init__(self, folder):
        self.machines = []

    def settings(self):
        """What each machine's settings need."""
        return ""

    def login(self, machine):
        """Signs a machine in; the account has the kind's name."""
        raise NotImplementedError

    def storms(self, random):
        raise NotImplementedError

    @property
    def is_running(self):
        raise NotImplementedError

    def stop(self):
        raise NotImplementedError

    def begin_counting(self):
        """The figures are of what comes from now on."""

    def bytes_sent(self):
        raise NotImplementedError

    def items(self):
        """Each file and folder: id, parent, kind, path, parts, hash, created; a link is a small file.

        Where nobody is told when it was made, `created` is empty.
        """
        raise NotImplementedError

    def contents(self):
        """Each content that can be had: path, trashed, hashes (oldest first)."""
        raise NotImplementedError

    def arrived(self):
        """Every content that was ever there, as far as anybody knows."""
        return {content for item in self.contents() for content in item["hashes"]}

    def edit(self, operation, path, **more):
        """Changes something as another client; returns the item and the contents that are gone.

        Raises `Misfit`.
        """
        raise NotImplementedError


class Simulated(Kind):
    """A simulator."""

    def __init__(self, folder):
        super().__init__(folder)
        self.clouds = Clouds(folder, names=[self.name])

    def settings(self):
        return self.clouds.settings()

    def tokens(self, cloud):
        return self.clouds.tokens(cloud)

    def login(self, machine):
        machine.login(self.name)

    def storms(self, random):
        return SimulatedStorms(self.clouds, self.name, random)

    @property
    def is_running(self):
        return self.clouds.process.poll() is None

    def stop(self):
        self.clouds.stop()

    def begin_counting(self):
        self.clouds.forget_calls(self.name)

    def bytes_sent(self):
        return sum(count["bytes_in"] for count in self.clouds.traffic(self.name).values())

    def items(self):
        items = self.clouds.items(self.name)
        if not self.tells_creation:
            for item in items:
                item["created"] = ""
        return items

    def contents(self):
        return self.clouds.contents(self.name)

    def edit(self, operation, path, **more):
        try:
            # What is replaced is in the file's history.
            return self.clouds.edit(self.name, operation, path, **more), []
        except urllib.error.HTTPError as error:
            if error.code != 409:
                raise
            raise Misfit from None


class Dropbox(Simulated):
    name = "dropbox"
    tells_creation = False
    # It takes a file's time with its content only.
    tells_times = False


class Drive(Simulated):
    name = "drive"


class OneDrive(Simulated):
    name = "onedrive"
    refused = '"*:<>?\\|'


class Box(Simulated):
    name = "box"


class Nextcloud(Simulated):
    name = "nextcloud"
    tells_creation = False
    tells_hashes = False

    def settings(self):
        return ""

    def login(self, machine):
        password = self.tokens(self.name)["access_token"]
        gate = self.clouds.gates[self.name]
        machine.oort("login", self.name, f"http://127.0.0.1:{gate.port}/cloud.example.org", "--user",
                     "ada@example.com", "--password-file", "-", input=password + "\n")

    def storms(self, random):
        # A password does not expire, and a refused one is not sent again for a while; nor are there
        # cursors.
        return SimulatedStorms(self.clouds, self.name, random, without={
            "expired_token", "tokens_expired", "cursors_lost"})


class OpenCloud(Simulated):
    name = "opencloud"
    tells_creation = False
    # It takes a file's time with its content only.
    tells_times = False

    def __init__(self, folder):
        super().__init__(folder)
        # The server checks every upload before it shows it, and folders show changes below them late.
        self.clouds.control(self.name, "PUT", "habits", {"processing": 1, "lag": 1})

    def settings(self):
        return ""

    def login(self, machine):
        token = self.tokens(self.name)["access_token"]
        gate = self.clouds.gates[self.name]
        machine.oort("login", "webdav", f"http://127.0.0.1:{gate.port}/opencloud.example.org",
                     "--user", "ada", "--password-file", "-", "--name", self.name,
                     input=token + "\n")

    def storms(self, random):
        # As at Nextcloud.
        return SimulatedStorms(self.clouds, self.name, random, without={
            "expired_token", "tokens_expired", "cursors_lost"})


class Served(Kind):
    """A server of a person's own, with something rough before it."""

    keeps_history = False
    # The server's kind, where it is not this one's name.
    program = None

    def __init__(self, folder):
        super().__init__(folder)
        self.server = Server(self.program or self.name, folder)
        self.aside = folder / "others"
        self.aside.mkdir()
        self.count = 0

    def login(self, machine):
        self.server.login(machine, self.name)

    @property
    def is_running(self):
        return True

    def stop(self):
        self.gate.shut()
        if self.server.process.poll() is None:
            self.server.stop()


class OnDisk(Served):
    """A server whose files lie in a folder: others change them there, each by one step."""

    # Its trash's folder in the account, where there is one.
    trash = None

    def items(self):
        found = []
        for place, folders, files in os.walk(self.server.files):
            folders[:] = [name for name in folders if not HIDDEN.match(name)]
            links = [name for name in folders if os.path.islink(os.path.join(place, name))]
            for name in [*folders, *files]:
                if HIDDEN.match(name):
                    continue
                path = pathlib.Path(place, name)
                if (item := self._item(path, name in folders and name not in links)) is not None:
                    found.append(item)
            folders[:] = [name for name in folders if name not in links]
        return found

    def _item(self, path, is_folder):
        parts = list(path.relative_to(self.server.files).parts)
        try:
            if is_folder:
                content = None
            elif path.is_symlink():
                # As the mount knows it.
                content = digest(os.fsencode(os.readlink(path)))
                parts[-1] += LINK_ENDING
            else:
                content = digest(path.read_bytes())
        except FileNotFoundError:
            return None  # moved or removed meanwhile
        return {
            "id": "/".join(parts), "parent": "/".join(parts[:-1]) or None, "parts": parts,
            "path": "/" + "/".join(parts), "kind": "folder" if is_folder else "file",
            "hash": content, "created": ""}

    def contents(self):
        found = [{"path": item["path"], "trashed": False, "hashes": [item["hash"]]}
                 for item in self.items() if item["kind"] == "file"]
        if self.trash is not None:
            found += [{"path": str(path), "trashed": True, "hashes": [digest(path.read_bytes())]}
                      for path in (self.server.files / self.trash).rglob("*")
                      if path.is_file() and not path.is_symlink()
                      # What a broken connection left in a folder goes with it.
                      and not HIDDEN.search(path.name)]
        return found

    def edit(self, operation, path, **more):
        place = self.server.files / path.strip("/")
        try:
            if operation == "write":
                return path, self._write(place, **more)
            if operation == "mkdir":
                self._make_folder(place)
                return path, []
            if operation == "move":
                to = self.server.files / more["to"].strip("/")
                self._make_folder(to.parent)
                rename(place, to, RENAME_NOREPLACE)
                return path, []
            gone = self._aside()
            rename(place, gone, RENAME_NOREPLACE)
            ended = [gone] if gone.is_file() else [p for p in gone.rglob("*") if p.is_file()]
            return path, [digest(file.read_bytes()) for file in ended if not file.is_symlink()]
        except OSError as error:
            raise Misfit from error

    def _aside(self):
        self.count += 1
        return self.aside / str(self.count)

    def _write(self, place, text, modified=None):
        """What the content ended that was there."""
        self._make_folder(place.parent)
        new = self._aside()
        new.write_text(text)
        self._own(new)
        if modified is not None:
            moment = time.strptime(modified, "%Y-%m-%dT%H:%M:%SZ")
            os.utime(new, (calendar.timegm(moment),) * 2)
        while True:
            try:
                before = os.lstat(place)
            except FileNotFoundError:
                rename(new, place, RENAME_NOREPLACE)
                return []
            if not place.is_file() or place.is_symlink():
                raise Misfit
            if self.tells_by_second and modified is None and before.st_size == len(text.encode()):
                moment = max(int(before.st_mtime), int(time.time())) + 1
                os.utime(new, (moment, moment))
            rename(new, place, RENAME_EXCHANGE)
            return [digest(new.read_bytes())]

    def _make_folder(self, place):
        if not place.is_dir():
            self._make_folder(place.parent)
            place.mkdir()
            self._own(place)

    def _own(self, place):
        """Makes it as if the server had written it."""


class Wired(OnDisk):
    """A server that is reached by connections of its own kind, which break as they like."""

    has_conditions = False
    tells_by_second = True

    def __init__(self, folder):
        super().__init__(folder)
        self.gate = RoughGate(self.server.port)
        self.server.door = self.gate.port
        self.history = DiskHistory(self.server.files, folder / "history")

    def storms(self, random):
        return WireStorms(self.gate, self.server, random)

    def bytes_sent(self):
        return self.gate.received

    def arrived(self):
        return super().arrived() | self.history.contents()

    def stop(self):
        self.history.stop()
        super().stop()


class SFTP(Wired):
    """OpenSSH."""

    name = "sftp"
    trash = ".oort-trash"


class FTP(Wired):
    """ProFTPD, by TLS; its connections for contents do not pass the gate."""

    name = "ftp"
    trash = ".oort-trash"


class WebDAV(OnDisk):
    """Apache's mod_dav."""

    name = "webdav"
    # A content comes under a temporary name, and what is moved over a file is bound to no tag.
    has_conditions = False
    # The server sets times itself.
    tells_times = False

    def __init__(self, folder):
        super().__init__(folder)
        self.relay = FaultyRelay(self.server.port)
        self.gate = Gate(self.relay.port)
        self.relay.public = self.server.door = self.gate.port

    def storms(self, random):
        return RelayStorms(self.relay, self.gate, random, self.server)

    def bytes_sent(self):
        return self.relay.received

    def arrived(self):
        return super().arrived() | self.relay.taken

    def stop(self):
        super().stop()
        self.relay.shut()

    def _own(self, place):
        os.chmod(place, 0o755 if place.is_dir() else 0o644)
        if os.getuid() == 0:
            shutil.chown(place, "www-data", "www-data")


class S3(Served):
    """SeaweedFS, which others speak to without a key."""

    name = "s3"
    program = "seaweedfs"
    # A listing has the time at which the store took a content, and no other.
    tells_times = lists_times = False

    def __init__(self, folder):
        super().__init__(folder)
        self.base = f"http://127.0.0.1:{self.server.port}/bucket"
        eventually(self._made, "the store makes a bucket")
        self.relay = FaultyRelay(self.server.port)
        self.gate = Gate(self.relay.port)
        self.server.door = self.gate.port

    def settings(self):
        # Of no object it says whose it is.
        return 'links = "all"\n'

    def storms(self, random):
        return RelayStorms(self.relay, self.gate, random)

    def bytes_sent(self):
        return self.relay.received

    def arrived(self):
        return super().arrived() | self.relay.taken

    def stop(self):
        super().stop()
        self.relay.shut()

    def items(self):
        found = {}
        for key in self._keys():
            parts = key.strip("/").split("/")
            if any(HIDDEN.match(part) for part in parts):
                continue
            for end in range(1, len(parts) + key.endswith("/")):
                self._add(found, parts[:end], None)
            if not key.endswith("/") and (answer := self._get(key)) is not None:
                self._add(found, parts, digest(answer[0]))
        return list(found.values())

    @staticmethod
    def _add(found, parts, content):
        path = "/" + "/".join(parts)
        found.setdefault(path, {
            "id": path, "parent": "/" + "/".join(parts[:-1]) if len(parts) > 1 else None,
            "parts": parts, "path": path, "kind": "folder" if content is None else "file",
            "hash": content, "created": ""})

    def contents(self):
        return [{"path": item["path"], "trashed": False, "hashes": [item["hash"]]}
                for item in self.items() if item["kind"] == "file"]

    def edit(self, operation, path, **more):
        try:
            return path, self._edit(operation, path.strip("/"), **more)
        except urllib.error.HTTPError as error:
            if error.code != 412:
                raise
            raise Misfit from error  # it is there by now

    def _edit(self, operation, key, text="", to="", modified=None):
        """What contents it ended; the store gives each object its own time."""
        keys = self._keys()
        below = [each for each in keys if each.startswith(key + "/")]
        to = to.strip("/")
        if any(self._is_in_file(place, keys) for place in (key, to)):
            raise Misfit
        if operation == "mkdir":
            if key in keys:
                raise Misfit
            self._put(key + "/", b"", None)
            return []
        if operation == "write":
            if below:
                raise Misfit
            return self._write(key, text.encode())
        if to in keys or to.startswith(key + "/"):
            raise Misfit
        ended = []
        for old in below or [key] * (key in keys):
            found = self._get(old) if operation == "move" else None
            if found is not None:
                self._put(to + old[len(key):], found[0], None)
            content = self._remove(old)
            if found is None or content != digest(found[0]):
                ended += [content] if content is not None else []
        return ended

    @staticmethod
    def _is_in_file(key, keys):
        parts = key.split("/")
        return any("/".join(parts[:end]) in keys for end in range(1, len(parts)))

    def _write(self, key, data):
        """Puts a content over exactly what was there; what that was."""
        while True:
            found = self._get(key)
            try:
                self._put(key, data, found and found[1])
                return [] if found is None else [digest(found[0])]
            except urllib.error.HTTPError as error:
                if error.code not in (409, 412):
                    raise

    def _remove(self, key):
        """Removes exactly what was there; its digest, nothing where there was nothing."""
        while (found := self._get(key)) is not None:
            try:
                self._ask("DELETE", key, headers={"If-Match": found[1]})
                return None if key.endswith("/") else digest(found[0])
            except urllib.error.HTTPError as error:
                if error.code not in (404, 409, 412):
                    raise
        return None

    # The protocol.

    def _ask(self, method, key="", query="", data=None, headers=None):
        address = self.base + ("/" + urllib.parse.quote(key) if key else "") + query
        request = urllib.request.Request(address, method=method, data=data, headers=headers or {})
        with urllib.request.urlopen(request, timeout=120) as answer:
            return answer.read(), answer.headers

    def _made(self):
        try:
            self._ask("PUT")
            return True
        except OSError:
            return False

    def _keys(self):
        keys, token = [], None
        while token != "":
            query = {"list-type": "2", "encoding-type": "url"}
            if token:
                query["continuation-token"] = token
            page = xml.etree.ElementTree.fromstring(
                self._ask("GET", query="?" + urllib.parse.urlencode(query))[0])
            space = page.tag.removesuffix("ListBucketResult")
            keys += [urllib.parse.unquote_plus(key.text)
                     for key in page.iterfind(f"{space}Contents/{space}Key")]
            token = page.findtext(f"{space}NextContinuationToken", "")
        return keys

    def _get(self, key):
        """Bytes and tag; nothing where there is no such key."""
        try:
            data, headers = self._ask("GET", key)
            return data, headers["ETag"]
        except urllib.error.HTTPError as error:
            if error.code != 404:
                raise
            return None

    def _put(self, key, data, tag):
        condition = {"If-None-Match": "*"} if tag is None else {"If-Match": tag}
        self._ask("PUT", key, data=data, headers=condition)


KINDS = {kind.name: kind for kind in [
    Dropbox, Drive, OneDrive, Box, Nextcloud, OpenCloud, WebDAV, SFTP, FTP, S3]}
# Those that came after the three.
OTHERS = [name for name in KINDS if name not in CLOUDS]
