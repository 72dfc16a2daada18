"""A backend of Outlines, beside its own.

    import outlines
    from maskwright.integrations.outlines import register

    register()
    model = outlines.from_transformers(...)
    model("...", Person, backend="maskwright")
    outlines.Generator(model, Person, backend="maskwright")
"""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import outlines.backends as backends
from outlines.backends.base import BaseBackend
from outlines.models import LlamaCpp, Transformers
from outlines.processors.base_logits_processor import OutlinesLogitsProcessor

from ..constraints import Compiler, Constraint, JsonSchema, Regex, Source, Vocabulary
from ..errors import UsageError
from ..row_states import RowStates
from .sources import grammar_of
from .versions import check_version

NAME = "maskwright"
TESTED = ("1.3",)
_COMPILERS: WeakKeyDictionary[Any, Compiler] = WeakKeyDictionary()  # Outlines makes a backend for every call


class ConstraintLogitsProcessor(OutlinesLogitsProcessor):
    """Sets the logits of every token that `constraint` forbids to -inf. Rows may be reordered, as beam search does.

    tensor_library_name: "torch" or "numpy".
    """

    def __init__(self, constraint: Constraint, tensor_library_name: str) -> None:
        super().__init__(tensor_library_name)
        self.constraint = constraint
        self._states = RowStates(constraint)

    def reset(self) -> None:
        """Forget all rows: Outlines calls it before each generation."""
        self._states.reset()

    def process_logits(self, input_ids: Any, logits: Any) -> Any:
        """`logits` [rows, head] for rows `input_ids` [rows, tokens so far, prompt included], masked, as a new tensor."""
        size, head = self.constraint.vocabulary.size, logits.shape[-1]
        if head < size:
            raise UsageError(f"the vocabulary has {size} ids, but the model has logits for {head} only")
        allowed = np.zeros(logits.shape, bool)
        rows = input_ids if isinstance(input_ids, np.ndarray) else input_ids.cpu().numpy()
        allowed[:, :size] = self._states.allowed(self._states.of(rows))
        if isinstance(logits, np.ndarray):
            return np.where(allowed, logits, np.array(-np.inf, logits.dtype))
        import torch

        return logits.masked_fill(~torch.from_numpy(allowed).to(logits.device), -torch.inf)


class MaskwrightBackend(BaseBackend):
    """What is asked of Outlines as processors of a model: exact, or refused by path and keyword with a ConstraintError."""

    def __init__(self, model: Any) -> None:
        """model: of Outlines, `from_transformers` or `from_llamacpp`. Raises UsageError for others."""
        self.compiler, self.tensor_library_name = _compiler(model), model.tensor_library_name

    def get_json_schema_logits_processor(
        self, json_schema: str, whitespace_pattern: str | None = None
    ) -> ConstraintLogitsProcessor:
        """whitespace_pattern: a regular expression of what stands between the tokens of JSON; None: as models write it."""
        return self._processor(JsonSchema(json_schema, whitespace="auto" if whitespace_pattern is None else whitespace_pattern))

    def get_regex_logits_processor(self, regex: str) -> ConstraintLogitsProcessor:
        """regex: in Python's dialect."""
        return self._processor(Regex(regex))

    def get_cfg_logits_processor(self, grammar: str) -> ConstraintLogitsProcessor:
        """grammar: in any notation that `sources.grammar_of` tells apart."""
        return self._processor(grammar_of(grammar))

    def _processor(self, source: Source) -> ConstraintLogitsProcessor:
        return ConstraintLogitsProcessor(self.compiler.compile(source), self.tensor_library_name)


def register() -> None:
    """Let `backend="maskwright"` name this backend. Outlines' own stay what they are; calling it again changes nothing.

    Raises UnsupportedEngine for releases not tested; `MaskwrightBackend(model)` makes processors without being registered, for
    `outlines.generator.SteerableGenerator.from_processor(model, processor)`.
    """
    check_version("Outlines", ("outlines",), TESTED)
    theirs = backends._get_backend
    if getattr(theirs, "knows_maskwright", False):
        return

    def get_backend(backend_name: str, model: Any) -> Any:
        return MaskwrightBackend(model) if backend_name == NAME else theirs(backend_name, model)

    get_backend.knows_maskwright = True  # type: ignore[attr-defined]
    backends._get_backend = get_backend


def _compiler(model: Any) -> Compiler:
    if not isinstance(model, (Transformers, LlamaCpp)):
        raise UsageError(f"the maskwright backend is for models of transformers and llama.cpp, not {type(model).__name__}")
    known = _COMPILERS.get(model)
    if known is None:
        known = _COMPILERS[model] = Compiler(_vocabulary(model))
    return known


def _vocabulary(model: Any) -> Vocabulary:
    if isinstance(model, Transformers):
        if model.tensor_library_name != "torch":
            raise UsageError(f"the maskwright backend reads tensors of PyTorch, not those of {model.tensor_library_name}")
        eos = model.model.generation_config.eos_token_id
        listed = eos if isinstance(eos, list) else [] if eos is None else [eos]
        head = model.model.config.get_text_config().vocab_size
        return Vocabulary.from_tokenizer(model.hf_tokenizer, eos_token_ids=listed, size=head)
    from .llamacpp import refuse_guesses, vocabulary_of

    refuse_guesses(model.model)
    return vocabulary_of(model.model.model_path)
