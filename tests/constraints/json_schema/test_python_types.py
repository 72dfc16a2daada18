"""Python types mean what Pydantic enforces: no text of a constraint is rejected, unless the constraint notes it."""

from __future__ import annotations

import collections
import datetime
import inspect
import ipaddress
import json
import random
import sys
import typing
import zoneinfo
from collections.abc import Callable, Sequence
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal

import pydantic
import pydantic_core
import pytest
from pydantic import (
    UUID4,
    AwareDatetime,
    Base64Str,
    BaseModel,
    ByteSize,
    ConfigDict,
    Field,
    SecretStr,
    SkipValidation,
    ValidationError,
    WithJsonSchema,
)
from pydantic_core import core_schema

from maskwright.constraints import Compiler, Constraint, ConstraintError, JsonSchema, Vocabulary
from maskwright.constraints.front_ends.json_schema.python_types.kinds import KINDS, kinds_page
from maskwright.constraints.front_ends.json_schema.python_types.times import boxes
from maskwright.constraints.front_ends.json_schema.types import adapter, schema_of
from maskwright.constraints.runtime.constraint import as_token_ids

from .python_types import (
    TYPES,
    UTC,
    Aliased,
    Choices,
    Chosen,
    Closed,
    Color,
    ExtraItems,
    Hidden,
    Mixed,
    Number,
    Open,
    OpenKeys,
    Path_,
    Pet,
    Stripped,
    text,
)

EOS = 256
COMPILER = Compiler(Vocabulary([bytes([i]) for i in range(256)] + [None], eos_token_ids=[EOS]))
REFUSED = {  # no JSON is ever read as one
    "callable", "callable int", "type", "tuples", "days", "literal enum", "literal enums", "literal bytes", "literal nothing",
    "set of lists", "set of dicts", "set of models", "set of points", "dict literal int", "dict tuple", "dict none",
    "dict literal enum", "dict root", "color tags", "never", "pattern of bytes",
}  # fmt: skip
TELLING = '0129-:T.,]}"ab'  # bytes that lead on through dates, numbers and ends


class Broken:
    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        raise ImportError("a library that is not here")


class BrokenWhenTold:
    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        return core_schema.int_schema()

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: Any, handler: Any) -> Any:
        raise KeyError("properties")


def walk(constraint: Constraint, seed: int, length: int) -> str:
    """A random text: bytes at random, or readable ones, and the shortest way to an end behind `length` of them."""
    rng, state, text = random.Random(seed), constraint.start(), bytearray()
    while True:
        budget = None if len(text) < length else constraint.min_tokens(state) + 1
        tokens = list(as_token_ids(constraint.mask(state, budget)))
        if EOS in tokens and (len(text) >= length or rng.random() < 0.5):
            return text.decode()
        readable = [token for token in tokens if 32 <= token < 127] if seed % 3 else []
        telling = [token for token in readable if chr(token) in TELLING] if seed % 3 == 2 and rng.random() < 0.6 else []
        token = rng.choice(telling or readable or tokens)
        if token == EOS:
            return text.decode()
        text.append(token)
        after = constraint.advance(state, token)
        assert after is not None
        state = after


def compiled(type_: Any) -> Constraint:
    return COMPILER.compile(JsonSchema(type_))


def is_valid(type_: Any, text: str) -> bool:
    try:
        adapter(type_).validate_json(text)
    except ValidationError:
        return False
    return True


def is_noted(constraint: Constraint) -> bool:
    return any("checked afterwards: " in note for note in constraint.notes)


@pytest.mark.parametrize("name", [name for name in TYPES if name not in REFUSED])
def test_what_the_constraint_accepts_is_valid_or_noted(name: str) -> None:
    constraint = compiled(TYPES[name])
    if is_noted(constraint):
        return
    for seed in range(12):
        text = walk(constraint, seed, (0, 10, 30, 60)[seed % 4])
        assert is_valid(TYPES[name], text), text


