"""Looks at the clock: whoever makes what takes long looks at it, so that no compile goes on for long when its time is over."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from maskwright.constraints import Compiler, ConstraintLimit, Ebnf, Gbnf, JsonSchema, Lark, Vocabulary
from maskwright.constraints.base.kinds import Kind
from maskwright.constraints.front_ends.cfg.gbnf_syntax import class_ranges, string_text
from maskwright.constraints.front_ends.cfg.syntax_tree import Token
from maskwright.constraints.front_ends.json_schema.algebra.formulas import Has
from maskwright.constraints.grammar.expression import EMPTY, Grammar
from maskwright.constraints.grammar.left_recursion import nullable_nodes
from maskwright.constraints.grammar.matcher import Matcher, Steps
from maskwright.constraints.grammar.recursion import nodes_with_calls, open_parts, reachable, rewrite_below
from maskwright.constraints.grammar.separated_lists import chain
from maskwright.constraints.grammar.source import Limits
from maskwright.constraints.grammar.stopwatch import Stopwatch, accounted, is_over, look
from maskwright.foundation.compiled_loops.compile_time import seconds_spent

NO_TIME, MUCH_TIME = Limits(seconds=0), Limits(seconds=1e9)
A_FEW_THOUSAND = 3_000


def make_nodes() -> None:
    grammar = Grammar()
    for count in range(1, A_FEW_THOUSAND):
        grammar.intern((Kind.REPEAT, EMPTY, count, count))


def make_unions() -> None:
    grammar = Grammar()
    words = [grammar.literal(f"{i}") for i in range(60)]
    for i in range(60):
        for j in range(60):
            grammar.alt(words[i], grammar.seq(words[j], words[i]))


def hash_literals() -> None:
    for count in range(A_FEW_THOUSAND):
        hash(Has(f"member {count}", ()))


def step_through_texts() -> None:
    grammar = Grammar()
    steps = Steps(grammar)
    for _, _, position in steps.intervals(steps.before(grammar.repeat(grammar.chars([(97, 122)])))):
        steps.intervals(position)


def match_a_text() -> None:
    grammar = Grammar()
    Matcher(Steps(grammar), grammar.repeat(grammar.chars([(97, 122)]))).accepts(b"a" * 2 * A_FEW_THOUSAND)


def read_a_string() -> None:
    text = '"' + "\\n" * A_FEW_THOUSAND + '"'
    string_text(text, Token("STRING", text, start_pos=0))


def read_a_class() -> None:
    text = "[" + "\\x61" * A_FEW_THOUSAND + "b]"  # of four bytes and one: places are no measure
    assert class_ranges(text, Token("CLASS", text, start_pos=0)) == ((97, 98),)


def make_chains() -> None:
    grammar = Grammar()
    chain(grammar, [(grammar.chars([(97, 99)]), True)], EMPTY, grammar.literal(","), EMPTY, EMPTY, EMPTY)


MANY_NODES = Grammar()
ALL_OF_THEM = MANY_NODES.alt(*(MANY_NODES.seq(MANY_NODES.literal(f"{i}"), MANY_NODES.literal("x")) for i in range(A_FEW_THOUSAND)))


def rewrite_nodes() -> None:
    rewrite_below(ALL_OF_THEM, lambda node: open_parts(MANY_NODES, node), lambda node: node, {})


def lower(source: JsonSchema | Gbnf | Lark | Ebnf) -> Callable[[], object]:
    return lambda: source.lower(source.new_grammar(NO_TIME) if isinstance(source, JsonSchema) else Grammar(), NO_TIME)


WORK: dict[str, Callable[[], object]] = {
    "nodes": make_nodes, "unions": make_unions, "literals": hash_literals, "texts": step_through_texts, "chains": make_chains,
    "matched texts": match_a_text, "strings": read_a_string, "classes": read_a_class,
    "what is reachable": lambda: list(reachable(MANY_NODES, ALL_OF_THEM)), "what has calls": lambda: nodes_with_calls(MANY_NODES),
    "what may be empty": lambda: nullable_nodes(MANY_NODES), "rewriting": rewrite_nodes,
    "schemas that are read": lower(JsonSchema({"$defs": {f"d{i}": {"type": "null"} for i in range(A_FEW_THOUSAND)}})),
    "gbnf": lower(Gbnf('root ::= "a"')), "lark": lower(Lark('start: "a"')), "ebnf": lower(Ebnf('root ::= "a"')),
}  # fmt: skip


@pytest.mark.parametrize("name", WORK)
def test_whoever_works_looks(name: str) -> None:
    with pytest.raises(ConstraintLimit) as caught, accounted(NO_TIME):
        WORK[name]()
    assert caught.value.limit == "seconds"


@pytest.mark.parametrize("name", ["nodes", "unions", "literals", "texts", "chains", "what is reachable", "what has calls", "what may be empty", "rewriting"])
def test_nothing_ends_in_time(name: str) -> None:
    with accounted(MUCH_TIME):
        WORK[name]()
    WORK[name]()  # and none has to be under way


def test_the_place_is_told() -> None:
    properties = {f"a{i}": {"type": "array", "items": {"enum": [i, str(i)]}} for i in range(A_FEW_THOUSAND)}
    source = JsonSchema({"type": "object", "properties": properties, "required": ["a0"]})
    with pytest.raises(ConstraintLimit) as caught:
        lower(source)()
    assert caught.value.path is not None and caught.value.path.startswith("#")


def test_what_it_takes_to_give_back_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, objects = [100.0], [0]
    monkeypatch.setattr("maskwright.constraints.grammar.stopwatch.time.monotonic", lambda: clock[0])
    monkeypatch.setattr("maskwright.constraints.grammar.stopwatch.time.thread_time", lambda: clock[0] + seconds_spent())
    monkeypatch.setattr("maskwright.constraints.grammar.stopwatch.gc.get_count", lambda: (objects[0], 0, 0))
    clock[0] = 100.9
    assert not is_over(100, 100, 1)
    objects[0] = 1_000_000
    assert is_over(100, 100, 1)
    stopwatch = Stopwatch(Limits(seconds=10), "a test")
    stopwatch.check()
    with accounted(Limits(seconds=10)):
        look()
        objects[0] += 1_000_000  # by this compile
        clock[0] += 10
        with pytest.raises(ConstraintLimit, match="a test takes too long"):
            stopwatch.check()
        with pytest.raises(ConstraintLimit, match="compiling it takes too long"):
            look()


def test_what_is_refused_holds_nothing() -> None:
    """The error may be kept; what the compile had made is not."""
    compiler = Compiler(Vocabulary([*(bytes([byte]) for byte in range(256)), None], eos_token_ids=[256]), limits=NO_TIME)
    with pytest.raises(ConstraintLimit) as caught:
        compiler.compile(Gbnf('root ::= "a" root | "b"'))
    traceback, told = caught.value.__traceback__, dict[str, object]()
    while traceback is not None:
        if traceback.tb_frame.f_code.co_name == "_compiled":
            told = traceback.tb_frame.f_locals
        traceback = traceback.tb_next
    assert told == {}
