"""What a person does with files every day, at every kind of service, by one account of each.

What a service cannot do is said in a sentence, whatever it is asked of.
"""

import dataclasses
import json
import os
import pathlib
import tempfile
import urllib.request

import pytest

from cloud_servers import CloudServer
from machine import CLOUDS, Clouds, Machine, eventually, read, remove
from servers import Server
from test_nextcloud import sign_in
from test_weather import Weather


@dataclasses.dataclass
class Kind:
    """What accounts of one kind can do."""

    name: str
    title: str
    links: bool = False
    # Whether the service keeps a list of links, from which they can be taken back.
    lists_links: bool = True
    # Whether it lists its trash to programs.
    trash: bool = False
    versions: bool = False
    pages: bool = False
    content: bool = False
    service: str = ""

    def __post_init__(self):
        self.service = self.service or self.name


EVERYTHING = {"links": True, "trash": True, "versions": True, "pages": True}
KINDS = {kind.name: kind for kind in [
    Kind("dropbox", "Dropbox", **EVERYTHING, content=True),
    Kind("drive", "Google Drive", **EVERYTHING, content=True),
    Kind("onedrive", "OneDrive", **{**EVERYTHING, "trash": False}, content=True),
    Kind("box", "Box", **EVERYTHING, content=True),
    Kind("nextcloud", "Nextcloud", **EVERYTHING),
    Kind("webdav", "WebDAV"),
    Kind("sftp", "SFTP", trash=True),
    Kind("ftp", "FTP", trash=True),
    Kind("s3", "S3", links=True, lists_links=False),
    Kind("s3-with-versions", "S3", links=True, lists_links=False, trash=True, versions=True,
         service="s3"),
]}


class Account:
    """One account of a kind at a service of its own, mounted."""

    def __init__(self, kind, folder):
        self.kind = kind
        self.is_simulated = kind.name in [*CLOUDS, "box"]
        self.clouds = Clouds(folder, names=[kind.name if self.is_simulated else "dropbox"])
        self.server = None
        self.machine = Machine(folder, self.clouds)
        try:
            if kind.name == "nextcloud":
                self.server = CloudServer("nextcloud", folder)
                sign_in(self.machine, self.server)
            elif self.is_simulated:
                self.machine.login(kind.name)
            else:
                has_versions = kind.name == "s3-with-versions"
                self.server = Server("seaweedfs" if has_versions else kind.name, folder)
                if has_versions:
                    self.server.make_bucket(keeps_versions=True)
                self.server.login(self.machine)
            self.machine.mount()
            self.drive = self.machine.ready(kind.service)
        except BaseException:
            self.stop()
            raise

    def write(self, path, text):
        """Writes a file as another client."""
        place = str(path.relative_to(self.drive))
        if self.is_simulated:
            self.clouds.edit(self.kind.name, "write", f"/{place}", text=text)
        elif self.kind.name == "nextcloud":
            edit = {"op": "write", "path": f"/{place}", "text": text}
            self.server.control("POST", "edit", edit)
        else:
            self.server.write(place, text)

    def folder(self, name):
        """A new folder at the service, with a name of its own kinds of letters."""
        # OneDrive takes no double quotation marks.
        quote = "" if self.kind.name == "onedrive" else ' "neu"'
        path = self.drive / f"{name} Büro d'été{quote}"
        path.mkdir()
        self.machine.sync()
        return path

    def json(self, *arguments):
        return json.loads(self.machine.oort(*arguments, "--json"))

    def refuses(self, *arguments):
        """What is said of something that cannot be done: a sentence."""
        said = self.machine.oort(*arguments, status=1)
        for word in ("Error", "Optional(", "ProviderError", "nil"):
            assert word not in said, said
        assert "." in said, said
        return said

    def stop(self):
        self.machine.clean()
        if self.server:
            self.server.stop()
        self.clouds.stop()


