"""Isolation of the guilty: a group with which a computation fails is tried again by halves, until it is known who is to blame."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import TypeVar

from ..errors import RankLost

T = TypeVar("T")
R = TypeVar("R")

logger = logging.getLogger(__name__)


def by_halves(items: list[T], run: Callable[[list[T]], R]) -> Iterator[tuple[list[T], R | Exception]]:
    """What `run` gives for all items at once; where it raises, for each half of them, and so on.

    Yields groups in the order of the items, each with its result. An item with which `run` fails twice alone comes with the
    error. So `run` may be called again with items it has failed with; it is called for a group when the results of those
    before have been taken. With one guilty among n items: 2 log2 n + 2 calls.
    """
    waiting = [(items, False)]
    while waiting:
        group, was_alone = waiting.pop()
        try:
            result: R | Exception = run(group)
        except RankLost:  # no other group would fare better
            raise
        except Exception as error:
            if len(group) == len(items) and not was_alone:
                logger.warning("failed for %d together, now tried apart", len(group), exc_info=True)
            if not was_alone:
                waiting += _apart(group)
                continue
            result = error
        yield group, result


def _apart(group: list[T]) -> list[tuple[list[T], bool]]:
    """The halves of a group, the first one last; of a single item itself, to be tried once more."""
    half = len(group) // 2
    return [(group[half:], False), (group[:half], False)] if half else [(group, True)]