UNSPELT = {  # Pydantic writes what the page says is left out: other spellings of numbers, members that no field has
    "dict float", "dict float bounds", "dict decimal", "dict decimal places", "set of decimals", "validate as", "seconds", "computed", "hidden",
}  # fmt: skip


def plain(number: str) -> int | float:
    """A number as the text of a value has it: 1.0 is written 1."""
    return int(value) if (value := float(number)).is_integer() else value


@pytest.mark.parametrize("name", [name for name in TYPES if name not in REFUSED | UNSPELT])
def test_what_pydantic_writes_is_accepted(name: str) -> None:
    constraint, of_type = compiled(TYPES[name]), adapter(TYPES[name])
    for seed in range(6):
        try:
            value = of_type.validate_json(walk(constraint, seed, (0, 10, 30)[seed % 3]))
            dumped = of_type.dump_json(value, by_alias=True, warnings=False)
            is_read_again = of_type.validate_json(dumped) == value
        except (ValidationError, TypeError, pydantic_core.PydanticSerializationError):
            continue  # checked afterwards, or not to be written
        written = json.dumps(json.loads(dumped, parse_float=plain), ensure_ascii=False, separators=(",", ":"))
        assert not is_read_again or constraint.accepts(written.encode()), written


@pytest.mark.parametrize("type_", [Annotated[int | str, Field(strict=True)], Annotated[Literal["a"], Field(strict=True)], Broken, BrokenWhenTold])
def test_whatever_pydantic_raises_for_a_type_is_told_by_a_typed_error(type_: Any) -> None:
    with pytest.raises(ConstraintError, match="no JSON schema for"):
        JsonSchema(type_)


def test_a_discriminator_leaves_no_note() -> None:
    assert compiled(Pet).notes == ()


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_no_json_is_read_as_is_refused(name: str) -> None:
    with pytest.raises(ConstraintError, match=r"no JSON|no key|hashed"):
        JsonSchema(TYPES[name])


def test_every_kind_of_node_has_a_handler() -> None:
    assert KINDS.keys() >= {
        *typing.get_args(core_schema.CoreSchemaType),
        *typing.get_args(core_schema.CoreSchemaFieldType),
    }


def test_page_is_printed_from_the_table() -> None:
    page = Path(__file__).parents[3] / "docs" / "python-types.md"
    if not page.exists():
        pytest.skip("the tests do not run from a checkout")
    assert page.read_text("utf-8") == kinds_page()


