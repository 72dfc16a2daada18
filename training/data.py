"""The synthetic corpus of the embedded model: short texts with the schema, tools, choices or pattern to be filled from them.

`examples(seed, split)` is an endless, reproducible stream. The `held_out` split shares no pool name, no random value of three or more
digits and no phrasing with `train` (see `values.split_of`); only lists too short to divide are shared.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

from calls import call
from choices import choose
from command_languages import follow
from example import Example
from free_keys import free_fill, pairs
from patterns import match
from records import fill, fill_list
from talks import any_object, tagged, talk, talk_varied, think
from values import Source, Split
from varied import call_varied, choose_varied, fill_varied

# Repetition: nothing teaches copying sooner


def repeat(source: Source) -> Example:
    """Random words, names, codes and numbers to be said once more."""
    makers = [Source.invented, Source.full_name, Source.code, Source.email, Source.city, Source.phrase, Source.product, Source.time, lambda s: str(s.magnitude())]
    separator = source.rng.choice([" ", " ", ", ", "\n"])
    text = separator.join(source.rng.choice(makers)(source) for _ in range(source.rng.randint(2, 12)))
    return Example("repeat", source.rng.choice(["Repeat: ", "Say again: ", "Copy: "]) + text, text)


MIXTURE: dict[Callable[[Source], Example], float] = {
    fill: 0.50, fill_list: 0.02, free_fill: 0.06, pairs: 0.02, call: 0.22, choose: 0.10, match: 0.05, follow: 0.02, talk: 0.005, repeat: 0.005,
}

# What the model is measured by; and for training alone more ways of putting it, and what lies beside the task

MORE: dict[Callable[[Source], Example], float] = {
    fill_varied: 0.06, call_varied: 0.03, choose_varied: 0.015, talk_varied: 0.02, any_object: 0.02, tagged: 0.05, think: 0.03,
}


def example(source: Source, mixture: dict[Callable[[Source], Example], float] = MIXTURE) -> Example:
    make = source.rng.choices(list(mixture), weights=list(mixture.values()))[0]
    return make(source)


def first_lessons(source: Source) -> Example:
    """Copying and looking up before everything else: the attention heads that do them are what takes longest to form."""
    return source.rng.choice([repeat, pairs, pairs, pairs, example])(source)


def examples(seed: int, split: Split, phrasings: Split | None = None) -> Iterator[Example]:
    """An endless stream of examples, the same for the same seed and splits; phrasings come from the same split unless told."""
    source = Source(random.Random(f"{split}-{seed}"), split, phrasings)
    while True:
        yield example(source)


def varied_examples(seed: int) -> Iterator[Example]:
    """An endless stream to train on: for the most part as `examples`, and a fifth in the ways of `wordings.py` and beside the task."""
    source = Source(random.Random(f"varied-{seed}"), "train")
    mixture = {make: weight * 0.85 for make, weight in MIXTURE.items()} | MORE
    while True:
        yield example(source, mixture)
