"""The simulated S3 under rclone and boto3, AWS's own SDK."""

import base64
import hashlib
import os
import time
import urllib.error
import urllib.request

import boto3
import botocore.config
import botocore.exceptions

from run import Rclone, noise

SIMULATOR = "s3"
HOST = "s3.example.org"
BUCKET = "ada-files"
REGION = "us-east-1"


def rclone(world, *flags, **options):
    tokens = world.tokens()
    return Rclone(world, *flags, **{
        "type": "s3", "provider": "Other", "endpoint": f"https://{HOST}", "region": REGION,
        "access_key_id": tokens["access_token"], "secret_access_key": tokens["refresh_token"],
        **options})


def sdk(world, secret=None, **options):
    tokens = world.tokens()
    config = {"s3": {"addressing_style": "path"}, "retries": {"max_attempts": 4}, **options}
    return boto3.client(
        "s3", endpoint_url=f"https://{HOST}", region_name=REGION,
        aws_access_key_id=tokens["access_token"],
        aws_secret_access_key=secret or tokens["refresh_token"],
        config=botocore.config.Config(**config))


def refused(status, call, **arguments):
    """The code by which a call is refused."""
    try:
        call(**arguments)
    except botocore.exceptions.ClientError as error:
        assert error.response["ResponseMetadata"]["HTTPStatusCode"] == status, error.response
        return error.response["Error"]["Code"]
    raise AssertionError("it was not refused")


def put(client, key, body, **more):
    return client.put_object(Bucket=BUCKET, Key=key, Body=body, **more)


def text(client, key, **more):
    return client.get_object(Bucket=BUCKET, Key=key, **more)["Body"].read()


def keys(client, operation="list_objects_v2", field="Contents", **more):
    pages = client.get_paginator(operation).paginate(Bucket=BUCKET, **more)
    return [entry["Key"] for page in pages for entry in page.get(field, [])]


def tree(world, hash="none"):
    return {path: item for path, item in world.tree(hash).items() if item["kind"] == "file"}


def check_rclone_round_trip(world):
    remote = rclone(world)
    for number in range(40):
        remote.local(f"tree/file {number}.txt", b"content %d" % number)
    remote.local("tree/deep/er/Grüße 🌋 100%+&;#?'()*!~.txt", b"hello")
    remote.local("tree/empty", b"")
    local = remote.place / "tree"
    remote("copy", local, f"remote:{BUCKET}/from rclone")
    remote("check", local, f"remote:{BUCKET}/from rclone")
    stored = tree(world, "sha256")
    for path in local.rglob("*"):
        if path.is_file():
            item = stored["/from rclone/" + str(path.relative_to(local))]
            assert item["hash"] == hashlib.sha256(path.read_bytes()).hexdigest(), path
    back = remote.place / "back"
    remote("copy", f"remote:{BUCKET}/from rclone", back)
    for path in local.rglob("*"):
        if path.is_file():
            there = back / path.relative_to(local)
            assert there.read_bytes() == path.read_bytes(), path
            assert int(there.stat().st_mtime) == int(path.stat().st_mtime), path
    world.calm()
    remote("copy", local, f"remote:{BUCKET}/from rclone")
    assert world.calls("PutObject") == 0


def check_rclone_lists_the_sample(world):
    remote = rclone(world)
    listed = remote("lsf", f"remote:{BUCKET}/Archive/Receipts").splitlines()
    assert len(listed) == len(set(listed)) == 2400, len(listed)
    for version in ("1", "2"):
        remote = rclone(world, list_version=version)
        everything = set(remote("lsf", "-R", "--files-only", f"remote:{BUCKET}").splitlines())
        missing = {path[1:] for path in tree(world)} ^ everything
        assert not missing, missing
    cut = remote("cat", f"remote:{BUCKET}/Welcome.txt", "--offset", "3", "--count", "4")
    assert cut == "come", cut


def check_rclone_parts(world):
    remote = rclone(world, chunk_size="5Mi", upload_cutoff="5Mi", copy_cutoff="5Mi")
    content = os.urandom(23 << 20)
    remote.local("large/large.bin", content)
    remote("copy", remote.place / "large", f"remote:{BUCKET}/large")
    assert world.calls("UploadPart") == 5, world.calls("UploadPart")
    stored = hashlib.sha256(content).hexdigest()
    assert tree(world, "sha256")["/large/large.bin"]["hash"] == stored
    remote("check", remote.place / "large", f"remote:{BUCKET}/large")
    remote("copyto", f"remote:{BUCKET}/large/large.bin", f"remote:{BUCKET}/large/copy.bin")
    assert world.calls("UploadPartCopy") == 5, world.calls("UploadPartCopy")
    assert tree(world, "sha256")["/large/copy.bin"]["hash"] == stored
    assert remote("cat", "--offset", "7000000", "--count", "100",
                  f"remote:{BUCKET}/large/large.bin", text=False) == content[7000000:7000100]


