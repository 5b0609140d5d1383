"""The simulated Google Drive under rclone's drive backend and Google's official Python client."""

import hashlib
import io
import json
import os
import subprocess

from google.oauth2.credentials import Credentials
from google_auth_httplib2 import AuthorizedHttp
from googleapiclient.discovery import build
from googleapiclient.errors import HttpError
from googleapiclient.http import MediaIoBaseDownload, MediaIoBaseUpload, build_http

from run import Rclone, noise

SIMULATOR = "drive"


def rclone(world, expiry="2099-01-01T00:00:00Z", **options):
    tokens = world.tokens()
    token = {
        "access_token": tokens["access_token"], "refresh_token": tokens["refresh_token"],
        "token_type": "Bearer", "expiry": expiry,
    }
    return Rclone(
        world, "--drive-pacer-min-sleep", "1ms", type="drive", client_id="id",
        client_secret="secret", scope="drive", token=json.dumps(token), **options)


class Official:
    """google-api-python-client with google-auth, as Google ships them."""

    def __init__(self, world):
        tokens = world.tokens()
        self.credentials = Credentials(
            token=tokens["access_token"], refresh_token=tokens["refresh_token"],
            token_uri="https://oauth2.googleapis.com/token", client_id="id",
            client_secret="secret", scopes=["https://www.googleapis.com/auth/drive"])
        self.v3 = self.client("v3")

    def client(self, version):
        http = build_http()
        # Of itself it does not look at SSL_CERT_FILE.
        http.ca_certs = os.environ["SSL_CERT_FILE"]
        return build(
            "drive", version, http=AuthorizedHttp(self.credentials, http=http),
            static_discovery=True)

    def upload(self, name, content, **more):
        media = MediaIoBaseUpload(
            io.BytesIO(content), mimetype="application/octet-stream", **more)
        request = self.v3.files().create(
            body={"name": name, "modifiedTime": "2021-02-03T04:05:06.789Z"}, media_body=media,
            fields="id,name,size,md5Checksum,modifiedTime,headRevisionId")
        if not more.get("resumable"):
            return request.execute()
        answer = None
        while answer is None:
            try:
                _, answer = request.next_chunk()
            except HttpError as error:
                # As Google's guide has it: the next call asks for the status and goes on.
                if error.resp.status < 500:
                    raise
        return answer

    def download(self, file_id, chunk=1 << 20):
        out = io.BytesIO()
        loader = MediaIoBaseDownload(out, self.v3.files().get_media(fileId=file_id), chunk)
        done = False
        while not done:
            _, done = loader.next_chunk()
        return out.getvalue()

    def refused(self, request):
        try:
            request.execute()
        except HttpError as error:
            detail = json.loads(error.content)["error"]["errors"][0]
            return error.resp.status, detail["reason"]
        raise AssertionError("it was not refused")


def check_rclone_the_sample_is_listed(world):
    remote = rclone(world)
    names = remote("lsf", "remote:").splitlines()
    assert "Documents/" in names
    documents = remote("lsf", "remote:Documents").splitlines()
    assert documents.count("Invoice.txt") == 2
    assert "Income／expenses.txt" in documents
    assert "Travel plan.docx" in documents
    assert len(remote("lsf", "remote:Archive/Receipts").splitlines()) == 2400
    about = json.loads(remote("about", "--json", "remote:"))
    assert about["used"] > 300_000_000


