"""By the real host names, through a proxy that inspects TLS with a CA of its own."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

from machine import eventually, read

ADDON = pathlib.Path(__file__).resolve().parent.parent / "Foreign" / "route_to_simulators.py"


def mitmdump():
    beside = pathlib.Path(sys.executable).parent / "mitmdump"
    found = str(beside) if beside.exists() else shutil.which("mitmdump")
    assert found, "mitmdump is missing: pip install -r Tests/Foreign/requirements.txt"
    return found


class Proxy:
    """mitmproxy before the simulators."""

    def __init__(self, folder):
        self.folder = folder / "proxy"
        self.folder.mkdir()
        self.authority = self.folder / "mitmproxy-ca-cert.pem"
        self.said = self.folder / "log"
        with open(self.said, "w") as log:
            self.process = subprocess.Popen(
                [mitmdump(), "--listen-host", "127.0.0.1", "--listen-port", "0",
                 "--set", f"confdir={self.folder}", "--set", "connection_strategy=lazy",
                 "--set", "flow_detail=1", "--scripts", str(ADDON)],
                env={**os.environ, "OORT_PORT_FILE": str(folder / "simulators.json"),
                     "PYTHONUNBUFFERED": "1"},
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        eventually(lambda: self.port() and self.authority.exists(), "the proxy is up")

    def port(self):
        """The port that the kernel chose."""
        assert self.process.poll() is None, self.said.read_text()
        for line in self.said.read_text().splitlines():
            if "listening at" in line:
                return int(line.rsplit(":", 1)[1].rstrip(".").strip())
        return None

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


@pytest.fixture
def proxy(folder, clouds):
    proxy = Proxy(folder)
    yield proxy
    proxy.stop()


@pytest.fixture
def proxied(machine, proxy):
    machine.write_settings('poll_interval = "1s"\nsettle = "200ms"\n')
    machine.environment["HTTPS_PROXY"] = f"http://127.0.0.1:{proxy.port()}"
    machine.environment.pop("SSL_CERT_FILE", None)
    return machine


@pytest.mark.parametrize("way", ["SSL_CERT_FILE", "ca_file"])
def test_all_the_way(proxied, proxy, clouds, cloud, way):
    machine = proxied
    flags = []
    if way == "SSL_CERT_FILE":
        machine.environment["SSL_CERT_FILE"] = str(proxy.authority)
    else:
        machine.write_settings(
            f'poll_interval = "1s"\nsettle = "200ms"\nca_file = "{proxy.authority}"\n')
        flags = ["--ca-file", str(proxy.authority)]
    machine.login(cloud)
    machine.mount(*flags)
    drive = machine.ready(cloud)
    big = os.urandom(6_000_000)
    (drive / "folder").mkdir()
    (drive / "folder" / "small.txt").write_text("small\n")
    (drive / "folder" / "big.bin").write_bytes(big)
    machine.sync()
    assert clouds.content(cloud, "/folder/big.bin") == big
    machine.unmount()
    shutil.rmtree(machine.cache)
    machine.mount(*flags)
    assert (drive / "folder" / "big.bin").read_bytes() == big
    clouds.edit(cloud, "write", "/folder/small.txt", text="changed there\n")
    eventually(lambda: read(drive / "folder" / "small.txt") == "changed there\n",
               "the remote change shows")
    # The proxy leads to the simulators: nothing else here knows them by these names.
    log = machine.log()
    assert any(host in log for host in clouds.services[cloud]["hosts"])
    assert f"127.0.0.1:{clouds.gates[cloud].port}" not in log


def test_an_unknown_authority_is_refused(proxied, cloud):
    tokens = '{"access_token": "access-never-sent"}'
    said = proxied.oort("login", cloud, "--token-file", "-", input=tokens, status=1)
    assert "certificate" in said.lower() or "cannot be reached" in said
