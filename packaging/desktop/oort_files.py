"""What Oort's parts of the desktop have in common: paths, names, and the emblems and menu entries of
Nautilus, Nemo and Caja.

Nothing here imports a file manager's library, so that it can be tested without one. A file manager
asks in the thread that draws: what may take time is done later, or by programs that it does not wait for.
"""

import html
import json
import os
import time
import unicodedata
import urllib.parse

# The emblem of each state: icons of Oort's own, since not every theme has those for such states.
EMBLEMS = {
    "pinned": "emblem-oort-kept",
    "cached": "emblem-oort-here",
    "pending": "emblem-oort-sending",
    "failing": "emblem-oort-attention",
    "conflict": "emblem-oort-attention",
}
# What sets the reading direction (UAX #9).
TURNING = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
# How long a state is trusted, in seconds: there is no notice when a copy comes or goes.
BELIEVED = 30
# How many states are kept at most.
KEPT = 5000
# How many files are asked for again after that time, those that were asked for last: what a window shows.
IN_SIGHT = 60
# How many files are asked for at once: a mount that does not answer holds so many threads at most.
ASKED_AT_ONCE = 4
# How long changes are gathered before what a window shows is looked through, in seconds.
GATHERED = 0.5
# The attributes that the mount has of each file.
ATTRIBUTES = ("availability", "status")


def unescaped(field):
    """A path of /proc/self/mounts, in which octal numbers stand for some characters."""
    result = bytearray()
    data = os.fsencode(field)
    index = 0
    while index < len(data):
        digits = data[index + 1:index + 4]
        if data[index:index + 1] == b"\\" and len(digits) == 3 and digits.isdigit():
            result.append(int(digits, 8))
            index += 4
        else:
            result.append(data[index])
            index += 1
    return os.fsdecode(bytes(result))


def mount_points(table="/proc/self/mounts"):
    """Where Oort is mounted for this user: another user's mount refuses others, or is not ours to ask."""
    ours = f"user_id={os.getuid()}"
    found = []
    try:
        with open(table, encoding="utf-8", errors="surrogateescape") as lines:
            for line in lines:
                fields = line.split(" ")
                if len(fields) > 3 and fields[2] == "fuse.oort" and ours in fields[3].split(","):
                    found.append(unescaped(fields[1]))
    except OSError:
        pass
    return found


def path_of(uri):
    """The path of a file's address; None for what lies on no disk."""
    parts = urllib.parse.urlsplit(uri)
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        return None
    return os.fsdecode(urllib.parse.unquote_to_bytes(parts.path))


def account_path(path, mounts):
    """Whether a path is that of an account, or lies in one."""
    return any(path.startswith(mount.rstrip("/") + "/") for mount in mounts)


def shown(text):
    """A name in one line, without what breaks lines, turns the reading direction or is no UTF-8."""
    return "".join(
        f"\\u{{{ord(letter):x}}}"
        if unicodedata.category(letter) in ("Cc", "Cs", "Zl", "Zp") or letter in TURNING else letter
        for letter in text)


def notice(title, text):
    """The program that shows words for a moment.

    It reads backslashes in what stands below the title, and desktops read that as markup.
    """
    words = "\n".join(shown(line) for line in text.strip().split("\n"))
    body = html.escape(words, quote=False).replace("\\", "\\\\")
    return ["notify-send", "--app-name=Oort", "--icon=oort", "--", shown(title), body]


def folders(path):
    """The folders that a path lies in."""
    end = path.rfind("/")
    while end > 0:
        yield path[:end]
        end = path.rfind("/", 0, end)


class State:
    """What a file manager shows of a file."""

    def __init__(self, availability="", status="", conflict=False):
        self.availability = availability
        self.status = status
        self.conflict = conflict

    @property
    def emblems(self):
        states = []
        if self.conflict:
            states.append("conflict")
        elif self.status.startswith("failing"):
            states.append("failing")
        elif self.status == "pending":
            states.append("pending")
        if self.availability in ("pinned", "cached"):
            states.append(self.availability)
        return [EMBLEMS[state] for state in states]


class Entry:
    """An entry of a menu: what is shown, and the arguments of `oort` for each path."""

    def __init__(self, name, label, tip, *arguments):
        self.name, self.label, self.tip, self.arguments = name, label, tip, arguments

    def commands(self, paths):
        return [[word.replace("{}", path) if word == "{}" else word for word in self.arguments]
                for path in paths]


