"""What a constraint did to each value of an output: how probable it was, and how much of what the model would have written was
masked.

Every token that was drawn has two numbers (`TokenRecord`): the probability that the model alone gave to it, and the *kept mass*,
what the model gave to all tokens that the mask allowed. The first over the second is its probability under the mask. Both
multiply along the tokens of a value, so that for every value

    probability under the model = probability under the mask * kept mass

The tokens of a value are those that spell a byte of it, its quotes and brackets included, and of a number also the one behind it,
by which the model said that it had no more digits. A token belongs to all values that it reaches into.

A value of which little was kept is *strained*: there the constraint decided against the model, and the value is to be doubted.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from .constraints import Constraint, Vocabulary
from .constraints.runtime.front_end import values_of
from .constraints.runtime.values import Kind, OpenValue, SegmentedValues, Values, WholeText
from .engine.requests.output import TokenRecord

Path: TypeAlias = tuple[str | int, ...]  # of a value: names of members and numbers of items

STRAINED = 0.01  # kept mass below which a value is strained
NO_MASS = 1e-30  # stands for a kept mass that is 0 in float32
WHOLE: Path = ()  # the path of the outermost value
_LEAVES: tuple[Kind, ...] = ("string", "scalar", "text")


@dataclass(frozen=True, slots=True)
class FieldDetails:
    """One value of an output. In replies with tool calls the path of an argument begins with the number of its call."""

    path: Path
    start: int  # its tokens are token_ids[start:stop]
    stop: int  # behind the last of them
    logprob: float  # of these tokens, under the model alone, without temperature, bias and penalties
    log_kept: float  # logarithm of what the masks left of the model's probability, all tokens together
    num_unasked: int = 0  # tokens that the model was not asked for, which the numbers leave out
    is_leaf: bool = True  # a string, number or literal, or a text that is no JSON; else an object or array

    @property
    def probability(self) -> float:
        """Of the value as it is spelt, under the model alone."""
        return math.exp(self.logprob)

    @property
    def constrained_probability(self) -> float:
        """Of the value as it is spelt, under the masks: the model's, over what they left."""
        return math.exp(min(self.logprob - self.log_kept, 0.0))

    @property
    def kept_mass(self) -> float:
        """The probability that the model alone would have kept to the constraint along this value, [0, 1]."""
        return math.exp(self.log_kept)

    @property
    def is_strained(self) -> bool:
        """Whether the masks left less than `STRAINED` of what the model would have written. Objects and arrays never are: their
        members tell."""
        return self.is_leaf and self.kept_mass < STRAINED


class Fields(Mapping[Path, FieldDetails]):
    """The values of an output by path: `fields["days_open"]`, `fields["items", 0, "price"]`, `fields[()]` for the whole."""

    def __init__(self, details: Iterable[FieldDetails]) -> None:
        self._by_path = {each.path: each for each in sorted(details, key=lambda each: (each.start, -each.stop))}

    def __getitem__(self, path: Path | str) -> FieldDetails:
        return self._by_path[(path,) if isinstance(path, str | int) else tuple(path)]

    def __iter__(self) -> Iterator[Path]:
        return iter(self._by_path)

    def __len__(self) -> int:
        return len(self._by_path)

    def __repr__(self) -> str:
        return f"Fields({', '.join(path_text(path) for path in self)})"

    @property
    def strained(self) -> tuple[FieldDetails, ...]:
        """The strained values, the worst first."""
        return tuple(sorted((each for each in self.values() if each.is_strained), key=lambda each: each.log_kept))


@dataclass(slots=True)
class _Open:
    """A value that has begun: its sums so far."""

    value: OpenValue
    path: Path
    start: int
    logprob: float = 0.0
    log_kept: float = 0.0
    num_unasked: int = 0


class FieldReader:
    """Follows one output token by token and gives the details of each value when it is complete."""

    def __init__(self, constraint: Constraint, vocabulary: Vocabulary, begun: bytes = b"") -> None:
        """begun: of the output, what the prompt ends with."""
        self._values: Values = values_of(constraint) or WholeText()
        self._spellings = vocabulary.spellings
        self._open: dict[int, _Open] = {}  # by the place where they begin
        self._num_tokens = 0
        self._values.read(begun)
        self._open_new()

    def read(self, record: TokenRecord) -> list[FieldDetails]:
        """The values that the next token completes, inner ones first."""
        touched, closed = dict(self._open), list[int]()
        for byte in self._spellings[record.token_id] or b"":
            self._values.read(bytes([byte]))
            self._open_new()
            touched |= self._open
            closed += self._ended()
        for each in touched.values():
            self._add(each, record)
        self._num_tokens += 1
        return [self._details(touched[start]) for start in closed]

    def finish(self) -> list[FieldDetails]:
        """The values that the end of a complete output completes: a number or a text that is all of it."""
        left = [each for each in reversed(self._open.values()) if each.value.kind in ("scalar", "text")]
        self._open.clear()
        return [self._details(each) for each in left]

    def _open_new(self) -> None:
        around: _Open | None = None
        for value in self._values.open:
            if value.kind == "key":
                continue
            if value.start not in self._open:
                self._open[value.start] = _Open(value, self._path(value, around), self._num_tokens)
            around = self._open[value.start]

    def _ended(self) -> list[int]:
        """The places of values that are open no more, inner ones first."""
        still = {value.start for value in self._values.open}
        ended = [start for start in reversed(self._open) if start not in still]
        for start in ended:
            del self._open[start]
        return ended

    def _path(self, value: OpenValue, around: _Open | None) -> Path:
        if around is not None:
            last = value.path.rpartition("/")[2].replace("~1", "/").replace("~0", "~")
            return (*around.path, int(last) if around.value.kind == "array" else last)
        owner, _, name = value.path.partition("#")
        if not owner or not isinstance(self._values, SegmentedValues):
            return WHOLE
        names = tuple(part.replace("~1", "/").replace("~0", "~") for part in name.split("/")[1:])
        return (self._values.num_calls, *names)

    @staticmethod
    def _add(opened: _Open, record: TokenRecord) -> None:
        if record.logprob is None or record.kept_mass is None:
            opened.num_unasked += 1
            return
        opened.logprob += record.logprob
        opened.log_kept += math.log(min(max(record.kept_mass, NO_MASS), 1.0))

    def _details(self, ended: _Open) -> FieldDetails:
        return FieldDetails(
            ended.path,
            ended.start,
            self._num_tokens,
            ended.logprob,
            ended.log_kept,
            ended.num_unasked,
            ended.value.kind in _LEAVES,
        )


def fields_of(records: Iterable[TokenRecord], reader: FieldReader, *, is_complete: bool) -> Fields:
    """The details of all values of an output; of one that ended early, of those that were complete."""
    found = [details for record in records for details in reader.read(record)]
    return Fields([*found, *(reader.finish() if is_complete else ())])


def path_text(path: Path) -> str:
    """A path as people write it, `items[0].price`; "the output" for the whole."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".") or "the output"


def strain_text(details: FieldDetails) -> str:
    """A line about a strained value."""
    return f"{path_text(details.path)}: the constraint left {details.kept_mass:.2g} of what the model would have written there"
