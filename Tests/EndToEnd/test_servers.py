"""Servers of a person's own: OpenSSH, ProFTPD, Apache, sabre/dav, and rclone's S3."""

import errno
import os
import random
import shutil
import socket
import subprocess
import time

import pytest

from machine import Machine, eventually, exchange_names
from relay import HoldingRelay
from servers import APACHE, KINDS, Server


@pytest.fixture(params=KINDS)
def server(request, folder):
    server = Server(request.param, folder)
    yield server
    server.stop()


@pytest.fixture
def drive(machine, server):
    """The server's folder in the mount, its tree known."""
    server.login(machine)
    machine.mount()
    return machine.ready(server.kind)


def local_tree(folder):
    return {str(path.relative_to(folder)): None if path.is_dir() else path.read_bytes()
            for path in sorted(folder.rglob("*"))}


def shown(server, drive):
    """What the mount shows, without what rclone's store brought back of the sign-in's attempts.

    It writes objects to its disk a little later; one that is deleted just then is there again, and one
    that is replaced has the new bytes under the old hash for a moment, which Oort refuses to give.
    """
    if server.kind != "s3":
        return local_tree(drive)

    def tree():
        try:
            return [local_tree(drive)]
        except OSError as error:
            if error.errno != errno.EIO:
                raise
    (found,) = eventually(tree, "every file has the bytes of its hash")
    return {path: data for path, data in found.items() if not path.startswith(".oort-probe-")}


def make_tree(folder):
    """A tree as people have them: names of all kinds, empty files and folders, some megabytes."""
    for name in ["a b", "ümlaut/deep/er", "empty folder", "100% #1; [x] & 'y'"]:
        (folder / name).mkdir(parents=True)
    (folder / "a b" / "empty").touch()
    (folder / "ümlaut" / "日本語.txt").write_text("こんにちは")
    (folder / "ümlaut" / "deep" / "er" / "big").write_bytes(bytes(range(256)) * 24_000)
    for number in range(40):
        (folder / "100% #1; [x] & 'y'" / f"file {number}").write_text(f"content {number}\n" * number)
    return folder


def test_a_tree_goes_there_and_is_changed(machine, server, drive, folder):
    source = make_tree(folder / "source")
    machine.run("cp", "-r", source, drive / "tree")
    machine.sync()
    wanted = {"tree": None} | {f"tree/{path}": data for path, data in local_tree(source).items()}
    server.holds(wanted)
    # A second mount knows it without asking, and reads what is cached nowhere.
    machine.unmount()
    shutil.rmtree(machine.cache)
    machine.mount()
    machine.ready(server.kind)
    machine.run("diff", "-r", source, drive / "tree")
    # Renamed and removed things are, at the server.
    (drive / "tree" / "a b").rename(drive / "moved")
    shutil.rmtree(drive / "tree" / "100% #1; [x] & 'y'")
    (drive / "tree" / "ümlaut" / "日本語.txt").write_text("さようなら")
    machine.sync()
    after = shown(server, drive)
    server.holds(after)
    assert after["moved/empty"] == b""
    assert after["tree/ümlaut/日本語.txt"].decode() == "さようなら"
    assert not any("100%" in path for path in after)


def test_others_change_it(machine, server, drive):
    (drive / "folder").mkdir()
    (drive / "folder" / "ours.txt").write_text("ours")
    machine.sync()
    server.write("folder/theirs.txt", "theirs")
    server.write("top.txt", "at the top")
    eventually(lambda: (drive / "folder" / "theirs.txt").exists()
               and (drive / "top.txt").exists(), "the files show")
    assert (drive / "folder" / "theirs.txt").read_text() == "theirs"
    server.write("folder/ours.txt", "ours, changed by them")
    eventually(lambda: (drive / "folder" / "ours.txt").read_text() == "ours, changed by them",
               "the new content shows")
    server.remove("top.txt")
    eventually(lambda: not (drive / "top.txt").exists(), "it is gone")


