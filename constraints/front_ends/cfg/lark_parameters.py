"""Parameters of rules in llguidance's variant of lark's notation: `rule::_`, `rule::incr(_)`, `%if lt(_, 6)`.

A rule with a parameter stands for one rule per value that is reached. Values are 64 bits, comparisons unsigned, ranges of bits
half open. Source: llguidance, docs/parametric.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from ...base.errors import ConstraintError

BITS = 64
_MASK = (1 << BITS) - 1
_PIECES = re.compile(r"\s*(?:(?P<number>0[xX][0-9a-fA-F]+|[0-9]+)|(?P<name>[A-Za-z_]\w*)|(?P<other>[\[\]():,]))")


class Range(NamedTuple):
    """The bits from `low` to before `high` of the parameter."""

    low: int
    high: int

    def of(self, value: int) -> int:
        return (value >> self.low) & self.full

    @property
    def full(self) -> int:
        return (1 << (self.high - self.low)) - 1


WHOLE = Range(0, BITS)
Term = tuple[Any, ...]  # (name, argument, ...), where an argument is a number, a Range or a term


def _increased(value: int, bits: Range) -> int:
    return value if bits.of(value) == bits.full else (value + (1 << bits.low)) & _MASK


def _decreased(value: int, bits: Range) -> int:
    return value if bits.of(value) == 0 else value - (1 << bits.low)


_VALUES: dict[str, tuple[type, Callable[[int, Any], int]]] = {
    "set_bit": (int, lambda value, bit: value | 1 << bit),
    "clear_bit": (int, lambda value, bit: value & ~(1 << bit)),
    "bit_and": (int, lambda value, mask: value & mask),
    "bit_or": (int, lambda value, mask: value | mask),
    "incr": (Range, _increased),
    "decr": (Range, _decreased),
}
_COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b, "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
}  # fmt: skip
_SIGNATURES: dict[str, tuple[type, ...]] = {
    "true": (), "bit_clear": (int,), "bit_set": (int,), "is_ones": (Range,), "is_zeros": (Range,), "not": (tuple,),
    "and": (tuple, tuple), "or": (tuple, tuple),
    **dict.fromkeys(_COMPARISONS, (Range, int)), **{f"bit_count_{name}": (Range, int) for name in _COMPARISONS},
}  # fmt: skip


class Parameter:
    """What stands behind `::` where a rule is used: a number, `_`, or a function of the parameter."""

    def __init__(self, text: str) -> None:
        self.term = _parsed(text)
        if isinstance(self.term, tuple) and not isinstance(self.term, Range):
            name, arguments = self.term[0], self.term[1:]
            takes: type = _VALUES[name][0] if name in _VALUES else type(None)
            if len(arguments) != 1 or type(arguments[0]) is not takes:
                known = ", ".join(_VALUES)
                raise ConstraintError(f"{text!r} is no value of a parameter", instead=f"a number, _ or one of {known}")
            if name.endswith("_bit"):
                _check_bit(self.term[1])

    @property
    def needs_value(self) -> bool:
        """Whether it depends on the parameter of the rule it stands in."""
        return not isinstance(self.term, int)

    def of(self, value: int) -> int:
        """The parameter that is handed on where the rule's own is `value`."""
        if isinstance(self.term, int):
            return self.term
        if isinstance(self.term, Range):
            return self.term.of(value)
        return _VALUES[self.term[0]][1](value, self.term[1])


