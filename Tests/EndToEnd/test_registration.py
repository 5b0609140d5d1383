"""Without a client id the sign-in leads through a registration, page by page."""

import json
import os
import pty
import re
import select
import subprocess
import sys
import time

import pytest

from machine import OORT

# Follows what leads to this machine as a browser would; writes down every other page.
BROWSER = """#!{python}
import sys, urllib.request
if "://127.0.0.1" in sys.argv[1] or "://localhost" in sys.argv[1]:
    urllib.request.urlopen(sys.argv[1], timeout=120).read()
else:
    with open({pages!r}, "a") as file:
        print(sys.argv[1], file=file)
"""

IDS = {
    "dropbox": "abcdefgh1234567",
    "drive": "1234-abc.apps.googleusercontent.com",
    "onedrive": "01234567-89ab-cdef-0123-456789abcdef",
    "box": "abcdefgh1234567abcdefgh1234567ab",
}


class Terminal:
    """A program on a terminal of its own."""

    def __init__(self, arguments, environment):
        self.control, terminal = pty.openpty()
        self.process = subprocess.Popen(
            arguments, env=environment, stdin=terminal, stdout=terminal, stderr=terminal,
            start_new_session=True)
        os.close(terminal)
        self.said = ""

    def until(self, words, since=0):
        """Reads until the program has said these words; the place behind them."""
        limit = time.monotonic() + 120
        while words not in self.said[since:]:
            assert time.monotonic() < limit, f"never said: {words}\n{self.said}"
            if not select.select([self.control], [], [], 1)[0]:
                continue
            try:
                self.said += os.read(self.control, 4096).decode(errors="replace")
            except OSError:  # the program has ended
                assert words in self.said[since:], f"never said: {words}\n{self.said}"
        return self.said.index(words, since) + len(words)

    def type(self, line):
        os.write(self.control, line.encode() + b"\n")

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.control)


@pytest.fixture
def terminal(machine, clouds, folder):
    programs = folder / "bin"
    programs.mkdir()
    opener = programs / "xdg-open"
    opener.write_text(BROWSER.format(python=sys.executable, pages=str(folder / "pages")))
    opener.chmod(0o755)
    settings = re.sub(r"client_\w+ = .*\n", "", clouds.settings())
    machine.write_settings(settings)
    started = []

    def start(*arguments):
        started.append(Terminal(
            [str(OORT), *arguments],
            {**machine.environment, "PATH": f"{programs}:{os.environ['PATH']}"}))
        return started[-1]

    yield start
    for one in started:
        machine.said.append(one.said)
        one.close()


def test_a_registration_is_led(machine, clouds, cloud, folder, terminal):
    clouds.conditions(cloud, client_refusal="invalid_client")
    login = terminal("login", cloud)
    place = login.until("Step 1 of ")
    login.until("\n", place)
    for number in range(1, int(login.said[place:].split()[0]) + 1):
        place = login.until("Enter goes on: ", login.until(f"Step {number} of ", 0))
        login.type("")
    title = {
        "dropbox": "App key: ", "drive": "Client id: ", "onedrive": "(client) ID: ",
        "box": "Client ID: "}[cloud]
    place = login.until(title, place)
    login.type("something else")
    place = login.until(title, login.until("That is no ", place))

    def paste(place):
        login.type(IDS[cloud])
        if cloud in ("drive", "box"):
            place = login.until("(not shown): ", place)
            login.type("the-secret")
        return place

    place = login.until(title, login.until("does not know it: invalid_client", paste(place)))
    clouds.conditions(cloud)
    place = login.until("knows it.", paste(place))
    login.until("Signed in to", place)
    assert login.process.wait(timeout=120) == 0
    assert "the-secret" not in login.said
    account, = json.loads(machine.oort("accounts", "--json"))
    assert account["service"] == cloud
    pages = (folder / "pages").read_text().split()
    assert pages and all(page.startswith("https://") for page in pages)
    machine.oort("login", cloud, "--token-file", "-", input=json.dumps(
        {key: clouds.tokens(cloud)[key] for key in ("access_token", "refresh_token")}))


def test_a_registration_that_is_given_up(machine, clouds, terminal):
    login = terminal("login", "drive", "--no-browser")
    login.until("Enter goes on: ")
    os.write(login.control, b"\x04")  # the end of the input
    login.until("not finished; nothing was changed")
    assert login.process.wait(timeout=120) == 1
    assert json.loads(machine.oort("accounts", "--json")) == []


def test_who_is_no_terminal_is_not_asked(machine, clouds):
    machine.write_settings(re.sub(r"client_\w+ = .*\n", "", clouds.settings()))
    said = machine.oort("login", "dropbox", status=1)
    assert "--client-id" in said and "Step" not in said
