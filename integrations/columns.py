"""Tables, a piece at a time: one more column with what a model makes of each row, under a constraint.

    ds = ray.data.read_json("in.jsonl", lines=True)
    ds = ds.map_batches(Extract, fn_constructor_kwargs={"prompt": "{text}", "schema": Person}, concurrency=2)
    ds.write_parquet("out")

It takes pieces as Ray Data has them, arrays by column, or lists, and does not import it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from string import Formatter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..constraint_choice import KEYWORDS
from ..errors import MaskwrightError, UsageError
from ..llm import LLM
from ..outputs import GenerationOutput
from ..sampling import SamplingParams

Piece = Mapping[str, "NDArray[Any] | Sequence[Any]"]  # columns of one length


class Extract:
    """A stage that answers a prompt for each row. Its model is loaded once, where it is made.

    A row that cannot be answered has None and the reason beside it: the others are answered.
    """

    def __init__(
        self,
        prompt: str,
        *,
        output: str = "output",
        error: str = "error",
        sampling: SamplingParams | Mapping[str, Any] | None = None,
        model: str = "embedded",
        **options: Any,
    ) -> None:
        """prompt: with the names of columns in braces, as in `str.format`. output, error: names of the columns that are added: the
        text (JSON under a schema), and why there is none. options: the constraint, as `LLM.generate` takes it, and what `LLM`
        takes beside the model. Raises UsageError, ModelNotFound, ConfigError and ConstraintError.
        """
        self._made_of = {"output": output, "error": error, "sampling": sampling, "model": model, **options}
        self._prompt, self._columns = prompt, _columns_of(prompt)
        if output == error:
            raise UsageError(f'output= and error= are two columns, and both are called "{output}"')
        self._output, self._error = output, error
        self._sampling = SamplingParams(**sampling) if isinstance(sampling, Mapping) else sampling
        constraint: Any = {name: value for name, value in options.items() if name in KEYWORDS}
        self._llm = LLM(model, **{name: value for name, value in options.items() if name not in KEYWORDS})
        self._constraint = constraint
        self._llm.planner.plan_all("", self._sampling, constraint)  # what is wrong with the constraint is told here

    def __reduce__(self) -> tuple[Any, ...]:
        """It is sent to other processes as what it is made of, and loads its model there."""
        return partial(type(self), self._prompt, **self._made_of), ()

    def __call__(self, piece: Piece) -> dict[str, Any]:
        """The columns of a piece, and the two new ones. Raises UsageError for a piece without a column that the prompt names."""
        if not isinstance(piece, Mapping):
            raise UsageError(f'a piece is a dictionary of columns (batch_format="numpy"), not {type(piece).__name__}')
        for name in self._columns:
            if name not in piece:
                raise UsageError(f'the prompt names the column "{name}"; there are {", ".join(map(str, piece))}')
        for name in (self._output, self._error):
            if name in piece:
                raise UsageError(f'there is a column "{name}" already; give output= or error= another name')
        num_rows = len(next(iter(piece.values()))) if piece else 0
        prompts = [self._prompt.format_map({name: piece[name][row] for name in self._columns}) for row in range(num_rows)]
        texts, errors = zip(*self._answers(prompts), strict=True) if prompts else ((), ())
        return {**piece, self._output: np.array(texts, dtype=object), self._error: np.array(errors, dtype=object)}

    def _answers(self, prompts: list[str]) -> list[tuple[str | None, str | None]]:
        """(text, why there is none) for each prompt."""
        try:
            return [_answer(output) for output in self._llm.generate(prompts, sampling=self._sampling, **self._constraint)]
        except MaskwrightError as error:  # one of them is refused, and so are all
            if len(prompts) == 1:
                return [(None, str(error))]
            return [answer for prompt in prompts for answer in self._answers([prompt])]


def _columns_of(prompt: str) -> list[str]:
    try:
        names = [name for _, name, _, _ in Formatter().parse(prompt) if name is not None]
    except ValueError as error:
        raise UsageError(f"prompt= cannot be read: {error}; a brace that stands for itself is doubled") from None
    wrong = next((name for name in names if not name.isidentifier()), None)
    if wrong is not None:
        raise UsageError(f"prompt= has {{{wrong}}}: between braces stands the name of a column, and nothing else")
    return list(dict.fromkeys(names))


def _answer(output: GenerationOutput) -> tuple[str | None, str | None]:
    if output.is_complete:
        return output.text, None
    return None, output.error or f"the output ended early: {output.finish_reason}"
