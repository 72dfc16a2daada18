"""Patterns: one value of a text, named by a regular expression."""

from __future__ import annotations

import re
from collections.abc import Callable

from example import Example
from records import aside
from values import Source

PATTERNS: dict[str, tuple[Callable[[Source], str], tuple[str, ...], tuple[str, ...]]] = {
    "phone": (lambda s: f"555-{s.fresh(lambda: s.digits(4, 4))}", (r"\d{3}-\d{4}", r"[0-9]{3}-[0-9]{4}", r"555-\d{4}"), (
        "Call me at {v}.", "My phone number is {v}.", "Phone: {v}", "You can reach me at {v}.", "The number is {v}, ask for Ann.", "Ring {v} after five.")),
    "long_phone": (lambda s: s.fresh(lambda: f"{s.digits(3, 3)}-{s.digits(3, 3)}-{s.digits(4, 4)}"), (r"\d{3}-\d{3}-\d{4}", r"[0-9]{3}-[0-9]{3}-[0-9]{4}"), (
        "Call me at {v}.", "My number is {v}.", "Tel: {v}", "Contact us on {v}.", "Reach the office at {v}.")),
    "order": (lambda s: s.fresh(lambda: f"ORD-{s.digits(4, 6)}"), (r"ORD-\d+", r"ORD-[0-9]+", r"ORD-\d{4,6}", r"[A-Z]{3}-\d+"), (
        "Where is my order {v}?", "Order {v} is late.", "It is about {v}.", "The id is {v}.", "I never received {v}.", "Please check {v}.")),
    "code": (lambda s: s.fresh(lambda: f"{s.letters(2, 2)}{s.digits(4, 4)}"), (r"[A-Z]{2}\d{4}", r"[A-Z]+[0-9]+", r"[A-Z]{2}[0-9]{4}"), (
        "The code is {v}.", "Flight {v} is late.", "Use {v} at the door.", "Ticket {v}.", "My booking reference is {v}.", "Your seat code: {v}")),
    "iso_date": (lambda s: s.fresh(lambda: f"{s.rng.randint(1950, 2040)}-{s.rng.randint(1, 12):02}-{s.rng.randint(1, 28):02}"), (r"\d{4}-\d{2}-\d{2}", r"[0-9]{4}-[0-9]{2}-[0-9]{2}"), (
        "The meeting is on {v}.", "Due {v}.", "It happened on {v} in the city.", "Date: {v}", "We start {v}.", "Born on {v}.")),
    "email": (lambda s: s.email(), (r"[a-z0-9._]+@[a-z0-9.]+", r"[\w.]+@[\w.]+", r"[a-z0-9._%+-]+@[a-z0-9.-]+\.[a-z]{2,}"), (
        "Write to {v} please.", "My email is {v}", "Contact: {v}", "Send it to {v} today.", "You can mail {v} any time.")),
    "time": (lambda s: f"{s.rng.randint(0, 23):02}:{s.rng.randint(0, 59):02}", (r"\d{2}:\d{2}", r"[0-2]\d:[0-5]\d", r"\d\d:\d\d"), (
        "It starts at {v}.", "We meet at {v} in the lobby.", "The train leaves at {v}.", "Dinner is at {v}.", "Departure: {v}")),
    "number": (lambda s: str(s.magnitude()), (r"\d+", r"[0-9]+", r"[1-9]\d*", r"\d{1,6}"), (
        "I have {v} books.", "It costs {v} dollars.", "There are {v} people here.", "We counted {v} of them.", "How many? {v}.", "The answer is {v}.", "She is {v} years old.")),
    "price": (lambda s: s.fresh(lambda: f"{s.rng.uniform(1, 900):.2f}"), (r"\d+\.\d{2}", r"[0-9]+\.[0-9][0-9]", r"\d+\.\d+"), (
        "It costs ${v}.", "The total is {v} euros.", "I paid {v} for it.", "Price: {v}", "You owe me {v}.")),
    "name": (lambda s: s.first_name(), (r"[A-Z][a-z]+", r"[A-Z]\w+", r"\w+"), (
        "my name is {v}.", "i am called {v}.", "this is {v} speaking.", "ask for {v}.", "people call me {v}.")),
    "version": (lambda s: f"{s.rng.randint(0, 20)}.{s.rng.randint(0, 30)}.{s.rng.randint(0, 99)}", (r"\d+\.\d+\.\d+", r"[0-9]+\.[0-9]+\.[0-9]+"), (
        "I use version {v}.", "The app is at {v} now.", "Upgrade to {v} today.", "Version {v} crashes.")),
}
REGEX_QUESTIONS = ("", "", "", "Extract the {k}: ", "Find the {k}. ", "What is the {k}? ", "Give me the {k}. ", "{k}? ", "Which {k}? ", "Read out the {k}: ")


def match(source: Source) -> Example:
    rng = source.rng
    kind = rng.choice(list(PATTERNS))
    make, patterns, phrases = PATTERNS[kind]
    value = make(source)
    fitting = [pattern for pattern in patterns if re.fullmatch(pattern, value)]
    if not fitting:
        return match(source)
    text = source.phrasing(phrases).format(v=value)
    if rng.random() < 0.4 and kind not in ("number", "name"):
        text = f"{aside(source)} {text}" if rng.random() < 0.5 else f"{text} {aside(source)}"
    question = source.phrasing(REGEX_QUESTIONS).replace("{k}", kind.replace("_", " "))
    return Example("regex", question + text, value, {"regex": rng.choice(fitting)})
