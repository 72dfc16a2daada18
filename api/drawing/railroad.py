"""Railroad diagrams of the rules of a grammar: follow the line from left to right, every way through is a text.

Pieces are laid out children first. A piece is entered at (0, 0) and left at (width, 0).
"""

from __future__ import annotations

from typing import NamedTuple

from ..constraints.grammar.components import components
from ..constraints.lab.facts import reached
from ..constraints.lab.outline import (
    Call,
    Chars,
    Choice,
    Outline,
    Part,
    Pattern,
    Repeat,
    Series,
    Text,
    calls,
    fold,
    quoted,
)
from .canvas import FONT_SIZE, Drawing, anchor_of, box_at, moved, path, printable, text_at, width_of

_R = 10  # radius of curves
_BOX = 26  # height of a box
_GAP = 14  # of line between two pieces
_BETWEEN = 12  # free height between two lines
_WIDEST = 1000  # a row of pieces, before it is broken
_MARGIN = 24
_LONGEST = 48  # characters in a box


class Piece(NamedTuple):
    """Elements with the height above and below the line."""

    width: float
    up: float
    down: float
    body: str


def railroad(outline: Outline) -> Drawing:
    """All rules, those that the start calls behind it in the order of need; what is never reached comes last."""
    y, width = float(_MARGIN), 0.0
    bodies: list[str] = []
    links: list[tuple[str, str]] = []
    for name in _order(outline):
        piece = fold(outline.rules[name].body, _piece)
        links.append((anchor_of(name), name))
        number = f"line {outline.line(outline.rules[name].at)}"
        title = text_at(0, 12, name, "name") + text_at(width_of(name) * 1.4 + 14, 12, number, "quiet")
        ends = path(f"M0 0h{_GAP}") + path(f"M{_GAP + piece.width:.1f} 0h{_GAP}")
        line = moved(8, 0, ends + moved(_GAP, 0, piece.body))
        end = piece.width + 2 * _GAP + 8
        marks = f'<circle cx="4" cy="0" r="5" class="mark"/><circle cx="{end + 4:.1f}" cy="0" r="5" class="mark"/>'
        middle = 28 + piece.up
        bodies.append(f'<g id="{anchor_of(name)}">{moved(_MARGIN, y, title + moved(0, middle, line + marks))}</g>')
        y += middle + piece.down + 30
        width = max(width, end + 8, width_of(name) * 1.4 + 90)
    return Drawing(width + 2 * _MARGIN, y, "".join(bodies), tuple(links))


def _order(outline: Outline) -> list[str]:
    graph = {outline.start: calls(outline.rules[outline.start]), **{name: calls(rule) for name, rule in outline.rules.items()}}
    callers_first = [name for group in reversed(components(graph)) for name in group]
    used = reached(outline)
    return sorted(callers_first, key=lambda name: (name not in used, callers_first.index(name)))


def _piece(part: Part, below: list[Piece]) -> Piece:
    if isinstance(part, Text):
        return _box(quoted(part.text), "text") if part.text else _nothing()
    if isinstance(part, Chars):
        return _box(part.spelling, "set")
    if isinstance(part, Pattern):
        return _box(part.spelling, "pattern")
    if isinstance(part, Call):
        box = _box(part.name, "call", radius=3)
        return box._replace(body=f'<a href="#{anchor_of(part.name)}">{box.body}</a>')
    if isinstance(part, Series):
        return _series(below) if below else _nothing()
    if isinstance(part, Choice):
        return _choice(below) if below else _box("nothing at all", "dead")
    return _repeat(below[0], part)


def _nothing() -> Piece:
    return Piece(2 * _R, 4, 4, path(f"M0 0h{2 * _R}"))


def _box(text: str, kind: str, radius: float = _BOX / 2) -> Piece:
    shown = text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."
    width = width_of(shown) + 22
    title = f"<title>{printable(text)}</title>" if shown != text else ""
    label = text_at(width / 2, FONT_SIZE / 3, shown, anchor="middle")
    return Piece(width, _BOX / 2, _BOX / 2, f"<g>{title}{box_at(0, -_BOX / 2, width, _BOX, kind, radius)}{label}</g>")


def _series(pieces: list[Piece]) -> Piece:
    rows: list[list[Piece]] = [[]]
    for piece in pieces:
        if rows[-1] and _row_width([*rows[-1], piece]) > _WIDEST:
            rows.append([])
        rows[-1].append(piece)
    joined = [_row(row) for row in rows]
    return joined[0] if len(joined) == 1 else _broken(joined)


def _row_width(pieces: list[Piece]) -> float:
    return sum(piece.width for piece in pieces) + _GAP * (len(pieces) - 1)


