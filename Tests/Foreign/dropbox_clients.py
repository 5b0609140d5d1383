"""The simulated Dropbox under rclone and the official SDK."""

import datetime
import hashlib
import json
import os

import dropbox
from dropbox import exceptions, files, sharing

from run import Rclone

SIMULATOR = "dropbox"


def rclone(world, expiry="2099-01-01T00:00:00Z"):
    tokens = world.tokens()
    token = {
        "access_token": tokens["access_token"], "token_type": "bearer",
        "refresh_token": tokens["refresh_token"], "expiry": expiry,
    }
    return Rclone(
        world, "--dropbox-pacer-min-sleep", "1ms", type="dropbox", client_id="test",
        client_secret="test", token=json.dumps(token))


def sdk(world):
    tokens = world.tokens()
    return dropbox.Dropbox(
        oauth2_access_token=tokens["access_token"], oauth2_refresh_token=tokens["refresh_token"],
        oauth2_access_token_expiration=datetime.datetime(2099, 1, 1), app_key="test",
        app_secret="test", max_retries_on_error=4, timeout=60)


def content_hash(data):
    block = 4 << 20
    digests = b"".join(
        hashlib.sha256(data[i:i + block]).digest() for i in range(0, len(data), block))
    return hashlib.sha256(digests).hexdigest()


def check_rclone_round_trip(world):
    remote = rclone(world)
    for number in range(60):
        remote.local(f"tree/file {number}.txt", b"content %d" % number)
    remote.local("tree/deep/er/Grüße 🌋.txt", b"hello")
    remote.local("tree/empty", b"")
    remote.local("tree/large.bin", os.urandom(60 << 20))
    local = remote.place / "tree"
    # check compares Dropbox's own hashes with the files'.
    remote("copy", local, "remote:from rclone", "--dropbox-batch-mode", "sync")
    remote("check", local, "remote:from rclone")
    tree = world.tree("sha256")
    for path in local.rglob("*"):
        item = tree["/from rclone/" + str(path.relative_to(local))]
        if path.is_file():
            assert item["hash"] == hashlib.sha256(path.read_bytes()).hexdigest(), path
    back = remote.place / "back"
    remote("copy", "remote:from rclone", back)
    for path in local.rglob("*"):
        if path.is_file():
            assert (back / path.relative_to(local)).read_bytes() == path.read_bytes(), path
    world.calm()
    remote("copy", local, "remote:from rclone")
    assert world.calls("files/upload_session/start") + world.calls("files/upload") == 0


def check_rclone_moves_and_deletes(world):
    remote = rclone(world)
    for name in ("a.txt", "b.txt"):
        world.edit(op="write", path="/moves/" + name, text=name)
    remote("moveto", "remote:moves/a.txt", "remote:moves/A.TXT")
    remote("copyto", "remote:moves/b.txt", "remote:moves/c/d.txt")
    remote("moveto", "remote:moves/c", "remote:moves/e")
    assert {"/moves/A.TXT", "/moves/b.txt", "/moves/e/d.txt"} <= set(world.tree())
    assert "/moves/c" not in world.tree()
    remote("delete", "remote:moves/b.txt")
    remote("purge", "remote:moves/e")
    names = remote("lsf", "-R", "remote:moves").split()
    assert names == ["A.TXT"], names


def check_rclone_lists_the_sample(world):
    remote = rclone(world)
    listed = set(remote("lsf", "remote:Archive/Receipts").splitlines())
    assert len(listed) == 2400, len(listed)
    about = json.loads(remote("about", "--json", "remote:"))
    assert about["total"] == 2_000_000_000_000
    link = remote("link", "remote:Welcome.txt").strip()
    assert link.startswith("https://www.dropbox.com/"), link
    text = remote("cat", "remote:Welcome.txt", "--offset", "3", "--count", "4")
    assert text == "come", text


def check_rclone_waits_out_trouble(world):
    remote = rclone(world)
    world.fault("files/list_folder", "status", status=429, retry_after=1)
    assert "Welcome.txt" in remote("lsf", "remote:")
    # Of the 503s rclone waits out those of an upload that has begun.
    content = os.urandom(9 << 20)
    for skipped in (0, 1, 2):
        world.fault("files/upload_session/append_v2", "status", status=503, skipping=skipped)
    remote("copyto", "--dropbox-chunk-size", "2M", remote.local("large.bin", content),
           "remote:trouble.bin")
    stored = world.tree("sha256")["/trouble.bin"]["hash"]
    assert stored == hashlib.sha256(content).hexdigest()