def check_rclone_moves_and_deletes(world):
    remote = rclone(world)
    for name in ("a.txt", "b.txt"):
        world.edit(op="write", path="/moves/" + name, text=name)
    remote("moveto", f"remote:{BUCKET}/moves/a.txt", f"remote:{BUCKET}/moves/ä 1.txt")
    remote("copyto", f"remote:{BUCKET}/moves/b.txt", f"remote:{BUCKET}/moves/c/d.txt")
    remote("move", f"remote:{BUCKET}/moves/c", f"remote:{BUCKET}/moves/e")
    found = {path for path in tree(world) if path.startswith("/moves/")}
    assert found == {"/moves/ä 1.txt", "/moves/b.txt", "/moves/e/d.txt"}, found
    remote("purge", f"remote:{BUCKET}/moves")
    assert not any(path.startswith("/moves") for path in world.tree())


def check_rclone_bisync(world):
    remote = rclone(world)
    here = remote.place / "both"
    remote.local("both/one.txt", b"one")
    world.edit(op="write", path="/both/two.txt", text="two")
    flags = ["--workdir", str(remote.place / "state"), "--create-empty-src-dirs=false"]
    remote("bisync", str(here), f"remote:{BUCKET}/both", "--resync", *flags)
    assert (here / "two.txt").read_bytes() == b"two" and "/both/one.txt" in tree(world)
    remote.local("both/one.txt", b"one, changed here")
    world.edit(op="write", path="/both/three.txt", text="three")
    world.edit(op="remove", path="/both/two.txt")
    remote("bisync", str(here), f"remote:{BUCKET}/both", *flags)
    assert sorted(path.name for path in here.iterdir()) == ["one.txt", "three.txt"]
    stored = tree(world, "sha256")["/both/one.txt"]["hash"]
    assert stored == hashlib.sha256(b"one, changed here").hexdigest()


def check_rclone_versions(world):
    remote = rclone(world)
    world.edit(op="write", path="/kept/a.txt", text="first")
    # rclone names versions by the second in which they came.
    time.sleep(1.1)
    second = remote.local("a.txt", b"second")
    remote("copyto", str(second), f"remote:{BUCKET}/kept/a.txt")
    remote("deletefile", f"remote:{BUCKET}/kept/a.txt")
    assert remote("lsf", f"remote:{BUCKET}/kept") == ""
    old = remote("lsf", "--s3-versions", f"remote:{BUCKET}/kept").splitlines()
    assert len(old) == 2, old
    contents = sorted(
        remote("cat", "--s3-versions", f"remote:{BUCKET}/kept/{name}") for name in old)
    assert contents == ["first", "second"], contents
    remote("backend", "cleanup-hidden", f"remote:{BUCKET}/kept")
    assert remote("lsf", "--s3-versions", f"remote:{BUCKET}/kept") == ""


def check_rclone_link(world):
    remote = rclone(world)
    link = remote("link", "--expire", "1h", f"remote:{BUCKET}/Names/Grüße aus Köln.txt").strip()
    with urllib.request.urlopen(link, timeout=60) as answer:
        assert "Grüße" in answer.read().decode()


def check_rclone_waits_out_trouble(world):
    remote = rclone(world)
    world.fault("*", "status", status=503)
    world.fault("PutObject", "status", status=500)
    remote("copyto", str(remote.local("a.txt", b"text")), f"remote:{BUCKET}/trouble.txt")
    assert remote("cat", f"remote:{BUCKET}/trouble.txt") == "text"


def check_rclone_is_refused(world):
    rclone(world, secret_access_key="wrong")("lsf", f"remote:{BUCKET}", fails=True)
    rclone(world, access_key_id="wrong")("lsf", f"remote:{BUCKET}", fails=True)
    rclone(world, region="eu-west-1")("lsf", f"remote:{BUCKET}", fails=True)


