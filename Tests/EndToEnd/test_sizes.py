"""Sizes that no service takes: refused as a local disk refuses them, and the mount lives on."""

import ctypes
import errno
import os
import subprocess

import pytest

from machine import CLOUDS

LARGEST = {"dropbox": (1 << 41) - (1 << 22), "drive": 5 << 40, "onedrive": 250 << 30}
libc = ctypes.CDLL(None, use_errno=True)


@pytest.fixture
def boundless_state(folder, machine):
    """A state folder on a disk that takes files of 2^63-1 bytes, as tmpfs, btrfs and xfs do."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a tmpfs")
    (machine.folder / "state").mkdir()
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256m", "tmpfs", machine.folder / "state"], check=True)
    yield
    machine.keep_log()
    machine.clean()
    subprocess.run(["umount", "-l", machine.folder / "state"], check=True)


def refused(call, *arguments):
    with pytest.raises(OSError) as caught:
        call(*arguments)
    assert caught.value.errno == errno.EFBIG, caught.value


def fallocate(file, offset, count):
    if libc.fallocate(file, 0, ctypes.c_long(offset), ctypes.c_long(count)) != 0:
        raise OSError(ctypes.get_errno(), "fallocate")


def test_contents_of_one_size_and_one_weak_hash(machine, clouds, cloud, drive):
    # They repeat themselves: OneDrive's hash, no cryptographic one, is the same for all.
    contents = {f"f{number}": f"mine 1690356349 {number} ".encode() * 20_000 for number in (1, 2, 3)}
    for name, content in contents.items():
        (drive / name).write_bytes(content)
        machine.sync()
    for name, content in contents.items():
        assert clouds.content(cloud, f"/{name}") == content
        assert (drive / name).read_bytes() == content


def test_sizes_that_no_service_takes(boundless_state, machine, clouds):
    for cloud in CLOUDS:
        machine.login(cloud)
    machine.mount()
    process = machine.process
    for cloud in CLOUDS:
        path, largest = machine.ready(cloud) / "big", LARGEST[cloud]
        path.write_bytes(b"small")
        for size in (largest + 1, 2**63 - 511, 2**63 - 1):
            refused(os.truncate, path, size)
        with open(path, "r+b", buffering=0) as file:
            refused(os.pwrite, file.fileno(), b"x", largest)
            refused(os.pwrite, file.fileno(), b"x", 2**63 - 2)
            refused(fallocate, file.fileno(), largest, 1)
            refused(fallocate, file.fileno(), 0, 2**63 - 1)
        assert path.read_bytes() == b"small"
        with open(path.with_name("sparse"), "wb", buffering=0) as file:
            os.truncate(file.fileno(), largest)
            assert os.fstat(file.fileno()).st_blocks == largest // 512
            with open(path.with_name("sparse"), "ab", buffering=0) as end:
                refused(end.write, b"x")
            # Before it is closed, or all of it would be read to be sent.
            os.remove(path.with_name("sparse"))
        os.utime(path, (2**62, 2**62))
    machine.run("ls", "-lR", machine.mount_point)
    machine.sync()
    for cloud in CLOUDS:
        assert clouds.content(cloud, "/big") == b"small"
        assert sorted(clouds.tree(cloud)) == ["/big"]
    assert machine.process == process
