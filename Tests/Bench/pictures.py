"""Bar charts as SVG, legible on light and on dark pages."""

from dataclasses import dataclass
from html import escape

WIDTH = 860
LEFT = 400
BAR = 13
STEP = BAR + 4
TOP = 64
LONGEST = WIDTH - LEFT - 110

STYLE = """
text { font-family: system-ui, sans-serif; font-size: 13px; fill: #24292f; }
.title { font-size: 15px; font-weight: 600; }
.rclone { fill: #8c959f; } .sshfs, .davfs2, .juicefs { fill: #bf8700; } .oort { fill: #0969da; }
.line { stroke: #d0d7de; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; }
  .rclone { fill: #768390; } .sshfs, .davfs2, .juicefs { fill: #d29922; } .oort { fill: #58a6ff; }
  .line { stroke: #444c56; }
}
"""


@dataclass
class Bar:
    """One program's value; `text` is what stands beside it."""

    program: str
    value: float
    text: str


@dataclass
class Group:
    """The bars of one row, drawn in proportion to the longest of them."""

    words: str
    bars: list[Bar]


def lines(words: str, most: int = 56) -> list[str]:
    """A text in lines of at most so many characters."""
    found = [""]
    for word in words.split():
        if found[-1] and len(found[-1]) + 1 + len(word) > most:
            found.append("")
        found[-1] = f"{found[-1]} {word}".strip()
    return found


def chart(title: str, programs: dict[str, str], groups: list[Group]) -> str:
    """A picture of all groups, one below the other; the programs have their titles."""
    step = 8 + STEP * len(programs)
    height = TOP + step * len(groups) + 10
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(title)}">',
        f"<style>{STYLE}</style>",
        f'<text class="title" x="10" y="22">{escape(title)}</text>',
        *(f'<rect class="{program}" x="{LEFT + 110 * place}" y="34" width="12" height="12" rx="2"/>'
          f'<text x="{LEFT + 110 * place + 18}" y="45">{escape(words)}</text>'
          for place, (program, words) in enumerate(programs.items())),
        '<text x="10" y="45">Shorter is better, but for MB/s.</text>',
    ]
    for number, group in enumerate(groups):
        top = TOP + step * number
        parts.append(
            f'<line class="line" x1="10" x2="{WIDTH - 10}" y1="{top - 5}" y2="{top - 5}"/>')
        wrapped = lines(group.words)
        start = top + 20 - 8 * (len(wrapped) - 1)
        parts += [
            f'<text x="10" y="{start + 16 * index}">{escape(line)}</text>'
            for index, line in enumerate(wrapped)]
        longest = max((bar.value for bar in group.bars), default=0) or 1
        for index, bar in enumerate(group.bars):
            y = top + 1 + STEP * index
            width = max(1.0, LONGEST * bar.value / longest)
            parts.append(
                f'<rect class="{bar.program}" x="{LEFT}" y="{y}" width="{width:.1f}" '
                f'height="{BAR}" rx="2"/>'
                f'<text x="{LEFT + width + 6:.1f}" y="{y + 11}">{escape(bar.text)}</text>')
    return "\n".join([*parts, "</svg>", ""])
