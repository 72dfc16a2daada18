"""Log-probabilities in the two forms of OpenAI's interface."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..constraints import Vocabulary
from ..engine.requests.output import PromptScore, TokenRecord
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
        top = [{self._text(each.token_id): finite(each.logprob) for each in self._top(record)} for record in records]
        chosen = [finite(record.logprob) for record in records]
        return {"tokens": texts, "token_logprobs": chosen, "top_logprobs": top, "text_offset": offsets}

    def prompt(self, token_ids: Sequence[int], scores: Sequence[PromptScore]) -> dict[str, Any]:
        """The log-probabilities of a prompt in the form of completions; its first token has none."""
        texts = [self._text(token_id) for token_id in token_ids]
        offsets = []
        for token_id in token_ids:
            offsets.append(self._offset)
            self._offset += len(self._bytes(token_id).decode(errors="replace"))
        top = [{self._text(each.token_id): finite(each.logprob) for each in score.top[: self._num_top]} for score in scores]
        logprobs = [finite(score.logprob) for score in scores]
        return {"tokens": texts, "token_logprobs": [None, *logprobs], "top_logprobs": [None, *top], "text_offset": offsets}

    def llama(self, records: Sequence[TokenRecord]) -> list[dict[str, Any]]:
        """The log-probabilities in llama.cpp's form."""
        return [
            self._with_id(record.token_id, record.logprob)
            | {"top_logprobs": [self._with_id(each.token_id, each.logprob) for each in self._top(record)]}
            for record in records
        ]

    def _with_id(self, token_id: int, logprob: float | None) -> dict[str, Any]:
        return {"id": token_id, **self._token(token_id, logprob)}

    def ranked(self, scores: Sequence[PromptScore]) -> list[dict[str, Any] | None]:
        """The log-probabilities of a prompt as vLLM tells them: by id, those of each token and of the most probable ones."""
        told: list[dict[str, Any] | None] = [None]
        for score in scores:
            entries = {each.token_id: (each.logprob, rank) for rank, each in enumerate(score.top[: self._num_top], 1)}
            entries[score.token_id] = score.logprob, score.rank
            told.append({str(token_id): self._ranked(token_id, *entry) for token_id, entry in entries.items()})
        return told

    def _ranked(self, token_id: int, logprob: float, rank: int) -> dict[str, Any]:
        return {"logprob": finite(logprob), "rank": rank, "decoded_token": self._bytes(token_id).decode(errors="replace")}

    def _entry(self, record: TokenRecord) -> dict[str, Any]:
        top = [self._token(each.token_id, each.logprob) for each in self._top(record)]
        return self._token(record.token_id, record.logprob) | {"top_logprobs": top}

    def _top(self, record: TokenRecord) -> Sequence[TokenLogprob]:
        return record.top[: self._num_top]  # there may be more, for someone else

    def _token(self, token_id: int, logprob: float | None) -> dict[str, Any]:
        return {"token": self._text(token_id), "logprob": finite(logprob), "bytes": list(self._bytes(token_id))}

    def _bytes(self, token_id: int) -> bytes:
        return self._vocabulary.tokens[token_id] or b""

    def _text(self, token_id: int) -> str:
        return f"token_id:{token_id}" if self._by_id else self._bytes(token_id).decode(errors="replace")


def token_ids_of(body: SharedParameters, records: Sequence[TokenRecord]) -> dict[str, Any]:
    """The member "token_ids" of a choice, where it was asked for."""
    return {"token_ids": [record.token_id for record in records]} if body.return_token_ids else {}


def finite(logprob: float | None) -> float:
    """A log-probability as JSON can hold it; a token that was not sampled was certain."""
    return 0.0 if logprob is None else max(logprob, LEAST)