def test_a_folder_that_goes_later_leaves_what_came_into_it(machine, server, drive):
    """What another client put there while the deletion waited is kept, at any depth."""
    (drive / "folder" / "deep" / "down").mkdir(parents=True)
    (drive / "folder" / "ours.txt").write_text("ours")
    (drive / "folder" / "deep" / "down" / "ours.txt").write_text("ours")
    machine.sync()
    machine.oort("pause")
    shutil.rmtree(drive / "folder")
    # The feed is read meanwhile.
    server.write("top.txt", "at the top")
    eventually((drive / "top.txt").exists, "the feed is read")
    server.write("folder/deep/down/theirs.txt", "theirs")
    machine.oort("resume")
    machine.sync()
    eventually(lambda: local_tree(drive / "folder") == {
        "deep": None, "deep/down": None, "deep/down/theirs.txt": b"theirs"}, "theirs shows")
    server.holds(local_tree(drive))


@pytest.mark.parametrize("server", ["webdav", "sabre"], indirect=True)
def test_a_folder_that_goes_leaves_what_cannot_be_shown(machine, server, drive):
    """No request can name an item whose name is no text, and a plain WebDAV server has no trash."""
    (drive / "folder").mkdir()
    (drive / "folder" / "ours.txt").write_text("ours")
    machine.sync()
    unnamed = os.fsencode(server.root / "folder") + b"/caf\xe9"
    with open(unnamed, "wb") as file:
        file.write(b"the only copy")
    shutil.rmtree(drive / "folder")
    eventually((drive / "folder").exists, "the folder shows again")
    with open(unnamed, "rb") as file:
        assert file.read() == b"the only copy"
    assert "cannot be shown" in machine.oort("status", status=None)
    os.remove(unnamed)
    shutil.rmtree(drive / "folder")
    machine.sync()
    server.holds({})


def test_both_sides_are_kept(machine, server, drive):
    (drive / "report.txt").write_text("first")
    machine.sync()
    machine.oort("pause")
    (drive / "report.txt").write_text("mine")
    server.write("report.txt", "theirs, which is longer")
    machine.oort("resume")
    machine.sync()
    contents = shown(server, drive)
    server.holds(contents)
    assert set(contents.values()) == {b"mine", b"theirs, which is longer"}
    assert contents["report.txt"] == b"theirs, which is longer"


def test_a_killed_mount_sends_what_was_written(machine, server, drive):
    for number in range(30):
        (drive / f"file {number}").write_bytes(f"{number} ".encode() * 5000)
    machine.kill()
    machine.mount()
    machine.ready(server.kind)
    machine.sync()
    server.holds({f"file {number}": f"{number} ".encode() * 5000 for number in range(30)})


def test_a_server_that_is_away(machine, server, drive):
    (drive / "before").write_text("before")
    machine.sync()
    server.stop()
    (drive / "while away").write_text("written while away")
    assert (drive / "before").read_text() == "before"
    eventually(lambda: machine.account(server.kind)["state"] == "offline", "it is seen")
    server.start()
    machine.sync()
    server.holds({"before": b"before", "while away": b"written while away"})
    assert set(shown(server, drive)) == {"before", "while away"}


@pytest.mark.parametrize("is_unmounted", [False, True])
def test_all_else_goes_out_while_an_upload_without_an_answer_is_read_back(
        machine, folder, is_unmounted):
    """The server reports no hashes: only the bytes prove that a file arrived."""
    server = Server("webdav", folder)
    relay = HoldingRelay(server.port, "large")
    server.door = relay.port
    content = os.urandom(3 << 20)
    try:
        server.login(machine)
        machine.mount()
        drive = machine.ready("webdav")
        (drive / "large").write_bytes(content)
        eventually(relay.has_arrived.is_set, "the file arrives")
        machine.kill()
        machine.mount()
        machine.ready("webdav")
        eventually(relay.is_read.is_set, "what arrived is read")
        (drive / "folder").mkdir()
        (drive / "folder" / "small").write_text("small")
        eventually((server.root / "folder" / "small").exists, "another file goes out")
        assert "what arrived is read and compared" in machine.oort("status")
        assert any(not transfer["is_upload"] and transfer["path"].endswith("/large")
                   for transfer in machine.account("webdav")["transfers"])
        if is_unmounted:
            machine.unmount()
            machine.mount()
            machine.ready("webdav")
        relay.may_read.set()
        machine.sync()
        server.holds({"large": content, "folder": None, "folder/small": b"small"})
        assert (drive / "large").read_bytes() == content
        assert relay.uploads == 1
    finally:
        relay.shut()
        server.stop()


