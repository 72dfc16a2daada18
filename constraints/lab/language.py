"""Patterns read one character at a time: the automaton of the package itself, over single bytes."""

from __future__ import annotations

from functools import cached_property, lru_cache

from ..base.errors import ConstraintError
from ..runtime.compiler import Compiler
from ..runtime.constraint import Constraint, State
from ..vocabulary.vocabulary import Vocabulary
from .outline import Pattern

_SEARCHED = 3000  # states visited for a shortest text


@lru_cache(maxsize=1)
def byte_compiler() -> Compiler:
    """A compiler for the smallest vocabulary that spells everything: which texts are accepted does not depend on the
    vocabulary."""
    return Compiler(Vocabulary([*(bytes([byte]) for byte in range(256)), None], eos_token_ids=[256]), cache_bytes=64 << 20)


class Language:
    """The texts of one pattern. States are those of its constraint. A special token of a vocabulary has no text: `is_text`."""

    def __init__(self, pattern: Pattern) -> None:
        self.pattern = pattern

    @cached_property
    def constraint(self) -> Constraint | None:
        if self.pattern.source is None:
            return None
        try:
            return byte_compiler().compile(self.pattern.source)
        except ConstraintError:  # nothing satisfies it, or it needs tokens
            return None

    @property
    def is_text(self) -> bool:
        return self.constraint is not None

    @cached_property
    def start(self) -> State:
        assert self.constraint is not None
        return self.constraint.start()

    def step(self, state: State, char: str) -> State | None:
        """The state after a character, None when it cannot follow."""
        assert self.constraint is not None
        return self.constraint.advance_bytes(state, char.encode())

    def is_accepting(self, state: State) -> bool:
        return self.constraint is not None and self.constraint.is_accepting(state)

    @cached_property
    def least_length(self) -> int:
        """The characters of its shortest text; 1 for a special token, which has no text of its own."""
        return len(self.ending(self.start)) if self.constraint is not None else 1

    def ending(self, state: State) -> str:
        """A short text that completes a state: the shortest one, where a search finds it."""
        if self.constraint is None:
            return ""
        seen, frontier = {state}, [(state, b"")]
        for at, text in frontier:  # grows while it is read
            if self.constraint.is_accepting(at):
                return _decoded(text)
            if len(seen) > _SEARCHED:
                break
            for byte in _BYTES:
                after = self.constraint.advance_bytes(at, byte)
                if after is not None and after not in seen:
                    seen.add(after)
                    frontier.append((after, text + byte))
        return _decoded(self._by_budget(state))

    def _by_budget(self, state: State) -> bytes:
        """A completion that comes nearer to the end with every byte."""
        out = b""
        assert self.constraint is not None
        while not self.constraint.is_accepting(state):
            least = self.constraint.min_tokens(state)
            for byte in _BYTES:
                after = self.constraint.advance_bytes(state, byte)
                if after is not None and self.constraint.min_tokens(after) < least:
                    state, out = after, out + byte
                    break
        return out


class Languages:
    """The languages of patterns, each made once."""

    def __init__(self) -> None:
        self._known: dict[int, Language] = {}

    def of(self, pattern: Pattern) -> Language:
        known = self._known.get(id(pattern))
        if known is None:
            known = self._known[id(pattern)] = Language(pattern)  # which holds the pattern, so that its id stays its own
        return known


_PREFERRED = b"abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_BYTES = [bytes([byte]) for byte in dict.fromkeys([*_PREFERRED, *range(0x21, 0x7F), 0x20, *range(256)])]


def _decoded(text: bytes) -> str:
    return text.decode("utf-8", errors="replace")