@pytest.fixture(scope="module", params=KINDS)
def account(request):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="oort-e2e-", dir="/tmp"))
    try:
        account = Account(KINDS[request.param], folder)
        yield account
        account.stop()
        log = account.machine.log()
    finally:
        remove(folder)
    for word in ("Fatal error", "Illegal instruction", "Segmentation fault"):
        assert word not in log, log[-3000:]


@pytest.fixture(autouse=True)
def log(account):
    yield
    # What a test that failed left is in no other's way.
    account.machine.oort("resume", status=None)
    print(f"the end of the mount's log:\n{account.machine.log()[-4000:]}")


def availability(path):
    return os.getxattr(path, "user.oort.availability").decode()


def test_it_is_found(account):
    machine = account.machine
    folder = account.folder("find")
    note = folder / "Übersicht 'Öl' 2024.txt"

    def found(*words):
        return [result["path"] for result in account.json("search", *words)["results"]]

    machine.oort("pause")
    note.write_text("We walked over glaciers.")
    # Just written, and nowhere else yet.
    assert found("ubersicht", "ol") == found("bersi", "find", "ete") == [str(note)]
    machine.oort("resume")
    machine.sync()
    assert found("ubersicht", "ol") == [str(note)]
    assert [os.path.realpath(folder.parent.parent / ".search/ubersicht ol" / name)
            for name in os.listdir(folder.parent.parent / ".search/ubersicht ol")] == [str(note)]
    if account.kind.content:
        assert found("glaciers", "--content") == [str(note)]
    else:
        said = machine.oort("search", "glaciers", "--content", status=1)
        assert f"{account.kind.title} does not search inside files" in said
    later = folder / "Später.txt"
    note.rename(later)
    assert found("spater") == [str(later)]
    machine.oort("search", "ubersicht", "ol", status=1)


def test_it_is_kept_here_and_let_go(account):
    machine = account.machine
    folder = account.folder("keep")
    note = folder / "note.txt"
    machine.oort("pause")
    note.write_text("the note")
    # Nothing is let go that is only here.
    said = machine.oort("free", note, status=None)
    assert read(note) == "the note", said
    machine.oort("pin", folder)
    machine.oort("resume")
    machine.sync()
    eventually(lambda: availability(note) == "pinned", "what was just written is kept")
    account.write(folder / "theirs.txt", "theirs")
    eventually((folder / "theirs.txt").exists, "the other file shows")
    eventually(lambda: availability(folder / "theirs.txt") == "pinned", "it is kept, too")
    machine.oort("free", folder, status=None)
    assert availability(note) == "pinned"
    pin, = account.json("pins")
    assert pin["path"] == str(folder) and pin["progress"]["files_here"] == 2
    machine.oort("unpin", folder)
    machine.oort("free", folder)
    assert availability(note) == availability(folder / "theirs.txt") == "online"
    assert read(note) == "the note" and read(folder / "theirs.txt") == "theirs"


def test_it_is_shared(account):
    machine, kind = account.machine, account.kind
    folder = account.folder("share")
    note = folder / "for 'all' ü.txt"
    machine.oort("pause")
    note.write_text("for all")
    said = account.refuses("share", note)
    if not kind.links:
        assert f"{kind.title} has no links to share" in said
    else:
        assert "not in the cloud yet" in said and "oort sync" in said
    machine.oort("resume")
    machine.sync()
    if not kind.links:
        for arguments in (["share", note], ["share", folder], ["share", "--list", note],
                          ["share", "--list"], ["unshare", note]):
            assert f"{kind.title} has no links to share" in account.refuses(*arguments)
        return
    made = account.json("share", note)
    assert made["url"].startswith(("https://", "http://")) and not made["may_edit"]
    if not kind.lists_links:
        with urllib.request.urlopen(made["url"], timeout=60) as answer:
            assert answer.read() == b"for all"
        assert "keeps no list" in account.refuses("share", "--list", note)
        assert "ends by itself" in account.refuses("unshare", note)
        assert "is a folder" in account.refuses("share", folder)
        return
    link, = account.json("share", "--list", note)["links"]
    assert link["url"] == made["url"] and link["path"] == str(note)
    assert made["url"] in machine.oort("unshare", note)
    assert account.json("share", "--list", note)["links"] == []
    assert "no link of its own" in account.refuses("unshare", note)
    assert account.json("share", folder)["url"]
    machine.oort("unshare", folder)


