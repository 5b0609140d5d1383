"""The simulated OpenCloud under rclone, which uploads by TUS there, and webdav4."""

import hashlib
import os

from clouds import *  # noqa: F403
from clouds import rclone

SIMULATOR = "opencloud"
HOST = "opencloud.example.org"
SPACE = "8f06d4a1-1111-4c2a-9d5e-000000000001$0c5d6b5e-2222-4b7f-8a31-000000000002"
REMOTE = {
    "vendor": "infinitescale", "user": "ada", "url": f"https://{HOST}/dav/spaces/{SPACE}"}


def check_rclone_large(world):
    remote = rclone(world)
    content = os.urandom(23 << 20)
    remote.local("large/large.bin", content)
    remote("copy", remote.place / "large", "remote:large")
    assert world.calls("POST spaces") == 1
    assert world.calls("PATCH data") == 3, world.calls("PATCH data")
    item = world.tree("sha256")["/large/large.bin"]
    assert item["hash"] == hashlib.sha256(content).hexdigest()
    assert remote("cat", "--offset", "7000000", "--count", "100", "remote:large/large.bin",
                  text=False) == content[7000000:7000100]
