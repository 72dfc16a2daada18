"""This package itself."""

from __future__ import annotations

import json
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...constraints import Compiler, Constraint, Gbnf, JsonSchema, Regex, StructuralTag, Vocabulary
from ...constraints.runtime.constraint import FINISHED, State


class ConformanceBackend:
    """JSON Schema with white space wherever JSON has it and strings with any escapes; grammars as GBNF."""

    name, version = "maskwright", version("maskwright")

    def __init__(self) -> None:
        self._compilers: dict[str, Compiler] = {}

    def compile(self, kind: str, source: Any, vocabulary: Vocabulary) -> ConstraintMatcher:
        compiler = self._compilers.setdefault(vocabulary.fingerprint, Compiler(vocabulary))
        if kind == "json_schema":
            return ConstraintMatcher(compiler.compile(JsonSchema(json.dumps(source), whitespace="flexible", escapes="any")))
        if kind == "regex":
            return ConstraintMatcher(compiler.compile(Regex(source)))
        if kind == "grammar":
            return ConstraintMatcher(compiler.compile(Gbnf(source["gbnf"])))
        if kind == "structural_tag":
            return ConstraintMatcher(compiler.compile(StructuralTag(source)))
        raise NotImplementedError(kind)


class ConstraintMatcher:
    """States are values, so taking tokens back is forgetting the last ones."""

    def __init__(self, constraint: Constraint) -> None:
        self._constraint, self._states = constraint, [constraint.start()]

    @property
    def _state(self) -> State:
        return self._states[-1]

    def mask(self) -> NDArray[np.uint32]:
        return self._constraint.mask(self._state)

    def mask_within(self, count: int) -> NDArray[np.uint32]:
        return self._constraint.mask(self._state, count)

    def accept(self, token_id: int) -> bool:
        after = self._constraint.advance(self._state, token_id)
        if after is not None:
            self._states.append(after)
        return after is not None

    def rollback(self, count: int) -> None:
        del self._states[len(self._states) - count :]

    def is_finished(self) -> bool:
        return self._state == FINISHED
