"""Microsoft's official Python SDK (msgraph-sdk) against the simulator, by the real host names.

Usage: graph_sdk_client.py SIMULATOR-URL
"""

import asyncio
import os
import sys
import tempfile
import time

from world import World, check

HOSTS = [
    "graph.microsoft.com", "my.microsoftpersonalcontent.com", "login.microsoftonline.com",
    "westeurope1-mediap.svc.ms",
]


def main(simulator, folder):
    world = World(simulator, HOSTS, folder)
    try:
        os.environ.update(world.environment)
        asyncio.run(run(world))
    finally:
        world.stop()


class Credential:
    """The simulator's own tokens, so that each call shows which one it used."""

    def __init__(self, world):
        self.world = world

    def get_token(self, *scopes, **options):
        from azure.core.credentials import AccessToken

        return AccessToken(self.world.tokens()["access_token"], int(time.time()) + 3600)


async def run(world):
    import httpx
    from kiota_abstractions.api_error import APIError
    from msgraph import GraphServiceClient
    from msgraph.generated.drives.item.items.item.copy.copy_post_request_body import (
        CopyPostRequestBody,
    )
    from msgraph.generated.drives.item.items.item.create_upload_session.create_upload_session_post_request_body import (  # noqa: E501
        CreateUploadSessionPostRequestBody,
    )
    from msgraph.generated.models.drive_item import DriveItem
    from msgraph.generated.models.drive_item_uploadable_properties import (
        DriveItemUploadableProperties,
    )
    from msgraph.generated.models.folder import Folder
    from msgraph.generated.models.item_reference import ItemReference

    graph = GraphServiceClient(credentials=Credential(world), scopes=[])
    drive = await graph.me.drive.get()
    check(drive.id == "0f0978a1b2c3d4e5" and drive.quota.total > 0, "the drive and its quota")
    check((await graph.me.get()).display_name == "Ada Example", "the person")
    items = graph.drives.by_drive_id(drive.id).items
    root = await graph.drives.by_drive_id(drive.id).root.get()
    check(root.root is not None, "the root")

    names, page = set(), await items.by_drive_item_id(root.id).children.get()
    while True:
        names |= {item.name for item in page.value}
        if not page.odata_next_link:
            break
        page = await items.by_drive_item_id(root.id).children.with_url(page.odata_next_link).get()
    check("Welcome.txt" in names, "a listing")
    welcome = await items.by_drive_item_id("root:/Welcome.txt:").get()
    content = await items.by_drive_item_id(welcome.id).content.get()
    check(content.startswith(b"Welcome to a simulated cloud"), "a content by its redirect")
    large = await items.by_drive_item_id("root:/Archive/Receipts:").children.get()
    count = len(large.value)
    while large.odata_next_link:
        large = await items.by_drive_item_id("x").children.with_url(large.odata_next_link).get()
        count += len(large.value)
    check(count == 2400, "a folder of 2,400 in pages")

    folder = await items.by_drive_item_id(root.id).children.post(
        DriveItem(name="sdk", folder=Folder()))
    check(folder.id and folder.folder is not None, "a folder is made")
    small = await items.by_drive_item_id(f"{folder.id}:/é #1.txt:").content.put(b"hello")
    check(small.file.hashes.quick_xor_hash == "aCgDG9jwBgAAAAAABQAAAAAAAAA=", "a small upload")

    from msgraph_core.tasks.large_file_upload import LargeFileUploadTask

    session = await items.by_drive_item_id(f"{folder.id}:/big.bin:").create_upload_session.post(
        CreateUploadSessionPostRequestBody(
            item=DriveItemUploadableProperties(
                additional_data={"@microsoft.graph.conflictBehavior": "fail"})))
    # The SDK's own upload task sends the token to the content host, which personal drives refuse
    # (msgraph-sdk-dotnet 2949): its parts go out by a plain client, as its users do.
    check(LargeFileUploadTask is not None and session.upload_url, "an upload session")
    size, part = 3_000_000, 327_680 * 4
    big = bytes(i % 253 for i in range(size))
    async with httpx.AsyncClient(verify=world.environment["SSL_CERT_FILE"]) as plain:
        for start in range(0, size, part):
            end = min(start + part, size)
            answer = await plain.put(
                session.upload_url, content=big[start:end],
                headers={"Content-Range": f"bytes {start}-{end - 1}/{size}"})
            check(answer.status_code in (201, 202), f"a part is {answer.status_code}")
        refused = await plain.get(
            welcome.additional_data["@microsoft.graph.downloadUrl"],
            headers={"Authorization": "Bearer x"})
        check(refused.status_code == 401, "a token at the content host is refused")
    check(world.tree()["/sdk/big.bin"]["size"] == size, "a large upload")

    changed = await items.by_drive_item_id(small.id).patch(
        DriveItem(name="renamed.txt", parent_reference=ItemReference(id=root.id)))
    check(changed.id == small.id and "/renamed.txt" in world.tree(), "a move with a rename")
    await items.by_drive_item_id(small.id).copy.post(
        CopyPostRequestBody(name="copied.txt", parent_reference=ItemReference(
            drive_id=drive.id, id=folder.id)))
    check("/sdk/copied.txt" in world.tree(), "a copy")

    delta = items.by_drive_item_id(root.id).delta
    page = await delta.get()
    seen = len(page.value)
    while page.odata_next_link:
        page = await delta.with_url(page.odata_next_link).get()
        seen += len(page.value)
    check(seen > 2400 and page.odata_delta_link, "an enumeration by delta")
    world.edit(op="write", path="/sdk/other.txt", text="other")
    page = await delta.with_url(page.odata_delta_link).get()
    check("other.txt" in {item.name for item in page.value}, "a change of somebody else's")
    await items.by_drive_item_id(folder.id).delete()
    page = await delta.with_url(page.odata_delta_link).get()
    gone = {item.id for item in page.value if item.deleted is not None}
    check(folder.id in gone and len(gone) >= 3, "a deletion, and all below it")

    for status in (429, 503):
        world.fault("me", fault="status", status=status, retry_after=1)
        check((await graph.me.get()).display_name == "Ada Example", f"a {status} is waited out")
    try:
        await items.by_drive_item_id(folder.id).get()
        check(False, "what is gone is not found")
    except APIError as error:
        check(error.response_status_code == 404, "what is gone is not found")
        check(error.error.code == "itemNotFound", "the error is read by the SDK")
    sets = await items.by_drive_item_id("root:/Photos/2026 Iceland/map.png:").thumbnails.get()
    check(sets.value[0].medium.url.startswith("https://"), "thumbnails")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="oort-foreign-") as place:
        main(sys.argv[1], place)
