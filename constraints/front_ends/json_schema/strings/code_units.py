"""Characters by their numbers, as escapes of JSON: `\\uXXXX`, two of them beyond 16 bits (RFC 8259, 7)."""

from __future__ import annotations

from ....base.utf8 import MAX_CODE_POINT, Ranges
from ....grammar.expression import EMPTY, FAIL, Grammar, Node

_WIDE = 0x10000  # from here on an escape is two: a high and a low surrogate, with 10 bits each
_HIGH, _LOW, _BITS = 0xD800, 0xDC00, 0x400
_HEX = tuple((ord(low), ord(high)) for low, high in ("09", "AF", "af"))


def numbered(grammar: Grammar, ranges: Ranges, cases: str = "xX") -> list[Node]:
    """What may follow the backslash of an escape of some characters: those of 16 bits in one node, which reads every byte in one
    way only, and pairs of surrogates. cases: of digits; "x" for the one spelling that is compared."""
    narrow = tuple((low, min(high, _WIDE - 1)) for low, high in ranges if low < _WIDE)
    wide = tuple((max(low, _WIDE), high) for low, high in ranges if high >= _WIDE)
    pairs = [
        grammar.seq(four_digits(grammar, high, cases), grammar.literal("\\"), four_digits(grammar, low, cases))
        for low, high in _surrogates(wide).items()
    ]
    return [four_digits(grammar, narrow, cases), *pairs]


def four_digits(grammar: Grammar, ranges: Ranges, cases: str = "xX") -> Node:
    """`uXXXX` for each of some characters of 16 bits; FAIL for none."""
    return grammar.seq(grammar.literal("u"), _digits(grammar, ranges, 4, cases)) if ranges else FAIL


def _digits(grammar: Grammar, ranges: Ranges, count: int, cases: str) -> Node:
    """The numbers of some ranges as `count` hexadecimal digits. There are four at most, so recursion is not deep."""
    size = 16 ** (count - 1)
    if ranges == ((0, 16 * size - 1),) and cases == "xX":
        return grammar.repeat(grammar.bytes_in(_HEX), count, count)
    key, memo = ("hexadecimal", ranges, count, cases), grammar.memo
    if key not in memo:
        by_rest: dict[Ranges, list[tuple[int, int]]] = {}
        for digit in range(16):
            first = digit * size
            rest = tuple(
                (max(low - first, 0), min(high - first, size - 1))
                for low, high in ranges if low < first + size and high >= first
            )  # fmt: skip
            if rest:
                spelled = {ord(format(digit, case)) for case in cases}
                by_rest.setdefault(rest, []).extend((byte, byte) for byte in spelled)
        memo[key] = grammar.alt(*(
            grammar.seq(grammar.bytes_in(digits), _digits(grammar, rest, count - 1, cases) if count > 1 else EMPTY)
            for rest, digits in by_rest.items()
        ))  # fmt: skip
    return memo[key]


def _surrogates(ranges: Ranges) -> dict[Ranges, Ranges]:
    """Characters beyond 16 bits as pairs: for some low surrogates, the high ones that may come before them."""
    pairs: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for first, last in ranges:
        (top, start), (bottom, end) = divmod(first - _WIDE, _BITS), divmod(min(last, MAX_CODE_POINT) - _WIDE, _BITS)
        if top == bottom:
            pairs.setdefault((start, end), []).append((top, top))
            continue
        if start > 0:
            pairs.setdefault((start, _BITS - 1), []).append((top, top))
        if end < _BITS - 1:
            pairs.setdefault((0, end), []).append((bottom, bottom))
        whole = top + (start > 0), bottom - (end < _BITS - 1)
        if whole[0] <= whole[1]:
            pairs.setdefault((0, _BITS - 1), []).append(whole)
    return {
        ((_LOW + low, _LOW + high),): tuple((_HIGH + first, _HIGH + last) for first, last in sorted(tops))
        for (low, high), tops in pairs.items()
    }

