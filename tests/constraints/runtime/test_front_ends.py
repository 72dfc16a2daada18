"""Every front end of the package goes through one protocol, and so does a foreign one that has nothing but `lower`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

import pytest

from maskwright import constraints
from maskwright.constraints import (
    Choice,
    Compiler,
    Constraint,
    ConstraintError,
    Ebnf,
    FrontEnd,
    Gbnf,
    JsonSchema,
    Lark,
    Limits,
    Reasoning,
    Regex,
    Source,
    StructuralTag,
    Tools,
    UnsupportedKeyword,
    Vocabulary,
    captures,
)
from maskwright.constraints.front_ends.tags.tree import Sequence as TagSequence
from maskwright.constraints.grammar.expression import Grammar, Node
from maskwright.constraints.grammar.reference import Reference
from maskwright.constraints.grammar.source import is_source
from maskwright.constraints.grammar.tokens import tell_vocabulary
from maskwright.constraints.runtime.front_end import front_end_of, may_have_captures

VOCABULARY = Vocabulary([*(bytes([byte]) for byte in range(256)), None], [256])
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False}
TOOL = {"name": "add", "parameters": SCHEMA}
MADE: dict[str, tuple[Callable[[], FrontEnd], str]] = {  # each with a text that satisfies it
    "regex": (lambda: Regex("[a-c]+"), "abc"),
    "combination": (lambda: Regex("[a-c]+") & ~Regex("b"), "ab"),
    "choice": (lambda: Choice(["yes", "no"]), "no"),
    "json_schema": (lambda: JsonSchema(SCHEMA), '{"a":1}'),
    "gbnf": (lambda: Gbnf('root ::= "on" | "(" root ")"'), "(on)"),
    "ebnf": (lambda: Ebnf("root = 'on' | '(', root, ')' ;"), "(on)"),
    "lark": (lambda: Lark('start: "on" | "(" start ")"'), "(on)"),
    "structural_tag": (lambda: StructuralTag(TagSequence((Regex("a"), Choice(["b", "c"])))), "ac"),
    "tools": (lambda: Tools([TOOL], choice="required"), '<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>'),
    "reasoning": (lambda: Reasoning(Choice(["yes"]), max_tokens=40), "<think>hm</think>yes"),
}
made = pytest.mark.parametrize(("make", "text"), MADE.values(), ids=MADE)


@dataclass(frozen=True)
class Squares:
    """A foreign front end: as many "b" as "a"."""

    count: int

    def lower(self, grammar: Grammar, limits: Limits) -> Node:
        return grammar.literal("a" * self.count + "b" * self.count)


@pytest.fixture(scope="module")
def compiler() -> Compiler:
    return Compiler(VOCABULARY)


def test_all_front_ends_are_tried() -> None:
    exported = [getattr(constraints, name) for name in constraints.__all__]
    front_ends = {value for value in exported if isinstance(value, type) and issubclass(value, FrontEnd)} - {FrontEnd}
    assert len(front_ends) > 5
    assert front_ends <= {type(make()) for make, _ in MADE.values()}


@made
def test_a_front_end_is_a_frozen_value(make: Callable[[], FrontEnd], text: str) -> None:
    one, other = make(), make()
    assert isinstance(one, FrontEnd) and is_source(one)
    assert one is not other and one == other and hash(one) == hash(other)
    with pytest.raises(AttributeError):
        setattr(one, fields(one)[0].name, None)  # type: ignore[arg-type]


@made
def test_equal_ones_are_compiled_once(make: Callable[[], FrontEnd], text: str, compiler: Compiler) -> None:
    constraint = compiler.compile(make())
    assert compiler.compile(make()) is constraint
    assert constraint.accepts(text) and not constraint.accepts(text + "\0")


@made
def test_lowering_can_be_repeated(make: Callable[[], FrontEnd], text: str) -> None:
    """Into another grammar it gives the same expressions, and again into the same one the same texts."""
    source, limits = make(), Limits()
    grammars = [source.new_grammar(limits) for _ in range(2)]
    for grammar in grammars:
        tell_vocabulary(grammar, VOCABULARY)
    first, second = (source.lower_whole(grammar, limits) for grammar in grammars)
    assert first == second and list(grammars[0].rows) == list(grammars[1].rows)
    again = source.lower_whole(grammars[0], limits)
    assert Reference(grammars[0], again).accepts(text.encode())


@made
def test_a_new_grammar_is_nobody_elses(make: Callable[[], FrontEnd], text: str) -> None:
    source, limits = make(), Limits()
    size = len(source.new_grammar(limits))
    source.new_grammar(limits).literal("a text that no grammar begins with")
    assert len(source.new_grammar(limits)) == size


def test_hooks_say_what_their_front_end_is() -> None:
    sources = {name: make() for name, (make, _) in MADE.items()}
    assert {name for name, source in sources.items() if source.is_plain_json} == {"json_schema"}
    assert {name for name, source in sources.items() if source.source_text} == {"regex", "gbnf", "ebnf", "lark"}
    assert {name for name, source in sources.items() if source.stands_alone} == {"reasoning"}
    assert not any(map(may_have_captures, sources.values()))
    named = {"ebnf": Ebnf('root[capture] ::= "a"'), "lark": Lark('start[capture]: "a"'), "gbnf": Gbnf('root ::= "capture"')}
    assert {name for name, source in named.items() if may_have_captures(source)} == {"ebnf", "lark"}


def test_a_source_needs_nothing_but_lower(compiler: Compiler) -> None:
    assert isinstance(Squares(2), Source) and not isinstance(Squares(2), FrontEnd)
    constraint = compiler.compile(Squares(2))
    assert constraint.accepts("aabb") and not constraint.accepts("ab")
    assert compiler.compile(Squares(2)) is constraint and constraint.source == Squares(2)
    assert compiler.compile(StructuralTag(TagSequence((Squares(1), Regex("c"))))).accepts("abc")
    with pytest.raises(UnsupportedKeyword, match="Squares has no captures"):
        captures(constraint, "aabb")


def test_hooks_of_a_foreign_front_end_are_called_in_order(compiler: Compiler) -> None:
    calls: list[str] = []

    @dataclass(frozen=True)
    class Told(FrontEnd):
        word: str = "a"

        @property
        def source_text(self) -> str:
            return "first line\nsecond"

        @property
        def is_plain_json(self) -> bool:
            calls.append("is_plain_json")
            return False

        def new_grammar(self, limits: Limits) -> Grammar:
            calls.append("new_grammar")
            return Grammar()

        def lower(self, grammar: Grammar, limits: Limits) -> Node:
            raise ConstraintError("a part cannot be lowered")

        def lower_whole(self, grammar: Grammar, limits: Limits) -> Node:
            calls.append("lower_whole")
            if not self.word:
                raise ConstraintError("no word", line=2, column=3)
            return grammar.literal(self.word)

        def finish(self, constraint: Constraint, compiled: Callable[[Source], Constraint]) -> Constraint:
            calls.append("finish")
            return compiled(Regex(constraint.forced(constraint.start()).decode() + "+"))

    assert compiler.compile(Told()).accepts("aaa")
    assert calls == ["new_grammar", "is_plain_json", "lower_whole", "finish"]
    with pytest.raises(ConstraintError) as error:
        compiler.compile(Told(""))
    assert str(error.value).endswith("\n    second\n      ^")


def test_every_hook_has_a_default_that_says_nothing() -> None:
    source = front_end_of(Squares(1))
    assert source.source_text == "" and not source.is_plain_json and not source.stands_alone and not source.may_have_captures
    assert len(source.new_grammar(Limits())) == len(Grammar())
    one, other = Grammar(), Grammar()
    assert source.lower_whole(one, Limits()) == source.lower(other, Limits())


def test_a_compiler_says_what_it_takes() -> None:
    with pytest.raises(TypeError, match=r"takes a Vocabulary, such as .*, not str"):
        Compiler("vocabulary")  # type: ignore[arg-type]