def test_a_damaged_map_and_an_upload_without_an_answer_keep_nothing_waiting(machine, folder):
    """Of what was asked in a folder, the folder's id is of the map that is gone."""
    server = Server("webdav", folder)
    relay = HoldingRelay(server.port, "large")
    server.door = relay.port
    content = os.urandom(100_000)
    try:
        server.login(machine)
        machine.mount()
        drive = machine.ready("webdav")
        (drive / "folder").mkdir()
        (drive / "folder" / "there").write_text("there")
        machine.sync()
        (drive / "folder" / "there").write_text("changed")
        (drive / "folder" / "large").write_bytes(content)
        eventually(relay.has_arrived.is_set, "the file arrives")
        machine.kill()
        relay.may_read.set()
        database = machine.state / "places" / "webdav.sqlite"
        for ending in ["-wal", "-shm"]:
            database.with_name(database.name + ending).unlink(missing_ok=True)
        database.write_bytes(b"this is no database at all" * 1000)
        machine.mount()
        drive = machine.ready("webdav")
        machine.sync()
        assert machine.account("webdav")["state"] == "up to date"
        (drive / "folder" / "more").write_text("more")
        machine.sync()
        found = server.tree()
        assert found["folder/more"] == b"more"
        # Nothing of what was written is lost, under whatever name.
        assert {content, b"changed"} <= set(found.values())
        assert local_tree(drive) == found
    finally:
        relay.shut()
        server.stop()


@pytest.mark.parametrize("server", ["sftp", "ftp"], indirect=True)
def test_limits_hold(machine, server, drive):
    content = os.urandom(6 << 20)
    (server.files / "theirs").write_bytes(content)
    eventually((drive / "theirs").exists, "the file is there")
    machine.oort("limit", "--up", "1M", "--down", "1M")

    def seconds(act):
        start = time.monotonic()
        act()
        return time.monotonic() - start

    def send():
        (drive / "mine").write_bytes(content)
        machine.sync()

    # The first piece waits for nothing, and what two connections hold between them is no more than 2 MiB.
    assert seconds(send) > 4
    assert seconds(lambda: (drive / "theirs").read_bytes()) > 3
    assert (drive / "theirs").read_bytes() == content
    assert (server.files / "mine").read_bytes() == content
    # With this one it would take 96 s.
    machine.oort("limit", "--up", "64K")
    other = os.urandom(6 << 20)
    (drive / "late").write_bytes(other)
    eventually(lambda: machine.account(server.kind)["transfers"], "it is on its way")
    machine.oort("limit", "--off")
    assert seconds(machine.sync) < 60
    assert (server.files / "late").read_bytes() == other


@pytest.mark.parametrize("server", ["sftp", "ftp"], indirect=True)
@pytest.mark.parametrize("is_sent_between", [False, True])
def test_a_save_that_keeps_size_and_time_is_seen_elsewhere(
        machine, clouds, server, drive, folder, is_sent_between):
    """Size and second are all that these servers report of a content."""
    other = Machine(folder, clouds, "two")
    try:
        (drive / "vera").write_text("content one\n")
        machine.sync()
        before = (drive / "vera").stat()
        server.login(other)
        other.mount()
        there = other.ready(server.kind)
        assert (there / "vera").read_text() == "content one\n"
        for text in ("content two\n", "content 3  \n"):
            (drive / "vera").write_text(text)
            if is_sent_between:
                machine.sync()
            os.utime(drive / "vera", ns=(before.st_atime_ns, before.st_mtime_ns))
            machine.sync()
            eventually(lambda: (there / "vera").read_text() == text, "the other machine sees it")
        with open(there / "vera", "a") as file:
            file.write("and more\n")
        other.sync()
        server.holds({"vera": b"content 3  \nand more\n"})
        assert other.account(server.kind)["conflicts"] == []
    finally:
        other.clean()


