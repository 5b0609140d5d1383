"""The simulated Box under the official SDK."""

import hashlib
import io

from box_sdk_gen import (
    AccessToken, BoxAPIError, BoxClient, BoxOAuth, GetEventsStreamType, InMemoryTokenStorage,
    OAuthConfig, PromoteFileVersionType, UploadFileAttributes, UploadFileAttributesParentField,
    UploadFileVersionAttributes)
from box_sdk_gen.managers.events import (
    GetEventStreamQueryParams, GetEventStreamQueryParamsStreamTypeField)

from run import noise

SIMULATOR = "box"


def sdk(world):
    tokens = world.tokens()
    storage = InMemoryTokenStorage()
    storage.store(AccessToken(
        access_token=tokens["access_token"], refresh_token=tokens["refresh_token"],
        expires_in=3600))
    return BoxClient(BoxOAuth(OAuthConfig("test", "test", token_storage=storage)))


def refused(status, call, *arguments, **options):
    """The code by which a call is refused."""
    try:
        call(*arguments, **options)
    except BoxAPIError as error:
        assert error.response_info.status_code == status, error
        return error.response_info.code
    raise AssertionError("it was not refused")


def new_file(client, name, content, folder="0", **options):
    attributes = UploadFileAttributes(name, UploadFileAttributesParentField(folder))
    return client.uploads.upload_file(attributes, io.BytesIO(content), **options).entries[0]


def check_sdk_account_and_tree(world):
    client = sdk(world)
    me = client.users.get_user_me()
    assert me.login == "ada@example.com" and me.space_amount == 2_000_000_000_000
    seen, folders = 0, ["0"]
    while folders:
        folder, marker = folders.pop(), None
        while True:
            page = client.folders.get_folder_items(
                folder, usemarker=True, marker=marker, limit=1000)
            seen += len(page.entries)
            folders += [entry.id for entry in page.entries if entry.type == "folder"]
            marker = page.next_marker
            if not marker:
                break
    assert seen == len(world.tree())


def check_sdk_uploads(world):
    client = sdk(world)
    one = new_file(
        client, "one.txt", b"one", content_md_5=hashlib.sha1(b"one").hexdigest())
    assert one.sha_1 == hashlib.sha1(b"one").hexdigest() and one.etag == "0"
    assert refused(409, new_file, client, "ONE.TXT", b"two") == "item_name_in_use"
    assert refused(400, new_file, client, "x.txt", b"x", content_md_5="0" * 40) == "bad_digest"
    attributes = UploadFileVersionAttributes("one.txt")
    two = client.uploads.upload_file_version(
        one.id, attributes, io.BytesIO(b"two"), if_match=one.etag).entries[0]
    assert two.id == one.id and two.file_version.id != one.file_version.id
    code = refused(
        412, client.uploads.upload_file_version, one.id, attributes, io.BytesIO(b"three"),
        if_match=one.etag)
    assert code == "precondition_failed"
    old = client.downloads.download_file(one.id, version=one.file_version.id)
    assert old.read() == b"one"
    versions = client.file_versions.get_file_versions(one.id).entries
    assert [version.id for version in versions] == [one.file_version.id]
    client.file_versions.promote_file_version(
        one.id, id=one.file_version.id, type=PromoteFileVersionType.FILE_VERSION)
    assert client.downloads.download_file(one.id).read() == b"one"

    data = noise(25 << 20, 2)
    big = client.chunked_uploads.upload_big_file(io.BytesIO(data), "big.bin", len(data), "0")
    assert big.sha_1 == hashlib.sha1(data).hexdigest()
    stored = world.tree("sha256")["/big.bin"]["hash"]
    assert stored == hashlib.sha256(data).hexdigest()


def check_sdk_events(world):
    client = sdk(world)
    changes = GetEventsStreamType.CHANGES
    start = client.events.get_events(stream_type=changes, stream_position="now")
    assert not start.entries
    stream = client.events.get_event_stream(query_params=GetEventStreamQueryParams(
        stream_type=GetEventStreamQueryParamsStreamTypeField.CHANGES,
        stream_position=str(start.next_stream_position)))
    world.edit(op="write", path="/feed/x.txt", text="x")
    found = []
    # The kit leaves the doubles out itself, waits at the server of news, and reads on.
    for event in stream:
        found.append((event.event_type, event.source.name))
        if len(found) == 2:
            world.edit(op="move", path="/feed/x.txt", to="/feed/y.txt")
        if ("ITEM_MODIFY", "y.txt") in found:
            break
    assert {("ITEM_CREATE", "feed"), ("ITEM_UPLOAD", "x.txt")} <= set(found), found
    assert world.calls("poll") >= 1


def check_sdk_tokens(world):
    client = sdk(world)
    world.control("POST", "tokens/expire")
    # The SDK refreshes by itself when told that the token is not taken any more, each time anew.
    assert client.users.get_user_me().login == "ada@example.com"
    world.control("POST", "tokens/expire")
    assert client.users.get_user_me().login == "ada@example.com"
    assert world.calls("oauth/token") == 2
    client.auth.revoke_token()
    world.control("POST", "tokens/revoke")
    assert world.calls("oauth/revoke") == 1
