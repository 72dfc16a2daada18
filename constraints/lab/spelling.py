"""Spelling: how a tokenizer writes a grammar's strings; bytes that it cannot spell, strings that it would write
otherwise."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from ..grammar.expression import Kind
from ..grammar.recursion import reachable
from ..runtime.constraint import Constraint
from ..runtime.explanation import byte_set
from ..vocabulary.vocabulary import Vocabulary
from .facts import reached
from .findings import NOTE, WARNING, Finding
from .outline import Outline, Text, quoted, walk

Encode = Callable[[str], Sequence[int]]  # the tokenizer's own way to split a text, without tokens around it

_MANY_TOKENS = 3  # for one character: the vocabulary has no token for it


def spelling_findings(constraint: Constraint, outline: Outline | None, encode: Encode | None) -> Iterator[Finding]:
    """All findings about a constraint that compiles for the tokenizer's vocabulary."""
    unspelled = unspelled_bytes(constraint)
    if unspelled:
        shown = byte_set(unspelled)
        message = f"the vocabulary has no token for some bytes that the grammar allows, which are never generated: {shown}"
        yield Finding(WARNING, "tokenizer", message)
    if outline is None or encode is None:
        return
    used = reached(outline)
    for name, rule in outline.rules.items():
        for part in walk(rule.body) if name in used else ():
            if isinstance(part, Text) and part.text:
                problem = text_problem(part.text, constraint.vocabulary, encode)
                if problem is not None:
                    level, what = problem
                    yield Finding(level, "tokenizer", f"{quoted(part.text)}: {what}", name, outline.line(part.at))


def text_problem(text: str, vocabulary: Vocabulary, encode: Encode) -> tuple[str, str] | None:
    """(level, what is wrong) of a string of the grammar for a tokenizer; None when nothing is."""
    ids = list(encode(text))
    special = [name for name, token_id in vocabulary.special_tokens.items() if token_id in ids and name in text]
    if special:
        what = f"the tokenizer reads {special[0]} as a special token, but the grammar asks for its characters"
        return WARNING, f"{what}; write the token itself, <{special[0].strip('<>')}> without quotes"
    spelled = b"".join(vocabulary.spellings[token_id] or b"" for token_id in ids)
    data = text.encode()
    if spelled not in (data, b" " + data):  # some tokenizers put a blank before every text
        what = f"no canonical tokenisation, the tokenizer would write {spelled.decode('utf-8', 'replace')!r} instead"
        return WARNING, what
    if len(text) * _MANY_TOKENS <= len(ids) and len(ids) >= _MANY_TOKENS:
        return NOTE, f"takes {len(ids)} tokens, byte by byte: the vocabulary has none for these characters"
    return None


def unspelled_bytes(constraint: Constraint) -> list[int]:
    """Bytes that the constraint would allow somewhere and no token of the vocabulary spells alone."""
    automaton = constraint._automaton
    if automaton.shared_vocabulary.spells_every_byte:
        return []
    missing = set(np.flatnonzero(~automaton.shared_vocabulary.single_bytes[:256]).tolist())
    grammar, found = automaton.grammar, set[int]()
    for node in reachable(grammar, automaton.root):
        if grammar.kind(node) is Kind.LITERAL:
            found.update(grammar.literal_bytes(node))
        elif grammar.kind(node) is Kind.CLASS:
            for low, high, _ in grammar.class_edges(node):
                found.update(range(low, high + 1))
    return sorted(found & missing)
