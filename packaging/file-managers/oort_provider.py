"""The extension itself, for the library of one file manager (Nautilus, Nemo or Caja)."""

import shutil
import subprocess

from gi.repository import Gio, GLib, GObject

import oort_files

# How many files are remembered that a window shows, so that they can be asked of again.
SHOWN = 5000


class Loop:
    """The file manager's own loop: its Python runs no other thread while that draws."""

    def later(self, function):
        GLib.idle_add(self._once, function)

    def after(self, seconds, function):
        GLib.timeout_add_seconds(seconds, self._once, function)

    @staticmethod
    def _once(function):
        function()
        return GLib.SOURCE_REMOVE

    def lines(self, command, heard, ended):
        """Runs a program; hears its lines, and of its end."""
        flags = Gio.SubprocessFlags.STDOUT_PIPE | Gio.SubprocessFlags.STDERR_SILENCE
        try:
            process = Gio.Subprocess.new(command, flags)
        except GLib.Error:
            return ended()
        stream = Gio.DataInputStream.new(process.get_stdout_pipe())

        def read(source, result):
            try:
                line, _ = source.read_line_finish_utf8(result)
            except GLib.Error:
                line = None
            if line is None:
                process.wait_async(None, None)
                return ended()
            heard(line)
            source.read_line_async(GLib.PRIORITY_DEFAULT_IDLE, None, read)

        stream.read_line_async(GLib.PRIORITY_DEFAULT_IDLE, None, read)

    def run(self, command, text, done):
        """Runs a program; hears of its end: the exit code, and what it wrote."""
        pipes = Gio.SubprocessFlags
        flags = pipes.STDIN_PIPE | pipes.STDOUT_PIPE | pipes.STDERR_PIPE
        try:
            process = Gio.Subprocess.new(command, flags)
        except GLib.Error as error:
            return done(127, "", error.message)

        def ended(source, result):
            try:
                _, out, error = source.communicate_utf8_finish(result)
            except GLib.Error as failure:
                return done(126, "", failure.message)
            done(source.get_exit_status() if source.get_if_exited() else 126, out, error)

        process.communicate_utf8_async(text, None, ended)


def copy_text(text):
    """Puts a text on the clipboard; GTK 4 has it at the display, GTK 3 by itself."""
    try:
        from gi.repository import Gdk  # of the GTK that the file manager has loaded
        display = Gdk.Display.get_default()
        if hasattr(display, "get_clipboard"):
            display.get_clipboard().set(text)
            return
        from gi.repository import Gtk
        Gtk.Clipboard.get(Gdk.SELECTION_CLIPBOARD).set_text(text, -1)
    except (ImportError, ValueError):
        # GTK's descriptions for Python are a package of their own.
        for command in (["wl-copy"], ["xclip", "-selection", "clipboard"]):
            if shutil.which(command[0]):
                subprocess.run(command, input=text, text=True, check=False, timeout=30)
                return


def provider(library, prefix):
    """The class that a file manager makes an object of."""

    class OortProvider(GObject.GObject, library.InfoProvider, library.MenuProvider):
        __gtype_name__ = prefix + "OortProvider"

        def __init__(self):
            super().__init__()
            self.shown = {}
            self.oort = oort_files.Oort(Loop(), refresh=self.refresh, copy=copy_text)

        def refresh(self, path):
            file = self.shown.get(path)
            if file is not None:
                file.invalidate_extension_info()

        def update_file_info(self, file):
            path = oort_files.path_of(file.get_uri())
            if not self.oort.is_ours(path):
                return library.OperationResult.COMPLETE
            self.shown.pop(path, None)
            while len(self.shown) >= SHOWN:
                self.shown.pop(next(iter(self.shown)))
            self.shown[path] = file
            state = self.oort.state(path)
            for emblem in state.emblems if state else []:
                file.add_emblem(emblem)
            return library.OperationResult.COMPLETE

        def get_file_items(self, *arguments):
            # Older ones give the window before the files.
            paths = [oort_files.path_of(file.get_uri()) for file in arguments[-1]]
            items = []
            for entry in self.oort.menu(paths):
                item = library.MenuItem(
                    name=f"{prefix}Oort::{entry.name}", label=entry.label, tip=entry.tip)
                item.connect("activate", lambda _, entry=entry: self.oort.perform(entry, paths))
                items.append(item)
            return items

        def get_background_items(self, *arguments):
            return []

    return OortProvider
