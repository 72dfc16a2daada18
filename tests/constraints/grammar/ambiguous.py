"""Ambiguous grammars, whose texts may be read in ever more ways the longer they are."""

from __future__ import annotations

import random

NAMED = {
    "lists in lists": 'root ::= (a | "a" root?)*\na ::= "a"',
    "optional ones in turn": 'root ::= x\nx ::= "a" x? y? | "b"\ny ::= "a" y? x? | "c"',
    "optional ones": 'root ::= o\no ::= p? q? o?\np ::= "a" o?\nq ::= "b" o?',
    "a tail that may be empty": 'root ::= "a" root t | "b"\nt ::= "a"? "b"? u\nu ::= "a"*',
    "left recursion behind what may be empty": 'root ::= e? root "a" | "b" | "a" root\ne ::= "a"?',
    "rules that derive each other": 'root ::= x | "a" root\nx ::= y | "a" y x?\ny ::= x | "b" x? | "a"',
    "three in a row": 'root ::= "a" root root root | "a" | ""',
    "one or two more": 'root ::= "a" | "a" root? root "a"?',
    "lists that overlap": 'root ::= l+ | m+\nl ::= "a" ("b" l?)* | "b"\nm ::= ("a" | "b")+ m? | "c"',
    "bounded": 'root ::= "a" ("b" root{0,3} | root{1,2})? "c"? | "b"',
}  # fmt: skip


def small_grammar(seed: int) -> str:
    """Rules that call each other and may be empty nearly everywhere."""
    draw = random.Random(seed)
    names, letters = ["root", "x", "y"][: draw.randint(1, 3)], "ab" if draw.random() < 0.5 else "abc"

    def atom(depth: int) -> str:
        kind = draw.random()
        if kind < 0.45:
            return f'"{draw.choice(letters)}"'
        return draw.choice(names) if kind < 0.9 or depth == 0 else f"({alternatives(depth - 1)})"

    def item(depth: int) -> str:
        return atom(depth) + draw.choices(["", "?", "*", "+", "{0,2}", "{0,3}", "{2}"], [50, 25, 10, 5, 4, 3, 3])[0]

    def alternatives(depth: int) -> str:
        count = draw.choices([1, 2, 3], [30, 50, 20])[0]
        return " | ".join(" ".join(item(depth) for _ in range(draw.choices([1, 2, 3, 4], [2, 4, 3, 1])[0])) for _ in range(count))

    return "\n".join(f"{name} ::= {alternatives(1)}" for name in names)