CASES: list[tuple[Any, ...]] = [
    (dict[text('^[a-z]{2}$'),int],['{"ab":1}'],['{"1":"x"}','{"1":1}','{"abc":1}'],),
    (text(r'^\W+$'),['"-"'],['"é"'],),
    (text(r'^(?P<year>\d{4})\z'),['"2024"'],['"a"'],),
    (Annotated[date,Field(ge=date(2024,1,1))],['"2024-01-01"','"2025-12-31"','"9999-01-01"'],['"2023-12-31"'],),
    (Annotated[date,Field(gt=date(1999,12,30),le=date(2000,3,1))],['"1999-12-31"','"2000-02-29"','"2000-03-01"'],['"1999-12-30"','"2000-03-02"','"2000-02-30"'],),
    (Annotated[datetime.datetime,Field(ge=datetime.datetime(2024,1,1,12))],['"2024-01-01T12:00:00"','"2024-01-01T12:00"','"2024-01-01T12:00:00Z"','"2024-06-01T00:00:00+02:00"'],['"2024-01-01T11:59:59"'],),
    (Annotated[AwareDatetime,Field(ge=datetime.datetime(2024,1,1,12,tzinfo=UTC))],['"2024-01-01T12:00:00Z"','"2024-06-01T00:00:00+02:00"'],['"2024-01-01T11:59:59Z"','"2024-06-01T00:00:00"'],),
    (Annotated[datetime.time,Field(ge=datetime.time(9),lt=datetime.time(17,30))],['"09:00"','"09:00:00"','"17:29:59.999999"','"12:30"'],['"17:30"','"08:59:59"'],),
    (Annotated[timedelta,Field(ge=timedelta(seconds=1),le=timedelta(hours=2))],['"PT1S"','"PT1H30M"','"PT2H"','"PT1.5S"'],['"PT0S"','"PT2H1S"','"P1D"'],),
    (Annotated[timedelta,Field(gt=timedelta(0))],['"PT1S"','"P1D"','"P1DT2H"','"PT0.000001S"'],['"PT0S"','"-PT1S"'],),
    (TYPES["timedelta years"],['"P1Y"','"P365D"','"P3Y4DT23H59M59.999999S"','"P300DT5H"'],['"P300DT4H"','"P3Y5D"','"P0Y300DT5H"','"P1Y365D"'],),
    (Annotated[timedelta,Field(gt=timedelta(days=1),lt=timedelta(days=1,seconds=1))],['"P1DT0.5S"','"P1DT0.25S"','"P1DT0.000001S"','"P1DT0.999999S"'],['"P1D"','"P1DT0.0S"','"P1DT1S"'],),
    (Annotated[datetime.time,Field(ge=datetime.time(8,0,0,250_000),le=datetime.time(8,0,0,500_000))],['"08:00:00.25"','"08:00:00.5"','"08:00:00.499999"'],['"08:00:00.2"','"08:00:00.6"','"08:00:00.249999"','"08:00:00.500001"'],),
    (TYPES["decimal step"],['"0.05"','0.15','"99999999999999999999999999.95"','-99999999999999999999999999.95'],['"0.01"','500000000000000000000000000','"-500000000000000000000000000"'],),
    (TYPES["datetime zone"],['"2024-01-01T00:00-01:30"'],['"2024-01-01T00:00Z"','"2024-01-01T00:00"','"2024-01-01T00:00+01:30"'],),
    (TYPES["datetime utc"],['"2024-01-01T00:00Z"','"2024-01-01T00:00+00:00"'],['"2024-01-01T00:00+01:00"'],),
    (TYPES["datetime zone range"],['"2024-02-29T04:30+05:30"','"2024-03-01T03:29:59+05:30"'],['"2024-02-29T04:29+05:30"','"2024-03-01T03:30+05:30"','"2024-02-29T12:00Z"'],),
    (timedelta,['"PT9999999M"','"PT999999H9999999M9999999.999999S"'],['"PT99999999M"'],),
    (TYPES["decimal enum"],['0.5','1.5'],['2'],),
    (Annotated[timedelta,Field(le=timedelta(0))],['"PT0S"','"-P1D"'],['"PT1S"'],),
    (Annotated[bytes,Field(max_length=4)],['"éé"','"abcd"'],['"ééa"','"abcde"'],),
    (dict[int,int],['{"1":2}','{"-5":1}'],['{"a":1}','{"1.5":1}'],),
    (dict[Annotated[int,Field(ge=0,lt=50,multiple_of=5)],int],['{"45":1}'],['{"50":1}','{"4":1}'],),
    (dict[Annotated[date,Field(ge=date(2024,5,6))],int],['{"2024-05-06":1}'],['{"2024-05-05":1}'],),
    (dict[float,int],['{"1.5":1}','{"1":1}'],['{"x":1}'],),
    (Path_,['{"values":[1,2]}','{"values":[1,2],"deep":{"inner":{"c":"x"}}}'],['{"values":[1]}','{"a":1,"b":2}'],),
    (ipaddress.IPv4Network,['"10.0.0.0/8"','"192.168.1.0/24"','"10.1.2.3/32"','"172.16.0.0/12"'],['"10.0.0.1/8"'],),
    (ipaddress.IPv6Network,['"2001:db8::/32"','"::/0"','"fe80::/12"'],['"2001:db8::1/32"'],),
    (pydantic.IPvAnyInterface,['"10.0.0.1/8"','"::1/64"','"10.0.0.1"'],['"10.0.0.1/33"'],),
    (Base64Str,['"YWJj"'],['"/w=="'],),
    (pydantic.PostgresDsn,['"postgres://user:pass@localhost:5432/db"','"postgresql+asyncpg://u@h1,h2/db?x=1"'],['"http://a"'],),
    (pydantic.RedisDsn,['"redis://localhost:6379/0"','"redis://:pw@h/1"'],['"http://a"'],),
    (pydantic.HttpUrl,['"https://example.com"','"http://localhost:8000/a/b?c=d#e"','"https://user:pw@sub.example.co.uk/"','"http://127.0.0.1"','"http://[::1]:80/"'],['"ftp://a"','"http://"'],),
    (pydantic.AnyUrl,['"mailto:a@b.c"','"ftp://x/y"','"s3://bucket/key"','"urn:isbn:123"','"file:///a"'],['"x"'],),
    (pydantic.AmqpDsn,['"amqp://guest:guest@localhost/vhost"'],),
    (pydantic.MongoDsn,['"mongodb://u:p@h1:27017,h2:27017/db"'],),
    (Literal[Number.ONE,"x"],['1','"x"'],['2'],),
    (Literal[Mixed.HALF,"x"],['"x"'],['0.5'],),
    (Annotated[Decimal,Field(max_digits=6,decimal_places=2)],['1234.56','"1234.56"','0','-9999.99'],['12345','1.234','"12345.6"'],),
    (Annotated[Decimal,Field(max_digits=4,ge=2)],['"2.5"','"9999"'],['"1.5"','"12345"'],),
    (Annotated[Decimal,Field(gt=Decimal("0.5"),lt=Decimal("99.25"))],['1','"1"','"1.5"','99.2'],['0.5','"0.5"','"99.25"'],),
    (TYPES["decimal below 1e-4"],['"0.0000101"','"0.00002"','"0.0000999"'],['"0.00001"','"0.0001"','"0.00001001"','"-0.00002"','"2e-05"'],),
    (TYPES["any bound"],['3','3.5'],['2','"a"','null','[]'],),
    (TYPES["any length"],['"é"','[1,2]','{"a":1}'],['""','"abc"','{}','3','null'],),
    (TYPES["any step"],['9','-3'],['12','1','1.5','"a"'],),
    (TYPES["base64 str length"],['"YQ=="','"YWI="'],['""','"YWJj"','"/w=="'],),
    (UUID4,['"12345678-1234-4234-8234-567812345678"'],['"12345678-1234-1234-8234-567812345678"'],),
    (SecretStr,['"a"'],),
    (Annotated[SecretStr,Field(min_length=3)],['"abc"'],['"ab"'],),
    (Annotated[pydantic.SecretBytes,Field(max_length=2)],['"é"','"ab"'],['"éa"','"abc"'],),
    (Annotated[Sequence[bool],Field(min_length=1,max_length=2)],['[true]'],['[]','[true,true,true]'],),
    (Annotated[str|list[int],Field(max_length=2)],['"ab"','[1,2]'],['"abc"','[1,2,3]'],),
    (Annotated[ByteSize,Field(ge=10,multiple_of=4)],['12'],['8','13'],),
    (Pet,['{"kind":"cat"}','{"kind":"dog","name":"x"}'],['{}','{"name":"x"}','{"kind":"cat","name":"x"}'],),
    (Chosen,['{"lives":3}','{"kind":"dog"}'],),
    (tuple[int,*tuple[str,...],bool],[ '[1,["a"],true]'],),
    (ByteSize,['1','"1.5 KB"','"1GiB"'],['-1'],),
    (zoneinfo.ZoneInfo,['"Europe/Berlin"'],['"X/Y"'],),
    (Stripped,['{"a":"ab","b":"ab"}'],['{"a":" ab","b":"ab"}','{"a":"a","b":"ab"}'],),
    (Choices,['{"first":1}','{"first":1,"b1":"x"}'],),
    (Aliased,['{"A":1,"B":2}','{"A":1,"B":2,"c":3}'],['{"a":1,"b":2}'],),
    (Open,['{}','{"a":1,"zz":[1]}'],),
    (OpenKeys,['{"a":"x","x_ab":1}'],['{"a":"x","y":1}'],),
    (ExtraItems,['{"a":"x","b":1}'],['{"a":"x","b":"y"}'],),
    (Hidden,['{"a":1}','{"a":1,"c":2,"e":"x"}'],['{"a":1,"b":2}'],),
    (float,['1','1.5'],['NaN'],),
    (dict[Color,int],['{"red":1}'],),
    (dict[Number,int],['{"1":1}'],['{"3":1}'],),
    (collections.Counter[str],['{"a":1}'],['{"a":"x"}'],),
    (Closed,['{}'],['{"b":1}'],),
    (Annotated[int,WithJsonSchema({"type":"integer","minimum":3})],['3'],),
    (SkipValidation[int],['1'],['"a"'],),
    (Annotated[list[int],Field(min_length=1,max_length=2)],['[1]','[1,2]'],['[]','[1,2,3]'],),
    (Annotated[int|float,Field(ge=3)],['3','3.5'],['2'],),
    (Fraction,['"1/2"','0.5','3'],['"1/0"'],),
    (datetime.datetime,['"2024-01-01T00:00:00Z"','"2024-01-01T00:00:00.123456+02:00"','"2024-01-01T00:00"'],['"2016-12-31T23:59:60Z"'],),
    (int|Callable,['1'],),
    (TYPES["placed"],['[1]','[1,2,3]'],['[]','{"a":1}','[1,-2]'],),
    (TYPES["collected"],['[]','["2024-02-29","2024-01-01"]'],['{}','[1]'],),
    (TYPES["unpacked"],['{"a":"x"}','{"x":2,"a":"x","b":"2024-02-29"}'],['{}','{"a":"x","c":1}'],),
    (TYPES["keyed"],['{}','{"a":2,"x":"y"}'],['{"x":"yyy"}','{"x":1}'],),
]  # fmt: skip