def entries(states, has_folder=False):
    """The menu of the files with these states, of which one may be a folder."""
    one = len(states) == 1
    pinned = all(state.availability == "pinned" for state in states)
    found = []
    if pinned:
        found.append(Entry("unpin", "Keep Here No Longer",
                           "The copy may go when its room is needed", "unpin", "{}"))
    else:
        found.append(Entry("pin", "Keep Here", "Keep a copy on this computer", "pin", "{}"))
        if any(state.availability in ("cached", "partly") for state in states):
            found.append(Entry("free", "Free Up Space",
                               "Remove the copy from this computer; it stays in the cloud",
                               "free", "{}"))
    if one:
        found.append(Entry("link", "Copy Link", "Make a link for others and copy it",
                           "share", "{}", "--json"))
        if not has_folder:
            found.append(Entry("versions", "Versions", "Show the contents that it had",
                               "versions", "{}"))
        found.append(Entry("open", "Open in Browser", "Open its page at the service",
                           "open", "{}"))
        if states[0].conflict:
            found += [
                Entry("mine", "Resolve: Keep My Version", "The cloud's goes to its trash or history",
                      "resolve", "{}", "--keep", "mine"),
                Entry("theirs", "Resolve: Keep the Cloud's Version", "Mine goes to the trash",
                      "resolve", "{}", "--keep", "theirs"),
                Entry("both", "Resolve: Keep Both", "Both files stay",
                      "resolve", "{}", "--keep", "both"),
            ]
    return found


def conflicted(report):
    """The paths of the files that `oort conflicts --json` names."""
    return {conflict[side]["path"] for conflict in report for side in ("mine", "theirs")}


