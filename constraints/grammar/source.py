"""What a front end is: a frozen description of a constraint that can lower itself to a grammar."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass
from typing import Protocol, TypeGuard, runtime_checkable

from ..base.errors import ConstraintError
from ..vocabulary.vocabulary import Vocabulary
from .expression import Grammar, Node


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Everything that can grow, with a name. Reaching one raises `ConstraintLimit` with that name.

    `seconds` and `bytes` may be exceeded by a tenth, and bytes by some 16 MB more: what constraints share is kept by the process,
    and tables are touched page by page. What the source itself takes as Python's objects does not count, as it is there before.
    """

    seconds: float = 10.0  # of processor time, compiling one constraint
    bytes: int = 512 << 20  # that compiling one constraint may hold, by a count that is rather too high: see stopwatch.py
    source_bytes: int = 20_000_000  # text of a schema, grammar or pattern
    pattern_characters: int = 50_000  # text of one regular expression
    nodes: int = 4_000_000  # expressions of one grammar, dynamic ones included
    states: int = 1_000_000  # automaton states of one constraint; where few are left, texts are ended, in 20,000 or a quarter more
    row_bytes: int = 256 << 20  # mask rows of one constraint; beyond, they are dropped and computed anew
    nesting: int = 200  # depth of a schema, grammar or pattern as written
    repetition: int = 1_000_000  # a counter's bound; of what a JSON Schema counts, its lower bound
    enum_values: int = 100_000  # of one `enum`, or choices
    digits: int = 300  # of a number
    byte_words: int = 30_000  # written for a byte by a grammar of rules, on the average of 64; 40 more a node; for a mask 8 times
    search_states: int = 50_000  # of the automaton of one intersection, or of a part of it; and a hundred times as many distances
    search_nodes: int = 2_000_000  # trie nodes visited by searches for the fewest tokens; beyond, upper bounds are used

    def __hash__(self) -> int:
        """Of a few, since all take longer than what is looked up by them: limits that differ mostly differ in these."""
        return hash((self.seconds, self.bytes, self.nodes, self.states))

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
                raise ConstraintError(f"a limit is a number that is not negative, not {value!r}", keyword=name)


@runtime_checkable
class Source(Protocol):
    """A constraint as written: a frozen, hashable value that can lower itself.

    Equal sources are compiled once. `lower` may be called more than once, by several threads, and with a grammar that holds other
    things already. Those with more to say than a grammar can inherit from `FrontEnd` (front_end.py).
    """

    def lower(self, grammar: Grammar, limits: Limits) -> Node:
        """Add to `grammar` what this source means and return the root. limits: how much it may be. Raises `ConstraintError`."""


def is_source(value: object) -> TypeGuard[Source]:
    """Whether something is a constraint as written. A string can be lowered too, but not to a grammar."""
    return callable(getattr(value, "lower", None)) and not isinstance(value, str | bytes | bytearray)


def fingerprint_of(source: Source, vocabulary: Vocabulary) -> str:
    """SHA-256 (hex) of a vocabulary and a source: the same in every process."""
    return hashlib.sha256(f"{vocabulary.fingerprint}\n{source!r}".encode()).hexdigest()
