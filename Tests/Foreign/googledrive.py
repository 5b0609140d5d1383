"""Drives the simulated Google Drive with clients that nobody here wrote: rclone's drive backend and
Google's official Python client, by the real host names, through a proxy with a test CA.

Environment: OORT_SIMULATOR the simulator's base URL (its control is below /_oort/), HTTPS_PROXY and
SSL_CERT_FILE for the way there, RCLONE the rclone binary. Needs google-api-python-client and,
for its way through a proxy, PySocks.
Exits with 0 when every check passed.
"""

import hashlib
import io
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

SIMULATOR = os.environ["OORT_SIMULATOR"].rstrip("/")
RCLONE = os.environ.get("RCLONE", "rclone")
# The control is on loopback and must not go through the proxy.
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def control(method, path, body=None):
    request = urllib.request.Request(
        SIMULATOR + "/_oort/" + path,
        method=method,
        data=None if body is None else json.dumps(body).encode(),
    )
    with DIRECT.open(request) as answer:
        return json.loads(answer.read() or b"{}")


def tree():
    """Every item by its path (of several of one path the last)."""
    return {item["path"]: item for item in control("GET", "tree?hash=md5")}


def counts():
    return control("GET", "counts")


def fault(route, kind, **more):
    control("POST", "faults", {"route": route, "fault": kind, **more})


def noise(size, seed):
    return random.Random(seed).randbytes(size)


class Checks(unittest.TestCase):
    def setUp(self):
        control("DELETE", "faults")
        control("PUT", "weather", {})
        control("DELETE", "calls")
        self.tokens = control("GET", "tokens")