@pytest.mark.parametrize("server", ["sftp", "ftp"], indirect=True)
def test_a_size_and_second_that_come_back_are_seen(machine, clouds, server, drive, folder):
    """The other machine knows only the second of two contents, and gives a third one the first one's time."""
    other = Machine(folder, clouds, "two")

    def save(at, on, text, second=1_700_000_000):
        (at / "report").write_text(text)
        os.utime(at / "report", (second, second))
        on.sync()
    try:
        save(drive, machine, "content 1")
        save(drive, machine, "content 2")
        assert (server.files / "report").stat().st_mtime == 1_700_000_001
        server.login(other)
        other.mount()
        there = other.ready(server.kind)
        assert (there / "report").read_text() == "content 2"
        save(there, other, "content 3")
        assert (server.files / "report").stat().st_mtime == 1_700_000_000
        eventually(lambda: (drive / "report").read_text() == "content 3", "the first machine sees it")
        save(drive, machine, "content 4")
        server.holds({"report": b"content 4"})
        eventually(lambda: (there / "report").read_text() == "content 4", "so does the other one")
        for one in (machine, other):
            assert one.account(server.kind)["conflicts"] == []
    finally:
        other.clean()


@pytest.mark.parametrize("kind", ["sftp", "ftp", "webdav", "s3"])
def test_what_was_just_written_is_read_without_the_server(machine, folder, kind):
    server = Server(kind, folder)
    try:
        server.login(machine)
        machine.mount()
        drive = machine.ready(kind)
        (drive / "report").write_text("the first draft")
        machine.sync()
        # Sent under the temporary name, as a slow program's file is, and then renamed over the old one.
        with open(drive / "report.tmp", "w") as file:
            file.write("the second draft")
        machine.sync()
        (drive / "report.tmp").rename(drive / "report")
        # Its time is set after its content was sent.
        (drive / "stamped").write_text("stamped later")
        machine.sync()
        os.utime(drive / "stamped", (1_700_000_000, 1_700_000_000))
        # The same content once more.
        (drive / "again").write_text("the same")
        machine.sync()
        (drive / "again").write_text("the same")
        machine.sync()
        server.stop()
        eventually(lambda: machine.account(kind)["state"] == "offline", "it is seen")
        wanted = {"report": b"the second draft", "stamped": b"stamped later", "again": b"the same"}
        assert local_tree(drive) == wanted
        # A restart changes nothing about it.
        machine.unmount()
        machine.mount()
        eventually((drive / "report").exists, "the tree is there")
        assert local_tree(drive) == wanted
        # rclone's store, which writes to its disk a little later, keeps parts of what it was writing.
        if kind != "s3":
            server.start()
            machine.sync()
            server.holds(wanted)
    finally:
        machine.clean()
        server.stop()


@pytest.mark.parametrize("server", APACHE, indirect=True)
def test_a_file_of_the_future_is_changed_and_removed(machine, server, drive):
    """Apache gives a file a weak tag until its time has passed, and refuses it where a strong one must be."""
    future = time.time() + 3600
    for name in ("changed", "removed", "theirs"):
        (drive / name).write_text("the first draft")
    machine.sync()
    for name in ("changed", "removed", "theirs"):
        os.utime(server.files / name, (future, future))
    eventually(lambda: all((drive / name).stat().st_mtime > time.time() + 1800
                           for name in ("changed", "removed", "theirs")), "the times show")
    assert (drive / "changed").read_text() == "the first draft"
    machine.oort("pause")
    (drive / "theirs").write_text("mine")
    server.write("theirs", "theirs, which is longer")
    os.utime(server.files / "theirs", (future, future))
    machine.oort("resume")
    (drive / "changed").write_text("the second draft")
    (drive / "removed").unlink()
    machine.sync()
    contents = local_tree(drive)
    server.holds(contents)
    assert set(contents.values()) == {b"the second draft", b"theirs, which is longer", b"mine"}
    assert "removed" not in contents