class Condition:
    """What stands behind `%if`."""

    def __init__(self, text: str) -> None:
        self.term = _parsed(text)
        work = [self.term]
        while work:
            term = work.pop()
            if not isinstance(term, tuple) or isinstance(term, Range) or term[0] not in _SIGNATURES:
                raise ConstraintError(f"{text!r} is no condition", instead=f"one of {', '.join(_SIGNATURES)}")
            name, *arguments = term
            kinds = _SIGNATURES[name]
            fits = len(arguments) == len(kinds) and all(
                isinstance(argument, kind) and (kind is not tuple or not isinstance(argument, Range))
                for argument, kind in zip(arguments, kinds, strict=True)
            )
            if not fits:
                raise ConstraintError(f"the arguments of {name} in {text!r} are not what it takes")
            if name in ("bit_clear", "bit_set"):
                _check_bit(arguments[0])
            work.extend(argument for argument, kind in zip(arguments, kinds, strict=True) if kind is tuple)

    def holds(self, value: int) -> bool:
        """Whether the condition is true of a parameter. Inner conditions are evaluated first, on a stack."""
        results: dict[int, bool] = {}
        work = [self.term]
        while work:
            term = work[-1]
            missing = [part for part in term[1:] if type(part) is tuple and id(part) not in results]
            if missing:
                work.extend(missing)
                continue
            results[id(work.pop())] = _truth(
                term, value, [results[id(part)] for part in term[1:] if type(part) is tuple]
            )
        return results[id(self.term)]


def _truth(term: Term, value: int, parts: list[bool]) -> bool:
    name, *arguments = term
    if name in ("and", "or", "not", "true"):
        return not parts[0] if name == "not" else any(parts) if name == "or" else all(parts)
    if name in ("bit_clear", "bit_set"):
        return bool(value >> arguments[0] & 1) == (name == "bit_set")
    bits = arguments[0].of(value)
    if name in ("is_ones", "is_zeros"):
        return bits == (arguments[0].full if name == "is_ones" else 0)
    found = bits.bit_count() if name.startswith("bit_count_") else bits
    return _COMPARISONS[name.removeprefix("bit_count_")](found, arguments[1])


def _check_bit(bit: int) -> None:
    if bit >= BITS:
        raise ConstraintError(f"a parameter has {BITS} bits, so there is no bit {bit}")


def _parsed(text: str) -> Any:
    """A number, a Range, or a term, read with a stack."""
    pieces = _pieces(text)
    stack: list[list[Any]] = [[]]
    index = 0
    while index < len(pieces):
        kind, piece = pieces[index]
        following = pieces[index + 1][1] if index + 1 < len(pieces) else ""
        if kind == "number":
            stack[-1].append(int(piece, 0) & _MASK)
        elif kind == "name" and following == "(":
            stack.append([piece])
            index += 1
        elif kind == "name":
            stack[-1].append(WHOLE if piece == "_" else (piece,))
        elif piece == "[":
            stack[-1].append(_range(pieces[index : index + 5], text))
            index += 4
        elif piece == ")" and len(stack) > 1:
            stack[-2].append(tuple(stack.pop()))
        elif piece != "," or len(stack) == 1:
            raise ConstraintError(f"unexpected {piece!r} in {text!r}")
        index += 1
    if len(stack) != 1 or len(stack[0]) != 1:
        raise ConstraintError(f"{text!r} is no parameter or condition")
    return stack[0][0]


def _range(pieces: list[tuple[str, str]], text: str) -> Range:
    shape = "".join(piece if kind == "other" else kind for kind, piece in pieces)
    if shape != "[number:number]":
        raise ConstraintError(f"a range of bits is written [0:8], not as in {text!r}")
    low, high = int(pieces[1][1], 0), int(pieces[3][1], 0)
    if not 0 <= low < high <= BITS:
        raise ConstraintError(f"there are no bits [{low}:{high}] of a parameter", instead=f"bits within [0:{BITS}]")
    return Range(low, high)


def _pieces(text: str) -> list[tuple[str, str]]:
    found, index, text = [], 0, text.rstrip()
    while index < len(text):
        match = _PIECES.match(text, index)
        if match is None:
            raise ConstraintError(f"unexpected {text[index]!r} in {text!r}")
        found.append((match.lastgroup or "", match[match.lastgroup or 0]))
        index = match.end()
    return found
