"""One of some given strings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ...base.errors import ConstraintError, ConstraintLimit
from ...grammar.expression import Grammar, Node
from ...grammar.source import Limits
from ...runtime.front_end import FrontEnd


@dataclass(frozen=True, slots=True, init=False)
class Choice(FrontEnd):
    """Exactly one of `options`, which are strings; repeated ones count once, their order does not matter.

    >>> Choice(["yes", "no"])
    Choice(options=('yes', 'no'))
    """

    options: tuple[str, ...]

    def __init__(self, options: Iterable[str]) -> None:
        """Raises `ConstraintError` for anything but a collection of one or more strings that have a UTF-8 form."""
        if isinstance(options, str | bytes) or not isinstance(options, Iterable):
            given = "a single one" if isinstance(options, str | bytes) else type(options).__name__
            raise ConstraintError(f"a choice is a collection of strings, not {given}", instead=f"Choice([{str(options)!r}])")
        listed = tuple(options)
        if not listed:
            raise ConstraintError("a choice among nothing", instead="at least one string")
        for index, option in enumerate(listed):
            _check(index, option)
        object.__setattr__(self, "options", tuple(dict.fromkeys(listed)))

    def lower(self, grammar: Grammar, limits: Limits) -> Node:
        """The options as a prefix tree. Raises `ConstraintLimit` beyond `limits.enum_values` options."""
        if len(self.options) > limits.enum_values:
            raise ConstraintLimit(f"{len(self.options)} options", limit="enum_values", value=limits.enum_values)
        return grammar.words(option.encode() for option in self.options)


def _check(index: int, option: object) -> None:
    if not isinstance(option, str):
        raise ConstraintError(f"option {index} is {option!r}, not a string", instead=f"{str(option)!r}")
    try:
        option.encode()
    except UnicodeEncodeError:
        raise ConstraintError(
            f"option {index} contains half of a surrogate pair", instead="a string that has a UTF-8 form"
        ) from None
