"""Signing in and out as a person does, at each service."""

import json
import os
import re
import shutil
import subprocess
import sys
import urllib.error
import urllib.request

import pytest

from machine import CLOUDS, OORT, Clouds, eventually

# Opens the address like a browser would, follows the redirect to Oort's port, shows what it says.
BROWSER = """#!{python}
import sys, urllib.request
page = urllib.request.urlopen(sys.argv[1], timeout=30).read().decode(errors="replace")
open({page!r}, "w").write(page)
"""


def browse(url):
    with urllib.request.urlopen(url, timeout=30) as answer:
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
        rest, _ = self.process.communicate(timeout=60)
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


def test_a_wrong_state_is_refused(machine, clouds, login):
    session = login("drive", PATH="/nonexistent")
    url = session.until(r"(http://\S+)")
    with pytest.raises(urllib.error.HTTPError):
        browse(re.sub(r"state=[^&]+", "state=forged", url))
    session.process.kill()
    assert json.loads(machine.oort("accounts", "--json")) == []


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

    # Somebody else: another account with the same ids of items, and another tree.
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


PROGRAMS = ["dbus-daemon", "gnome-keyring-daemon", "secret-tool"]


@pytest.fixture
def keyring(machine, folder):
    """The session bus and the keyring of a desktop."""
    missing = [program for program in PROGRAMS if not shutil.which(program)]
    if missing:
        pytest.skip(f"not installed: {' '.join(missing)}")
    bus = subprocess.Popen(
        ["dbus-daemon", "--session", "--nofork", "--print-address",
         f"--address=unix:path={folder}/bus"],
        env=machine.environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    machine.environment["DBUS_SESSION_BUS_ADDRESS"] = bus.stdout.readline().strip()
    daemon = subprocess.Popen(
        ["gnome-keyring-daemon", "--foreground", "--unlock", "--components=secrets"],
        env=machine.environment, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, text=True)
    daemon.stdin.write("password")
    daemon.stdin.close()

    def ask(*words, **more):
        """What `secret-tool` answers; None while the keyring does not."""
        try:
            return machine.run("secret-tool", *words, status=None, timeout=5, **more)
        except subprocess.TimeoutExpired:
            return None

    def takes_secrets():
        # It is on the bus before its collection is unlocked.
        answer = ask("store", "--label=probe", "purpose", "probe", input="secret")
        return answer is not None and answer.returncode == 0

    eventually(takes_secrets, "the keyring takes secrets")
    ask("clear", "purpose", "probe")
    yield lambda: ask("search", "--all", "application", "oort").stdout
    for process in (daemon, bus):
        process.kill()
        process.wait()


def test_tokens_lie_in_the_keyring_where_there_is_one(machine, clouds, keyring):
    tokens = clouds.tokens("dropbox")
    text = json.dumps({k: tokens[k] for k in ("access_token", "refresh_token")})
    machine.oort("login", "dropbox", "--token-file", "-", input=text)
    assert tokens["refresh_token"] in keyring()
    assert not list((machine.state / "tokens").rglob("*")), "and in no file"
    machine.mount()
    drive = machine.ready("dropbox")
    # The token that a refresh brings goes there, too.
    clouds.control("dropbox", "POST", "tokens/expire")
    (drive / "file.txt").write_text("signed in")
    machine.sync()
    assert clouds.content("dropbox", "/file.txt") == b"signed in"
    assert tokens["access_token"] not in keyring()
    assert not list((machine.state / "tokens").rglob("*"))
    machine.unmount()
    machine.oort("logout", "dropbox")
    assert tokens["refresh_token"] not in keyring()
