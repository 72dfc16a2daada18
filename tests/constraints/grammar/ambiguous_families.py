"""Families of ambiguous grammars as people write them, each a function of a seed.

Operators with levels of precedence or without, repetitions of what may be empty or is a repetition itself, lists of lists, rules
that call each other, white space that may stand on either side of a boundary, terminals that overlap.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from maskwright.constraints import Gbnf, Lark
from maskwright.constraints.grammar.source import Source

_OPERATORS = (
    "{left} {op} {right}",
    "{op} {right}",
    "{left} {op}",
    "{left} {right}",
    '"(" {space} {any} {space} ")"',
    '"(" {space} {any}? {space} ")"?',
    '{left} "?" {space} {any} {space} ":" {space} {right}',
    '{left} "[" {space} {any}? {space} "]"',
    '{left} "(" {space} ({any} ("," {space} {any})*)? {space} ")"',
    '"if" {space} {any} "then" {space} {right} ("else" {space} {right})?',
    '{left} ("," {space} {right})*',
    '"-" {space} {right} | "-"',
)
_SPACES = ("", "", "ws", "ws?", '" "?', '" "*')
_ATOMS = ("[0-9]+", "[a-c]", "[a-c]+ | [0-9]+", '"x" | "(" root ")"', "[a-c]+ ws", "[0-9]* [0-9]+", 'ws "x" ws')


def expressions(seed: int) -> str:
    draw = random.Random(seed)
    space, levels = draw.choice(_SPACES), draw.choice([1, 1, 2, 3])
    names = ["root", *(f"e{level}" for level in range(1, levels)), "atom"]
    rules = []
    for level, name in enumerate(names[:-1]):
        operands = [name, name, names[level + 1], draw.choice(names)]
        options = [names[level + 1]]
        for _ in range(draw.randint(1, 4)):
            op = f'{space} "{draw.choice("+-*")}" {space}'
            left, right = draw.choice(operands), draw.choice(operands)
            options.append(draw.choice(_OPERATORS).format(left=left, right=right, op=op, space=space, any=draw.choice(names)))
        draw.shuffle(options)
        rules.append(f"{name} ::= {' | '.join(options)}")
    return "\n".join([*rules, f"atom ::= {draw.choice(_ATOMS)}", "ws ::= [ \\n]*"])


def nested_repetitions(seed: int) -> str:
    draw = random.Random(seed)

    def part(depth: int) -> str:
        if depth == 0:
            return draw.choice(['"a"', '"b"', "[ab]", '"ab"', "root", "x"])
        inside = " ".join(part(depth - 1) for _ in range(draw.randint(1, 3)))
        if draw.random() < 0.4:
            inside += " | " + part(depth - 1)
        return f"({inside}){draw.choice(['*', '+', '?', '{0,2}', '{1,3}', '{2,}', ''])}"

    return f'root ::= "a" {part(2)} | "b" {part(1)}?\nx ::= {part(1)} "b" | "a" {part(1)}'


def nullable_parts(seed: int) -> str:
    draw = random.Random(seed)
    names = ["root", "x", "y", "z"][: draw.randint(2, 4)]

    def option() -> str:
        calls = (draw.choice(names) + draw.choice(["?", "?", "*", "{0,2}"]) for _ in range(draw.randint(1, 3)))
        return " ".join([f'"{draw.choice("abc")}"', *calls])

    return "\n".join(f"{name} ::= ({' | '.join(option() for _ in range(draw.randint(1, 3)))}){draw.choice(['', '?'])}" for name in names)


def lists_of_lists(seed: int) -> str:
    """With separators and brackets that may be left out."""
    draw = random.Random(seed)
    separator = draw.choice(['","', '","?', '"," " "?', '" "*', '" "+', '(" " | ",")*', '";" | ","'])
    opened, closed = draw.choice([('"["', '"]"'), ('"["?', '"]"?'), ('"["', '"]"?'), ('"<"', '"<"'), ("", "")])
    item = draw.choice(["[a-c]", "[a-c]+", '"a" | list', '[a-c]* "."', '"a"? "b"?'])
    lists = (
        f"{opened} (item (({separator}) item)*)? {closed}",
        f"item ({separator}) list",
        f"list ({separator}) list",
        "list item",
        "item+ list?",
        "list*",
    )
    options = " | ".join(["item", *draw.sample(lists, draw.randint(1, 3))])
    nested = f"{opened} list {closed}" if opened else '"(" list'
    return f"root ::= list{draw.choice(['', '*', ' list?', '+'])}\nlist ::= {options}\nitem ::= {item} | {nested}"


def rules_in_turn(seed: int) -> str:
    """Three to five rules that call each other."""
    draw = random.Random(seed)
    names = ["root", "x", "y", "z", "w"][: draw.randint(3, 5)]
    letters = "ab" if draw.random() < 0.6 else "abcd"

    def letter() -> str:
        return f'"{draw.choice(letters)}"'

    def option() -> str:
        parts = [letter(), *(draw.choice(names) + draw.choice(["", "", "?", "*"]) for _ in range(draw.randint(0, 3)))]
        if draw.random() < 0.3:
            parts.append(letter())
        if draw.random() < 0.3:
            draw.shuffle(parts)
        return " ".join(parts)

    return "\n".join(f"{name} ::= {' | '.join([*(option() for _ in range(draw.randint(1, 3))), letter()])}" for name in names)


def tokens_and_spaces(seed: int) -> str:
    """Words, numbers and white space whose boundaries are not settled."""
    draw = random.Random(seed)
    words = ("[a-z]+", "[a-z0-9]+", "[0-9]+", '"if" | "else"', "[a-z] [a-z0-9]*", '"." | ","', '["] [a-z ]* ["]', "[^ \\n]+", "[a-z ]+")
    tokens = draw.sample(words, draw.randint(2, 4))
    blank = draw.choice(['" "', "[ \\n]", '" " | "\\n" | ws ws', '" "+', "[ \\n]+ ws?"])
    lines = ("ws token ws", "token ws?", "ws? token", "token (ws token)*", "line line", '"(" line* ")"', "line? ws line?", "ws", "token+", "token line?")
    options = " | ".join(["token", *draw.sample(lines, draw.randint(1, 3))])
    more = draw.choice(["*", "+", " (ws line)*", " line?", " root?"])
    return f"root ::= line{more}\nline ::= {options}\ntoken ::= {' | '.join(tokens)}\nws ::= {blank}"


def lark_with_priorities(seed: int) -> str:
    """Terminals that overlap, in lark's notation."""
    draw = random.Random(seed)
    names = ["A", "B", "C"]
    patterns = ('"a"', "/[ab]+/", "/a*b/", '"if"', "/[a-z]+/", "/[a-z][a-z0-9]*/", "/[0-9]+/", "/(a|b)*c/", '"ab"')
    items = ("A", "B", "C", "x", "y", "x x", "A y?", "x+", "[x] y", "y* B", '"(" x ")"', '"(" x* ")"', 'x "," y', 'x ("," x)*', "x A x", "y?")
    rules = [
        f"{name}{draw.choice(['', '.2'])}: {' | '.join([draw.choice(names), *draw.sample(items, draw.randint(1, 3))])}" for name in ("x", "y")
    ]
    terminals = [f"{name}{draw.choice(['', '.1', '.5'])}: {pattern}" for name, pattern in zip(names, draw.sample(patterns, 3), strict=True)]
    ignored = draw.choice(["", '%ignore " "', "%ignore /[ \\n]+/"])
    return "\n".join([f"start: {draw.choice(['x', 'x+', 'x* y', 'x y | y'])}", *rules, *terminals, ignored])


FAMILIES: dict[str, Callable[[int], str]] = {
    "expressions": expressions,
    "nested repetitions": nested_repetitions,
    "nullable parts": nullable_parts,
    "lists of lists": lists_of_lists,
    "rules in turn": rules_in_turn,
    "tokens and spaces": tokens_and_spaces,
    "lark": lark_with_priorities,
}


def source_of(family: str, seed: int) -> Source:
    text = FAMILIES[family](seed)
    return Lark(text) if family == "lark" else Gbnf(text)
