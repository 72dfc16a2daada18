"""A failure ends the request whose fault it is, with an error that says why, and no other request."""

from __future__ import annotations

import logging
from collections.abc import Callable

from ...constraints.base.errors import ConstraintLimit
from ..errors import EngineFailure, InternalError, RankLost, SamplerFailure
from ..requests.output import TokenRecord
from ..requests.sequence import Sequence
from ..scheduling.roster import Roster
from ..scheduling.statistics import EngineStatistics
from ..steps.step_sampler import Drawn

logger = logging.getLogger(__name__)


class Faults:
    """Contains failures: what raises ends the request whose part of a step it was."""

    def __init__(self, roster: Roster, totals: EngineStatistics) -> None:
        self._roster, self._totals = roster, totals

    def contain(self, sequence: Sequence, action: Callable[..., None], *arguments: object) -> None:
        """Run one sequence's part of a step; whatever it raises ends that sequence alone."""
        if sequence.is_finished:
            return
        try:
            try:
                action(*arguments)
            except ConstraintLimit as error:
                sequence.finish("constraint_limit", str(error))
        except Exception as error:
            logger.error("request %d failed", sequence.request_id, exc_info=error)
            sequence.fail(error)
        if sequence.has_news:
            self._roster.tell(sequence)
        if sequence.is_finished:
            self._roster.free(sequence)

    def take(self, sequence: Sequence, drawn: Drawn) -> None:
        """Let a sequence go on with what was drawn for it, or end because of why nothing was."""
        if isinstance(drawn, TokenRecord):
            self._totals.num_failures_on_end = 0
            self.contain(sequence, sequence.accept, drawn)
        elif isinstance(drawn, SamplerFailure):
            self.fail(sequence, drawn)
        else:
            self.contain(sequence, _raise, drawn)

    def fail(self, sequence: Sequence, error: InternalError) -> None:
        """End a sequence with which the engine itself fails."""
        self._count()
        self.contain(_visible(sequence), _raise, error)

    def blame(self, sequence: Sequence, error: InternalError) -> None:
        """The model raises for this sequence: nothing that it was to compute is there, also for those that share it."""
        scheduler = self._roster.scheduler
        lost = scheduler.space.disown(sequence, sequence.num_computed)
        self.fail(sequence, error)
        scheduler.restart_users(lost)

    def begin_anew(self, error: Exception) -> None:
        """A step failed as a whole: all sequences go on from what they have produced, one after another.

        Where ranks are lost nothing goes on: all requests end.
        """
        if isinstance(error, RankLost):
            logger.error("%s", error)
            for sequence in list(self._roster.unfinished()):
                self._count()
                self.contain(sequence, sequence.fail, error)
            return
        logger.error("a step failed as a whole; all sequences begin anew", exc_info=error)
        guilty = self._roster.quarantine.begin(self._roster.computed())
        if guilty is not None:
            self._convict(guilty, error)

    def _convict(self, guilty: Sequence, error: Exception) -> None:
        """End the request with which the engine fails again and again; nobody but its search knows of it any more."""
        guilty.block_table.clear()
        request = _visible(guilty)
        request.fail(EngineFailure(f"the engine failed again and again with this request: {type(error).__name__}: {error}"))
        if guilty.search_group is not None:
            guilty.search_group.members.remove(guilty)
            guilty.search_group.close()
        self._count()
        self._roster.tell(request)

    def _count(self) -> None:
        self._totals.num_failures += 1
        self._totals.num_failures_on_end += 1


def _visible(sequence: Sequence) -> Sequence:
    """The request that a sequence is known by outside: of a member, that of its search."""
    return sequence if sequence.search_group is None else sequence.search_group.facade


def _raise(error: Exception) -> None:
    raise error
