"""What every request body has in common: no parameter is unknown, none is converted, and all text is text. A number without a
fraction is an integer, however it is written: some languages write all numbers as 7.0."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from math import isfinite
from typing import Any, ClassVar, Literal, Self, get_args, get_origin

from pydantic import (
    BaseModel,
    ConfigDict,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    PrivateAttr,
    ValidationError,
    model_validator,
)
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from .errors import ApiError

HALF_PAIR = " contains half of a surrogate pair"
EMPTY: list[Any] = [None, False, "", []]  # what asks for nothing, whatever the parameter
MOST_EXACT = 2.0**53  # below it every integer is a number of its own as a float
STATUS = "x-maskwright"  # in the OpenAPI document: whether a parameter is honoured, ignored or refused


class Body(BaseModel):
    """A parameter that is not known is refused by name. JSON can write half of a surrogate pair, which no tokenizer can read."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, strict=True)
    place: ClassVar[str] = ""  # of a body inside of another one: what its parameters' names begin with
    _ignored: list[str] = PrivateAttr(default_factory=list)
    refused: ClassVar[Mapping[str, str]] = {}  # parameters of other servers, and what to do instead; a class adds to its bases
    neutral: ClassVar[Mapping[str, tuple[Any, ...]]] = {}  # of parameters that are refused or unknown: values that ask for nothing
    renamed: ClassVar[Mapping[str, str]] = {}  # parameters by other servers' names, and by ours

    @model_validator(mode="after")
    def note_ignored(self) -> Self:
        """Note what is given and has no effect."""
        for name in self.model_fields_set:
            ignored = next((each for each in type(self).model_fields[name].metadata if isinstance(each, Ignored)), None)
            if ignored is not None and not ignored.is_neutral(getattr(self, name)):
                self._ignored.append(name)
        return self

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Says of each parameter whether it is honoured, ignored or refused."""
        made = handler.resolve_ref_schema(handler(schema))
        said = {name: f"Refused: {advice}." for name, advice in cls._declared_refused().items()}
        refused: Any = {
            name: {"enum": [*EMPTY, *cls._neutral_values(name)], "description": reason, STATUS: "refused"}
            for name, reason in said.items()
        }
        for name, own in cls._names_of_others().items():
            made["properties"][name] = {**made["properties"][own], "description": f"{own}, as other servers call it."}
        for form in made.get("properties", {}).values():
            form.setdefault(STATUS, "honoured")
        made["properties"] = {**made.get("properties", {}), **refused}
        if made.get("additionalProperties") is False:
            made["additionalProperties"] = {"enum": EMPTY}
        return made

    @property
    def ignored(self) -> list[str]:
        """Places in the request that were read and have no effect; a header of the answer names them."""
        return self._ignored

    @model_validator(mode="before")
    @classmethod
    def check_given(cls, given: Any) -> Any:
        for place, reason in _unsayable(given):
            place = cls.place + place
            raise ApiError(400, place + reason, param=place, code="invalid_value")
        if not isinstance(given, dict):
            return given
        whole, given = integers_of(cls), cls._by_our_names(given)
        return cls._without_refused({name: _whole(value) if name in whole else value for name, value in given.items()})

    @classmethod
    def _by_our_names(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters, none by another server's name. Where ours is given too, it counts."""
        named = dict(given)
        for name, own in cls._names_of_others().items():
            value = named.pop(name, None)
            if not cls._asks_nothing(name, value):
                named.setdefault(own, value)
        return named

    @classmethod
    def _names_of_others(cls) -> dict[str, str]:
        """Those of parameters that this class has."""
        return {name: own for name, own in cls.renamed.items() if own in cls.model_fields and name not in cls.model_fields}

    @classmethod
    def _without_refused(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        refused = cls._declared_refused()
        others = [name for name in given if name not in cls.model_fields]
        kept = {name: value for name, value in given.items() if name not in others or not cls._asks_nothing(name, value)}
        for name in others:
            full = cls.place + name
            if name in kept and name in refused:
                raise ApiError(400, f"{full} is not supported: {refused[name]}", param=full, code="unsupported_parameter")
            if name in kept:
                near = get_close_matches(name, cls.model_fields, n=1, cutoff=0.75)
                hint = f"; did you mean {near[0]}?" if near else "; /docs shows those that there are"
                raise ApiError(400, f"unknown parameter: {full}{hint}", param=full, code="unknown_parameter")
        return kept

    @classmethod
    def _declared_refused(cls) -> dict[str, str]:
        """What this class and its bases refuse, but for what a class reads itself."""
        declared: dict[str, str] = {}
        for base in reversed(cls.__mro__):
            declared |= base.__dict__.get("refused", {})
        return {name: advice for name, advice in declared.items() if name not in cls.model_fields}

    @classmethod
    def _asks_nothing(cls, name: str, value: Any) -> bool:
        return is_empty(value) or any(same(value, each) for each in cls._neutral_values(name))

    @classmethod
    def _neutral_values(cls, name: str) -> tuple[Any, ...]:
        return next((base.__dict__["neutral"][name] for base in cls.__mro__ if name in base.__dict__.get("neutral", {})), ())


@cache
def integers_of(body: type[BaseModel]) -> frozenset[str]:
    """The parameters that are integers, or lists of them, and no other numbers."""
    kinds = {name: set(_kinds(field.annotation)) for name, field in body.model_fields.items()}
    return frozenset(name for name, found in kinds.items() if int in found and float not in found)


def _kinds(annotation: Any) -> Iterator[Any]:
    yield annotation
    for inner in () if get_origin(annotation) is Literal else get_args(annotation):
        yield from _kinds(inner)


def _whole(value: Any, depth: int = 2) -> Any:
    """depth: of lists inside of one another; no parameter has more."""
    if isinstance(value, list) and depth:
        return [_whole(each, depth - 1) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < MOST_EXACT else value


def is_empty(value: Any) -> bool:
    """Whether a value asks for nothing, whatever the parameter."""
    return any(type(value) is type(empty) and value == empty for empty in EMPTY)


def same(value: Any, other: Any) -> bool:
    """Equal, and a truth value only to a truth value."""
    return bool(value == other) and isinstance(value, bool) == isinstance(other, bool)


@dataclass(frozen=True, slots=True)
class Ignored:
    """Of a parameter that is read and has no effect: why. A header of the answer names it where its value asks for something."""

    reason: str
    neutral: tuple[Any, ...] = ()  # values, beside those that are empty, which ask for nothing
    is_empty_neutral: bool = True  # whether false and the like ask for nothing

    def is_neutral(self, value: Any) -> bool:
        empty = value is None or (self.is_empty_neutral and (is_empty(value) or value == {}))
        return empty or any(same(value, each) for each in self.neutral)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {**handler(schema), "description": f"Ignored: {self.reason}", STATUS: "ignored"}


@dataclass(frozen=True, slots=True)
class Because:
    """Of a parameter that has one meaning here: why no other value is taken, and what to do. It is its description too."""

    reason: str

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_wrap_validator_function(self._check, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {**handler(schema), "description": self.reason}

    def _check(self, value: Any, inner: core_schema.ValidatorFunctionWrapHandler) -> Any:
        try:
            return inner(value)
        except ValidationError:
            raise PydanticCustomError("unsupported", "{reason}", {"reason": self.reason}) from None


def _unsayable(given: Any) -> Iterator[tuple[str, str]]:
    """Places of what JSON's parser has read and no answer can say again, with the reason: halves of surrogate pairs, and numbers
    that are none, which Python writes as NaN or reads out of 1e999."""
    pending = [("", given)]
    while pending:
        place, value = pending.pop()
        if isinstance(value, dict):
            for name, member in value.items():
                if not _is_text(name):
                    yield place or "a name", HALF_PAIR
                pending.append((f"{place}.{name}" if place else name, member))
        elif isinstance(value, list):
            pending += [(f"{place}[{index}]", member) for index, member in enumerate(value) if not isinstance(member, int)]
        elif isinstance(value, str) and not _is_text(value):
            yield place, HALF_PAIR
        elif isinstance(value, float) and not isfinite(value):
            yield place, ": Input should be a finite number"


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
