"""Families of ASKED members: what has to be true of the members that other parts of a walk have."""

from __future__ import annotations

import itertools
import random

import pytest

from maskwright.constraints import Compiler, Vocabulary
from maskwright.constraints.base.kinds import LAST
from maskwright.constraints.grammar.expression import EMPTY, FAIL, Grammar, Node
from maskwright.constraints.grammar.member_diagrams import MemberDiagrams
from maskwright.constraints.grammar.reference import Reference
from maskwright.constraints.runtime.constraint import as_token_ids

from ..uniqueness.test_seen_values import Written

COMPILER = Compiler(Vocabulary([*(bytes([byte]) for byte in range(256)), None], eos_token_ids=[256]))
CASES = {"k": ["k0", "k11", "k222"], "a": ["a"], "b": ["bb"], "c": ["c0", "c"]}
TEXTS = [text for each in CASES.values() for text in each]
Choice = tuple[str | None, ...]  # a case of each member, None where it does not come
ALL = list(itertools.product(*([None, *cases] for cases in CASES.values())))


def question(diagrams: MemberDiagrams, texts: dict[str, Node], wanted: set[Choice], told: Choice = ()) -> Node:
    """What is asked behind some choices: whether the whole choice is one of those wanted."""
    if len(told) == len(CASES):
        return EMPTY if told in wanted else FAIL
    cases = list(CASES.values())[len(told)]
    asked = {texts[text]: question(diagrams, texts, wanted, (*told, text)) for text in cases}
    return diagrams.choice(len(told), asked, question(diagrams, texts, wanted, (*told, None)))


@pytest.mark.parametrize("seed", range(25))
def test_members_come_in_any_order_if_what_is_asked_is_true(seed: int) -> None:
    """Beside them stand a member in order and one that comes up to twice, of which nothing is asked."""
    rng = random.Random(seed)
    wanted = set(rng.sample(ALL, rng.choice([1, 3, 10, len(ALL) // 2, len(ALL) - 2])))

    def build(grammar: Grammar) -> Node:
        diagrams = MemberDiagrams(grammar, grammar.literal(","), EMPTY)
        texts = {text: diagrams.member(grammar.literal(text)) for text in TEXTS}
        parts = [diagrams.decision(LAST, [(texts[text], ()) for text in cases], EMPTY) for cases in CASES.values()]
        parts.append(diagrams.decision(1, [(diagrams.member(grammar.literal("first")), ())], EMPTY))
        parts.append(diagrams.counted(diagrams.member(grammar.literal("z")), 0, 2))
        asked = question(diagrams, texts, wanted)
        return grammar.seq(grammar.literal("{"), diagrams.walk([*parts, *([asked] if asked != EMPTY else [])], 0, None))

    def is_right(names: tuple[str, ...]) -> bool:
        told = [text for text in names if text in TEXTS]
        choice = tuple(next((text for text in cases if text in told), None) for cases in CASES.values())
        is_once = len(told) == sum(each is not None for each in choice) and names.count("z") <= 2
        return bool(names) and is_once and choice in wanted and "first" not in names[1:]

    grammar = Grammar()
    twin, constraint = Reference(grammar, build(grammar)), COMPILER.compile(Written(build))
    for _ in range(150):
        some = rng.choice(list(wanted)) if rng.random() < 0.6 else rng.choice(ALL)
        names = [text for text in some if text is not None] + rng.choices(["z", "k0", "c"], k=rng.choice([0, 0, 0, 1, 2]))
        rng.shuffle(names)
        told = (*(["first"] if rng.random() < 0.3 else []), *names)
        text = "{" + ",".join(told)
        assert constraint.accepts(text) == is_right(told), text
        if len(told) < 4:
            assert twin.accepts(text.encode()) == is_right(told), text
    for _ in range(10):
        state, text = constraint.start(), ""
        assert constraint.min_tokens(state) == fewest_bytes(wanted, text)
        while not constraint.is_accepting(state) or rng.random() < 0.5:
            token = rng.choice(as_token_ids(constraint.mask(state)))
            if token == 256:
                break
            following = constraint.advance(state, token)
            assert following is not None
            state, text = following, text + chr(token)
            if text[-1] in "{,":
                assert constraint.min_tokens(state) == fewest_bytes(wanted, text), text
        assert is_right(tuple(text[1:].split(","))), text


def fewest_bytes(wanted: set[Choice], text: str) -> int:
    """The fewest bytes that end a text which is empty, or behind a brace or a comma, where one member has to come."""
    came = {name for name in text[1:].split(",") if name}
    least = 1000
    for choice in wanted:
        told = {each for each in choice if each is not None}
        if came - {"first", "z"} <= told:
            left = [len(each) for each in told - came]
            can_be_z = text[1:].split(",").count("z") < 2
            if left or can_be_z:
                least = min(least, sum(left) + len(left) - 1 if left else 1)
            elif not came:
                least = min(least, len("first"))
    return least if text else 1 + least
