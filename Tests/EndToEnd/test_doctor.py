"""`oort doctor` finds what is wrong and says what to do, with a mount and without one."""

import http.server
import json
import os
import pathlib
import signal
import sqlite3
import ssl
import threading
import time
from email.utils import formatdate

import pytest

from machine import CLOUDS, OORT, eventually, read

# Before there is an account the doctor asks every service where one signs in with a browser.
pytestmark = pytest.mark.clouds(*CLOUDS, "box")


def troubles(machine, check=None, prefix=()):
    """What the doctor found wrong, of one check or of all: message and advice."""
    said = machine.run(*prefix, OORT, "doctor", "--json", status=None)
    machine.said.append(said.stdout)
    report = json.loads(said.stdout)
    found = [f for f in report["findings"] if f["state"] == "trouble"]
    assert said.returncode == (4 if found else 0), said.stdout
    assert report["is_well"] == (not found)
    # Other tests leave dead mounts of theirs at the same time.
    found = [f for f in found
             if f["check"] != "leftovers" or str(machine.folder) in f["message"]]
    if check:
        assert found and {f["check"] for f in found} == {check}, said.stdout
    return [f["message"] + "\n" + f.get("advice", "") for f in found]


def well(machine):
    assert troubles(machine) == []
    said = machine.oort("doctor", status=None)
    assert said.endswith("\nAll is well.\n") or "!! leftovers" in said, said


def apart(script):
    """What runs a command in a mount namespace of its own, after the script."""
    return ("unshare", "--mount", "--propagation", "private", "sh", "-c", script + '\nexec "$@"',
            "sh")


def test_all_is_well_before_the_sign_in_with_a_mount_and_after_it(machine):
    well(machine)
    for cloud in CLOUDS:
        machine.login(cloud)
    well(machine)
    machine.mount()
    for cloud in CLOUDS:
        machine.ready(cloud)
    said = machine.oort("doctor", status=None)
    assert f"mounted at {machine.mount_point}" in said and '"onedrive"' in said, said
    well(machine)
    machine.unmount()
    well(machine)


@pytest.mark.skipif(os.getuid() != 0, reason="only root hides things of the machine")
@pytest.mark.parametrize("script, words", [
    ("mount -t tmpfs none /dev", ["/dev/fuse cannot be opened", "modprobe fuse"]),
    ("mount --bind /dev/null /usr/bin/fusermount3", ["fusermount3 is not installed", "apt-get"]),
])
def test_fuse(machine, script, words):
    found = troubles(machine, "fuse", prefix=apart(script))
    assert all(word in found[0] for word in words), found


def test_the_settings(machine):
    machine.write_settings('cache_szie = "20G"\n')
    found = troubles(machine)
    assert any("cache_szie" in words and "cache_size" in words for words in found), found


def test_the_mount_point(machine):
    machine.mount_point.mkdir()
    (machine.mount_point / "file").write_text("mine")
    [found] = troubles(machine, "mount")
    assert "not empty" in found and "another folder" in found


def test_a_mount_that_was_killed(machine):
    machine.mount()
    machine.kill()
    [found] = troubles(machine, "mount")
    assert "did not end orderly" in found and "oort mount" in found
    machine.mount()
    machine.unmount()
    well(machine)


def test_a_dead_mount_elsewhere(machine):
    elsewhere = machine.folder / "else where"
    machine.oort("mount", str(elsewhere))
    # Also of what would take the mount away.
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        words = (read(process / "cmdline") or "").split("\0")
        if "fusermount3" in words[0] and str(elsewhere) in words:
            os.kill(int(process.name), signal.SIGKILL)
    machine.kill()
    found = "\n".join(troubles(machine))
    free = next(line for line in found.splitlines() if line.startswith("Free it: "))
    machine.run("sh", "-c", free.removeprefix("Free it: "))
    machine.mount()
    machine.unmount()
    well(machine)


def test_a_mount_that_hangs(machine):
    machine.mount()
    process = machine.process
    os.kill(process, signal.SIGSTOP)
    try:
        assert any("does not answer" in words for words in troubles(machine))
    finally:
        os.kill(process, signal.SIGCONT)
    eventually(lambda: not troubles(machine), "it answers again")


def test_a_mount_that_was_detached(machine):
    machine.mount()
    # Or the mount would end.
    held = os.open(machine.mount_point, os.O_RDONLY)
    try:
        machine.run("umount", "--lazy", machine.mount_point)
        [found] = troubles(machine, "mount")
        assert "nothing of Oort's is mounted" in found and "oort unmount" in found
    finally:
        os.close(held)


def test_the_network(machine, clouds):
    for cloud in CLOUDS:
        machine.login(cloud)
    clouds.gates["drive"].shut()
    [found] = troubles(machine, "network")
    assert "Google Drive cannot be reached" in found and "kept" in found, found
    clouds.gates["drive"].open()
    well(machine)


def test_a_proxy_that_is_not_there(machine):
    machine.write_settings("")
    machine.environment["HTTPS_PROXY"] = "http://ada:password-of-the-proxy@127.0.0.1:9"
    found = "\n".join(troubles(machine, "network"))
    said = machine.oort("doctor", status=4)
    assert "HTTPS_PROXY is http://127.0.0.1:9" in said, said
    assert "password-of-the-proxy" not in said + found


