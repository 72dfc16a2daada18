"""Log-probabilities in the two forms of OpenAI's interface."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..constraints import Vocabulary
from ..engine.requests.output import TokenRecord
from ..sampling import TokenLogprob
from .shared_parameters import SharedParameters

LEAST = -9999.0  # a log-probability that JSON can write, for a probability of 0


class LogprobWriter:
    """Writes the log-probabilities of one output. Text offsets count the characters since its beginning. `num_top`:
    alternatives of each token."""

    def __init__(self, vocabulary: Vocabulary, num_top: int, *, by_id: bool = False) -> None:
        """by_id: tokens are told by their ids, since several may have one text."""
        self._vocabulary, self._num_top, self._by_id = vocabulary, num_top, by_id
        self._offset = 0

    def chat(self, records: Sequence[TokenRecord]) -> dict[str, Any]:
        """The log-probabilities in the form of chat completions."""
        return {"content": [self._entry(record) for record in records], "refusal": None}

    def completion(self, records: Sequence[TokenRecord]) -> dict[str, Any]:
        """The log-probabilities in the form of completions."""
        texts = [self._text(record.token_id) for record in records]
        offsets = []
        for record in records:
            offsets.append(self._offset)
            self._offset += len(self._bytes(record.token_id).decode(errors="replace"))
        top = [{self._text(each.token_id): _finite(each.logprob) for each in self._top(record)} for record in records]
        chosen = [_finite(record.logprob) for record in records]
        return {"tokens": texts, "token_logprobs": chosen, "top_logprobs": top, "text_offset": offsets}

    def _entry(self, record: TokenRecord) -> dict[str, Any]:
        top = [self._token(each.token_id, each.logprob) for each in self._top(record)]
        return self._token(record.token_id, record.logprob) | {"top_logprobs": top}

    def _top(self, record: TokenRecord) -> Sequence[TokenLogprob]:
        return record.top[: self._num_top]  # there may be more, for someone else

    def _token(self, token_id: int, logprob: float | None) -> dict[str, Any]:
        return {"token": self._text(token_id), "logprob": _finite(logprob), "bytes": list(self._bytes(token_id))}

    def _bytes(self, token_id: int) -> bytes:
        return self._vocabulary.tokens[token_id] or b""

    def _text(self, token_id: int) -> str:
        return f"token_id:{token_id}" if self._by_id else self._bytes(token_id).decode(errors="replace")


def token_ids_of(body: SharedParameters, records: Sequence[TokenRecord]) -> dict[str, Any]:
    """The member "token_ids" of a choice, where it was asked for."""
    return {"token_ids": [record.token_id for record in records]} if body.return_token_ids else {}


def _finite(logprob: float | None) -> float:
    """A log-probability as JSON can hold it; a token that was not sampled was certain."""
    return 0.0 if logprob is None else max(logprob, LEAST)
