"""Beside the task: small talk, objects of any form, tagged objects, thoughts. So a model that fills schemas has something to say where nothing is asked."""

from __future__ import annotations

import json
from collections.abc import Callable

import domains
import words
from example import Example, canonical_json
from records import make_record
from values import Source

# Without a constraint the model says what it is for

GREETINGS = ("Hello", "Hi!", "Hello!", "Hey", "Good morning", "Who are you?", "What can you do?", "Tell me a joke.", "Write a poem.", "How are you?", "Thanks!", "What is the meaning of life?",
             "Help", "Tell me a story about a {n}.", "What is a {n}?", "Explain {n}.", "Hi, I am {f}.", "Why is the {n} {c}?", "Once upon a time", "Write about {f} in {t}.")
MORE_GREETINGS = ("hi", "hey there", "good evening", "hello {f}", "yo", "Can you help me?", "What is this?", "Is anybody there?", "Say something.", "Sing.", "Go on.", "{f}?", "I like {n}.", "The {n} is {c}.", "What do you know about {t}?", "bye", "ok", "test", "Test 1 2 3", "Good night, {f}.")
REPLY = "I am Maskwright's small demo model. Give me a text and a schema, choices, a pattern or tools, and I fill them in."


def talk(source: Source) -> Example:
    return Example("talk", said(source, GREETINGS), REPLY)


def said(source: Source, greetings: tuple[str, ...]) -> str:
    return source.phrasing(greetings).format(n=source.pick(words.TEXT_NOUNS), f=source.first_name(), c=source.color(), t=source.city())


def any_text(source: Source) -> str:
    """A greeting, some words, or a text as `records.py` makes it."""
    makers: list[Callable[[], str]] = [
        lambda: said(source, GREETINGS + MORE_GREETINGS), lambda: make_record(source, domains.random_domain(source.rng)).text, source.phrase,
        lambda: source.phrase().capitalize() + source.rng.choice([".", "!", "?"]), source.full_name,
    ]
    return source.rng.choice(makers)()


def talk_varied(source: Source) -> Example:
    """The same answer to whatever is said, with or without the marks of a conversation around it."""
    return Example("talk", any_text(source), REPLY, begun=source.rng.choice(["", "", "\n", "Answer: "]), is_bare=source.chance(0.3))


def any_object(source: Source) -> Example:
    """Asked for an object of any form, the model repeats the text in its one member."""
    text = any_text(source)
    return Example("fill", text, spaced_json(source, {"text": text}, 0.1), {"schema": {"type": "object"}})


def tagged(source: Source) -> Example:
    """An object behind a mark, of which nothing was said: keys are given by what has been written so far."""
    rng = source.rng
    mark = rng.choice([f"<{source.syllables(1, 2)}>", "<call>", "<json>", "<answer>", "```json\n", "<on>", ""])
    end = mark.replace("<", "</") if mark.startswith("<") else ""
    key = rng.choice(["on", "ok", "name", "value", "text", "done", "age", source.pick(words.KEY_NOUNS)])
    value = rng.choice([True, False, source.integer(0, 200), source.phrase(), None, source.full_name()])
    text = spaced_json(source, {key: value}, 0.35)
    colon = text.index(":") + 1
    cut = rng.choice([0, 1, 1, 1, colon - 1, colon, colon] if mark else [1, colon])  # how much was written before
    return Example("talk", any_text(source), text[cut:] + end, begun=mark + text[:cut], is_bare=source.chance(0.15))


def spaced_json(source: Source, value: object, share: float) -> str:
    """JSON as most programs write it, with a space behind colons and commas; else without."""
    return json.dumps(value, ensure_ascii=False) if source.chance(share) else canonical_json(value)


def think(source: Source) -> Example:
    """A few thoughts about the text, which may be cut short, and then the answer."""
    rng = source.rng
    text = any_text(source)
    openings = ("The text says: ", "Somebody says: ", "I read: ", "What is asked? ", "They wrote ", "Let me see. It says: ")
    thought = rng.choice(openings) + text + rng.choice([" I am a small model and fill in what I am asked for.", " There is nothing to fill in.", " I say what I am for."])
    is_bare = source.chance(0.5)
    if source.chance(0.5):
        cut = thought[: rng.choice([0, rng.randint(1, len(thought))])]
        return Example("talk", text, rng.choice(["", "\n"]) + REPLY, begun=f"<think>{cut}</think>", is_bare=is_bare)
    return Example("talk", text, f"{thought}</think>{REPLY}", begun="<think>", is_bare=is_bare)
