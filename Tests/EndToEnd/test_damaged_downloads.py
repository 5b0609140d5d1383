"""Bytes that are damaged on their way: never accepted, but reported, and fetched anew."""

import errno

import pytest

from machine import eventually

GOOD, BAD = b"what the service has", b"what somebody changes"[:20]


@pytest.mark.parametrize("cloud", ["drive", "dropbox"])
def test_a_small_file(machine, clouds, cloud):
    clouds.edit(cloud, "write", "/file.txt", text=GOOD.decode())
    clouds.gates[cloud].damage = (GOOD, BAD)
    machine.login(cloud)
    machine.mount()
    file = machine.ready(cloud) / "file.txt"
    for _ in range(2):
        with pytest.raises(OSError) as refusal:
            file.read_bytes()
        assert refusal.value.errno == errno.EIO
    said = machine.oort("status")
    assert "damaged" in said and str(file) in said
    clouds.gates[cloud].damage = None
    assert file.read_bytes() == GOOD
    assert "damaged" not in machine.oort("status")


def test_a_large_file(machine, clouds):
    """Its first reader gets what comes; the next one only what was compared."""
    content = GOOD.decode() * 300_000
    clouds.edit("drive", "write", "/large.txt", text=content)
    clouds.gates["drive"].damage = (GOOD, BAD)
    machine.login("drive")
    machine.mount()
    file = machine.ready("drive") / "large.txt"
    try:
        assert file.read_bytes() != content.encode()
    except OSError as error:
        assert error.errno == errno.EIO
    eventually(lambda: str(file) in machine.oort("status"), "it is told")
    with pytest.raises(OSError) as refusal:
        file.read_bytes()
    assert refusal.value.errno == errno.EIO
    clouds.gates["drive"].damage = None
    assert file.read_bytes() == content.encode()
