"""What is measured: every scenario with its rows."""

from collections.abc import Callable
from dataclasses import dataclass, field

from . import metadata, reading, trees, writing
from .cloud import SERVERS, SERVICES
from .programs import PEERS
from .stage import Stage

ALL = SERVICES + SERVERS


@dataclass(frozen=True)
class Row:
    """One figure of a scenario; less is better unless it is a rate."""

    key: str
    words: str
    unit: str = "s"

    @property
    def is_rate(self) -> bool:
        """Whether more is better."""
        return self.unit == "MB/s"


@dataclass(frozen=True)
class Scenario:
    """Something that people do, measured with both programs."""

    name: str
    run: Callable[[Stage], None]
    rows: list[Row]
    # Those that measure nothing of the service run at one service only.
    services: list[str] = field(default_factory=lambda: SERVICES)
    programs: list[str] = field(default_factory=lambda: ["rclone", "oort"])
    # Counts do not vary; what takes minutes is not repeated.
    is_once: bool = False
    is_in_quick: bool = False
    # The programs that only wait meanwhile, for answers or for news: at all services at once.
    waiting: list[str] = field(default_factory=list)

    def programs_at(self, service: str) -> list[str]:
        """The programs that are measured at a service."""
        peers = [PEERS[service]] if service in PEERS and "rclone" in self.programs else []
        return [*self.programs, *peers]

    def at(self, service: str) -> str:
        """What is said of the account before the rows' words."""
        if self.name != "large":
            return ""
        return "1,050,501 entries: " if service == "dropbox" else "220,201 entries: "

    @property
    def has_floors(self) -> bool:
        """Whether the local disk and the C passthrough are measured, too."""
        return self.name == "warm"


SCENARIOS = [
    Scenario("read", reading.read_through, [
        Row("read.whole", "256 MiB read from start to end, never read before", "MB/s"),
        Row("read.first", "the first byte of a file of 8 MiB, never read before")],
        services=ALL, is_in_quick=True),
    Scenario("small", reading.small_file_while_uploading, [
        Row("small.uploading", "a small file, never read, opened and read while 400 MiB go up")]),
    Scenario("random", reading.random_reads, [
        Row("random", "64 reads of 4 KB at random places in 1 GiB")],
        services=ALL, is_in_quick=True),
    Scenario("film", reading.film, [
        Row("film", "a film of 2 MB/s played from the middle while 400 MiB go up: the longest "
            "delay of a picture")], is_once=True),
    Scenario("write", writing.write_large, [
        Row("write", "256 MiB written, until the cloud has it")],
        services=ALL, is_in_quick=True),
    Scenario("files", writing.write_small, [
        Row("files", "500 files of 4 KB written, until the cloud has all")],
        services=ALL, is_in_quick=True),
    Scenario("tree", writing.write_tree, [
        Row("tree", "a tree of 2,000 files (26 MB) copied in, until the cloud has all")],
        waiting=["rclone"]),
    Scenario("find", trees.find_all, [
        Row("find.cold", "`find` over 11,001 entries right after the first mount"),
        Row("find.warm", "the same again"),
        Row("find.restart", "the same after a restart")],
        services=ALL, is_in_quick=True, waiting=["rclone"]),
    Scenario("tidy", writing.tidy, [
        Row("rm", "`rm -rf` of a folder of 500 files"),
        Row("rm.cloud", "the same, until the cloud has it"),
        Row("mv", "`mv` of a folder of 500 files"),
        Row("mv.cloud", "the same, until the cloud has it"),
        Row("cp", "`cp` of 256 MiB inside the account"),
        Row("cp.cloud", "the same, until the cloud has it")], waiting=["rclone"]),
    Scenario("killed", writing.killed_upload, [
        Row("killed", "200 MiB written, the process killed half-way: what goes up in all",
            "MB")]),
    Scenario("idle", trees.idle, [
        Row("idle", "nobody does anything, polled every 10 s: calls a minute", "calls")],
        programs=["oort"], is_once=True, waiting=["oort"]),
    Scenario("warm", metadata.warm, [
        Row("warm.find", "`find` over 11,001 entries"),
        Row("warm.ls", "`ls -l` of 10,000 entries"),
        Row("warm.git", "`git status` in a repository of 5,000 files"),
        Row("warm.rsync", "`rsync -n` of an unchanged tree of 5,000 files")],
        services=["dropbox"]),
    Scenario("large", trees.large_account, [
        Row("large.first", "the first `find`"),
        Row("large.restart", "the same after a restart"),
        Row("large.catalog", "the catalog on disk, an item", "bytes")],
        services=["drive"], programs=["oort"]),
]
