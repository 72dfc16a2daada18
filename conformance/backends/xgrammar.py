"""XGrammar, as its documentation says for a tokenizer of Hugging Face: all tokens with their texts, and the ids that stop."""

from __future__ import annotations

import json
from importlib.metadata import version
from typing import Any

import numpy as np
import xgrammar
from numpy.typing import NDArray

from ...constraints import Vocabulary


class ConformanceBackend:
    """`strict_mode=False`, so that what a schema does not name is allowed, as the specification says."""

    name, version = "xgrammar", version("xgrammar")

    def __init__(self) -> None:
        self._compilers: dict[str, tuple[Any, int]] = {}

    def compile(self, kind: str, source: Any, vocabulary: Vocabulary) -> XgrammarMatcher:
        compiler, size = self._compiler(vocabulary)
        if kind == "json_schema":
            grammar = compiler.compile_json_schema(json.dumps(source), strict_mode=False)
        elif kind == "regex":
            grammar = compiler.compile_regex(source)
        elif kind == "grammar":
            grammar = compiler.compile_grammar(source["gbnf"])
        elif kind == "structural_tag":
            grammar = compiler.compile_structural_tag(json.dumps(source))
        else:
            raise NotImplementedError(kind)
        return XgrammarMatcher(xgrammar.GrammarMatcher(grammar), size)

    def _compiler(self, vocabulary: Vocabulary) -> tuple[Any, int]:
        known = self._compilers.get(vocabulary.fingerprint)
        if known is None:
            info = xgrammar.TokenizerInfo(
                [token or b"" for token in vocabulary.tokens], xgrammar.VocabType.RAW, vocab_size=vocabulary.size,
                stop_token_ids=list(vocabulary.eos_token_ids),
            )  # fmt: skip
            known = self._compilers[vocabulary.fingerprint] = xgrammar.GrammarCompiler(info, max_threads=1), info.vocab_size
        return known


class XgrammarMatcher:
    def __init__(self, matcher: Any, size: int) -> None:
        self._matcher, self._bitmask = matcher, xgrammar.allocate_token_bitmask(1, size)

    def mask(self) -> NDArray[np.int32]:
        if self._matcher.is_terminated():  # asking it then is an error
            return np.zeros(self._bitmask.shape[1], np.int32)
        self._bitmask.fill_(-1)
        self._matcher.fill_next_token_bitmask(self._bitmask, 0)
        words: NDArray[np.int32] = self._bitmask[0].numpy().copy()
        return words

    def accept(self, token_id: int) -> bool:
        return bool(self._matcher.accept_token(token_id))

    def rollback(self, count: int) -> None:
        self._matcher.rollback(count)

    def is_finished(self) -> bool:
        return bool(self._matcher.is_terminated())
