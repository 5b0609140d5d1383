"""Oort's icon among those of the panel (StatusNotifierItem, com.canonical.dbusmenu).

The mount starts it, and it ends with its input, so with the mount: oort_tray.py [OORT]. While no panel
shows such icons it waits for one and does nothing else.
"""

import collections
import html
import json
import os
import pathlib
import signal
import sys

from gi.repository import Gio, GLib

import oort_files
import oort_loop

ITEM_PATH, MENU_PATH = "/StatusNotifierItem", "/MenuBar"
ITEM, MENU = "org.kde.StatusNotifierItem", "com.canonical.dbusmenu"
WATCHER, WATCHER_PATH = "org.kde.StatusNotifierWatcher", "/StatusNotifierWatcher"
ITEM_INTERFACE = f"""
<node>
  <interface name="{ITEM}">
    <property name="Category" type="s" access="read"/>
    <property name="Id" type="s" access="read"/>
    <property name="Title" type="s" access="read"/>
    <property name="Status" type="s" access="read"/>
    <property name="WindowId" type="i" access="read"/>
    <property name="IconThemePath" type="s" access="read"/>
    <property name="IconName" type="s" access="read"/>
    <property name="AttentionIconName" type="s" access="read"/>
    <property name="OverlayIconName" type="s" access="read"/>
    <property name="ToolTip" type="(sa(iiay)ss)" access="read"/>
    <property name="ItemIsMenu" type="b" access="read"/>
    <property name="Menu" type="o" access="read"/>
    <method name="Activate">
      <arg type="i" name="x" direction="in"/><arg type="i" name="y" direction="in"/>
    </method>
    <method name="SecondaryActivate">
      <arg type="i" name="x" direction="in"/><arg type="i" name="y" direction="in"/>
    </method>
    <method name="ContextMenu">
      <arg type="i" name="x" direction="in"/><arg type="i" name="y" direction="in"/>
    </method>
    <method name="Scroll">
      <arg type="i" name="delta" direction="in"/><arg type="s" name="orientation" direction="in"/>
    </method>
    <signal name="NewIcon"/>
    <signal name="NewAttentionIcon"/>
    <signal name="NewToolTip"/>
    <signal name="NewStatus"><arg type="s" name="status"/></signal>
  </interface>
</node>
"""
MENU_INTERFACE = f"""
<node>
  <interface name="{MENU}">
    <property name="Version" type="u" access="read"/>
    <property name="TextDirection" type="s" access="read"/>
    <property name="Status" type="s" access="read"/>
    <property name="IconThemePath" type="as" access="read"/>
    <method name="GetLayout">
      <arg type="i" name="parentId" direction="in"/>
      <arg type="i" name="recursionDepth" direction="in"/>
      <arg type="as" name="propertyNames" direction="in"/>
      <arg type="u" name="revision" direction="out"/>
      <arg type="(ia{{sv}}av)" name="layout" direction="out"/>
    </method>
    <method name="GetGroupProperties">
      <arg type="ai" name="ids" direction="in"/>
      <arg type="as" name="propertyNames" direction="in"/>
      <arg type="a(ia{{sv}})" name="properties" direction="out"/>
    </method>
    <method name="GetProperty">
      <arg type="i" name="id" direction="in"/>
      <arg type="s" name="name" direction="in"/>
      <arg type="v" name="value" direction="out"/>
    </method>
    <method name="Event">
      <arg type="i" name="id" direction="in"/>
      <arg type="s" name="eventId" direction="in"/>
      <arg type="v" name="data" direction="in"/>
      <arg type="u" name="timestamp" direction="in"/>
    </method>
    <method name="EventGroup">
      <arg type="a(isvu)" name="events" direction="in"/>
      <arg type="ai" name="idErrors" direction="out"/>
    </method>
    <method name="AboutToShow">
      <arg type="i" name="id" direction="in"/>
      <arg type="b" name="needUpdate" direction="out"/>
    </method>
    <method name="AboutToShowGroup">
      <arg type="ai" name="ids" direction="in"/>
      <arg type="ai" name="updatesNeeded" direction="out"/>
      <arg type="ai" name="idErrors" direction="out"/>
    </method>
    <signal name="ItemsPropertiesUpdated">
      <arg type="a(ia{{sv}})" name="updatedProps"/><arg type="a(ias)" name="removedProps"/>
    </signal>
    <signal name="LayoutUpdated">
      <arg type="u" name="revision"/><arg type="i" name="parent"/>
    </signal>
  </interface>
</node>
"""
# How long after a change the mount is asked how it is, so that many changes are one question.
PAUSE = 2
# How often it is asked when nothing changes: not all troubles come with a change. In seconds.
INTERVAL = 60
# How long an answer may take, in seconds.
PATIENCE = 30
# The most letters of a line, and lines of what needs a person.
MOST_LETTERS, MOST_LINES = 90, 8
# What a program needs to show a window.
DISPLAY = ("DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_CURRENT_DESKTOP", "XDG_SESSION_TYPE")