def name_of(case: tuple[Any, ...]) -> str:
    """The same in every process: functions are called by their names, not by where they lie."""
    return case[0].__qualname__ if inspect.isfunction(case[0]) else str(case[0])[:60]


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_texts_of_a_type(case: tuple[Any, ...]) -> None:
    type_, accepted, rejected = (*case, [])[:3]
    constraint = compiled(type_)
    for written in accepted:
        assert is_valid(type_, written) and constraint.accepts(written.encode()), written
    for written in rejected:
        assert not constraint.accepts(written.encode()), written


@pytest.mark.parametrize(
    ("type_", "accepted", "rejected"),
    [
        (int, ["1", "-20"], ["x", "1.5", "", "01"]),
        (Annotated[float, Field(ge=1)], ["1.5"], ["0.5"]),
        (Literal["a", 1], ["1", '"a"'], ["a"]),
        (bool | None, ["null", "true"], ["None"]),
        (Color, ['"red"'], ["red"]),
    ],
)
def test_json_in_a_string(type_: Any, accepted: list[str], rejected: list[str]) -> None:
    constraint = compiled(pydantic.Json[type_])
    assert not is_noted(constraint)
    for written in map(json.dumps, accepted):
        assert is_valid(pydantic.Json[type_], written) and constraint.accepts(written.encode())
    assert not any(constraint.accepts(json.dumps(each).encode()) for each in rejected)


