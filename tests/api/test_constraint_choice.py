"""At most one constraint for each output, and a value read back as what was asked for."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field, TypeAdapter
from typing_extensions import TypedDict  # Pydantic wants this one before Python 3.12

from maskwright.constraint_choice import KEYWORDS, choose, choose_for_each
from maskwright.constraints import Choice, ConstraintError, Ebnf, Gbnf, JsonSchema, Lark, Regex
from maskwright.errors import UsageError


class Person(BaseModel):
    name: str
    age: int


@dataclass
class Point:
    x: int
    y: int


class Options(TypedDict):
    on: bool


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


VALUES: dict[str, Any] = {
    "schema": Person,
    "json_schema": {"type": "integer"},
    "regex": "a+",
    "grammar": 'root ::= "x"',
    "choice": ["a", "b"],
    "constraint": Regex("a+"),
}


@pytest.mark.parametrize(
    ("schema", "text", "value"),
    [
        (Person, '{"name":"Ada","age":36}', Person(name="Ada", age=36)),
        (Point, '{"x":1,"y":2}', Point(1, 2)),
        (Options, '{"on":true}', {"on": True}),
        (Colour, '"red"', Colour.RED),
        (Literal["a", "b"], '"b"', "b"),
        (list[int], "[1,2]", [1, 2]),
        (int | None, "null", None),
    ],
)
def test_a_type_gives_an_instance(schema: Any, text: str, value: Any) -> None:
    choice = choose({"schema": schema})
    assert choice.is_json
    assert choice.read(text) == value


@pytest.mark.parametrize("schema", [{"type": "object"}, True, '{"type": "object"}'])
def test_a_raw_schema_gives_parsed_json(schema: Any) -> None:
    for keyword in ("schema", "json_schema"):
        assert choose({keyword: schema}).read('{"a":[1]}') == {"a": [1]}  # type: ignore[misc]


@pytest.mark.parametrize("keyword", ["regex", "grammar", "choice"])
def test_everything_else_gives_text(keyword: str) -> None:
    choice = choose({keyword: VALUES[keyword]})  # type: ignore[misc]
    assert not choice.is_json
    assert choice.read("a") == "a"


def test_no_constraint_is_free_text() -> None:
    assert choose({}).source is None
    assert choose({"regex": None, "schema": None}).source is None


@pytest.mark.parametrize("first", KEYWORDS)
@pytest.mark.parametrize("second", KEYWORDS)
def test_two_constraints_contradict_each_other(first: str, second: str) -> None:
    if first != second:
        with pytest.raises(UsageError, match=f"{first}= and {second}= contradict"):
            choose({first: VALUES[first], second: VALUES[second]})  # type: ignore[misc]


@pytest.mark.parametrize("wrong", ["ab", 1.5, True, ["a", 1], {"a": 1}.keys])
def test_a_choice_of_something_else_is_refused(wrong: Any) -> None:
    with pytest.raises(UsageError, match="choice= is a list of strings"):
        choose({"choice": wrong})


def test_an_unknown_keyword_is_named() -> None:
    with pytest.raises(UsageError, match=r"unknown argument regexp=.*regex="):
        choose({"regexp": "a"})  # type: ignore[typeddict-unknown-key]
    with pytest.raises(UsageError, match=r"unknown argument max_tokens=; options go to sampling=SamplingParams\(max_tokens=\.\.\.\)$"):
        choose({"max_tokens": 3})  # type: ignore[typeddict-unknown-key]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"schema": 3}, "an instance of int is a value, not a type"),
        ({"sampling_params": 3}, "did you mean sampling"),
        ({"guided_json": {}}, "did you mean schema"),
        ({"beam_width": 2}, "did you mean width"),
        ({"schema": Callable[[], int]}, "no JSON is read as callable"),
        ({"json_schema": Person}, "json_schema= is a mapping"),
        ({"regex": 3}, "regex= is a str, not int"),
        ({"choice": "yes"}, "choice= is a list"),
        ({"choice": ["yes", 1]}, "choice= is a list"),
        ({"constraint": 3}, "constraint= is a front end"),
        ({"schema": "schemas/person.json"}, "looks like the name of a file"),
        ({"grammar": "my.gbnf"}, "looks like the name of a file"),
        ({"schema": "Person"}, "looks like the name of a type: give the type itself"),
        ({"schema": {"name": "person", "strict": True, "schema": {"type": "integer"}}}, 'give its "schema"'),
        ({"schema": {"type": "json_schema", "json_schema": {"name": "n", "schema": {}}}}, 'give its "schema"'),
    ],
)
def test_a_value_of_the_wrong_kind_is_named(options: Any, message: str) -> None:
    with pytest.raises((UsageError, ConstraintError), match=message):
        choose(options)


def test_the_language_of_a_grammar_is_seen_by_its_definitions() -> None:
    assert isinstance(choose({"grammar": 'root ::= "x"'}).source, Gbnf)
    assert isinstance(choose({"grammar": 'start: "x"'}).source, Lark)


MARK = "\ufeff"  # a byte order mark, with which some editors begin a file


def test_a_byte_order_mark_is_no_part_of_a_text() -> None:
    for options in ({"grammar": 'root ::= "x"'}, {"grammar": 'start: "x"'}, {"schema": '{"type":"null"}'}):
        marked = {name: MARK + text for name, text in options.items()}
        assert choose(marked).source == choose(options).source  # type: ignore[arg-type]
    assert Ebnf(MARK + "root = 'x' ;") == Ebnf("root = 'x' ;")
    with pytest.raises(ConstraintError, match="line 1, column 2"):
        choose({"json_schema": MARK + "{x}"})


@pytest.mark.parametrize(
    ("value", "instead"),
    [
        (Person(name="red", age=3), "the class, such as Person"),
        (Point(3, 4), "the class, such as Point"),
        (Colour.RED, "the class, such as Colour"),
        (b"red", "the text of the schema as a str"),
        (Path("red"), "the text of the schema as a str"),
        (("red",), "a JSON Schema, which is an object, or a type such as"),
        (re.compile("red"), "regex=, with its text"),
        (re, "a class in it"),
        (Field(title="red"), "Annotated"),
        (len, "its parameters as a type"),
    ],
)  # fmt: skip
def test_a_value_is_no_type_and_is_not_shown(value: Any, instead: str) -> None:
    name = type(value).__name__
    with pytest.raises(ConstraintError, match=f"an instance of {name} is a value, not a type; instead: {instead}") as raised:
        choose({"schema": value})
    assert "red" not in str(raised.value) and "3" not in str(raised.value)


def test_an_adapter_stands_for_its_type() -> None:
    choice = choose({"schema": TypeAdapter(list[int])})
    assert choice.source == choose({"schema": list[int]}).source and choice.read("[1,2]") == [1, 2]


def test_one_value_serves_all_prompts() -> None:
    assert [choice.source for choice in choose_for_each(3, {"regex": "a"})] == [Regex("a")] * 3
    assert [choice.source for choice in choose_for_each(2, {"choice": ["a", "b"]})] == [Choice(["a", "b"])] * 2


def test_lists_give_every_prompt_its_own() -> None:
    regexes, choices_of_each = ["a", None, None, None], [None, ["x", "y"], None, None]
    choices = choose_for_each(4, {"regex": regexes, "choice": choices_of_each, "schema": [None, None, None, Person]})
    assert [type(choice.source) for choice in choices] == [Regex, Choice, type(None), JsonSchema]


def test_front_ends_can_be_mixed() -> None:
    sources = [Regex("a"), JsonSchema(Person), Choice(["x"]), Gbnf('root ::= "x"'), None]
    choices = choose_for_each(5, {"constraint": sources})
    assert [choice.source for choice in choices] == sources
    assert choices[1].read('{"name":"Ada","age":36}') == {"name": "Ada", "age": 36}


def test_a_list_of_another_length_is_an_error() -> None:
    with pytest.raises(UsageError, match="regex= has 2 values for 3 prompts"):
        choose_for_each(3, {"regex": ["a", "b"]})


def test_two_constraints_for_one_prompt_of_many_are_an_error() -> None:
    with pytest.raises(UsageError, match="contradict"):
        choose_for_each(2, {"regex": ["a", None], "choice": [["x"], ["y"]]})