# A line of the menu: its words, what a click does (a word and what it is about), and its icon.
Line = collections.namedtuple("Line", "label act icon", defaults=(None, ""))
SEPARATOR = Line("")
# What is shown of a mount: its state, that in words, and the menu.
View = collections.namedtuple("View", "state words lines")
# The icon of each state.
ICONS = {"up to date": "oort", "working": "oort-working", "paused": "oort-paused",
         "offline": "oort-offline", "attention": "oort-attention"}


def short(text):
    text = oort_files.shown(text)
    return text if len(text) <= MOST_LETTERS else text[:MOST_LETTERS - 1] + "…"


def counted(number, one, many):
    return f"{number:,} {one if number == 1 else many}"


def state_of(report, code):
    """The state of everything: what a person must act on comes first, then what no person can change."""
    states = {account["state"] for account in report["accounts"]}
    if code == 4:
        return "attention"
    if "offline" in states:
        return "offline"
    if states & {"syncing", "reading the tree"}:
        return "working"
    if "paused" in states:
        return "paused"
    return "working" if code == 3 else "up to date"


def needs(report):
    """What needs a person, a line for each."""
    lines = []
    for need in report.get("needs") or []:
        act = ("open", need["folder"]) if need.get("folder") and not need["is_sign_in"] else ("page", "")
        lines.append(Line(need["line"], act, "dialog-warning"))
    if len(lines) > MOST_LINES:
        rest = len(lines) - MOST_LINES + 1
        lines[MOST_LINES - 1:] = [Line(f"{rest:,} more need you", ("page", ""), "dialog-warning")]
    return lines


def account_line(account, mount):
    words = f"{account['name']}: {account['state']}"
    if account["pending_count"]:
        words += f", {counted(account['pending_count'], 'change', 'changes')} not in the cloud yet"
    return Line(words, ("open", os.path.join(mount, account["name"])))


def view(report, code):
    """What is shown of the report of `oort status --json` that ended with this code."""
    mount = report["mount"]["mount_point"]
    accounts = report["accounts"]
    state = state_of(report, code)
    needed = needs(report)
    if state == "attention":
        words = counted(len(needed), "thing needs you", "things need you") if needed else "Something needs you"
    else:
        pending = sum(account["pending_count"] for account in accounts)
        words = {"up to date": "Up to date", "working": "Changes are on their way", "paused": "Paused",
                 "offline": "Offline"}[state]
        if pending:
            words += f", {counted(pending, 'change', 'changes')} not in the cloud yet"
    is_paused = any(account["state"] == "paused" for account in accounts)
    groups = [
        [Line("Open Clouds", ("open", mount), "folder")],
        needed,
        [account_line(account, mount) for account in accounts],
        [Line("Resume", ("resume", ""), "media-playback-start") if is_paused
         else Line("Pause", ("pause", ""), "media-playback-pause"),
         Line("Show the Page in the Browser", ("page", ""), "web-browser")],
    ]
    lines = []
    for group in groups:
        if lines and group:
            lines.append(SEPARATOR)
        lines += [line._replace(label=short(line.label)) for line in group]
    return View(state, words, lines)


