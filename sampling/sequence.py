"""What sampling remembers about one sequence: its seed, its position, and the tokens it has seen."""

from __future__ import annotations

import copy
import secrets
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ..kernels.sampler.parameters import PENALTIES
from ..kernels.sampler.programs import Step
from .checks import SamplingError
from .edits import BANNED, TokenArrays, arrays_of, arrays_within, edits_of, with_edits
from .mirostat import Mirostat
from .params import SamplingParams
from .repeats import RepeatedEnds

REFUSAL_STRIDE = 1 << 32  # more than the tokens of any output


def resolve_seed(seed: int | None) -> int:
    """The seed given, or a fresh one of 64 bits."""
    return secrets.randbits(64) if seed is None else seed


class SequenceSampling:
    """The sampling side of one sequence. Call `accept` with every token that joins the output, drawn or forced, and
    `refuse` when a token that was drawn does not, to draw again.

    Token ids are the engine's. Where it renumbers the vocabulary, `engine_ids[t]` is its number of the user's token t,
    and is applied to the ids inside `params`; the other arguments are already the engine's.
    Raises `SamplingError` if `params` names a token outside the vocabulary.
    """

    def __init__(
        self,
        params: SamplingParams,
        *,
        vocab_size: int,
        prompt_token_ids: Sequence[int] = (),
        eos_token_ids: Iterable[int] = (),
        seed: int | None = None,
        engine_ids: NDArray[np.integer] | None = None,
        spellings: Sequence[bytes | None] = (),
    ) -> None:
        """spellings: the bytes of each of the engine's tokens, in which DRY looks for its breakers."""
        if params.texts:
            raise SamplingError("bad_words" if params.bad_words else "logit_bias", params.texts[0], "token ids by now (`spelled`)")
        self.params, self.vocab_size = params, vocab_size
        self.seed = resolve_seed(params.seed) if seed is None else seed
        self.position = 0  # tokens in the output
        self._num_refused = 0  # draws for the token at this position that were not taken
        to_engine = partial(engine_token_ids, vocab_size=vocab_size, engine_ids=engine_ids)
        self.stop_token_ids = frozenset(to_engine("stop_token_ids", params.stop_token_ids))
        self.eos_token_ids = frozenset(eos_token_ids)
        self.end_ids = self.stop_token_ids | self.eos_token_ids
        biased = to_engine("logit_bias", (key for key in params.logit_bias if not isinstance(key, str)))
        bias = dict(zip(biased, params.logit_bias.values(), strict=True))
        sequences = [tuple(to_engine("bad_words_ids", each)) for each in params.bad_words_ids]
        bias |= dict.fromkeys((each[0] for each in sequences if len(each) == 1), BANNED)
        bias |= dict.fromkeys(to_engine("banned_token_ids", params.banned_token_ids), BANNED)
        if params.ignore_eos:
            bias |= dict.fromkeys(self.eos_token_ids, BANNED)
        allowed = frozenset(to_engine("allowed_token_ids", params.allowed_token_ids))
        self._bias = arrays_within(bias, allowed, vocab_size)
        ends = dict.fromkeys(self.stop_token_ids | self.eos_token_ids, BANNED)
        self._bias_of_beginning = arrays_within(bias | ends, allowed, vocab_size) if params.min_tokens else self._bias
        self.has_penalties = params.repeat_last_n != 0 and any(getattr(params, name) != off for name, off in PENALTIES.items())
        seen = prompt_token_ids if self.has_penalties and params.repetition_penalty != 1 else ()
        is_windowed = self.has_penalties and params.repeat_last_n > 0
        self._history = RecentCounts(prompt_token_ids, seen, params.repeat_last_n) if is_windowed else TokenCounts(seen)
        self._edits = edits_of(params, [each for each in sequences if len(each) > 1], spellings)
        self._text = RepeatedEnds(prompt_token_ids) if self._edits else None
        self._edited: tuple[TokenArrays, TokenArrays] | None = None  # a bias without edits, and with those of this position
        self.steps: tuple[Step, ...] = params.steps if params.has_program else ()
        self.mirostat = Mirostat.of(params)

    @property
    def follows_text(self) -> bool:
        """Whether the way in which the next token is drawn depends on the tokens before it."""
        return self.has_penalties or self.must_continue or bool(self._edits) or self.mirostat is not None

    @property
    def must_continue(self) -> bool:
        """The output is shorter than `min_tokens`: end-of-text and stop tokens are banned."""
        return self.position < self.params.min_tokens

    @property
    def bias(self) -> TokenArrays:
        """Token ids and what is added to their logits for the next token; -inf bans."""
        bias = self._bias_of_beginning if self.must_continue else self._bias
        if self._text is None:
            return bias
        if self._edited is None or self._edited[0] is not bias:
            edited = bias
            for edit in self._edits:
                if edits := edit(self._text):
                    edited = with_edits(edited, edits)
            self._edited = bias, edited
        return self._edited[1]

    @property
    def history(self) -> TokenArrays:
        """Distinct token ids seen, and how often each occurs in the output (0 = in the prompt only)."""
        return self._history.arrays()

    def is_end(self, token_id: int) -> bool:
        """This token ends generation: it is a stop token, or end-of-text."""
        return token_id in self.end_ids

    @property
    def draw_index(self) -> int:
        """Names the random number of the next draw: each position has its own, and so has each draw after a refusal."""
        return self.position + self._num_refused * REFUSAL_STRIDE

    def fork(self, seed: int | None = None) -> SequenceSampling:
        """A copy that has come as far as this one and goes on independently, with another seed if one is given."""
        forked = copy.copy(self)
        forked._history = copy.deepcopy(self._history)
        forked._text = None if self._text is None else self._text.copy()
        forked.mirostat = copy.copy(self.mirostat)
        forked.seed = self.seed if seed is None else seed
        return forked

    @property
    def num_refused(self) -> int:
        """Draws for the next token that were not taken."""
        return self._num_refused

    def refuse(self, times: int = 1) -> None:
        """The token drawn last was not taken. A redraw with the same random number would favour its neighbours."""
        self._num_refused += times

    def accept(self, token_id: int, share: float | None = None) -> None:
        """share: with which probability it was drawn, where that is known; None of a token that there was no choice about."""
        self.position += 1
        self._num_refused = 0
        if self.has_penalties:
            self._history.add(token_id)
        if self._text is not None:
            self._text.add(token_id)
            self._edited = None
        if self.mirostat is not None and share is not None:
            self.mirostat.learn(share)


