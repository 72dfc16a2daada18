"""Options that are given by name: what is said of a name that is not known."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from difflib import get_close_matches
from typing import Any, ClassVar, Self

from .errors import UsageError


def unknown_name(kind: str, name: str, known: Iterable[str]) -> str:
    """The message about a name that is not known: the nearest ones, or all that there are where none is near."""
    names = list(known)
    near = get_close_matches(name, names, n=3, cutoff=0.7)
    return f'unknown {kind} "{name}"; ' + (f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(names)}")


def not_one_of(option: str, value: object, known: Iterable[str]) -> str:
    """The message about the value of an option that is none of those known, with the nearest ones."""
    names = list(known)
    near = get_close_matches(str(value), names, n=3, cutoff=0.7)
    return f'{option} must be one of {", ".join(names)}, got "{value}"' + (f"; did you mean {' or '.join(near)}?" if near else "")


class NamedOptions:
    """Base of a dataclass of options that users write down. `KIND` is what one of them is called in messages.

    Raises UsageError for an option that there is not, with the names that are near.
    """

    __slots__ = ()
    KIND: ClassVar[str] = "option"

    def __new__(cls, *values: Any, **options: Any) -> Self:
        known = [field.name for field in fields(cls)]  # type: ignore[arg-type]
        if values:
            raise UsageError(f"{cls.__name__} takes options by name, such as {known[0]}=..., not {values[0]!r}")
        for name in options:
            if name not in known:
                raise UsageError(unknown_name(cls.KIND, name, known))
        return super().__new__(cls)