def test_what_was_deleted_comes_back(account):
    machine, kind = account.machine, account.kind
    folder = account.folder("trash")
    note, kept = folder / "note ü 'x'.txt", folder / "kept.txt"
    note.write_text("the note")
    kept.write_text("kept")
    machine.sync()
    note.unlink()
    machine.sync()
    if not kind.trash:
        for arguments in (["trash", account.drive], ["trash"], ["restore", note]):
            said = account.refuses(*arguments)
            assert (f"{kind.title} has no trash" in said
                    or kind.name == "onedrive" and "web page" in said), said
        return
    entry, = account.json("trash", folder)["entries"]
    assert entry["path"] == str(note) and entry["account"] == kind.service
    assert str(note) in machine.oort("trash", folder)
    machine.oort("restore", note)
    assert read(note) == "the note"
    assert account.json("trash", folder)["entries"] == []
    note.unlink()
    machine.sync()
    entry, = account.json("trash", folder)["entries"]
    machine.oort("restore", entry["id"], "--to", folder / "back 'y' ö.txt")
    assert read(folder / "back 'y' ö.txt") == "the note" and not note.exists()
    # An item that was never sent is in no trash; nor is one whose deletion was not sent.
    machine.oort("pause")
    kept.unlink()
    assert "has not heard" in account.refuses("restore", kept)
    machine.oort("resume")
    machine.sync()
    machine.oort("restore", kept)
    assert read(kept) == "kept"
    machine.run("rm", "-r", folder)
    machine.sync()
    assert "nothing that lay at" in account.refuses("restore", account.drive / "never.txt")
    if kind.name == "s3-with-versions":
        # A store has no folders; file by file they come back.
        said = account.refuses("restore", folder)
        assert "one by one" in said and "oort trash" in said, said
        folder.mkdir()
        machine.sync()
        machine.oort("restore", kept)
    else:
        machine.oort("restore", folder)
    eventually(lambda: read(kept) == "kept", "all that was in it is back")


def test_earlier_versions_come_back(account, tmp_path):
    machine, kind = account.machine, account.kind
    folder = account.folder("versions")
    note = folder / "ü 'report'.txt"
    machine.oort("pause")
    note.write_text("first")
    said = account.refuses("versions", note)
    if not kind.versions:
        assert f"{kind.title} keeps no earlier contents" in said
        machine.oort("resume")
        machine.sync()
        for arguments in (["versions", note], ["restore", note, "--version", "1"],
                          ["restore", note, "--version", "1", "--to", tmp_path / "old"]):
            assert f"{kind.title} keeps no earlier contents" in account.refuses(*arguments)
        assert read(note) == "first"
        return
    assert "not in the cloud yet" in said and "oort sync" in said
    machine.oort("resume")
    machine.sync()
    note.write_text("the second")
    # Nextcloud names a version by the time in seconds.
    os.utime(note, (1_700_000_000, 1_700_000_000))
    machine.sync()
    versions = account.json("versions", note)["versions"]
    assert [version["size"] for version in versions] == [10, 5]
    machine.oort("restore", note, "--version", versions[1]["id"], "--to", tmp_path / "old")
    assert read(tmp_path / "old") == "first" and read(note) == "the second"
    machine.oort("restore", note, "--version", versions[1]["id"])
    assert read(note) == "first"
    machine.sync()
    assert account.json("versions", note)["versions"][0]["size"] == 5
    assert "no version" in account.refuses("restore", note, "--version", "such")
    assert "only files" in account.refuses("versions", folder)


