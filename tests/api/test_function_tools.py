"""Functions as tools: whatever the constraint of a tool lets a model write can be run, with values that Pydantic made of it."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import functools
import json
import math
import random
import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, NotRequired, Required, TypedDict, Unpack

import pytest
from pydantic import AliasChoices, AliasPath, BaseModel, Field, HttpUrl, ValidationError

from maskwright.constraints import Compiler, Constraint, JsonSchema, Vocabulary
from maskwright.constraints.runtime.constraint import as_token_ids
from maskwright.errors import UsageError
from maskwright.tools import ToolCall, as_tool, calls_of, read_call

if TYPE_CHECKING:
    from collections import OrderedDict

EOS = 256
COMPILER = Compiler(Vocabulary([bytes([i]) for i in range(256)] + [None], eos_token_ids=[EOS]))


class Color(enum.Enum):
    RED = 1
    BLUE = "blue"


class Cat(BaseModel):
    kind: Literal["cat"] = "cat"
    lives: int = 9


class Dog(BaseModel):
    kind: Literal["dog"] = "dog"
    born: datetime.date


class Point(TypedDict):
    x: int
    y: Annotated[int, Field(ge=0)]


def pay(amount: Annotated[Decimal, Field(max_digits=6, decimal_places=2)]) -> Any:
    return amount


def adopt(pet: Annotated[Cat | Dog, Field(discriminator="kind")], others: list[Cat]) -> Any:
    return pet, *others


def counts(of: dict[int, int]) -> Any:
    return [*of, *of.values()]


def paint(color: Color, *, where: Point, coats: int = Field(2, ge=1)) -> Any:
    return color, where["x"], coats


def reserved(model_config: int, _x: bool, schema: str, model_fields: None, json: int = 3) -> Any:
    return model_config, _x, schema, model_fields, json


def when(at: datetime.datetime, duration: datetime.timedelta | None = None) -> Any:
    return at, duration


def tree(of: Annotated[dict[str, list[tuple[int, bool]]], Field(max_length=2)]) -> Any:
    return (of,)


def identify(number: uuid.UUID, data: bytes) -> Any:
    return number, data


def bounded(share: Annotated[float, Field(gt=0, lt=1)], tags: set[Literal["a", "b"]]) -> Any:
    return share, tags


def exact(total: Decimal) -> Any:
    return total


class Greeter:
    """Greets."""

    def __call__(self, name: str) -> str:
        return name

    def method(self, n: int) -> int:
        return n


class Static:
    """An object whose call takes no `self`."""

    @staticmethod
    def __call__(name: str, n: int) -> str:
        return name * n


class OfClass:
    @classmethod
    def __call__(cls, name: str, n: int) -> str:
        return name * n


class Settled:
    __call__ = staticmethod(functools.partial(Static.__call__, n=2))


TYPES: dict[Any, tuple[Any, ...]] = {
    pay: (Decimal,), adopt: (Cat, Dog), counts: (int,), paint: (Color, int), reserved: (int, str, type(None)), tree: (dict,),
    when: (datetime.datetime, datetime.timedelta, type(None)), identify: (uuid.UUID, bytes), bounded: (float, set), exact: (Decimal,),
}  # fmt: skip
FUNCTIONS = [*TYPES, Greeter(), Greeter().method, functools.partial(paint, Color.RED), functools.partial(adopt, others=[]), Cat, Greeter]
FUNCTIONS += [Static(), OfClass(), Settled(), functools.partial(Static(), n=3)]


def walk(constraint: Constraint, seed: int, length: int) -> str:
    """A random text: bytes at random, and the shortest way to an end behind `length` of them."""
    rng, state, text = random.Random(seed), constraint.start(), bytearray()
    while True:
        budget = None if len(text) < length else constraint.min_tokens(state) + 1
        token = rng.choice(list(as_token_ids(constraint.mask(state, budget))))
        if token == EOS:
            return text.decode()
        text.append(token)
        after = constraint.advance(state, token)
        assert after is not None
        state = after


@pytest.mark.parametrize(
    ("function", "names"),
    [(Greeter(), ["name"]), (Static(), ["name", "n"]), (OfClass(), ["name", "n"]), (functools.partial(Static(), n=3), ["name"])],
    ids=["method", "static", "class method", "partial"],
)
def test_what_calling_an_object_takes(function: Any, names: list[str]) -> None:
    tool = as_tool(function)
    assert list(tool.parameters["properties"]) == names == tool.parameters["required"]
    given = {name: {"name": "a", "n": 2}[name] for name in names}
    assert read_call(json.dumps({"name": tool.name, "arguments": given}), [tool]).run().strip("a") == ""


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda each: as_tool(each).name)
def test_every_output_of_the_constraint_runs(function: Any) -> None:
    tool = as_tool(function)
    constraint = COMPILER.compile(calls_of([tool]))
    for seed in range(30):
        result = read_call(walk(constraint, seed, 40 + 5 * seed), [tool]).run()
        if function in TYPES:
            assert all(isinstance(value, TYPES[function]) for value in (result if isinstance(result, tuple | list) else [result]))


def test_addresses_reach_the_function_as_addresses() -> None:
    def fetch(url: HttpUrl) -> str:
        return f"{type(url).__name__} {url.host}"

    fetch.__annotations__["url"] = HttpUrl
    tool = as_tool(fetch)
    assert read_call('{"name":"fetch","arguments":{"url":"https://example.org/a"}}', [tool]).run() == "HttpUrl example.org"


def test_arguments_are_read_as_they_are_written() -> None:
    tool = as_tool(exact)
    call = read_call('{"name": "exact", "arguments" : {"total": 1.50E+2} }', [tool])
    assert (call.text, call.arguments) == ('{"total": 1.50E+2}', {"total": 150.0}) and call.run() == 150
    assert read_call('{"arguments":{"total":"0.10"},"name":"exact"}', [tool]).run().as_tuple() == Decimal("0.10").as_tuple()
    assert ToolCall(tool, {"total": "0.10"}).run() == Decimal("0.10")


def test_defaults_are_those_of_the_function_and_of_fields() -> None:
    assert as_tool(paint).parameters["required"] == ["color", "where"]
    assert as_tool(paint).parameters["properties"]["coats"] == {"default": 2, "minimum": 1, "type": "integer"}
    arguments = {"color": 1, "where": {"x": 1, "y": 2}}
    assert ToolCall(as_tool(paint), arguments).run() == (Color.RED, 1, 2)
    assert ToolCall(as_tool(functools.partial(paint, coats=7)), arguments).run() == (Color.RED, 1, 7)
    assert "coats" not in as_tool(functools.partial(paint, coats=7)).parameters["properties"]


def test_a_factory_makes_a_default_for_each_call() -> None:
    made: list[list[int]] = []
    some: Any = Field(default_factory=lambda: made.append([]) or made[-1])  # type: ignore[func-returns-value]

    def keep(notes: list[int] = some) -> list[int]:
        return notes

    keep.__annotations__["notes"] = list[int]
    tool = as_tool(keep)
    assert not made
    assert ToolCall(tool, {}).run() is not ToolCall(tool, {}).run() and len(made) == 2


def cheapest(below: float = math.inf) -> float:
    return below


def test_a_default_that_json_does_not_have_is_not_told() -> None:
    assert as_tool(cheapest).parameters["properties"] == {"below": {"type": "number"}}
    assert ToolCall(as_tool(cheapest), {}).run() == math.inf


def test_types_of_one_name_are_kept_apart() -> None:
    def other() -> type[BaseModel]:
        class Cat(BaseModel):
            tail: bool

        return Cat

    def meet(left: Cat, right: Any, third: Cat) -> Any:
        return left, right, third

    meet.__annotations__.update(left=list[Cat], right=list[other()], third=list[Cat])  # type: ignore[misc]
    tool = as_tool(meet)
    assert len(tool.parameters["$defs"]) == 2
    (left,), (right,), (third,) = ToolCall(tool, {"left": [{"lives": 3}], "right": [{"tail": True}], "third": [{}]}).run()
    assert (left.lives, right.tail, third.lives) == (3, True, 9)
    constraint = COMPILER.compile(JsonSchema(dict(tool.parameters)))
    assert constraint.accepts('{"left":[{"lives":3}],"right":[{"tail":true}],"third":[{}]}')
    assert not constraint.accepts('{"left":[{"tail":true}],"right":[{"tail":true}],"third":[{}]}')


@pytest.mark.parametrize(
    ("function", "name", "description"),
    [(Greeter(), "Greeter", "Greets."), (functools.partial(pay), "pay", ""), (Greeter().method, "method", ""), (Cat, "Cat", "")],
)
def test_names_of_what_is_not_a_plain_function(function: Any, name: str, description: str) -> None:
    assert (as_tool(function).name, as_tool(function).description) == (name, description)


class Leaf(BaseModel):
    value: int
    below: list[Leaf] = []


class Corner(NamedTuple):
    x: int
    y: int = 0


def quoted(leaf: "Leaf", leaves: "list[Leaf]", more: list["Leaf"] | None = None) -> Any:  # noqa: UP037
    return leaf, *leaves


def test_annotations_may_be_quoted_twice() -> None:
    (leaf, other) = ToolCall(as_tool(quoted), {"leaf": {"value": 1}, "leaves": [{"value": 2, "below": [{"value": 3}]}]}).run()
    assert (leaf.value, other.below[0].value) == (1, 3)
    assert list(as_tool(quoted).parameters["$defs"]) == ["Leaf"]


def test_a_description_that_python_made_is_none() -> None:
    assert as_tool(Corner).description == ""
    assert ToolCall(as_tool(Corner), {"x": 1}).run() == (1, 0)


def with_hook(n: int, hook: Callable[[int], int] = abs, *, other: Callable[[int], int] | None = None) -> int:
    return hook(n) if other is None else other(n)


def test_a_parameter_with_a_default_that_no_json_gives_is_left_to_it() -> None:
    tool = as_tool(with_hook)
    assert list(tool.parameters["properties"]) == ["n", "other"] and tool.parameters["required"] == ["n"]
    assert ToolCall(tool, {"n": -3}).run() == 3


@dataclasses.dataclass
class Scaled:
    size: int
    factor: dataclasses.InitVar[int] = 1

    def __post_init__(self, factor: int) -> None:
        self.size *= factor


def test_what_a_dataclass_takes_at_its_making_is_a_parameter() -> None:
    assert ToolCall(as_tool(Scaled), {"size": 2, "factor": 3}).run() == Scaled(6)


@pytest.mark.parametrize("key", ["parameters", "input_schema", "inputSchema"])
def test_definitions_of_other_interfaces_have_their_schema(key: str) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    assert as_tool({"name": "f", key: schema}).parameters == schema


def placed(a: int, b: str = "x", c: datetime.date | None = None, /, *, d: bool = True) -> Any:
    return a, b, c, d


def test_parameters_without_names_are_passed_by_their_place() -> None:
    assert ToolCall(as_tool(placed), {"a": 1, "c": "2024-02-29"}).run() == (1, "x", datetime.date(2024, 2, 29), True)
    assert ToolCall(as_tool(placed), {"a": 1, "d": False}).run() == (1, "x", None, False)


class Options(TypedDict, total=False):
    limit: Required[Annotated[int, Field(ge=1)]]
    since: datetime.date


class MoreOptions(Options):
    deep: bool
    names: NotRequired[list[str]]


class HiddenOptions(TypedDict):
    of: OrderedDict[str, int]


def search(text: str, **options: Unpack[MoreOptions]) -> Any:
    return text, options


def test_an_unpacked_typed_dict_is_its_members() -> None:
    tool = as_tool(search)
    assert list(tool.parameters["properties"]) == ["text", "limit", "since", "deep", "names"]
    assert tool.parameters["required"] == ["text", "limit", "deep"]
    call = ToolCall(tool, {"text": "x", "limit": 3, "deep": True, "since": "2024-02-29"})
    assert call.run() == ("x", {"limit": 3, "deep": True, "since": datetime.date(2024, 2, 29)})


class Aliased(BaseModel):
    first: int = Field(alias="first-name")
    second: int = Field(0, validation_alias=AliasChoices(AliasPath("x", 0), "2nd"))


class Nested(BaseModel):
    a: int = Field(validation_alias=AliasPath("x", 0))


def test_classes_of_pydantic_are_called_by_the_names_they_take() -> None:
    assert list(as_tool(Aliased).parameters["properties"]) == ["first-name", "2nd"]
    made = ToolCall(as_tool(Aliased), {"first-name": 1, "2nd": 2}).run()
    assert (made.first, made.second) == (1, 2)


def called(do: Callable[[int], int]) -> None: ...
def hidden(of: OrderedDict[str, int]) -> None: ...
def odd(of: Greeter) -> None: ...
def no_type(of: 3) -> None: ...  # type: ignore[valid-type]
def several(*of: int) -> None: ...
def hidden_options(**of: Unpack[HiddenOptions]) -> None: ...
def any_names(**others: int) -> None: ...


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (called, 'tool "called": parameter "do"'),
        (hidden, 'tool "hidden": parameter "of" has the annotation "OrderedDict'),
        (odd, 'tool "odd": parameter "of"'),
        (no_type, 'tool "no_type": parameter "of"'),
        (several, 'tool "several": parameter "of" cannot be passed by name'),
        (Nested, 'tool "Nested": parameter "a" is read at a path within another one'),
        (hidden_options, 'tool "hidden_options": parameter "of" is HiddenOptions, whose annotations have no meaning'),
        (any_names, 'tool "any_names": parameter "others" takes any names'),
        (functools.partial(called), 'tool "called": parameter "do"'),
        (lambda: 1, 'a tool needs a name.*not "<lambda>"'),
        (dict, 'tool "dict": Python knows no signature'),
    ],
)
def test_what_cannot_be_a_tool_is_named(function: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        as_tool(function)


def test_arguments_that_do_not_fit() -> None:
    with pytest.raises(UsageError, match='no parameter "b"; known: amount'):
        ToolCall(as_tool(pay), {"amount": 1, "b": 2}).run()
    with pytest.raises(UsageError, match='parameter "amount" is missing'):
        ToolCall(as_tool(pay), {}).run()
    with pytest.raises(ValidationError):
        ToolCall(as_tool(pay), {"amount": "x"}).run()
    assert json.loads(json.dumps(dict(as_tool(reserved).parameters)))["properties"]["json"]["default"] == 3