class RcloneChecks(Checks):
    """rclone's drive backend."""

    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.configure("2036-01-01T00:00:00Z")

    def configure(self, expiry, more=""):
        token = {
            "access_token": self.tokens["access_token"],
            "refresh_token": self.tokens["refresh_token"],
            "token_type": "Bearer",
            "expiry": expiry,
        }
        with open(self.folder + "/rclone.conf", "w") as file:
            file.write(
                "[gd]\ntype = drive\nclient_id = id\nclient_secret = secret\nscope = drive\n"
                f"token = {json.dumps(token)}\n{more}"
            )

    def rclone(self, *arguments, code=0):
        done = subprocess.run(
            [RCLONE, "--config", self.folder + "/rclone.conf", "--retries", "1",
             "--low-level-retries", "10", "--drive-pacer-min-sleep", "1ms", *arguments],
            capture_output=True, text=True, timeout=300,
        )
        self.assertEqual(done.returncode, code, done.stderr[-2000:])
        return done.stdout

    def local(self, name, content):
        path = os.path.join(self.folder, "local", name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content)
        return path

    def test_the_sample_is_listed(self):
        names = self.rclone("lsf", "gd:").splitlines()
        self.assertIn("Documents/", names)
        documents = self.rclone("lsf", "gd:Documents").splitlines()
        self.assertEqual(documents.count("Invoice.txt"), 2)
        self.assertIn("Income／expenses.txt", documents)
        self.assertIn("Travel plan.docx", documents)
        self.assertEqual(len(self.rclone("lsf", "gd:Archive/Receipts").splitlines()), 2400)
        about = json.loads(self.rclone("about", "--json", "gd:"))
        self.assertGreater(about["used"], 300_000_000)

    def test_a_tree_goes_up_and_comes_back(self):
        for index in range(40):
            self.local(f"sub {index % 5}/file-{index}.bin", noise(index * 977, index))
        self.local("empty.txt", b"")
        self.local("käse – 🧀.txt", "käse".encode())
        here = self.folder + "/local"
        self.rclone("copy", here, "gd:rclone tree")
        self.rclone("check", "--download", here, "gd:rclone tree")
        self.rclone("check", here, "gd:rclone tree")
        self.rclone("copy", "gd:rclone tree", self.folder + "/back")
        done = subprocess.run(["diff", "-r", here, self.folder + "/back"])
        self.assertEqual(done.returncode, 0)
        # A second run sends nothing, because the times are kept.
        control("DELETE", "calls")
        self.rclone("copy", here, "gd:rclone tree")
        self.assertNotIn("uploads", counts())
        self.rclone("purge", "gd:rclone tree")
        self.assertNotIn("/rclone tree", tree())

    def test_a_large_upload_goes_in_parts(self):
        content = noise(21_000_001, 4)
        path = self.local("large.bin", content)
        self.rclone("copyto", "--drive-chunk-size", "4M", "--drive-upload-cutoff", "1M", path,
                    "gd:large.bin")
        self.assertEqual(tree()["/large.bin"]["hash"], hashlib.md5(content).hexdigest())
        # Opening and six parts.
        self.assertEqual(counts()["uploads"]["calls"], 7)
        # Over it again: one more revision of the same item.
        before = tree()["/large.bin"]
        content = noise(9_000_000, 5)
        self.rclone("copyto", "--drive-chunk-size", "4M", "--drive-upload-cutoff", "1M",
                    self.local("large.bin", content), "gd:large.bin")
        after = tree()["/large.bin"]
        self.assertEqual(after["id"], before["id"])
        self.assertEqual(after["hash"], hashlib.md5(content).hexdigest())
        self.assertEqual(after["revisions"], 2)
        self.rclone("deletefile", "gd:large.bin")

    def test_parts_that_fail_are_sent_again(self):
        content = noise(9_000_000, 6)
        path = self.local("faults.bin", content)
        fault("uploads", "status", status=503, skipping=1)
        fault("uploads", "status", status=500, skipping=2)
        fault("uploads", "status", status=429, skipping=3)
        self.rclone("copyto", "--drive-chunk-size", "1M", "--drive-upload-cutoff", "1M", path,
                    "gd:faults.bin")
        self.assertEqual(tree()["/faults.bin"]["hash"], hashlib.md5(content).hexdigest())
        self.rclone("deletefile", "gd:faults.bin")

    def test_moves_copies_and_deletes(self):
        path = self.local("a.txt", b"a text")
        self.rclone("copyto", path, "gd:moves/a.txt")
        before = tree()["/moves/a.txt"]["id"]
        self.rclone("moveto", "gd:moves/a.txt", "gd:moves/deeper/b.txt")
        self.assertEqual(tree()["/moves/deeper/b.txt"]["id"], before)
        self.rclone("copyto", "gd:moves/deeper/b.txt", "gd:moves/c.txt")
        self.assertEqual(self.rclone("cat", "gd:moves/c.txt"), "a text")
        self.rclone("moveto", "gd:moves/deeper", "gd:moves/elsewhere")
        self.assertEqual(tree()["/moves/elsewhere/b.txt"]["id"], before)
        self.rclone("touch", "-t", "2020-02-03T04:05:06.789", "gd:moves/c.txt")
        self.assertTrue(tree()["/moves/c.txt"]["modified"].startswith("2020-02-03T04:05:06.789"))
        self.rclone("mkdir", "gd:moves/empty")
        self.rclone("rmdir", "gd:moves/empty")
        self.assertNotIn("/moves/empty", tree())
        self.rclone("purge", "gd:moves")

    def test_a_range_is_read(self):
        text = self.rclone("cat", "--offset", "5", "--count", "7", "gd:Welcome.txt")
        self.assertEqual(text, self.rclone("cat", "gd:Welcome.txt")[5:12])
        data = subprocess.run(
            [RCLONE, "--config", self.folder + "/rclone.conf", "cat", "--offset", "299999000",
             "gd:Videos/Northern lights.mov"], capture_output=True, timeout=120).stdout
        self.assertEqual(len(data), 1000)

    def test_documents_are_exported(self):
        self.rclone("copy", "gd:Documents/Travel plan.docx", self.folder)
        with open(self.folder + "/Travel plan.docx", "rb") as file:
            self.assertEqual(file.read(2), b"PK")

    def test_shared_places(self):
        self.configure("2036-01-01T00:00:00Z", "shared_with_me = true\n")
        names = self.rclone("lsf", "gd:").splitlines()
        self.assertEqual(sorted(names), ["Grace's recipes/", "Minutes.txt"])
        self.assertEqual(
            self.rclone("cat", "gd:Grace's recipes/Onion soup.txt"), "Onions, butter, time.\n")
        drives = json.loads(self.rclone("backend", "drives", "gd:"))
        self.assertEqual([drive["name"] for drive in drives], ["Choir"])
        self.configure("2036-01-01T00:00:00Z", f"team_drive = {drives[0]['id']}\n")
        self.assertEqual(self.rclone("lsf", "gd:").splitlines(), ["Songs/"])
        self.rclone("copyto", self.local("new.txt", b"new"), "gd:Songs/new.txt")
        self.assertEqual(self.rclone("cat", "gd:Songs/new.txt"), "new")
        self.rclone("deletefile", "gd:Songs/new.txt")

    def test_an_old_token_is_refreshed(self):
        control("POST", "tokens/expire")
        self.configure("2020-01-01T00:00:00Z")
        self.rclone("lsf", "gd:")
        self.assertEqual(counts()["oauth.token"]["calls"], 1)
        control("POST", "tokens/revoke")
        self.configure("2020-01-01T00:00:00Z")
        self.rclone("lsf", "gd:", code=1)

    def test_it_waits_when_asked_to(self):
        fault("files.list", "status", status=429)
        fault("files.list", "status", status=503)
        fault("files.list", "html", status=502)
        self.assertIn("Welcome.txt", self.rclone("lsf", "gd:"))


