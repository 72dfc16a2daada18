"""Tasks with known answers for `answers.py`, made of the words and phrasings below with a seed: anybody gets the same ones."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Schema = dict[str, Any]

PEOPLE = (
    "Maria Lopez",
    "John Smith",
    "Aisha Khan",
    "Peter Novak",
    "Emily Chen",
    "Omar Haddad",
    "Julia Weber",
    "Samuel Okafor",
    "Nina Rossi",
    "David Park",
)
CITIES = (
    "Oslo",
    "Lisbon",
    "Toronto",
    "Nairobi",
    "Kyoto",
    "Denver",
    "Prague",
    "Lima",
    "Dublin",
    "Madrid",
    "Seattle",
    "Vienna",
)
JOBS = ("teacher", "nurse", "plumber", "lawyer", "baker", "pilot", "architect", "farmer", "chemist", "driver")
PRODUCTS = ("laptop", "toaster", "phone", "bicycle", "camera", "printer", "blender", "tent", "keyboard", "lamp")
COLORS = ("red", "blue", "green", "black", "white", "yellow")
PRIORITIES = ("low", "medium", "high")
MONTHS = ("January", "March", "May", "June", "August", "October", "December")
TITLES = ("The Silent River", "Winter Roads", "A Map of Stars", "Glass Houses", "The Last Orchard", "Salt and Iron")
TEAMS = ("Tigers", "Falcons", "Bears", "Sharks", "Wolves", "Eagles")


@dataclass(frozen=True, slots=True)
class Task:
    """One question. `accepted` has the values that count as right for each field; `schema` is what an answer satisfies."""

    name: str
    kind: str  # "extraction" or "classification"
    instruction: str
    text: str
    schema: Schema
    accepted: Mapping[str, tuple[Any, ...]]

    @property
    def prompt(self) -> str:
        return f"{self.instruction}\n\n{self.text}"

    @property
    def num_fields(self) -> int:
        return len(self.accepted)

    def is_exact(self, answer: Any) -> bool:
        return self.right_fields(answer) == self.num_fields

    def right_fields(self, answer: Any) -> int:
        given = answer if isinstance(answer, dict) else {}
        return sum(any(_same(given.get(field), value) for value in values) for field, values in self.accepted.items())


def _same(given: Any, value: Any) -> bool:
    """Equal as JSON has it; texts without regard to case and outer spaces."""
    if isinstance(given, str) and isinstance(value, str):
        return given.strip().casefold() == value.strip().casefold()
    return given == value and (type(given) is type(value) or (_is_number(given) and _is_number(value)))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


# -- extraction ---------------------------------------------------------------------------------------------------------

STRING, INTEGER, NUMBER, BOOLEAN = ({"type": kind} for kind in ("string", "integer", "number", "boolean"))
_Domain = Callable[[random.Random], tuple[str, dict[str, tuple[Schema, Any]]]]


def ticket(rng: random.Random) -> tuple[str, dict[str, tuple[Schema, Any]]]:
    who, what, days, priority = rng.choice(PEOPLE), rng.choice(PRODUCTS), rng.randint(2, 40), rng.choice(PRIORITIES)
    text = rng.choice((
        f"{who} reported that the {what} is broken. The ticket has been open for {days} days and its priority is {priority}.",
        f"Ticket of {priority} priority, open for {days} days: {who} says the {what} does not work.",
        f"For {days} days now {who} has been waiting for an answer about a {what}. Priority: {priority}.",
    ))  # fmt: skip
    return text, {
        "customer": (STRING, who),
        "product": (STRING, what),
        "days_open": (INTEGER, days),
        "priority": ({"enum": list(PRIORITIES)}, priority),
    }


def person(rng: random.Random) -> tuple[str, dict[str, tuple[Schema, Any]]]:
    who, age, city, job = rng.choice(PEOPLE), rng.randint(19, 88), rng.choice(CITIES), rng.choice(JOBS)
    text = rng.choice((
        f"{who} is {age} years old, lives in {city} and works as a {job}.",
        f"A {job} from {city}, {who} turned {age} last week.",
        f"In {city} we met {who}, aged {age}, who has been a {job} for years.",
    ))  # fmt: skip
    return text, {"name": (STRING, who), "age": (INTEGER, age), "city": (STRING, city), "job": (STRING, job)}


def order(rng: random.Random) -> tuple[str, dict[str, tuple[Schema, Any]]]:
    what, color, count, price = (
        rng.choice(PRODUCTS),
        rng.choice(COLORS),
        rng.randint(2, 60),
        rng.randint(500, 30000) / 100,
    )
    text = rng.choice((
        f"Please send us {count} pieces of the {color} {what} at {price:.2f} dollars each.",
        f"Order: {count} x {what}, colour {color}, unit price ${price:.2f}.",
        f"We would like the {what} in {color}; {count} of them, for {price:.2f} dollars apiece.",
    ))  # fmt: skip
    return text, {
        "item": (STRING, what),
        "color": (STRING, color),
        "quantity": (INTEGER, count),
        "unit_price": (NUMBER, price),
    }


def flight(rng: random.Random) -> tuple[str, dict[str, tuple[Schema, Any]]]:
    start, end = rng.sample(CITIES, 2)
    seats, month, is_direct = rng.randint(2, 9), rng.choice(MONTHS), rng.random() < 0.5
    stop = "without a stop" if is_direct else "with one stop"
    text = rng.choice((
        f"I need {seats} seats from {start} to {end} in {month}, {stop}.",
        f"{seats} passengers want to fly {stop} from {start} to {end} in {month}.",
    ))  # fmt: skip
    return text, {
        "origin": (STRING, start),
        "destination": (STRING, end),
        "seats": (INTEGER, seats),
        "month": (STRING, month),
        "direct": (BOOLEAN, is_direct),
    }


def book(rng: random.Random) -> tuple[str, dict[str, tuple[Schema, Any]]]:
    title, who, year, pages = rng.choice(TITLES), rng.choice(PEOPLE), rng.randint(1950, 2023), rng.randint(90, 900)
    text = rng.choice((
        f'"{title}" by {who}, published in {year}, has {pages} pages.',
        f'In {year} {who} published "{title}", a book of {pages} pages.',
    ))  # fmt: skip
    return text, {"title": (STRING, title), "author": (STRING, who), "year": (INTEGER, year), "pages": (INTEGER, pages)}


def match(rng: random.Random) -> tuple[str, dict[str, tuple[Schema, Any]]]:
    home, guest = rng.sample(TEAMS, 2)
    goals, lost = rng.sample(range(9), 2)
    text = f"The {home} played at home against the {guest} in {rng.choice(CITIES)}. It ended {goals} to {lost}."
    return text, {
        "home": (STRING, home),
        "guest": (STRING, guest),
        "home_goals": (INTEGER, goals),
        "guest_goals": (INTEGER, lost),
    }


DOMAINS: tuple[_Domain, ...] = (ticket, person, order, flight, book, match)


def extraction(count: int, seed: int = 0) -> Iterator[Task]:
    """Short texts, and an object of four or five fields out of each."""
    rng = random.Random(f"extraction {seed}")
    for i in range(count):
        domain = DOMAINS[i % len(DOMAINS)]
        text, found = domain(rng)
        schema = {
            "type": "object", "properties": {name: kind for name, (kind, _) in found.items()},
            "required": list(found), "additionalProperties": False,
        }  # fmt: skip
        fields = ", ".join(f"{name} ({_described(kind)})" for name, (kind, _) in found.items())
        instruction = f"Extract these fields from the text: {fields}. Answer with a JSON object only."
        accepted = {name: (value,) for name, (_, value) in found.items()}
        yield Task(f"{domain.__name__} {i}", "extraction", instruction, text, schema, accepted)


def _described(kind: Schema) -> str:
    return " or ".join(map(str, kind["enum"])) if "enum" in kind else kind["type"]


# -- classification -----------------------------------------------------------------------------------------------------

TOPICS = {
    "sports": (
        "The {t} won the final after extra time.",
        "The coach of the {t} wants to sign a new goalkeeper.",
        "A record crowd watched the {t} lose by two points.",
    ),
    "weather": (
        "Heavy rain and strong wind are expected in {c} tonight.",
        "It will be sunny in {c} until Friday, with 28 degrees.",
        "Snow has closed the roads around {c}.",
    ),
    "business": (
        "Shares of the {p} maker fell after weak sales.",
        "The bank in {c} raised its interest rate again.",
        "The company will close its {p} factory to save costs.",
    ),
    "food": (
        "This soup needs more salt and a little lemon.",
        "The new bakery in {c} sells wonderful bread.",
        "Bake the cake for forty minutes and let it cool.",
    ),
}  # fmt: skip
FEELINGS = {
    "positive": (
        "I love this {p}, it works perfectly.",
        "Great service in {c}, we will come back!",
        "The {p} arrived early and is better than I hoped.",
    ),
    "negative": (
        "The {p} broke after two days, I want my money back.",
        "Terrible hotel in {c}: dirty, loud and expensive.",
        "I regret buying this {p}. It is useless.",
    ),
}  # fmt: skip
INTENTS = {
    "cancel": ("Please cancel my order of the {p}.", "I do not want the {p} any more, stop the delivery."),
    "refund": ("The {p} is faulty, please give me my money back.", "I returned the {p} and still wait for the payment."),
    "delivery": ("Where is my {p}? It should have arrived on Monday.", "When will the {p} be delivered to {c}?"),
}  # fmt: skip
QUESTIONS = (
    ("topic", "What is the topic of the text?", TOPICS),
    ("sentiment", "What is the sentiment of the text?", FEELINGS),
    ("intent", "What does the customer want?", INTENTS),
)


def classification(count: int, seed: int = 0) -> Iterator[Task]:
    """Sentences, and one of two to four labels for each, as the only field of an object."""
    rng = random.Random(f"classification {seed}")
    for i in range(count):
        field, question, kinds = QUESTIONS[i % len(QUESTIONS)]
        label = rng.choice(list(kinds))
        text = rng.choice(kinds[label]).format(t=rng.choice(TEAMS), c=rng.choice(CITIES), p=rng.choice(PRODUCTS))
        schema = {
            "type": "object",
            "properties": {field: {"enum": list(kinds)}},
            "required": [field],
            "additionalProperties": False,
        }
        instruction = f'{question} Answer with a JSON object with the field "{field}": {", ".join(kinds)}.'
        yield Task(f"{field} {i}", "classification", instruction, text, schema, {field: (label,)})
