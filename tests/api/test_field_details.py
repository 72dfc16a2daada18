"""What a constraint did to each value: the numbers of tokens, put together by value."""

from __future__ import annotations

import json
import logging
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from maskwright import LLM, RequestError, SamplingParams, UsageError
from maskwright.constraints import Compiler, JsonSchema, Tools, Vocabulary
from maskwright.engine.requests.output import TokenRecord
from maskwright.events import FieldClosed
from maskwright.field_details import STRAINED, WHOLE, FieldDetails, FieldReader, Fields, fields_of, path_text

ASKED = SamplingParams(temperature=0.0, max_tokens=80, field_details=True)
LEAVES = st.none() | st.booleans() | st.integers(-99, 99) | st.text("ab\\\"é/~ ", max_size=4) | st.floats(-9, 9, allow_nan=False)
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("k/~", max_size=2), inner, max_size=3), max_leaves=8)


class Trip(BaseModel):
    city: str
    days: int
    stops: list[bool]


def byte_vocabulary(*more: bytes) -> Vocabulary:
    return Vocabulary([*(bytes([byte]) for byte in range(256)), *more, None], eos_token_ids=[256 + len(more)])


def paths_in(value: Any, path: tuple[Any, ...] = ()) -> dict[tuple[Any, ...], Any]:
    """The slow, obvious way to all values."""
    found = {path: value}
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, member in members:
        found |= paths_in(member, (*path, name))
    return found


