"""rclone's onedrive backend against the simulator, by the real host names.

Usage: rclone_client.py SIMULATOR-URL
"""

import hashlib
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request

from world import World, check, tools, wait_for

HOSTS = [
    "graph.microsoft.com", "my.microsoftpersonalcontent.com", "login.microsoftonline.com",
    "westeurope1-mediap.svc.ms",
]


class Rclone:
    def __init__(self, world):
        self.world = world
        tokens = world.tokens()
        self.config = world.folder / "rclone.conf"
        # Expired, so that the first call refreshes it.
        token = {
            "access_token": "old", "token_type": "Bearer",
            "refresh_token": tokens["refresh_token"], "expiry": "2020-01-01T00:00:00Z",
        }
        self.config.write_text(
            "[od]\ntype = onedrive\ndrive_id = 0f0978a1b2c3d4e5\ndrive_type = personal\n"
            f"token = {json.dumps(token)}\n")

    def command(self, *arguments):
        return [
            shutil.which("rclone", path=tools()), "--config", str(self.config),
            "--low-level-retries", "5", "--retries", "2", *map(str, arguments),
        ]

    def __call__(self, *arguments, fails=False):
        done = subprocess.run(
            self.command(*arguments), env=self.world.environment, capture_output=True, timeout=120)
        if (done.returncode != 0) != fails:
            raise AssertionError(f"rclone {arguments}: {done.stderr.decode()[-2000:]}")
        return done.stdout


def main(simulator, folder):
    world = World(simulator, HOSTS, folder)
    try:
        run(world, pathlib.Path(folder))
    finally:
        world.stop()


def run(world, folder):
    rclone = Rclone(world)

    listed = set(rclone("lsf", "-R", "--files-only", "od:").decode().splitlines())
    files = {path[1:] for path, entry in world.tree().items() if entry["kind"] == "file"}
    listed = {path for path in listed if not path.startswith("Choir")}
    check(listed == files, f"all {len(files)} files are listed, after a token refresh")
    check(world.counts()["oauth/token"]["calls"] >= 1, "the token was refreshed")

    text = rclone("cat", "od:Names/Привет.txt").decode()
    check(text.startswith("The name of this file is"), "a file with another script's name is read")
    part = rclone("cat", "--offset", "4", "--count", "4", "od:Names/Привет.txt")
    check(part == b"name", "a range is read")

    local = folder / "local"
    (local / "deep" / "er").mkdir(parents=True)
    (local / "empty.txt").write_bytes(b"")
    (local / "small #1 100%+é.txt").write_bytes(b"hello")
    (local / "deep" / "er" / "big.bin").write_bytes(bytes(i * 7 % 251 for i in range(25_000_000)))
    rclone("copy", local, "od:up")
    rclone("check", local, "od:up")
    check(True, "copied and compared by QuickXorHash, a large file among them")
    kept = world.tree()["/up/deep/er/big.bin"]
    wanted = hashlib.md5((local / "deep" / "er" / "big.bin").read_bytes()).hexdigest()
    check(kept["hash"] == wanted, "the large file is what was sent")
    modified = int((local / "deep" / "er" / "big.bin").stat().st_mtime)
    check(kept["modified"][:10] != "" and modified > 0, "it has a time")
    rclone("check", "--download", local, "od:up")
    check(True, "downloaded and compared")

    (local / "small #1 100%+é.txt").write_bytes(b"hello again")
    rclone("copy", local, "od:up")
    check(world.tree()["/up/small #1 100%+é.txt"]["size"] == 11, "a file is replaced")

    id_before = world.tree()["/up/deep"]["id"]
    rclone("moveto", "od:up/deep", "od:moved")
    check(world.tree()["/moved"]["id"] == id_before, "a folder is moved and keeps its id")
    rclone("moveto", "od:up/empty.txt", "od:moved/renamed.txt")
    check("/moved/renamed.txt" in world.tree(), "a file is moved")
    rclone("copyto", "od:moved/er/big.bin", "od:copy.bin")
    check(world.tree()["/copy.bin"]["hash"] == wanted, "a file is copied at the service")
    rclone("deletefile", "od:copy.bin")
    rclone("mkdir", "od:some/where")
    rclone("rmdir", "od:some/where")
    rclone("purge", "od:moved")
    tree = world.tree()
    check(
        "/copy.bin" not in tree and "/moved" not in tree and "/some/where" not in tree
        and "/some" in tree, "deletes of files and folders")
    rclone("rmdir", "od:Archive", fails=True)
    check(True, "a folder that is not empty is not removed")

    about = json.loads(rclone("about", "--json", "od:"))
    check(about["total"] == 1_104_880_336_896 and about["used"] > 0, "quota")
    check(rclone("link", "od:Welcome.txt").startswith(b"https://"), "a link")

    world.control("POST", "tokens/expire")
    # rclone refreshes by the time that it was told, not by a 401.
    text = re.sub(r'"expiry":"[^"]*"', '"expiry":"2020-01-01T00:00:00Z"', rclone.config.read_text())
    rclone.config.write_text(text)
    check(b"Welcome.txt" in rclone("lsf", "od:"), "an expired token is refreshed")
    for status in (429, 503):
        world.fault("children/get", fault="status", status=status, retry_after=1)
        check(b"Welcome.txt" in rclone("lsf", "od:"), f"a {status} is waited out")
    world.fault("upload/put", fault="status", status=503, retry_after=1)
    (local / "after.bin").write_bytes(bytes(12_000_000))
    rclone("copy", local / "after.bin", "od:up")
    check(world.tree()["/up/after.bin"]["size"] == 12_000_000, "an upload survives a 503")

    polling(world, rclone)


def polling(world, rclone):
    server = subprocess.Popen(
        rclone.command(
            "serve", "http", "od:", "--addr", "127.0.0.1:0", "--poll-interval", "1s",
            "--dir-cache-time", "1h", "-v"),
        env=world.environment, stderr=subprocess.PIPE, text=True)
    try:
        address = None
        while address is None:
            line = server.stderr.readline()
            if not line:
                raise AssertionError("rclone serve ended")
            if found := re.search(r"http://127\.0\.0\.1:\d+/", line):
                address = found.group()

        def shows(name):
            with urllib.request.urlopen(address + "Projects/") as answer:
                return name in answer.read().decode()

        check(not shows("news.txt"), "a folder is cached")
        # The first question only learns where the feed is now.
        wait_for(lambda: world.counts().get("delta/get", {}).get("calls", 0) >= 1)
        world.edit(op="write", path="/Projects/news.txt", text="new")
        wait_for(lambda: shows("news.txt"))
        check(True, "a change of somebody else's comes by the change feed")
    finally:
        server.terminate()
        server.stderr.close()
        server.wait()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="oort-foreign-") as place:
        main(sys.argv[1], place)
