"""The slow twin of the search for ambiguity: all derivations of one short text, by trying everything."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from maskwright.constraints.lab.outline import Call, Chars, Choice, Outline, Part, Repeat, Series, Text

FUEL = 9  # rules and copies inside each other


def derivations(outline: Outline, rule: str, text: str, most: int = 3) -> list[Any]:
    """Up to `most` different derivation trees of `text` as a whole."""
    found: list[Any] = []
    for end, tree in islice(_part(outline, outline.rules[rule].body, text, 0, FUEL), 4_000):
        if end == len(text) and tree not in found:
            found.append(tree)
            if len(found) == most:
                break
    return found


def _part(outline: Outline, part: Part, text: str, at: int, fuel: int) -> Iterator[tuple[int, Any]]:
    if fuel < 0:
        return
    if isinstance(part, Text):
        if text.startswith(part.text, at):
            yield at + len(part.text), part.text
    elif isinstance(part, Chars):
        if at < len(text) and any(low <= ord(text[at]) <= high for low, high in part.ranges):
            yield at + 1, text[at]
    elif isinstance(part, Call):
        for end, tree in _part(outline, outline.rules[part.name].body, text, at, fuel - 1):
            yield end, (part.name, tree)
    elif isinstance(part, Series):
        yield from _series(outline, part.parts, text, at, fuel)
    elif isinstance(part, Choice):
        for i, option in enumerate(part.options):
            for end, tree in _part(outline, option, text, at, fuel):
                yield end, (i, tree)
    elif isinstance(part, Repeat):
        yield from _copies(outline, part, 0, text, at, fuel)


def _series(outline: Outline, parts: tuple[Part, ...], text: str, at: int, fuel: int) -> Iterator[tuple[int, Any]]:
    if not parts:
        yield at, ()
        return
    for middle, first in _part(outline, parts[0], text, at, fuel):
        for end, rest in _series(outline, parts[1:], text, middle, fuel):
            yield end, (first, *rest)


def _copies(outline: Outline, part: Repeat, count: int, text: str, at: int, fuel: int) -> Iterator[tuple[int, Any]]:
    if fuel < 0:
        return
    if count >= part.low:
        yield at, ()
    if part.high is None or count < part.high:
        for middle, first in _part(outline, part.body, text, at, fuel - 1):
            for end, rest in _copies(outline, part, count + 1, text, middle, fuel - 1):
                yield end, (first, *rest)