@pytest.mark.parametrize("keep", ["mine", "theirs", "both"])
def test_a_conflict_ends(account, keep):
    machine = account.machine
    folder = account.folder(f"conflict {keep}")
    note = folder / "both ü 'x'.txt"
    note.write_text("base")
    machine.sync()
    machine.oort("pause")
    note.write_text("mine")
    account.write(note, "theirs, which is longer")
    machine.oort("resume")
    machine.sync()
    eventually(lambda: read(note) == "theirs, which is longer", "the other version shows")
    conflict, = account.json("conflicts")
    assert conflict["theirs"]["path"] == str(note)
    copy = pathlib.Path(conflict["mine"]["path"])
    assert copy.parent == folder and read(copy) == "mine"
    assert str(copy) in machine.oort("conflicts")
    machine.oort("resolve", note, "--keep", keep)
    assert account.json("conflicts") == []
    machine.sync()
    left = sorted(read(path) for path in folder.iterdir())
    assert left == sorted({"mine": ["mine"], "theirs": ["theirs, which is longer"],
                           "both": ["mine", "theirs, which is longer"]}[keep])


def test_its_page_is_opened(account):
    machine, kind = account.machine, account.kind
    folder = account.folder("page")
    note = folder / "ü & 'x'.txt"
    machine.oort("pause")
    note.write_text("the note")
    said = account.refuses("open", note, "--print")
    machine.oort("resume")
    machine.sync()
    if not kind.pages:
        for place in (note, folder, account.drive):
            said = account.refuses("open", place, "--print")
            assert f"{kind.title} has no web pages" in said
        return
    assert "not in the cloud yet" in said
    for place in (note, folder, account.drive):
        page = machine.oort("open", place, "--print").strip()
        assert page.startswith(("https://", "http://")) and "\n" not in page


def test_what_is_on_its_way_is_said(account):
    """An upload that is under way is disturbed by nothing that is asked of its file."""
    machine, kind = account.machine, account.kind
    folder = account.folder("way")
    film = folder / "film ü.bin"
    content = os.urandom(3 << 20)
    machine.oort("limit", "--up", "256K")
    try:
        film.write_bytes(content)
        eventually(lambda: machine.account(kind.service)["transfers"], "it is on its way")
        for arguments in (["share", film], ["versions", film], ["open", film, "--print"],
                          ["restore", film]):
            account.refuses(*arguments)
        found = account.json("search", "film", "--in", folder)["results"]
        assert [result["path"] for result in found] == [str(film)]
        machine.oort("pin", film)
        machine.oort("free", film, status=None)
        assert film.read_bytes() == content
    finally:
        machine.oort("limit", "--off")
    machine.sync()
    assert film.read_bytes() == content
    machine.oort("unpin", film)
    machine.oort("free", film)
    assert film.read_bytes() == content


def test_what_it_can_do_is_told_without_a_mount_too(account):
    machine, kind = account.machine, account.kind

    def told():
        one, = account.json("accounts", "--verbose")
        assert "problem" not in one
        return one["abilities"], one.get("used_bytes") is not None

    abilities, has_room = told()
    assert abilities["makes_links"] == kind.links
    assert abilities["keeps_deleted"] == kind.trash
    assert abilities["keeps_versions"] == kind.versions
    assert ("hash" in abilities) == (kind.name not in ["webdav", "sftp", "ftp"])
    # Apache, a store and FTP do not report their room.
    assert has_room == (kind.name not in ["webdav", "ftp", "s3", "s3-with-versions"])
    machine.unmount()
    try:
        assert told() == (abilities, has_room)
        said = machine.oort("accounts", "--verbose")
        assert "tells a hash of contents" in said and "room\t" in said
    finally:
        machine.mount()
        machine.ready(kind.service)