@given(VALUES, st.sampled_from([None, 1]), st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=60)
def test_every_value_has_the_numbers_of_the_tokens_that_spell_it(value: Any, indent: int | None, random: Any) -> None:
    text = json.dumps(value, ensure_ascii=False, indent=indent).encode()
    cuts = sorted(random.sample(range(1, len(text)), min(len(text) - 1, random.randint(0, 9)))) if len(text) > 1 else []
    pieces = [text[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    vocabulary = byte_vocabulary(*pieces)
    constraint = Compiler(vocabulary).compile(JsonSchema(True, whitespace="flexible"))
    records = [TokenRecord(256 + at, -random.random(), random.random(), 2) for at in range(len(pieces))]
    found = fields_of(records, FieldReader(constraint, vocabulary), is_complete=True)
    assert set(found) == set(paths_in(value))
    for path, details in found.items():
        spelled = b"".join(pieces[details.start : details.stop]).decode(errors="replace")
        written = json.dumps(paths_in(value)[path], ensure_ascii=False)
        assert "".join(written.split()) in "".join(spelled.split()), (path, spelled)
        own = records[details.start : details.stop]
        assert math.isclose(details.logprob, sum(record.logprob or 0 for record in own), abs_tol=1e-9)
        assert math.isclose(details.kept_mass, math.prod(record.kept_mass or 0 for record in own), rel_tol=1e-6, abs_tol=1e-25)


def test_a_number_ends_with_the_token_behind_it() -> None:
    vocabulary = byte_vocabulary(b'{"a":', b"12", b", ", b'"b":', b"3", b"}")
    constraint = Compiler(vocabulary).compile(JsonSchema(True, whitespace="flexible"))
    kept = [1.0, 0.5, 0.01, 1.0, 0.25, 1.0]
    records = [TokenRecord(256 + at, math.log(0.5), mass, 2) for at, mass in enumerate(kept)]
    fields = fields_of(records, FieldReader(constraint, vocabulary), is_complete=True)
    assert (fields["a"].start, fields["a"].stop) == (1, 3) and fields["a"].kept_mass == pytest.approx(0.005)
    assert fields["a"].is_strained and not fields["b"].is_strained
    assert fields["a"].constrained_probability == 1.0  # never above 1, whatever rounding does
    assert fields["b"].probability == pytest.approx(0.25) and fields["b"].constrained_probability == 1.0
    assert fields.strained == (fields["a"],) and not fields[WHOLE].is_strained


def test_the_model_is_asked_for_every_token(llm: LLM) -> None:
    (output,) = llm.generate("Oslo for 3 days.", schema=Trip, sampling=ASKED)
    assert output.text == llm.generate("Oslo for 3 days.", schema=Trip, sampling=SamplingParams(temperature=0.0, max_tokens=80))[0].text
    assert set(output.fields) == set(paths_in(json.loads(output.text)))
    assert not any(details.num_unasked for details in output.fields.values())
    whole = output.fields[()]
    assert (whole.start, whole.stop) == (0, len(output.token_ids)) and not whole.is_leaf
    for details in output.fields.values():
        assert details.logprob <= details.log_kept + 1e-6 <= 2e-6
        assert details.probability == pytest.approx(details.constrained_probability * details.kept_mass, rel=1e-3, abs=1e-9)
    assert output.logprobs is None


def test_what_was_not_asked_for_is_an_error(llm: LLM) -> None:
    (output,) = llm.generate("Oslo", schema=Trip)
    with pytest.raises(UsageError, match="field_details=True"):
        output.fields  # noqa: B018
    with pytest.raises(RequestError, match="there is no constraint"):
        llm.generate("Oslo", sampling=ASKED)


def test_a_stream_tells_with_each_field(llm: LLM) -> None:
    *events, done = llm.stream("Oslo for 3 days.", schema=Trip, sampling=ASKED)
    closed = {event.path: event.details for event in events if isinstance(event, FieldClosed)}
    assert closed == dict(done.output.fields)  # type: ignore[union-attr]
    plain = [event for event in llm.stream("Oslo for 3 days.", schema=Trip) if isinstance(event, FieldClosed)]
    assert plain and all(event.details is None for event in plain)


def test_a_number_that_is_all_of_the_output_is_told_of(llm: LLM) -> None:
    *events, done = llm.stream("How many?", json_schema={"type": "integer", "minimum": 7, "maximum": 7}, sampling=ASKED)
    (closed,) = [event for event in events if isinstance(event, FieldClosed)]
    assert closed.path == () and closed.details == done.output.fields[()]  # type: ignore[union-attr]
    (output,) = llm.generate("Which?", choice=["left", "right"], sampling=ASKED)
    assert list(output.fields) == [()] and output.fields[()].stop == len(output.token_ids)


def test_a_strained_field_is_written_to_the_log(llm: LLM, caplog: pytest.LogCaptureFixture) -> None:
    odd = {"type": "object", "properties": {"a": {"const": "zqxjkvbzqx"}}, "required": ["a"], "additionalProperties": False}
    with caplog.at_level(logging.WARNING):
        (output,) = llm.generate("Oslo", json_schema=odd, sampling=ASKED)
    assert output.fields["a"].kept_mass < STRAINED and output.fields["a"].is_strained
    assert any("a: the constraint left" in record.getMessage() for record in caplog.records)


@pytest.mark.parametrize("style", ["hermes", "llama3-json", "qwen3-coder"])
def test_arguments_are_found_by_the_number_of_their_call(style: str) -> None:
    tool = {"name": "go", "parameters": {"type": "object", "properties": {"to": {"type": "string"}, "n": {"type": "integer"}}, "required": []}}
    vocabulary = byte_vocabulary()
    constraint = Compiler(vocabulary).compile(Tools([{"type": "function", "function": tool}], style=style, choice="required"))
    text = {
        "hermes": '<tool_call>\n{"name": "go", "arguments": {"to": "x"}}\n</tool_call>\n<tool_call>\n{"name": "go", "arguments": {"n": 5}}\n</tool_call>',
        "llama3-json": '{"name": "go", "parameters": {"to": "x"}}; {"name": "go", "parameters": {"n": 5}}',
        "qwen3-coder": "<tool_call>\n<function=go>\n<parameter=to>\nx\n</parameter>\n</function>\n</tool_call>\n"
        "<tool_call>\n<function=go>\n<parameter=n>\n5\n</parameter>\n</function>\n</tool_call>",
    }[style].encode()
    if not constraint.accepts(text):
        pytest.skip(f"{style} writes calls in another way")
    fields = fields_of([TokenRecord(byte, -1.0, 0.5, 2) for byte in text], FieldReader(constraint, vocabulary), is_complete=True)
    assert {(0, "to"), (1, "n")} <= set(fields) and (0, "n") not in fields and (1, "to") not in fields


def test_paths_are_written_as_people_do() -> None:
    assert [path_text(path) for path in [(), ("a",), ("a", 0, "b"), (0, "to")]] == ["the output", "a", "a[0].b", "[0].to"]
    some = Fields([FieldDetails(("a", 0), 1, 2, -1.0, -0.5)])
    assert some["a", 0].kept_mass == pytest.approx(math.exp(-0.5)) and ("b",) not in some and len(some) == 1
