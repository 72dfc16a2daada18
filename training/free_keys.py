"""Free keys: the schema names things that the text names too."""

from __future__ import annotations

from collections.abc import Callable

import domains
import words
from domains import BOOLEAN, INTEGER, NUMBER, STRING, STRINGS, JsonSchema, closed
from example import Example, canonical_json
from records import dressed, joined
from values import Source, Value


def random_key(source: Source) -> str:
    shape = source.rng.random()
    if shape < 0.15:
        return source.invented(1, 2).lower()
    noun = source.pick(words.KEY_NOUNS)
    return f"{source.pick(words.KEY_ADJECTIVES)}_{noun}" if shape < 0.4 else noun


FREE_VALUES: tuple[tuple[JsonSchema, Callable[[Source], Value]], ...] = (
    (STRING, domains.same(Source.full_name)), (STRING, domains.same(Source.invented)), (STRING, domains.same(Source.code)), (STRING, domains.same(Source.phrase)),
    (STRING, domains.same(Source.city)), (STRING, domains.same(Source.color)), (STRING, domains.same(Source.product)), (STRING, domains.same(Source.time)),
    (INTEGER, lambda s: s.number(s.magnitude())), (INTEGER, lambda s: s.number(s.integer(0, 99))), (NUMBER, lambda s: s.decimal(0, 500)), (NUMBER, Source.amount),
    (BOOLEAN, lambda s: (lambda b: Value(b, s.rng.choice([["no", "false", "off"], ["yes", "true", "on"]][b])))(s.chance(0.5))),
    (STRINGS, domains.several(Source.invented, 1, 4)), (STRINGS, domains.several(Source.color, 1, 4)), (domains.DATE, Source.date),
    ({"type": "array", "items": INTEGER}, lambda s: (lambda v: Value(v, ", ".join(map(str, v))))([s.integer(0, 200) for _ in range(s.rng.randint(1, 5))])),
)

FREE_PHRASES = (
    "The {k} is {v}.", "{k}: {v}.", "{k} = {v}", "Its {k} is {v}.", "Set the {k} to {v}.", "With {k} {v}.", "{k} {v},", "The {k} was {v}.", "We measured a {k} of {v}.", "{k} is {v}.",
    "{k}: {v}", "For the {k} we have {v}.", "The value of {k} is {v}.", "{v} is the {k}.", "Its {k}: {v}.", "Regarding {k}, it is {v}.", "We use {v} as the {k}.", "{k} -> {v}", "{v} ({k}).",
    "Note the {k} of {v}.", "I chose {v} for the {k}.",
)


def free_fill(source: Source) -> Example:
    rng = source.rng
    facts = {random_key(source): rng.choice(FREE_VALUES) for _ in range(rng.randint(1, 6))}
    values = {key: make(source) for key, (_, make) in facts.items()}
    one_form = source.phrasing(FREE_PHRASES) if rng.random() < 0.5 else None
    sentences = [
        (one_form or source.phrasing(FREE_PHRASES)).replace("{k}", key.replace("_", " " if rng.random() < 0.7 else "_")).replace("{v}", value.text)
        for key, value in values.items()
    ]
    order = list(facts)
    if rng.random() < 0.5:
        rng.shuffle(order)
    wanted = order[: rng.randint(1, len(order))]
    schema = closed({key: facts[key][0] for key in wanted}, frozenset(wanted) if rng.random() < 0.06 else frozenset())
    text = dressed(source, joined(sentences, rng), rng.choice(["data", "record", "object", "thing"]))
    return Example("fill", text, canonical_json({key: values[key].json for key in wanted}), {"schema": schema})


PAIR_FORMS = ("{k}: {v}", "{k} = {v}", "{k} is {v}", "the {k} is {v}", "{k} {v}", "{k}:{v}", "{k}={v}", "its {k}: {v}")


def pairs(source: Source) -> Example:
    """Many keys with short values, all in one form: looking up, and nothing else."""
    rng = source.rng
    names = list(dict.fromkeys(source.pick(words.KEY_NOUNS) for _ in range(rng.randint(3, 9))))
    short = (source.color, source.first_name, lambda: source.pick(words.TEXT_NOUNS), lambda: source.integer(0, 99), source.magnitude)
    makers = [rng.choice(short)] if rng.random() < 0.6 else short
    values = {name: rng.choice(makers)() for name in names}
    form, separator = source.phrasing(PAIR_FORMS), rng.choice([", ", "\n", "; ", ". "])
    text = separator.join(form.replace("{k}", name).replace("{v}", str(value)) for name, value in values.items())
    order = rng.sample(names, rng.randint(1, len(names)))
    schema = closed({name: INTEGER if isinstance(values[name], int) else STRING for name in order})
    return Example("fill", text, canonical_json({name: values[name] for name in order}), {"schema": schema})