class Menu:
    """The lines of a menu as com.canonical.dbusmenu has them; no line ever gets another's number."""

    def __init__(self):
        self.revision, self.last, self.lines = 0, 0, {}

    def show(self, lines):
        """Whether the menu is another one now."""
        if list(self.lines.values()) == lines:
            return False
        self.revision += 1
        # A click that is on its way must not meet another line.
        self.lines = {}
        for line in lines:
            self.last += 1
            self.lines[self.last] = line
        return True

    def properties(self, number):
        if number == 0:
            return {"children-display": GLib.Variant("s", "submenu")}
        line = self.lines[number]
        if line == SEPARATOR:
            return {"type": GLib.Variant("s", "separator")}
        # One underscore marks a key.
        found = {"label": GLib.Variant("s", line.label.replace("_", "__"))}
        if line.icon:
            found["icon-name"] = GLib.Variant("s", line.icon)
        return found

    def layout(self, number, depth):
        children = [] if number or depth == 0 else [
            GLib.Variant("(ia{sv}av)", (child, self.properties(child), [])) for child in self.lines]
        return (number, self.properties(number), children)

    def knows(self, number):
        return number == 0 or number in self.lines


class Tray:
    """The icon, while a panel shows it, and what its menu does."""

    def __init__(self, loop, connection, program="oort"):
        self.loop, self.connection, self.program = loop, connection, program
        self.menu, self.view = Menu(), None
        self.watch = self.page = None
        self.is_shown = self.is_due = self.is_asking = self.is_late = False
        self.name = f"{ITEM}-{os.getpid()}-1"

    def begin(self):
        for path, text, called, read in (
                (ITEM_PATH, ITEM_INTERFACE, self._item_called, self._item_property),
                (MENU_PATH, MENU_INTERFACE, self._menu_called, self._menu_property)):
            interface = Gio.DBusNodeInfo.new_for_xml(text).interfaces[0]
            self.connection.register_object(path, interface, called, read, None)
        Gio.bus_own_name_on_connection(
            self.connection, self.name, Gio.BusNameOwnerFlags.NONE, None, None)
        Gio.bus_watch_name_on_connection(
            self.connection, WATCHER, Gio.BusNameWatcherFlags.NONE, self._came, self._went)

    def end(self):
        self.is_shown = False
        if self.watch:
            self.watch.force_exit()
        if self.page:
            self.page.send_signal(signal.SIGTERM)

    # The panel.

    def _came(self, *_):
        self.is_shown = True
        # Shown when there is something to show.
        self.view = None
        self._ask()
        self._watch()

    def _went(self, *_):
        self.is_shown = False
        if self.watch:
            self.watch.force_exit()

    def _register(self):
        self.connection.call(
            WATCHER, WATCHER_PATH, WATCHER, "RegisterStatusNotifierItem",
            GLib.Variant("(s)", (self.name,)), None, Gio.DBusCallFlags.NONE, -1, None, self._called)

    @staticmethod
    def _called(connection, result):
        try:
            connection.call_finish(result)
        except GLib.Error:
            # A panel that ends meanwhile; the next one is asked again.
            pass

    # The mount.

    def _watch(self):
        """Hears of changes, which are reasons to ask how all is."""
        if not self.is_shown or self.watch:
            return

        def ended():
            self.watch = None
            if self.is_shown:
                self.loop.after(5, self._watch)

        self.watch = self.loop.lines(
            [self.program, "watch", "--json"], lambda _: self._ask_soon(), ended)

    def _ask_soon(self, seconds=PAUSE):
        if self.is_due or not self.is_shown:
            return
        self.is_due = True

        def ask():
            self.is_due = False
            self._ask()

        self.loop.after(seconds, ask)

    def _ask(self):
        if self.is_asking:
            # The answer may be of before.
            self.is_late = True
        if not self.is_shown or self.is_asking:
            return
        self.is_asking, self.is_late = True, False

        def told(code, out, _):
            self.is_asking = False
            if self.is_late:
                self._ask_soon()
            if not self.is_shown:
                return
            try:
                self._show(view(json.loads(out), code))
            except (ValueError, KeyError, TypeError, AttributeError):
                # No mount runs, or none that answers: it begins or ends.
                self._ask_soon()

        self.loop.run([self.program, "status", "--json"], "", told, seconds=PATIENCE)

    def look_now_and_then(self):
        self._ask()
        self.loop.after(INTERVAL, self.look_now_and_then)

    def _show(self, new):
        old, self.view = self.view, new
        if self.menu.show(new.lines):
            self._emit(MENU_PATH, MENU, "LayoutUpdated", GLib.Variant("(ui)", (self.menu.revision, 0)))
        if old is None:
            self._register()
        elif old != new:
            self._emit(ITEM_PATH, ITEM, "NewToolTip", None)
            if old.state != new.state:
                for name in ("NewIcon", "NewAttentionIcon"):
                    self._emit(ITEM_PATH, ITEM, name, None)
                self._emit(ITEM_PATH, ITEM, "NewStatus", GLib.Variant("(s)", (self._status,)))

    def _emit(self, path, interface, name, value):
        self.connection.emit_signal(None, path, interface, name, value)

    # What the panel asks.

    @property
    def _status(self):
        return "NeedsAttention" if self.view and self.view.state == "attention" else "Active"

    def _item_property(self, connection, sender, path, interface, name):
        state = self.view.state if self.view else "working"
        words = html.escape(self.view.words) if self.view else ""
        return {
            "Category": GLib.Variant("s", "SystemServices"),
            "Id": GLib.Variant("s", "oort"),
            "Title": GLib.Variant("s", "Oort"),
            "Status": GLib.Variant("s", self._status),
            "WindowId": GLib.Variant("i", 0),
            "IconThemePath": GLib.Variant("s", icon_folder()),
            "IconName": GLib.Variant("s", ICONS[state]),
            "AttentionIconName": GLib.Variant("s", ICONS["attention"]),
            "OverlayIconName": GLib.Variant("s", ""),
            "ToolTip": GLib.Variant("(sa(iiay)ss)", (ICONS[state], [], "Oort", words)),
            "ItemIsMenu": GLib.Variant("b", False),
            "Menu": GLib.Variant("o", MENU_PATH),
        }[name]

    def _item_called(self, connection, sender, path, interface, method, parameters, invocation):
        invocation.return_value(None)
        # A click; the menu is the panel's to show.
        if method == "Activate" and self.view:
            self._act(self.view.lines[0].act)

    def _menu_property(self, connection, sender, path, interface, name):
        return {
            "Version": GLib.Variant("u", 3),
            "TextDirection": GLib.Variant("s", "ltr"),
            "Status": GLib.Variant("s", "normal"),
            "IconThemePath": GLib.Variant("as", [icon_folder()] if icon_folder() else []),
        }[name]

    def _menu_called(self, connection, sender, path, interface, method, parameters, invocation):
        arguments = parameters.unpack()
        menu = self.menu
        numbers = [arguments[0]] if method in ("GetLayout", "GetProperty") else []
        if not all(menu.knows(number) for number in numbers):
            return invocation.return_dbus_error(
                "org.freedesktop.DBus.Error.InvalidArgs", f"There is no line {numbers[0]} any more.")
        value = None
        if method == "GetLayout":
            value = GLib.Variant("(u(ia{sv}av))", (menu.revision, menu.layout(*arguments[:2])))
        elif method == "GetGroupProperties":
            known = [number for number in arguments[0] or [0, *menu.lines] if menu.knows(number)]
            value = GLib.Variant(
                "(a(ia{sv}))", ([(number, menu.properties(number)) for number in known],))
        elif method == "GetProperty":
            found = menu.properties(arguments[0]).get(arguments[1], GLib.Variant("s", ""))
            value = GLib.Variant("(v)", (found,))
        elif method == "Event":
            self._happened(*arguments[:2])
        elif method == "EventGroup":
            value = GLib.Variant("(ai)", ([one[0] for one in arguments[0] if not menu.knows(one[0])],))
            for one in arguments[0]:
                self._happened(*one[:2])
        elif method == "AboutToShow":
            self._ask()
            value = GLib.Variant("(b)", (False,))
        elif method == "AboutToShowGroup":
            self._ask()
            value = GLib.Variant("(aiai)", ([], []))
        invocation.return_value(value)

    def _happened(self, number, event):
        line = self.menu.lines.get(number)
        if event == "clicked" and line and line.act:
            self._act(line.act)

    # What a click does.

    def _act(self, act):
        kind, path = act
        if kind == "open":
            def opened(is_open):
                self._failed(not is_open, f"{oort_files.shown(path)} was not opened.")

            # As an address, which begins with no dash.
            address = Gio.File.new_for_path(path).get_uri()
            self._with_display(lambda: self.loop.open(address, opened))
        elif kind == "page":
            self._with_display(self._show_page)
        else:
            self._run([self.program, kind])

    def _show_page(self):
        """The page's address opens it once: for another look it is served anew."""
        if self.page:
            self.page.send_signal(signal.SIGTERM)

        def ended(code, _, error):
            if self.page is page:
                self.page = None
                self._failed(code, error)

        page = None
        page = self.page = self.loop.run([self.program, "web", "--open"], "", ended)

    def _with_display(self, done):
        """A mount that began before the desktop did does not know where windows are shown, but the
        person's own systemd knows by now."""
        if any(os.environ.get(name) for name in DISPLAY[:2]):
            return done()

        def told(connection, result):
            try:
                words, = connection.call_finish(result).unpack()
            except GLib.Error:
                words = []
            for word in words:
                name, _, value = word.partition("=")
                if name in DISPLAY:
                    os.environ[name] = value
            done()

        self.connection.call(
            "org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.DBus.Properties",
            "Get", GLib.Variant("(ss)", ("org.freedesktop.systemd1.Manager", "Environment")),
            GLib.VariantType("(v)"), Gio.DBusCallFlags.NO_AUTO_START, 2000, None, told)

    def _run(self, command):
        def done(code, _, error):
            self._failed(code, error)
            self._ask()

        self.loop.run(command, "", done)

    def _failed(self, code, error):
        if code:
            self.loop.run(oort_files.notice("Oort", error.removeprefix("oort: ")), "", lambda *_: None)


