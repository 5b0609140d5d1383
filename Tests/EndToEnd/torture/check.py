"""What must be true: of a mount and its reference, of a mount and its service, of every content."""

import collections
import datetime
import errno
import os
import re
import stat

from torture.authors import CONFLICT, PROBE
from torture.contents import EMPTY, LINK_ENDING, digest

CONFLICT_NAME = re.compile(
    r"(?P<stem>.*) \(conflicted copy \d{4}-\d\d-\d\d [^()/]+\)( \(\d+\))*(?P<ending>\.[^./]{0,15})?")
# Explicit times lie before this moment, the clock's after it.
FIRST_NOW = 1_750_000_000


class Discrepancy(AssertionError):
    """Something that must be true is not; `kind` is lost, doubled or unequal."""

    def __init__(self, kind, words):
        super().__init__(f"{kind}: {words}")
        self.kind = kind


def listing(root, without_stale=False):
    """Every path below a folder: (kind, digest of content or target, whole seconds of mtime).

    A file whose bytes nobody has any more can be left out; what another machine's sign-in tries is.
    """
    found = {}
    for folder, folders, files in os.walk(root, onerror=_raise):
        folders[:] = [name for name in folders if not PROBE.match(name)]
        for name in folders + files:
            path = os.path.join(folder, name)
            attributes = os.lstat(path)
            place = os.path.relpath(path, root)
            if stat.S_ISLNK(attributes.st_mode):
                found[place] = ("link", digest(os.fsencode(os.readlink(path))), None)
            elif stat.S_ISDIR(attributes.st_mode):
                found[place] = ("folder", None, None)
            else:
                try:
                    with open(path, "rb") as file:
                        data = file.read()
                except OSError as error:
                    if without_stale and error.errno == errno.ESTALE:
                        continue
                    raise
                if len(data) != attributes.st_size:
                    raise Discrepancy(
                        "unequal", f"{place} has {len(data)} bytes, stat says "
                        f"{attributes.st_size}")
                found[place] = ("file", digest(data), int(attributes.st_mtime))
    return found


def service_listing(items):
    """A service's items as every mount shows them, as a list of (path, kind, digest).

    Of items of one name the one that was made first has it, or the one whose own name comes first; the
    others have numbers (docs/sync.md).
    """
    items = {item["id"]: item for item in items}
    children = collections.defaultdict(list)
    for item in items.values():
        parent = item["parent"] if item["parent"] in items else None
        children[parent].append(item)
    found = []
    folders = [(None, "")]
    while folders:
        folder, path = folders.pop()
        for item, name in shown_names(children[folder]):
            place = os.path.join(path, name)
            what = "folder" if item["kind"] == "folder" else "link" if is_link(item) else "file"
            found.append((place, what, None if what == "folder" else item["hash"]))
            if what == "folder":
                folders.append((item["id"], place))
    return found


def is_link(item):
    return item["kind"] == "file" and item["parts"][-1].endswith(LINK_ENDING)


def shown_names(items):
    """The items of a folder, each with the name that it is shown under."""
    groups = collections.defaultdict(list)
    for item in items:
        name = item["parts"][-1]
        groups[name.removesuffix(LINK_ENDING) if is_link(item) else name].append(item)
    given = set()
    for name in sorted(groups, key=str.encode):
        number = 1
        for item in sorted(groups[name], key=rank):
            while (shown := numbered(name, number)) in given or number > 1 and shown in groups:
                number += 1
            given.add(shown)
            number += 1
            yield item, shown


def rank(item):
    """What items of one name are ordered by."""
    return item["created"], item["parts"][-1].encode(), item["id"].encode()


def numbered(name, number):
    """`name (2).ext`."""
    if number == 1:
        return name
    dot = name.rfind(".")
    stem = name[:dot] if dot > 0 and len(name[dot:].encode()) <= 16 else name
    return f"{stem} ({number}){name[len(stem):]}"