def engine_token_ids(
    option: str, token_ids: Iterable[int], *, vocab_size: int, engine_ids: NDArray[np.integer] | None
) -> list[int]:
    user_ids = list(token_ids)
    for token_id in user_ids:
        if token_id >= vocab_size:
            raise SamplingError(option, token_id, f"token ids below the vocabulary size {vocab_size}")
    return user_ids if engine_ids is None else [int(engine_ids[token_id]) for token_id in user_ids]


class TokenCounts:
    """Distinct tokens with counts, in growing arrays: adding one costs O(1), reading them costs nothing."""

    def __init__(self, uncounted: Sequence[int]) -> None:
        distinct = list(dict.fromkeys(uncounted))
        self._slot = {token_id: slot for slot, token_id in enumerate(distinct)}
        self._token_ids = np.array(distinct + [0] * 16, dtype=np.int64)
        self._counts = np.zeros(len(distinct) + 16, dtype=np.float32)

    def add(self, token_id: int) -> None:
        slot = self._slot.setdefault(token_id, len(self._slot))
        if slot == len(self._token_ids):
            self._grow()
        self._token_ids[slot] = token_id
        self._counts[slot] += 1

    def arrays(self) -> TokenArrays:
        return self._token_ids[: len(self._slot)], self._counts[: len(self._slot)]

    def _grow(self) -> None:
        self._token_ids = np.concatenate([self._token_ids, np.zeros_like(self._token_ids)])
        self._counts = np.concatenate([self._counts, np.zeros_like(self._counts)])


class RecentCounts:
    """`TokenCounts` of the last tokens alone."""

    def __init__(self, prompt: Sequence[int], uncounted: Sequence[int], window: int) -> None:
        """uncounted: the prompt, or nothing where its tokens have no part in it."""
        self._recent: deque[tuple[int, bool]] = deque(((token_id, False) for token_id in prompt[-window:]), window)
        self._has_prompt = bool(uncounted)

    def add(self, token_id: int) -> None:
        self._recent.append((token_id, True))

    def arrays(self) -> TokenArrays:
        counts: Counter[int] = Counter()
        for token_id, is_output in self._recent:
            if is_output or self._has_prompt:
                counts[token_id] += is_output
        return arrays_of(counts)
