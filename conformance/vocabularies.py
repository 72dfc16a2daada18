"""The tokens that all backends are asked about, and the ways in which a text is cut into them."""

from __future__ import annotations

import random
from functools import cache

from ..constraints import Vocabulary

# Tokens that end in the middle of something: punctuation of JSON with what stands around it, beginnings of keys and literals,
# parts of characters, runs of spaces and digits. Each has a byte of one side and a byte of the other side of a boundary.
_MERGED = [
    '{"', '":', '": ', '", "', '","', '"}', '"},', '"]', '["', '[{"', "}]", "}}", "]}", "],", '": "', '":"', '":{', '": {',
    '": [', '": -', ', "', ',"', "{}", "[]", '""', "\\\"", "\\u", "\\n", "\\u00", 'a":', "ab", "abc", "bc", "aa", "aaa",
    "aaaa", 'b"', 'a"}', "null", "nul", "ul", "true", "tru", "e}", "false", "als", "12", "123", "10", "00", "000", "1.", ".5",
    "-1", "1e", "e+", "0}", "1}", "1]", "1,", "2, ", " 1", ": 1", "  ", "   ", "\n", "\n\n", "\t", " {", " }", " [", ' "',
    "the", " the", "er", "in", "ing", "tion", "name", '"name', "age", "id", "<t", "<tool", "tool>", "</", "</t", "><", ">{",
    "}<", "()", "((", "))", "(1", "+1", "1+", "*(", "red", "re", "ed", "green", "gre", "een", "blue", "lue", "reda", "é", "ß",
    "日", "本", "日本", "😀", "a😀", 'é"', '"é', "2026", "-01", "-02", "T0", ":0", 'Z"', "yes", "no", "ye", "esno",
]  # fmt: skip
_PARTS = [b"\xf0\x9f", b"\x98\x80", b"\xe6\x97", b"a\xc3", b"\xa9\"", b"\x80\"", b"\"\xf0", b"\x80\x80"]
SPECIAL = ["<|im_start|>", "<|im_end|>", "<|tool|>", "<tool_call>"]
EOS = "<|eos|>"
NUM_RANDOM_CUTS = 3


@cache
def vocabulary(name: str) -> Vocabulary:
    """Of "merged": every byte, tokens across boundaries, special tokens, EOS, ids that are no text. Of "bytes": every byte, EOS."""
    tokens: list[bytes | None] = [bytes([byte]) for byte in range(256)]
    if name == "bytes":
        return Vocabulary([*tokens, EOS.encode()], eos_token_ids=[256])
    tokens += [*(text.encode() for text in dict.fromkeys(_MERGED)), *_PARTS]
    special = {text: len(tokens) + number for number, text in enumerate([*SPECIAL, EOS])}
    tokens += [*(text.encode() for text in special), None, None]
    return Vocabulary(tokens, eos_token_ids=[special.pop(EOS)], special_tokens=special)


def cuts(data: bytes, tokens: Vocabulary, seed: str) -> list[list[int]]:
    """Ways to write `data` in tokens: by bytes, by the longest tokens, and some at random; each once."""
    rng = random.Random(seed)
    ways = [_cut(data, tokens, lambda found: found[0]), _cut(data, tokens, lambda found: found[-1])]
    ways += [_cut(data, tokens, rng.choice) for _ in range(NUM_RANDOM_CUTS)]
    return [list(way) for way in dict.fromkeys(map(tuple, ways))]


@cache
def _ids(tokens: Vocabulary) -> dict[bytes, int]:
    return {token: number for number, token in enumerate(tokens.text_tokens) if token is not None}


def _cut(data: bytes, tokens: Vocabulary, choose: object) -> list[int]:
    ids, longest = _ids(tokens), 16
    way, at = [], 0
    while at < len(data):
        ends = [end for end in range(at + 1, min(at + longest, len(data)) + 1) if data[at:end] in ids]
        end = choose(ends)  # type: ignore[operator]
        way.append(ids[data[at:end]])
        at = end
    return way
