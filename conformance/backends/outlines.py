"""outlines-core: a regular expression, or one made of a schema, and its index over the vocabulary."""

from __future__ import annotations

import json
from importlib.metadata import version
from typing import Any

import numpy as np
import outlines_core
from numpy.typing import NDArray

from ...constraints import Vocabulary

_MOST_BACK = 4096  # tokens that may be taken back


class ConformanceBackend:
    name, version = "outlines", version("outlines-core")

    def __init__(self) -> None:
        self._indices: dict[tuple[str, str], Any] = {}

    def compile(self, kind: str, source: Any, vocabulary: Vocabulary) -> OutlinesMatcher:
        if kind == "json_schema":
            pattern = outlines_core.json_schema.build_regex_from_schema(json.dumps(source))
        elif kind == "regex":
            pattern = source
        else:
            raise NotImplementedError(f"{kind} is not offered")
        key = pattern, vocabulary.fingerprint
        if key not in self._indices:
            by_text: dict[bytes, list[int]] = {}
            for token_id, token in enumerate(vocabulary.text_tokens):
                if token:
                    by_text.setdefault(token, []).append(token_id)
            self._indices[key] = outlines_core.Index(pattern, outlines_core.Vocabulary(vocabulary.eos_token_ids[0], by_text))
        return OutlinesMatcher(outlines_core.Guide(self._indices[key], _MOST_BACK), vocabulary)


class OutlinesMatcher:
    """A guide's masks have EOS where it is finished, but it does not read it; here it is read."""

    def __init__(self, guide: Any, vocabulary: Vocabulary) -> None:
        self._guide, self._eos = guide, vocabulary.eos_token_ids[0]
        self._bitmask = np.zeros(-(-vocabulary.size // 32), np.int32)
        self._has_ended = False

    def mask(self) -> NDArray[np.int32]:
        if self._has_ended:
            return np.zeros_like(self._bitmask)
        self._bitmask[:] = 0
        self._guide.write_mask_into(self._bitmask.ctypes.data, self._bitmask.size, self._bitmask.itemsize)
        return self._bitmask.copy()

    def accept(self, token_id: int) -> bool:
        if self._has_ended:
            return False
        if token_id == self._eos:
            self._has_ended = bool(self._guide.is_finished())
            return self._has_ended
        try:
            self._guide.advance(token_id, return_tokens=False)
        except ValueError:  # no transition
            return False
        return True

    def rollback(self, count: int) -> None:
        count -= self._has_ended
        self._has_ended = False
        if count:
            self._guide.rollback_state(count)

    def is_finished(self) -> bool:
        return self._has_ended
