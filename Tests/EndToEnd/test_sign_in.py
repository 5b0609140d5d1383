"""Signing in and out as a person does, at each service."""

import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import sys
import urllib.error
import urllib.request

import pytest

from machine import CLOUDS, OORT, Clouds, Machine, eventually
from servers import Server

# Opens the address like a browser would, follows the redirect to Oort's port, shows what it says.
BROWSER = """#!{python}
import sys, urllib.request
assert "state" not in sys.argv[1] and "challenge" not in sys.argv[1]
page = urllib.request.urlopen(sys.argv[1], timeout=120).read().decode(errors="replace")
open({page!r}, "w").write(page)
"""


def browse(url):
    with urllib.request.urlopen(url, timeout=120) as answer:
        return answer.read().decode()


class Login:
    """`oort login` in a process of its own, its words read as they come."""

    def __init__(self, machine, *arguments, **environment):
        self.process = subprocess.Popen(
            [str(OORT), "login", *arguments], env={**machine.environment, **environment},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.said = ""

    def until(self, pattern):
        """Reads on until a line has the pattern; its first group."""
        for line in self.process.stdout:
            self.said += line
            if found := re.search(pattern, line):
                return found.group(1)
        raise AssertionError(f"never said: {pattern}\n{self.said}")

    def end(self):
        rest, _ = self.process.communicate(timeout=120)
        self.said += rest
        assert self.process.returncode == 0, self.said
        return self.said


@pytest.fixture
def login(machine):
    started = []

    def start(*arguments, **environment):
        started.append(Login(machine, *arguments, **environment))
        return started[-1]

    yield start
    machine.said += [one.said for one in started]
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
        one.process.wait()


def works(machine, clouds, cloud):
    """The account is there, and what is written in it arrives."""
    account, = json.loads(machine.oort("accounts", "--json"))
    assert account["service"] == cloud and account["email"]
    machine.mount()
    (machine.ready(cloud) / "file.txt").write_text("signed in")
    machine.sync()
    assert clouds.content(cloud, "/file.txt") == b"signed in"


def test_with_a_browser(machine, clouds, cloud, folder, login):
    programs = folder / "bin"
    programs.mkdir()
    opener = programs / "xdg-open"
    opener.write_text(BROWSER.format(python=sys.executable, page=str(folder / "page")))
    opener.chmod(0o755)
    session = login(cloud, PATH=f"{programs}:{os.environ['PATH']}")
    said = session.end()
    assert "Signed in to" in said and f'"{cloud}"' in said
    eventually((folder / "page").exists, "the browser shows the last page")
    assert "close this window" in (folder / "page").read_text()
    works(machine, clouds, cloud)


def test_a_wrong_state_is_refused_and_the_sign_in_goes_on(machine, clouds, login):
    session = login("drive", PATH="/nonexistent")
    url = session.until(r"(http://\S+)")
    with pytest.raises(urllib.error.HTTPError):
        browse(re.sub(r"state=[^&]+", "state=forged", url))
    assert json.loads(machine.oort("accounts", "--json")) == []
    browse(url)
    assert "Signed in to" in session.end()


def test_without_a_browser(machine, clouds, cloud, login):
    session = login(cloud, "--no-browser")
    url = session.until(r"(http\S+)")
    if cloud == "onedrive":
        session.until(r"code: (\S+)")
        clouds.control(cloud, "POST", "tokens/approve")
    elif cloud == "dropbox":
        session.process.stdin.write(browse(url) + "\n")
        session.process.stdin.flush()
    else:
        browse(url)
    session.end()
    works(machine, clouds, cloud)


@pytest.mark.parametrize("cloud", ["drive"])
def test_a_browser_on_another_machine(machine, clouds, cloud, login):
    """It cannot come back to this one: the address at which it fails is pasted here."""

    class NoFollowing(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *arguments):
            return None

    session = login(cloud, "--no-browser")
    url = session.until(r"(http\S+)")
    with pytest.raises(urllib.error.HTTPError) as answer:
        urllib.request.build_opener(NoFollowing).open(url, timeout=120)
    session.process.stdin.write("nonsense\n" + answer.value.headers["Location"] + "\n")
    session.process.stdin.flush()
    assert "does not belong to this sign-in" in session.end()
    works(machine, clouds, cloud)


def test_a_sign_in_where_nobody_can_paste(machine, clouds, cloud):
    """Standard input is at its end at once; a device's code needs none."""
    if cloud == "onedrive":
        pytest.skip("OneDrive's code is typed in the browser")
    said = machine.oort("login", cloud, "--no-browser", status=1)
    assert "nothing was pasted" in said and "--token-file" in said and "denied" not in said


def test_logout_that_gives_up_what_was_not_sent(machine, clouds, cloud, drive):
    clouds.gates[cloud].shut()
    (drive / "unsent.txt").write_text("unsent")
    assert "--discard" in machine.oort("logout", cloud, status=1)
    for answer in ["", "no\n"]:
        said = machine.oort("logout", cloud, "--discard", input=answer, status=1)
        assert "nothing was changed" in said and str(drive / "unsent.txt") in said, said
        assert (drive / "unsent.txt").read_text() == "unsent"
    machine.oort("logout", cloud, "--discard", input=f"{cloud}\n")
    assert json.loads(machine.oort("accounts", "--json")) == []
    assert not drive.exists()
    clouds.gates[cloud].open()
    machine.unmount()
    # Nothing of it comes up again, as what a lost catalog knew would.
    machine.mount()
    assert not machine.status()["mount"].get("folders_aside")
    machine.login(cloud)
    machine.ready(cloud)
    machine.sync()
    assert "/unsent.txt" not in clouds.tree(cloud)


def test_logout_revokes(machine, clouds, cloud):
    tokens = clouds.tokens(cloud)
    text = json.dumps({k: tokens[k] for k in ("access_token", "refresh_token")})
    machine.oort("login", cloud, "--token-file", "-", "--name", "mine", input=text)
    account, = json.loads(machine.oort("accounts", "--json"))
    assert account["name"] == "mine"
    said = machine.oort("logout", "mine")
    assert "Signed out" in said
    assert json.loads(machine.oort("accounts", "--json")) == []
    again = machine.oort("login", cloud, "--token-file", "-", input=text, status=None)
    if cloud == "onedrive":
        # Microsoft has no call that takes a token back; it is forgotten here, and said so.
        assert "no way to revoke" in said and "forgotten" in said
        return
    assert "forgotten" not in said
    assert "does not accept" in again


def test_a_logout_leaves_nothing_to_who_signs_in_next(machine, clouds, cloud, folder, drive):
    """Also without a mount; and nothing that was not sent is given up by it."""
    clouds.edit(cloud, "write", "/hers.txt", text="hers\n")
    eventually((drive / "hers.txt").exists, "the file is there")
    clouds.gates[cloud].shut()
    (drive / "unsent.txt").write_text("unsent")
    assert "oort sync" in machine.oort("logout", cloud, status=1)
    machine.unmount()
    said = machine.oort("logout", cloud, status=1)
    assert "a change that the cloud does not have" in said and "oort mount" in said
    clouds.gates[cloud].open()
    machine.mount()
    machine.sync()
    assert clouds.content(cloud, "/unsent.txt") == b"unsent"
    machine.unmount()
    machine.oort("logout", cloud)

    # Another person: another account with the same ids of items, and another tree.
    (folder / "his").mkdir()
    his = Clouds(folder / "his")
    try:
        his.edit(cloud, "write", "/his.txt", text="his\n")
        machine.write_settings('poll_interval = "1s"\nsettle = "200ms"\n' + his.settings())
        machine.clouds = his
        machine.login(cloud)
        machine.mount()
        drive = machine.ready(cloud)
        machine.sync()
        assert sorted(os.listdir(drive)) == ["his.txt"]
        assert (drive / "his.txt").read_text() == "his\n"
        assert list(his.tree(cloud)) == ["/his.txt"]
        machine.unmount()
    finally:
        his.stop()


@pytest.fixture
def bobs(folder):
    """The clouds of another person."""
    (folder / "bob").mkdir()
    clouds = Clouds(folder / "bob", of_bob=True)
    yield clouds
    clouds.stop()


def reach(machine, clouds):
    machine.write_settings('poll_interval = "1s"\nsettle = "200ms"\n' + clouds.settings())
    machine.clouds = clouds


def tokens_of(machine):
    return {file: file.read_bytes() for file in (machine.state / "tokens").rglob("*")
            if file.is_file()}


def test_what_is_kept_of_one_person_never_goes_to_another(machine, clouds, bobs, cloud, drive):
    """The list of accounts is lost, and another person signs in under the same name."""
    clouds.edit(cloud, "write", "/there.txt", text="hers")
    eventually((drive / "there.txt").exists, "the file is there")
    clouds.gates[cloud].shut()
    (drive / "unsent.txt").write_text("hers, too")

    def refused():
        reach(machine, bobs)
        before = tokens_of(machine)
        tokens = bobs.tokens(cloud)
        text = json.dumps({key: tokens[key] for key in ("access_token", "refresh_token")})
        said = machine.oort(
            "login", cloud, "--token-file", "-", "--name", cloud, input=text, status=1)
        assert "ada@example.com" in said and "bob@example.com" in said, said
        assert f"--name {cloud}-2" in said, said
        assert tokens_of(machine) == before
        assert json.loads(machine.oort("accounts", "--json")) == []
        reach(machine, clouds)

    accounts = machine.state / "accounts.json"
    accounts.unlink()
    refused()  # by the mount that runs
    machine.unmount()
    refused()  # by what is on the disk
    assert "Not signed in" in machine.account(cloud)["trouble"]
    machine.mount()
    refused()  # by a mount that found no list
    account = machine.account(cloud)
    assert "Not signed in" in account["trouble"] and account["pending_count"] == 1
    said = machine.oort("sync", status=1)
    assert str(drive / "unsent.txt") in said and f"oort login {cloud} --name {cloud}" in said
    assert (drive / "unsent.txt").read_text() == "hers, too"
    assert "has a change" in machine.oort("logout", cloud, status=1)

    # She signs in again, and all goes on; nothing of it ever went to him.
    clouds.gates[cloud].open()
    machine.login(cloud)
    machine.sync()
    assert set(clouds.tree(cloud)) == {"/there.txt", "/unsent.txt"}
    assert clouds.content(cloud, "/unsent.txt") == b"hers, too"
    assert bobs.tree(cloud) == {}
    assert (drive / "there.txt").read_text() == "hers"


def test_a_lost_list_of_accounts_loses_nothing_else(machine, clouds, cloud, drive):
    file = drive / "file.txt"
    file.write_text("hers")
    file.chmod(0o640)
    os.setxattr(file, "user.mine", b"kept")
    machine.sync()

    def known():
        return (file.stat().st_ino, file.stat().st_mode, os.getxattr(file, "user.mine"))

    before = known()
    machine.unmount()
    (machine.state / "accounts.json").unlink()
    machine.mount()
    assert "Not signed in" in machine.account(cloud)["trouble"]
    assert file.read_text() == "hers" and known() == before
    machine.login(cloud)
    machine.ready(cloud)
    assert "trouble" not in machine.account(cloud) and known() == before
    file.write_text("hers, later")
    machine.sync()
    assert clouds.content(cloud, "/file.txt") == b"hers, later"
    # A person can sign out, with or without the list.
    (machine.state / "accounts.json").unlink()
    machine.oort("logout", cloud)
    assert os.listdir(machine.mount_point) == [] and machine.status()["accounts"] == []


def test_a_list_of_accounts_from_elsewhere_changes_nothing(machine, clouds, bobs, cloud, drive):
    """A list with another person under the same name is brought to the machine."""
    (drive / "file.txt").write_text("hers")
    machine.sync()
    clouds.gates[cloud].shut()
    (drive / "unsent.txt").write_text("hers, too")
    machine.unmount()
    # What Bob's own machine has.
    accounts = machine.state / "accounts.json"
    hers = accounts.read_text()
    accounts.write_text(hers.replace("ada@", "bob@").replace(
        json.loads(hers)[0]["identity"], "somebody-else"))
    reach(machine, bobs)
    machine.mount()
    account = machine.account(cloud)
    assert account["person"] == "ada@example.com" and account["state"] == "trouble"
    assert "bob@example.com signed in under this name" in account["trouble"]
    assert "bob@example.com" in machine.oort("sync", status=1)
    assert sorted(os.listdir(drive)) == ["file.txt", "unsent.txt"]
    machine.unmount()
    assert "bob@example.com" in machine.account(cloud)["trouble"]
    assert bobs.tree(cloud) == {}
    # Without a name, he gets one of his own.
    machine.login(cloud)
    assert [one["name"] for one in json.loads(machine.oort("accounts", "--json"))] == [
        cloud, f"{cloud}-2"]
    machine.oort("logout", f"{cloud}-2")

    clouds.gates[cloud].open()
    reach(machine, clouds)
    machine.login(cloud, cloud)
    machine.mount()
    machine.sync()
    assert set(clouds.tree(cloud)) == {"/file.txt", "/unsent.txt"}


def test_tokens_of_somebody_else_send_nothing(machine, clouds, bobs, cloud, drive, folder):
    """Whatever is wrong with the store: files may be copied, and keyrings shared."""
    (drive / "file.txt").write_text("hers")
    machine.sync()
    clouds.gates[cloud].shut()
    (drive / "unsent.txt").write_text("hers, too")
    machine.unmount()
    elsewhere = Machine(folder, bobs, "two")
    elsewhere.login(cloud)
    for file, tokens in tokens_of(elsewhere).items():
        (machine.state / "tokens" / file.name).write_bytes(tokens)
    reach(machine, bobs)
    machine.mount()
    account = eventually(
        lambda: (found := machine.account(cloud))["state"] == "trouble" and found, "it was seen")
    assert "the account of ada@example.com" in account["trouble"]
    assert "tokens are those of bob@example.com" in account["trouble"]
    assert "bob@example.com" in machine.oort("sync", status=1)
    assert sorted(os.listdir(drive)) == ["file.txt", "unsent.txt"]
    machine.unmount()
    assert bobs.tree(cloud) == {}
    clouds.gates[cloud].open()
    reach(machine, clouds)
    machine.mount()
    machine.login(cloud)
    machine.sync()
    assert set(clouds.tree(cloud)) == {"/file.txt", "/unsent.txt"}


def test_a_token_that_expired_is_refreshed(machine, clouds, cloud, drive):
    clouds.control(cloud, "POST", "tokens/expire")
    (drive / "file.txt").write_text("after")
    machine.sync()
    assert clouds.content(cloud, "/file.txt") == b"after"


def test_tokens_lie_where_only_the_user_reads_them(machine, clouds):
    for cloud in CLOUDS:
        machine.login(cloud)
    files = [file for file in (machine.state / "tokens").rglob("*") if file.is_file()]
    assert len(files) == 3
    assert all(file.stat().st_mode & 0o077 == 0 for file in files)
    assert (machine.state / "tokens").stat().st_mode & 0o077 == 0


def test_a_keyring_keeps_apart_what_belongs_to_two_folders_of_state(
        machine, clouds, keyring, folder):
    other = Machine(folder, clouds, "two")
    other.environment["DBUS_SESSION_BUS_ADDRESS"] = machine.environment["DBUS_SESSION_BUS_ADDRESS"]
    for one in (machine, other):
        one.login("dropbox")
        assert "Secret Service" in one.said[-1]
    other.oort("logout", "dropbox")
    machine.mount()
    assert machine.ready("dropbox").is_dir()
    clouds.control("dropbox", "POST", "tokens/expire")


PROGRAMS = ["dbus-daemon", "gnome-keyring-daemon", "secret-tool"]


# It starts nothing by itself: a program that asks for secrets before the keyring is there would start
# another one, which is locked.
BUS = """
<busconfig>
  <type>session</type>
  <listen>unix:path={folder}/bus</listen>
  <policy context="default">
    <allow send_destination="*"/>
    <allow receive_sender="*"/>
    <allow own="*"/>
  </policy>
</busconfig>
"""


@pytest.fixture
def keyring(machine, folder):
    """The session bus and the keyring of a desktop."""
    missing = [program for program in PROGRAMS if not shutil.which(program)]
    if missing:
        pytest.skip(f"not installed: {' '.join(missing)}")
    (folder / "bus.conf").write_text(BUS.format(folder=folder))
    bus = subprocess.Popen(
        ["dbus-daemon", f"--config-file={folder}/bus.conf", "--nofork", "--print-address"],
        env=machine.environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    machine.environment["DBUS_SESSION_BUS_ADDRESS"] = bus.stdout.readline().strip()
    daemon = subprocess.Popen(
        ["gnome-keyring-daemon", "--foreground", "--unlock", "--components=secrets"],
        env=machine.environment, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, text=True)
    daemon.stdin.write("password")
    daemon.stdin.close()

    def ask(*words, timeout=60, **more):
        """What `secret-tool` answers; None while the keyring does not."""
        try:
            return machine.run("secret-tool", *words, status=None, timeout=timeout, **more)
        except subprocess.TimeoutExpired:
            return None

    def takes_secrets():
        # It is on the bus before its collection is unlocked.
        answer = ask("store", "--label=probe", "purpose", "probe", input="secret", timeout=5)
        return answer is not None and answer.returncode == 0

    try:
        eventually(takes_secrets, "the keyring takes secrets")
        ask("clear", "purpose", "probe")
        yield lambda: ask("search", "--all", "application", "oort").stdout
    finally:
        for process in (daemon, bus):
            process.kill()
            process.wait()


def test_tokens_lie_in_the_keyring_where_there_is_one(machine, clouds, keyring):
    tokens = clouds.tokens("dropbox")
    text = json.dumps({k: tokens[k] for k in ("access_token", "refresh_token")})
    machine.oort("login", "dropbox", "--token-file", "-", input=text)
    assert tokens["refresh_token"] in keyring()
    # In no file: but for an empty one that says so.
    mark = machine.state / "tokens" / "dropbox.keyring"
    assert list((machine.state / "tokens").rglob("*")) == [mark] and mark.read_bytes() == b""
    machine.mount()
    drive = machine.ready("dropbox")
    # The token that a refresh brings goes there, too.
    clouds.control("dropbox", "POST", "tokens/expire")
    (drive / "file.txt").write_text("signed in")
    machine.sync()
    assert clouds.content("dropbox", "/file.txt") == b"signed in"
    assert tokens["access_token"] not in keyring()
    assert "new tokens go to the Secret Service" in machine.oort("doctor", status=None)
    assert list((machine.state / "tokens").rglob("*")) == [mark] and mark.read_bytes() == b""
    machine.unmount()
    # Without the desktop's session, as over ssh.
    away = {**machine.environment, "DBUS_SESSION_BUS_ADDRESS": "unix:path=/nonexistent"}
    said = subprocess.run([OORT, "doctor"], env=away, capture_output=True, text=True).stdout
    assert "keyring, which does not answer" in said, said
    left = subprocess.run([OORT, "logout", "dropbox"], env=away, capture_output=True, text=True)
    assert left.returncode == 0 and "keyring, which does not answer" in left.stderr, left
    machine.oort("login", "dropbox", "--token-file", "-", input=text)
    machine.oort("logout", "dropbox")
    assert tokens["refresh_token"] not in keyring()


def test_a_locked_keyring_is_waited_for(machine, clouds, keyring):
    clouds.edit("dropbox", "write", "/there.txt", text="there")
    tokens = clouds.tokens("dropbox")
    text = json.dumps({k: tokens[k] for k in ("access_token", "refresh_token")})
    machine.oort("login", "dropbox", "--token-file", "-", input=text)
    # Some versions end with a crash, once all is locked.
    machine.run("secret-tool", "lock", status=None)
    assert tokens["refresh_token"] not in keyring()
    machine.mount()
    account = eventually(
        lambda: (found := machine.account("dropbox"))["state"] == "trouble" and found, "it was seen")
    assert "the keyring is locked" in account["trouble"], account
    # One that is unlocked takes its place.
    daemon = subprocess.Popen(
        ["gnome-keyring-daemon", "--replace", "--foreground", "--unlock", "--components=secrets"],
        env=machine.environment, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, text=True)
    try:
        daemon.stdin.write("password")
        daemon.stdin.close()
        assert (machine.ready("dropbox") / "there.txt").read_text() == "there"
        machine.unmount()
        machine.run("secret-tool", "lock", status=None)
        said = machine.oort("logout", "dropbox")
        assert "neither revoked nor removed from the Secret Service" in said, said
        assert "label = Oort: dropbox" in keyring()
    finally:
        daemon.kill()
        daemon.wait()


def test_an_account_of_an_unknown_service_keeps_no_other_from_being_mounted(machine, clouds):
    clouds.edit("drive", "write", "/there.txt", text="there")
    machine.login("drive")
    file = machine.state / "accounts.json"
    known = json.loads(file.read_text())
    file.write_text(json.dumps([*known, {"name": "pcloud", "service": "pcloud"}]))
    machine.mount()
    assert (machine.ready("drive") / "there.txt").read_text() == "there"
    account = machine.account("pcloud")
    assert account["state"] == "trouble" and "oort logout pcloud" in account["trouble"]
    machine.sync()
    machine.oort("logout", "pcloud")
    assert [account["name"] for account in json.loads(machine.oort("accounts", "--json"))] == [
        "drive"]


@pytest.mark.parametrize("is_mounted", [True, False])
def test_an_entry_that_cannot_be_used_keeps_no_other_from_being_mounted(
        machine, clouds, folder, is_mounted):
    """It is named with its cause wherever accounts are shown, and stays as it is."""
    server = Server("webdav", folder)
    try:
        clouds.edit("drive", "write", "/there.txt", text="there")
        machine.login("drive")
        machine.login("dropbox")
        server.login(machine)
        machine.mount()
        for name in ("drive", "dropbox", "webdav"):
            machine.ready(name)
        # What is only here, of an account that will not be reached.
        machine.oort("pause")
        (machine.mount_point / "dropbox" / "unsent.txt").write_text("unsent")
        machine.unmount()
        file = machine.state / "accounts.json"
        entries = {entry["name"]: entry for entry in json.loads(file.read_text())}
        damaged = [{**entries["dropbox"], "service": 7}, {**entries["webdav"], "address": "{}"},
                   {"service": "box"}]
        file.write_text(json.dumps([*damaged, entries["drive"]]))
        if is_mounted:
            machine.mount()
            machine.oort("resume")
            assert (machine.ready("drive") / "there.txt").read_text() == "there"
            assert (machine.mount_point / "dropbox" / "unsent.txt").read_text() == "unsent"
            assert "oort login webdav" in machine.account("webdav")["trouble"]
        assert 'its "service" is no text' in machine.account("dropbox")["trouble"]
        assert 'it has no "name"' in machine.account("Entry 3 of the list")["trouble"]
        said = machine.oort("accounts")
        assert "drive\tdrive\tAda" in said and str(file) in said, said
        assert 'its "service" is no text' in said and 'it has no "name"' in said, said
        shown = {one["name"]: one for one in json.loads(
            machine.oort("accounts", "--verbose", "--json"))}
        assert shown["drive"]["abilities"]["hash"] == "MD5" and "problem" not in shown["drive"]
        assert "sign in again" in shown["webdav"]["problem"] or is_mounted
        assert 'its "service"' in machine.oort("doctor", status=4)
        # Nothing is written over it.
        assert "cannot be used" in machine.oort("logout", "dropbox", status=1)
        said = machine.oort("login", "dropbox", "--token-file", "-", status=1,
                            input=json.dumps(clouds.tokens("dropbox")))
        assert "cannot be used" in said and str(file) in said, said
        machine.oort("logout", "drive")
        assert json.loads(file.read_text()) == [damaged[1], damaged[0], damaged[2]]
        # Corrected, all goes on, and what waited goes out.
        if is_mounted:
            machine.unmount()
        file.write_text(json.dumps(list(entries.values())))
        machine.mount()
        machine.oort("resume", status=None)
        machine.oort("sync", machine.mount_point / "dropbox")
        assert clouds.content("dropbox", "/unsent.txt") == b"unsent"
    finally:
        machine.clean()
        server.stop()


def test_a_command_ends_well_however_busy_the_machine_is(clouds, folder):
    """Threads of libraries are gone before the program's exit handlers free what they use."""
    def sign_in(number):
        machine = Machine(folder, clouds, f"m{number}")
        return machine.login("drive")

    with concurrent.futures.ThreadPoolExecutor(16) as many:
        for said in many.map(sign_in, range(int(os.environ.get("OORT_ROUNDS", 200)))):
            assert "Signed in to" in said
