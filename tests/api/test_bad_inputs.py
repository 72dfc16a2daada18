"""What makes no sense at the front door: a typed error that names the argument and says what to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import maskwright
from maskwright import LLM, LogitsProcessor, MaskwrightError, SamplingParams, generate
from maskwright.constraints import Choice, JsonSchema, Lark, Limits, Regex, StructuralTag


class Anything:
    pass


def untyped(a, b):  # type: ignore[no-untyped-def]  # that is what is tested
    """Adds."""


def options(**more: Any) -> Callable[[LLM], object]:
    return lambda llm: llm.generate("x", **more)


def sampled(**more: Any) -> Callable[[LLM], object]:
    return lambda llm: llm.generate("x", sampling=SamplingParams(**more))


def chat(**more: Any) -> Callable[[LLM], object]:
    return lambda llm: llm.chat("x", **more)


CASES: list[tuple[Callable[[LLM], object], str]] = [
    (lambda llm: llm.generate(None), "a prompt is a str, not NoneType"),  # type: ignore[arg-type]
    (lambda llm: llm.generate([1]), "a prompt is a str, not int"),  # type: ignore[list-item]
    (lambda llm: llm.generate("a\udcff"), r"the prompt is not Unicode: U\+DCFF in it is half of a surrogate pair"),
    (lambda llm: llm.chat("a\ud800"), r"the prompt is not Unicode: U\+D800 in it"),
    (lambda llm: list(llm.stream("\ud800", regex="a")), r"the prompt is not Unicode"),
    (lambda llm: llm.generate({"role": "user"}), r"conversations go to chat\(\)"),
    (lambda llm: llm.generate(["a", "b"], regex=["a"]), "regex= has 1 values for 2 prompts"),
    (lambda llm: llm.generate(["a", "b"], sampling=[SamplingParams()]), "sampling= has 1 values for 2 prompts"),
    (options(sampling={"temperature": 1}), r"sampling= is SamplingParams\(\.\.\.\)"),
    (options(temperature=1), r"unknown argument temperature=.*options go to sampling="),
    (options(priority="high"), "priority= is an integer, not 'high'"),
    (options(user=5), "user= is a str, not 5"),
    (options(regex="a", choice=["a"]), "regex= and choice= contradict each other"),
    (options(regex=5), "regex= is a str, not int"),
    (options(regex="("), "line 1, column 1: a parenthesis is never closed"),
    (options(regex=r"(a)\1"), "instead: the alternatives written out"),
    (options(choice="ab"), "choice= is a list of strings"),
    (options(choice=5), "choice= is a list of strings"),
    (options(choice=[1, 2]), "choice= is a list of strings"),
    (options(choice=[]), "instead: at least one string"),
    (options(grammar=""), "define it: start: ..."),
    (options(grammar="root ::= foo"), "define it: foo ::= ..."),
    (options(grammar='foo ::= "a"'), "define it: root ::= ..."),
    (options(schema=5), "an instance of int is a value, not a type"),
    (options(schema=iter([int])), r"an instance of list_iterator is a value, not a type; instead: a type such as list\[int\]"),
    (options(json_schema={"minLength": 2.5}), "a whole number from 0 is expected, not 2.5"),
    (lambda llm: llm.tokenizer.encode(None), "a text is a str, not NoneType"),  # type: ignore[arg-type]
    (options(schema=Anything), "no JSON schema for"),
    (options(schema="{"), "line 1, column 2: not JSON"),
    (options(schema={"type": "robot"}), "at # 'type': there is no type 'robot'; instead: one of null"),
    (options(schema={"$ref": "#/nope"}), r"at # '\$ref'"),
    (options(schema={"type": "integer", "minimum": 5, "maximum": 4}), "no value satisfies the schema"),
    (options(json_schema=Anything), "types go to schema="),
    (options(constraint="a+"), "a pattern goes to regex="),
    (options(constraint={}), "constraint= is a front end"),
    (options(schema={"type": "object", "required": ["abcdef"]}, sampling=SamplingParams(max_tokens=1)), "set max_tokens to at least"),
    (options(regex="a+", sampling=SamplingParams(stop="a")), "remove one of them"),
    (options(regex="a+", sampling=SamplingParams(ignore_eos=True)), "remove one of them"),
    (sampled(temperature=-1), "temperature must be a number >= 0"),
    (sampled(top_p=0), r"top_p must be a number in \(0, 1\]"),
    (sampled(n=2, best_of=1), "best_of must be"),
    (sampled(max_tokens=None), "max_tokens must be an integer >= 1, got None"),
    (sampled(stop=[""]), "stop must be a non-empty string"),
    (sampled(logit_bias={10**7: 1}), "logit_bias must be token ids below the vocabulary size"),
    (sampled(banned_token_ids=[10**7]), "banned_token_ids must be"),
    (sampled(stop_token_ids=[10**7]), "stop_token_ids must be"),
    (lambda llm: list(llm.stream("x", sampling=SamplingParams(n=2))), r"use generate\(\)"),
    (lambda llm: llm.beam_search("x", width=2, n=3), r"n must be an integer from 1 to width \(2\)"),
    (lambda llm: llm.particles("x", sampling=SamplingParams(top_k=3)), "does not understand top_k=3"),
    (chat(tools=[untyped]), 'tool "untyped": parameter "a" has no type annotation'),
    (chat(tools=[5]), "a tool is a function or a definition, not int"),
    (chat(tools="f"), "tools= is a list"),
    (chat(tools=[{"name": "a b"}]), "letters, digits"),
    (chat(tools=[{"name": "f", "parameters": "x"}]), 'tool "f": parameters are a JSON Schema, not str'),
    (chat(tools=[{"name": "f", "parameters": {"type": "array"}}]), 'tool "f": arguments are an object'),
    (chat(tools=[{"name": "f"}, {"name": "f"}]), 'two tools are called "f"'),
    (chat(tools=[{"name": "f"}], tool_choice="g"), r'the name of a tool \("f"\)'),
    (chat(tool_choice="required"), "needs tools="),
    (chat(tools=[{"name": "f"}], tool_style="nope"), "no style 'nope' of tool calls; instead:"),
    (chat(sampling=SamplingParams(n=2)), r"use generate\(\)"),
    (lambda _: LLM(5), "a model is a folder or the name of one, not int"),  # type: ignore[arg-type]
    (lambda _: generate("x", model=5), "a model is a folder or the name of one, not int"),  # type: ignore[arg-type]
    (lambda _: LLM("/nope"), "there is no such folder"),
    (lambda _: LLM("nobody/nothing"), "hf download nobody/nothing"),
    (lambda _: LLM(device="tpu"), 'unknown device "tpu"; use "auto"'),
    (lambda _: LLM(constraint_limits=5), "constraint_limits= is maskwright.constraints.Limits"),  # type: ignore[arg-type]
    (lambda _: LLM(constraint_cache_bytes=-1), "constraint_cache_bytes= is a number of bytes"),
    (lambda _: LogitsProcessor(5), "a compiled constraint is needed, not int"),  # type: ignore[arg-type]
    (lambda _: Limits(seconds=-1), "'seconds': a limit is a number that is not negative"),
    (lambda _: Limits(states="many"), "'states': a limit is a number"),  # type: ignore[arg-type]
    (lambda _: Regex(5), "a pattern is a string, not int"),  # type: ignore[arg-type]
    (lambda _: Regex("a", dialect="perl"), "instead: 'python' or 'ecma'"),
    (lambda _: JsonSchema({}, property_order="x"), "instead: 'declared' or 'any'"),
    (lambda llm: llm.compiler.compile(JsonSchema({}, draft="99")), "no draft '99' is known.*instead: draft= one of"),
    (lambda llm: llm.compiler.compile(Lark('start: "a"', start="x")), "instead: define it: x: ..."),
    (lambda llm: llm.compiler.compile(Choice([])), "a choice among nothing"),
    (lambda _: StructuralTag({"type": "x"}), "instead: any_text"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "message"), CASES, ids=[message[:50] for _, message in CASES])
def test_bad_inputs_are_typed_and_told(llm: LLM, call: Callable[[LLM], object], message: str) -> None:
    with pytest.raises(MaskwrightError, match=message):
        call(llm)


def test_one_base_catches_every_error() -> None:
    errors = [getattr(maskwright, name) for name in maskwright.__all__]
    kinds = [kind for kind in errors if isinstance(kind, type) and issubclass(kind, Exception)]
    assert len(kinds) > 8 and all(issubclass(kind, MaskwrightError) for kind in kinds)


def test_the_version_is_that_of_the_package() -> None:
    assert maskwright.__version__.count(".") >= 1
