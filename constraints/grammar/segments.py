"""Segments: what a parser calls the bytes of a part of a grammar."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of the output. Compared by value: parts with equal segments are told apart by what stands between them.

    role: "text", "reasoning", "tag" (inside a tag), "arguments" (JSON text of a call), "value" (of one parameter, in the
        notation of the style), "markup" (not shown to anyone; inside a call when it has an owner), and the markup that closes
        what was open: "close reasoning", "close tag", "close call", "close value".
    """

    role: str
    owner: str = ""  # the tool; the beginning of the tag
    name: str = ""  # of the parameter
    notation: str = ""  # of its value, see arguments.py
    held: int = 0  # of text: so many bytes, the last one included, may still turn out to be markup
    mark: bytes = b""  # what closes a value, tag or reasoning, to tell it from content that was held back

    def holding(self, held: int) -> Segment:
        """This segment, with some bytes that are not certain yet."""
        return replace(self, held=held)

    def marked(self, mark: bytes) -> Segment:
        """This segment, of a given mark."""
        return replace(self, mark=mark) if self.role in _CONTENT_BEFORE else self

    @property
    def content(self) -> Segment:
        """The segment of what stands before a closing mark."""
        return replace(self, role=_CONTENT_BEFORE[self.role], mark=b"")


_CONTENT_BEFORE = {"close value": "value", "close tag": "tag", "close reasoning": "reasoning"}
TEXT, MARKUP, REASONING = Segment("text"), Segment("markup"), Segment("reasoning")
END_OF_REASONING = Segment("close reasoning")
