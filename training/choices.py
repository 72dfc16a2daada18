"""Choices: one of a few words, by what a text says."""

from __future__ import annotations

from typing import Any

import domains
import words
from example import Example
from records import varied_enum
from values import Source

QUESTIONS: dict[str, tuple[str, ...]] = {
    "sentiment": ("", "", "Classify the sentiment: ", "Is this review good or bad? ", "Sentiment? ", "Review: ", "How does the customer feel? ", "What is the mood of this text? "),
    "category": ("", "", "Classify this ticket: ", "Which department? ", "Topic? ", "Ticket: ", "Route this message: ", "What is it about? "),
    "priority": ("", "How urgent is this? ", "Priority? ", "Classify the urgency: ", "Ticket: "),
    "status": ("", "What is the status? ", "Order status? ", "Classify: "),
}
LABELS: dict[str, dict[Any, tuple[str, ...]]] = {
    "sentiment": domains.SENTIMENT, "category": domains.CATEGORY, "priority": domains.PRIORITY, "status": domains.STATUS,
}
LEADS = ("The {p} is here. ", "I bought a {p}. ", "About the {p}: ", "Hello! ", "My name is {n}. ", "I ordered a {p} from {c}. ", "We stayed in {c}. ", "", "", "", "", "")


def choose(source: Source) -> Example:
    rng = source.rng
    task = rng.choice(["sentiment", "sentiment", "category", "category", "priority", "status", "mention", "yes_no"])
    if task == "mention":
        return choose_mentioned(source)
    if task == "yes_no":
        return choose_yes_no(source)
    phrases = LABELS[task]
    label = rng.choice(list(phrases))
    sentences = list(dict.fromkeys(source.phrasing(phrases[label]) for _ in range(rng.choice([1, 1, 2]))))
    lead = source.phrasing(LEADS).format(p=source.product(), n=source.first_name(), c=source.city())
    schema, answer = varied_enum(source, list(phrases), label)
    text = source.phrasing(QUESTIONS[task]) + lead + " ".join(sentences).replace("{n}", str(rng.randint(2, 999)))
    return Example("choice", text, answer, {"choice": schema["enum"]})


MENTIONS = ("The {k} is {v}.", "I want the {v} one.", "It is about {v}.", "We decided on {v}.", "{v}, please.", "They talk about {v} all day.", "Let's take {v}.", "This text concerns {v}.", "My {k} would be {v}.")


def choose_mentioned(source: Source) -> Example:
    rng = source.rng
    kind, pool = rng.choice([
        ("color", words.COLORS), ("city", words.CITIES), ("language", words.LANGUAGES), ("hobby", words.HOBBIES), ("genre", words.GENRES),
        ("animal", words.ANIMALS), ("job", words.JOBS), ("country", words.COUNTRIES), ("topic", words.TOPICS), ("brand", words.CARS),
    ])
    options = list(dict.fromkeys(source.pick(pool) for _ in range(rng.randint(2, 5))))
    answer = rng.choice(options)
    text = source.phrasing(MENTIONS).format(k=kind, v=answer)
    question = rng.choice(["", "", f"Which {kind}? ", f"What {kind} is meant? ", "Choose. "])
    return Example("choice", question + text, answer, {"choice": options})


def choose_yes_no(source: Source) -> Example:
    rng = source.rng
    which = rng.choice(["married", "gift", "express", "online", "free", "refund", "paid", "remote"])
    truth = rng.random() < 0.5
    questions = {
        "married": "Is the person married?", "gift": "Is it a gift?", "express": "Is it express?", "online": "Is the event online?", "free": "Is it free?",
        "refund": "Does the customer want a refund?", "paid": "Has it been paid?", "remote": "Does the person work remotely?",
    }
    text = source.phrasing(domains.YES_NO[which][truth]).replace("{S}", source.first_name())
    yes, no = rng.choice([("yes", "no"), ("yes", "no"), ("true", "false"), ("Yes", "No")])
    options = [yes, no] if rng.random() < 0.7 else [no, yes]
    shown = f"{questions[which]} {text}" if rng.random() < 0.6 else f"{text} {questions[which]}"
    return Example("choice", shown, yes if truth else no, {"choice": options})