def _row(pieces: list[Piece]) -> Piece:
    x, body = 0.0, ""
    for i, piece in enumerate(pieces):
        if i:
            body += path(f"M{x:.1f} 0h{_GAP}")
            x += _GAP
        body += moved(x, 0, piece.body)
        x += piece.width
    return Piece(x, max(piece.up for piece in pieces), max(piece.down for piece in pieces), body)


def _broken(rows: list[Piece]) -> Piece:
    """Rows below each other: the line goes back from the end of one to the beginning of the next, and from the last one up."""
    inner = max(row.width for row in rows)
    y, body = 0.0, ""
    for i, row in enumerate(rows):
        body += moved(_R, y, row.body)
        if i == 0:
            body += path(f"M0 0h{_R}")
        if i + 1 < len(rows):
            back, following = y + row.down + _BETWEEN, rows[i + 1].up + _BETWEEN
            right = inner + _R
            body += path(
                f"M{_R + row.width:.1f} {y:.1f}H{right:.1f}q{_R} 0 {_R} {_R}V{back - _R:.1f}q0 {_R} {-_R} {_R}"
                f"H{_R}q{-_R} 0 {-_R} {_R}V{back + following - _R:.1f}q0 {_R} {_R} {_R}"
            )
            y = back + following
    last = rows[-1]
    end = inner + 4 * _R
    body += path(f"M{_R + last.width:.1f} {y:.1f}H{end - 2 * _R:.1f}q{_R} 0 {_R} {-_R}V{_R}q0 {-_R} {_R} {-_R}")
    return Piece(end, rows[0].up, y + last.down, body)


def _choice(options: list[Piece]) -> Piece:
    inner = max(option.width for option in options)
    width, y, body = inner + 4 * _R, 0.0, ""
    for i, option in enumerate(options):
        if i:
            y += options[i - 1].down + _BETWEEN + option.up
            body += path(f"M0 0q{_R} 0 {_R} {_R}V{y - _R:.1f}q0 {_R} {_R} {_R}")
            body += path(f"M{width - 2 * _R:.1f} {y:.1f}q{_R} 0 {_R} {-_R}V{_R}q0 {-_R} {_R} {-_R}")
        else:
            body += path(f"M0 0h{2 * _R}") + path(f"M{width - 2 * _R:.1f} 0h{2 * _R}")
        body += moved(2 * _R, y, option.body)
        if option.width < inner:
            body += path(f"M{2 * _R + option.width:.1f} {y:.1f}H{2 * _R + inner:.1f}")
    return Piece(width, options[0].up, y + options[-1].down, body)


def _repeat(inner: Piece, part: Repeat) -> Piece:
    if part.high == 0:
        return _nothing()
    piece = inner if part.high == 1 else _loop(inner, part)
    return _bypass(piece) if part.low == 0 else piece


def _loop(inner: Piece, part: Repeat) -> Piece:
    """The line goes back below: any number of copies, or as many as it says."""
    label = _times(part.low, part.high)
    middle = max(inner.width, width_of(label))
    width, y = middle + 4 * _R, inner.down + _BETWEEN
    start = 2 * _R + (middle - inner.width) / 2
    body = path(f"M0 0H{start:.1f}") + moved(start, 0, inner.body) + path(f"M{start + inner.width:.1f} 0H{width:.1f}")
    body += path(
        f"M{width - 2 * _R:.1f} 0q{_R} 0 {_R} {_R}V{y - _R:.1f}q0 {_R} {-_R} {_R}"
        f"H{2 * _R}q{-_R} 0 {-_R} {-_R}V{_R}q0 {-_R} {_R} {-_R}"
    )
    body += path(f"M{width / 2 - 5:.1f} {y:.1f}l8 -4.5v9z", "arrow")
    if label:
        body += text_at(width / 2, y + 14, label, "quiet", "middle")
    return Piece(width, inner.up, y + (18 if label else 4), body)


def _bypass(inner: Piece) -> Piece:
    """A way above a piece that leaves it out."""
    width, y = inner.width + 4 * _R, inner.up + _BETWEEN
    body = path(f"M0 0h{2 * _R}") + moved(2 * _R, 0, inner.body) + path(f"M{width - 2 * _R:.1f} 0h{2 * _R}")
    body += path(
        f"M0 0q{_R} 0 {_R} {-_R}V{_R - y:.1f}q0 {-_R} {_R} {-_R}H{width - 2 * _R:.1f}q{_R} 0 {_R} {_R}V{-_R}q0 {_R} {_R} {_R}"
    )
    return Piece(width, y + 4, inner.down, body)


def _times(low: int, high: int | None) -> str:
    """The number of copies in words; nothing where the picture says it."""
    if high is None:
        return f"at least {low} times" if low > 1 else ""
    return f"{low} times" if low == high else f"{max(low, 1)} to {high} times"
