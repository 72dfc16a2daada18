"""The engine: requests in, events out, one batched step at a time."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from itertools import count

from ..constraints.errors import ConstraintLimit
from ..constraints.vocabulary import Vocabulary
from .admission import admit
from .blocks import BlockPool
from .config import Limits
from .errors import InternalError, RequestError
from .guide import fill_masks
from .output import Event, RequestOutput, TokenRecord
from .request import Request
from .runner import ModelRunner
from .scheduler import Chunk, Scheduler
from .sequence import Sequence
from .step_sampler import StepSampler
from .threads import use_threads

logger = logging.getLogger(__name__)


class Engine:
    """Runs requests in a continuous batch. Not thread-safe: one thread calls all methods.

    `vocabulary` gives the tokens their text and names the end-of-text ids (the union of tokenizer and generation config);
    ids of the model's head beyond it are never generated. Constraints must be compiled for the same tokens.

    With `skips_forced` a token that is the only legal one is taken without sampling, and joins the next forward pass
    with those after it. The output is the same either way. `threads` is how many CPU threads a step uses (None: as set).
    """

    def __init__(
        self,
        runner: ModelRunner,
        vocabulary: Vocabulary,
        limits: Limits,
        *,
        skips_forced: bool = True,
        threads: int | None = None,
    ) -> None:
        self.runner, self.vocabulary, self.limits = runner, vocabulary, limits
        self.skips_forced, self.threads = skips_forced, threads
        self.scheduler: Scheduler[Sequence] = Scheduler(limits, BlockPool(limits.num_blocks))
        self.sampler = StepSampler(vocabulary.size, runner.decoder.device)
        self._sequences: dict[int, Sequence] = {}  # not yet finished, or with an event still to be given
        self._news: dict[int, Sequence] = {}  # those with an event to be given after this step
        self._ids = count()

    @property
    def has_work(self) -> bool:
        """Another step will do something."""
        return bool(self._sequences)

    def add_request(self, request: Request) -> int:
        """Queue a request and return its id. Raises RequestError when it can never run as asked.

        When prompt and max_tokens together exceed the model's length, the output may get only as long as what is left.
        """
        sequence = admit(next(self._ids), request, self.vocabulary, self.limits)
        self._sequences[sequence.request_id] = sequence
        self.scheduler.add(sequence)
        self._look_ahead([sequence])
        return sequence.request_id

    def step(self) -> list[Event]:
        """Compute one batch: one new token for every sequence that is ready, and prompts as far as the budget goes."""
        with use_threads(self.threads):
            chunks = self.scheduler.schedule()
            ready, records = self._compute(chunks)
            self._accept(ready, records)
            self._look_ahead(ready)
            return self._take_events()

    def cancel(self, request_id: int) -> RequestOutput:
        """End a request now and free all it holds; what it has produced is returned and no event follows.

        Raises RequestError when no such request is running.
        """
        if request_id not in self._sequences:
            raise RequestError(f"no request {request_id} is waiting or running")
        sequence = self._sequences.pop(request_id)
        self._news.pop(request_id, None)
        if not sequence.is_finished:
            sequence.finish("cancelled")
            self.scheduler.remove(sequence)
        return sequence.output()

    # ---- the parts of a step

    def _compute(self, chunks: list[Chunk[Sequence]]) -> tuple[list[Sequence], list[TokenRecord | None]]:
        """Run the model over the chunks, and draw the next token of every sequence that it completes."""
        ready = [chunk.sequence for chunk in chunks if chunk.completes]
        try:
            logits = self.runner.forward(chunks) if chunks else None
            records = self.sampler.draw(ready, logits) if ready and logits is not None else []
        except Exception as error:  # out of memory, say: what was in the batch is lost, what waits is not
            for chunk in chunks:
                self._contain(chunk.sequence, _raise, error)
            return [], []
        for chunk in chunks:
            chunk.sequence.num_computed += chunk.num_tokens
        return ready, records

    def _accept(self, sequences: list[Sequence], records: list[TokenRecord | None]) -> None:
        for sequence, record in zip(sequences, records, strict=True):
            self._contain(sequence, _accept_drawn, sequence, record)

    def _look_ahead(self, sequences: Iterable[Sequence]) -> None:
        """Prepare the next masks, and take at once what leaves no choice: forced tokens, and the end."""
        pending = [sequence for sequence in sequences if _is_guided(sequence)]
        while pending:
            fill_masks([sequence.guide for sequence in pending if sequence.guide is not None])
            moved = []
            for sequence in pending:
                length = sequence.num_tokens
                self._contain(sequence, _take_forced, sequence, self.skips_forced)
                if sequence.num_tokens > length and not sequence.is_finished:
                    moved.append(sequence)
            pending = moved

    def _contain(self, sequence: Sequence, action: Callable[..., None], *arguments: object) -> None:
        """Run one sequence's part of a step; whatever it raises ends that sequence alone."""
        try:
            action(*arguments)
        except ConstraintLimit as error:
            sequence.finish("constraint_limit", str(error))
        except Exception as error:
            logger.exception("request %d failed", sequence.request_id)
            sequence.finish("error", f"{type(error).__name__}: {error}")
        if sequence.is_finished:
            self.scheduler.remove(sequence)
        if sequence.has_news:
            self._news[sequence.request_id] = sequence

    def _take_events(self) -> list[Event]:
        news, self._news = self._news, {}
        for request_id, sequence in news.items():
            if sequence.is_finished:
                del self._sequences[request_id]
        return [sequence.take_event() for sequence in news.values()]


def _is_guided(sequence: Sequence) -> bool:
    return sequence.guide is not None and not sequence.is_finished


def _raise(error: Exception) -> None:
    raise error


def _accept_drawn(sequence: Sequence, record: TokenRecord | None) -> None:
    if record is None:
        raise InternalError("the mask allowed no token; a constraint's masks are never empty")
    sequence.accept(record)


def _take_forced(sequence: Sequence, skips_forced: bool) -> None:
    """End a complete output; append the only legal token unless its log-probability is wanted."""
    guide = sequence.guide
    assert guide is not None
    if guide.failure is not None:
        raise guide.failure
    if guide.is_complete:
        sequence.finish("stop")
    elif skips_forced and sequence.request.sampling.logprobs is None and (token_id := guide.only_token) is not None:
        sequence.accept(TokenRecord(token_id, logprob=None, kept_mass=None, num_allowed=1))
