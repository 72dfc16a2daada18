"""Stop strings of replies that have parts or a constraint: they are looked for in the content alone, not in reasoning and calls.

OpenAI's reference says that the returned text will not contain the stop sequence; vLLM passes reasoning over, too. A call or a
thought between two texts parts them: no stop string reaches across.

With a constraint a stop string ends the content wherever it stands, as OpenAI's reference has it, be it inside a JSON string; with
`stop_inside: false` only where the content satisfies the constraint without it. Elsewhere it is text like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from ..sampling import StopMatcher, StopStrings
from .deltas import ContentDelta, ReplyDelta


class ContentStop:
    """Follows one reply, and ends it before the first stop string in its content, or behind it if `is_shown`."""

    def __init__(self, strings: Sequence[str], is_shown: bool = False, may_end: Callable[[int], bool] | None = None) -> None:
        """may_end: whether the content may end so many bytes before the end of the delta that is read; None: it may
        anywhere."""
        self._strings, self._is_shown, self._may_end = StopStrings(strings), is_shown, may_end
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
                yield from _content(self._feed(delta.text))
            else:
                yield from _content(self._matcher.flush())
                self._matcher = self._new_matcher()
                yield delta
        if is_last:
            yield from _content(self._matcher.flush())

    def _feed(self, text: str) -> str:
        """The part of a text that may be shown."""
        if self._may_end is None:
            return self._matcher.feed(text)
        shown, num_behind = "", len(text.encode())
        for character in text:
            shown += self._matcher.feed(character)
            num_behind -= len(character.encode())
            matched = self._matcher.matched
            if matched is None:
                continue
            if self._may_end(num_behind + len(matched.encode())):
                break
            shown += "" if self._is_shown else matched
            self._matcher = self._new_matcher()
        return shown

    def _new_matcher(self) -> StopMatcher:
        return StopMatcher(self._strings, include_stop_in_output=self._is_shown)


def _content(text: str) -> list[ReplyDelta]:
    return [ContentDelta(text)] if text else []
