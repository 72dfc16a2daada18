"""Stop strings of replies that have parts: they are looked for in the content alone, not in reasoning and calls.

OpenAI's reference says that the returned text will not contain the stop sequence; vLLM passes reasoning over, too. A call or a
thought between two texts parts them: no stop string reaches across.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ..sampling import StopMatcher, StopStrings
from .deltas import ContentDelta, ReplyDelta


class ContentStop:
    """Follows one reply, and ends it before the first stop string in its content, or behind it if `is_shown`."""

    def __init__(self, strings: Sequence[str], is_shown: bool = False) -> None:
        self._strings, self._is_shown = StopStrings(strings), is_shown
        self._matcher = self._new_matcher()

    @property
    def matched(self) -> str | None:
        """The stop string that ended the reply."""
        return self._matcher.matched

    def read(self, deltas: Iterable[ReplyDelta], is_last: bool) -> Iterator[ReplyDelta]:
        """The part of the next deltas that is shown: text that may begin a stop string is held back, and nothing
        follows a stop."""
        for delta in deltas:
            if self.matched is not None:
                return
            if isinstance(delta, ContentDelta):
                yield from _content(self._matcher.feed(delta.text))
            else:
                yield from _content(self._matcher.flush())
                self._matcher = self._new_matcher()
                yield delta
        if is_last:
            yield from _content(self._matcher.flush())

    def _new_matcher(self) -> StopMatcher:
        return StopMatcher(self._strings, include_stop_in_output=self._is_shown)


def _content(text: str) -> list[ReplyDelta]:
    return [ContentDelta(text)] if text else []
