"""Compiled constraints for a tokenizer that an engine brings, made when they are first asked for."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any

from ..constraints import Compiler, Constraint, ConstraintError, JsonSchema, Limits, Source, Vocabulary

MOST_KEPT = 4  # compilers; each holds the tables of one vocabulary, about 100 MB for 150,000 tokens
WHITESPACE = "MASKWRIGHT_WHITESPACE"  # environment: the white space of JSON, as `JsonSchema` takes it


class Compilers:
    """A compiler for each set of tokens that end the text. Thread-safe.

    Tokens that end an output are never text, so they cannot come before the output is complete, and what is left is enough to
    complete it: each set of them makes a vocabulary of its own. Engines add stop tokens request by request; there are few sets.

    tokenizer: what `Vocabulary.from_tokenizer` takes. size: the width of the model's logits; ids beyond the tokenizer's are
    never allowed. eos_token_ids: the model's, for requests that name no others; None: those of the tokenizer.
    """

    def __init__(
        self, tokenizer: Any, size: int, eos_token_ids: Iterable[int] | None = None, limits: Limits | None = None
    ) -> None:
        self.tokenizer, self.size, self.limits = tokenizer, size, limits
        self._eos_token_ids = None if eos_token_ids is None else frozenset(eos_token_ids)
        self._lock = threading.Lock()
        self._base: Vocabulary | None = None
        self._compilers: OrderedDict[frozenset[int], Compiler] = OrderedDict()

    def compile(self, source: Source, end_ids: Iterable[int] | None = None) -> Constraint:
        """The constraint of a source for texts that end with one of `end_ids`; without any, with the model's.

        Raises `ConstraintError`; `UnsupportedTokenizer`, one of them, where the tokens are not known as bytes.
        """
        return self._compiler(frozenset(end_ids or ())).compile(source)

    def _compiler(self, end_ids: frozenset[int]) -> Compiler:
        with self._lock:
            base = self._base or self._read()
            end_ids = frozenset(i for i in end_ids if 0 <= i < base.size) or frozenset(base.eos_token_ids)
            compiler = self._compilers.get(end_ids)
            if compiler is None:
                vocabulary = Vocabulary(base.tokens, tuple(end_ids), base.special_tokens)
                compiler = self._compilers[end_ids] = Compiler(vocabulary, self.limits)
            self._compilers.move_to_end(end_ids)
            while len(self._compilers) > MOST_KEPT:
                self._compilers.popitem(last=False)
            return compiler

    def _read(self) -> Vocabulary:
        try:
            base = Vocabulary.from_tokenizer(self.tokenizer, size=self.size)
        except ConstraintError:
            raise
        except ValueError as error:
            raise ConstraintError(f"the tokenizer does not fit the model: {error}", keyword="tokenizer") from error
        if self._eos_token_ids:
            base = Vocabulary(base.tokens, tuple(self._eos_token_ids), base.special_tokens)
        if not base.eos_token_ids:
            raise ConstraintError(
                "neither the tokenizer nor the model names a token that ends the text",
                keyword="eos_token_id",
                instead="a tokenizer with an eos_token",
            )
        self._base = base
        return base


def whitespace_of(compact: bool = False, most: int | None = None, pattern: str | None = None) -> str:
    """The white space of JSON that an engine is set to. most: characters between two tokens of JSON. Without any of these what
    the environment says, else "auto". Raises `ConstraintError` for a pattern that is not one."""
    if pattern is not None:
        chosen = pattern
    elif compact or most == 0:
        chosen = "compact"
    elif most is not None:
        chosen = rf"[ \t\n\r]{{0,{most}}}"
    else:
        chosen = os.environ.get(WHITESPACE, "auto")
    JsonSchema(True, whitespace=chosen)
    return chosen
