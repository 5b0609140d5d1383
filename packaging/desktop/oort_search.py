"""Finds files of the clouds for GNOME's overview (org.gnome.Shell.SearchProvider2).

The session bus starts it when somebody searches, and it ends after a minute without work. It knows
nothing by itself: `oort search` does, which asks no service.
"""

import collections
import json
import os
import sys

from gi.repository import Gio, GLib

import oort_files
import oort_loop

NAME = "io.github.oort.Oort.SearchProvider"
PATH = "/io/github/oort/Oort/SearchProvider"
INTERFACE = """
<node>
  <interface name="org.gnome.Shell.SearchProvider2">
    <method name="GetInitialResultSet">
      <arg type="as" name="terms" direction="in"/>
      <arg type="as" name="results" direction="out"/>
    </method>
    <method name="GetSubsearchResultSet">
      <arg type="as" name="previous_results" direction="in"/>
      <arg type="as" name="terms" direction="in"/>
      <arg type="as" name="results" direction="out"/>
    </method>
    <method name="GetResultMetas">
      <arg type="as" name="identifiers" direction="in"/>
      <arg type="aa{sv}" name="metas" direction="out"/>
    </method>
    <method name="ActivateResult">
      <arg type="s" name="identifier" direction="in"/>
      <arg type="as" name="terms" direction="in"/>
      <arg type="u" name="timestamp" direction="in"/>
    </method>
    <method name="LaunchSearch">
      <arg type="as" name="terms" direction="in"/>
      <arg type="u" name="timestamp" direction="in"/>
    </method>
  </interface>
</node>
"""
# The most results; the overview shows five, and how many more there are.
MOST = 25
# How long a search may take, in seconds; by then the person has typed on.
PATIENCE = 5
# How long it stays without work, in seconds.
STAY = 60
# The most words of a search, and letters of a word.
MOST_WORDS, MOST_LETTERS = 16, 100
# How many results are remembered, to distinguish folders from files.
REMEMBERED = 1000
FOLDER = "inode/directory"


def words_of(terms):
    """The typed terms, as the words of a search."""
    words = [word[:MOST_LETTERS] for term in terms for word in term.split()]
    return words[:MOST_WORDS]


def search_folder(mount, words):
    """The folder of the mount that shows all that words find; the mount where they are no name."""
    name = " ".join(words).replace("/", " ").lstrip(". ").rstrip()
    while len(name.encode()) > 255:
        name = name[:-1]
    return os.path.join(mount, ".search", name) if name else mount


def place(path, home):
    """Where something lies, for people."""
    folder = os.path.dirname(path)
    if home and folder.startswith(home.rstrip("/") + "/"):
        folder = "~" + folder[len(home.rstrip("/")):]
    return oort_files.shown(folder)


class Provider:
    """What the overview asks. An identifier is the path of what was found.

    Names are given as they are: the overview escapes what it shows as markup.
    """

    def __init__(self, loop, program="oort"):
        self.loop, self.program = loop, program
        self.searching = None
        self.folders = collections.OrderedDict()

    def search(self, terms, answer):
        """Answers with what words find; a search that is still under way ends with nothing."""
        if self.searching:
            self.searching.force_exit()
            self.searching = None
        words = words_of(terms)
        if not words:
            return answer([])

        process = None

        def found(code, out, _):
            if self.searching is process:
                self.searching = None
            answer(self._paths(out))

        # Words may begin with a dash.
        process = self.searching = self.loop.run(
            [self.program, "search", "--json", "--limit", str(MOST), "--", *words], "", found,
            seconds=PATIENCE)

    def _paths(self, out):
        try:
            results = json.loads(out)["results"]
            # Without a mount a path begins with the account, and there is nothing to open.
            found = [(result["path"], result["is_folder"] is True) for result in results
                     if result["path"].startswith("/")]
        except (ValueError, KeyError, TypeError, AttributeError):
            return []
        for path, is_folder in found:
            self.folders[path] = is_folder
            self.folders.move_to_end(path)
        while len(self.folders) > REMEMBERED:
            self.folders.popitem(last=False)
        return list(dict.fromkeys(path for path, _ in found))

    def metas(self, identifiers):
        """What is shown of each result. No file is looked at: that could wait for a service."""
        return [self._meta(path) for path in identifiers]

    def _meta(self, path):
        name = oort_files.shown(os.path.basename(path)) or path or "?"
        kind = FOLDER if self.folders.get(path) else Gio.content_type_guess(name, None)[0]
        return {
            "id": GLib.Variant("s", path),
            "name": GLib.Variant("s", name),
            "description": GLib.Variant("s", place(path, GLib.get_home_dir())),
            "icon": Gio.content_type_get_icon(kind).serialize(),
        }

    def activate(self, path, done):
        """Opens a result in its program."""
        if path.startswith("/"):
            self._open(path, done)
        else:
            done()

    def launch(self, terms, done):
        """Shows all that words find, in the file manager."""
        def known(code, out, error):
            try:
                mount = json.loads(out)["mount"]["mount_point"]
            except (ValueError, KeyError, TypeError):
                return self._tell(error.removeprefix("oort: ") or "No mount is running.", done)
            self._open(search_folder(mount, words_of(terms)), done)

        self.loop.run([self.program, "status", "--json"], "", known, seconds=PATIENCE)

    def _open(self, path, done):
        def opened(is_open):
            if is_open:
                done()
            else:
                self._tell(f"{oort_files.shown(path)} was not opened.", done)

        # As an address, which begins with no dash and holds no letter that means something else.
        self.loop.open(Gio.File.new_for_path(path).get_uri(), opened)

    def _tell(self, text, done):
        self.loop.run(oort_files.notice("Oort", text), "", lambda *_: done())


class Service(Gio.Application):
    """The provider on the session bus, for as long as it is asked."""

    def __init__(self, provider):
        super().__init__(application_id=NAME, flags=Gio.ApplicationFlags.IS_SERVICE,
                         inactivity_timeout=STAY * 1000)
        self.provider = provider

    def do_dbus_register(self, connection, path):
        # Before the name is there, so that the call that started the program finds the object.
        interface = Gio.DBusNodeInfo.new_for_xml(INTERFACE).interfaces[0]
        connection.register_object(PATH, interface, self._called, None, None)
        return Gio.Application.do_dbus_register(self, connection, path)

    def _called(self, connection, sender, path, interface, method, parameters, invocation):
        self.hold()
        arguments = parameters.unpack()

        def answer(value=None):
            invocation.return_value(value)
            self.release()

        if method in ("GetInitialResultSet", "GetSubsearchResultSet"):
            # What was found before is no help: the index is as quick with all that there is.
            self.provider.search(
                arguments[-1], lambda paths: answer(GLib.Variant("(as)", (paths,))))
        elif method == "GetResultMetas":
            answer(GLib.Variant("(aa{sv})", (self.provider.metas(arguments[0]),)))
        else:
            # The overview does not wait until a program has opened a file.
            invocation.return_value(None)
            act = self.provider.activate if method == "ActivateResult" else self.provider.launch
            act(arguments[0], self.release)


if __name__ == "__main__":
    sys.exit(Service(Provider(oort_loop.Loop())).run(None))
