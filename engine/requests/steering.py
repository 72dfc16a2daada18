"""Brings a value to its end when the model repeats itself in it.

Trained models, small ones above all, fall into loops: 1234567890123..., "very very very". A constraint lets them, up to `maxLength`
or the last token of the budget. So the tokens are watched (`loops.py`), and where they run in a circle the value in which they do
(`values.py`) is ended as soon as it may end:

1. When some allowed token ends the value, only those remain that end it soonest, whatever they say behind it: a closing quote,
   what may stand behind a number, a bracket.
2. When none does (a pattern or `minLength` wants more, a character is not complete), the choice is the model's, as before,
3. but not for ever: after PATIENCE tokens without getting nearer to the end (in an array or object: of all its tokens, for it may
   begin new ones with every step back) only tokens on the shortest way there remain. Each of them brings the end nearer by one at
   least, so it comes.

The loop runs in the innermost value in which all of it lies. One of items is ended with their array, and so are items in several
of which something had to be ended; one of members (`member_loops.py`) with their object, and so are members of which several names
had to be ended. Texts that the constraint requires are left alone by 2; a loop is told only when the choice was narrowed for it.

All of this follows from the tokens so far and how many are left. So it is the same in every loop of steps, and in a session that is
resumed.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...constraints.runtime.front_end import values_of
from ...constraints.runtime.values import Kind, OpenValue, Values, WholeText, ending_tokens
from .loops import Loop, LoopWatch
from .mask_tokens import tokens_in
from .member_loops import MemberWatch
from .request import Constraint

DEFAULT_BOUND = 32  # tokens, and characters, that a loop may cover in a string or number
FACTOR_OF_CONTAINERS = 2  # in an array or object as many times that: equal items may be meant
PATIENCE = 8  # tokens that may bring the end no nearer
FEWEST_ITEMS = 3  # of an array, in which something had to be ended, or names of an object; then that is ended, too


class Steering:
    """One sequence's loops. `take` reads each token; `mask` is then what of the mask is left, None for all of it."""

    def __init__(self, constraint: Constraint, values: Values, bound: int, begun: bytes = b"") -> None:
        """begun: of the text, before the first token."""
        self._constraint, self._values = constraint, values
        self._spellings = constraint.vocabulary.spellings
        self._watch, self._members = LoopWatch(bound), MemberWatch(bound)
        self._unread = bytearray(begun)  # text that `values` has not seen: it is read when it matters
        self._num_bytes = len(begun)
        self._target: OpenValue | None = None  # the value that is to end
        self._least = self._patience = 0  # tokens to the end, at least so far; tokens that may not get below that
        self._loop: Loop | None = None  # that is being ended, if nothing was narrowed yet
        self._ended_in: dict[int, frozenset[str]] = {}  # start of a value -> items in which something had to be ended
        self.mask: NDArray[np.uint32] | None = None
        self.loops: tuple[Loop, ...] = ()  # that were ended

    @property
    def is_active(self) -> bool:
        """A value is being brought to its end: the next mask is not known to be the constraint's."""
        return self._target is not None

    def is_idle_for(self, num_tokens: int) -> bool:
        """Whether, whatever the next so many tokens are, all masks up to and behind them are the constraint's."""
        is_none = self._watch.is_none_within(num_tokens) and self._members.is_none_within(num_tokens)
        return self._target is None and is_none

    def fork(self) -> Steering:
        child = copy.copy(self)
        child._values, child._watch, child._members = self._values.fork(), self._watch.fork(), self._members.fork()
        child._unread, child._ended_in = self._unread.copy(), self._ended_in.copy()
        return child

    def take(self, token_id: int, state: Any, num_needed: int, num_left: int) -> None:
        """A token has led to this state. num_needed: its `min_tokens`; num_left: tokens that may follow."""
        spelled = self._spellings[token_id] or b""
        self._unread += spelled
        self._num_bytes += len(spelled)
        self._watch.take(token_id)
        self._members.take(token_id, spelled)
        before = self._target
        if before is not None:
            self._target = self._behind(before)
        else:
            period = self._watch.period()
            self._target = self._object() if period is None else self._value_of(period)
        if self._target is not before:
            self._least, self._patience = num_needed, PATIENCE
        self.mask = None if self._target is None or not num_left else self._narrowed(self._target, state, num_needed, num_left)

    # ---- which value

    def _value_of(self, period: int) -> OpenValue | None:
        """The value that a loop is to be ended with; None if it may go on for now."""
        self._read()
        repeated = self._text(self._watch.last(period))
        num_characters = max(sum(byte & 0xC0 != 0x80 for byte in repeated), 1)  # bytes that begin one
        for times in (1, FACTOR_OF_CONTAINERS):
            length = max(self._watch.num_needed(period, times), -(-self._watch.bound * times // num_characters) * period)
            if not self._watch.covers(period, length):
                return None
            start = self._num_bytes - len(self._text(self._watch.last(length)))
            around = [each for each in self._values.open if each.start <= start]
            if around and (times > 1 or around[-1].kind not in ("array", "object")):
                text = repeated.decode(errors="replace")
                self._loop = Loop(around[-1].path, text, length // period, self._watch.num_read - length)
                return around[-1]
        return None

    def _object(self) -> OpenValue | None:
        """The object that a loop of members is to be ended with."""
        found = self._members.loop()
        if found is None:
            return None
        self._read()
        around = [each for each in self._values.open if each.start <= self._num_bytes - found.num_bytes]
        if not around or around[-1].kind != "object":
            return None
        self._loop = Loop(around[-1].path, found.text, found.num_members, found.start)
        return around[-1]

    def _behind(self, target: OpenValue) -> OpenValue | None:
        """What is to end now: the value, as long as it is open, and then perhaps the array or the object that it is in."""
        self._read()
        if _is_open(target, self._values):
            return target
        self._watch.clear()
        self._members.clear()
        was_told, self._loop = self._loop is None, None
        if not was_told:
            return None
        kinds: tuple[Kind, ...] = ("object", "array") if target.kind == "key" else ("array",)
        around = (next((each for each in reversed(self._values.open) if each.kind == kind), None) for kind in kinds)
        return next((each for each in around if each is not None and self._is_looping(each, target)), None)

    def _is_looping(self, around: OpenValue, target: OpenValue) -> bool:
        """Whether enough had to be ended in an array or object, of which the target was the last; then that is told."""
        item = str(target.start) if around.kind == "object" else target.path.removeprefix(f"{around.path}/").partition("/")[0]
        items = self._ended_in[around.start] = self._ended_in.get(around.start, frozenset()) | {item}
        if len(items) < FEWEST_ITEMS:
            return False
        self._loop = Loop(around.path, self.loops[-1].text, len(items), self.loops[-1].start)
        return True

    def _read(self) -> None:
        self._values.read(bytes(self._unread))
        self._unread.clear()

    def _text(self, token_ids: Iterable[int]) -> bytes:
        return b"".join(self._spellings[token_id] or b"" for token_id in token_ids)

    # ---- what may come

    def _narrowed(self, target: OpenValue, state: Any, num_needed: int, num_left: int) -> NDArray[np.uint32] | None:
        allowed = self._constraint.mask(state, budget=num_left)
        ends = self._ending(target, allowed, state)
        if ends.any():
            return self._told(ends, allowed)
        if num_needed < self._least:
            self._least = num_needed
            self._patience = self._patience if target.kind in ("array", "object") else PATIENCE
        elif self._patience:
            self._patience -= 1
        if self._patience:
            return None
        shortest = self._constraint.mask(state, budget=min(num_needed, num_left))
        return self._told(shortest, allowed) if shortest.any() else None

    def _ending(self, target: OpenValue, allowed: NDArray[np.uint32], state: Any) -> NDArray[np.uint32]:
        """The mask of the allowed tokens that end the value soonest; empty when none ends it."""
        vocabulary, may_end = self._constraint.vocabulary, allowed
        for kind in {each.kind for each in self._values.open if each.start >= target.start}:  # what is inside of it ends first
            may_end = may_end & ending_tokens(vocabulary, kind)
        candidates = tokens_in(may_end).tolist()
        sizes = {token_id: self._size_until_end(target, token_id) for token_id in candidates}
        if self._constraint.is_accepting(state):
            sizes |= dict.fromkeys(vocabulary.eos_token_ids, 0)
        soonest = min((size for size in sizes.values() if size is not None), default=None)
        flags = np.zeros(len(allowed) * 32, np.uint8)
        flags[[token_id for token_id, size in sizes.items() if size is not None and size == soonest]] = 1
        return np.packbits(flags, bitorder="little").view(np.uint32)

    def _size_until_end(self, target: OpenValue, token_id: int) -> int | None:
        """How many bytes of a token are read until the value has ended; None if it goes on behind it."""
        values, spelled = self._values.fork(), self._spellings[token_id] or b""
        for size in range(1, len(spelled) + 1):
            values.read(spelled[size - 1 : size])
            if not _is_open(target, values):
                return size
        return None

    def _told(self, mask: NDArray[np.uint32], allowed: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """The mask; the loop is told of when it is narrower than what is allowed."""
        if self._loop is not None and not np.array_equal(mask, allowed):
            self.loops += (self._loop,)
            self._loop = None
        return mask


def steering_for(constraint: Constraint, bound: int | None, begun: bytes) -> Steering | None:
    """The steering that is asked for. None as a bound: DEFAULT_BOUND where values are known, and no steering elsewhere; 0: none."""
    if bound == 0:
        return None
    values = values_of(constraint)
    if values is None and bound is None:
        return None
    return Steering(constraint, values or WholeText(), bound or DEFAULT_BOUND, begun)


def _is_open(value: OpenValue, values: Values) -> bool:
    return any(each.start == value.start for each in values.open)
