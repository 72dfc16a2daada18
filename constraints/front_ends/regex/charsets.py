"""The sets of code points that regular expressions name: character classes, Unicode properties, equality without case.

What Python's `\\w`, `\\d`, `\\s` contain and which characters are equal without case is asked of `re` itself; Unicode properties
are asked of the `regex` package.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from ...base.errors import ConstraintError
from ...base.utf8 import ALL, MAX_CODE_POINT, Ranges, invert, normalize

DIGITS: Ranges = ((0x30, 0x39),)
ASCII_WORD: Ranges = normalize([(0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)])
ASCII_SPACE: Ranges = normalize([(0x09, 0x0D), (0x20, 0x20)])
NEWLINE: Ranges = ((0x0A, 0x0A),)
NOT_NEWLINE: Ranges = invert(NEWLINE)
# ECMA-262, 12.2 WhiteSpace and 12.3 LineTerminator: the separators of Unicode and the byte order mark
ECMA_LINE_ENDS: Ranges = normalize([(0x0A, 0x0A), (0x0D, 0x0D), (0x2028, 0x2029)])
ECMA_SPACE: Ranges = normalize(
    (ord(low), ord(high))
    for low, high in (
        ("\t", "\r"), (" ", " "), ("\xa0", "\xa0"), ("\u1680", "\u1680"), ("\u2000", "\u200a"), ("\u2028", "\u2029"),
        ("\u202f", "\u202f"), ("\u205f", "\u205f"), ("\u3000", "\u3000"), ("\ufeff", "\ufeff"),
    )
)  # fmt: skip
_BLOCK = 256
_TURKISH: Ranges = ((0x130, 0x131),)  # equal i for Python, and nothing by simple case folding


def python_class(letter: str, ascii_only: bool) -> Ranges:
    """What `\\d`, `\\w`, `\\s` (and `\\D`, `\\W`, `\\S`) match in a `str` pattern of Python."""
    kind = letter.lower()
    positive = {"d": DIGITS, "w": ASCII_WORD, "s": ASCII_SPACE}[kind] if ascii_only else _unicode_class(kind)
    return positive if letter == kind else invert(positive)


def ecma_class(letter: str) -> Ranges:
    """What `\\d`, `\\w`, `\\s` (and `\\D`, `\\W`, `\\S`) match in ECMA-262."""
    positive = {"d": DIGITS, "w": ASCII_WORD, "s": ECMA_SPACE}[letter.lower()]
    return positive if letter.islower() else invert(positive)


@lru_cache(maxsize=64)
def property_class(name: str) -> Ranges:
    """The characters with a Unicode property, as in `\\p{name}`. Raises `ConstraintError` when there is no such property."""
    import regex  # type: ignore[import-untyped]

    if name == "Any":
        return ALL
    if re.fullmatch(r"[A-Za-z0-9_]+(=[A-Za-z0-9_]+)?", name):
        try:
            pattern = regex.compile(rf"\p{{{name}}}+")
        except regex.error:
            pass
        else:
            return normalize((match.start(), match.end() - 1) for match in pattern.finditer(_all_characters()))
    raise ConstraintError(
        f"there is no Unicode property {name!r}", keyword=f"\\p{{{name}}}", instead="a set of characters"
    )


@lru_cache(maxsize=4096)
def ignoring_case(ranges: Ranges, ascii_only: bool) -> Ranges:
    """All characters that Python's `re.IGNORECASE` takes for one of `ranges`."""
    if not ranges:
        return ranges
    members = "".join(f"\\U{low:08x}-\\U{high:08x}" for low, high in ranges)
    flags = re.IGNORECASE | (re.ASCII if ascii_only else re.UNICODE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        found = re.compile(f"[{members}]", flags).finditer(_cased_characters())
    return normalize([*ranges, *((ord(match[0]), ord(match[0])) for match in found)])


def simply_ignoring_case(ranges: Ranges) -> Ranges:
    """`ranges` and all characters that are equal to one of them by simple case folding."""
    return normalize([*ranges, *_without(ignoring_case(_without(ranges, _TURKISH), ascii_only=False), _TURKISH)])


def _without(ranges: Ranges, others: Ranges) -> Ranges:
    return invert(normalize([*invert(ranges), *others]))


@lru_cache(maxsize=8)
def _unicode_class(kind: str) -> Ranges:
    return normalize((match.start(), match.end() - 1) for match in re.finditer(rf"\{kind}+", _all_characters()))


@lru_cache(maxsize=1)
def _all_characters() -> str:
    """The character of code point i at index i."""
    return np.arange(MAX_CODE_POINT + 1, dtype=np.uint32).tobytes().decode("utf-32", "surrogatepass")  # no object for each


@lru_cache(maxsize=1)
def _cased_characters() -> str:
    """All characters that are not the only one in their class of equality without case."""
    return "".join(char for block in _blocks() if _has_case(block) for char in block if _has_case(char))


def _blocks() -> Iterator[str]:
    text = _all_characters()
    return (text[start : start + _BLOCK] for start in range(0, len(text), _BLOCK))


def _has_case(text: str) -> bool:
    return not text == text.lower() == text.upper() == text.casefold()
