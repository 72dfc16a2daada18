"""Values in which a model repeats itself are ended, and nothing else is changed."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from maskwright.constraints import Choice, Compiler, Gbnf, JsonSchema, Reasoning, Regex, Tools, Vocabulary
from maskwright.engine.errors import RequestError
from maskwright.engine.requests import loops
from maskwright.engine.requests.guide import Guide, MaskViews
from maskwright.engine.requests.loops import FEWEST_REPETITIONS, LONGEST_CYCLE, Loop, LoopWatch
from maskwright.engine.requests.member_loops import FACTOR_OF_MEMBERS, FEWEST_MEMBERS, MemberWatch
from maskwright.engine.requests.request import Request
from maskwright.engine.requests.steering import DEFAULT_BOUND, FEWEST_ITEMS, PATIENCE, steering_for
from maskwright.engine.search.beams import BeamSearch
from maskwright.engine.search.particles import Particles
from maskwright.engine.sessions.sessions import Sessions
from maskwright.sampling import SamplingParams

from .conftest import check_nothing_leaked, run_all, tiny_vocabulary
from .fake_constraint import brackets
from .test_pipeline import LOOPS

# ---- cycles in tokens


def covered(tokens: Sequence[int], period: int) -> int:
    """How many of the last tokens a cycle of this period covers; 0 when there are fewer than a period."""
    if len(tokens) < period:
        return 0
    length = period
    while length < len(tokens) and tokens[-length - 1] == tokens[-length - 1 + period]:
        length += 1
    return length


def slow_period(tokens: Sequence[int], bound: int) -> int | None:
    needed = {period: max(bound, FEWEST_REPETITIONS * period) for period in range(1, LONGEST_CYCLE + 1)}
    return next((period for period, length in needed.items() if covered(tokens, period) >= length), None)


CYCLES = st.lists(
    st.tuples(st.lists(st.integers(0, 3), min_size=1, max_size=5), st.integers(1, 9)), min_size=1, max_size=8
).map(lambda parts: [token for cycle, times in parts for token in cycle * times])  # fmt: skip


@settings(deadline=None, max_examples=150)
@given(CYCLES, st.integers(1, 20))
@example(list(range(LONGEST_CYCLE)) * 4, 8)
@example(list(range(LONGEST_CYCLE + 1)) * 5, 8)
def test_the_watch_finds_what_a_slow_search_finds(tokens: list[int], bound: int) -> None:
    watch = LoopWatch(bound)
    for read, token in enumerate(tokens, 1):
        watch.take(token)
        assert watch.period() == slow_period(tokens[:read], bound)
        if (period := watch.period()) is not None:
            assert watch.last(period) == tokens[read - period : read]
        for period, length in itertools.product((1, 2, 3), (bound, 2 * bound)):
            if length > period:
                assert watch.covers(period, length) == (covered(tokens[:read], period) >= length)


@settings(deadline=None, max_examples=150)
@given(CYCLES, CYCLES, st.integers(1, 20))
def test_no_loop_comes_before_it_may(tokens: list[int], more: list[int], bound: int) -> None:
    watch = LoopWatch(bound)
    for token in tokens:
        watch.take(token)
    idle = next(count for count in range(100) if not watch.is_none_within(count))
    for period in range(1, 6):  # the cycles that have begun, and any other tokens
        fork = watch.fork()
        ahead = list(itertools.islice(itertools.cycle(tokens[-period:]), idle - 1 if idle else 0))
        for token in (ahead, more)[period % 2][: max(idle - 1, 0)]:
            fork.take(token)
            assert fork.period() is None
    assert idle == 0 or watch.period() is None


def test_long_outputs_take_no_more_memory() -> None:
    watch, numbers = LoopWatch(32), np.random.default_rng(1)
    for token in numbers.integers(0, 500, 20_000).tolist():
        watch.take(token)
    assert len(watch._tokens) < 2_000 and watch.period() is None
    for _ in range(32):
        watch.take(7)
    assert watch.period() == 1 and watch.num_read == 20_032


def test_what_was_read_before_is_no_part_of_a_loop() -> None:
    watch = LoopWatch(8)
    for _ in range(7):
        watch.take(1)
    watch.clear()
    for _ in range(7):
        watch.take(1)
    assert watch.period() is None
    watch.take(1)
    assert watch.period() == 1


# ---- outputs of a model that has its will wherever the mask lets it

PIECES = [b'",', b'"}', b'","', b"ab", b"ba", b"00", b"},{", b"],", "é".encode(), b"</"]
VOCABULARY = Vocabulary([None, *(bytes([byte]) for byte in range(128)), *PIECES, b"\xc3", b"\xa9"], eos_token_ids=[0])
COMPILER = Compiler(VOCABULARY)
ID_OF = {token: number for number, token in enumerate(VOCABULARY.tokens) if token}
Will = Callable[[bytes], Sequence[bytes]]  # of the text so far: the tokens that are liked best, the best one first
BOUND = 8


def schema(*, required: Sequence[str] | None = None, **members: Any) -> dict[str, Any]:
    given = list(members) if required is None else required
    return {"type": "object", "properties": members, "required": given, "additionalProperties": False}


def cycle(*tokens: bytes) -> Will:
    """A model that says these tokens again and again, from their beginning wherever something else came between."""

    def will(text: bytes) -> Sequence[bytes]:
        whole = b"".join(tokens)
        said = next((size for size in range(len(whole) - 1, 0, -1) if text.endswith(whole[:size])), 0)
        for place in range(len(tokens)):
            if len(b"".join(tokens[:place])) == said:
                return [tokens[place]]
        return [tokens[0]]

    return will


def tokens_in(mask: np.ndarray) -> list[int]:
    return np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little")).tolist()


def check_ends(guide: Guide) -> None:
    """Of all allowed tokens, read one by one, those remain that end the value soonest; if there are any. (What is no JSON ends with the
    text, or on the shortest way.)"""
    steering = guide.steering
    if steering is None or steering._target is None or not guide.num_left:
        return
    allowed = tokens_in(guide.constraint.mask(guide.state, budget=guide.num_left))
    reads = steering._target.kind != "text"
    sizes = {token: 0 if token == 0 else steering._size_until_end(steering._target, token) if reads else None for token in allowed}
    found = {token: size for token, size in sizes.items() if size is not None}
    if found:
        assert tokens_in(steering.mask) == [token for token, size in found.items() if size == min(found.values())]
    elif steering.mask is not None:
        least = guide.constraint.min_tokens(guide.state)
        assert all(guide.constraint.min_tokens(guide.constraint.advance(guide.state, token)) < least for token in tokens_in(steering.mask))


def written(source: Any, will: Will, bound: int | None = BOUND, max_tokens: int = 120) -> tuple[str, tuple[Loop, ...]]:
    """What a model of this will writes under a constraint, and the loops that were ended. Where it may not have its will it hurries
    to the end."""
    constraint = COMPILER.compile(source)
    guide = Guide(constraint, max_tokens, steering=steering_for(constraint, bound, b""))
    tokens: list[int] = []
    while len(tokens) < max_tokens:
        MaskViews().fill([guide])
        assert guide.failure is None and guide.num_allowed > 0
        check_ends(guide)
        allowed = tokens_in(guide.mask)
        text = b"".join(VOCABULARY.tokens[token] or b"" for token in tokens)
        liked = [ID_OF[token] for token in will(text) if ID_OF[token] in allowed]
        token = liked[0] if liked else 0 if 0 in allowed else min(allowed, key=lambda t: constraint.min_tokens(constraint.advance(guide.state, t)))
        if token == 0:
            break
        if guide.advance(token):
            tokens.append(token)
    text = b"".join(VOCABULARY.tokens[token] or b"" for token in tokens)
    assert constraint.accepts(text), text
    return text.decode(), guide.loops


def test_a_string_is_closed_and_what_follows_is_free() -> None:
    source = JsonSchema(schema(a={"type": "string"}, b={"type": "integer"}))
    text, ended = written(source, cycle(b"x"))
    assert json.loads(text)["a"] == "x" * BOUND
    assert ended == (Loop("#/a", "x", BOUND, start=6),)
    free, none = written(source, cycle(b"x"), bound=0)
    assert none == () and len(json.loads(free)["a"]) > 100


def test_a_number_is_ended_and_optional_members_are_still_there() -> None:
    source = JsonSchema(schema(required=["n"], n={"type": "number"}, more={"type": "boolean"}))
    text, ended = written(source, lambda text: [b"1", b",", b"t"])
    assert text == '{"n":' + "1" * BOUND + ',"more":true}' and ended == (Loop("#/n", "1", BOUND, 5),)


def test_a_number_may_not_end_behind_its_point() -> None:
    """It has no zeros at its end either, which only the shortest way leads out of."""
    source = JsonSchema(schema(n={"type": "number"}))
    text, ended = written(source, lambda text: [b"1"] if len(text) == 5 else [b"."] if len(text) == 6 else [b"0"])
    number = text.removeprefix('{"n":').removesuffix("}")
    assert number[:2] == "1." and number[-1] != "0" and number[2:-1] == "0" * (len(number) - 3)
    assert BOUND + 3 <= len(number) <= BOUND + PATIENCE + 4 and len(ended) == 1


def test_equal_items_are_ended_with_their_array_and_may_be_twice_as_long() -> None:
    source = JsonSchema(schema(v={"type": "array", "items": {"type": "integer"}}, w={"type": "string"}))
    text, ended = written(source, lambda text: {b"[": [b"7"], b"7": [b","], b",": [b"7"]}.get(text[-1:], []))
    items = json.loads(text)["v"]
    assert items == [7] * len(items) and len(items) in (BOUND, BOUND + 1)
    assert [(each.path, sorted(each.text)) for each in ended] == [("#/v", [",", "7"])]


def test_items_that_are_parted_within_tokens_are_ended_too() -> None:
    strings = JsonSchema({"type": "array", "items": {"type": "string"}})
    text, ended = written(strings, lambda text: [b'"'] if text == b"[" else [b'","'] if text.endswith(b"a") else [b"a"], max_tokens=400)
    assert set(json.loads(text)) <= {"a", ""} and len(json.loads(text)) < 2 * BOUND + PATIENCE and len(ended) == 1
    objects = JsonSchema({"type": "array", "items": schema(a={"type": "integer"})})
    text, ended = written(objects, lambda text: [b"{"] if text == b"[" else [b"},{"] if text.endswith(b"1") else [b"1"], max_tokens=400)
    assert json.loads(text) == [{"a": 1}] * len(json.loads(text)) and len(json.loads(text)) < 2 * BOUND + PATIENCE
    assert [each.path for each in ended] == ["#"]


@pytest.mark.parametrize("of_objects", [False, True])
def test_an_array_in_which_one_item_after_the_other_loops_is_ended_too(of_objects: bool) -> None:
    """Other members and other arrays are none of its items."""
    item = schema(k={"type": "integer"}, s={"type": "string"}) if of_objects else {"type": "string"}
    source = JsonSchema(schema(a={"type": "string"}, b={"type": "string"}, v={"type": "array", "items": item}, w={"type": "array", "items": {"type": "string"}}))

    def will(text: bytes) -> Sequence[bytes]:
        in_array = text.count(b"[") > text.count(b"]")
        behind_item = in_array and text[-1:] in b'"}' and not text.endswith(b'["') and text[-2:] not in (b',"', b':"')
        return [b",", b"x"] if behind_item else [b"x", b'"', *([b"{"] if of_objects else [])]

    text, ended = written(source, will, max_tokens=400)
    value = json.loads(text)
    assert value["a"] == value["b"] == "x" * BOUND
    assert [each["s"] if of_objects else each for each in value["v"]] == ["x" * BOUND] * 3
    assert value["w"] == ["x" * BOUND] * 3
    assert [each.path for each in ended if each.path in ("#/v", "#/w")] == ["#/v", "#/w"]
    assert all((each.text, each.count) == ("x", 3) for each in ended if each.path in ("#/v", "#/w"))


def test_recursion_is_closed_again() -> None:
    tree = {"type": "object", "properties": {"a": {"$ref": "#"}}, "additionalProperties": False}
    text, ended = written(JsonSchema(tree), lambda text: {b"{": [b'"'], b":": [b"{"]}.get(text[-1:], []), max_tokens=600)
    assert text.count("{") < 2 * BOUND + PATIENCE and [each.path for each in ended] == ["#"]


MAP = JsonSchema({"type": "object", "additionalProperties": {"type": "integer"}}, whitespace="compact")


def numbered(name: str, value: Callable[[int], str], first: int = 1) -> Will:
    """A model that writes members with counted names."""

    def will(text: bytes) -> Sequence[bytes]:
        said = "{" + ",".join(f'"{name}{number}":{value(number)}' for number in range(first, first + 200))
        return [said[len(text) : len(text) + 1].encode()] if said.encode().startswith(text) else []

    return will


def test_arrays_in_arrays_are_closed_though_new_ones_are_begun() -> None:
    nested = JsonSchema({"$defs": {"n": {"type": "array", "items": {"$ref": "#/$defs/n"}}}, "$ref": "#/$defs/n"})
    depth = 2 * BOUND + 1
    text, ended = written(nested, lambda text: [b"["] if text.count(b"[") < depth or text.endswith(b",") else [b"]", b","][text.endswith(b"]") :], max_tokens=200)
    assert [each.path for each in ended] == ["#"] and len(text) < 3 * depth + 3 * PATIENCE


@pytest.mark.parametrize(("name", "first"), [("key", 1), ("k_", 95), ("", 123456), ("a1b", 7)])
def test_members_whose_names_differ_in_digits_alone_are_a_loop(name: str, first: int) -> None:
    text, ended = written(MAP, numbered(name, lambda _: "10", first), max_tokens=400)
    members = json.loads(text)
    assert FEWEST_MEMBERS <= len(members) <= 2 * BOUND * FACTOR_OF_MEMBERS / len('"1":10,') and set(members.values()) == {10}
    assert [(each.path, each.count <= len(members)) for each in ended] == [("#", True)]
    assert written(MAP, numbered(name, lambda _: "10", first), bound=None, max_tokens=100)[1] == ()


def test_members_that_say_something_are_none() -> None:
    values: list[Callable[[int], str]] = [str, lambda number: str(number % 3)]
    for value in values:
        text, ended = written(MAP, numbered("key", value), max_tokens=500)
        assert len(json.loads(text)) > 40 and ended == ()
    numbers = f"[{','.join(map(str, range(10, 99)))}"
    source = JsonSchema({"type": "array", "items": {"type": "integer"}}, whitespace="compact")
    counted, ended = written(source, lambda text: [numbers[len(text) : len(text) + 1].encode()])
    assert len(json.loads(counted)) > 30 and ended == ()


def test_an_object_whose_names_loop_one_after_the_other_is_ended() -> None:
    letters = iter("abcdefghijklmnop" * 100)
    text, ended = written(MAP, lambda text: [b'"'] if text[-1:] in b"{," else [b","] if text[-1:].isdigit() else [text[-1:] if text[-1:] not in b'":' else
        next(letters).encode(), b"1"], max_tokens=400)  # fmt: skip
    assert list(json.loads(text)) == [letter * BOUND for letter in list(json.loads(text)) for letter in letter[:1]]
    assert len(json.loads(text)) == FEWEST_ITEMS and [each.path for each in ended] == ["#"] * (FEWEST_ITEMS + 1)


def test_no_loop_of_members_comes_before_it_may() -> None:
    text = "{" + ",".join(f'"key{number}":10' for number in range(60))
    watch = MemberWatch(BOUND)
    idle = found = 0
    for place, character in enumerate(text):
        idle = max(idle - 1, 0)
        watch.take(ord(character), character.encode())
        assert not (idle and watch.loop()), place
        found += watch.loop() is not None
        idle = max(idle, next(count for count in range(99) if not watch.is_none_within(count)))
    assert found > 10
    watch.clear()
    assert watch.loop() is None


def test_a_key_is_ended() -> None:
    text, ended = written(JsonSchema({"type": "object", "additionalProperties": {"type": "null"}}), lambda text: [b'"', b"k"] if text == b"{" else [b"k"])
    assert text.startswith('{"' + "k" * BOUND + '"') and ended[0].path == "#"


def test_the_root_may_be_the_value() -> None:
    text, ended = written(JsonSchema({"type": "integer"}), cycle(b"1"))
    assert text == "1" * BOUND and [each.path for each in ended] == ["#"]


def test_characters_are_completed_first() -> None:
    text, ended = written(JsonSchema(schema(a={"type": "string"})), cycle(b"\xc3", b"\xa9"))
    assert set(json.loads(text)["a"]) == {"é"} and len(json.loads(text)["a"]) == BOUND and len(ended) == 1
    text, _ = written(JsonSchema(schema(a={"type": "string"}), escapes="any"), cycle(b"\\", b"n"))
    assert set(json.loads(text)["a"]) == {"\n"} and len(json.loads(text)["a"]) <= BOUND + 1


@pytest.mark.parametrize("wanted", [{"minLength": 60}, {"pattern": "^x{60}$"}, {"pattern": "^[a-z]{50,60}$", "maxLength": 60}])
def test_what_the_constraint_requires_is_left_to_the_model(wanted: dict[str, Any]) -> None:
    source = JsonSchema(schema(a={"type": "string", **wanted}))
    text, ended = written(source, cycle(b"x"), max_tokens=200)
    assert json.loads(text)["a"] == "x" * wanted.get("minLength", 50 if "50" in str(wanted) else 60)
    assert len(ended) == (wanted["minLength"] > 0 if "minLength" in wanted else "50" in str(wanted))


@pytest.mark.parametrize("source", [
    JsonSchema({"const": "x" * 60}), JsonSchema({"enum": ["x" * 60, "y"]}), JsonSchema({"const": [0] * 40}, whitespace="compact"),
    JsonSchema({"type": "array", "prefixItems": [{"const": {"a": 1}}] * 30, "items": False, "minItems": 30}, whitespace="compact"),
])  # fmt: skip
def test_forced_text_is_no_loop(source: JsonSchema) -> None:
    steered = written(source, cycle(b"x"), max_tokens=300)
    assert steered == (written(source, cycle(b"x"), bound=0, max_tokens=300)[0], ())


def test_a_pattern_that_ends_between_tokens_comes_to_its_end() -> None:
    source = JsonSchema(schema(a={"type": "string", "pattern": "^(ab)+$"}))
    text, ended = written(source, lambda text: [b"a"] if text.endswith(b'"a":"') else [b"ba"], max_tokens=300)
    assert len(json.loads(text)["a"]) <= 2 * (BOUND + PATIENCE) + 4 and len(ended) == 1


def test_short_runs_stay() -> None:
    for run in (b"----------", b"0000000000", b"ab" * 10, b"\t" * 12, b"AAAAAAAA=="):
        text, ended = written(Regex("x"), cycle(b"x"))
        assert (text, ended) == ("x", ())
        will: Will = lambda text, run=run: [run[len(text) - 6 :][:1]] if 6 <= len(text) < 6 + len(run) else [b'"', b"}"]  # noqa: E731
        source = JsonSchema(schema(a={"type": "string"}), escapes="any")
        assert written(source, will, bound=None) == written(source, will, bound=0)


def test_arguments_of_tools_are_ended_and_text_is_not() -> None:
    tool = {"name": "f", "parameters": schema(a={"type": "string"}, b={"type": "string"})}
    will: Will = lambda text: [b'"', b"'"] if text.endswith((b'":', b"a=")) else [b"x"]  # noqa: E731
    for style in ("hermes", "qwen3-coder", "llama-pythonic", "mistral"):
        text, ended = written(Tools([tool], style=style, choice="required", whitespace="compact"), will, bound=None, max_tokens=400)
        assert "x" * DEFAULT_BOUND in text and "x" * (DEFAULT_BOUND + 2 * PATIENCE) not in text and ended[0].path == "f#/a"
    text, ended = written(Tools([tool], choice="auto"), cycle(b"x"), bound=None, max_tokens=100)
    assert (text, ended) == ("x" * 100, ())
    text, ended = written(Reasoning(JsonSchema({"type": "string"})), lambda text: [b"</"] if text.count(b"x") == 70 else [b"x"], bound=None, max_tokens=200)
    assert "x" * 70 in text and ended == ()


@pytest.mark.parametrize("source", [Regex("x*"), Gbnf('root ::= "x"*'), Choice(["x" * 90, "y"]), Reasoning(Regex("x*"))])
def test_other_constraints_are_left_alone_unless_it_is_asked_for(source: Any) -> None:
    will = cycle(b"x")
    assert written(source, will, bound=None)[0] == written(source, will, bound=0)[0]
    text, ended = written(source, will, bound=BOUND, max_tokens=100)
    if isinstance(source, Choice):
        assert (text, ended) == ("x" * 90, ())
    elif not isinstance(source, Reasoning):
        assert text == "x" * BOUND and ended == (Loop("#", "x", BOUND, 0),)


def test_what_the_prompt_has_begun_belongs_to_the_value() -> None:
    constraint, begun = COMPILER.compile(JsonSchema(schema(a={"type": "string"}))), b'{"a":"x'
    state = constraint.advance_bytes(constraint.start(), begun)
    guide = Guide(constraint, 90, (), state, steering_for(constraint, BOUND, begun))
    for _ in range(BOUND):
        assert guide.advance(ID_OF[b"x"])
    MaskViews().fill([guide])
    assert guide.is_steered and guide.mask[ID_OF[b"x"] // 32] >> ID_OF[b"x"] % 32 & 1 == 0
    assert guide.loops == (Loop("#/a", "x", BOUND, 0),)


MANY = JsonSchema(schema(s={"type": "string", "maxLength": 40}, n={"type": "number"}, v={"type": "array", "items": {"type": ["integer", "string"]}}))


@settings(deadline=None, max_examples=60)
@given(st.lists(st.sampled_from([*PIECES[:8], b"1", b"0", b",", b'"', b"a"]), min_size=1, max_size=6), st.integers(40, 120), st.randoms())
def test_whatever_the_model_wants_the_output_is_complete_and_no_value_loops(tokens: list[bytes], max_tokens: int, random: Any) -> None:
    likes_order = random.random() < 0.7
    will: Will = lambda text: [*cycle(*tokens)(text), *tokens] if likes_order else random.sample(tokens, len(tokens))  # noqa: E731
    text, ended = written(MANY, will, max_tokens=max_tokens)  # it is complete, which is checked there
    number = text.partition('"n":')[2].partition(",")[0]
    assert len(number) - len(number.lstrip("1")) <= BOUND + 1
    for each in ended:
        fewest = FEWEST_ITEMS if each.path == "#/v" else FEWEST_REPETITIONS
        assert each.count >= fewest and each.path.startswith("#") and each.text


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**32 - 1))
def test_what_does_not_loop_is_the_same_with_and_without(seed: int) -> None:
    def will(text: bytes) -> Sequence[bytes]:
        numbers = np.random.default_rng([seed, len(text)])
        return [VOCABULARY.tokens[token] or b"x" for token in numbers.permutation(np.arange(1, VOCABULARY.size - 2))]

    text, ended = written(MANY, will, bound=None)
    assert (text, ended) == written(MANY, will, bound=0)


# ---- in the engine

TINY = tiny_vocabulary()
TINY_COMPILER = Compiler(TINY)
OBJECT = TINY_COMPILER.compile(JsonSchema(schema(a={"type": "string", "maxLength": 60}, n={"type": "integer"}, v={"type": "array", "items": {"enum": [1, 2]}})))


def tiny(character: str) -> int:
    return ord(character) - 29


def looping(number: int, **sampling: Any) -> Request:
    """A request that likes to repeat itself: in a string, in a number or in an array."""
    bias = [{tiny("x"): 60.0}, {tiny("7"): 60.0}, {tiny("1"): 40.0, tiny(","): 20.0}, {tiny("x"): 9.0, tiny("y"): 9.0}][number % 4]
    options = {"temperature": 0.0 if number % 3 else 0.7, "seed": number, "max_tokens": 100, "loop_bound": BOUND, "logit_bias": bias}
    return Request(prompt_token_ids=(9, 5 + number, 6), sampling=SamplingParams(**{**options, **sampling}), constraint=OBJECT)


REQUESTS = [
    *map(looping, range(8)), looping(1, jump_forward=True), looping(2, logprobs=2), looping(3, loop_bound=0),
    looping(1, stop_token_ids=(1,)), looping(2, max_tokens=40), looping(0, repetition_penalty=1.1),
    Request(prompt_token_ids=(9, 8), sampling=SamplingParams(max_tokens=20, temperature=0.0)),
    Request(prompt_token_ids=(9, 7), sampling=SamplingParams(max_tokens=30, loop_bound=5, temperature=0.0), constraint=brackets(TINY)),
]  # fmt: skip


def encode(text: str) -> list[int]:
    return list(map(tiny, text))


def told(outputs: dict[int, Any]) -> list[tuple]:
    return [(o.text, o.token_ids, o.finish_reason, o.closed_by_budget, o.loops, o.error) for _, o in sorted(outputs.items())]


@pytest.fixture(scope="module")
def folder(tiny_model):
    return tiny_model("llama").folder


@pytest.fixture(scope="module")
def plain(folder, make_engine_once) -> list[tuple]:
    found = told(run_all(make_engine_once(folder, encode=encode, skips_forced=False, prefix_cache=False), {0: REQUESTS[::2], 4: REQUESTS[1::2]}))
    assert sum(bool(each[4]) for each in found) >= 10
    assert all(each[4] == () for each in found if each[1] == ())
    return found


@pytest.mark.parametrize("loop", [
    {}, *LOOPS, {"automaton": "device", "steps_per_visit": 30}, {"speculation": "lookup"}, {"speculation": "forced"},
], ids=str)  # fmt: skip
def test_every_loop_of_steps_ends_the_same_loops(loop, plain, folder, make_engine) -> None:
    engine = make_engine(folder, encode=encode, **loop)
    assert told(run_all(engine, {0: REQUESTS[::2], 4: REQUESTS[1::2]})) == plain


def test_visits_end_before_a_loop_may_be_seen(folder, make_engine, monkeypatch) -> None:
    """With the bound out of reach visits are as long as they may be; else they are shorter, and still there."""
    lengths = {}
    for bound in (0, DEFAULT_BOUND):
        engine = make_engine(folder, automaton="device", steps_per_visit=6)
        pipeline, seen = engine._pipeline, []
        launch = pipeline._launch_visit
        monkeypatch.setattr(pipeline, "_launch_visit", lambda *args, seen=seen, launch=launch, **kw: (seen.append(args[2]), launch(*args, **kw))[1])
        run_all(engine, {0: [looping(0, loop_bound=bound)]})
        lengths[bound] = seen
    assert max(lengths[0]) == max(lengths[DEFAULT_BOUND]) == 6
    assert len(lengths[DEFAULT_BOUND]) >= 3


@pytest.mark.parametrize("when", range(6, 40, 3))
def test_a_session_goes_on_where_it_was(when, folder, make_engine) -> None:
    asked = looping(0)
    (whole,) = run_all(make_engine(folder), {0: [asked]}).values()
    engine = make_engine(folder)
    request_id = engine.add_request(asked)
    for _ in range(when):
        engine.step()
    snapshot = Sessions(engine, lambda: "model").snapshot(request_id)
    other = make_engine(folder, overlap=True)
    outputs = {}
    Sessions(other, lambda: "model").resume(snapshot, OBJECT)
    while other.has_work:
        outputs |= {event.request_id: event.output for event in other.step() if event.output is not None}
    (resumed,) = outputs.values()
    assert (resumed.text, resumed.token_ids, resumed.loops) == (whole.text, whole.token_ids, whole.loops)
    assert len(whole.loops) >= 1


def test_forks_follow_their_own_loops(folder, make_engine) -> None:
    engine = make_engine(folder)
    parent = engine.add_request(looping(0))
    for _ in range(4):
        engine.step()
    child = engine.fork(parent)
    outputs = {}
    while engine.has_work:
        outputs |= {event.request_id: event.output for event in engine.step() if event.output is not None}
    assert outputs[child].loops == outputs[parent].loops != ()
    assert outputs[child].text == outputs[parent].text
    check_nothing_leaked(engine)


@pytest.mark.parametrize("search", [BeamSearch(width=2), Particles(count=2)], ids=["beams", "particles"])
def test_searches_compare_what_the_model_says_and_steer_nothing(search, folder, make_engine) -> None:
    engine = make_engine(folder)
    options = {"max_tokens": 60, "seed": 1} if isinstance(search, Particles) else {"max_tokens": 60}
    asked = Request(prompt_token_ids=(9, 5), sampling=SamplingParams(**options), constraint=OBJECT)
    request_id = engine.add_search(asked, search)
    output = None
    while engine.has_work:
        output = next((event.output for event in engine.step() if event.request_id == request_id), output)
    assert output.loops == () and OBJECT.accepts(output.text)
    with pytest.raises(RequestError, match="does not understand loop_bound=8"):
        engine.add_search(Request(prompt_token_ids=(9, 5), sampling=SamplingParams(loop_bound=8, **options), constraint=OBJECT), search)


def test_free_text_has_no_end_to_be_brought_to() -> None:
    with pytest.raises(RequestError, match="there is no constraint"):
        Request(prompt_token_ids=(9,), sampling=SamplingParams(loop_bound=8))
    assert Request(prompt_token_ids=(9,), sampling=SamplingParams(loop_bound=0)).sampling.loop_bound == 0


def test_named_bounds_are_what_they_are_said_to_be() -> None:
    assert (DEFAULT_BOUND, LONGEST_CYCLE, loops.FEWEST_REPETITIONS) == (32, 48, 4)
