"""The extension itself, for the library of one file manager (Nautilus, Nemo or Caja)."""

import shutil

from gi.repository import GObject

import oort_files
import oort_loop

# How many files are remembered that a window shows, so that they can be asked of again.
SHOWN = 5000


def copy_text(text, loop):
    """Puts a text on the clipboard; GTK 4 has it at the display, GTK 3 by itself.

    Returns whether there is a clipboard.
    """
    try:
        from gi.repository import Gdk  # of the GTK that the file manager has loaded
        display = Gdk.Display.get_default()
        if hasattr(display, "get_clipboard"):
            display.get_clipboard().set(text)
            return True
        from gi.repository import Gtk
        Gtk.Clipboard.get(Gdk.SELECTION_CLIPBOARD).set_text(text, -1)
        return True
    except (ImportError, ValueError):
        # GTK's descriptions for Python are a package of their own.
        for command in (["wl-copy"], ["xclip", "-selection", "clipboard"]):
            if shutil.which(command[0]):
                loop.give(command, text)
                return True
        return False


def provider(library, prefix):
    """The class that a file manager makes an object of."""

    class OortProvider(GObject.GObject, library.InfoProvider, library.MenuProvider):
        __gtype_name__ = prefix + "OortProvider"

        def __init__(self):
            super().__init__()
            self.shown = {}
            loop = oort_loop.Loop()
            self.oort = oort_files.Oort(
                loop, refresh=self.refresh, copy=lambda text: copy_text(text, loop))

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
            files = arguments[-1]
            paths = [oort_files.path_of(file.get_uri()) for file in files]
            items = []
            for entry in self.oort.menu(paths, any(file.is_directory() for file in files)):
                item = library.MenuItem(
                    name=f"{prefix}Oort::{entry.name}", label=entry.label, tip=entry.tip)
                item.connect("activate", lambda _, entry=entry: self.oort.perform(entry, paths))
                items.append(item)
            return items

        def get_background_items(self, *arguments):
            return []

    return OortProvider