def check_sdk_bucket(world):
    client = sdk(world)
    assert [bucket["Name"] for bucket in client.list_buckets()["Buckets"]] == [BUCKET]
    head = client.head_bucket(Bucket=BUCKET)["ResponseMetadata"]["HTTPHeaders"]
    assert head["x-amz-bucket-region"] == REGION
    assert client.get_bucket_location(Bucket=BUCKET)["LocationConstraint"] is None
    assert client.get_bucket_versioning(Bucket=BUCKET)["Status"] == "Enabled"
    assert refused(404, client.list_objects_v2, Bucket="nobodys") == "NoSuchBucket"
    assert refused(501, client.get_bucket_cors, Bucket=BUCKET) == "NotImplemented"


def check_sdk_signatures(world):
    assert refused(403, sdk(world, secret="wrong").list_objects_v2,
                   Bucket=BUCKET) == "SignatureDoesNotMatch"
    client = sdk(world)
    world.control("POST", "tokens/revoke")
    assert refused(403, client.list_objects_v2, Bucket=BUCKET) == "InvalidAccessKeyId"
    anonymous = boto3.client(
        "s3", endpoint_url=f"https://{HOST}", region_name=REGION,
        config=botocore.config.Config(signature_version=botocore.UNSIGNED))
    assert refused(403, anonymous.list_objects_v2, Bucket=BUCKET) == "AccessDenied"
    assert refused(
        400, sdk(world, signature_version="s3").list_objects_v2, Bucket=BUCKET) == "InvalidRequest"


def check_sdk_bodies(world):
    # With each way to say what a body is: checksums in the head, in a trailer behind framed bytes,
    # signed frame by frame, hashed as a whole, and none.
    content = noise(3 << 20, 5)
    for algorithm in ("CRC32", "CRC32C", "CRC64NVME", "SHA1", "SHA256"):
        key = f"bodies/{algorithm}"
        try:
            put(sdk(world), key, content, ChecksumAlgorithm=algorithm)
        except botocore.exceptions.MissingDependencyException:
            continue
        client = sdk(world, response_checksum_validation="when_supported")
        answer = client.get_object(Bucket=BUCKET, Key=key, ChecksumMode="ENABLED")
        assert answer["Body"].read() == content
    file = world.folder / "body"
    file.write_bytes(content)
    with open(file, "rb") as stream:
        put(sdk(world), "bodies/stream", stream)
    assert text(sdk(world), "bodies/stream") == content
    whole = sdk(world, request_checksum_calculation="when_required",
                s3={"addressing_style": "path", "payload_signing_enabled": True})
    put(whole, "bodies/whole", content)
    digest = base64.b64encode(hashlib.md5(content).digest()).decode()
    put(whole, "bodies/md5", content, ContentMD5=digest)
    assert refused(400, put, client=whole, key="bodies/none", body=b"other",
                   ContentMD5=digest) == "BadDigest"
    assert refused(400, put, client=whole, key="bodies/none", body=b"other",
                   ChecksumSHA256="A" * 43 + "=") == "BadDigest"
    assert keys(whole, Prefix="bodies/n") == []


def check_sdk_conditions(world):
    client = sdk(world)
    one = put(client, "conditions/a", b"one", IfNoneMatch="*")["ETag"]
    assert one == f'"{hashlib.md5(b"one").hexdigest()}"'
    assert refused(412, put, client=client, key="conditions/a", body=b"x",
                   IfNoneMatch="*") == "PreconditionFailed"
    two = put(client, "conditions/a", b"two", IfMatch=one)["ETag"]
    assert refused(412, put, client=client, key="conditions/a", body=b"x",
                   IfMatch=one) == "PreconditionFailed"
    assert refused(404, put, client=client, key="conditions/none", body=b"x",
                   IfMatch=one) == "NoSuchKey"
    assert refused(412, client.get_object, Bucket=BUCKET, Key="conditions/a",
                   IfMatch=one) == "PreconditionFailed"
    assert refused(304, client.get_object, Bucket=BUCKET, Key="conditions/a",
                   IfNoneMatch=two) == "304"
    assert refused(412, client.delete_object, Bucket=BUCKET, Key="conditions/a",
                   IfMatch=one) == "PreconditionFailed"
    source = {"Bucket": BUCKET, "Key": "conditions/a"}
    assert refused(412, client.copy_object, Bucket=BUCKET, Key="conditions/b", CopySource=source,
                   CopySourceIfMatch=one) == "PreconditionFailed"
    client.copy_object(Bucket=BUCKET, Key="conditions/b", CopySource=source, IfNoneMatch="*",
                       CopySourceIfMatch=two)
    assert refused(412, client.copy_object, Bucket=BUCKET, Key="conditions/b", CopySource=source,
                   IfNoneMatch="*") == "PreconditionFailed"
    answer = client.delete_objects(Bucket=BUCKET, Delete={"Objects": [
        {"Key": "conditions/a", "ETag": one}, {"Key": "conditions/b", "ETag": two}]})
    assert [entry["Code"] for entry in answer["Errors"]] == ["PreconditionFailed"]
    assert [entry["Key"] for entry in answer["Deleted"]] == ["conditions/b"]
    assert keys(client, Prefix="conditions/") == ["conditions/a"]


