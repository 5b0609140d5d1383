"""Where secrets must not be: logs, what commands say, arguments of processes, files of others."""

import os
import re
import stat

# What a token, a code, a verifier or the end of a secret address may consist of.
WORD = re.compile(rb"[A-Za-z0-9._~+/=-]{16,}")
# Files up to this size are read; what programs wrote themselves lies in larger ones.
MOST_BYTES = 32 << 20


def found(data, secrets):
    """The secrets that stand in some bytes."""
    words = set()
    for word in WORD.findall(data):
        words.update((word, word.rsplit(b"/", 1)[-1], word.rsplit(b"=", 1)[-1], word.rstrip(b".")))
    return sorted(words & secrets)


def arguments(process):
    """The arguments of a process, which everybody may read."""
    try:
        with open(f"/proc/{process}/cmdline", "rb") as file:
            return file.read()
    except OSError:
        return b""


def leaks(machine, secrets, addresses):
    """Where one of the secrets is and must not be, in words.

    The addresses of upload sessions are what lets an upload go on after a restart: the catalog has
    them, for its owner alone. Tokens lie in the token store and nowhere else.
    """
    told = []
    spoken = "\0".join(machine.said).encode("utf-8", "surrogateescape")
    every = secrets | addresses
    for place, data in (
        ("the log", machine.log().encode()), ("what commands said", spoken),
        ("a process's arguments", b"\0".join(machine.processes)),
    ):
        told += [f"{place}: {secret.decode()}" for secret in found(data, every)]
    for folder, _, names in os.walk(machine.folder):
        if machine.mount_point.as_posix() in folder:
            continue
        for name in names:
            path = os.path.join(folder, name)
            try:
                status = os.lstat(path)
                if not stat.S_ISREG(status.st_mode) or status.st_size > MOST_BYTES:
                    continue
                with open(path, "rb") as file:
                    hits = found(file.read(), every)
            except OSError:
                continue
            if not hits:
                continue
            place = os.path.relpath(path, machine.state)
            if status.st_mode & 0o077:
                told.append(f"{place} is readable by others and has {hits[0].decode()}")
            if place.startswith("tokens/"):
                continue
            allowed = addresses if place.startswith("catalog.sqlite") else set()
            told += [f"{place}: {hit.decode()}" for hit in hits if hit not in allowed]
    return told