def check_rclone_a_tree_goes_up_and_comes_back(world):
    remote = rclone(world)
    for index in range(40):
        remote.local(f"tree/sub {index % 5}/file-{index}.bin", noise(index * 977, index))
    remote.local("tree/empty.txt", b"")
    remote.local("tree/käse – 🧀.txt", "käse".encode())
    here = remote.place / "tree"
    remote("copy", here, "remote:rclone tree")
    remote("check", "--download", here, "remote:rclone tree")
    remote("check", here, "remote:rclone tree")
    remote("copy", "remote:rclone tree", remote.place / "back")
    done = subprocess.run(["diff", "-r", here, remote.place / "back"], capture_output=True)
    assert done.returncode == 0, done.stdout
    # A second run sends nothing, because the times are kept.
    world.control("DELETE", "calls")
    remote("copy", here, "remote:rclone tree")
    assert world.calls("uploads") == 0
    remote("purge", "remote:rclone tree")
    assert "/rclone tree" not in world.tree("md5")


def check_rclone_a_large_upload_goes_in_parts(world):
    remote = rclone(world)
    content = noise(21_000_001, 4)
    path = remote.local("large.bin", content)
    remote(
        "copyto", "--drive-chunk-size", "4M", "--drive-upload-cutoff", "1M", path,
        "remote:large.bin")
    assert world.tree("md5")["/large.bin"]["hash"] == hashlib.md5(content).hexdigest()
    # Opening and six parts.
    assert world.calls("uploads") == 7
    # Over it again: one more revision of the same item.
    before = world.tree("md5")["/large.bin"]
    content = noise(9_000_000, 5)
    remote(
        "copyto", "--drive-chunk-size", "4M", "--drive-upload-cutoff", "1M",
        remote.local("large.bin", content), "remote:large.bin")
    after = world.tree("md5")["/large.bin"]
    assert after["id"] == before["id"]
    assert after["hash"] == hashlib.md5(content).hexdigest()
    assert after["revisions"] == 2
    remote("deletefile", "remote:large.bin")


def check_rclone_parts_that_fail_are_sent_again(world):
    remote = rclone(world)
    content = noise(9_000_000, 6)
    path = remote.local("faults.bin", content)
    world.fault("uploads", "status", status=503, skipping=1)
    world.fault("uploads", "status", status=500, skipping=2)
    world.fault("uploads", "status", status=429, skipping=3)
    remote(
        "copyto", "--drive-chunk-size", "1M", "--drive-upload-cutoff", "1M", path,
        "remote:faults.bin")
    assert world.tree("md5")["/faults.bin"]["hash"] == hashlib.md5(content).hexdigest()
    remote("deletefile", "remote:faults.bin")


def check_rclone_moves_copies_and_deletes(world):
    remote = rclone(world)
    path = remote.local("a.txt", b"a text")
    remote("copyto", path, "remote:moves/a.txt")
    before = world.tree("md5")["/moves/a.txt"]["id"]
    remote("moveto", "remote:moves/a.txt", "remote:moves/deeper/b.txt")
    assert world.tree("md5")["/moves/deeper/b.txt"]["id"] == before
    remote("copyto", "remote:moves/deeper/b.txt", "remote:moves/c.txt")
    assert remote("cat", "remote:moves/c.txt") == "a text"
    remote("moveto", "remote:moves/deeper", "remote:moves/elsewhere")
    assert world.tree("md5")["/moves/elsewhere/b.txt"]["id"] == before
    remote("touch", "-t", "2020-02-03T04:05:06.789", "remote:moves/c.txt")
    assert world.tree("md5")["/moves/c.txt"]["modified"].startswith("2020-02-03T04:05:06.789")
    remote("mkdir", "remote:moves/empty")
    remote("rmdir", "remote:moves/empty")
    assert "/moves/empty" not in world.tree("md5")
    remote("purge", "remote:moves")


def check_rclone_a_range_is_read(world):
    remote = rclone(world)
    text = remote("cat", "--offset", "5", "--count", "7", "remote:Welcome.txt")
    assert text == remote("cat", "remote:Welcome.txt")[5:12]
    data = remote(
        "cat", "--offset", "299999000", "remote:Videos/Northern lights.mov", text=False)
    assert len(data) == 1000