def check_rclone_refreshes_its_token(world):
    remote = rclone(world, expiry="2020-01-01T00:00:00Z")
    world.control("POST", "tokens/expire")
    assert "Welcome.txt" in remote("lsf", "remote:")
    assert world.calls("oauth2/token") == 1


def check_sdk_waits_out_trouble(world):
    client = sdk(world)
    for status in (429, 503):
        world.fault("users/get_current_account", "status", status=status, retry_after=1)
        assert client.users_get_current_account().email == "ada@example.com"


def check_sdk_account(world):
    client = sdk(world)
    assert client.users_get_current_account().email == "ada@example.com"
    assert client.users_get_space_usage().allocation.get_individual().allocated > 0
    assert client.check_user("hello").result == "hello"


def check_sdk_uploads(world):
    client = sdk(world)
    data = os.urandom(9 << 20)
    one = client.files_upload(b"one", "/sdk/one.txt", content_hash=content_hash(b"one"))
    assert one.content_hash == content_hash(b"one")
    assert client.files_upload(b"one", "/sdk/one.txt").rev == one.rev
    two = client.files_upload(b"two", "/sdk/one.txt", mode=files.WriteMode.update(one.rev))
    assert two.id == one.id and two.rev != one.rev
    try:
        client.files_upload(b"three", "/sdk/one.txt", mode=files.WriteMode.update(one.rev))
        raise AssertionError("a stale revision was replaced")
    except exceptions.ApiError as error:
        assert error.error.get_path().reason.get_conflict().is_file()
    assert client.files_download(f"rev:{one.rev}")[1].content == b"one"
    assert len(client.files_list_revisions("/sdk/one.txt").entries) == 2

    start = client.files_upload_session_start(data[:4 << 20])
    cursor = files.UploadSessionCursor(start.session_id, 4 << 20)
    client.files_upload_session_append_v2(data[4 << 20:8 << 20], cursor)
    try:
        client.files_upload_session_append_v2(b"again", cursor)
        raise AssertionError("a wrong offset was taken")
    except exceptions.ApiError as error:
        assert error.error.get_incorrect_offset().correct_offset == 8 << 20
    cursor.offset = 8 << 20
    done = client.files_upload_session_finish(
        data[8 << 20:], cursor, files.CommitInfo("/sdk/large.bin"))
    assert done.content_hash == content_hash(data)

    kind = files.UploadSessionType.concurrent
    start = client.files_upload_session_start(b"", session_type=kind)
    for offset, close in ((4 << 20, False), (0, False), (8 << 20, True)):
        client.files_upload_session_append_v2(
            data[offset:offset + (4 << 20)],
            files.UploadSessionCursor(start.session_id, offset), close=close)
    done = client.files_upload_session_finish(
        b"", files.UploadSessionCursor(start.session_id, len(data)),
        files.CommitInfo("/sdk/concurrent.bin"))
    assert done.content_hash == content_hash(data)
    assert client.files_download("/sdk/concurrent.bin")[1].content == data


def check_sdk_tree_and_feed(world):
    client = sdk(world)
    page = client.files_list_folder("", recursive=True, limit=2000)
    seen = len(page.entries)
    while page.has_more:
        page = client.files_list_folder_continue(page.cursor)
        seen += len(page.entries)
    assert seen == len(world.tree())
    assert not client.files_list_folder_continue(page.cursor).entries
    folder = client.files_create_folder_v2("/feed").metadata
    assert isinstance(folder, files.FolderMetadata)
    world.edit(op="write", path="/feed/x.txt", text="x")
    assert client.files_list_folder_longpoll(page.cursor, timeout=30).changes
    page = client.files_list_folder_continue(page.cursor)
    assert [e.path_display for e in page.entries] == ["/feed", "/feed/x.txt"]
    moved = client.files_move_v2("/feed/x.txt", "/feed/y.txt").metadata
    page = client.files_list_folder_continue(page.cursor)
    assert isinstance(page.entries[0], files.DeletedMetadata)
    assert page.entries[1].id == moved.id
    launch = client.files_delete_batch([files.DeleteArg("/feed"), files.DeleteArg("/nowhere")])
    status = client.files_delete_batch_check(launch.get_async_job_id())
    first, second = status.get_complete().entries
    assert first.is_success() and second.get_failure().get_path_lookup().is_not_found()
    page = client.files_list_folder_continue(page.cursor)
    assert [e.path_display for e in page.entries] == ["/feed"]
    world.control("POST", "cursors/lose")
    try:
        client.files_list_folder_continue(page.cursor)
        raise AssertionError("a lost cursor was taken")
    except exceptions.ApiError as error:
        assert error.error.is_reset()


