"""How programs save: whatever they do to the file, the service sees one more revision of it.

Each dance is done by its system calls, in two variants: at once, and with everything sent to the
service in the middle, at the point where the temporary file (or the new one) is complete. What it
costs is counted exactly.
"""

import os

import pytest

from desk import (
    COPY, CREATE, CREATE_FOLDER, DELETE_FILE, DELETE_FOLDER, KNOWN, MOVE, REPLACE, delete_files,
    send_files, sum_of)
from machine import eventually, exchange_names
from services import Service



def put(path, content, sync=True):
    """Creates a file that must not be there, as programs do with O_EXCL."""
    file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    os.write(file, content.encode())
    if sync:
        os.fsync(file)
    os.close(file)


def rewrite(path, content):
    """Truncates a file and writes it anew."""
    file = os.open(path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o644)
    os.write(file, content.encode())
    os.fsync(file)
    os.close(file)


# A dance is called with the file's path and a function to be called in its middle.

def replace(file, middle, old, new):
    """KeePassXC and Kate (QSaveFile), sed -i: a temporary file beside it, renamed over it."""
    temporary = file.with_name(file.name + ".pXkQvz")
    put(temporary, new)
    os.chmod(temporary, 0o644)
    middle()
    os.replace(temporary, file)


def rsync(file, middle, old, new):
    """rsync: a hidden temporary file that gets mode and time before it is renamed."""
    temporary = file.with_name(f".{file.name}.Ab12Cd")
    put(temporary, new, sync=False)
    os.utime(temporary, (1_600_000_000, 1_600_000_000))
    os.chmod(temporary, 0o644)
    middle()
    os.replace(temporary, file)


def other_folder(file, middle, old, new):
    """A temporary file in another folder of the account."""
    folder = file.with_name("scratch")
    folder.mkdir()
    put(folder / "save.tmp", new)
    middle()
    os.replace(folder / "save.tmp", file)
    folder.rmdir()


def office(file, middle, old, new):
    """LibreOffice: a lock file, a temporary file in the same folder, renamed over the document."""
    lock = file.with_name(f".~lock.{file.name}#")
    put(lock, ",me,here,21.11.2026 12:00,file:///home/me/.config/libreoffice/4;", sync=False)
    temporary = file.with_name("lu28491a0bcd.tmp")
    put(temporary, new)
    middle()
    os.replace(temporary, file)
    lock.unlink()


def office_in_place(file, middle, old, new):
    """LibreOffice over a share: the old bytes beside it until the document is rewritten."""
    lock = file.with_name(f".~lock.{file.name}#")
    put(lock, ",me,here,21.11.2026 12:00,;", sync=False)
    backup = file.with_name("lu28491a0bce.tmp")
    put(backup, old)
    rewrite(file, new)
    middle()
    backup.unlink()
    lock.unlink()


def rename_away(file, middle, old, new):
    """vim (backupcopy=no, writebackup) and Emacs: the original becomes the backup, a new file is
    written, the backup goes."""
    backup = file.with_name(file.name + "~")
    os.rename(file, backup)
    put(file, new)
    middle()
    backup.unlink()


def copy_away(file, middle, old, new):
    """vim (backupcopy=yes, writebackup): a copy until the file is rewritten."""
    backup = file.with_name(file.name + "~")
    put(backup, old)
    rewrite(file, new)
    middle()
    backup.unlink()


def remove_first(file, middle, old, new):
    """KeePassXC (temporary file elsewhere), perl -i: the original is removed, then written."""
    file.unlink()
    put(file, new)
    middle()


def microsoft(file, middle, old, new):
    """Word and Excel over Samba: both get other names, the old one goes last."""
    temporary, aside = file.with_name("3F2A1B00.tmp"), file.with_name("5C7D9E10.tmp")
    put(temporary, new)
    middle()
    os.rename(file, aside)
    os.rename(temporary, file)
    aside.unlink()


def exchange(file, middle, old, new):
    """renameat2(RENAME_EXCHANGE) with a temporary file, which is removed then."""
    temporary = file.with_name(".new.tmp")
    put(temporary, new)
    middle()
    exchange_names(temporary, file)
    temporary.unlink()


def in_place(file, middle, old, new):
    """nano, KeePassXC (direct write), rsync --inplace: the file itself is rewritten."""
    middle()
    rewrite(file, new)


def keep_by_rename(file, middle, old, new):
    """Emacs and vim with a backup that stays: renamed, and a new file written."""
    os.rename(file, file.with_name(file.name + "~"))
    put(file, new)
    middle()


