"""The simulated ownCloud 10 under rclone with vendor=owncloud."""

from clouds import *  # noqa: F403

SIMULATOR = "owncloud"
HOST = "cloud.example.org"
REMOTE = {
    "vendor": "owncloud", "user": "ada@example.com",
    "url": f"https://{HOST}/remote.php/dav/files/ada"}
