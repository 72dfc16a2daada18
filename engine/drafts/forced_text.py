"""Forced text in tokens: what every completion goes on with is written as the tokenizer would write it, without asking the model.

The rule. Let the tokens so far spell w, and let the constraint force the bytes f. Taken are the tokens of f that stand in the
usual tokenisation of w + f whatever comes behind f: the last ones may depend on it, for a token may reach from f into the free
text. Such a token begins at an end f[s:] of f that some token of the vocabulary properly begins with. The tokens that the
tokenisations of w + f[:s] have in common for all such s, and s = |f|, are taken; for byte-pair encoding these are exactly the
tokens that every continuation has. The rest of f is left to the model, under the mask. When the output ends with f, all of its
tokens are taken.

Tokens that were given are never taken back. When the usual tokenisation of w + f does not begin with the tokens of w (the model
chose another spelling of w, or would have begun a token of f earlier), f is tokenised as if it stood alone.

What changes: every token has the probability 1 of the text it spells, so the distribution of *texts* changes only through the
model's view of how the text is spelt. Sampled token by token, forced text comes in any spelling, most of which the model never
saw.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence

import numpy as np

from ...constraints.vocabulary.vocabulary import Vocabulary
from ..kv_cache.prefix_tree import common_length
from ..requests.request import Constraint, State

CONTEXT = 4  # tokens before the forced text that are tokenised with it
MAX_KEPT = 4096  # answers


class ForcedText:
    """Writes forced text as tokens. `encode` gives the tokens of a text, without special tokens around it."""

    def __init__(self, vocabulary: Vocabulary, encode: Callable[[str], Sequence[int]]) -> None:
        self._text_of = vocabulary.text_tokens
        self._encode = encode
        self._sorted = sorted({token for token in vocabulary.text_tokens if token})
        self._longest = max(map(len, self._sorted), default=1)
        self._known: dict[tuple[tuple[int, ...], bytes, bool], tuple[int, ...]] = {}

    def tokens(self, constraint: Constraint, state: State, token_ids: Sequence[int]) -> tuple[int, ...]:
        """The tokens of what `constraint` forces in `state`, behind `token_ids` (prompt and output); () when it forces none."""
        forced = constraint.forced(state)
        if not forced:
            return ()
        context = self._context(token_ids)
        ends = _ends_with(constraint, state, forced)
        key = context, forced, ends
        if (known := self._known.get(key)) is None:
            if len(self._known) >= MAX_KEPT:
                self._known.clear()
            known = self._known[key] = self._find(context, forced, ends)
        return known

    def _find(self, context: tuple[int, ...], forced: bytes, ends: bool) -> tuple[int, ...]:
        cuts = [len(forced)] if ends else [*self._crossings(forced), len(forced)]
        before = b"".join(self._text_of[token_id] or b"" for token_id in context)
        behind = [self._behind(context, before, forced[:cut]) for cut in cuts]
        taken = behind[-1]
        for other in behind:
            taken = taken[: common_length(taken, other)]
        return self._spelling(taken, forced)

    def _crossings(self, forced: bytes) -> list[int]:
        """Places in `forced` at which a token may begin that reaches beyond its end."""
        first = max(len(forced) - self._longest + 1, 0)
        return [place for place in range(first, len(forced)) if self._is_begun(forced[place:])]

    def _is_begun(self, text: bytes) -> bool:
        """Some token begins with this text and is longer."""
        place = bisect_right(self._sorted, text)
        return place < len(self._sorted) and self._sorted[place].startswith(text)

    def _behind(self, context: tuple[int, ...], before: bytes, text: bytes) -> tuple[int, ...]:
        """The tokens of `text` behind those of `context`, or alone when it is spelt differently there."""
        together = self._encoded(before + text)
        if together[: len(context)] == context:
            return together[len(context) :]
        return self._encoded(text)

    def _encoded(self, data: bytes) -> tuple[int, ...]:
        """The usual tokens of what of `data` is whole characters."""
        return tuple(self._encode(data.decode("utf-8", errors="ignore")))

    def _spelling(self, token_ids: Sequence[int], forced: bytes) -> tuple[int, ...]:
        """The leading tokens that spell what is forced, and nothing else: a tokenizer may add or change characters."""
        spelled, taken = 0, list[int]()
        for token_id in token_ids:
            text = self._text_of[token_id] if token_id < len(self._text_of) else None
            if not text or not forced.startswith(text, spelled):
                break
            spelled += len(text)
            taken.append(token_id)
        return tuple(taken)

    def _context(self, token_ids: Sequence[int]) -> tuple[int, ...]:
        """The last tokens of text, from where a character begins."""
        context: list[int] = []
        for token_id in reversed(token_ids[-CONTEXT:]):
            if not self._text_of[token_id]:
                break
            context.insert(0, token_id)
        while context and (self._text_of[context[0]] or b"")[0] & 0xC0 == 0x80:
            context.pop(0)
        return tuple(context)


def _ends_with(constraint: Constraint, state: State, forced: bytes) -> bool:
    """The output is complete after `forced`, and cannot go on."""
    after = constraint.advance_bytes(state, forced)
    if after is None or not constraint.is_accepting(after):
        return False
    return int(np.bitwise_count(constraint.mask(after)).sum()) == len(constraint.vocabulary.eos_token_ids)
