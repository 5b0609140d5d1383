"""The simulated OneDrive under rclone's onedrive backend and Microsoft's Python SDK."""

import asyncio
import hashlib
import json
import re
import subprocess
import threading
import time
import urllib.request

import httpx
from azure.core.credentials import AccessToken
from kiota_abstractions.api_error import APIError
from msgraph import GraphServiceClient
from msgraph.generated.drives.item.items.item.copy.copy_post_request_body import (
    CopyPostRequestBody,
)
from msgraph.generated.drives.item.items.item.create_upload_session import (
    create_upload_session_post_request_body as upload_session,
)
from msgraph.generated.models.drive_item import DriveItem
from msgraph.generated.models.drive_item_uploadable_properties import (
    DriveItemUploadableProperties,
)
from msgraph.generated.models.folder import Folder
from msgraph.generated.models.item_reference import ItemReference

from run import Rclone, noise, wait_for

SIMULATOR = "onedrive"
DRIVE = "0f0978a1b2c3d4e5"


def rclone(world, expiry="2099-01-01T00:00:00Z"):
    tokens = world.tokens()
    token = {
        "access_token": tokens["access_token"], "token_type": "Bearer",
        "refresh_token": tokens["refresh_token"], "expiry": expiry,
    }
    return Rclone(
        world, type="onedrive", client_id="test", client_secret="test", drive_id=DRIVE,
        drive_type="personal", token=json.dumps(token))


def check_rclone_lists_and_reads_the_sample(world):
    remote = rclone(world)
    listed = set(remote("lsf", "-R", "--files-only", "remote:").splitlines())
    listed = {path for path in listed if not path.startswith("Choir")}
    files = {path[1:] for path, item in world.tree().items() if item["kind"] == "file"}
    assert listed == files, listed ^ files
    assert remote("cat", "remote:Names/Привет.txt").startswith("The name of this file is")
    part = remote("cat", "--offset", "4", "--count", "4", "remote:Names/Привет.txt")
    assert part == "name", part
    about = json.loads(remote("about", "--json", "remote:"))
    assert about["total"] == 1_104_880_336_896 and about["used"] > 0
    assert remote("link", "remote:Welcome.txt").startswith("https://")


def check_rclone_round_trip(world):
    remote = rclone(world)
    remote.local("tree/empty.txt", b"")
    small = remote.local("tree/small #1 100%+é.txt", b"hello")
    content = noise(25_000_000, 1)
    remote.local("tree/deep/er/big.bin", content)
    tree = remote.place / "tree"
    remote("copy", tree, "remote:up")
    # Compared by QuickXorHash, then by the bytes.
    remote("check", tree, "remote:up")
    remote("check", "--download", tree, "remote:up")
    kept = world.tree("md5")["/up/deep/er/big.bin"]
    assert kept["hash"] == hashlib.md5(content).hexdigest()
    small.write_bytes(b"hello again")
    remote("copy", tree, "remote:up")
    assert world.tree()["/up/small #1 100%+é.txt"]["size"] == 11
    remote("purge", "remote:up")


def check_rclone_moves_copies_and_deletes(world):
    remote = rclone(world)
    world.edit(op="write", path="/moves/deep/er/a.txt", text="a text")
    world.edit(op="write", path="/moves/b.txt", text="b")
    before = world.tree()["/moves/deep"]["id"]
    remote("moveto", "remote:moves/deep", "remote:moves/moved")
    assert world.tree()["/moves/moved"]["id"] == before
    remote("moveto", "remote:moves/b.txt", "remote:moves/moved/renamed.txt")
    remote("copyto", "remote:moves/moved/er/a.txt", "remote:moves/copy.txt")
    assert remote("cat", "remote:moves/copy.txt") == "a text"
    assert "/moves/moved/renamed.txt" in world.tree()
    remote("deletefile", "remote:moves/copy.txt")
    remote("mkdir", "remote:moves/some/where")
    remote("rmdir", "remote:moves/some/where")
    remote("rmdir", "remote:moves/moved", fails=True)
    remote("purge", "remote:moves/moved")
    assert {path for path in world.tree() if path.startswith("/moves/")} == {"/moves/some"}


def check_rclone_makes_links(world):
    remote = rclone(world)
    remote.local("shared/shared.txt", b"for all")
    remote("copy", remote.place / "shared", "remote:shared")
    link = remote("link", "remote:shared/shared.txt")
    assert remote("link", "remote:shared/shared.txt") == link
    assert remote("link", "--onedrive-link-type", "edit", "remote:shared/shared.txt") != link
    # Not part of the plan.
    remote("link", "--onedrive-link-password", "secret", "remote:shared/shared.txt", fails=True)


