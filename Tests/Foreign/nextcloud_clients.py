"""The simulated Nextcloud under rclone, which speaks the dialect with tests of its own."""

import hashlib
import os

from clouds import *  # noqa: F403
from clouds import rclone

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