class Server:
    """Answers every request, perhaps by TLS, with the time that the test sets."""

    def __init__(self, seconds_ahead=0, certificate=None):
        class Handler(http.server.BaseHTTPRequestHandler):
            def answer(self):
                self.send_response_only(404)
                self.send_header("Date", formatdate(time.time() + seconds_ahead, usegmt=True))
                self.send_header("Content-Length", "0")
                self.end_headers()

            do_GET = do_POST = answer

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.scheme = "https" if certificate else "http"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def settings(self, clouds):
        """All services are this one."""
        address = f"{self.scheme}://127.0.0.1:{self.server.server_port}"
        return "".join(
            f"[{cloud}.endpoints]\n"
            + "".join(f'"{host}" = "{address}"\n' for host in clouds.services[cloud]["hosts"])
            for cloud in clouds.services)


@pytest.mark.parametrize("seconds, words", [(7200, "120 minutes behind"), (-3600, "60 minutes ahead")])
def test_the_clock(machine, clouds, seconds, words):
    server = Server(seconds_ahead=seconds)
    machine.write_settings(server.settings(clouds))
    [found] = troubles(machine, "clock")
    assert words in found and "timedatectl" in found
    machine.write_settings(Server().settings(clouds))
    well(machine)


def test_a_certificate_that_is_not_trusted(machine, clouds, folder):
    certificate = folder / "both.pem"
    machine.run(
        "openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=127.0.0.1",
        "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", certificate, "-out", certificate)
    machine.write_settings(Server(certificate=certificate).settings(clouds))
    found = troubles(machine, "tls")
    assert len(found) == len(clouds.services) and all("ca_file" in words for words in found), found
    trusting = f'ca_file = "{certificate}"\n' + machine.settings()
    machine.write_settings(trusting)
    well(machine)
    machine.write_settings(trusting.replace("both.pem", "none.pem"))
    assert "none.pem cannot be read" in troubles(machine, "tls")[0]


def test_tokens_that_were_taken_back(machine, clouds, cloud):
    machine.login(cloud)
    clouds.control(cloud, "POST", "tokens/revoke")
    [found] = troubles(machine, "account")
    assert f"oort login {cloud} --name {cloud}" in found, found


def test_tokens_that_were_taken_back_under_a_mount(machine, clouds, cloud, drive):
    clouds.control(cloud, "POST", "tokens/revoke")
    (drive / "file.txt").write_text("kept")
    eventually(lambda: troubles(machine), "the mount met it")
    assert "oort login" in troubles(machine, "account")[0]


def test_tokens_that_are_gone(machine, cloud):
    machine.login(cloud)
    for file in (machine.state / "tokens").iterdir():
        file.unlink()
    assert "has no tokens" in troubles(machine, "account")[0]


def test_a_registration_that_is_refused(machine, clouds, cloud):
    machine.login(cloud)
    clouds.conditions(cloud, client_refusal="invalid_client")
    assert any(
        "refuses the client id" in words and "client_id" in words
        for words in troubles(machine, "registration"))
    clouds.conditions(cloud)
    well(machine)


def test_a_secret_that_cannot_be_read(machine, clouds):
    machine.write_settings(machine.settings().replace(str(clouds.secret), "/nonexistent/secret"))
    assert "/nonexistent/secret" in troubles(machine, "registration")[0]


@pytest.mark.skipif(os.getuid() != 0, reason="only root mounts disks")
@pytest.mark.parametrize("options, words", [
    ("size=1m", ["free for the cache", "Make room"]),
    ("ro", ["read-only", "dmesg"]),
])
def test_the_disk(machine, options, words):
    machine.cache.mkdir(parents=True)
    script = f"mount -t tmpfs -o {options} none {machine.cache.parent}"
    [found] = troubles(machine, "disk", prefix=apart(script))
    assert all(word in found for word in words), found


@pytest.mark.parametrize("is_mounted", [False, True])
def test_a_damaged_catalog(machine, is_mounted):
    machine.mount()
    machine.unmount()
    path = machine.state / "catalog.sqlite"
    with sqlite3.connect(path) as catalog:
        page, = catalog.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'node_by_hash'").fetchone()
        size, = catalog.execute("PRAGMA page_size").fetchone()
    catalog.close()
    with open(path, "r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xa5" * size)
    if is_mounted:
        machine.mount()
    found = "\n".join(troubles(machine))
    assert f"{path} is damaged" in found and "Move it" in found, found


def test_a_file_that_is_no_catalog(machine):
    machine.state.mkdir(parents=True)
    (machine.state / "catalog.sqlite").write_text("Dear diary, " * 500)
    assert "is damaged" in troubles(machine, "catalog")[0]


def test_a_list_of_accounts_that_is_damaged(machine):
    machine.state.mkdir(parents=True)
    (machine.state / "accounts.json").write_text("{")
    assert "sign in again" in troubles(machine, "account")[0]
