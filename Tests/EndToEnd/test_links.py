"""Symbolic links kept at a service: one's own work everywhere, and those of others lead nowhere."""

import os

import pytest

from machine import eventually


@pytest.fixture
def shared(machine, clouds, cloud):
    """The account's folder, which holds another person's links to a file beside the mount."""
    secret = machine.folder / "outside"
    secret.write_text("untouched")
    for name, target in (("Invoice.pdf", str(secret)), ("up", "../../../../../../etc/passwd"),
                         ("beside", "folder/file"), ("nul", "a\0b"), ("none", "")):
        clouds.edit(cloud, "share", f"/{name}.rclonelink", text=target)
    clouds.edit(cloud, "write", "/folder/file", text="inside")
    machine.login(cloud)
    return secret


def test_links_of_strangers(machine, clouds, cloud, shared):
    machine.mount()
    drive = machine.ready(cloud)
    names = ["Invoice.pdf", "beside", "none", "nul", "up"]
    assert sorted(os.listdir(drive)) == sorted(["folder", *(f"{n}.rclonelink" for n in names)])
    for name in names:
        path = drive / f"{name}.rclonelink"
        assert path.is_file() and not path.is_symlink()
    assert (drive / "Invoice.pdf.rclonelink").read_text() == str(shared)
    (drive / "Invoice.pdf").write_text("overwritten?")
    (drive / "up.rclonelink").write_text("edited")
    machine.sync()
    assert shared.read_text() == "untouched"
    assert clouds.content(cloud, "/up.rclonelink") == b"edited"
    # What the person makes in its place is the person's.
    (drive / "beside.rclonelink").unlink()
    (drive / "beside").symlink_to("folder/file")
    machine.sync()
    machine.unmount()
    machine.mount()
    machine.ready(cloud)
    assert (drive / "beside").is_symlink() and (drive / "beside").read_text() == "inside"
    assert not (drive / "up.rclonelink").is_symlink()


def test_links_that_stay_inside(machine, clouds, cloud, shared):
    machine.write_settings('links = "inside"\n' + machine.settings())
    machine.mount()
    drive = machine.ready(cloud)
    assert (drive / "beside").read_text() == "inside"
    for name in ("Invoice.pdf", "up", "nul"):
        with pytest.raises(OSError):
            os.readlink(drive / name)
        eventually((drive / f"{name}.rclonelink").is_file, f"{name} shows as a file")
        assert not os.path.lexists(drive / name)
    assert sorted(os.listdir(drive)) == [
        "Invoice.pdf.rclonelink", "beside", "folder", "none.rclonelink", "nul.rclonelink",
        "up.rclonelink"]
    # The next mount reads the same account by another policy.
    machine.unmount()
    machine.write_settings(machine.settings().replace('"inside"', '"own"'))
    machine.mount()
    eventually((drive / "beside.rclonelink").is_file, "the link is a file")
    assert not os.path.lexists(drive / "beside")


def test_own_links_on_another_mount(machine, clouds, cloud, folder):
    from machine import Machine
    machine.login(cloud)
    machine.mount()
    drive = machine.ready(cloud)
    (drive / "link").symlink_to("../anywhere")
    machine.sync()
    second = Machine(folder, clouds, "second")
    try:
        second.login(cloud)
        second.mount()
        assert os.readlink(second.ready(cloud) / "link") == "../anywhere"
    finally:
        second.clean()