def check_sdk_batches_and_reading(world):
    client = sdk(world)
    launch = client.files_create_folder_batch(["/batch/a", "/batch/b"])
    assert len(launch.get_complete().entries) == 2
    ids = client.files_upload_session_start_batch(3).session_ids
    for number, session in enumerate(ids):
        client.files_upload_session_append_v2(
            b"%d" % number, files.UploadSessionCursor(session, 0), close=True)
    result = client.files_upload_session_finish_batch_v2([
        files.UploadSessionFinishArg(
            files.UploadSessionCursor(session, 1), files.CommitInfo(f"/batch/{number}"))
        for number, session in enumerate(ids)])
    assert all(entry.is_success() for entry in result.entries)
    job = client.files_move_batch_v2([files.RelocationPath("/batch/0", "/batch/a/0")])
    status = client.files_move_batch_check_v2(job.get_async_job_id())
    assert status.get_complete().entries[0].get_success().path_display == "/batch/a/0"
    job = client.files_copy_batch_v2([files.RelocationPath("/batch/1", "/batch/b/1")])
    status = client.files_copy_batch_check_v2(job.get_async_job_id())
    assert status.get_complete().entries[0].is_success()

    export = client.files_export("/Documents/Travel plan.gdoc")
    assert export[1].content.startswith(b"PK")
    resource = files.PathOrLink.path("/Photos/2026 Iceland/IMG_0001.jpg")
    picture = client.files_get_thumbnail_v2(resource)[1].content
    assert picture.startswith(b"\xff\xd8")
    link = client.files_get_temporary_link("/Welcome.txt").link
    assert link.startswith("https://dl.dropboxusercontent.com/"), link
    shared = client.sharing_create_shared_link_with_settings("/Photos/2026 Iceland/map.png")
    listed = client.sharing_list_shared_links(
        "/Photos/2026 Iceland/map.png", direct_only=True).links
    assert [entry.url for entry in listed] == [shared.url]
    matches = client.files_search_v2("iceland").matches
    assert [m.metadata.get_metadata().name for m in matches] == ["2026 Iceland"]
    one = client.files_upload(b"keep", "/batch/kept.txt")
    client.files_delete_v2("/batch/kept.txt", parent_rev=one.rev)
    assert client.files_restore("/batch/kept.txt", one.rev).id == one.id


def check_sdk_trash_and_links(world):
    client = sdk(world)
    kept = client.files_upload(b"deep", "/gone/deep/kept.txt")
    client.files_delete_v2("/gone")
    deleted = set()
    page = client.files_list_folder("", recursive=True, include_deleted=True, limit=100)
    while True:
        deleted |= {
            entry.path_lower for entry in page.entries if isinstance(entry, files.DeletedMetadata)}
        if not page.has_more:
            break
        page = client.files_list_folder_continue(page.cursor)
    # What lay in a deleted folder is named by itself, too.
    assert {"/gone", "/gone/deep", "/gone/deep/kept.txt"} <= deleted, deleted
    revisions = client.files_list_revisions("/gone/deep/kept.txt", limit=1)
    assert revisions.is_deleted and revisions.entries[0].rev == kept.rev
    back = client.files_restore("/elsewhere/kept.txt", kept.rev)
    assert back.id == kept.id and back.path_lower == "/elsewhere/kept.txt"
    end = datetime.datetime(2099, 1, 1)
    settings = sharing.SharedLinkSettings(
        require_password=True, link_password="secret", expires=end,
        access=sharing.RequestedLinkAccessLevel.editor)
    try:
        client.sharing_create_shared_link_with_settings("/elsewhere/kept.txt", settings)
        raise AssertionError("a basic account got a link with a password")
    except exceptions.ApiError as error:
        assert error.error.get_settings_error().is_not_authorized(), error
    world.control("PUT", "account", {"paid_plan": True})
    link = client.sharing_create_shared_link_with_settings("/elsewhere/kept.txt", settings)
    world.control("PUT", "account", {})
    assert link.expires == end and link.link_permissions.require_password
    assert link.link_permissions.link_access_level.is_editor()
    client.sharing_revoke_shared_link(link.url)
    assert client.sharing_list_shared_links("/elsewhere/kept.txt", direct_only=True).links == []


def check_sdk_tokens(world):
    client = sdk(world)
    world.control("POST", "tokens/expire")
    # The SDK refreshes by itself when told that the token has expired.
    assert client.users_get_current_account().email == "ada@example.com"
    client = sdk(world)
    client.auth_token_revoke()
    try:
        client.users_get_current_account()
        raise AssertionError("a revoked token was taken")
    except exceptions.AuthError:
        pass
