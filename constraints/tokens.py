"""Terminals that are one token of the vocabulary: the one place where front ends ask for them."""

from __future__ import annotations

from .errors import UnsupportedKeyword
from .expression import Grammar, Node


def token_terminal(grammar: Grammar, spelling: str, *, line: int, column: int) -> Node:
    """The node of a token as written: `<name>`, `<[id]>`, `!<name>`. Raises `UnsupportedKeyword`."""
    raise UnsupportedKeyword(
        "single tokens as terminals are not supported yet", keyword=spelling, line=line, column=column,
        instead=f'the text of the token as a string, "{spelling.strip("!")}", where it is text',
    )  # fmt: skip
