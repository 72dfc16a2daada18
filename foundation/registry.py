"""Named things of one kind, to which plugins add."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from typing import Any, Generic, TypeVar

from .errors import UsageError
from .option_names import unknown_name

T = TypeVar("T")


class Saveable:
    """What can be made again of keyword arguments, and so be saved under the name by which its class is registered."""

    def parameters(self) -> Mapping[str, Any]:
        """Keyword arguments, as JSON has them, that make this object again: the fields of a dataclass.

        Raises UsageError for one that cannot be saved.
        """
        if not is_dataclass(self):
            raise UsageError("it has no `parameters` that would make it again")
        return {field.name: getattr(self, field.name) for field in fields(self) if field.init}


class Registry(Mapping[str, T], Generic[T]):
    """What there is of one kind, by name: what ships first, then what was registered, in that order.

        POLICIES.register("shortest", shortest)          a name for a value
        @POLICIES.register("shortest")                   the same as a decorator

    Options that are given by name look here when they are checked, so what is registered by then may be chosen.
    """

    def __init__(
        self, kind: str, built_in: Mapping[str, T] | None = None, *, needs: str = "", fits: Callable[[Any], bool] = callable
    ) -> None:
        """kind: what one of them is called in messages. needs: what a value has to be, in words; fits: whether it is that."""
        self.kind, self.needs = kind, needs
        self._fits, self._values = fits, dict(built_in or {})
        self._built_in = frozenset(self._values)

    def __getitem__(self, name: str) -> T:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(tuple(self._values))

    def __len__(self) -> int:
        return len(self._values)

    def find(self, name: str) -> T:
        """The value of a name. Raises UsageError with the names that are near."""
        if name not in self._values:
            raise UsageError(unknown_name(self.kind, name, self._values))
        return self._values[name]

    def made(self, name: str, option: str) -> Any:
        """What a registered class, or function, makes without arguments. Raises UsageError for a name that there is not, and where
        it cannot; option: where the name was given."""
        make: Any = self.find(name)
        try:
            return make()
        except Exception as error:
            raise UsageError(f'{option}: "{name}" cannot be made by its name alone: {type(error).__name__}: {error}') from error

    def name_of(self, value: object) -> str | None:
        """The name under which a value is registered, None where it is not."""
        return next((name for name, each in self._values.items() if each is value), None)

    def is_built_in(self, name: str) -> bool:
        """Whether a name ships with the package."""
        return name in self._built_in

    def called(self, value: object) -> str:
        """What an object is called in messages: by its `name`, as its class is registered, or as its class."""
        named = getattr(value, "name", None)
        return named if isinstance(named, str) and named else self.name_of(type(value)) or type(value).__name__

    def saved_form(self, value: object) -> tuple[str, dict[str, Any]]:
        """(registered name of its class, parameters) of an object. Raises UsageError for one that cannot be saved."""
        refusal = f'{self.kind} "{self.called(value)}" cannot be saved: '
        parameters = getattr(value, "parameters", None)
        if parameters is None:
            raise UsageError(f"{refusal}it has no method `parameters`")
        try:
            found = json.loads(json.dumps(dict(parameters())))
        except (UsageError, TypeError, ValueError) as error:
            raise UsageError(f"{refusal}{error}") from None
        name = self.name_of(type(value))
        if name is None:
            raise UsageError(f"{refusal}{type(value).__name__} is not registered; `register` gives it a name")
        return name, found

    def register(self, name: str, value: T | None = None) -> Any:
        """Give a value a name, and return it; without a value, a decorator that does so.

        Raises UsageError for a name that another value has, and for a value of another kind.
        """
        if value is None:
            return lambda decorated: self.register(name, decorated)
        if not isinstance(name, str) or not name or name != name.strip():
            raise UsageError(f"a {self.kind} is registered under a name, a str without spaces around it, not {name!r:.80}")
        if self._values.get(name, value) is not value:
            raise UsageError(f'there is a {self.kind} "{name}" already; register yours under another name')
        if not self._fits(value):
            raise UsageError(f'the {self.kind} "{name}" has to be {self.needs}, not {value!r:.80}')
        self._values[name] = value
        return value

    def unregister(self, name: str) -> None:
        """Forget what was registered. Raises UsageError for a name that there is not, or that ships."""
        if name in self._built_in:
            raise UsageError(f'the {self.kind} "{name}" ships with the package and cannot be removed')
        self.find(name)
        del self._values[name]

    @contextmanager
    def registered(self, name: str, value: T) -> Iterator[T]:
        """A value under a name for a while."""
        self.register(name, value)
        try:
            yield value
        finally:
            self.unregister(name)
