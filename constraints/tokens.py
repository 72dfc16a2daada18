"""Terminals that are one token of the vocabulary: the one place where front ends ask for them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from .errors import UnsupportedKeyword
from .expression import EMPTY, Grammar, Node
from .utf8 import ALL
from .vocabulary import token_spelling

_BY_ID = re.compile(r"<\[(\d{1,9})\]>")


def token_terminal(grammar: Grammar, spelling: str, *, line: int, column: int) -> Node:
    """The node of a special token as written, `<name>` or `<[id]>`; one that ends the output reads nothing.

    Raises `UnsupportedKeyword` for tokens that are text, and for unknown names.
    """
    token_id = _id_of(grammar, spelling, line, column)
    return EMPTY if token_id in grammar.end_tokens else grammar.literal(token_spelling(token_id))


def tokens_but(grammar: Grammar, spellings: Iterable[str], keyword: str, *, counted: bool, line: int, column: int) -> Node:
    """What any token but some may be, for a repetition without bounds: a character, or another special token.

    counted: it stands where it means one token. How many tokens a text takes is not a property of the text, so that is refused,
    and so is leaving out a token that is text. Raises `UnsupportedKeyword`.
    """
    if counted:
        reason = "one token that may be any text: a grammar says nothing about how many tokens a text takes"
        raise UnsupportedKeyword(reason, keyword=keyword, instead=f"({keyword})*", line=line, column=column)
    without = {_id_of(grammar, spelling, line, column) for spelling in spellings} | set(grammar.end_tokens)
    others = sorted(set(grammar.special_tokens.values()) - without)
    return grammar.alt(grammar.chars(ALL), *(grammar.literal(token_spelling(token_id)) for token_id in others))


def _id_of(grammar: Grammar, spelling: str, line: int, column: int) -> int:
    by_id = _BY_ID.fullmatch(spelling)
    token_id = int(by_id.group(1)) if by_id else grammar.special_tokens.get(spelling)
    if token_id is None or (token_id not in grammar.special_tokens.values() and token_id not in grammar.end_tokens):
        raise UnsupportedKeyword(
            "the vocabulary has no such special token", keyword=spelling, line=line, column=column,
            instead=f'the text of the token as a string, "{spelling}", where it is text',
        )  # fmt: skip
    return token_id
