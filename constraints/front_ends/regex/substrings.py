"""All runs of neighbouring pieces of a text: the meaning of `substring_chunks`, `substring_words` and `substring_chars`.

A suffix automaton (Blumer et al., "The smallest automaton recognizing the subwords of a text", 1985) over the pieces has at most
twice as many states as there are pieces, where a list of all runs would have their square.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ...base.errors import ConstraintError, ConstraintLimit
from ...grammar.source import Limits
from .tree import Alternate, CharSet, Concat, Tree

_WORDS = re.compile(r"\w+|\W", re.DOTALL)
_KEYS = ("substring_chunks", "substring_words", "substring_chars")


def structured_regex(options: Any, limits: Limits) -> Tree:
    """The meaning of a `%regex {...}` of llguidance. Raises `ConstraintError`, `ConstraintLimit`."""
    if not isinstance(options, dict) or len(options) != 1 or next(iter(options)) not in _KEYS:
        raise ConstraintError("it takes exactly one of its keys", keyword="%regex", instead=" or ".join(_KEYS))
    key: str = next(iter(options))
    value: Any = options[key]
    takes_list = key == "substring_chunks"
    pieces = value if isinstance(value, list) == takes_list and isinstance(value, list | str) else [None]
    if not all(isinstance(piece, str) for piece in pieces):
        what = "a list of strings" if takes_list else "a string"
        raise ConstraintError(f"{key} is {what}", keyword=key)
    return runs_of(_WORDS.findall(value) if key == "substring_words" else list(value), limits)


def runs_of(pieces: Sequence[str], limits: Limits) -> Tree:
    """`pieces[n:m]` joined, for every n and m."""
    if len(pieces) > limits.enum_values:
        raise ConstraintLimit(f"a text of {len(pieces)} pieces", limit="enum_values", value=limits.enum_values)
    edges, order = _suffix_automaton([piece for piece in pieces if piece])
    texts = {piece: Concat(tuple(CharSet(((ord(char), ord(char)),)) for char in piece)) for piece in set(pieces)}
    trees: list[Tree] = [Concat(())] * len(edges)
    for state in order:
        options = [Concat((texts[piece], trees[target])) for piece, target in edges[state].items()]
        trees[state] = Alternate((Concat(()), *options)) if options else Concat(())
    return trees[0]


def _suffix_automaton(pieces: Sequence[str]) -> tuple[list[dict[str, int]], list[int]]:
    """The transitions of every state, and the states with those that they lead to first."""
    edges: list[dict[str, int]] = [{}]
    link, length, last = [-1], [0], 0
    for piece in pieces:
        new = len(edges)
        edges.append({})
        length.append(length[last] + 1)
        link.append(0)
        at = last
        while at >= 0 and piece not in edges[at]:
            edges[at][piece] = new
            at = link[at]
        if at >= 0:
            target = edges[at][piece]
            if length[target] == length[at] + 1:
                link[new] = target
            else:
                copy = len(edges)
                edges.append(dict(edges[target]))
                length.append(length[at] + 1)
                link.append(link[target])
                while at >= 0 and edges[at].get(piece) == target:
                    edges[at][piece] = copy
                    at = link[at]
                link[target] = link[new] = copy
        last = new
    return edges, sorted(range(len(edges)), key=lambda state: -length[state])
