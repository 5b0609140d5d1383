"""The loop of a program of the desktop, as far as Oort's parts of it need one."""

import sys
import traceback

from gi.repository import Gio, GLib


class Loop:
    """GLib's own loop, in which nothing may wait: what takes time is a program beside it."""

    def later(self, function):
        GLib.idle_add(self._once, function)

    def after(self, seconds, function):
        GLib.timeout_add(round(seconds * 1000), self._once, function)

    @staticmethod
    def _once(function):
        function()
        return GLib.SOURCE_REMOVE

    def attributes(self, path, names, done):
        """Reads extended attributes in a thread of GIO's: a mount may not answer for long."""
        keys = ["xattr::" + name.removeprefix("user.") for name in names]

        def told(file, result):
            try:
                info = file.query_info_finish(result)
            except GLib.Error:
                return done([""] * len(keys))
            done([info.get_attribute_string(key) or "" for key in keys])

        Gio.File.new_for_path(path).query_info_async(
            ",".join(keys), Gio.FileQueryInfoFlags.NOFOLLOW_SYMLINKS, GLib.PRIORITY_DEFAULT_IDLE,
            None, told)

    def lines(self, command, heard, ended):
        """Runs a program; hears its lines, and of its end. Returns the program, None if there is none."""
        flags = Gio.SubprocessFlags.STDOUT_PIPE | Gio.SubprocessFlags.STDERR_SILENCE
        try:
            process = Gio.Subprocess.new(command, flags)
        except GLib.Error:
            ended()
            return None
        stream = Gio.DataInputStream.new(process.get_stdout_pipe())

        def read(source, result):
            try:
                line, _ = source.read_line_finish_utf8(result)
            except GLib.Error:
                process.force_exit()
                line = None
            if line is None:
                process.wait_async(None, None)
                return ended()
            try:
                heard(line)
            except Exception:  # whatever one line does, the next one is heard
                traceback.print_exc(file=sys.stderr)
            source.read_line_async(GLib.PRIORITY_DEFAULT_IDLE, None, read)

        stream.read_line_async(GLib.PRIORITY_DEFAULT_IDLE, None, read)
        return process

    def run(self, command, text, done, seconds=None):
        """Runs a program; hears of its end: the exit code, and what it wrote.

        Returns the program, None if there is none; it is ended after so many seconds.
        """
        pipes = Gio.SubprocessFlags
        flags = pipes.STDIN_PIPE | pipes.STDOUT_PIPE | pipes.STDERR_PIPE
        try:
            process = Gio.Subprocess.new(command, flags)
        except GLib.Error as error:
            done(127, "", error.message)
            return None
        limit = None
        if seconds:
            limit = GLib.timeout_source_new_seconds(seconds)
            limit.set_callback(lambda *_: process.force_exit() or GLib.SOURCE_REMOVE)
            limit.attach(None)

        def ended(source, result):
            if limit:
                limit.destroy()
            try:
                _, out, error = source.communicate_utf8_finish(result)
            except GLib.Error as failure:
                return done(126, "", failure.message)
            done(source.get_exit_status() if source.get_if_exited() else 126, out, error)

        process.communicate_utf8_async(text, None, ended)
        return process

    def open(self, address, done):
        """Opens an address in its program, which stays for as long as the person likes; hears whether it
        was opened.

        It has nothing of this program: a pipe that ended with this one would end it, too.
        """
        pipes = Gio.SubprocessFlags
        try:
            process = Gio.Subprocess.new(["xdg-open", address], pipes.STDOUT_SILENCE | pipes.STDERR_SILENCE)
        except GLib.Error:
            return done(False)

        def ended(source, result):
            source.wait_finish(result)
            done(source.get_successful())

        process.wait_async(None, ended)

    def give(self, command, text):
        """Runs a program that takes a text, and waits for nothing: it may stay for as long as it likes."""
        pipes = Gio.SubprocessFlags
        flags = pipes.STDIN_PIPE | pipes.STDOUT_SILENCE | pipes.STDERR_SILENCE
        try:
            process = Gio.Subprocess.new(command, flags)
        except GLib.Error:
            return
        process.communicate_utf8_async(text, None, None)