def check_rclone_documents_are_exported(world):
    remote = rclone(world)
    remote("copy", "remote:Documents/Travel plan.docx", remote.place)
    assert (remote.place / "Travel plan.docx").read_bytes().startswith(b"PK")


def check_rclone_shared_places(world):
    remote = rclone(world, shared_with_me="true")
    names = remote("lsf", "remote:").splitlines()
    assert sorted(names) == ["Grace's recipes/", "Minutes.txt"]
    assert remote("cat", "remote:Grace's recipes/Onion soup.txt") == "Onions, butter, time.\n"
    drives = json.loads(remote("backend", "drives", "remote:"))
    assert [drive["name"] for drive in drives] == ["Choir"]
    remote = rclone(world, team_drive=drives[0]["id"])
    assert remote("lsf", "remote:").splitlines() == ["Songs/"]
    remote("copyto", remote.local("new.txt", b"new"), "remote:Songs/new.txt")
    assert remote("cat", "remote:Songs/new.txt") == "new"
    remote("deletefile", "remote:Songs/new.txt")


def check_rclone_an_old_token_is_refreshed(world):
    remote = rclone(world, expiry="2020-01-01T00:00:00Z")
    world.control("POST", "tokens/expire")
    remote("lsf", "remote:")
    assert world.calls("oauth.token") == 1
    remote = rclone(world, expiry="2020-01-01T00:00:00Z")
    world.control("POST", "tokens/revoke")
    remote("lsf", "remote:", fails=True)


def check_rclone_it_waits_when_asked_to(world):
    remote = rclone(world)
    world.fault("files.list", "status", status=429)
    world.fault("files.list", "status", status=503)
    world.fault("files.list", "html", status=502)
    assert "Welcome.txt" in remote("lsf", "remote:")


def check_sdk_listing_in_pages(world):
    drive = Official(world)
    found, token = [], None
    while True:
        page = drive.v3.files().list(
            q="trashed = false", pageSize=500, pageToken=token,
            fields="nextPageToken, files(id, name, parents)").execute()
        found += page["files"]
        token = page.get("nextPageToken")
        if token is None:
            break
    assert len(found) > 2400
    assert len({file["id"] for file in found}) == len(found)


def check_sdk_searches(world):
    drive = Official(world)

    def names(q, **more):
        answer = drive.v3.files().list(q=q, fields="files(name)", **more).execute()
        return [file["name"] for file in answer["files"]]

    assert names("name = 'WELCOME.txt'") == ["Welcome.txt"]
    assert names("name contains 'wel'") == ["Welcome.txt"]
    assert names("name contains 'elcome'") == []
    quoted = names("name = 'two  spaces and \\'quotes\\'.txt' and not trashed = true")
    assert quoted == ["two  spaces and 'quotes'.txt"]
    folders = names(
        "'root' in parents and trashed = false"
        " and mimeType = 'application/vnd.google-apps.folder'", orderBy="name desc")
    assert folders[:2] == ["Videos", "Projects"]
    assert sorted(names("sharedWithMe")) == ["Grace's recipes", "Minutes.txt"]
    assert "Welcome.txt" in names("fullText contains 'simulated'")
    assert names("createdTime > '2100-01-01T00:00:00'") == []
    for bad in ["name is 'x'", "name = 'x", "(trashed = false", "foo = 'x'"]:
        assert drive.refused(drive.v3.files().list(q=bad)) == (400, "invalid")
    assert drive.refused(drive.v3.files().list(fields="files(nope)")) == (400, "invalidParameter")
    long = " or ".join(f"name = 'nobody {index}'" for index in range(300))
    assert names(long) == []


