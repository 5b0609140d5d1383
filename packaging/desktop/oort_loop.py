"""The loop of a program of the desktop, as far as Oort's parts of it need one."""

from gi.repository import Gio, GLib


class Loop:
    """GLib's own loop, in which nothing may wait: what takes time is a program beside it."""

    def later(self, function):
        GLib.idle_add(self._once, function)

    def after(self, seconds, function):
        GLib.timeout_add_seconds(seconds, self._once, function)

    @staticmethod
    def _once(function):
        function()
        return GLib.SOURCE_REMOVE

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
                line = None
            if line is None:
                process.wait_async(None, None)
                return ended()
            heard(line)
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
