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


class ConformanceBackend:
    """Grammars in lark's notation. Structural tags have no counterpart with its meaning there."""

    name, version = "llguidance", version("llguidance")

    def __init__(self) -> None:
        self._tokenizers: dict[str, Any] = {}

    def compile(self, kind: str, source: Any, vocabulary: Vocabulary) -> LlguidanceMatcher:
        if kind == "json_schema":
            grammar = llguidance.LLMatcher.grammar_from_json_schema(json.dumps(source))
        elif kind == "regex":
            grammar = llguidance.LLMatcher.grammar_from_regex(source)
        elif kind == "grammar":
            grammar = llguidance.LLMatcher.grammar_from_lark(source["lark"])
        else:
            raise NotImplementedError(f"{kind} is not offered")
        tokenizer = self._tokenizer(vocabulary)
        matcher = llguidance.LLMatcher(tokenizer, grammar, log_level=0)
        if matcher.is_error():
            raise ValueError(matcher.get_error())
        return LlguidanceMatcher(matcher, tokenizer.vocab_size)

    def _tokenizer(self, vocabulary: Vocabulary) -> Any:
        known = self._tokenizers.get(vocabulary.fingerprint)
        if known is None:
            known = llguidance.LLTokenizer(llguidance.TokenizerWrapper(_Tokens(vocabulary)))
            self._tokenizers[vocabulary.fingerprint] = known
        return known


class _Tokens:
    """What llguidance reads of a tokenizer. Texts are cut by bytes, which it only does where text is forced."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.eos_token_id, self.bos_token_id = vocabulary.eos_token_ids[0], None
        self.special_token_ids = [*vocabulary.special_tokens.values(), *vocabulary.eos_token_ids]
        self.tokens = [token or b"" for token in vocabulary.tokens]

    def __call__(self, text: bytes) -> list[int]:
        return list(text)


class LlguidanceMatcher:
    def __init__(self, matcher: Any, size: int) -> None:
        self._matcher, self._bitmask = matcher, llguidance.numpy.allocate_token_bitmask(1, size)

    def mask(self) -> NDArray[np.int32]:
        if self._matcher.is_stopped() and not self._matcher.is_error():
            return np.zeros(self._bitmask.shape[1], np.int32)
        llguidance.numpy.fill_next_token_bitmask(self._matcher, self._bitmask, 0)
        if self._matcher.is_error():
            raise RuntimeError(self._matcher.get_error())
        words: NDArray[np.int32] = self._bitmask[0].copy()
        return words

    def accept(self, token_id: int) -> bool:
        return bool(self._matcher.consume_token(token_id))

    def rollback(self, count: int) -> None:
        if not self._matcher.rollback(count):
            raise RuntimeError(self._matcher.get_error())

    def is_finished(self) -> bool:
        return bool(self._matcher.is_stopped())