def check_sdk_simple_and_resumable_uploads(world):
    drive = Official(world)
    small = drive.upload("official small.bin", noise(10_000, 1))
    assert small["md5Checksum"] == hashlib.md5(noise(10_000, 1)).hexdigest()
    assert small["modifiedTime"] == "2021-02-03T04:05:06.789Z"
    content = noise(5_000_001, 2)
    large = drive.upload("official large.bin", content, resumable=True, chunksize=1 << 20)
    assert large["md5Checksum"] == hashlib.md5(content).hexdigest()
    assert drive.download(large["id"]) == content
    empty = drive.upload("official empty.bin", b"")
    assert empty["size"] == "0"
    for file in (small, large, empty):
        drive.v3.files().delete(fileId=file["id"]).execute()
    assert drive.refused(drive.v3.files().get(fileId=small["id"])) == (404, "notFound")


def check_sdk_a_broken_upload_is_resumed(world):
    drive = Official(world)
    world.fault("uploads", "status", status=503, skipping=2)
    content = noise(3_000_000, 3)
    file = drive.upload("official resumed.bin", content, resumable=True, chunksize=1 << 20)
    assert file["md5Checksum"] == hashlib.md5(content).hexdigest()
    drive.v3.files().delete(fileId=file["id"]).execute()


def check_sdk_folders_moves_trash_and_changes(world):
    drive = Official(world)
    files = drive.v3.files()
    token = drive.v3.changes().getStartPageToken().execute()["startPageToken"]
    folder = files.create(
        body={"name": "official", "mimeType": "application/vnd.google-apps.folder"},
        fields="id,parents").execute()
    file = drive.upload("wanderer.txt", b"wanders")
    moved = files.update(
        fileId=file["id"], body={"name": "arrived.txt"}, addParents=folder["id"],
        removeParents=folder["parents"][0], fields="id,name,parents").execute()
    assert moved["parents"] == [folder["id"]]
    copied = files.copy(
        fileId=file["id"], body={"name": "copy.txt"}, fields="id,name").execute()
    assert drive.download(copied["id"]) == b"wanders"
    assert drive.refused(files.update(fileId=folder["id"], addParents=folder["id"]))[0] == 400
    files.update(fileId=folder["id"], body={"trashed": True}).execute()
    below = files.get(fileId=file["id"], fields="trashed,explicitlyTrashed").execute()
    assert below == {"trashed": True, "explicitlyTrashed": False}
    seen = {}
    while token:
        page = drive.v3.changes().list(
            pageToken=token, pageSize=2,
            fields="nextPageToken,newStartPageToken,changes(fileId,removed,file(name,trashed))"
        ).execute()
        for change in page["changes"]:
            seen[change["fileId"]] = change
        token = page.get("nextPageToken")
    assert "newStartPageToken" in page
    assert seen[folder["id"]]["file"]["trashed"]
    assert seen[file["id"]]["file"]["name"] == "arrived.txt"
    files.delete(fileId=folder["id"]).execute()


def check_sdk_ids_are_used_once(world):
    drive = Official(world)
    file_id = drive.v3.files().generateIds(count=3).execute()["ids"][0]
    body = {"id": file_id, "name": "once.txt"}
    drive.v3.files().create(body=body).execute()
    assert drive.refused(drive.v3.files().create(body=body)) == (409, "fileIdInUse")
    drive.v3.files().delete(fileId=file_id).execute()


def check_sdk_what_cannot_be_written(world):
    drive = Official(world)
    file = drive.upload("strict.txt", b"x")
    files = drive.v3.files()
    change = files.update(fileId=file["id"], body={"createdTime": "2020-01-01T00:00:00Z"})
    assert drive.refused(change) == (403, "fieldNotWritable")
    below = files.create(body={"name": "x", "parents": [file["id"]]})
    assert drive.refused(below) == (403, "parentNotAFolder")
    nowhere = files.create(body={"name": "x", "parents": ["nowhere"]})
    assert drive.refused(nowhere) == (404, "notFound")
    files.delete(fileId=file["id"]).execute()


