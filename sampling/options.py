"""One entry of the table of sampling options, as the fields of `SamplingParams` write it down."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from types import NoneType, UnionType
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from ..kernels.sampler.parameters import Range
from .checks import SamplingError, checked_flag, checked_integer, checked_number, is_inside

Check = Callable[[str, object], Any]


@dataclass(frozen=True, slots=True)
class Option:
    """kind: float, int, bool, or how a collection is annotated. Numbers have bounds, the others a check."""

    name: str
    kind: Any
    is_optional: bool  # None is a value
    bounds: Range | None
    allowed: str  # of a number: which may be given, in words
    check: Check

    def checked(self, options: object) -> Any:
        """The value as sampling keeps it; `options` has it, and the others. Raises SamplingError."""
        value = getattr(options, self.name)
        if value is None and self.is_optional:
            return None
        if self.bounds is None:
            return self.check(self.name, value)
        number = (checked_integer if self.kind is int else checked_number)(self.name, value, self.allowed)
        if not is_inside(number, self.bounds, options):
            raise SamplingError(self.name, number, self.allowed)
        return number


def options_of(cls: type) -> tuple[Option, ...]:
    """The table of a dataclass. A field is `Annotated` with a `Range` or with a check; without either it is True or False."""
    hints = get_type_hints(cls, include_extras=True)
    return tuple(_option(each.name, hints[each.name]) for each in fields(cls))


def _option(name: str, hint: Any) -> Option:
    hint, *marks = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    is_optional = isinstance(hint, UnionType) and NoneType in get_args(hint)
    kind = next(each for each in get_args(hint) if each is not NoneType) if is_optional else hint
    bounds = next((mark for mark in marks if isinstance(mark, Range)), None)
    check = next((mark for mark in marks if callable(mark)), checked_flag)
    return Option(name, kind, is_optional, bounds, _allowed(kind, is_optional, bounds), check)


def _allowed(kind: Any, is_optional: bool, bounds: Range | None) -> str:
    if bounds is None:
        return ""
    said = str(bounds)
    number = "an integer" if kind is int else "a number" if said else "a finite number"
    return " ".join(filter(None, ["None or" if is_optional else "", number, said]))
