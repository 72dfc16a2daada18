"""Python types: what a type's texts are, compared with what Pydantic validates."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import json
import typing
import uuid
from decimal import Decimal
from typing import Annotated, Any, Literal, NamedTuple, NotRequired

import pydantic
import pytest
from pydantic import BaseModel, ConfigDict, Field
from typing_extensions import TypedDict

from maskwright.constraints.base.errors import ConstraintError
from maskwright.constraints.front_ends.json_schema.json_schema import JsonSchema
from maskwright.constraints.front_ends.json_schema.types import adapter, schema_of, validate
from maskwright.constraints.grammar.expression import Grammar
from maskwright.constraints.grammar.reference import Reference
from maskwright.constraints.grammar.source import Limits


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Address(BaseModel):
    street: str
    zip: Annotated[str, Field(pattern=r"^\d{5}$")]


class Person(BaseModel):
    name: Annotated[str, Field(min_length=1, max_length=8)]
    age: Annotated[int, Field(ge=0, le=150)]
    address: Address | None = None
    tags: list[str] = []


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    a: int


class Tree(BaseModel):
    value: int
    children: list[Tree] = []


class Cat(BaseModel):
    kind: Literal["cat"] = "cat"
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]
    name: str


class Owner(BaseModel):
    pet: Annotated[Cat | Dog, Field(discriminator="kind")]


class Movie(TypedDict):
    title: str
    year: NotRequired[int]


class OldMovie(typing.TypedDict, total=False):
    title: typing.Required[str]
    year: int


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0
    movies: list[Movie] = dataclasses.field(default_factory=list)


class Pair(NamedTuple):
    a: int
    b: str = "x"


def reference(type_: Any) -> Reference:
    grammar = Grammar()
    return Reference(grammar, JsonSchema(type_).lower(grammar, Limits()))


CASES: list[tuple[Any, list[str], list[str]]] = [
    (
        Person,
        ['{"name":"Ada","age":36}', '{"name":"Ada","age":36,"address":{"street":"a","zip":"12345"},"tags":["x"]}',
         '{"name":"Ada","age":0,"address":null}'],
        ['{"name":"","age":36}', '{"name":"Ada","age":151}', '{"name":"Ada","age":36,"extra":1}', '{"age":36,"name":"Ada"}',
         '{"name":"Ada","age":36,"address":{"street":"a","zip":"1234"}}', '{"name":"Ada"}'],
    ),
    (Open, ['{"a":1}', '{"a":1,"b":[{}]}'], ['{"b":1}', '{"a":1,"b":1,"b":2}']),
    (Tree, ['{"value":1}', '{"value":1,"children":[{"value":2,"children":[{"value":3}]}]}'], ['{"value":1,"children":[1]}']),
    (Owner, ['{"pet":{"kind":"cat","lives":9}}', '{"pet":{"kind":"dog","name":"x"}}'],
     ['{"pet":{"lives":9}}', '{"pet":{"kind":"dog","lives":9}}']),
    (Movie, ['{"title":"x"}', '{"title":"x","year":1999}'], ['{"year":1999}', '{"title":"x","z":1}']),
    (OldMovie, ['{"title":"x"}', '{"title":"x","year":1999}'], ['{"year":1999}', '{"title":"x","z":1}']),
    (list[OldMovie], ['[{"title":"x"}]'], ['[{}]']),
    (Point, ['{"x":1}', '{"x":1,"y":2,"movies":[{"title":"a"}]}'], ['{"y":2}', '{"x":1,"z":2}']),
    (Pair, ['[1]', '[1,"b"]'], ['[]', '["b"]', '[1,"b",2]']),
    (Literal[1, "a", None], ['1', '"a"', 'null'], ['2', '"b"', 'true']),
    (Color, ['"red"', '"blue"'], ['"RED"', '"green"']),
    (Color | None, ['"red"', 'null'], ['0']),
    (list[Annotated[int, Field(multiple_of=1)]], ['[]', '[1,-2]'], ['[1.5]', '[,]']),
    (tuple[int, str], ['[1,"a"]'], ['[1]', '[1,"a",2]', '["a",1]']),
    (tuple[int, ...], ['[]', '[1,2,3]'], ['["a"]']),
    (dict[str, int], ['{}', '{"a":1,"b":2}'], ['{"a":"x"}', '{"a":1,"a":2}']),
    (dict[Literal["a", "b"], int], ['{}', '{"a":1}', '{"a":1,"b":2}'], ['{"c":1}', '{"a":1,"a":1}']),
    (dict[Color, int], ['{"red":1}'], ['{"green":1}']),
    (datetime.date, ['"2024-02-29"'], ['"2023-02-29"', '"0000-01-01"', '20240229']),
    (datetime.datetime, ['"2024-02-29T12:00:00Z"', '"2024-02-29T12:00:00"', '"2024-02-29T12:00:00.123456+02:00"'],
     ['"2024-02-29"', '"2024-02-29T24:00:00"']),
    (pydantic.AwareDatetime, ['"2024-02-29T12:00:00Z"'], ['"2024-02-29T12:00:00"']),
    (pydantic.NaiveDatetime, ['"2024-02-29T12:00:00"'], ['"2024-02-29T12:00:00Z"']),
    (datetime.time, ['"12:00:00"', '"12:00:00.5Z"'], ['"24:00:00"']),
    (datetime.timedelta, ['"PT1H5S"', '"-P1DT0.5S"', '"P1Y63DT4H5M6S"'], ['"P"', '"1 hour"', '"PT"']),
    (uuid.UUID, ['"12345678-1234-5678-1234-567812345678"'], ['"12345678"']),
    (pydantic.IPvAnyAddress, ['"127.0.0.1"', '"::1"'], ['"x"']),
    (pydantic.HttpUrl, ['"https://example.com/a"'], ['"ftp://example.com"', '"x:"']),
    (bool, ['true', 'false'], ['1', '"true"']),
    (float, ['1', '-0.5', '1e-07'], ['NaN', '1.0', '"1"']),
    (Decimal, ['1.5', '-3', '"1.50"', '"-0.1"'], ['"x"', '"1e5"', '""', '"NaN"']),
    (Annotated[Decimal, Field(ge=0, decimal_places=2)], ['0', '1.25', '"1.50"'], ['-1', '1.255', '"-1"', '"1.255"']),
    (Annotated[Decimal, Field(gt=0)], ['1', '0.001', '"0.001"', '"10.0"'], ['0', '"0"', '"0.0"', '-1']),
    (Annotated[Decimal, Field(max_digits=5, decimal_places=2)], ['999.99', '-1.2', '"999.99"'], ['1000', '1.234', '"1000.1"']),
    (Annotated[Decimal, Field(max_digits=3)], ['"1.23"', '"0.123"', '"123"', '"-1"'], ['"12.34"', '"0.1234"', '"1234"']),
    (Annotated[Decimal, Field(gt=0, max_digits=3, decimal_places=3)], ['0.5', '"0.001"'], ['0', '"0.000"', '1', '"1"']),
    (Annotated[Decimal, Field(ge=1, le=2)], ['1', '1.5', '2'], ['0.99', '2.1']),
]  # fmt: skip


@pytest.mark.parametrize(("type_", "accepted", "rejected"), CASES, ids=lambda x: str(x)[:60] if not isinstance(x, list) else "")
def test_texts_of_a_type(type_: Any, accepted: list[str], rejected: list[str]) -> None:
    matcher = reference(type_)
    for text in accepted:
        assert matcher.accepts(text.encode()), text
        validate(type_, text)
    for text in rejected:
        assert not matcher.accepts(text.encode()), text


VALUES: list[tuple[Any, list[Any]]] = [
    (Person, [Person(name="Ada", age=36), Person(name="A", age=1, address=Address(street="\n\"é", zip="00000"), tags=["", "b"])]),
    (Tree, [Tree(value=1, children=[Tree(value=2), Tree(value=-3)])]),
    (Owner, [Owner(pet=Cat(lives=9)), Owner(pet=Dog(kind="dog", name="x"))]),
    (Decimal, [Decimal("1.50"), Decimal("-0.01"), Decimal("123456789.123456789")]),
    (datetime.timedelta, [datetime.timedelta(seconds=s) for s in (0, 1.5, -1, 3605, 86400 * 500 + 61)]),
    (datetime.datetime, [datetime.datetime(2024, 1, 2, 3, 4, 5, 6), datetime.datetime(2024, 1, 2, tzinfo=datetime.UTC)]),
    (datetime.time, [datetime.time(1, 2, 3), datetime.time(1, 2, 3, 4)]),
    (Point, [Point(1), Point(1, 2, [{"title": "a"}])]),
]


@pytest.mark.parametrize(("type_", "values"), VALUES, ids=lambda x: getattr(x, "__name__", ""))
def test_what_pydantic_writes_is_accepted(type_: Any, values: list[Any]) -> None:
    matcher = reference(type_)
    for value in values:
        assert matcher.accepts(adapter(type_).dump_json(value)), value


def test_a_type_and_its_schema_are_the_same_constraint() -> None:
    assert JsonSchema(Person) == JsonSchema(schema_of(Person)) and hash(JsonSchema(Person)) == hash(JsonSchema(schema_of(Person)))


def test_schemas_are_json() -> None:
    for type_ in (Person, Owner, Annotated[Decimal, Field(ge=0, le=Decimal("9.5"))], Point):
        json.dumps(schema_of(type_))


@pytest.mark.parametrize(
    ("type_", "accepted", "rejected"),
    [(set[int], "[1,2]", "[1,1]"), (frozenset[str], '["a","b"]', '["a","b","a"]'), (dict[int, str], '{"1":"a"}', '{"a":"a"}'),
     (Annotated[float, Field(multiple_of=0.3)], "0.9", "1")],
)  # fmt: skip
def test_sets_keys_and_multiples(type_: Any, accepted: str, rejected: str) -> None:
    matched = reference(type_)
    assert matched.accepts(accepted.encode()) and not matched.accepts(rejected.encode())


def test_a_type_without_a_schema_is_refused() -> None:
    class Opaque:
        pass

    with pytest.raises(ConstraintError, match="Opaque"):
        JsonSchema(Opaque)
