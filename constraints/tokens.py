"""Terminals that are one token of the vocabulary: the one place where front ends ask for them."""

from __future__ import annotations

import re

from .errors import UnsupportedKeyword
from .expression import EMPTY, Grammar, Node
from .vocabulary import token_spelling

_BY_ID = re.compile(r"<\[(\d{1,9})\]>")


def token_terminal(grammar: Grammar, spelling: str, *, line: int, column: int) -> Node:
    """The node of a special token as written, `<name>` or `<[id]>`; one that ends the output reads nothing.

    Raises `UnsupportedKeyword` for tokens that are text, for unknown names, and for `!<name>` (any token but that).
    """
    by_id = _BY_ID.fullmatch(spelling)
    token_id = int(by_id.group(1)) if by_id else grammar.special_tokens.get(spelling)
    if token_id in grammar.end_tokens:
        return EMPTY
    if token_id is None or token_id not in grammar.special_tokens.values():
        reason = "any token but one is not supported" if spelling.startswith("!") else "the vocabulary has no such special token"
        raise UnsupportedKeyword(
            reason, keyword=spelling, line=line, column=column,
            instead=f'the text of the token as a string, "{spelling.strip("!")}", where it is text',
        )  # fmt: skip
    return grammar.literal(token_spelling(token_id))