def check_sdk_metadata(world):
    client = sdk(world)
    put(client, "metadata/a", b"text", ContentType="text/x-poem", CacheControl="no-store",
        Metadata={"mtime": "1700000000.123456789", "author": "Ada"})
    head = client.head_object(Bucket=BUCKET, Key="metadata/a")
    assert head["ContentType"] == "text/x-poem" and head["CacheControl"] == "no-store"
    assert head["Metadata"] == {"mtime": "1700000000.123456789", "author": "Ada"}, head
    assert world.tree()["/metadata/a"]["modified"] == "2023-11-14T22:13:20.123Z"
    source = {"Bucket": BUCKET, "Key": "metadata/a"}
    client.copy_object(Bucket=BUCKET, Key="metadata/b", CopySource=source)
    assert client.head_object(Bucket=BUCKET, Key="metadata/b")["Metadata"] == head["Metadata"]
    assert refused(400, client.copy_object, Bucket=BUCKET, Key="metadata/a",
                   CopySource=source) == "InvalidRequest"
    client.copy_object(Bucket=BUCKET, Key="metadata/a", CopySource=source,
                       MetadataDirective="REPLACE", Metadata={"x": "1"})
    head = client.head_object(Bucket=BUCKET, Key="metadata/a")
    assert head["Metadata"] == {"x": "1"} and head["ContentType"] == "binary/octet-stream", head
    put(client, "metadata/cold", b"text", StorageClass="GLACIER")
    assert refused(403, client.get_object, Bucket=BUCKET,
                   Key="metadata/cold") == "InvalidObjectState"
    listed = client.list_objects_v2(Bucket=BUCKET, Prefix="metadata/cold")["Contents"]
    assert listed[0]["StorageClass"] == "GLACIER"


def check_sdk_keys_and_pages(world):
    client = sdk(world)
    odd = ["n/a-b", "n/a/b", "n//x", "n/.", "n/../y", "n/ü", "n/u\u0308", "n/100% +&<>\"'",
           "n/\U0001f30b", "n/\uffee", "n/dir/", "n/\x01", "n/a\nb", "n/plus+ space", "n/a"]
    for key in odd:
        put(client, key, key.encode())
    order = sorted(odd, key=lambda key: key.encode())
    for size in (1, 2, 1000):
        assert keys(client, Prefix="n/", PaginationConfig={"PageSize": size}) == order, size
        assert keys(client, "list_objects", Prefix="n/",
                    PaginationConfig={"PageSize": size}) == order, size
    for key in odd:
        assert text(client, key) == key.encode(), key
    after = client.list_objects_v2(Bucket=BUCKET, Prefix="n/", StartAfter="n/a/b")
    assert [entry["Key"] for entry in after["Contents"]] == order[order.index("n/a/b") + 1:]
    for size in (1, 3, 1000):
        pages = client.get_paginator("list_objects_v2").paginate(
            Bucket=BUCKET, Prefix="n/", Delimiter="/", PaginationConfig={"PageSize": size})
        found, folders = [], []
        for page in pages:
            found += [entry["Key"] for entry in page.get("Contents", [])]
            folders += [entry["Prefix"] for entry in page.get("CommonPrefixes", [])]
        assert found == [key for key in order if "/" not in key[2:]], found
        assert folders == ["n/../", "n//", "n/a/", "n/dir/"], folders
    assert refused(400, put, client=client, key="k" * 1025, body=b"") == "KeyTooLongError"
    answer = client.delete_objects(
        Bucket=BUCKET, Delete={"Objects": [{"Key": key} for key in odd if key != "n/\x01"]})
    assert "Errors" not in answer, answer
    assert keys(client, Prefix="n/") == ["n/\x01"]