class OfficialClientChecks(Checks):
    """google-api-python-client with google-auth, as Google ships them."""

    def setUp(self):
        super().setUp()
        from google.oauth2.credentials import Credentials
        self.credentials = Credentials(
            token=self.tokens["access_token"],
            refresh_token=self.tokens["refresh_token"],
            token_uri="https://oauth2.googleapis.com/token",
            client_id="id",
            client_secret="secret",
            scopes=["https://www.googleapis.com/auth/drive"],
        )
        self.drive = self.client("v3")

    def client(self, version):
        from google_auth_httplib2 import AuthorizedHttp
        from googleapiclient.discovery import build
        from googleapiclient.http import build_http

        http = build_http()
        # Of itself it does not look at SSL_CERT_FILE.
        http.ca_certs = os.environ["SSL_CERT_FILE"]
        client = build(
            "drive", version, http=AuthorizedHttp(self.credentials, http=http),
            static_discovery=True)
        self.addCleanup(client.close)
        return client

    def upload(self, name, content, **more):
        from googleapiclient.errors import HttpError
        from googleapiclient.http import MediaIoBaseUpload

        media = MediaIoBaseUpload(
            io.BytesIO(content), mimetype="application/octet-stream", **more)
        body = {"name": name, "modifiedTime": "2021-02-03T04:05:06.789Z"}
        request = self.drive.files().create(
            body=body, media_body=media,
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
        from googleapiclient.http import MediaIoBaseDownload

        out = io.BytesIO()
        loader = MediaIoBaseDownload(out, self.drive.files().get_media(fileId=file_id), chunk)
        done = False
        while not done:
            _, done = loader.next_chunk()
        return out.getvalue()

    def refused(self, request):
        from googleapiclient.errors import HttpError

        with self.assertRaises(HttpError) as caught:
            request.execute()
        detail = json.loads(caught.exception.content)["error"]["errors"][0]
        return caught.exception.resp.status, detail["reason"]

    def test_listing_in_pages(self):
        found, token = [], None
        while True:
            page = self.drive.files().list(
                q="trashed = false", pageSize=500, pageToken=token,
                fields="nextPageToken, files(id, name, parents)").execute()
            found += page["files"]
            token = page.get("nextPageToken")
            if token is None:
                break
        self.assertGreater(len(found), 2400)
        self.assertEqual(len({file["id"] for file in found}), len(found))

    def test_searches(self):
        def names(q, **more):
            answer = self.drive.files().list(q=q, fields="files(name)", **more).execute()
            return [file["name"] for file in answer["files"]]

        self.assertEqual(names("name = 'WELCOME.txt'"), ["Welcome.txt"])
        self.assertEqual(names("name contains 'wel'"), ["Welcome.txt"])
        self.assertEqual(names("name contains 'elcome'"), [])
        self.assertEqual(
            names("name = 'two  spaces and \\'quotes\\'.txt' and not trashed = true"),
            ["two  spaces and 'quotes'.txt"])
        self.assertEqual(
            names("'root' in parents and trashed = false"
                  " and mimeType = 'application/vnd.google-apps.folder'",
                  orderBy="name desc")[:2], ["Videos", "Projects"])
        self.assertEqual(
            sorted(names("sharedWithMe")), ["Grace's recipes", "Minutes.txt"])
        self.assertIn("Welcome.txt", names("fullText contains 'simulated'"))
        self.assertEqual(names("createdTime > '2100-01-01T00:00:00'"), [])
        for bad in ["name is 'x'", "name = 'x", "(trashed = false", "foo = 'x'"]:
            self.assertEqual(self.refused(self.drive.files().list(q=bad)), (400, "invalid"))
        self.assertEqual(
            self.refused(self.drive.files().list(fields="files(nope)")), (400, "invalidParameter"))
        long = " or ".join(f"name = 'nobody {index}'" for index in range(300))
        self.assertEqual(names(long), [])

    def test_simple_and_resumable_uploads(self):
        small = self.upload("official small.bin", noise(10_000, 1))
        self.assertEqual(small["md5Checksum"], hashlib.md5(noise(10_000, 1)).hexdigest())
        self.assertEqual(small["modifiedTime"], "2021-02-03T04:05:06.789Z")
        content = noise(5_000_001, 2)
        large = self.upload("official large.bin", content, resumable=True, chunksize=1 << 20)
        self.assertEqual(large["md5Checksum"], hashlib.md5(content).hexdigest())
        self.assertEqual(self.download(large["id"]), content)
        empty = self.upload("official empty.bin", b"")
        self.assertEqual(empty["size"], "0")
        for file in (small, large, empty):
            self.drive.files().delete(fileId=file["id"]).execute()
        self.assertEqual(
            self.refused(self.drive.files().get(fileId=small["id"])), (404, "notFound"))

    def test_a_broken_upload_is_resumed(self):
        fault("uploads", "status", status=503, skipping=2)
        content = noise(3_000_000, 3)
        file = self.upload("official resumed.bin", content, resumable=True, chunksize=1 << 20)
        self.assertEqual(file["md5Checksum"], hashlib.md5(content).hexdigest())
        self.drive.files().delete(fileId=file["id"]).execute()

    def test_folders_moves_trash_and_changes(self):
        files = self.drive.files()
        token = self.drive.changes().getStartPageToken().execute()["startPageToken"]
        folder = files.create(
            body={"name": "official", "mimeType": "application/vnd.google-apps.folder"},
            fields="id,parents").execute()
        file = self.upload("wanderer.txt", b"wanders")
        moved = files.update(
            fileId=file["id"], body={"name": "arrived.txt"}, addParents=folder["id"],
            removeParents=folder["parents"][0], fields="id,name,parents").execute()
        self.assertEqual(moved["parents"], [folder["id"]])
        copied = files.copy(
            fileId=file["id"], body={"name": "copy.txt"}, fields="id,name").execute()
        self.assertEqual(self.download(copied["id"]), b"wanders")
        self.assertEqual(
            self.refused(files.update(fileId=folder["id"], addParents=folder["id"]))[0], 400)
        files.update(fileId=folder["id"], body={"trashed": True}).execute()
        below = files.get(fileId=file["id"], fields="trashed,explicitlyTrashed").execute()
        self.assertEqual(below, {"trashed": True, "explicitlyTrashed": False})
        seen = {}
        while token:
            page = self.drive.changes().list(
                pageToken=token, pageSize=2,
                fields="nextPageToken,newStartPageToken,changes(fileId,removed,file(name,trashed))"
            ).execute()
            for change in page["changes"]:
                seen[change["fileId"]] = change
            token = page.get("nextPageToken")
        self.assertIn("newStartPageToken", page)
        self.assertTrue(seen[folder["id"]]["file"]["trashed"])
        self.assertEqual(seen[file["id"]]["file"]["name"], "arrived.txt")
        files.delete(fileId=folder["id"]).execute()

    def test_ids_are_used_once(self):
        file_id = self.drive.files().generateIds(count=3).execute()["ids"][0]
        body = {"id": file_id, "name": "once.txt"}
        self.drive.files().create(body=body).execute()
        self.assertEqual(self.refused(self.drive.files().create(body=body)), (409, "fileIdInUse"))
        self.drive.files().delete(fileId=file_id).execute()

    def test_what_cannot_be_written(self):
        file = self.upload("strict.txt", b"x")
        files = self.drive.files()
        self.assertEqual(
            self.refused(files.update(fileId=file["id"], body={"createdTime": "2020-01-01T00:00:00Z"})),
            (403, "fieldNotWritable"))
        self.assertEqual(
            self.refused(files.create(body={"name": "x", "parents": [file["id"]]})),
            (403, "parentNotAFolder"))
        self.assertEqual(
            self.refused(files.create(body={"name": "x", "parents": ["nowhere"]})),
            (404, "notFound"))
        files.delete(fileId=file["id"]).execute()

    def test_a_batch(self):
        answers = {}
        batch = self.drive.new_batch_http_request(
            callback=lambda key, answer, error: answers.update({key: (answer, error)}))
        for index in range(20):
            batch.add(self.drive.files().create(
                body={"name": f"batch {index}"}, fields="id,name"), request_id=str(index))
        batch.add(self.drive.files().get(fileId="nowhere"), request_id="bad")
        batch.execute()
        for index in range(20):
            self.assertEqual(answers[str(index)][0]["name"], f"batch {index}")
        self.assertEqual(answers["bad"][1].resp.status, 404)
        batch = self.drive.new_batch_http_request()
        for index in range(20):
            batch.add(self.drive.files().delete(fileId=answers[str(index)][0]["id"]))
        batch.execute()

    def test_export_revisions_and_links(self):
        files = self.drive.files()
        plan = files.list(q="name = 'Travel plan'", fields="files(id,size)").execute()["files"][0]
        data = files.export(fileId=plan["id"], mimeType="application/pdf").execute()
        self.assertTrue(data.startswith(b"%PDF"))
        self.assertEqual(
            self.refused(files.get_media(fileId=plan["id"])), (403, "fileNotDownloadable"))
        file = self.upload("linked.txt", b"x")
        revisions = self.drive.revisions().list(fileId=file["id"]).execute()["revisions"]
        self.assertEqual([entry["id"] for entry in revisions], [file["headRevisionId"]])
        self.drive.permissions().create(
            fileId=file["id"], body={"type": "anyone", "role": "reader"}).execute()
        self.drive.permissions().delete(
            fileId=file["id"], permissionId="anyoneWithLink").execute()
        files.delete(fileId=file["id"]).execute()

    def test_refresh_and_patience(self):
        control("POST", "tokens/expire")
        about = self.drive.about().get(fields="user,storageQuota").execute()
        self.assertEqual(about["user"]["emailAddress"], "ada@example.com")
        self.assertEqual(counts()["oauth.token"]["calls"], 1)
        fault("about.get", "status", status=429)
        fault("about.get", "status", status=503)
        self.drive.about().get(fields="user").execute(num_retries=3)
        self.assertEqual(self.refused(self.drive.about().get()), (400, "required"))

    def test_v2_takes_preconditions(self):
        from googleapiclient.errors import HttpError
        from googleapiclient.http import MediaIoBaseUpload

        file = self.upload("tagged.txt", b"one")
        v2 = self.client("v2")
        tag = v2.files().get(fileId=file["id"]).execute()["etag"]

        def replace(content):
            request = v2.files().update(
                fileId=file["id"], body={"title": "tagged.txt"},
                media_body=MediaIoBaseUpload(io.BytesIO(content), mimetype="text/plain"))
            request.headers["If-Match"] = tag
            return request.execute()

        self.assertNotEqual(replace(b"two")["etag"], tag)
        with self.assertRaises(HttpError) as caught:
            replace(b"three")
        self.assertEqual(caught.exception.resp.status, 412)
        self.assertEqual(self.download(file["id"]), b"two")
        self.drive.files().delete(fileId=file["id"]).execute()


if __name__ == "__main__":
    start = time.monotonic()
    result = unittest.main(exit=False, verbosity=2).result
    print(f"{result.testsRun} checks in {time.monotonic() - start:.0f} s")
    sys.exit(0 if result.wasSuccessful() else 1)
