"""Places in replies with parts: to which parameter of which tool each byte of a call belongs, against the arguments as they are parsed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from maskwright.constraints import Compiler, JsonSchema, Reasoning, StructuralTag, Tools, Vocabulary
from maskwright.constraints.front_ends.tags.tree import AnyOf, Repeat, Sequence, Tag, Text, Triggered
from maskwright.constraints.runtime.front_end import places_of

from ..json_schema.test_places import EOS, SCHEMAS, place_of, steps_of, walk
from .tool_cases import MARKED

COMPILER = Compiler(Vocabulary([bytes([i]) for i in range(256)] + [None], eos_token_ids=[EOS]))
NAMED = {
    "type": "object",
    "properties": {'a"b': {"type": "string", "maxLength": 2}, "é/~": {"type": "integer", "minimum": 0, "maximum": 9}},
    "required": ['a"b', "é/~"],
    "additionalProperties": False,
}
TOOLS = [
    {"name": "nested", "parameters": SCHEMAS["nested"]},
    {"name": "person", "parameters": SCHEMAS["members"]},
    {"name": "named", "parameters": NAMED},
]
BY_NAME: dict[str, Any] = {tool["name"]: tool["parameters"] for tool in TOOLS}
BEFORE = {"hermes": '"arguments":', "mistral": '"arguments":', "llama3-json": '"parameters":'}  # what stands before the arguments of a call


def calls_in(text: str, before: str) -> Iterator[tuple[str, int, int]]:
    """(name, first, end) of the arguments of each call, in characters that are bytes."""
    end = 0
    while (start := text.find(before, end)) >= 0:
        start += len(before)
        start += len(text[start:]) - len(text[start:].lstrip())
        name = max(BY_NAME, key=lambda each: text.rfind(each, end, start))
        end = json.JSONDecoder(strict=False).raw_decode(text, start)[1]
        yield name, start, end


@pytest.mark.parametrize("style", BEFORE)
def test_each_byte_of_a_call_is_where_the_parsed_arguments_have_it(style: str) -> None:
    constraint = COMPILER.compile(Tools(TOOLS, style=style, choice="required"))
    met = set()
    for seed in range(20):
        text = walk(constraint, seed, length=160)
        expected: list[tuple[str, ...]] = [()] * len(text)
        for name, start, end in calls_in(text.decode("latin-1"), BEFORE[style]):
            ways = steps_of(text[start:end])
            expected[start:end] = [(f"{name}{place_of(BY_NAME[name], decoded(way))}",) for way in ways]
            met.add(name)
        places = places_of(constraint)
        assert places is not None
        assert [places.read(bytes([byte])) for byte in text] == expected, text
    assert met == set(BY_NAME)


def decoded(way: tuple[str | int, ...]) -> tuple[str | int, ...]:
    """Names as they are: `steps_of` reads bytes."""
    return tuple(step if isinstance(step, int) else step.encode("latin-1").decode() for step in way)


OPEN: dict[str, tuple[Any, str]] = {
    "names unlike those that are declared": ({"properties": {"ab": {"type": "integer"}, "ac": {}}}, '{"ab":1,"b":2,"aa":3,"acd":4}'),
    "names that are excluded": ({"propertyNames": {"not": {"enum": ["zz", "zy"]}}}, '{"za":1,"y":2}'),
    "steps": ({"properties": {"a": {"multipleOf": 7}, "b": {"multipleOf": 0.05}}}, '{"a":14,"b":1.25}'),
    "negated members": ({"not": {"properties": {"a": {"const": "aa"}, "b": {"type": "integer"}}}}, '{"a":"ab","c":{"x":[1,"y"]},"b":"1"}'),
    "counted items": ({"properties": {"a": {"contains": {"minimum": 3}, "minContains": 2, "items": {"type": "integer"}}}}, '{"a":[1,5,4]}'),
    "pairs": ({"minProperties": 2, "patternProperties": {"^a": {"type": "integer"}}, "dependentRequired": {"q": ["r"]}}, '{"q":1,"r":2,"a1":3}'),
}  # fmt: skip


@pytest.mark.parametrize(("said", "text"), OPEN.values(), ids=OPEN)
def test_it_is_known_of_each_byte_of_a_call_what_it_is_a_part_of(said: Any, text: str) -> None:
    parameters = {"type": "object", "properties": {"x": {"type": "object", **said}}, "required": ["x"], "additionalProperties": False}
    constraint = COMPILER.compile(Tools([{"name": "f", "parameters": parameters}], choice="required", whitespace="compact"))
    state: Any = constraint.start()
    for byte in f'<tool_call>\n{{"name": "f", "arguments": {{"x":{text}}}}}\n</tool_call>'.encode():
        state, told = constraint.step(state, byte)
        assert state is not None and told


@pytest.mark.parametrize("around", ["triggered", "sequence", "alternatives"])
def test_each_byte_of_a_tag_is_where_its_parsed_content_has_it(around: str) -> None:
    tags = [Tag(f"<{name}>", JsonSchema(schema, whitespace="flexible"), f"</{name}>") for name, schema in BY_NAME.items()]
    parts = {"triggered": Triggered(["<"], tags, at_least_one=True), "sequence": Sequence(tags), "alternatives": Repeat(AnyOf(tags), 1, 3)}
    constraint = COMPILER.compile(StructuralTag(parts[around]))
    for seed in range(12):
        text = walk(constraint, seed, length=120)
        expected: list[tuple[str, ...]] = [()] * len(text)
        for found in re.finditer(rb"<(nested|person|named)>(.*?)</\1>", text, re.DOTALL):
            name, value = found[1].decode(), found[2].lstrip(b" \t\r\n")
            ways = [()] * (len(found[2]) - len(value)) + steps_of(value)
            expected[found.start(2) : found.end(2)] = [(f"<{name}>{place_of(BY_NAME[name], decoded(way))}",) for way in ways]
        places = places_of(constraint)
        assert places is not None
        assert [places.read(bytes([byte])) for byte in text] == expected, text


def test_structural_tags_that_say_two_things_of_one_text_tell_no_place() -> None:
    tags = [Tag("<a>", JsonSchema({"type": kind}), "</a>") for kind in ("integer", "boolean")]
    assert told(StructuralTag(AnyOf(tags)), "<a>", "1", "</a>") == [[], [], []]
    assert told(StructuralTag({"type": "structural_tag", "format": {"type": "json_schema", "json_schema": True}}), "[", "1") == [["#"], ["#"]]
    assert places_of(COMPILER.compile(StructuralTag(Text()))) is None


def told(source: Any, *pieces: str) -> list[list[str]]:
    places = places_of(COMPILER.compile(source))
    assert places is not None
    return [list(places.read(piece.encode())) for piece in pieces]


def test_parameters_that_are_written_one_by_one() -> None:
    tool = {
        "name": "f",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string"},
                "at": {"$ref": "#/$defs/at"},
            },
            "required": ["city", "at"],
            "additionalProperties": False,
            "$defs": {"at": {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"], "additionalProperties": False}},
        },
    }
    pieces = ("<tool_call>\n<function=f>\n<parameter=city>\n", "Porto", "\n</parameter>\n<parameter=at>\n", '{"x": ', "7", "}", "\n</parameter>\n</function>\n</tool_call>")
    before, city, between, at, x, close, after = told(Tools([tool], style="qwen3-coder", choice="required"), *pieces)
    assert (before, city, between) == ([], ["f#/properties/city"], ["f#/properties/city"])  # what may be text until it ends
    assert (at, x, close, after) == (["f#/properties/at"], ["f#/$defs/at/properties/x"], ["f#/properties/at"], [])


def test_an_answer_beside_tools_and_behind_reasoning_has_the_places_of_its_schema() -> None:
    answer = JsonSchema({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False})
    whole = told(Tools(TOOLS, answer=answer), '{"a": ', "1", "}")
    assert whole == [["#"], ["#/properties/a"], ["#"]]
    thought, brace, number = told(Reasoning(answer), '<think>{"a": 5}', '</think>\n{"a": ', "1")
    assert thought == [] and brace == ["#"] and number == ["#/properties/a"]
    assert told(Reasoning(Tools(TOOLS, style="mistral", choice="required")), '<think>a</think>[TOOL_CALLS][{"name": "person", "arguments": ', '{"name":"', "A", '"') == [
        [], ["person#", "person#/properties/name"], ["person#/properties/name"], ["person#/properties/name"],
    ]  # fmt: skip


def test_marks_that_are_special_tokens_are_told_by_their_spelling() -> None:
    constraint = Compiler(MARKED).compile(Tools(TOOLS, style="mistral", choice="required"))
    vocabulary, places = constraint.vocabulary, places_of(constraint)
    assert places is not None and "[TOOL_CALLS]" in vocabulary.special_tokens
    assert places.read(vocabulary.spellings[vocabulary.special_tokens["[TOOL_CALLS]"]] or b"") == ()
    assert places.read(b'[{"name": "person", "arguments": {"name": "A') == ("person#", "person#/properties/name")


def test_the_text_of_a_custom_tool_is_its_input() -> None:
    tool = {"type": "custom", "name": "shell"}
    before, inside = told(Tools([tool], choice="required"), '<tool_call>\n{"name": "shell", "arguments": ', '{"input": "ls')
    assert before == [] and inside == ["shell#", "shell#/properties/input"]