class WithCallback(BaseModel):
    callback: Callable[[], int] = int
    count: int = 1


class NeedsCallback(BaseModel):
    callback: Callable[[], int]


def test_a_member_that_no_json_gives_is_left_out_or_named() -> None:
    assert compiled(WithCallback).accepts(b'{"count":1}') and not compiled(WithCallback).accepts(b'{"callback":1}')
    assert compiled(int | Callable[[], int]).accepts(b"1")
    with pytest.raises(ConstraintError, match="callback: no JSON is read as callable"):
        JsonSchema(NeedsCallback)


@pytest.mark.parametrize("bounds", [
    {"ge": "0.00000120", "le": "0.0000901"}, {"gt": "-0.00009", "lt": "0.0000019"}, {"gt": "0.0000909", "le": "0.5"}, {"le": "-0.00009"},
    {"ge": "-3", "lt": "-0.0000109"}, {"gt": "0.00000997", "lt": "0.00001"},
])  # fmt: skip
def test_small_decimals_are_those_that_pydantic_reads(bounds: dict[str, str]) -> None:
    type_: Any = Annotated[Decimal, Field(decimal_places=8, **{name: Decimal(bound) for name, bound in bounds.items()})]
    constraint, rng = compiled(type_), random.Random(1)
    for _ in range(150):
        written = f'"{rng.choice(("", "-"))}0.0000{rng.randrange(10 ** rng.randint(1, 4)):0{rng.randint(1, 4)}}"'
        assert constraint.accepts(written.encode()) == (is_valid(type_, written) and Decimal(json.loads(written)) != 0), written


