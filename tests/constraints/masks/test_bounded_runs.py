"""Bounded repetitions and tokens with runs of their characters, longer and shorter than what is left."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from maskwright.constraints import Compiler, JsonSchema, Regex, Vocabulary
from maskwright.constraints.grammar.source import Source
from maskwright.constraints.runtime.constraint import as_token_ids

SINGLE_BYTES = [bytes([byte]) for byte in range(256)]
RUNS = [1, 2, 3, 11, 12, 13, 17, 19, 20, 21, 30]
SPACES = [b" " * n for n in RUNS[1:]] + [b"\n" + b"\t" * n for n in RUNS]
PIECES = sorted(
    {
        *SPACES,
        *(head + space + tail for head, space, tail in itertools.product([b"", b'"', b"1", b"}", b"]", b":"], SPACES, [b"", b",", b"}", b'"'])),
        *(b'"' + b"a" * n + tail for n, tail in itertools.product(RUNS, [b"", b'"', b'",'])),
        *(b"a" * n for n in RUNS[1:]), *(b'a"' + b" " * n + b"," for n in RUNS), *("é".encode() * n + b'"' for n in RUNS),
    }
)  # fmt: skip
VOCABULARY = Vocabulary([*SINGLE_BYTES, *PIECES, None], eos_token_ids=[256 + len(PIECES)])
COMPILER, SLOW = Compiler(VOCABULARY), Compiler(VOCABULARY)  # the latter's constraints never make a mask

FLEXIBLE: dict[str, Any] = {"whitespace": "flexible"}
CASES: list[tuple[Source, list[bytes]]] = [
    (JsonSchema({"type": "array", "items": {"type": "integer"}}, **FLEXIBLE), [b"", b"[", b"[1", b"[1,", b"[1 ", b"[1" + b" " * 9, b"[" + b" " * 8]),
    (JsonSchema({"type": "object", "properties": {"a": {"type": "string"}, "b": {}}}, **FLEXIBLE), [b"{", b'{"a"', b'{"a":', b'{"a":"x', b'{"a":"x"']),
    (JsonSchema({"items": {"type": "string", "maxLength": 25}}, **FLEXIBLE), [b"[", b'["', b'["aaa', b'["' + b"a" * 13, b'["' + b"a" * 14, b'["a" ']),
    (JsonSchema({"items": {"type": "string", "minLength": 5, "maxLength": 40}}), [b"[", b'["', b'["aaa', b'["' + b"a" * 27, b'["' + b"a" * 30]),
    (Regex(r"(a{0,20}b){2}a{3,15}c"), [b"", b"a", b"aaaaab", b"bb", b"bbaaa", b"aaaaaaaab"]),
    (Regex(r'("[a-zé]{0,14}"\s{0,13},)*'), [b"", b'"', b'"a', b'"a"', b'"a" ', b'"a",']),
]  # fmt: skip


@pytest.mark.parametrize(("source", "texts"), CASES, ids=map(str, range(len(CASES))))
def test_masks_of_bounded_repetitions_equal_advancing_token_by_token(source: Source, texts: list[bytes]) -> None:
    constraint, slow = COMPILER.compile(source), SLOW.compile(source)
    for text in texts:
        state, slow_state = constraint.advance_bytes(constraint.start(), text), slow.advance_bytes(slow.start(), text)
        assert state is not None and slow_state is not None, text
        found = set(as_token_ids(constraint.mask(state)))
        expected = {token for token in range(VOCABULARY.size) if slow.advance(slow_state, token) is not None}
        assert found == expected, (text, [VOCABULARY.tokens[token] for token in found ^ expected])