@pytest.mark.parametrize("server", ["sftp", "ftp", "s3"], indirect=True)
def test_a_file_is_read_on_while_it_gets_another_time(machine, server, drive):
    """Its revision changes at the server between two parts of it, and before the mount has the answer."""
    content = os.urandom(4 << 20)
    names = [f"film {number}" for number in range(6)]
    for name in names:
        (server.files / name).write_bytes(content)
    eventually(lambda: all((drive / name).exists() for name in names), "the files show")
    machine.oort("limit", "--down", "8M")
    for number, name in enumerate(names):
        parts = []
        with open(drive / name, "rb", buffering=0) as file:
            parts.append(file.read(1 << 17))
            os.utime(drive / name, (1_600_000_000, 1_600_000_000 + number))
            while part := file.read(1 << 17):
                parts.append(part)
        assert b"".join(parts) == content
    machine.oort("limit", "--off")
    machine.sync()
    for number, name in enumerate(names):
        assert (drive / name).read_bytes() == content
        assert (drive / name).stat().st_mtime == 1_600_000_000 + number


def test_links_at_sftp(machine, folder):
    server = Server("sftp", folder)
    try:
        server.login(machine)
        machine.mount()
        drive = machine.ready("sftp")
        (drive / "target").write_text("content")
        (drive / "link").symlink_to("target")
        machine.sync()
        assert (server.files / "link").is_symlink()
        assert (server.files / "link").read_text() == "content"
        subprocess.run(["ln", "-s", "target", server.files / "theirs"], check=True)
        eventually(lambda: (drive / "theirs").is_symlink(), "the link shows")
        assert (drive / "theirs").read_text() == "content"
    finally:
        machine.clean()
        server.stop()


def test_a_link_and_a_file_change_names_at_sftp(machine, folder):
    """On the server's disk a link and a file cannot both have a name, though they lie at two places."""
    server = Server("sftp", folder)
    try:
        server.login(machine)
        machine.mount()
        drive = machine.ready("sftp")
        for name in ("a", "c", "d"):
            (drive / name).symlink_to(f"target of {name}")
        for name in ("b", "e"):
            (drive / name).write_text(f"content of {name}")
        machine.sync()
        exchange_names(drive / "a", drive / "b")
        exchange_names(drive / "c", drive / "d")
        (drive / "new").write_text("a file in a link's place")
        (drive / "new").rename(drive / "a.link")
        (drive / "link").symlink_to("target of link")
        (drive / "link").rename(drive / "e")
        machine.sync()
        for root in (server.files, drive):
            names = {name for name in os.listdir(root) if not name.startswith(".")}
            assert names == {"a", "a.link", "b", "c", "d", "e"}
            assert os.readlink(root / "b") == "target of a"
            assert os.readlink(root / "c") == "target of d"
            assert os.readlink(root / "d") == "target of c"
            assert os.readlink(root / "e") == "target of link"
            assert not (root / "a").is_symlink()
            assert (root / "a").read_text() == "content of b"
        # A file over a link, and a link and a file of one name that two make.
        (drive / "new").write_text("over a link")
        (drive / "new").rename(drive / "c")
        machine.sync()
        assert not (server.files / "c").is_symlink()
        assert (server.files / "c").read_text() == "over a link"
        machine.oort("pause", "sftp")
        (drive / "both").write_text("ours")
        (server.files / "both").symlink_to("theirs")
        machine.oort("resume", "sftp")
        machine.sync()
        assert os.readlink(server.files / "both") == "theirs"
        (ours,) = [name for name in os.listdir(server.files) if "both" in name and name != "both"]
        assert (server.files / ours).read_text() == (drive / ours).read_text() == "ours"
        eventually(lambda: os.readlink(drive / "both") == "theirs", "the link shows")
    finally:
        machine.clean()
        server.stop()


@pytest.mark.parametrize("server", ["sftp"], indirect=True)
def test_a_time_that_the_protocol_cannot_carry_comes_to_rest(machine, server, drive):
    far = 7_258_118_400  # 2200
    largest = 2**32 - 1  # 2106
    (drive / "new").write_text("new")
    os.utime(drive / "new", (far, far))
    (drive / "old").write_text("old")
    machine.sync()
    os.utime(drive / "old", (far, far))
    os.utime(drive / "new", (-far, -far))
    machine.sync()
    eventually(lambda: machine.account("sftp")["state"] == "up to date", "it rests")
    assert (server.files / "old").stat().st_mtime == largest
    assert (server.files / "new").stat().st_mtime == 0
    assert machine.account("sftp")["pending_count"] == 0