@pytest.mark.parametrize("config", [
    {"str_max_length": 8}, {"str_min_length": 4}, {"str_to_lower": True}, {"val_json_bytes": "base64"}, {"val_json_bytes": "hex"},
    {"strict": True, "str_max_length": 8},
])  # fmt: skip
@pytest.mark.parametrize("type_", [
    Base64Str, Annotated[Base64Str, Field(max_length=6)], pydantic.Base64Bytes, ipaddress.IPv4Address, ByteSize, dict[Base64Str, int],
])  # fmt: skip
def test_a_configuration_says_more_of_what_is_read_before_a_function(config: Any, type_: Any) -> None:
    """The string that is decoded, and not what it becomes."""
    model: Any = pydantic.create_model("Model", __config__=ConfigDict(**config), a=(type_, ...))
    constraint = compiled(model)
    for seed in range(5):
        assert is_noted(constraint) or is_valid(model, written := walk(constraint, seed, 18)), written


def test_a_comparison_that_fails_is_no_other_alternative() -> None:
    """A `TypeError` of Pydantic ends the validation."""
    compared = Annotated[Any, Field(ge=3)]
    assert not is_noted(compiled(compared)) and not is_noted(compiled(compared | None)) and is_noted(compiled(list[compared] | str))


@pytest.mark.skipif(sys.version_info < (3, 12), reason="the statement `type` came with Python 3.12")
def test_aliases_by_statement() -> None:
    names: dict[str, Any] = {"Annotated": Annotated, "Field": Field}
    exec("type Small = Annotated[int, Field(ge=0, lt=3)]\ntype Tree[T] = T | list[Tree[T]]", names)
    assert compiled(names["Small"]).accepts(b"2") and not compiled(names["Small"]).accepts(b"3")
    assert compiled(names["Tree"][bool]).accepts(b"[true,[false]]") and not compiled(names["Tree"][bool]).accepts(b"[1]")


@pytest.mark.parametrize(
    ("low", "high"),
    [
        ((1, 2, 3), (1, 2, 3)),
        ((0, 0, 0), (3, 3, 3)),
        ((1, 2, 0), (3, 0, 1)),
        ((0, 3, 3), (1, 0, 0)),
        ((2, 0, 0), (1, 3, 3)),
    ],
)
def test_boxes_are_the_fields_between_two(low: tuple[int, ...], high: tuple[int, ...]) -> None:
    found = [
        fields for box in boxes(low, high, ((0, 3),) * 3) for fields in product(*(range(a, b + 1) for a, b in box))
    ]
    assert sorted(found) == [fields for fields in product(range(4), repeat=3) if low <= fields <= high]


def test_what_describes_a_type_is_told() -> None:
    class Described(BaseModel):
        """What it is."""

        model_config = ConfigDict(json_schema_extra={"examples": [{"a": 1}]})
        a: Annotated[int, Field(description="a number", ge=0)] = 3

    assert schema_of(Described) == {
        "title": "Described",
        "description": "What it is.",
        "type": "object",
        "properties": {"a": {"type": "integer", "minimum": 0, "description": "a number", "default": 3}},
        "additionalProperties": False,
        "examples": [{"a": 1}],
    }
