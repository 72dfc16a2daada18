"""llguidance, with a tokenizer made of tokens and ids that are special."""

from __future__ import annotations

import json
from importlib.metadata import version
from typing import Any

import llguidance
import llguidance.numpy
import numpy as np
from numpy.typing import NDArray

from ...constraints import Vocabulary

_OPTIONS = '%llguidance {"no_forcing": true}'


class ConformanceBackend:
    """Grammars in lark's notation. Structural tags have no counterpart with its meaning there.

    With `no_forcing`: otherwise text that is forced may only be written in the tokens in which the tokenizer cuts it, and no cut of
    the suite is such a tokenizer's.
    """

    name, version = "llguidance", version("llguidance")

    def __init__(self) -> None:
        self._tokenizers: dict[str, Any] = {}

    def compile(self, kind: str, source: Any, vocabulary: Vocabulary) -> LlguidanceMatcher:
        if kind == "json_schema":
            grammar = f"start: %json {json.dumps(source)}"
        elif kind == "regex":
            grammar = json.loads(llguidance.LLMatcher.grammar_from_regex(source))["grammars"][0]["lark_grammar"]
        elif kind == "grammar":
            if "lark" not in source:
                raise NotImplementedError("the grammar is not given in lark's notation")
            grammar = source["lark"]
        else:
            raise NotImplementedError(f"{kind} is not offered")
        tokenizer = self._tokenizer(vocabulary)
        matcher = llguidance.LLMatcher(tokenizer, f"{_OPTIONS}\n{grammar}", log_level=0)
        if matcher.is_error():
            raise ValueError(matcher.get_error())
        return LlguidanceMatcher(matcher, tokenizer.vocab_size, vocabulary.eos_token_ids[0])

    def _tokenizer(self, vocabulary: Vocabulary) -> Any:
        known = self._tokenizers.get(vocabulary.fingerprint)
        if known is None:
            known = llguidance.LLTokenizer(llguidance.TokenizerWrapper(_Tokens(vocabulary)))
            self._tokenizers[vocabulary.fingerprint] = known
        return known


class _Tokens:
    """What llguidance reads of a tokenizer. Texts are cut by bytes, where they are."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.eos_token_id, self.bos_token_id = vocabulary.eos_token_ids[0], None
        self.special_token_ids = [*vocabulary.special_tokens.values(), *vocabulary.eos_token_ids]
        self.tokens = [token or b"" for token in vocabulary.tokens]

    def __call__(self, text: bytes) -> list[int]:
        return list(text)


class LlguidanceMatcher:
    """One stops by itself where nothing can follow, and then reads no EOS; here it is read all the same."""

    def __init__(self, matcher: Any, size: int, eos: int) -> None:
        self._matcher, self._eos = matcher, eos
        self._bitmask = llguidance.numpy.allocate_token_bitmask(1, size)
        self._has_ended, self._end_was_read = False, False  # the second: by llguidance

    def mask(self) -> NDArray[np.int32]:
        if self._has_ended:
            return np.zeros(self._bitmask.shape[1], np.int32)
        llguidance.numpy.fill_next_token_bitmask(self._matcher, self._bitmask, 0)
        if self._matcher.is_error():
            raise RuntimeError(self._matcher.get_error())
        words: NDArray[np.int32] = self._bitmask[0].copy()
        return words

    def accept(self, token_id: int) -> bool:
        stops = bool(self._matcher.is_stopped())
        if token_id == self._eos and stops and not self._has_ended:
            self._has_ended, self._end_was_read = True, False
            return True
        is_accepted = not stops and bool(self._matcher.consume_token(token_id))
        if is_accepted and token_id == self._eos:
            self._has_ended, self._end_was_read = True, True
        return is_accepted

    def rollback(self, count: int) -> None:
        if self._has_ended and not self._end_was_read:
            count -= 1
        self._has_ended = False
        if count and not self._matcher.rollback(count):
            raise RuntimeError(self._matcher.get_error())

    def is_finished(self) -> bool:
        return self._has_ended
