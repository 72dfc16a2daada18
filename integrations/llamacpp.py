"""llama.cpp under constraints, through llama-cpp-python.

    from llama_cpp import Llama
    from maskwright.integrations.llamacpp import constrain, vocabulary_of

    llama = Llama("model.gguf")
    constraint = Compiler(vocabulary_of("model.gguf")).compile(JsonSchema(Person))
    processors = constrain(llama, constraint, max_tokens=200)
    text = llama.create_completion(prompt, logits_processor=processors, max_tokens=200)["choices"][0]["text"]
    processors.check(text)

llama-cpp-python is not imported: its processors are functions of two arrays.
"""

from __future__ import annotations

import logging
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..constraints import Constraint, State, Vocabulary
from ..engine.gguf.files import open_gguf
from ..engine.gguf.special_tokens import end_token_ids, token_texts
from ..engine.gguf.tokenizer import gguf_tokenizer
from ..errors import OutputError, UsageError
from ..row_states import mask_within

logger = logging.getLogger(__name__)


def vocabulary_of(path: str | PathLike[str]) -> Vocabulary:
    """The vocabulary of a GGUF file, with all tokens that end a turn, and as wide as llama.cpp's logits.

    Raises ModelFolderError, UnsupportedModel: the file cannot be read, or its tokenizer is of a kind that is not known.
    """
    model = open_gguf(Path(path))
    texts = token_texts(model)
    return Vocabulary.from_tokenizer(gguf_tokenizer(model), eos_token_ids=end_token_ids(model, texts), size=len(texts))


class ConstraintProcessor:
    """A logits processor of llama-cpp-python for one completion under a constraint.

    It is called from C, where an exception would be printed and forgotten, and the token drawn without a mask. So what cannot be
    constrained ends the completion at once, and `check` raises why.

    max_tokens: what the completion is given. Then it is complete by then.
    """

    def __init__(self, constraint: Constraint, *, max_tokens: int | None = None) -> None:
        if not constraint.vocabulary.eos_token_ids:
            raise UsageError("the vocabulary names no EOS token, so llama.cpp could never end; give eos_token_ids")
        needed = constraint.min_tokens(constraint.start())
        if max_tokens is not None and max_tokens >= 0 and needed > max_tokens:
            raise UsageError(f"max_tokens={max_tokens} is too small: the shortest output takes {needed} tokens")
        self.constraint = constraint
        self.max_tokens = None if max_tokens is None or max_tokens < 0 else max_tokens
        self.failure: UsageError | None = None
        self._row: NDArray[np.int64] | None = None  # the prompt and what follows, as of the last call
        self._num_prompt_tokens = 0
        self._state: State = constraint.start()

    def __call__(self, input_ids: NDArray[np.intc], scores: NDArray[np.single]) -> NDArray[np.single]:
        """`scores` [logits] for what follows `input_ids` [tokens so far, prompt included], masked, as a new array."""
        size = self.constraint.vocabulary.size
        if self.failure is None and len(scores) < size:
            self._fail(f"the vocabulary has {size} ids, but the model has logits for {len(scores)} only")
        if self.failure is None:
            self._read(np.array(input_ids, np.int64))
        masked: NDArray[np.single] = np.full(len(scores), -np.inf, np.single)
        allowed = self._allowed()
        allowed = allowed[allowed < len(scores)]
        masked[allowed] = scores[allowed]
        return masked

    def check(self, text: str | None = None) -> None:
        """Raises UsageError: the completion could not be constrained; OutputError: it was cut before it was complete, or no token
        of it was asked for here.

        text: of the completion. Without it only the token drawn last is in doubt: it may have gone on where an end was allowed.
        """
        if self.failure is not None:
            raise self.failure
        if self._row is None:
            raise OutputError("the processor was never called: the completion was not constrained")
        if not (self.is_complete if text is None else self.constraint.accepts(text)):
            raise OutputError("the completion ended before it was complete: raise max_tokens, and give it to `constrain` too")

    @property
    def is_complete(self) -> bool:
        """Whether the token that was asked for last, which is not known here, may have been the end."""
        eos = np.asarray(self.constraint.vocabulary.eos_token_ids)
        return self.failure is None and bool(np.isin(eos, self._allowed()).all())

    def _read(self, row: NDArray[np.int64]) -> None:
        before = self._row
        self._row = row
        if before is None:
            self._num_prompt_tokens = len(row)
            return
        if len(row) != len(before) + 1 or not np.array_equal(row[:-1], before):
            self._fail(
                "a call that is not one token behind the one before: of a draft_model, whose guesses hide for which token logits "
                "are, or of a second completion; make a processor for each completion, without draft_model"
            )
            return
        after = self.constraint.advance(self._state, int(row[-1])) if row[-1] < self.constraint.vocabulary.size else None
        if after is None:
            self._fail(f"token {row[-1]} was drawn against the mask, by another processor or a logit bias")
        else:
            self._state = after

    def _allowed(self) -> NDArray[np.int64]:
        """Ids of the tokens that may be next; after a failure those that end."""
        if self.failure is not None:
            return np.asarray(self.constraint.vocabulary.eos_token_ids, np.int64)
        used = 0 if self._row is None else len(self._row) - self._num_prompt_tokens
        budget = None if self.max_tokens is None else self.max_tokens - used
        mask = mask_within(self.constraint, self._state, budget)
        return np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little"))

    def _fail(self, reason: str) -> None:
        self.failure = UsageError(reason)
        logger.error("the completion ends: %s", reason)


class Processors(list[Any]):
    """A `LogitsProcessorList` of one `ConstraintProcessor`.

    Extending it gives the list: llama-cpp-python 0.3.36 goes on with what `extend` returns when a `logit_bias` is given, and a
    plain list returns None, so that all processors would be left out without a word.
    """

    def __init__(self, constraint: ConstraintProcessor) -> None:
        super().__init__([constraint])
        self.constraint = constraint

    def extend(self, processors: Any) -> Processors:  # type: ignore[override]  # see above
        """Others, a logit bias for example, act before the constraint, which has the last word."""
        self[-1:] = [*processors, self[-1]]
        return self

    def __call__(self, input_ids: NDArray[np.intc], scores: NDArray[np.single]) -> NDArray[np.single]:
        for processor in self:
            scores = processor(input_ids, scores)
        return scores

    def check(self, text: str | None = None) -> None:
        """See `ConstraintProcessor.check`."""
        self.constraint.check(text)


def constrain(llama: Any, constraint: Constraint, *, max_tokens: int | None = None) -> Processors:
    """`logits_processor=` of one completion of a `llama_cpp.Llama`.

    max_tokens: see `ConstraintProcessor`. Raises UsageError: the vocabulary is not that of the model, or the model guesses ahead.
    """
    refuse_guesses(llama)
    if llama.n_vocab() != constraint.vocabulary.size:
        raise UsageError(
            f"the vocabulary has {constraint.vocabulary.size} ids and the model {llama.n_vocab()}: vocabulary_of(llama.model_path)"
        )
    return Processors(ConstraintProcessor(constraint, max_tokens=max_tokens))


def refuse_guesses(llama: Any) -> None:
    """Raises UsageError for a model that guesses ahead."""
    if llama.draft_model is not None:
        raise UsageError("draft_model and a constraint do not go together: processors are not told for which guess logits are")