@pytest.mark.parametrize("kind", ["sftp", "ftp"])
def test_servers_without_a_trash(machine, folder, kind):
    server = Server(kind, folder)
    try:
        server.login(machine)
        machine.write_settings(machine.settings() + f"\n[accounts.{kind}]\ntrash = false\n")
        machine.mount()
        drive = machine.ready(kind)
        (drive / "folder").mkdir()
        for name in ("file", "folder/file"):
            (drive / name).write_text("content")
        machine.sync()
        (drive / "file").unlink()
        machine.run("rm", "-r", drive / "folder")
        machine.sync()
        assert list(server.files.iterdir()) == []
        assert kind in machine.oort("trash", status=None)
        assert "cannot refuse a stale replace" in machine.oort("status")
        told = machine.oort("accounts", "--verbose")
        assert "no\trefuses a stale replace" in told, told
        assert "no\tgives back what was deleted" in told, told
    finally:
        machine.clean()
        server.stop()


@pytest.mark.parametrize("server", ["sftp", "ftp"], indirect=True)
def test_what_is_private_here_is_private_there(machine, server, drive):
    """New files and folders have their modes at the server from the first on, and read-only ones can be
    filled."""
    def make(name, mode, data=None):
        path = drive / name
        if data is None:
            os.mkdir(path, mode)
        else:
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY, mode))
            path.chmod(mode | 0o200)
            path.write_bytes(data)
        path.chmod(mode)
    make("vault", 0o700)
    make("vault/key", 0o600, b"secret")
    make("vault/empty", 0o600, b"")
    make("tool", 0o755, b"#!/bin/sh\n")
    make("plain", 0o644, b"plain")
    make("frozen", 0o700)
    make("frozen/inside", 0o444, b"inside")
    (drive / "frozen").chmod(0o555)
    machine.sync()
    modes = {str(path.relative_to(server.root)): path.stat().st_mode & 0o777
             for path in server.root.rglob("*")}
    assert modes == {"vault": 0o700, "vault/key": 0o600, "vault/empty": 0o600, "tool": 0o755,
                     "plain": 0o644, "frozen": 0o755, "frozen/inside": 0o644}
    assert local_tree(server.root) == local_tree(drive)
    (drive / "vault" / "key").write_bytes(b"another")
    machine.sync()
    assert (server.root / "vault" / "key").read_bytes() == b"another"
    assert (server.root / "vault" / "key").stat().st_mode & 0o777 == 0o600


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives a server a disk of its own")
@pytest.mark.parametrize("kind", ["sftp", "ftp"])
def test_a_full_disk_is_called_one(machine, folder, kind):
    """Large and small, what has no room there is kept here with the reason, and goes out once there is room."""
    server = Server(kind, folder)
    machine.run("mount", "-t", "tmpfs", "-o", "size=12m,mode=755", "oort-test", server.root)
    try:
        (server.root / "others").write_bytes(bytes(8 << 20))
        server.login(machine)
        machine.mount()
        drive = machine.ready(kind)
        large = random.Random(1).randbytes(9 << 20)
        (drive / "large").write_bytes(large)

        def words():
            return machine.oort("status", status=None)
        eventually(lambda: "account is full: make room" in words(), "the reason shows")
        (server.root / "others").unlink()
        eventually(lambda: [path.name for path in server.root.iterdir()] == [], "nothing is left there")
        machine.sync()
        assert (server.root / "large").read_bytes() == large
    finally:
        machine.clean()
        server.stop()
        machine.run("umount", "-l", server.root)