def check_rclone_refreshes_its_token(world):
    remote = rclone(world, expiry="2020-01-01T00:00:00Z")
    world.control("POST", "tokens/expire")
    assert "Welcome.txt" in remote("lsf", "remote:")
    assert world.calls("oauth/token") == 1
    remote = rclone(world, expiry="2020-01-01T00:00:00Z")
    world.control("POST", "tokens/revoke")
    remote("lsf", "remote:", fails=True)


def check_rclone_waits_out_trouble(world):
    remote = rclone(world)
    for status in (429, 503):
        world.fault("children/get", "status", status=status, retry_after=1)
        assert "Welcome.txt" in remote("lsf", "remote:")
    world.fault("upload/put", "status", status=503, retry_after=1)
    remote("copyto", remote.local("after.bin", bytes(12_000_000)), "remote:after.bin")
    assert world.tree()["/after.bin"]["size"] == 12_000_000
    remote("deletefile", "remote:after.bin")


def check_rclone_follows_the_change_feed(world):
    remote = rclone(world)
    server = subprocess.Popen(
        remote.command(
            "serve", "http", "remote:", "--addr", "127.0.0.1:0", "--poll-interval", "1s",
            "--dir-cache-time", "1h", "-v"),
        env=world.environment, stderr=subprocess.PIPE, text=True)
    lines = []
    # A thread of its own: the pipe must not fill, and reading it blocks.
    reader = threading.Thread(target=lambda: lines.extend(iter(server.stderr.readline, "")))
    reader.start()
    try:
        def address():
            return re.search(r"http://127\.0\.0\.1:\d+/", "".join(lines))

        wait_for(address, "rclone serves")
        place = address().group() + "Projects/"

        def shows(name):
            with urllib.request.urlopen(place, timeout=30) as answer:
                return name in answer.read().decode()

        assert not shows("news.txt")
        # The first question only learns where the feed is now.
        wait_for(lambda: world.calls("delta/get") >= 1, "rclone asks the feed")
        world.edit(op="write", path="/Projects/news.txt", text="new")
        wait_for(lambda: shows("news.txt"), "somebody else's file is seen")
    finally:
        server.terminate()
        server.wait()
        reader.join()
        server.stderr.close()


class Issued:
    """A credential with the simulator's own tokens, so that each call shows which one it used."""

    def __init__(self, world):
        self.world = world

    def get_token(self, *scopes, **options):
        return AccessToken(self.world.tokens()["access_token"], int(time.time()) + 3600)


class Graph:
    """Microsoft's SDK on the simulated drive."""

    def __init__(self, world):
        self.client = GraphServiceClient(credentials=Issued(world), scopes=[])
        self.drive = self.client.drives.by_drive_id(DRIVE)
        self.items = self.drive.items

    def at(self, path):
        return self.items.by_drive_item_id(f"root:{path}:")

    async def folder(self, name):
        root = await self.drive.root.get()
        return await self.items.by_drive_item_id(root.id).children.post(
            DriveItem(name=name, folder=Folder()))


async def pages(builder):
    """All entries of a listing, and its last page."""
    page = await builder.get()
    entries = list(page.value)
    while page.odata_next_link:
        page = await builder.with_url(page.odata_next_link).get()
        entries += page.value
    return entries, page


def with_sdk(body):
    """A check whose body is a coroutine over the SDK."""
    def check(world):
        asyncio.run(body(world, Graph(world)))

    check.__name__ = body.__name__
    return check


@with_sdk
async def check_sdk_account(world, graph):
    drive = await graph.client.me.drive.get()
    assert drive.id == DRIVE and drive.quota.total > 0
    assert (await graph.client.me.get()).display_name == "Ada Example"