def keep_by_replace(file, middle, old, new):
    """gedit (GLib) and sed -i~: a temporary file; the original becomes the backup, the temporary
    file takes its name."""
    temporary = file.with_name(".goutputstream-QW3RT5")
    put(temporary, new)
    middle()
    with pytest.raises(PermissionError):
        # What these try first; no service has two names for one file.
        os.link(file, file.with_name(file.name + "~"))
    os.rename(file, file.with_name(file.name + "~"))
    os.rename(temporary, file)


def keep_by_copy(file, middle, old, new):
    """KeePassXC with a backup before saving, vim (backupcopy=yes): a copy stays beside it."""
    put(file.with_name(file.name + "~"), old)
    middle()
    rewrite(file, new)


DANCES = [
    replace, rsync, other_folder, office, office_in_place, rename_away, copy_away, remove_first,
    microsoft, exchange, in_place, keep_by_rename, keep_by_replace, keep_by_copy]
VARIANTS = ["at once", "sent in the middle"]


# What is to be sent in the middle and at the end, when all is sent at once and when it is sent in
# the middle, too; by dance.
def sends(new, replaced):
    return lambda cloud: send_files(cloud, new, replaced)


def deletes(count):
    return lambda cloud: delete_files(cloud, count)


AFTER_A_SENT_TEMPORARY = ([REPLACE], [CREATE], [REPLACE, DELETE_FILE])
COSTS = {
    replace: AFTER_A_SENT_TEMPORARY,
    rsync: AFTER_A_SENT_TEMPORARY,
    microsoft: AFTER_A_SENT_TEMPORARY,
    exchange: AFTER_A_SENT_TEMPORARY,
    other_folder: ([REPLACE], [CREATE_FOLDER, CREATE], [REPLACE, DELETE_FOLDER]),
    # The temporary file goes by itself: not before the document has its bytes at the service.
    office: ([REPLACE], [sends(2, 0)], [REPLACE, DELETE_FILE, DELETE_FILE]),
    office_in_place: ([REPLACE], [sends(2, 1)], [deletes(2)]),
    rename_away: ([REPLACE], [COPY, REPLACE], [DELETE_FILE]),
    copy_away: ([REPLACE], [sends(1, 1)], [DELETE_FILE]),
    remove_first: ([REPLACE], [REPLACE], []),
    in_place: ([REPLACE], [], [REPLACE]),
    keep_by_rename: ([COPY, REPLACE], [COPY, REPLACE], []),
    keep_by_replace: ([COPY, REPLACE], [CREATE], [COPY, REPLACE, DELETE_FILE]),
    keep_by_copy: ([sends(1, 1)], [KNOWN], [REPLACE]),
}


def cost(acts, cloud):
    return sum_of(*(act(cloud) if callable(act) else act[cloud] for act in acts))


# Programs themselves, on a text in which they replace one word; whether a backup stays; the cost.
# (vim makes no backups below /tmp unless `backupskip` is empty.)
EDIT = "s/second/third/"
VIM = ["vim", "-u", "NONE", "-es", "-c"]
PROGRAMS = {
    "vim": (VIM + ["set bsk= writebackup", "-c", f"%{EDIT}", "-c", "wq", "FILE"], False, [REPLACE]),
    "vim backupcopy=no": (
        VIM + ["set bsk= writebackup backupcopy=no", "-c", f"%{EDIT}", "-c", "wq", "FILE"],
        False, [REPLACE]),
    "vim backupcopy=yes": (
        VIM + ["set bsk= writebackup backupcopy=yes", "-c", f"%{EDIT}", "-c", "wq", "FILE"],
        False, [REPLACE]),
    "vim backup backupcopy=no": (
        VIM + ["set bsk= backup backupcopy=no", "-c", f"%{EDIT}", "-c", "wq", "FILE"],
        True, [COPY, REPLACE]),
    "vim backup backupcopy=yes": (
        VIM + ["set bsk= backup backupcopy=yes", "-c", f"%{EDIT}", "-c", "wq", "FILE"],
        True, [sends(1, 1)]),
    "sed -i": (["sed", "-i", EDIT, "FILE"], False, [REPLACE]),
    "sed -i~": (["sed", "-i~", EDIT, "FILE"], True, [COPY, REPLACE]),
    "perl -i": (["perl", "-i", "-pe", EDIT, "FILE"], False, [REPLACE]),
    "perl -i~": (["perl", "-i~", "-pe", EDIT, "FILE"], True, [COPY, REPLACE]),
    "rsync": (["rsync", "-a", "NEW", "FILE"], False, [REPLACE]),
    "rsync --inplace": (["rsync", "-a", "--inplace", "NEW", "FILE"], False, [REPLACE]),
    "rsync --backup": (["rsync", "-a", "--backup", "NEW", "FILE"], True, [COPY, REPLACE]),
    "cp": (["cp", "NEW", "FILE"], False, [REPLACE]),
    "mv": (["mv", "NEW", "FILE"], False, [REPLACE]),
}


