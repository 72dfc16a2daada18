"""The input of a custom tool, read out of the arguments in which a model writes it: `{"input": "..."}`."""

from __future__ import annotations

import json
import re

_BEGIN = re.compile(r'\s*\{\s*"input"\s*:\s*"')
_PAIR = r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_WHOLE = re.compile(rf'(?:[^"\\]|{_PAIR}|\\u(?![dD][89abAB])[0-9a-fA-F]{{4}}|\\[^u])*')  # characters that are complete


class InputReader:
    """Follows the JSON text of one call's arguments."""

    def __init__(self) -> None:
        self._unread, self._is_inside = "", False

    def feed(self, text: str) -> str:
        """The part of the input that the next piece of the arguments tells."""
        self._unread += text
        if not self._is_inside:
            begin = _BEGIN.match(self._unread)
            if begin is None:
                return ""
            self._unread, self._is_inside = self._unread[begin.end() :], True
        whole = _WHOLE.match(self._unread)
        assert whole is not None, "it matches nothing, too"
        self._unread = self._unread[whole.end() :]
        return str(json.loads(f'"{whole[0]}"', strict=False))
