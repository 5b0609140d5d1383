"""Bytes and names for random histories."""

import hashlib
import random

# No two are one name where case or composition does not count.
FILE_NAMES = [
    "notes.txt", "report.pdf", "Grüße an alle.md", "文字.txt", "Привет мир.docx", "مرحبا.csv",
    "नमस्ते.json", "🌍 photo.jpeg", ".hidden", "no extension", "a.tar.gz", "x", "日本語の長い名前.dat",
    "it's \"quoted\".txt", "100% & more #1.html", "שלום.bin", "Ελλάδα.odt", "l" * 120 + ".txt",
]
FOLDER_NAMES = ["src", "Bücher", "照片 2026", "Документы", "build.d", "مجلد", "empty ones", "z"]
# What a link's small file is called at a service that has no links, behind the link's name.
LINK_ENDING = ".rclonelink"


def file_names(refused):
    """The names without the characters that a service refuses."""
    return [name for name in FILE_NAMES if not set(name) & set(refused)]


def made(seed, number, size):
    """The bytes of a write: of equal arguments the same, else different from all others."""
    head = f"<{seed}/{number}>".encode()
    body = random.Random(f"{seed}/{number}").randbytes(max(0, size - len(head)))
    return (head + body)[:size]


def spelled(seed, number, size):
    """A text of so many bytes that no program writes, since the services' edits take texts only."""
    head = f"<{seed}/stock {number}> "
    return (head + random.Random(head).randbytes(size // 2 + 1).hex())[:size]


def digest(data):
    return hashlib.sha256(data).hexdigest()


EMPTY = digest(b"")


def random_size(random, large):
    """Mostly small, sometimes nothing; `large` lets some be too large for one request."""
    chance = random.random()
    if chance < 0.05:
        return 0
    if chance < 0.45:
        return random.randint(20, 200)
    if chance < 0.75:
        return random.randint(200, 5_000)
    if chance < 0.94 or not large:
        return random.randint(5_000, 60_000)
    if chance < 0.985:
        return random.randint(60_000, 400_000)
    return random.randint(5_000_000, 7_000_000)
