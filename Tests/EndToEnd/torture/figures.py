"""What was done, added up over histories."""

import collections
import dataclasses


@dataclasses.dataclass
class Figures:
    histories: int = 0
    operations: int = 0
    foreign_edits: int = 0
    kills: int = 0
    remounts: int = 0
    weathers: int = 0
    bytes_written: int = 0
    bytes_sent: int = 0
    conflict_copies: int = 0
    stranded: int = 0
    # (program, the one right after it) -> how often.
    pairs: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    faults: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    failures: collections.Counter = dataclasses.field(default_factory=collections.Counter)

    def __iadd__(self, other):
        for field in dataclasses.fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))
        return self

    def __str__(self):
        lines = [
            f"histories        {self.histories:,}",
            f"operations       {self.operations:,} by programs, {self.foreign_edits:,} by others",
            f"kills            {self.kills:,} (kill -9), {self.remounts:,} ordinary remounts",
            f"weather          {self.weathers:,} changes",
            f"bytes            {self.bytes_written:,} closed, {self.bytes_sent:,} sent",
            f"conflict copies  {self.conflict_copies:,}",
            f"stranded         {self.stranded:,} (docs/reliability.md, what is not promised)",
            f"pairs            {len(self.pairs):,} different ones, {self.pairs.total():,} in all",
            "faults           " + (", ".join(
                f"{kind} {count:,}" for kind, count in sorted(self.faults.items())) or "none"),
        ]
        for kind in ("lost", "doubled", "unequal", "other"):
            lines.append(f"{kind:16} {self.failures[kind]:,}")
        return "\n".join(lines)