@with_sdk
async def check_sdk_reads(world, graph):
    root = await graph.drive.root.get()
    entries, _ = await pages(graph.items.by_drive_item_id(root.id).children)
    assert "Welcome.txt" in {item.name for item in entries}
    # Two pages of 2,400 entries, which the SDK takes minutes to read in full on a busy machine.
    receipts = graph.at("/Archive/Receipts").children
    first = await receipts.get()
    second = await receipts.with_url(first.odata_next_link).get()
    assert second.odata_next_link
    names = {item.name for item in first.value} | {item.name for item in second.value}
    assert len(names) == len(first.value) + len(second.value) > 300
    welcome = await graph.at("/Welcome.txt").get()
    content = await graph.items.by_drive_item_id(welcome.id).content.get()
    assert content.startswith(b"Welcome to a simulated cloud"), content[:40]
    sets = await graph.at("/Photos/2026 Iceland/map.png").thumbnails.get()
    assert sets.value[0].medium.url.startswith("https://")
    # The address is the permission: a token is refused there.
    address = welcome.additional_data["@microsoft.graph.downloadUrl"]
    async with httpx.AsyncClient(verify=world.environment["SSL_CERT_FILE"]) as plain:
        refused = await plain.get(address, headers={"Authorization": "Bearer x"})
        assert refused.status_code == 401
        assert (await plain.get(address)).content == content


@with_sdk
async def check_sdk_writes(world, graph):
    folder = await graph.folder("sdk writes")
    assert folder.id and folder.folder is not None
    small = await graph.items.by_drive_item_id(f"{folder.id}:/é #1.txt:").content.put(b"hello")
    assert small.file.hashes.quick_xor_hash == "aCgDG9jwBgAAAAAABQAAAAAAAAA="
    root = await graph.drive.root.get()
    changed = await graph.items.by_drive_item_id(small.id).patch(
        DriveItem(name="renamed.txt", parent_reference=ItemReference(id=root.id)))
    assert changed.id == small.id and "/renamed.txt" in world.tree()
    await graph.items.by_drive_item_id(small.id).copy.post(
        CopyPostRequestBody(
            name="copied.txt", parent_reference=ItemReference(drive_id=DRIVE, id=folder.id)))
    assert "/sdk writes/copied.txt" in world.tree()
    await graph.items.by_drive_item_id(small.id).delete()
    try:
        await graph.items.by_drive_item_id(small.id).get()
        raise AssertionError("what is gone was found")
    except APIError as error:
        assert error.response_status_code == 404
        assert error.error.code == "itemNotFound"


@with_sdk
async def check_sdk_large_upload(world, graph):
    folder = await graph.folder("sdk uploads")
    place = graph.items.by_drive_item_id(f"{folder.id}:/big.bin:")
    session = await place.create_upload_session.post(
        upload_session.CreateUploadSessionPostRequestBody(
            item=DriveItemUploadableProperties(
                additional_data={"@microsoft.graph.conflictBehavior": "fail"})))
    content, part = noise(3_000_000, 2), 327_680 * 4
    # The SDK's own upload task sends the token to the content host, which personal drives refuse
    # (msgraph-sdk-dotnet 2949): the parts go out by a plain client, as its users do.
    async with httpx.AsyncClient(verify=world.environment["SSL_CERT_FILE"]) as plain:
        for start in range(0, len(content), part):
            piece = content[start:start + part]
            answer = await plain.put(
                session.upload_url, content=piece, headers={
                    "Content-Range":
                        f"bytes {start}-{start + len(piece) - 1}/{len(content)}"})
            assert answer.status_code in (201, 202), answer.text
    stored = world.tree("md5")["/sdk uploads/big.bin"]["hash"]
    assert stored == hashlib.md5(content).hexdigest()


@with_sdk
async def check_sdk_change_feed(world, graph):
    folder = await graph.folder("sdk feed")
    world.edit(op="write", path="/sdk feed/first.txt", text="first")
    root = await graph.drive.root.get()
    delta = graph.items.by_drive_item_id(root.id).delta
    page = await delta.with_url(
        f"https://graph.microsoft.com/v1.0/drives/{DRIVE}/root/delta?token=latest").get()
    assert not page.value and page.odata_delta_link
    world.edit(op="write", path="/sdk feed/other.txt", text="other")
    page = await delta.with_url(page.odata_delta_link).get()
    assert "other.txt" in {item.name for item in page.value}
    await graph.items.by_drive_item_id(folder.id).delete()
    page = await delta.with_url(page.odata_delta_link).get()
    gone = {item.id for item in page.value if item.deleted is not None}
    assert folder.id in gone and len(gone) >= 3, gone
    world.control("POST", "cursors/lose")
    try:
        await delta.with_url(page.odata_delta_link).get()
        raise AssertionError("a lost delta link was taken")
    except APIError as error:
        assert error.response_status_code == 410


@with_sdk
async def check_sdk_waits_out_trouble(world, graph):
    for status in (429, 503):
        world.fault("me", "status", status=status, retry_after=1)
        assert (await graph.client.me.get()).display_name == "Ada Example"
