"""Grammars: a few small command languages."""

from __future__ import annotations

import words
from example import Example, canonical_json
from free_keys import FREE_PHRASES, random_key
from values import Source


def follow(source: Source) -> Example:
    return source.rng.choice([follow_switch, follow_switch, follow_move, follow_sum, follow_pairs])(source)


def rules(source: Source, **bodies: str) -> str:
    """GBNF rules, root first, laid out in one of the usual ways."""
    width = max(map(len, bodies)) if source.chance(0.5) else 0
    return "\n".join(f"{name:{width}} ::= {body}" for name, body in bodies.items())


def follow_switch(source: Source) -> Example:
    """A device, perhaps a room, and a state or a percentage."""
    rng = source.rng
    rooms, devices = (list(dict.fromkeys(source.pick(pool) for _ in range(rng.randint(1, 4)))) for pool in (words.ROOMS, words.DEVICES))
    room, device, state, percent = rng.choice(rooms), rng.choice(devices), rng.choice(["on", "off"]), rng.randint(1, 99)
    with_room, with_percent = rng.random() < 0.5, rng.random() < 0.4
    switched = "{v} the {d}", "turn {v} the {d}", "switch the {d} {v}", "turn the {d} {v}", "please put the {d} {v}", "the {d} should be {v}", "{d} {v}"
    dimmed = "set the {d} to {v} percent", "{d} at {v}%", "put the {d} at {v} percent", "please turn the {d} to {v}%", "the {d} should be at {v} percent"
    request = source.phrasing(dimmed if with_percent else switched).replace("{v}", str(percent) if with_percent else state)
    request = request.replace("{d}", rng.choice([f"{device} in the {room}", f"{room} {device}"]) if with_room else device)
    grammar = rules(
        source,
        root='device " in " room " " state' if with_room else 'device " " state',
        device=alternatives(devices),
        **({"room": alternatives(rooms)} if with_room else {}),
        state='"on" | "off"' + (' | "at " [1-9] [0-9]? "%"' if with_percent or rng.random() < 0.3 else ""),
    )
    answer = device + (f" in {room}" if with_room else "") + (f" at {percent}%" if with_percent else f" {state}")
    return Example("grammar", request[0].upper() + request[1:] + rng.choice(["", ".", ".", "!"]), answer, {"grammar": grammar})


def follow_move(source: Source) -> Example:
    steps, answer, texts = source.rng.randint(1, 3), [], []
    for _ in range(steps):
        count, way = source.small(1, 20), source.rng.choice(["north", "south", "east", "west"])
        answer.append(f"{way} {count.json}")
        texts.append(source.phrasing(("{n} steps {w}", "go {w} {n} steps", "{w} {n}", "walk {n} {w}", "{n} to the {w}", "move {n} {w}")).format(n=count.text, w=way))
    grammar = 'root ::= step ("; " step)*\nstep ::= way " " [0-9]+\nway ::= "north" | "south" | "east" | "west"'
    return Example("grammar", ", then ".join(texts).capitalize() + ".", "; ".join(answer), {"grammar": grammar})


def follow_sum(source: Source) -> Example:
    names = {"+": ("plus", "and"), "-": ("minus", "less"), "*": ("times", "multiplied by")}
    first = source.small(1, 99)
    answer, text = str(first.json), first.text
    for _ in range(source.rng.randint(1, 3)):
        sign, value = source.rng.choice(list(names)), source.small(1, 99)
        answer += f"{sign}{value.json}"
        text += f" {source.rng.choice(names[sign])} {value.text}"
    grammar = 'root ::= number (sign number)*\nsign ::= "+" | "-" | "*"\nnumber ::= [0-9]+'
    question = source.phrasing(("What is {e}?", "{e}", "Calculate {e}.", "How much is {e}?", "Write {e} as a formula."))
    return Example("grammar", question.format(e=text), answer, {"grammar": grammar})


def follow_pairs(source: Source) -> Example:
    pairs = {random_key(source): source.rng.choice([source.invented(), str(source.magnitude()), source.color()]) for _ in range(source.rng.randint(1, 4))}
    texts = [source.phrasing(FREE_PHRASES[:14]).replace("{k}", key).replace("{v}", value) for key, value in pairs.items()]
    grammar = 'root ::= pair ("\\n" pair)*\npair ::= key "=" value\nkey ::= [a-z_]+\nvalue ::= [^\\n=]+'
    return Example("grammar", " ".join(texts), "\n".join(f"{key}={value}" for key, value in pairs.items()), {"grammar": grammar})


def alternatives(options: list[str]) -> str:
    return " | ".join(canonical_json(option) for option in options)
