"""Why a token is allowed or masked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..vocabulary.vocabulary import Vocabulary

NUM_NEAREST = 5  # legal tokens named in an explanation


@dataclass(frozen=True, slots=True)
class Explanation:
    """The verdict on one token in one state. `str()` of it is a sentence for people."""

    token_id: int
    token: bytes | None  # None when the token is never text
    allowed: bool
    reason: str
    dies_at: int | None  # index of the first byte of the token that cannot follow, None when allowed or never text
    expected: str  # bytes that could have stood there
    paths: tuple[str, ...]  # parts of the grammar (schema paths, rule names) that begin here or behind what is being read
    nearest: tuple[int, ...]  # legal tokens that share the most leading bytes with this one

    def __str__(self) -> str:
        where = f" before {', '.join(self.paths)}" if self.paths else ""
        return f"token {self.token_id} {self.token!r} is {'allowed' if self.allowed else 'masked'}{where}: {self.reason}"


class Explainable(Protocol):
    """What an explanation asks of a constraint; `Constraint` says what each of these is."""

    @property
    def vocabulary(self) -> Vocabulary: ...

    def mask(self, state: Any) -> NDArray[np.uint32]: ...

    def advance(self, state: Any, token_id: int) -> Any: ...

    def survives(self, state: Any, data: bytes) -> tuple[int, str]: ...

    def paths(self, state: Any) -> tuple[str, ...]: ...


def explain(constraint: Explainable, state: Any, token_id: int, num_nearest: int = NUM_NEAREST) -> Explanation:
    """The explanation of `token_id` in `state`; see `Constraint.explain`."""
    token = constraint.vocabulary.spellings[token_id]
    allowed = constraint.advance(state, token_id) is not None
    dies_at, expected = None, ""
    nearest: tuple[int, ...] = (token_id,) if allowed else ()
    if token_id in constraint.vocabulary.eos_token_ids:
        reason = "the text so far is complete" if allowed else "EOS ends the text, which is not complete yet"
    elif not token:
        reason = "this token is neither text nor named by a constraint"
    elif allowed:
        reason = "a completion begins with it"
    else:
        dies_at, expected = constraint.survives(state, token)
        nearest = _nearest(constraint, state, token[:dies_at], num_nearest) if num_nearest else ()
        reason = f"byte {dies_at} ({token[dies_at : dies_at + 1]!r}) cannot follow; expected {expected or 'the end'}"
        if dies_at == len(token):
            reason, dies_at = "no sequence of tokens of this vocabulary completes the text after it", None
    paths = constraint.paths(state)
    return Explanation(token_id, token or None, allowed, reason, dies_at, expected, paths, nearest)


def _nearest(constraint: Explainable, state: Any, prefix: bytes, count: int) -> tuple[int, ...]:
    """Legal tokens with the longest common prefix with `prefix`, longest first."""
    tokens = constraint.vocabulary.spellings
    bits = np.unpackbits(constraint.mask(state).view(np.uint8), bitorder="little")
    legal = [int(i) for i in np.flatnonzero(bits) if i < len(tokens) and tokens[i]]
    return tuple(sorted(legal, key=lambda i: (-_shared(tokens[i] or b"", prefix), len(tokens[i] or b""), i))[:count])


def _shared(left: bytes, right: bytes) -> int:
    count = 0
    while count < min(len(left), len(right)) and left[count] == right[count]:
        count += 1
    return count


def byte_set(live: list[int]) -> str:
    """A readable form of a set of bytes: printable ones quoted, runs as a-b."""
    runs: list[list[int]] = []
    for byte in live:
        if runs and byte == runs[-1][1] + 1:
            runs[-1][1] = byte
        else:
            runs.append([byte, byte])
    return " ".join(_name(low) if low == high else f"{_name(low)}-{_name(high)}" for low, high in runs)


def _name(byte: int) -> str:
    return repr(chr(byte)) if 0x20 < byte < 0x7F else f"0x{byte:02x}"
