"""The simulated Nextcloud under rclone, webdav4 and Nextcloud's own Python client."""

import hashlib
import os

import nc_py_api

from clouds import *  # noqa: F403
from clouds import rclone
from run import noise

SIMULATOR = "nextcloud"
HOST = "cloud.example.org"
REMOTE = {
    "vendor": "nextcloud", "user": "ada@example.com",
    "url": f"https://{HOST}/remote.php/dav/files/ada", "nextcloud_chunk_size": "5Mi"}


def check_rclone_chunks(world):
    remote = rclone(world)
    content = os.urandom(23 << 20)
    remote.local("large/large.bin", content)
    remote("copy", remote.place / "large", "remote:large")
    assert world.calls("PUT uploads") == 5, world.calls("PUT uploads")
    assert world.calls("MOVE uploads/.file") == 1
    item = world.tree("sha256")["/large/large.bin"]
    assert item["hash"] == hashlib.sha256(content).hexdigest()
    assert remote("cat", "--offset", "7000000", "--count", "100", "remote:large/large.bin",
                  text=False) == content[7000000:7000100]


def nextcloud(world, password=None):
    return nc_py_api.Nextcloud(
        nextcloud_url=f"https://{HOST}", nc_auth_user="ada",
        nc_auth_pass=password or world.tokens()["access_token"],
        npa_nc_cert=world.environment["SSL_CERT_FILE"])


def check_nc_py_api_files(world):
    client = nextcloud(world)
    assert client.user == "ada" and client.srv_version["major"] == 34, client.srv_version
    client.files.makedirs("by nc-py-api/deep")
    contents = {"Grüße 100%+&.txt": b"hello", "large.bin": noise(3 << 20, 3)}
    for name, content in contents.items():
        client.files.upload(f"by nc-py-api/{name}", content)
    tree = world.tree("sha256")
    listed = {node.name: node for node in client.files.listdir("by nc-py-api")}
    assert set(listed) == {*contents, "deep"} and listed["deep"].is_dir, listed
    for name, content in contents.items():
        path = f"/by nc-py-api/{name}"
        assert tree[path]["hash"] == hashlib.sha256(content).hexdigest(), path
        assert listed[name].info.size == len(content) and listed[name].etag, path
        assert listed[name].file_id == tree[path]["id"], path
        assert client.files.download(listed[name]) == content, path
    client.files.move("by nc-py-api/large.bin", "by nc-py-api/deep/moved.bin")
    client.files.copy("by nc-py-api/deep/moved.bin", "by nc-py-api/copy.bin")
    after = world.tree()
    assert after["/by nc-py-api/deep/moved.bin"]["id"] == tree["/by nc-py-api/large.bin"]["id"]
    assert "/by nc-py-api/copy.bin" in after and "/by nc-py-api/large.bin" not in after


def check_nc_py_api_stream(world):
    # In parts, as its uploads of streams always go.
    client = nextcloud(world)
    content = noise(12 << 20, 4)
    local = world.folder / "stream.bin"
    local.write_bytes(content)
    client.files.upload_stream("stream.bin", str(local), chunk_size=5 << 20)
    assert world.calls("PUT uploads") == 3, world.calls("PUT uploads")
    assert world.tree("sha256")["/stream.bin"]["hash"] == hashlib.sha256(content).hexdigest()


def check_nc_py_api_trash(world):
    client = nextcloud(world)
    client.files.upload("thrown away.txt", b"text")
    known = world.tree()["/thrown away.txt"]["id"]
    client.files.delete("thrown away.txt")
    entry, = [node for node in client.files.trashbin_list()
              if node.info.trashbin_original_location == "thrown away.txt"]
    client.files.trashbin_restore(entry)
    assert world.tree()["/thrown away.txt"]["id"] == known


def check_nc_py_api_versions(world):
    client = nextcloud(world)
    client.files.upload("twice.txt", b"first")
    # A version is named by the second of its time.
    world.edit(op="write", path="/twice.txt", text="the second", modified="2024-01-01T12:00:00Z")
    # The present content is listed, too.
    versions = client.files.get_versions(client.files.by_path("twice.txt"))
    assert sorted(version.info.content_length for version in versions) == [5, 10], versions


def check_nc_py_api_links(world):
    client = nextcloud(world)
    client.files.upload("shared.txt", b"for all")
    link = client.files.sharing.create("shared.txt", nc_py_api.files.ShareType.TYPE_LINK)
    assert link.url.startswith("https://") and link.path == "shared.txt"
    assert [share.share_id for share in client.files.sharing.get_list(path="shared.txt")] == [
        link.share_id]
    client.files.sharing.delete(link)
    assert client.files.sharing.get_list(path="shared.txt") == []


def check_nc_py_api_is_refused(world):
    try:
        nextcloud(world, password="wrong").files.listdir("")
    except nc_py_api.NextcloudException as error:
        assert error.status_code == 401, error
    else:
        raise AssertionError("let in by a wrong password")