def test_what_others_shorten_is_never_filled_up(machine, server, drive, folder):
    """A program that reads a file in the moment in which it becomes shorter has the one or the other content."""
    if server.kind == "s3":
        pytest.skip("rclone's server keeps what it is given in its own cache")

    def put(data):
        new = folder / "new"
        new.write_bytes(data)
        if server.kind in APACHE:
            shutil.chown(new, "www-data", "www-data")
        os.rename(new, server.root / "file")
        return data
    for number in range(20):
        old = put(b"old %d " % number * 700)
        eventually(lambda: (drive / "file").exists() and (drive / "file").stat().st_size == len(old),
                   "the longer one shows")
        new = put(b"new %d " % number * 50)
        try:
            read = (drive / "file").read_bytes()
        except OSError as error:
            assert error.errno == errno.ESTALE
            read = (drive / "file").read_bytes()
        assert read in (old, new), (number, len(old), len(new), len(read))


class KeepingFTP(Server):
    """ProFTPD as it is without a word about it: nothing that is there is written over."""

    def _ftp(self):
        arguments = super()._ftp()
        config = self.folder / "config"
        config.write_text(config.read_text().replace("AllowOverwrite on", "AllowOverwrite off"))
        return arguments


def test_ftp_that_writes_over_nothing(machine, folder):
    """Files are saved and replaced there, private ones too, and nothing else is left."""
    server = KeepingFTP("ftp", folder)
    try:
        server.login(machine)
        machine.mount()
        drive = machine.ready("ftp")
        contents = {"plain": b"first", "private": b"secret", "large": random.Random(5).randbytes(3 << 20)}

        def save(contents):
            for name, data in contents.items():
                (drive / name).write_bytes(data)
            machine.sync()
            assert local_tree(server.root) == contents
        (drive / "private").touch(0o600)
        save(contents)
        assert (server.root / "private").stat().st_mode & 0o777 == 0o600
        save({name: data[::-1] + b"!" for name, data in contents.items()})
        assert (server.root / "private").stat().st_mode & 0o777 == 0o600
        (drive / "new").write_bytes(b"by a rename")
        (drive / "new").rename(drive / "plain")
        machine.sync()
        assert (server.root / "plain").read_bytes() == b"by a rename"
        assert sorted(os.listdir(server.root)) == sorted(os.listdir(drive)) == ["large", "plain", "private"]
    finally:
        machine.clean()
        server.stop()


def test_ftp_that_is_encrypted_from_the_first_byte(machine, folder):
    server = Server("ftp", folder, is_implicit=True)
    try:
        # No authority vouches for the server; and an unencrypted sign-in cannot work with `ftps`.
        said = machine.oort("login", "ftp", f"ftps://ada@127.0.0.1:{server.port}", "--password-file",
                            "-", input="secret\n", status=1)
        assert "certificate" in said, said
        said = machine.oort("login", "ftp", f"ftps://ada@127.0.0.1:{server.port}", "--plain",
                            "--password-file", "-", input="secret\n", status=1)
        assert "--plain is not" in said, said
        server.login(machine)
        machine.mount()
        drive = machine.ready("ftp")
        make_tree(drive / "tree")
        machine.sync()
        server.holds(local_tree(drive))
        # What is read comes from the server, after a restart with nothing cached.
        machine.unmount()
        shutil.rmtree(machine.cache)
        machine.mount()
        drive = machine.ready("ftp")
        assert local_tree(drive) == server.tree()
        server.stop()
        (drive / "later").write_text("later")
        server.start()
        machine.sync()
        assert (server.files / "later").read_text() == "later"
        assert "TLSv1" in (server.folder / "tls").read_text()
    finally:
        machine.clean()
        server.stop()


class NarrowServer(Server):
    """FTP for so few connections, which it closes soon when nothing is said."""

    most = 0

    def _ftp(self):
        arguments = super()._ftp()
        with open(self.folder / "config", "a") as config:
            config.write(f"\nMaxClients {self.most}\nTimeoutIdle 3\n")
        return arguments


