"""What a user may ask of sampling, checked when it is written down."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from typing import Any

from ..foundation.errors import MaskwrightError

MAX_LOGPROBS = 20
LARGEST = 3.4e38
SMALLEST = 1.2e-38
SEED_STRIDE = 0x9E3779B97F4A7C15  # odd: no two copies have the same seed


class SamplingError(MaskwrightError, ValueError):
    """A sampling option has a value that means nothing: which option, which value, what is allowed."""

    def __init__(self, option: str, value: object, allowed: str) -> None:
        super().__init__(option, value, allowed)
        self.option = option
        self.value = value
        self.allowed = allowed

    def __str__(self) -> str:
        return f"{self.option} must be {self.allowed}, got {self.value!r}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingParams:
    """How tokens are chosen and when generation stops.

    Stages run in this order: constraint mask, bans and bias, penalties, temperature, top-k, top-p, min-p, draw.
    Raises `SamplingError` for a value outside the range given beside each field.
    """

    temperature: float = 1.0  # >= 0; 0 takes the most probable token
    top_k: int = 0  # >= 0; keep the k most probable tokens, and those tied with the last; 0 = off
    top_p: float = 1.0  # (0, 1]; keep the fewest most probable tokens that hold this probability; 1 = off
    min_p: float = 0.0  # [0, 1]; keep tokens at least this fraction as probable as the best; 0 = off
    repetition_penalty: float = 1.0  # > 0; divides logits of tokens in prompt or output (multiplies, if < 0)
    presence_penalty: float = 0.0  # subtracted once from logits of tokens in the output
    frequency_penalty: float = 0.0  # subtracted from logits once per occurrence in the output
    logit_bias: Mapping[int, float] = field(default_factory=dict, hash=False)  # token id -> added to its logit
    banned_token_ids: tuple[int, ...] = ()  # never drawn, unless the constraint leaves nothing else
    seed: int | None = None  # [0, 2**64); None = a fresh one; the same seed gives the same tokens in any batch
    max_tokens: int = 256  # >= 1
    min_tokens: int = 0  # [0, max_tokens]; end-of-text and stop tokens are banned before that many
    stop: tuple[str, ...] = ()  # generation ends when the output contains one of these; a lone str is accepted
    stop_token_ids: tuple[int, ...] = ()
    ignore_eos: bool = False  # end-of-text tokens are banned instead of ending generation
    include_stop_in_output: bool = False  # keep the stop string that ended generation in the text
    logprobs: int | None = None  # [0, 20]; log-probability of each token, and of this many most probable ones
    n: int = 1  # >= 1; outputs for the prompt, which is computed once
    best_of: int | None = None  # None or >= n; outputs generated, of which the n most probable ones are given
    jump_forward: bool = False  # forced text enters as its usual tokens without asking the model for each

    def __post_init__(self) -> None:
        self._number("temperature", "a number >= 0", lambda t: t >= 0)
        self._integer("top_k", "an integer >= 0 (0 switches it off)", lambda k: 0 <= k < 2**31)
        self._number("top_p", "a number in (0, 1]", lambda p: 0 < p <= 1)
        self._number("min_p", "a number in [0, 1]", lambda p: 0 <= p <= 1)
        self._number("repetition_penalty", f"a number >= {SMALLEST}", lambda p: p >= SMALLEST)
        self._number("presence_penalty", "a finite number")
        self._number("frequency_penalty", "a finite number")
        self._set("logit_bias", checked_bias(self.logit_bias))
        self._set("banned_token_ids", checked_token_ids("banned_token_ids", self.banned_token_ids))
        if self.seed is not None:
            self._integer("seed", "None or an integer in [0, 2**64)", lambda seed: 0 <= seed < 2**64)
        self._integer("max_tokens", "an integer >= 1", lambda n: n >= 1)
        self._integer("min_tokens", "an integer in [0, max_tokens]", lambda n: 0 <= n <= self.max_tokens)
        self._set("stop", checked_stop(self.stop))
        self._set("stop_token_ids", checked_token_ids("stop_token_ids", self.stop_token_ids))
        self._flag("ignore_eos")
        self._flag("include_stop_in_output")
        if self.logprobs is not None:
            self._integer("logprobs", f"None or an integer in [0, {MAX_LOGPROBS}]", lambda n: 0 <= n <= MAX_LOGPROBS)
        self._integer("n", "an integer >= 1", lambda n: n >= 1)
        if self.best_of is not None:
            self._integer("best_of", "None or an integer >= n", lambda count: count >= self.n)
        self._flag("jump_forward")

    @property
    def num_copies(self) -> int:
        """Outputs that are generated for one prompt."""
        return self.best_of or self.n

    def copies(self) -> list[SamplingParams]:
        """One for each output: the first with the seed given, the others with seeds made of it."""
        strides = [number * SEED_STRIDE for number in range(self.num_copies)]
        seeds = [None if self.seed is None else (self.seed + stride) % 2**64 for stride in strides]
        return [replace(self, n=1, best_of=None, seed=seed) for seed in seeds]

    @property
    def is_greedy(self) -> bool:
        return self.temperature == 0

    def _set(self, option: str, value: Any) -> None:
        object.__setattr__(self, option, value)

    def _number(self, option: str, allowed: str, holds: Any = lambda _: True) -> None:
        value = checked_number(option, getattr(self, option), allowed)
        if not holds(value):
            raise SamplingError(option, value, allowed)
        self._set(option, value)

    def _integer(self, option: str, allowed: str, holds: Any) -> None:
        value = getattr(self, option)
        if isinstance(value, bool) or not isinstance(value, Integral) or not holds(value):
            raise SamplingError(option, value, allowed)
        self._set(option, int(value))

    def _flag(self, option: str) -> None:
        if not isinstance(getattr(self, option), bool):
            raise SamplingError(option, getattr(self, option), "True or False")


def checked_number(option: str, value: object, allowed: str) -> float:
    """A number that float32, in which sampling computes, can hold. NaN fails the comparison."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise SamplingError(option, value, allowed)
    try:
        number = float(value)
    except OverflowError:  # an integer beyond float64
        raise SamplingError(option, value, allowed) from None
    if not abs(number) <= LARGEST:
        raise SamplingError(option, value, allowed)
    return number


def checked_bias(bias: object) -> dict[int, float]:
    if not isinstance(bias, Mapping):
        raise SamplingError("logit_bias", bias, "a mapping from token id to number")
    token_ids = checked_token_ids("logit_bias", bias.keys())
    values = [checked_number(f"logit_bias[{token_id}]", bias[token_id], "a finite number") for token_id in bias]
    return dict(zip(token_ids, values, strict=True))


def checked_token_ids(option: str, token_ids: object) -> tuple[int, ...]:
    allowed = "token ids (integers >= 0)"
    if isinstance(token_ids, str | bytes) or not isinstance(token_ids, Iterable):
        raise SamplingError(option, token_ids, allowed)
    checked = tuple(token_ids)
    for token_id in checked:
        if isinstance(token_id, bool) or not isinstance(token_id, Integral) or token_id < 0:
            raise SamplingError(option, token_id, allowed)
    return tuple(int(token_id) for token_id in checked)


def checked_stop(stop: object) -> tuple[str, ...]:
    allowed = "a non-empty string or several of them"
    if isinstance(stop, bytes) or not isinstance(stop, Iterable):
        raise SamplingError("stop", stop, allowed)
    strings = (stop,) if isinstance(stop, str) else tuple(stop)
    for string in strings:
        if not isinstance(string, str) or not string:
            raise SamplingError("stop", string, allowed)
    return strings