def folder_of(name):
    return "/" + "".join(letter if letter.isalnum() else "_" for letter in name)


def contents(path):
    """What was there first, what is there, and what a program makes of it."""
    return [f"{number} version of {path}\n" for number in ("first", "second", "third")]


FOLDERS = [f"/{dance.__name__} {variant}" for dance in DANCES for variant in VARIANTS]
FOLDERS += [folder_of(program) for program in PROGRAMS]
AFTERWARDS = ["one", "other"]
FOLDERS += [f"/{folder}" for folder in AFTERWARDS]


def prepare(clouds, cloud):
    """A document in a folder of its own for each; each has a history, and was given away by a
    link."""
    paths = [f"{folder}/note.txt" for folder in FOLDERS]
    clouds.edits(cloud, [
        {"op": "write", "path": path, "text": content}
        for path in paths for content in contents(path)[:2]])
    clouds.edits(cloud, [{"op": "mkdir", "path": "/ids"}])
    service = Service.on(clouds, cloud)
    tree = clouds.tree(cloud)
    return {path: (tree[path], service.share(tree[path])) for path in paths}


@pytest.fixture(autouse=True)
def ids(desk, cloud):
    """Drive's ids for new items are asked for a thousand at a time: not by the act that counts."""
    first = desk.drive(cloud) / "ids" / "first"
    if cloud == "drive" and not first.exists():
        first.mkdir()
        desk.cost(cloud)


def is_one_revision_more(desk, cloud, path, keeps_backup):
    """The same item with its link and its history, one revision more, and nothing left over."""
    before, link = desk.prepared[cloud][path]
    oldest, old, new = contents(path)
    tree = desk.clouds.tree(cloud)
    item = tree[path]
    assert desk.clouds.content(cloud, path).decode() == new
    assert item["id"] == before["id"], "the item is the same one"
    assert item["revisions"] == before["revisions"] + 1
    service = Service.on(desk.clouds, cloud)
    assert service.links(item) == [link]
    assert [older.decode() for older in service.older(item)] == [oldest, old]
    folder = path.rsplit("/", 1)[0] + "/"
    left = {other for other in tree if other.startswith(folder)} - {path}
    assert left == ({path + "~"} if keeps_backup else set())
    if keeps_backup:
        assert desk.clouds.content(cloud, path + "~").decode() == old
        assert service.links(tree[path + "~"]) == []


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("dance", DANCES, ids=[dance.__name__ for dance in DANCES])
def test_a_dance(desk, cloud, dance, variant):
    path = f"/{dance.__name__} {variant}/note.txt"
    file = desk.drive(cloud) / path[1:]
    _, old, new = contents(path)
    at_once, in_the_middle, at_the_end = COSTS[dance]
    assert file.read_text() == old

    def middle():
        if variant == "sent in the middle":
            assert desk.cost(cloud) == cost(in_the_middle, cloud)

    dance(file, middle, old, new)
    assert desk.cost(cloud) == cost(at_once if variant == "at once" else at_the_end, cloud)
    is_one_revision_more(desk, cloud, path, dance.__name__.startswith("keep"))
    assert file.read_text() == new


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program(desk, cloud, program, folder):
    path = folder_of(program) + "/note.txt"
    file = desk.drive(cloud) / path[1:]
    arguments, keeps_backup, acts = PROGRAMS[program]
    local = folder / "new"
    local.write_text(contents(path)[2])
    names = {"FILE": file, "NEW": local}
    desk.machine.run(*[names.get(argument, argument) for argument in arguments])
    # What was read of the original, and is not needed since it was written over, is no cost of sending.
    eventually(lambda: desk.machine.account(cloud)["transfers"] == [], "nothing is read any more")
    desk.clouds.await_quiet(cloud)
    assert desk.cost(cloud) == cost(acts, cloud)
    is_one_revision_more(desk, cloud, path, keeps_backup)


def test_what_was_saved_so_is_no_temporary_file(desk, cloud):
    """A document that was just saved by replacing keeps its identity where it goes next."""
    file, other = (desk.drive(cloud) / folder / "note.txt" for folder in AFTERWARDS)
    item = desk.clouds.tree(cloud)[f"/{AFTERWARDS[0]}/note.txt"]
    replace(file, lambda: None, "", "saved by replacing")
    desk.cost(cloud)
    os.replace(file, other)
    assert desk.cost(cloud) == cost([DELETE_FILE, MOVE], cloud)
    assert desk.clouds.tree(cloud)[f"/{AFTERWARDS[1]}/note.txt"]["id"] == item["id"]
