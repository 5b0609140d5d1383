"""What other programs may send to the control socket: everything, and the mount goes on."""

import fcntl
import json
import os
import random
import socket
import subprocess

import pytest

from machine import OORT, eventually


@pytest.fixture(params=["dropbox"])
def cloud(request):
    """What comes by the socket has nothing to do with the service."""
    return request.param


def connect(machine):
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(120)
    connection.connect(str(machine.folder / "run" / "oort" / "control.sock"))
    return connection


def send(machine, data, half_close=False):
    """What is answered to these bytes; nothing where the connection is just closed."""
    with connect(machine) as connection:
        answer = b""
        try:
            connection.sendall(data)
            if half_close:
                connection.shutdown(socket.SHUT_WR)
            while part := connection.recv(1 << 16):
                answer += part
        except (ConnectionError, TimeoutError) as error:
            assert not isinstance(error, TimeoutError), data[:200]
        return answer


def post(machine, path, body):
    """The status and the body of an answer."""
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    answer = send(machine, b"POST %s HTTP/1.1\r\nHost: oort\r\nConnection: close\r\n"
                           b"Content-Length: %d\r\n\r\n" % (path.encode(), len(body)) + body)
    head, _, rest = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), rest


@pytest.fixture
def mounted(machine, drive):
    process = machine.process
    yield machine
    assert machine.process == process and machine.is_mounted
    assert os.path.ismount(machine.mount_point)
    assert machine.account("dropbox")["state"] == "up to date"


def test_each_field_is_checked(mounted):
    point = str(mounted.mount_point)
    for path in (point, point + "/", point + "//", point + "/dropbox", point + "//dropbox//"):
        status, said = post(mounted, "/sync", {"path": path, "timeout_seconds": 60})
        assert status == 200 and b'"done"' in said, path
    for path in ("", "/", "x", point + "x", point + "/nobody", point + "/dropbox/no/such",
                 point + "/..", point + "/dropbox/../..", point + "/\u0301dropbox",
                 point + "/dropbox/" + "long" * 10_000, "\0", point + "/\0"):
        status, said = post(mounted, "/sync", {"path": path})
        assert status == 409 and b"message" in said, path
    for seconds in ("1e30", "1e300", "-1", "1e18", "9223372036854775807", "-1e-300"):
        status, said = post(mounted, "/sync", b'{"timeout_seconds": %s}' % seconds.encode())
        assert status == 409 and b"timeout_seconds" in said, seconds
    for seconds in ("1e999", "NaN", '"1"', "[]", "true"):
        assert post(mounted, "/sync", b'{"timeout_seconds": %s}' % seconds.encode())[0] == 400
    for name in ("", "/", "..", "a/b", "\0", "no such", "x" * 10_000):
        assert post(mounted, "/accounts/added", {"name": name})[0] == 409
        assert post(mounted, "/accounts/removed", {"name": name})[0] == 200
    for point in ("", "/", "x" * 10_000):
        assert post(mounted, "/unmount", {"mount_point": point})[0] == 409


def test_what_is_no_request_is_answered_by_an_error(mounted):
    for body in (b"", b"{", b"[]", b"null", b"\xff\xfe", b"{}{}", b'{"path": 1}', b"[" * 100_000,
                 b'{"path": "' + b"\\ud800" + b'"}', b'{"name": {"name": 1}}'):
        for path in ("/sync", "/unmount", "/accounts/added", "/accounts/removed"):
            assert post(mounted, path, body)[0] in (400, 409), (path, body[:20])
    for path in ("/sync", "/unmount", "/accounts/added"):
        status, said = post(mounted, path, {"pth": str(mounted.mount_point)})
        assert status == 409 and b"pth" in said, path
    status, said = post(mounted, "/sync", b'{"path": "' + b"x" * (4 << 20) + b'"}')
    assert status == 413 and b"message" in said
    for path in ("/nothing", "/", "/sync/x", "/%00", "/%zz"):
        assert post(mounted, path, {})[0] == 404
    head = b"POST /sync HTTP/1.1\r\nHost: oort\r\n"
    for data in (b"", b"\r\n\r\n", b"x", b"GET\r\n\r\n", b"\0" * 4096, b"GET / HTTP/9.9\r\n\r\n",
                 head + b"Content-Length: -1\r\n\r\n", head + b"Content-Length: 1e3\r\n\r\n",
                 head + b"Content-Length: 9223372036854775807\r\n\r\n{}",
                 head + b"Content-Length: 99999999999999999999\r\n\r\n{}",
                 head + b"Content-Length: 10\r\n\r\n{}",
                 head + b"Transfer-Encoding: chunked\r\n\r\n7fffffffffffffff\r\n{}",
                 head + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n{}",
                 head + b"Transfer-Encoding: chunked\r\n\r\n-5\r\n{}",
                 head + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}",
                 head + b"Upgrade: websocket\r\nSec-WebSocket-Key: x\r\n\r\n",
                 b"GET /" + b"x" * (2 << 20) + b" HTTP/1.1\r\n\r\n",
                 b"GET /status HTTP/1.1\r\nX: " + b"y" * (2 << 20) + b"\r\n\r\n"):
        send(mounted, data, half_close=True)


def test_random_requests(mounted):
    seed = os.environ.get("OORT_SEED", "socket")
    print(f"OORT_SEED={seed}")
    chance = random.Random(seed)
    good = (b'POST /sync HTTP/1.1\r\nHost: oort\r\nContent-Length: 43\r\n\r\n'
            b'{"path": "/x/dropbox", "timeout_seconds": 1}')
    parts = [b"\r\n", b"\0", b"{", b'"', b"1e99", b"-", b"\xc3", b"\xcc\x81", b"/", b" ", b":",
             b"9" * 30, b"%", b"[" * 600]
    for _ in range(300):
        data = bytearray(good)
        for _ in range(chance.randint(1, 6)):
            place = chance.randrange(len(data) + 1)
            data[place:place + chance.choice((0, 0, 1, 8))] = chance.choice(parts)
        send(mounted, bytes(data), half_close=True)
    # Clients that go away at any moment.
    for length in range(0, len(good), 7):
        with connect(mounted) as connection:
            connection.sendall(good[:length])


def test_a_command_waits_for_a_mount_that_begins(machine):
    machine.state.mkdir(parents=True, exist_ok=True)
    (machine.folder / "run" / "oort").mkdir(parents=True, exist_ok=True)
    body = b'{"message": "Here I am."}'
    with open(machine.state / "lock", "w") as lock, socket.socket(socket.AF_UNIX) as listener:
        fcntl.flock(lock, fcntl.LOCK_EX)  # as a mount does before it listens
        listener.bind(str(machine.folder / "run" / "oort" / "control.sock"))
        command = subprocess.Popen([OORT, "status"], env=machine.environment, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            with pytest.raises(subprocess.TimeoutExpired):
                command.wait(0.5)  # so that it has asked in vain before
            listener.settimeout(120)
            listener.listen()
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(b"HTTP/1.1 409 Conflict\r\nContent-Length: %d\r\n\r\n" % len(body)
                                   + body)
                said, _ = command.communicate(timeout=120)
        finally:
            command.kill()
            command.wait()
    assert "Here I am." in said
