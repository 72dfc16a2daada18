"""Terminals that are one token of the vocabulary: the one place where front ends ask for them.

A special token is bytes that no text has. Of a token that is text, and of any token but some, the text alone does not say whether
it is one token: such a terminal is a rule of its own whose budget is one whole token (`stages.py`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from ..base.errors import UnsupportedKeyword
from ..base.utf8 import ALL
from ..vocabulary.vocabulary import Vocabulary, token_spelling
from .expression import EMPTY, FAIL, Grammar, Node
from .stages import ONE_TOKEN, Budgets

NO_SUCH_TOKEN = "the vocabulary has no such token"
_ONE_ID = re.compile(r"<\[(\d{1,9})\]>")
_BY_ID = re.compile(r"<\[(?P<but>\^?)(?P<ids>\*|\d{1,9}(?:-\d{1,9})?(?:,\d{1,9}(?:-\d{1,9})?)*)\]>")


def tell_vocabulary(grammar: Grammar, vocabulary: Vocabulary) -> None:
    """Give a grammar what front ends may ask it about the vocabulary."""
    grammar.special_tokens, grammar.end_tokens = vocabulary.special_tokens, frozenset(vocabulary.eos_token_ids)
    grammar.vocabulary = vocabulary


def token_terminal(grammar: Grammar, spelling: str, budgets: Budgets, *, line: int, column: int) -> Node:
    """The node of a token as written: `<name>`, or ids as `<[1]>`, `<[1,3-5]>`, `<[^1]>` (any but these), `<[*]>`. A
    token that ends the output reads nothing.

    Raises `UnsupportedKeyword` for unknown names and ids.
    """
    by_id = _BY_ID.fullmatch(spelling)
    if by_id is None or (by_id["ids"].isdecimal() and not by_id["but"]):
        return one_of_tokens(grammar, {token_of(grammar, spelling, line, column)}, budgets)
    bounds = [part.split("-") for part in by_id["ids"].split(",") if part != "*"]
    last = max((int(pair[-1]) for pair in bounds), default=0)
    if last >= len(grammar.spellings) or any(int(pair[0]) > int(pair[-1]) for pair in bounds) or spelling == "<[^*]>":
        raise _unknown(spelling, line, column)
    ids = {token for pair in bounds for token in range(int(pair[0]), int(pair[-1]) + 1)}
    if by_id["but"] or by_id["ids"] == "*":
        return tokens_but(grammar, ids, budgets, repeated=False)
    return one_of_tokens(grammar, {token for token in ids if is_token(grammar, token)}, budgets)


def tokens_but(grammar: Grammar, without: Collection[int], budgets: Budgets, *, repeated: bool) -> Node:
    """One token whose text is whole characters, but none of `without`.

    repeated: it stands under a repetition without bounds. Then it is a character or another special token, for which no
    tokens are counted, unless a token is left out that is text.
    """
    special = {*grammar.special_tokens.values(), *grammar.end_tokens}
    others = [grammar.literal(token_spelling(token)) for token in sorted(special - {*without, *grammar.end_tokens})]
    left_out = {token for token in without if token not in special}
    if repeated and not left_out:
        return grammar.alt(grammar.chars(ALL), *others)
    texts = grammar.without(grammar.repeat(grammar.chars(ALL), 1), grammar.words(_texts(grammar, left_out)))
    return grammar.alt(one_token(grammar, texts, budgets), *others)


def one_of_tokens(grammar: Grammar, tokens: Iterable[int], budgets: Budgets) -> Node:
    """One of some tokens, which may be special tokens or text."""
    tokens = set(tokens)
    special = tokens & {*grammar.special_tokens.values(), *grammar.end_tokens}
    nodes = [EMPTY if token in grammar.end_tokens else grammar.literal(token_spelling(token)) for token in sorted(special)]
    texts = _texts(grammar, tokens - special)
    return grammar.alt(*nodes, *([one_token(grammar, grammar.words(texts), budgets)] if texts else []))


def one_token(grammar: Grammar, texts: Node, budgets: Budgets) -> Node:
    """A node for those of some texts that are the whole text of a token, each read as that token."""
    if texts == FAIL:
        return FAIL
    key = "one token", texts
    if key not in grammar.memo:
        rule = grammar.rule("one token")
        grammar.define(rule, texts)
        grammar.memo[key] = grammar.call(rule)
    budgets[grammar.memo[key]] = ONE_TOKEN
    return grammar.memo[key]


def token_of(grammar: Grammar, spelling: str, line: int | None = None, column: int | None = None) -> int:
    """The id of a token as written. Raises `UnsupportedKeyword` for one that the vocabulary does not have."""
    by_id = _ONE_ID.fullmatch(spelling)
    found = int(by_id[1]) if by_id else grammar.special_tokens.get(spelling)
    if found is None:
        text = spelling.encode("utf-8", "surrogatepass")
        found = next((token for token, spelled in enumerate(grammar.spellings) if spelled == text), None)
    if found is None or not is_token(grammar, found):
        raise _unknown(spelling, line, column)
    return found


def _unknown(spelling: str, line: int | None, column: int | None) -> UnsupportedKeyword:
    return UnsupportedKeyword(
        NO_SUCH_TOKEN, keyword=spelling, line=line, column=column,
        instead=f'the text of the token as a string, "{spelling}", where it is text',
    )  # fmt: skip


def is_special(grammar: Grammar, token: int) -> bool:
    """Whether a token is not text."""
    return token in grammar.end_tokens or token in grammar.special_tokens.values()


def is_token(grammar: Grammar, token: int) -> bool:
    """Whether an id is a token that may stand in an output or end it."""
    spellings = grammar.spellings
    return is_special(grammar, token) or (0 <= token < len(spellings) and bool(spellings[token]))


def _texts(grammar: Grammar, tokens: Iterable[int]) -> list[bytes]:
    return [spelled for token in tokens if (spelled := grammar.spellings[token])]
