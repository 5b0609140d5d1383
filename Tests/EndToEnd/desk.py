"""A mount that does nothing by itself, so that what an act costs is counted exactly."""

from collections import Counter

# What a mount asks by itself, whatever the user does: sign-in, news, quota.
BACKGROUND = {
    "dropbox": {
        "oauth2/token", "users/get_current_account", "users/get_space_usage", "files/list_folder",
        "files/list_folder/continue", "files/list_folder/longpoll"},
    "drive": {
        "oauth.token", "about.get", "files.list", "changes.list", "changes.getStartPageToken"},
    "onedrive": {"oauth/token", "me", "drive", "delta/get"},
    "box": {
        "oauth/token", "users/me/get", "events/get", "events/options", "poll", "folders/items/get"},
}


class Desk:
    """A machine that sends what changed when `sync` is called and never else, and that asks for no
    news."""

    def __init__(self, clouds, machine):
        self.clouds = clouds
        self.machine = machine
        # What a module's `prepare` gave, by cloud.
        self.prepared = {}
        machine.write_settings('poll_interval = "1h"\nsettle = "1h"\n' + clouds.settings())
        clouds.fault("dropbox", route="files/list_folder/longpoll", fault="stall", seconds=3600,
                     times=None)

    def drive(self, cloud):
        return self.machine.mount_point / cloud

    def cost(self, cloud):
        """Sends everything; the calls that this took, by route, beside the background's."""
        self.clouds.forget_calls(cloud)
        # A thousand files take their time on a busy machine.
        self.machine.oort("sync", "--timeout", "600s", timeout=620)
        return Counter({
            route: count for route, count in self.clouds.counts(cloud).items()
            if route not in BACKGROUND[cloud]})


def sum_of(*costs):
    """Several costs, each given as routes with their counts."""
    total = Counter()
    for cost in costs:
        total.update(cost)
    return total


def times(count, cost):
    return Counter({route: each * count for route, each in cost.items()})


# What a single act costs at each service, and why it is more than one call.

# A new small file.
CREATE = {
    "dropbox": {"files/upload": 1},
    "drive": {"uploads": 1},
    # Only a session takes the file's time; a time set later would be a second version.
    "onedrive": {"createUploadSession/post": 1, "upload/put": 1},
    "box": {"upload/new": 1},
}
# A new content for a file.
REPLACE = {
    "dropbox": {"files/upload": 1},
    # v3 has no precondition; v2 has, by a tag that has to be asked for.
    "drive": {"v2.files.get": 1, "v2.uploads": 1},
    "onedrive": {"createUploadSession/post": 1, "upload/put": 1},
    # The condition is a tag that changes with the name and the place, too: it is asked for.
    "box": {"files/get": 1, "upload/version": 1},
}
# A copy at the service.
COPY = {
    "dropbox": {"files/copy_v2": 1},
    "drive": {"files.copy": 1},
    # The copy is asynchronous (the simulator's is done at the second look), and its time is set.
    "onedrive": {"copy/post": 1, "copy/monitor": 2, "item/patch": 1},
    # Whether a copy has its original's time Box does not say: the time is set.
    "box": {"files/copy/post": 1, "files/put": 1},
}
# A new file whose content the account has by its hash: elsewhere unlike contents may have one, or be made so.
KNOWN = {**CREATE, "dropbox": COPY["dropbox"]}
# Moving or renaming anything, whatever it holds; at Box a folder.
MOVE = {
    "dropbox": {"files/move_v2": 1},
    "drive": {"files.update": 1},
    "onedrive": {"item/patch": 1},
    "box": {"folders/put": 1},
}
# Deleting a file, which must still be the one that is known.
DELETE_FILE = {
    "dropbox": {"files/delete_v2": 1},
    # No precondition at all for the trash: compared just before.
    "drive": {"files.get": 1, "files.update": 1},
    "onedrive": {"item/delete": 1},
    "box": {"files/get": 1, "files/delete": 1},
}
# Deleting a folder with all that it holds.
DELETE_FOLDER = {
    "dropbox": {"files/delete_v2": 1},
    "drive": {"files.update": 1},
    "onedrive": {"item/delete": 1},
    "box": {"folders/tree/delete": 1},
}
# Deleting a folder in which nothing lies, as far as is known here.
DELETE_EMPTY = {
    "dropbox": {"files/delete_v2": 1},
    # Beside a listing of one item, which counts as the background's.
    "drive": {"files.update": 1},
    "onedrive": {"item/get": 1, "item/delete": 1},
    "box": {"folders/delete": 1},
}
CREATE_FOLDER = {
    "dropbox": {"files/create_folder_v2": 1},
    "drive": {"files.create": 1},
    "onedrive": {"children/post": 1},
    "box": {"folders/post": 1},
}
# A modified time alone.
SET_TIME = {
    "dropbox": {},  # goes with the next content only
    "drive": {"files.update": 1},
    "onedrive": {"item/patch": 1},
    "box": {"files/put": 1},
}


def create_files(cloud, count):
    """Several new small files at once."""
    if cloud == "dropbox" and count > 2:
        # The entries of one append lie in a header field: 64 at most.
        return {
            "files/upload_session/start_batch": 1,
            "files/upload_session/append_batch": -(-count // 64),
            "files/upload_session/finish_batch_v2": 1}
    if cloud == "onedrive" and count > 1:
        return {"batch": -(-count // 20), "upload/put": count}
    return times(count, CREATE[cloud])


def delete_files(cloud, count):
    """Several deleted files at once."""
    if cloud == "dropbox" and count > 2:
        # The simulator's jobs are done at the second look when they are large, else at the first.
        return {"files/delete_batch": 1, "files/delete_batch/check": 2 if count > 100 else 1}
    if cloud == "drive" and count > 1:
        # Compared just before, a hundred in a call, then deleted.
        return {"batch": 2 * -(-count // 100)}
    if cloud == "onedrive" and count > 1:
        return {"batch": -(-count // 20)}
    return times(count, DELETE_FILE[cloud])


def send_files(cloud, new, replaced):
    """New files and new contents of others at once."""
    if cloud == "drive":
        return sum_of(times(new, CREATE[cloud]), times(replaced, REPLACE[cloud]))
    return create_files(cloud, new + replaced)
