"""Draws `docs/generation.svg`: a real run of the embedded model, one box a token, coloured by what the constraint left free.

    python docs/draw_generation.py
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from maskwright import LLM
from maskwright.pieces import TokenPiece

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
from extract import Person

PROMPT = "Ada Lovelace, 36, lives in London."
CHARACTER, LINE, MARGIN, COLUMNS = 9.0, 30, 24, 68  # width of a character and height of a line in pixels; characters a line
FORCED, FREE = ("#e8eaed", "#6b7280"), ("#d1f2dc", "#0b6b35")  # (box, letters)


def main() -> None:
    pieces = [event for event in LLM().stream_tokens(PROMPT, schema=Person) if isinstance(event, TokenPiece)]
    target = Path(__file__).parent / "generation.svg"
    target.write_text(draw(pieces), encoding="utf-8")
    print(f"{target.name}: {len(pieces)} tokens, {sum(piece.is_forced for piece in pieces)} forced")


def draw(pieces: Sequence[TokenPiece]) -> str:
    """The whole picture: what was asked, the tokens, a legend."""
    rows = list(wrapped(pieces))
    height = MARGIN * 2 + LINE * (len(rows) + 3)
    width = MARGIN * 2 + COLUMNS * CHARACTER
    code = f"generate({PROMPT!r}, schema=Person)".replace("'", '"')
    body = [text(0, 0, code, "#24292f")]
    for index, row in enumerate(rows):
        body += [box(piece, column, index + 1.4) for column, piece in row]
    body += legend(pieces, len(rows) + 2)
    style = "font-family:ui-monospace,Menlo,Consolas,monospace;font-size:15px;white-space:pre"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" style="{style}">\n'
        f'<rect width="100%" height="100%" rx="10" fill="#ffffff" stroke="#d0d7de"/>\n' + "\n".join(body) + "\n</svg>\n"
    )


def wrapped(pieces: Sequence[TokenPiece]) -> Iterator[list[tuple[int, TokenPiece]]]:
    """Lines of (column, token)."""
    row: list[tuple[int, TokenPiece]] = []
    column = 0
    for piece in pieces:
        if row and column + len(piece.text) > COLUMNS:
            yield row
            row, column = [], 0
        row.append((column, piece))
        column += len(piece.text)
    yield row


def box(piece: TokenPiece, column: float, line: float) -> str:
    fill, colour = FORCED if piece.is_forced else FREE
    x, y, width = MARGIN + column * CHARACTER, MARGIN + line * LINE, len(piece.text) * CHARACTER
    frame = f'<rect x="{x + 0.5:.1f}" y="{y:.1f}" width="{width - 1:.1f}" height="{LINE - 6}" rx="4" fill="{fill}"/>'
    return frame + text(column, line, piece.text, colour)


def text(column: float, line: float, content: str, colour: str) -> str:
    x, y, width = MARGIN + column * CHARACTER, MARGIN + line * LINE + 17, len(content) * CHARACTER
    return f'<text x="{x:.1f}" y="{y:.1f}" textLength="{width:.1f}" fill="{colour}" xml:space="preserve">{escape(content)}</text>'


def legend(pieces: Sequence[TokenPiece], line: float) -> list[str]:
    num_forced = sum(piece.is_forced for piece in pieces)
    forced = f" {num_forced} tokens forced by the schema "
    free = f" {len(pieces) - num_forced} tokens chosen by the model "
    return [
        box(TokenPiece(0, forced, 1, is_forced=True), 0, line),
        box(TokenPiece(0, free, 2, is_forced=False), len(forced) + 2, line),
    ]


if __name__ == "__main__":
    main()
