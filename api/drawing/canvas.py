"""A finished picture: SVG elements, their size, and the style that all pictures share."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

FONT_SIZE = 13  # pixels
CHAR_WIDTH = 0.61 * FONT_SIZE  # of the monospaced fonts below, at most

STYLE = """
svg.maskwright { background: #ffffff; font: 13px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; }
.maskwright text { fill: #1f2430; }
.maskwright path { fill: none; stroke: #5b6472; stroke-width: 1.6; }
.maskwright .name { font-weight: 700; font-size: 15px; }
.maskwright .quiet { fill: #7a8291; font-size: 11px; }
.maskwright .text { fill: #e3f4e7; stroke: #3c9a57; }
.maskwright .set { fill: #e5eefc; stroke: #3d74c7; }
.maskwright .call { fill: #fff3d9; stroke: #c08a1e; }
.maskwright .pattern { fill: #f2e8fb; stroke: #8a55bd; }
.maskwright .state { fill: #ffffff; stroke: #3d74c7; stroke-width: 1.8; }
.maskwright .accepting { fill: #e3f4e7; stroke: #3c9a57; stroke-width: 1.8; }
.maskwright .dead { fill: #fde7e7; stroke: #c63f3f; stroke-width: 1.8; }
.maskwright .mark { fill: #5b6472; stroke: none; }
.maskwright path.aside { stroke: #b3bac6; stroke-dasharray: 4 3; }
.maskwright path.arrow { fill: #5b6472; stroke: none; }
.maskwright path.fail { stroke: #c63f3f; }
.maskwright a { text-decoration: none; cursor: pointer; }
"""


@dataclass(frozen=True)
class Drawing:
    """SVG elements in a box of so many pixels. links: (anchor, title) of its parts, for a table of contents."""

    width: float
    height: float
    body: str
    links: tuple[tuple[str, str], ...] = ()

    def svg(self) -> str:
        """The whole SVG document."""
        size = f'width="{self.width:.0f}" height="{self.height:.0f}" viewBox="0 0 {self.width:.0f} {self.height:.0f}"'
        head = f'<svg xmlns="http://www.w3.org/2000/svg" class="maskwright" {size}>'
        background = f'<rect width="{self.width:.0f}" height="{self.height:.0f}" fill="#ffffff"/>'
        return f"{head}<style>{STYLE}</style>{background}{self.body}</svg>\n"


def text_at(x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> str:
    """A line of text; y is its baseline."""
    kind = f' class="{kind}"' if kind else ""
    place = f' text-anchor="{anchor}"' if anchor != "start" else ""
    return f'<text x="{x:.1f}" y="{y:.1f}"{kind}{place} xml:space="preserve">{printable(text)}</text>'


def box_at(x: float, y: float, width: float, height: float, kind: str, radius: float) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="{radius:.1f}"'
    return f'<rect {place} class="{kind}"/>'


def path(steps: str, kind: str = "") -> str:
    return f'<path d="{steps}"{f" class={chr(34)}{kind}{chr(34)}" if kind else ""}/>'


def moved(x: float, y: float, body: str) -> str:
    return f'<g transform="translate({x:.1f} {y:.1f})">{body}</g>'


def printable(text: str) -> str:
    """A text for XML: characters that XML cannot hold, or that nobody sees, are shown as a sign."""
    return escape("".join(char if char.isprintable() else _sign(char) for char in text))


def _sign(char: str) -> str:
    return chr(0x2400 + ord(char)) if ord(char) < 0x20 else f"\\u{ord(char):04X}"


def anchor_of(name: str) -> str:
    """An id for a rule: its name where that is an id, else with codes for characters that ids cannot have."""
    return "rule-" + "".join(char if char.isascii() and (char.isalnum() or char in "_-") else f".{ord(char):x}" for char in name)


def width_of(text: str) -> float:
    return sum(CHAR_WIDTH if ord(char) < 0x1100 else 2 * CHAR_WIDTH for char in text)