def check_sdk_ranges(world):
    client = sdk(world)
    content = noise(100_000, 6)
    put(client, "ranges/a", content)
    assert text(client, "ranges/a", Range="bytes=10-19") == content[10:20]
    assert text(client, "ranges/a", Range="bytes=-10") == content[-10:]
    assert text(client, "ranges/a", Range="bytes=99990-200000") == content[99990:]
    for key, start in (("ranges/a", 100_000), ("ranges/empty", 0)):
        put(client, "ranges/empty", b"")
        assert refused(416, client.get_object, Bucket=BUCKET, Key=key,
                       Range=f"bytes={start}-") == "InvalidRange"


def check_sdk_parts(world):
    client = sdk(world)
    parts = [noise(5 << 20, 7), noise(5 << 20, 8), b"the end"]
    begun = client.create_multipart_upload(
        Bucket=BUCKET, Key="parts/a", ContentType="text/plain", Metadata={"x": "1"})
    upload = {"Bucket": BUCKET, "Key": "parts/a", "UploadId": begun["UploadId"]}
    named = []
    for number, part in enumerate(parts, 1):
        answer = client.upload_part(**upload, PartNumber=number, Body=part)
        named.append({"PartNumber": number, "ETag": answer["ETag"]})
    listed = [
        part for page in client.get_paginator("list_parts").paginate(
            **upload, PaginationConfig={"PageSize": 2}) for part in page["Parts"]]
    assert [part["Size"] for part in listed] == [len(part) for part in parts]
    open_ones = client.list_multipart_uploads(Bucket=BUCKET, Prefix="parts/")["Uploads"]
    assert [entry["UploadId"] for entry in open_ones] == [begun["UploadId"]]
    assert "/parts/a" not in world.tree()
    for wrong, code in (
            (named[::-1], "InvalidPartOrder"),
            ([named[0], {**named[1], "PartNumber": 9}], "InvalidPart")):
        assert refused(400, client.complete_multipart_upload, **upload,
                       MultipartUpload={"Parts": wrong}) == code
    put(client, "parts/a", b"taken")
    end = {**upload, "MultipartUpload": {"Parts": named}}
    assert refused(412, client.complete_multipart_upload, **end,
                   IfNoneMatch="*") == "PreconditionFailed"
    done = client.complete_multipart_upload(**end)
    digests = b"".join(hashlib.md5(part).digest() for part in parts)
    assert done["ETag"] == f'"{hashlib.md5(digests).hexdigest()}-3"'
    assert client.complete_multipart_upload(**end)["ETag"] == done["ETag"]
    answer = client.get_object(Bucket=BUCKET, Key="parts/a")
    assert answer["Body"].read() == b"".join(parts) and answer["Metadata"] == {"x": "1"}
    small = client.create_multipart_upload(Bucket=BUCKET, Key="parts/small")["UploadId"]
    upload = {"Bucket": BUCKET, "Key": "parts/small", "UploadId": small}
    tags = [client.upload_part(**upload, PartNumber=number, Body=b"small")["ETag"]
            for number in (1, 2)]
    assert refused(400, client.complete_multipart_upload, **upload, MultipartUpload={"Parts": [
        {"PartNumber": number, "ETag": tag} for number, tag in enumerate(tags, 1)]}
                   ) == "EntityTooSmall"
    client.abort_multipart_upload(**upload)
    assert refused(404, client.list_parts, **upload) == "NoSuchUpload"
    # The SDK's own transfers, in parts where they are large.
    local = world.folder / "transfer"
    local.write_bytes(noise(20 << 20, 9))
    client.upload_file(str(local), BUCKET, "parts/transfer")
    client.copy({"Bucket": BUCKET, "Key": "parts/transfer"}, BUCKET, "parts/copy")
    client.download_file(BUCKET, "parts/copy", str(world.folder / "back"))
    assert (world.folder / "back").read_bytes() == local.read_bytes()


