"""Records: what lies in an array of int32 words, with a name and a type for each word.

A record is declared once, as a class whose attributes are its words in order. Here is what the classes mean in Python;
record_lowering.py tells Numba the same, so that `m.nodes[i].size` is one load in compiled code, of a word that is widened to 64
bits. Nothing is copied: a value of these classes is the address of its first word.

    Words     words from an address on; `words[k]` is a number, `words + k` the words from the k-th on
    Record    a few words with names
    Records   records one behind the other, found by their ids
    View      names for the parts of an array whose first words say where each part begins
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

Id = TypeVar("Id", bound=int)
R = TypeVar("R", bound="Record")


class Words:
    """What a word is, is known where it is read, so the type checker takes any for it. memory: what the words are read from and
    written to, by their numbers."""

    def __init__(self, memory: Any, start: int = 0) -> None:
        self.memory, self.start = memory, start

    def __getitem__(self, index: int) -> Any:
        return int(self.memory[self.start + index])

    def __setitem__(self, index: int, value: int) -> None:
        self.memory[self.start + index] = int(value)

    def __add__(self, words: int) -> Words:
        return Words(self.memory, self.start + words)


@dataclass(frozen=True)
class Place:
    """Where a field lies: its first byte, counted from that of the record; a word, or one byte of it, or some of its bits, or
    several words."""

    at: int
    is_byte: bool = False
    num_words: int | None = None
    shift: int = 0
    num_bits: int | None = None
    instead_of: str = ""  # the field whose word it is


def several(words: int) -> Any:
    """In the declaration of a record: a field of several words, whose value is `Words`."""
    return Place(0, num_words=words)


def byte() -> Any:
    """In the declaration of a record: a field of one byte, for numbers from -128 to 127. Four in a row share a word."""
    return Place(0, is_byte=True)


def bits(count: int, above: int = 0) -> Any:
    """In the declaration of a record: a field of some bits of a word, for numbers from 0 on. above: of the word of the field
    before, those above so many; 0 begins a word."""
    return Place(0, shift=above, num_bits=count)


def instead_of(field: str) -> Any:
    """In the declaration of a record: the word of a field before, which only records of another kind have."""
    return Place(0, instead_of=field)


class Record:
    """Fields are numbers of one word, unless they are declared otherwise. size: words from one record to the next of the same kind,
    by default as many as the fields take."""

    SIZE: ClassVar[int]
    PLACES: ClassVar[Mapping[str, Place]]

    def __init_subclass__(cls, size: int | None = None) -> None:
        places: dict[str, Place] = {}
        end = 0
        for name in cls.__annotations__:
            declared = cls.__dict__.get(name, Place(0))
            if declared.instead_of:
                places[name] = replace(places[declared.instead_of], instead_of=declared.instead_of)
                delattr(cls, name)
                continue
            if not declared.is_byte:
                end = -(-end // 4) * 4
            if declared.shift:
                end -= 4
            places[name] = replace(declared, at=end)
            end += 1 if declared.is_byte else 4 * (declared.num_words or 1)
            if name in cls.__dict__:
                delattr(cls, name)
        cls.PLACES, words = places, -(-end // 4)
        cls.SIZE = words if size is None else size
        assert words <= cls.SIZE, f"{cls.__name__} has more than {cls.SIZE} words"

    def __init__(self, words: Words) -> None:
        object.__setattr__(self, "_words", words)

    def __str__(self) -> str:
        own = (name for name, place in self.PLACES.items() if place.num_words is None and not place.instead_of)
        numbers = [f"{name}={getattr(self, name)}" for name in own]
        return f"{type(self).__name__}({', '.join(numbers)})"

    if not TYPE_CHECKING:  # to the type checker there are the declared fields alone

        def __getattr__(self, name: str) -> Any:
            place = self._place(name)
            if place.num_words is not None:
                return self._words + place.at // 4
            word = self._words[place.at // 4]
            if place.num_bits is not None:
                return word >> place.shift & (1 << place.num_bits) - 1
            if not place.is_byte:
                return word
            found = word >> 8 * (place.at % 4) & 255
            return found - 256 if found >= 128 else found

        def __setattr__(self, name: str, value: int) -> None:
            place, value = self._place(name), int(value)
            if place.is_byte or place.num_bits is not None:
                shift, mask = (8 * (place.at % 4), 255) if place.is_byte else (place.shift, (1 << place.num_bits) - 1)
                word = self._words[place.at // 4] & ~(mask << shift) | (value & mask) << shift
                value = (word + (1 << 31)) % (1 << 32) - (1 << 31)
            self._words[place.at // 4] = value

        def _place(self, name: str) -> Place:
            if name not in self.PLACES:
                raise AttributeError(f"{type(self).__name__} has no field {name}")
            return self.PLACES[name]


class Records(Generic[Id, R]):
    def __init__(self, words: Words, kind: type[R]) -> None:
        self.words, self.kind = words, kind

    def __getitem__(self, number: Id) -> R:
        return self.kind(self.words + self.kind.SIZE * number)


@dataclass(frozen=True)
class Word:
    """Where a part begins: as a word of the array says; or, of an attribute that is a number, its distance from another word, in
    units of 2^shift, or the word itself."""

    index: int
    since: int | None = None
    shift: int = 0


class View:
    """Attributes are `Words`, a `Record`, `Records`, another `View`, or numbers (`int`), which do not change while compiled code
    runs."""

    WORDS: ClassVar[Mapping[str, Word]]
    KINDS: ClassVar[Mapping[str, Any]]  # the type of each attribute

    def __init__(self, words: Words) -> None:
        self._words = words

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            word, kind = self.WORDS[name], self.KINDS[name]
            found = self._words[word.index]
            if kind is int:
                return found if word.since is None else (found - self._words[word.since]) >> word.shift
            part = self._words + found
            if kind is Words:
                return part
            return kind(part) if isinstance(kind, type) else Records(part, kind.__args__[1])


def view_words(cls: type[View], numbers: Mapping[str, int]) -> list[int]:
    """The words with which an array begins that has this view of it, by the attributes' names. Each attribute has a word."""
    assert numbers.keys() == cls.WORDS.keys(), numbers.keys() ^ cls.WORDS.keys()
    return [numbers[name] for name, _ in sorted(cls.WORDS.items(), key=lambda one: one[1].index)]


def words_of_address(address: int) -> Words:
    """The words at an address of this process."""
    return Words(ctypes.cast(address, ctypes.POINTER(ctypes.c_int32)))
