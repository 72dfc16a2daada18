"""Random values of the synthetic corpus, each as it stands in JSON and as it is written in prose, and what is held out of training."""

from __future__ import annotations

import datetime
import random
import string
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import words

T = TypeVar("T")
Split = Literal["train", "held_out"]

HELD_OUT_SHARE = 8  # one in this many pool entries, random values and phrasings is never trained on
BLENDED_SHARE = 0.4  # of the words that a pool gives

CONSONANTS = "b c d f g h j k l m n p r s t v w z br cr dr fr gr kr pr st tr ch sh th kl sk".split()
VOWELS = ("a e i o u " * 5 + "ai ea ie ou y é ö ü").split()
CODAS = ["", "", "", "n", "r", "s", "l", "k", "m", "t", "x", "nd", "rt", "ck"]


def split_of(text: str) -> Split:
    """The split to which a pool entry, a random value or a phrasing belongs: a fixed property of its text."""
    return "held_out" if zlib.crc32(text.encode()) % HELD_OUT_SHARE == 0 else "train"


@dataclass(frozen=True, slots=True)
class Value:
    """A value as the answer must state it and as the text writes it."""

    json: Any
    text: str


class Source:
    """Random values from one split, and phrasings from the same or another, reproducible from its random generator."""

    def __init__(self, rng: random.Random, split: Split, phrasings: Split | None = None) -> None:
        self.rng = rng
        self.split = split
        self.phrasings = phrasings or split

    def pick(self, options: Sequence[str]) -> str:
        """One of the options that belong to this split (of all, when it has none), or a blend of two of them.

        Blends keep the pools from being learned by heart, which would be easier than copying.
        """
        if self.chance(BLENDED_SHARE) and "{" not in "".join(options):
            return self.fresh(lambda: self.blend(options, options))
        return self.rng.choice([each for each in options if split_of(each) == self.split] or options)

    def phrasing(self, options: Sequence[str]) -> str:
        """A way of putting it; any, when the list is so short that its split has none."""
        return self.rng.choice([each for each in options if split_of(each) == self.phrasings] or options)

    def fresh(self, make: Callable[[], T]) -> T:
        """A made value whose text belongs to this split."""
        while True:
            value = make()
            if split_of(str(value)) == self.split:
                return value

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def syllables(self, low: int, high: int) -> str:
        rng = self.rng
        count = rng.randint(low, high)
        return "".join(rng.choice(CONSONANTS) + rng.choice(VOWELS) for _ in range(count)) + rng.choice(CODAS)

    def invented(self, low: int = 1, high: int = 3) -> str:
        """A capitalised word that nobody has seen: made of syllables, or blended from two names."""
        blend = self.chance(0.4)
        names = words.FIRST_NAMES + words.LAST_NAMES
        return self.fresh(lambda: self.blend(names, words.LAST_NAMES) if blend else self.syllables(low, high).capitalize())

    def blend(self, fronts: Sequence[str], backs: Sequence[str]) -> str:
        """The beginning of one word and the end of another."""
        front, back = self.rng.choice(fronts), self.rng.choice(backs)
        return front[: self.rng.randint(1, len(front))].rstrip() + back[self.rng.randrange(len(back)) :].lstrip().lower()

    def letters(self, low: int, high: int, alphabet: str = string.ascii_uppercase) -> str:
        return "".join(self.rng.choices(alphabet, k=self.rng.randint(low, high)))

    def digits(self, low: int, high: int) -> str:
        return self.letters(low, high, string.digits)

    # Names and places

    def first_name(self) -> str:
        return self.invented() if self.chance(0.5) else self.pick(words.FIRST_NAMES)

    def last_name(self) -> str:
        return self.invented() if self.chance(0.5) else self.pick(words.LAST_NAMES)

    def full_name(self) -> str:
        first, last = self.first_name(), self.last_name()
        shape = self.rng.random()
        if shape < 0.06:
            return f"{first} {self.letters(1, 1)}. {last}"
        if shape < 0.1:
            return f"{first} {last}-{self.last_name()}"
        if shape < 0.14:
            return f"{self.rng.choice(['Dr.', 'Mr.', 'Ms.', 'Prof.'])} {first} {last}"
        return first if shape < 0.2 else f"{first} {last}"

    def city(self) -> str:
        return self.invented(2, 3) if self.chance(0.35) else self.pick(words.CITIES)

    def country(self) -> str:
        return self.invented(2, 3) if self.chance(0.1) else self.pick(words.COUNTRIES)

    def company(self) -> str:
        stem = self.invented() if self.chance(0.4) else self.pick(words.COMPANY_STEMS)
        return f"{stem} {self.rng.choice(words.COMPANY_SUFFIXES)}" if self.chance(0.7) else stem

    def street(self) -> str:
        stem = self.invented() if self.chance(0.35) else self.pick(words.STREETS)
        return f"{self.rng.randint(1, 250)} {stem} {self.rng.choice(words.STREET_SUFFIXES)}"

    def email(self) -> str:
        rng = self.rng
        user = self.fresh(
            lambda: rng.choice([
                self.syllables(1, 3),
                f"{self.syllables(1, 2)}.{self.syllables(1, 2)}",
                f"{self.pick(words.FIRST_NAMES).lower()}.{self.pick(words.LAST_NAMES).lower()}",
                f"{self.syllables(1, 2)}{self.digits(1, 3)}",
                f"{self.letters(1, 1, string.ascii_lowercase)}_{self.syllables(1, 2)}",
            ])
        )
        user = user.encode("ascii", "ignore").decode().replace("'", "")
        host = f"{self.syllables(1, 2).encode('ascii', 'ignore').decode()}.{rng.choice(['com', 'org', 'net', 'io'])}"
        return f"{user}@{host if self.chance(0.4) else self.pick(words.DOMAINS_OF_MAIL)}"

    def phone(self) -> str:
        d = self.digits
        return self.fresh(
            lambda: self.rng.choice([
                f"555-{d(4, 4)}",
                f"({d(3, 3)}) 555-{d(4, 4)}",
                f"+{d(2, 2)} {d(3, 3)} {d(3, 3)} {d(3, 3)}",
                f"{d(3, 3)}-{d(3, 3)}-{d(4, 4)}",
                f"0{d(3, 3)} {d(6, 6)}",
                f"+{d(11, 11)}",
            ])
        )

    # Things and words

    def color(self) -> str:
        return self.pick(words.COLORS)

    def product(self, plural: bool = False) -> str:
        noun = self.syllables(1, 2) if self.chance(0.1) else self.pick(words.PRODUCT_NOUNS)
        noun += "s" if plural else ""
        shape = self.rng.random()
        if shape < 0.3:
            return noun
        if shape < 0.5:
            return f"{self.color()} {noun}"
        if shape < 0.8:
            return f"{self.pick(words.PRODUCT_ADJECTIVES)} {noun}"
        if shape < 0.9:
            return f"{self.invented()} {noun}"
        return f"{noun} {self.letters(1, 2)}{self.digits(1, 3)}"

    def title(self) -> str:
        """A name of an event or a document, two or three words."""
        shape = self.rng.random()
        if shape < 0.3:
            return f"{self.pick(words.TOPICS)} {self.pick(words.EVENT_KINDS)}"
        if shape < 0.6:
            return f"{self.pick(words.TOPICS)} {self.pick(words.EVENT_KINDS)}".title()
        if shape < 0.8:
            return f"The {self.pick(words.TEXT_ADJECTIVES).title()} {self.pick(words.TEXT_NOUNS).title()}"
        return f"{self.invented()} {self.pick(words.EVENT_KINDS).title()}"

    def phrase(self) -> str:
        """A short piece of free text in lower case."""
        rng = self.rng
        noun = self.pick(words.TEXT_NOUNS)
        shape = rng.random()
        if shape < 0.4:
            return f"{self.pick(words.TEXT_VERBS)} the {noun}"
        if shape < 0.6:
            return f"{self.pick(words.TEXT_ADJECTIVES)} {noun}"
        if shape < 0.8:
            return f"{self.pick(words.TEXT_VERBS)} the {self.pick(words.TEXT_ADJECTIVES)} {noun}"
        return " ".join(rng.choices(words.COMMON_WORDS[:220], k=rng.randint(2, 5)))

    def venue(self) -> str:
        if self.chance(0.2):
            return f"{self.invented()} {self.rng.choice(['Hall', 'Hotel', 'Arena', 'Centre', 'Café', 'Park'])}"
        return self.pick(words.VENUES).format(n=self.rng.randint(1, 400))

    def code(self) -> str:
        """An identifier such as ORD-48213 or 7fk29."""
        return self.fresh(
            lambda: self.rng.choice([
                f"{self.letters(1, 3)}-{self.digits(3, 6)}",
                f"{self.letters(2, 3)}{self.digits(3, 5)}",
                self.digits(4, 7),
                f"#{self.digits(4, 6)}",
                f"{self.letters(1, 2)}{self.digits(1, 3)}-{self.letters(1, 3)}{self.digits(1, 3)}",
                self.letters(4, 8, string.ascii_lowercase + string.digits),
            ])
        )

    # Numbers

    def integer(self, low: int, high: int) -> int:
        """Numbers of three and more digits follow the split; smaller ones are too few to hold out."""
        draw = lambda: self.rng.randint(low, high)  # noqa: E731
        return draw() if high < 100 else self.fresh_number(draw)

    def fresh_number(self, draw: Callable[[], int]) -> int:
        while True:
            value = draw()
            if abs(value) < 100 or split_of(str(value)) == self.split:
                return value

    def magnitude(self) -> int:
        """An integer whose number of digits is uniform."""
        return self.fresh_number(lambda: int(self.rng.randint(1, 9) * 10 ** self.rng.uniform(0, 6)))

    def small(self, low: int = 1, high: int = 12) -> Value:
        """A small count, now and then spelled out."""
        count = self.rng.randint(low, high)
        return Value(count, words.NUMBER_WORDS[count] if count <= 12 and self.chance(0.4) else str(count))

    def number(self, value: int) -> Value:
        return Value(value, f"{value:,}" if value >= 1000 and self.chance(0.25) else str(value))

    def decimal(self, low: float, high: float, places: int | None = None) -> Value:
        """A decimal number; a whole one has no fraction in JSON."""
        places = self.rng.choice([1, 2]) if places is None else places
        text = self.fresh(lambda: f"{self.rng.uniform(low, high):.{places}f}")
        value = float(text)
        return Value(int(value) if value.is_integer() else value, text)

    def amount(self) -> Value:
        """A sum of money, written with two decimals or none."""
        high = self.rng.choice([10, 100, 1000, 5000])
        if self.chance(0.3):
            value = self.integer(1, high)
            return Value(value, str(value))
        cents = self.fresh(lambda: f"{self.rng.uniform(0.5, high):.2f}")
        value = float(cents)
        text = f"{value:,.2f}" if self.chance(0.5) else cents
        return Value(int(value) if value.is_integer() else value, text)

    def money(self) -> Value:
        amount = self.amount()
        shapes = ["${}", "${}", "€{}", "£{}", "{} dollars", "{} euros", "{} USD", "{} EUR", "$ {}", "{}"]
        return Value(amount.json, self.rng.choice(shapes).format(amount.text))

    # Dates and times

    def date(self) -> Value:
        """A date, in JSON as ISO 8601."""
        day = self.fresh(lambda: datetime.date(1940, 1, 1) + datetime.timedelta(days=self.rng.randint(0, 36_000)))
        month = words.MONTHS[day.month - 1]
        shapes = [
            day.isoformat(),
            f"{month} {day.day}, {day.year}",
            f"{day.day} {month} {day.year}",
            f"{month[:3]} {day.day}, {day.year}",
            f"{day.day} {month[:3]} {day.year}",
            f"{month} {day.day} {day.year}",
            f"the {_ordinal(day.day)} of {month} {day.year}",
            f"{month} {_ordinal(day.day)}, {day.year}",
            f"{day.year}/{day.month:02}/{day.day:02}",
        ]
        return Value(day.isoformat(), self.rng.choice(shapes))

    def day(self) -> str:
        """A day as people say it."""
        shapes = [
            lambda: self.rng.choice(words.WEEKDAYS),
            lambda: f"next {self.rng.choice(words.WEEKDAYS)}",
            lambda: self.rng.choice(["today", "tomorrow", "tonight", "this weekend", "next week"]),
            lambda: f"{self.rng.choice(words.MONTHS)} {self.rng.randint(1, 28)}",
            lambda: f"the {_ordinal(self.rng.randint(1, 28))} of {self.rng.choice(words.MONTHS)}",
            lambda: self.date().text,
        ]
        return self.rng.choice(shapes)()

    def time(self) -> str:
        hour, minute = self.rng.randint(0, 23), self.rng.choice([0, 5, 10, 15, 20, 30, 40, 45, 50, 55])
        half = f"{hour % 12 or 12}:{minute:02}"
        am = "am" if hour < 12 else "pm"
        return self.rng.choice([f"{hour:02}:{minute:02}", f"{hour}:{minute:02}", f"{half} {am}", f"{half}{am}", f"{hour % 12 or 12}{am}", f"{hour % 12 or 12} {am}"])


def _ordinal(day: int) -> str:
    suffix = "th" if 11 <= day <= 13 else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")
    return f"{day}{suffix}"


def listed(items: Sequence[str], rng: random.Random) -> str:
    """Items as a list in prose."""
    if len(items) == 1:
        return items[0]
    joiner = rng.choice([" and ", " and ", ", and ", " & "])
    return ", ".join(items[:-1]) + joiner + items[-1]
