"""The synthetic corpus of the embedded model: short texts with the schema, tools, choices or pattern to be filled from them.

`examples(seed, split)` is an endless, reproducible stream. The `held_out` split shares no pool name, no random value of three or more
digits and no phrasing with `train` (see `values.split_of`); only lists too short to divide are shared.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import words
from calls import call
from choices import choose
from command_languages import follow
from example import Example
from free_keys import free_fill, pairs
from patterns import match
from records import fill, fill_list
from values import Source, Split

# Small talk: without a constraint the model says what it is for

GREETINGS = ("Hello", "Hi!", "Hello!", "Hey", "Good morning", "Who are you?", "What can you do?", "Tell me a joke.", "Write a poem.", "How are you?", "Thanks!", "What is the meaning of life?",
             "Help", "Tell me a story about a {n}.", "What is a {n}?", "Explain {n}.", "Hi, I am {f}.", "Why is the {n} {c}?", "Once upon a time", "Write about {f} in {t}.")
REPLY = "I am Maskwright's small demo model. Give me a text and a schema, choices, a pattern or tools, and I fill them in."


def talk(source: Source) -> Example:
    text = source.phrasing(GREETINGS).format(n=source.pick(words.TEXT_NOUNS), f=source.first_name(), c=source.color(), t=source.city())
    return Example("talk", text, REPLY)


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


def example(source: Source) -> Example:
    make = source.rng.choices(list(MIXTURE), weights=list(MIXTURE.values()))[0]
    return make(source)


def first_lessons(source: Source) -> Example:
    """Copying and looking up before everything else: the attention heads that do them are what takes longest to form."""
    return source.rng.choice([repeat, pairs, pairs, pairs, example])(source)


def examples(seed: int, split: Split, phrasings: Split | None = None) -> Iterator[Example]:
    """An endless stream of examples, the same for the same seed and splits; phrasings come from the same split unless told."""
    source = Source(random.Random(f"{split}-{seed}"), split, phrasings)
    while True:
        yield example(source)