@pytest.mark.parametrize("most", [2, 3])
def test_ftp_that_takes_few_connections(machine, folder, most):
    """What has no line of its own goes over the one that there is, and the mount lives."""
    NarrowServer.most = most
    server = NarrowServer("ftp", folder)
    try:
        server.login(machine)
        machine.mount()
        drive = machine.ready("ftp")
        process = machine.process
        (drive / "many").mkdir()
        for number in range(30):
            (drive / "many" / str(number)).write_text(f"small {number}\n")
        (drive / "large").write_bytes(random.Random(1).randbytes(3 << 20))
        machine.sync()
        server.holds(local_tree(drive))
        # Another client has a connection for a while.
        others = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(most - 1)]
        (drive / "many" / "later").write_text("later\n")
        (drive / "large").write_bytes(random.Random(2).randbytes(3 << 20))
        for other in others:
            assert other.recv(1)
            other.close()
        machine.sync()
        server.holds(local_tree(drive))
        machine.oort("free", str(drive))
        assert local_tree(drive) == server.tree()
        assert machine.process == process
    finally:
        machine.clean()
        server.stop()


def test_vsftpd_is_refused_with_what_to_do(machine, folder):
    server = Server("vsftpd", folder)
    try:
        machine.environment["SSL_CERT_FILE"] = str(server.folder / "cert.pem")

        def login(password, *more):
            return machine.oort("login", "ftp", f"ftp@127.0.0.1:{server.port}", *more,
                                "--password-file", "-", input=f"{password}\n", status=1)

        said = login("secret")
        assert "lists folders for people only (LIST), not for programs (MLSD)" in said, said
        assert "oort login sftp" in said, said
        assert "not encrypted" in login("secret", "--plain")
        passwords = (server.folder / "commands").read_text().count('"PASS ')
        assert "refuses ftp" in login("wrong")
        assert (server.folder / "commands").read_text().count('"PASS ') == passwords + 1
        assert "vsftpd" not in machine.oort("accounts", status=None)
    finally:
        machine.clean()
        server.stop()


def test_signing_in_at_ftp(machine, folder):
    server = Server("ftp", folder)
    try:
        host = f"ada@127.0.0.1:{server.port}"
        # No authority vouches for the server, and it refuses logins without encryption.
        said = machine.oort("login", "ftp", host, "--password-file", "-", input="secret\n", status=1)
        assert "certificate" in said and "ca_file" in said
        said = machine.oort("login", "ftp", host, "--plain", "--password-file", "-",
                            input="secret\n", status=1)
        assert "not encrypted" in said
        machine.environment["SSL_CERT_FILE"] = str(server.folder / "cert.pem")
        said = machine.oort("login", "ftp", host, "--password-file", "-", input="wrong\n", status=1)
        assert "refuses ada" in said
        said = machine.oort("login", "ftp", f"{host}/none", "--password-file", "-",
                            input="secret\n", status=1)
        assert "cannot begin there" in said
        said = machine.oort("login", "ftp", "ada:secret@127.0.0.1", status=1)
        assert "a password is no part of it" in said
        # The account begins where one wants.
        (server.files / "part" / "ü").mkdir(parents=True)
        (server.files / "part" / "ü" / "there").write_text("there")
        said = machine.oort("login", "ftp", host, "--root", "part/ü", "--name", "part",
                            "--password-file", "-", input="secret\n")
        assert "part/ü" in said, said
        said = machine.oort("login", "ftp", host, "--root", "none", "--password-file", "-",
                            input="secret\n", status=1)
        assert "cannot begin there" in said
        server.login(machine, "files")
        assert "files\tftp\tada@127.0.0.1" in machine.oort("accounts")
        machine.mount()
        drive = machine.ready("files")
        assert os.listdir(machine.ready("part")) == ["there"]
        (machine.mount_point / "part" / "mine").write_text("mine")
        machine.sync(machine.mount_point / "part")
        assert (server.files / "part" / "ü" / "mine").read_text() == "mine"
        (drive / "note").write_text("note")
        (drive / "note").unlink()
        (drive / "kept").write_text("kept")
        machine.sync()
        (drive / "kept").unlink()
        machine.sync()
        assert "kept" in machine.oort("trash", drive)
        machine.oort("restore", drive / "kept")
        eventually(lambda: (drive / "kept").exists(), "it is back", timeout=60)
        assert (drive / "kept").read_text() == "kept"
    finally:
        machine.clean()
        server.stop()
