"""The two classes that vLLM calls: one compiles for the engine, one follows a request.

Source of what they have to do: vllm/v1/structured_output/__init__.py and backend_types.py, release 0.33.

The constraint core is imported with the first request. vLLM loads this in every process, and its CPU platform, where Triton is
missing, cannot start when llvmlite is loaded already: it looks for `__dict__` in everything there is, and llvmlite's library
answers with a C function of that name.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from vllm.v1.structured_output.backend_types import (
    StructuredOutputBackend,
    StructuredOutputGrammar,
    StructuredOutputOptions,
)

from ..walk import Moved, Walk

if TYPE_CHECKING:
    from ...constraints.grammar.source import Source
    from ..compilers import Compilers

KINDS = {
    StructuredOutputOptions.JSON: "json_schema",
    StructuredOutputOptions.JSON_OBJECT: "json_object",
    StructuredOutputOptions.REGEX: "regex",
    StructuredOutputOptions.GRAMMAR: "grammar",
    StructuredOutputOptions.CHOICE: "choice",
    StructuredOutputOptions.STRUCTURAL_TAG: "structural_tag",
}


class MaskwrightGrammar(StructuredOutputGrammar):
    """One request's way through its constraint. Refused tokens change nothing; what follows the end is not looked at."""

    __slots__ = ("_moved", "walk")

    def __init__(self, walk: Walk, moved: Moved) -> None:
        """moved: the walks of all requests of the engine."""
        self.walk, self._moved = walk, moved

    def accept_tokens(self, request_id: str, tokens: list[int]) -> bool:
        """Go on by these tokens; False, and none is taken, where one is not allowed."""
        self._moved.note(self.walk)
        return self.walk.take(tokens)

    def validate_tokens(self, tokens: list[int]) -> list[int]:
        """The tokens, a prefix, that could be taken one after another. Takes none; -1 is padding and allowed nowhere."""
        return self.walk.legal_prefix(tokens)

    def rollback(self, num_tokens: int) -> None:
        """Give back the tokens taken last."""
        self.walk.back(num_tokens)

    def fill_bitmask(self, bitmask: Tensor, batch_index: int) -> None:
        """Write the row `batch_index` of bitmask, int32 [rows, ceil(V / 32)] on the CPU."""
        self._moved.make_masks(self.walk)
        self.walk.write_mask(bitmask.numpy()[batch_index].view(np.uint32))

    def is_terminated(self) -> bool:
        """Whether a token that ends the text was taken."""
        return self.walk.is_finished

    def reset(self) -> None:
        """Give back all tokens."""
        self.walk.restart()


@dataclass
class MaskwrightBackend(StructuredOutputBackend):
    """Compiles constraints for an engine. Called by several threads."""

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._compilers: Compilers | None = None
        self._is_destroyed = False
        self._moved = Moved()

    def compile_grammar(
        self, request_type: StructuredOutputOptions, grammar_spec: str, stop_token_ids: set[int] | None = None
    ) -> MaskwrightGrammar:
        """The constraint of a request at its start. stop_token_ids: what ends the text, nothing else does; without any, the
        tokenizer's. Raises `ConstraintError` for what is refused."""
        source = request_source(request_type, grammar_spec, self.vllm_config)
        return MaskwrightGrammar(Walk(self._known_compilers().compile(source, stop_token_ids)), self._moved)

    def _known_compilers(self) -> Compilers:
        from ..compilers import Compilers

        with self._lock:
            if self._is_destroyed:
                raise RuntimeError("the structured-output backend was destroyed")
            if self._compilers is None:
                self._compilers = Compilers(self.tokenizer, self.vocab_size)
            return self._compilers

    def allocate_token_bitmask(self, max_num_seqs: int) -> Tensor:
        """int32 [max_num_seqs, ceil(V / 32)] in which everything is allowed."""
        return torch.full((max_num_seqs, -(-self.vocab_size // 32)), -1, dtype=torch.int32)

    def destroy(self) -> None:
        """Let go of all constraints; those of running requests stay valid."""
        with self._lock:
            self._compilers, self._is_destroyed = None, True


def request_source(request_type: StructuredOutputOptions, grammar_spec: str, vllm_config: Any) -> Source:
    """The constraint that a request asks for, with the white space of JSON that the engine is set to. Raises `ConstraintError`."""
    from ..compilers import whitespace_of
    from ..sources import source_of

    config = getattr(vllm_config, "structured_outputs_config", None)
    whitespace = whitespace_of(compact=getattr(config, "disable_any_whitespace", False))
    return source_of(KINDS[request_type], grammar_spec, whitespace)
