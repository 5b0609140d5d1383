"""The simulated ownCloud 10 under rclone with vendor=owncloud, webdav4 and ownCloud's own client."""

import hashlib

import owncloud

from clouds import *  # noqa: F403
from run import noise

SIMULATOR = "owncloud"
HOST = "cloud.example.org"
REMOTE = {
    "vendor": "owncloud", "user": "ada@example.com",
    "url": f"https://{HOST}/remote.php/dav/files/ada"}


def pyocclient(world, password=None):
    client = owncloud.Client(f"https://{HOST}")
    client.login("ada", password or world.tokens()["access_token"])
    return client


def check_pyocclient_files(world):
    client = pyocclient(world)
    assert client.get_version() == "10.15.0-Community", client.get_version()
    assert client.mkdir("by pyocclient")
    contents = {"Grüße 100%+&.txt": b"hello", "large.bin": noise(3 << 20, 2)}
    for name, content in contents.items():
        assert client.put_file_contents(f"by pyocclient/{name}", content)
    local = world.folder / "a file.txt"
    local.write_bytes(b"from a file")
    assert client.put_file("by pyocclient/", str(local))
    contents[local.name] = b"from a file"
    tree = world.tree("sha256")
    listed = {entry.get_name(): entry for entry in client.list("by pyocclient")}
    assert set(listed) == set(contents), listed
    for name, content in contents.items():
        path = f"/by pyocclient/{name}"
        assert tree[path]["hash"] == hashlib.sha256(content).hexdigest(), path
        assert listed[name].get_size() == len(content) and listed[name].get_etag(), path
        assert client.get_file_contents(path) == content, path
    known = tree["/by pyocclient/large.bin"]["id"]
    assert client.move("by pyocclient/large.bin", "by pyocclient/moved.bin")
    assert client.copy("by pyocclient/moved.bin", "by pyocclient/copy.bin")
    tree = world.tree()
    assert tree["/by pyocclient/moved.bin"]["id"] == known
    assert "/by pyocclient/copy.bin" in tree and "/by pyocclient/large.bin" not in tree
    assert client.delete("by pyocclient")
    assert not any(path.startswith("/by pyocclient") for path in world.tree())


def check_pyocclient_links(world):
    client = pyocclient(world)
    client.put_file_contents("shared.txt", b"for all")
    assert not client.is_shared("/shared.txt")
    link = client.share_file_with_link("/shared.txt", password="correct horse")
    assert link.get_link().startswith("https://") and link.get_token()
    assert client.is_shared("/shared.txt")
    assert [share.get_id() for share in client.get_shares("/shared.txt")] == [link.get_id()]
    assert client.delete_share(link.get_id())
    assert not client.is_shared("/shared.txt")


def check_pyocclient_is_refused(world):
    try:
        pyocclient(world, password="wrong")
    except owncloud.HTTPResponseError as error:
        assert error.status_code == 401, error
    else:
        raise AssertionError("let in by a wrong password")
