"""The package on fresh systems: installed, used, upgraded with work pending, removed.

DEBS names two packages of one version, the older revision first; ROOTS the folder that keeps the
base systems.
"""

import os
import pathlib

import pytest

from machine import Clouds, eventually
from root import RELEASES, Root, run

OLD, NEW = (pathlib.Path(name).resolve() for name in os.environ["DEBS"].split(":"))
ROOTS = pathlib.Path(os.environ.get("ROOTS", ".build/roots")).resolve()


@pytest.fixture
def clouds(tmp_path):
    clouds = Clouds(tmp_path)
    yield clouds
    clouds.stop()


@pytest.fixture(params=os.environ.get("RELEASES", "").split() or list(RELEASES))
def system(request, tmp_path):
    system = Root(request.param, ROOTS, tmp_path)
    yield system
    log = system.home / ".local/state/oort/oort.log"
    print(f"the end of the log:\n{log.read_text()[-4000:] if log.exists() else ''}")
    system.end()


def write(system, path, text):
    """A file of the user's."""
    system.ada("sh", "-c", 'mkdir -p "$(dirname "$1")" && printf %s "$2" >"$1"', "sh", path, text)


def test_a_package_lives(system, clouds):
    home = "/home/ada"
    dropbox = f"{home}/clouds/dropbox"
    clouds.edit("dropbox", "write", "/theirs.txt", text="from there")
    write(system, f"{home}/.config/oort/config.toml",
          'poll_interval = "1s"\nsettle = "200ms"\n' + clouds.settings()
          .replace(str(clouds.secret), f"{home}/secret"))
    write(system, f"{home}/secret", clouds.secret.read_text())
    write(system, f"{home}/tokens.json",
          '{"access_token": "%(access_token)s", "refresh_token": "%(refresh_token)s"}'
          % clouds.tokens("dropbox"))
    for file in (OLD, NEW):
        run("cp", file, system.path / "root")
    system.apt("update")

    # From nothing to files in three commands.
    system.apt("install", f"/root/{OLD.name}")
    system.ada("oort", "login", "dropbox", "--token-file", f"{home}/tokens.json")
    system.ada("oort", "mount")
    eventually(lambda: system.ada("ls", dropbox, status=None) == "theirs.txt\n", "the file shows")
    assert system.ada("cat", f"{dropbox}/theirs.txt") == "from there"
    assert "All is well." in system.ada("oort", "doctor")

    # What belongs to it.
    unit = system.inside("cat", "/usr/lib/systemd/user/oort.service")
    assert "ExecStart=/usr/bin/oort mount" in unit
    system.inside("bash", "-c", ". /usr/share/bash-completion/completions/oort; complete -p oort")
    assert "oort.1.gz" in system.inside("dpkg", "-L", "oort")

    # An upgrade in the midst of work: the mount goes on, and the next one is the new program's.
    clouds.gates["dropbox"].shut()
    write(system, f"{dropbox}/folder/pending.txt", "not there yet")
    system.apt("install", f"/root/{NEW.name}")
    assert system.inside("dpkg-query", "-W", "-f", "${Version}", "oort").endswith("-2")
    assert system.ada("cat", f"{dropbox}/folder/pending.txt") == "not there yet"
    system.ada("oort", "unmount")
    system.ada("oort", "mount")
    assert system.ada("cat", f"{dropbox}/folder/pending.txt") == "not there yet"
    clouds.gates["dropbox"].open()
    system.ada("oort", "sync", "--timeout", "100s")
    assert clouds.content("dropbox", "/folder/pending.txt") == b"not there yet"

    # Removed while it is mounted and something is pending: that stays, and goes out if it comes back.
    clouds.gates["dropbox"].shut()
    write(system, f"{dropbox}/last.txt", "the only copy")
    system.apt("purge", "oort")
    assert "oort" not in system.inside("ls", "/usr/bin", "/usr/share/doc").split()
    assert "fuse.oort" not in system.inside("cat", "/proc/mounts")
    running = "ls -l /proc/[0-9]*/exe 2>/dev/null | grep oort || echo none"
    assert system.inside("sh", "-c", running) == "none\n"
    kept = [file.read_bytes() for file in (system.home / ".local/state/oort/staged").rglob("*")
            if file.is_file()]
    assert b"the only copy" in kept
    clouds.gates["dropbox"].open()
    system.apt("install", f"/root/{NEW.name}")
    system.ada("oort", "mount")
    system.ada("oort", "sync", "--timeout", "100s")
    assert clouds.content("dropbox", "/last.txt") == b"the only copy"
    system.ada("oort", "unmount")