def same_trees(shown, wanted, words, times=True, late=0):
    """Whether a mount shows what the reference has; times only where both set them.

    A time may be up to `late` seconds later than the reference's.
    """
    differences = []
    for path in sorted(shown.keys() | wanted.keys()):
        here, there = shown.get(path), wanted.get(path)
        if here is None or there is None or here[:2] != there[:2]:
            differences.append(f"{path}: {brief(here)} in place of {brief(there)}")
        elif times and here[2] is not None and min(here[2], there[2]) < FIRST_NOW \
                and not 0 <= here[2] - there[2] <= late:
            differences.append(f"{path}: modified {here[2]} in place of {there[2]}")
    _report("unequal", words, differences)


def same_as_service(shown, items, words):
    """Whether a mount shows the service's items, each under its very name."""
    wanted = collections.Counter(items)
    here = collections.Counter((path, *entry[:2]) for path, entry in shown.items())
    differences = [f"the mount alone: {brief(item)}" for item in sorted((here - wanted), key=str)]
    differences += [f"the service alone: {brief(i)}" for i in sorted((wanted - here), key=str)]
    _report("unequal", words, differences)


def nothing_lost(kept, ledger):
    """Whether every claimed content is among those that are kept."""
    lost = ledger.claimed() - kept
    _report("lost", "contents that nobody has any more", [ledger.describe(c) for c in sorted(lost)])


def all_of(contents):
    """Each content that a service keeps: in any revision, even in the trash."""
    return {content for item in contents for content in item["hashes"]}


def nothing_doubled(contents, ledger, history=True):
    """Whether no content is a current file more often than it was made or copied.

    With `history` older revisions and the trash count, too: alone nothing is ever sent twice. Where
    others take part it may be: what was copied at the service while somebody changed the original,
    and goes to the trash; what is in a file's history and its author was never told so.
    """
    places = collections.defaultdict(list)
    for item in contents:
        hashes = item["hashes"]
        for number, content in enumerate(hashes):
            if history or number == len(hashes) - 1 and not item["trashed"]:
                trash = " in the trash" if item["trashed"] else ""
                places[content].append(
                    f"{item['path']} revision {number + 1} of {len(hashes)}{trash}")
    doubled = [
        f"{ledger.describe(content)} {len(found)} times, at most {ledger.allowed[content]}: {found}"
        for content, found in places.items()
        if content in ledger.allowed and len(found) > ledger.allowed[content] and content != EMPTY]
    _report("doubled", "contents at the service", doubled)


def names_once(kind):
    """Whether no folder of the service holds a name twice."""
    count = collections.Counter(item["path"] for item in kind.items())
    _report("doubled", "names at the service", [path for path, n in count.items() if n > 1])


def folders_once(items, renamed):
    """Whether machines that made a folder at one time ended with one: none of the service's folders
    holds two of a name that were made at most two minutes apart (docs/sync.md).

    Names that anything was given in another way than by mkdir of a machine may be there twice.
    """
    made = collections.defaultdict(list)
    for item in items:
        name = item["parts"][-1]
        if item["kind"] == "folder" and name not in renamed:
            moment = datetime.datetime.fromisoformat(item["created"])
            made[item["parent"], name].append((moment, item["path"]))
    doubled = []
    for folders in made.values():
        folders.sort()
        for (first, path), (second, _) in zip(folders, folders[1:]):
            if (second - first).total_seconds() <= 120:
                doubled.append(f"{path} of {first} and of {second}")
    _report("doubled", "folders that two machines made at one time", doubled)


def conflicts_told(shown, own, others=frozenset()):
    """Whether a machine's conflict copies are named as documented, and each is in a status, or was and
    is known to be over."""
    told = own | others
    problems = []
    for path in shown:
        name = os.path.basename(path)
        if CONFLICT.search(path) and not CONFLICT_NAME.fullmatch(name):
            problems.append(f"{path} is no conflict copy's name")
        if CONFLICT_NAME.fullmatch(name) and path not in told:
            problems.append(f"{path} is in no status")
    problems += [f"{path} is told and not there" for path in own if path not in shown]
    _report("unequal", "conflict copies", problems)


def brief(entry):
    if entry is None:
        return "nothing"
    return " ".join(str(part)[:60] if part is not None else "" for part in entry).strip()


def _report(kind, words, problems):
    if problems:
        more = f" and {len(problems) - 12} more" if len(problems) > 12 else ""
        raise Discrepancy(kind, f"{words}: " + "; ".join(problems[:12]) + more)


def _raise(error):
    raise error