def check_sdk_a_batch(world):
    drive = Official(world)
    answers = {}
    batch = drive.v3.new_batch_http_request(
        callback=lambda key, answer, error: answers.update({key: (answer, error)}))
    for index in range(20):
        batch.add(drive.v3.files().create(
            body={"name": f"batch {index}"}, fields="id,name"), request_id=str(index))
    batch.add(drive.v3.files().get(fileId="nowhere"), request_id="bad")
    batch.execute()
    for index in range(20):
        assert answers[str(index)][0]["name"] == f"batch {index}"
    assert answers["bad"][1].resp.status == 404
    batch = drive.v3.new_batch_http_request()
    for index in range(20):
        batch.add(drive.v3.files().delete(fileId=answers[str(index)][0]["id"]))
    batch.execute()


def check_sdk_export_revisions_and_links(world):
    drive = Official(world)
    files = drive.v3.files()
    plan = files.list(q="name = 'Travel plan'", fields="files(id,size)").execute()["files"][0]
    data = files.export(fileId=plan["id"], mimeType="application/pdf").execute()
    assert data.startswith(b"%PDF")
    assert drive.refused(files.get_media(fileId=plan["id"])) == (403, "fileNotDownloadable")
    file = drive.upload("linked.txt", b"x")
    revisions = drive.v3.revisions().list(fileId=file["id"]).execute()["revisions"]
    assert [entry["id"] for entry in revisions] == [file["headRevisionId"]]
    drive.v3.permissions().create(
        fileId=file["id"], body={"type": "anyone", "role": "reader"}).execute()
    drive.v3.permissions().delete(
        fileId=file["id"], permissionId="anyoneWithLink").execute()
    files.delete(fileId=file["id"]).execute()


def check_rclone_trash_and_links(world):
    remote = rclone(world)
    remote.local("trashed/one.txt", b"one")
    remote.local("trashed/two.txt", b"two")
    remote("copy", remote.place / "trashed", "remote:trashed")
    remote("deletefile", "remote:trashed/one.txt")
    assert remote("lsf", "remote:trashed") == "two.txt\n"
    assert remote("lsf", "--drive-trashed-only", "remote:trashed") == "one.txt\n"
    remote("backend", "untrash", "remote:trashed")
    assert remote("lsf", "remote:trashed") == "one.txt\ntwo.txt\n"
    link = remote("link", "remote:trashed/one.txt").strip()
    item = world.tree()["/trashed/one.txt"]
    assert item["id"] in link, link
    found = Official(world).v3.files().list(
        q="visibility='anyoneWithLink' and 'me' in owners and trashed=false",
        fields="files(id,webViewLink)").execute()["files"]
    assert item["id"] in [entry["id"] for entry in found]


def check_sdk_refresh_and_patience(world):
    drive = Official(world)
    world.control("POST", "tokens/expire")
    about = drive.v3.about().get(fields="user,storageQuota").execute()
    assert about["user"]["emailAddress"] == "ada@example.com"
    assert world.calls("oauth.token") == 1
    world.fault("about.get", "status", status=429)
    world.fault("about.get", "status", status=503)
    drive.v3.about().get(fields="user").execute(num_retries=3)
    assert drive.refused(drive.v3.about().get()) == (400, "required")


def check_sdk_v2_takes_preconditions(world):
    drive = Official(world)
    file = drive.upload("tagged.txt", b"one")
    v2 = drive.client("v2")
    tag = v2.files().get(fileId=file["id"]).execute()["etag"]

    def replace(content):
        request = v2.files().update(
            fileId=file["id"], body={"title": "tagged.txt"},
            media_body=MediaIoBaseUpload(io.BytesIO(content), mimetype="text/plain"))
        request.headers["If-Match"] = tag
        return request.execute()

    assert replace(b"two")["etag"] != tag
    try:
        replace(b"three")
        raise AssertionError("a stale tag was taken")
    except HttpError as error:
        assert error.resp.status == 412
    assert drive.download(file["id"]) == b"two"
    drive.v3.files().delete(fileId=file["id"]).execute()
