"""Accounts of any kind, at a simulated service or at a server, so that one test is for all of them."""

from xml.etree import ElementTree

from servers import Server

SIMULATED = ["dropbox", "drive", "onedrive", "box", "nextcloud"]


class Place:
    """One account: how a machine signs in, and what lies there, whatever Oort says of it."""

    def __init__(self, kind, folder, clouds):
        self.kind = kind
        self.clouds = clouds
        # The folder in the mount.
        self.name = "s3" if kind == "seaweedfs" else kind
        self.server = None
        if kind not in SIMULATED:
            self.server = Server(kind, folder)
            if kind == "seaweedfs":
                self.server.make_bucket()

    def login(self, machine):
        return self.server.login(machine) if self.server else machine.login(self.kind)

    def ready(self, machine):
        return machine.ready(self.name)

    @property
    def keeps_times(self):
        """Whether files have the modified time that was meant, and not one of the server's own."""
        return self.kind != "webdav"

    def tree(self):
        """Bytes by path, None for folders; a link is its target in a file of the name that rclone gives it."""
        if self.server is None:
            return {path[1:]: None if item["kind"] == "folder" else self.clouds.content(self.kind, path)
                    for path, item in self.clouds.tree(self.kind, "none").items()}
        if self.kind == "seaweedfs":
            return {path.rstrip("/"): None if path.endswith("/") else self.server.ask("GET", path)
                    for path in self._keys()}
        found = self.server.tree()
        for path in self.server.files.rglob("*"):
            if path.is_symlink() and ".oort-" not in str(path):
                name = str(path.relative_to(self.server.files))
                found.pop(name, None)
                found[name + ".rclonelink"] = str(path.readlink()).encode()
        return found

    def _keys(self):
        """The keys in the bucket; SeaweedFS has folders in its lists, too."""
        found = ElementTree.fromstring(self.server.ask("GET", "?list-type=2"))
        keys = [key.text for key in found.iter() if key.tag.endswith("}Key")]
        assert len(keys) < 1000, "there may be more"
        return keys

    def stop(self):
        if self.server:
            self.server.stop()
