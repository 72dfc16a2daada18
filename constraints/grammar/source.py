"""What a front end is: a frozen description of a constraint that can lower itself to a grammar."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Protocol, TypeGuard, runtime_checkable

from ..base.errors import ConstraintError
from .expression import Grammar, Node


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Everything that can grow, with a name. Reaching one raises `ConstraintLimit` with that name."""

    seconds: float = 10.0  # of processor time, lowering one schema
    source_bytes: int = 20_000_000  # text of a schema, grammar or pattern
    pattern_characters: int = 50_000  # text of one regular expression
    nodes: int = 4_000_000  # expressions of one grammar, dynamic ones included
    states: int = 1_000_000  # automaton states of one constraint
    row_bytes: int = 256 << 20  # mask rows of one constraint; beyond, they are dropped and computed anew
    nesting: int = 200  # depth of a schema, grammar or pattern as written
    repetition: int = 1_000_000  # a counter's bound; of what a JSON Schema counts, its lower bound
    enum_values: int = 100_000
    digits: int = 300  # of a number
    search_states: int = 20_000  # products visited by a search for a string in an intersection; four times so many for one step
    search_nodes: int = 2_000_000  # trie nodes visited by searches for the fewest tokens; beyond, upper bounds are used

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
                raise ConstraintError(f"a limit is a number that is not negative, not {value!r}", keyword=name)


@runtime_checkable
class Source(Protocol):
    """A constraint as written: hashable, and able to lower itself.

    A source may also have `beginning(limits) -> Grammar`: parts that most of its kind need, built once and copied, which the
    grammar then given to `lower` begins with. And `finish(constraint, compile) -> Constraint`, for what a grammar cannot say; where
    `lower` refuses that, because it may be called for a part of another source, `lower_whole` does not.
    """

    def lower(self, grammar: Grammar, limits: Limits) -> Node:
        """Add to `grammar` what this source means and return the root. Raises `ConstraintError`."""


def is_source(value: object) -> TypeGuard[Source]:
    """Whether something is a constraint as written. A string can be lowered too, but not to a grammar."""
    return isinstance(value, Source) and not isinstance(value, str | bytes | bytearray)