def icon_folder():
    """Where the icons lie when no theme of the desktop has them; empty when one has."""
    here = pathlib.Path(__file__).resolve().parent
    folder = here.parent / "icons"
    if (folder / "oort.svg").exists():
        return str(folder)
    # Unpacked somewhere; the system's own folder is known to everybody.
    folder = here.parent.parent / "icons"
    return str(folder) if str(folder) != "/usr/share/icons" and folder.is_dir() else ""


def main(arguments):
    # A daemon keeps signals for itself, and its programs would inherit that.
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    try:
        connection = Gio.bus_get_sync(Gio.BusType.SESSION, None)
    except GLib.Error as error:
        print(f"There is no session bus: {error.message}", file=sys.stderr)
        return 1
    main_loop = GLib.MainLoop()
    tray = Tray(oort_loop.Loop(), connection, *arguments[:1])

    def end(*_):
        main_loop.quit()
        return GLib.SOURCE_REMOVE

    GLib.unix_signal_add(GLib.PRIORITY_HIGH, signal.SIGTERM, end)
    GLib.unix_fd_add_full(
        GLib.PRIORITY_HIGH, 0, GLib.IOCondition.IN | GLib.IOCondition.HUP | GLib.IOCondition.ERR, end)
    tray.begin()
    tray.look_now_and_then()
    main_loop.run()
    tray.end()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