def check_sdk_versions(world):
    client = sdk(world)
    first = put(client, "versions/a", b"first")["VersionId"]
    second = put(client, "versions/a", b"second")["VersionId"]
    put(client, "versions/a/b", b"beside")
    assert text(client, "versions/a", VersionId=first) == b"first"
    mark = client.delete_object(Bucket=BUCKET, Key="versions/a")
    assert mark["DeleteMarker"] is True
    try:
        client.get_object(Bucket=BUCKET, Key="versions/a")
    except client.exceptions.NoSuchKey as error:
        assert error.response["ResponseMetadata"]["HTTPHeaders"]["x-amz-delete-marker"] == "true"
    assert refused(405, client.get_object, Bucket=BUCKET, Key="versions/a",
                   VersionId=mark["VersionId"]) == "MethodNotAllowed"
    for size in (1, 2, 1000):
        versions, marks = [], []
        pages = client.get_paginator("list_object_versions").paginate(
            Bucket=BUCKET, Prefix="versions/", PaginationConfig={"PageSize": size})
        for page in pages:
            versions += [(entry["Key"], entry["VersionId"], entry["IsLatest"])
                         for entry in page.get("Versions", [])]
            marks += [entry["VersionId"] for entry in page.get("DeleteMarkers", [])]
        assert marks == [mark["VersionId"]]
        assert versions[:2] == [
            ("versions/a", second, False), ("versions/a", first, False)], versions
        assert versions[2][0] == "versions/a/b" and versions[2][2] and len(versions) == 3
    # Without its mark it is back; written anew after a deletion it has both lives.
    client.delete_object(Bucket=BUCKET, Key="versions/a", VersionId=mark["VersionId"])
    assert text(client, "versions/a") == b"second"
    client.delete_object(Bucket=BUCKET, Key="versions/a", VersionId=second)
    assert text(client, "versions/a") == b"first"
    client.delete_object(Bucket=BUCKET, Key="versions/a")
    put(client, "versions/a", b"third")
    found = client.list_object_versions(Bucket=BUCKET, Prefix="versions/a")
    assert len(found["Versions"]) == 3 and len(found["DeleteMarkers"]) == 1, found
    client.copy_object(Bucket=BUCKET, Key="versions/a", CopySource={
        "Bucket": BUCKET, "Key": "versions/a", "VersionId": first})
    assert text(client, "versions/a") == b"first"
    world.control("PUT", "habits", {"versions": False})
    put(client, "plain", b"first")
    put(client, "plain", b"second")
    client.delete_object(Bucket=BUCKET, Key="plain")
    assert refused(404, client.head_object, Bucket=BUCKET, Key="plain") == "404"
    assert "Versions" not in client.list_object_versions(Bucket=BUCKET, Prefix="plain")
    world.control("PUT", "habits", {})


def check_sdk_links(world):
    client = sdk(world, signature_version="s3v4")
    put(client, "links/Grüße.txt", b"for all")
    arguments = {"Bucket": BUCKET, "Key": "links/Grüße.txt"}
    link = client.generate_presigned_url("get_object", arguments, ExpiresIn=60)
    with urllib.request.urlopen(link, timeout=60) as answer:
        assert answer.read() == b"for all"
    named = client.generate_presigned_url("get_object", {
        **arguments, "ResponseContentDisposition": "attachment"}, ExpiresIn=60)
    with urllib.request.urlopen(named, timeout=60) as answer:
        assert answer.headers["Content-Disposition"] == "attachment"
    upload = client.generate_presigned_url("put_object", {
        "Bucket": BUCKET, "Key": "links/new"}, ExpiresIn=60)
    request = urllib.request.Request(upload, data=b"new", method="PUT")
    urllib.request.urlopen(request, timeout=60).close()
    assert text(client, "links/new") == b"new"
    world.control("PUT", "habits", {"clock_offset": 3600})
    other = link.replace("links/", "other/")
    for wrong in (link, link.replace("X-Amz-Expires=60", "X-Amz-Expires=6000"), other):
        try:
            urllib.request.urlopen(wrong, timeout=60)
            raise AssertionError("the link was taken")
        except urllib.error.HTTPError as error:
            assert error.code == 403, error.code
    world.control("PUT", "habits", {})


def check_sdk_waits_out_trouble(world):
    client = sdk(world)
    for fault in ({"status": 503}, {"status": 500}):
        world.fault("GetObject", "status", **fault)
        assert text(client, "Welcome.txt").startswith(b"Welcome")
    world.fault("PutObject", "no_answer")
    put(client, "patience/a", b"text")
    assert text(client, "patience/a") == b"text"
    # An error behind a 200 is told apart from success, and tried again.
    world.control("PUT", "habits", {"errors_in_success": 1})
    client.copy_object(Bucket=BUCKET, Key="patience/b", CopySource=f"{BUCKET}/patience/a")
    assert world.calls("CopyObject") == 2
    world.control("PUT", "habits", {"empty_pages": 1})
    assert keys(client, Prefix="patience/") == ["patience/a", "patience/b"]
    world.control("PUT", "habits", {})
