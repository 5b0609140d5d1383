"""Where the mounting process's processor time goes while a row is measured, by `perf`."""

import collections
import pathlib
import re
import shutil
import signal
import subprocess
import time

# What a sample's innermost frame lies in, by the name of its library.
LIBRARIES = [
    ("libcrypto", "TLS and digests (libcrypto)"), ("libssl", "TLS and digests (libcrypto)"),
    ("libsqlite3", "SQLite"), ("libcurl", "libcurl and HTTP/2"),
    ("libnghttp2", "libcurl and HTTP/2"), ("libfuse", "libfuse"),
    ("libswift_Concurrency", "Swift tasks (concurrency, dispatch)"),
    ("libdispatch", "Swift tasks (concurrency, dispatch)"),
    ("libswiftCore", "Swift's library (counting references, strings, arrays)"),
    ("libFoundation", "Foundation"), ("lib_Foundation", "Foundation"),
]
# What the kernel was doing, by a function on its stack; the first that fits.
KERNEL = [
    (r"fuse_", "kernel: FUSE"), (r"^(tcp_|inet6?_|sock_|__sys_send|__sys_recv|unix_)",
                                 "kernel: sockets"),
    (r"^(ext4_|jbd2_|xfs_|btrfs_|overlayfs|vfs_fsync|do_fsync)", "kernel: local disk"),
    (r"futex|schedule|epoll|poll", "kernel: waiting and waking"),
    (r"page_fault|mmap|munmap|madvise", "kernel: memory"),
]
MODULE = re.compile(r"\$[sS](\d+)(\w+)")


class Recording:
    """perf beside a process, from now until `stop`."""

    def __init__(self, process: int, file: pathlib.Path):
        self.file = file
        self.perf = subprocess.Popen(
            ["perf", "record", "--quiet", "--event", "cpu-clock", "--freq", "997", "-g",
             "--pid", str(process), "--output", str(file)],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        # It attaches within this time; a sample more or less does not count.
        time.sleep(0.3)

    def stop(self) -> str:
        """Ends the recording; a table of shares."""
        self.perf.send_signal(signal.SIGINT)
        self.perf.wait(60)
        shares = self.shares()
        self.file.unlink(missing_ok=True)
        return table(shares)

    def shares(self) -> collections.Counter[str]:
        """Samples by what they lie in."""
        done = subprocess.run(
            ["perf", "script", "--input", str(self.file), "--fields", "ip,sym,dso"],
            capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL)
        found: collections.Counter[str] = collections.Counter()
        for sample in done.stdout.split("\n\n"):
            frames = [frame for line in sample.splitlines() if (frame := parsed(line))]
            if frames:
                found[place(frames)] += 1
        return found


def is_available() -> bool:
    """Whether perf is installed."""
    return shutil.which("perf") is not None


def parsed(line: str) -> tuple[str, str] | None:
    """The function and the library of a line of `perf script`."""
    match = re.match(r"\s*[0-9a-f]+ (.*) \((.*)\)\s*$", line)
    return (match[1].split("+0x")[0], match[2].rsplit("/", 1)[-1]) if match else None


def place(frames: list[tuple[str, str]]) -> str:
    """What a sample counts for."""
    function, library = frames[0]
    if library.startswith("[") or library.endswith((".ko", "vmlinux")):
        inside = [name for name, where in frames if where == library or where.startswith("[")]
        return next(
            (words for pattern, words in KERNEL if any(re.search(pattern, n) for n in inside)),
            "kernel: the rest")
    for name, words in LIBRARIES:
        if library.startswith(name):
            return words
    if library.startswith("libc."):
        if re.search(r"mem(cpy|move|set|cmp)", function):
            return "copying memory (libc)"
        is_allocation = re.search(r"alloc|free|unlink_chunk", function)
        return "allocating memory (libc)" if is_allocation else "libc, the rest"
    if "BoringSSL" in function:
        return "hashing contents (swift-crypto)"
    if match := MODULE.search(function):
        length = int(match[1])
        return match[2][:length]
    return "the rest"


def table(shares: collections.Counter[str]) -> str:
    """The shares of a hundred, those above one."""
    total = sum(shares.values()) or 1
    lines = [f"| where | % of {total} samples |", "|---|--:|"]
    rest = 0
    for words, count in shares.most_common():
        if count * 100 < total:
            rest += count
        else:
            lines.append(f"| {words} | {count * 100 / total:.0f} |")
    return "\n".join([*lines, f"| all others | {rest * 100 / total:.0f} |"])