class Oort:
    """The mount as a file manager has to know it; used by one thread.

    `loop` runs functions later (`after`), programs beside (`lines`, `run`), and reads a file's attributes
    beside (`attributes`); `refresh` is called with a path of which something is to be asked again, and
    `copy` with a text for the clipboard: it says whether there is one.
    """

    def __init__(self, loop, refresh, copy, program="oort", mounts=mount_points):
        self.loop, self.refresh, self.copy = loop, refresh, copy
        self.program, self.find_mounts = program, mounts
        self.states = {}
        # The paths that are to be asked for, in order, and those that are asked for now.
        self.wanted, self.asked = {}, set()
        self.changed = set()
        # For each mount the paths in conflict; the mounts still to be asked for them.
        self.mount_conflicts, self.awaits_conflicts = {}, set()
        self.known_mounts = (0, [])
        self.watched = set()
        self.looks_again = False

    # What a file manager asks.

    def is_ours(self, path):
        """Whether a path lies in an account."""
        return path is not None and account_path(path, self._mounts())

    def _mounts(self):
        then, mounts = self.known_mounts
        if time.monotonic() - then > 2 or not then:
            mounts = self.find_mounts()
            self.known_mounts = (time.monotonic(), mounts)
        return mounts

    @property
    def conflicts(self):
        return set().union(*self.mount_conflicts.values())

    def state(self, path):
        """What is known of a path; None while it is looked for, which `refresh` ends."""
        for mount in self._mounts():
            if account_path(path, [mount]):
                self._watch(mount)
        then, state = self.states.get(path, (0, None))
        if state and time.monotonic() - then < BELIEVED:
            return state
        if path not in self.asked and path not in self.wanted:
            while len(self.wanted) >= KEPT:
                self.wanted.pop(next(iter(self.wanted)))
            self.wanted[path] = None
            self._ask()
        return state

    def menu(self, paths, has_folder=False):
        """The entries for files; none where one of them is not in an account."""
        if not paths or not all(self.is_ours(path) for path in paths):
            return []
        states = [self.state(path) or State() for path in paths]
        return entries(states, has_folder)

    def perform(self, entry, paths):
        """Carries out an entry of the menu."""
        for path, command in zip(paths, entry.commands(paths)):
            self._run(command, lambda code, out, error, path=path:
                      self._performed(entry, path, code, out, error))

    # What happens later.

    def _ask(self):
        """Asks for some of the paths that are wanted, the first ones first."""
        while self.wanted and len(self.asked) < ASKED_AT_ONCE:
            path = next(iter(self.wanted))
            del self.wanted[path]
            self.asked.add(path)
            self.loop.attributes(path, ["user.oort." + name for name in ATTRIBUTES],
                                 lambda values, path=path: self._told(path, values))

    def _told(self, path, values):
        """Takes the attributes of a path, empty texts where there are none."""
        self.asked.discard(path)
        state = State(*values, path in self.conflicts)
        _, old = self.states.pop(path, (0, None))
        while len(self.states) >= KEPT:
            self.states.pop(next(iter(self.states)))
        self.states[path] = (time.monotonic(), state)
        self._ask()
        if old is None or old.__dict__ != state.__dict__:
            self.refresh(path)
        if not self.looks_again:
            self.looks_again = True
            self.loop.after(BELIEVED, self._look_again)

    def _look_again(self):
        """Asks again of what a window may show: no notice tells of a pin, or of a copy that came or went, and
        file managers do not ask by themselves."""
        self.looks_again = False
        for path in list(self.states)[-IN_SIGHT:]:
            then, _ = self.states[path]
            if (self.is_ours(path) and time.monotonic() - then >= BELIEVED
                    and path not in self.asked and path not in self.wanted):
                self.wanted[path] = None
        # Each answer has it go on.
        self._ask()

    def forget(self, path):
        """Soon asks again of a path, of what lies below it, and of the folders that it lies in."""
        if not self.changed:
            self.loop.after(GATHERED, self._look)
        # Of so many all is asked again.
        if len(self.changed) < KEPT:
            self.changed.add(path)

    def _look(self):
        """Asks again of all that the changes since the last look concern: many cost one look."""
        changed, self.changed = self.changed, set()
        if len(changed) >= KEPT:
            return self.forget_all()
        above = {folder for path in changed for folder in folders(path)}
        for other in list(self.states):
            if other in changed or other in above or not changed.isdisjoint(folders(other)):
                # Shown until there is news.
                self.states[other] = (-BELIEVED, self.states[other][1])
                self.refresh(other)

    def forget_all(self):
        known = list(self.states)
        self.states.clear()
        for path in known:
            self.refresh(path)

    def _watch(self, mount):
        """Follows changes until the mount ends, and again when a state is asked for afterwards.

        Each mount is asked by its path: a demo runs beside the person's own.
        """
        if mount in self.watched:
            return
        self.watched.add(mount)
        self._read_conflicts(mount)
        self.loop.lines([self.program, "watch", mount, "--json"],
                        lambda line: self._hear(mount, line),
                        lambda: self.loop.after(5, lambda: self.watched.discard(mount)))

    def _hear(self, mount, line):
        try:
            event = json.loads(line)
        except ValueError:
            return
        if isinstance(event, dict):
            self.hear(mount, event)

    def hear(self, mount, event):
        """An event of `oort watch` in a mount."""
        kind = event.get("event")
        if kind in ("overflow", "account", "created", "deleted"):
            # With a conflict a file comes; when it ends, one goes.
            self._read_conflicts(mount)
        if kind == "overflow":
            self.forget_all()
        for key in ("path", "from"):
            if isinstance(event.get(key), str):
                self.forget(event[key])

    def _read_conflicts(self, mount):
        def read(code, out, _):
            old = self.mount_conflicts.get(mount, set())
            try:
                new = conflicted(json.loads(out)) if code == 0 else old
            except (ValueError, KeyError, TypeError):
                return
            self.mount_conflicts[mount] = new
            for path in old ^ new:
                self.forget(path)

        def begin():
            self.awaits_conflicts.discard(mount)
            self._run(["conflicts", mount, "--json"], read)

        # Many events are one question.
        if mount not in self.awaits_conflicts:
            self.awaits_conflicts.add(mount)
            self.loop.after(1, begin)

    def _run(self, arguments, done):
        self.loop.run([self.program, *arguments], "", done)

    def _performed(self, entry, path, code, out, error):
        if code:
            self._tell("Oort", error.removeprefix("oort: ").strip())
        elif entry.name == "link":
            address = json.loads(out)["url"]
            self._tell("The link is copied" if self.copy(address) else "The link", address)
        elif entry.name == "versions":
            self._show(f"Versions of {shown(os.path.basename(path))}", out)
        if entry.name in ("mine", "theirs", "both"):
            for mount in self._mounts():
                if account_path(path, [mount]):
                    self._read_conflicts(mount)
        self.forget(path)

    def _tell(self, title, text):
        self.loop.run(notice(title, text), "", lambda *_: None)

    def _show(self, title, text):
        """Shows a longer text, where there is no window for it as words."""
        def shown(code, out, error):
            if code not in (0, 1):
                self._tell(title, text)

        self.loop.run(["zenity", "--text-info", f"--title={title}", "--width=720", "--height=400"],
                      text, shown)
