"""Where a text fails and why: the byte, its line and column, what was expected, the rules that were being read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..front_ends.regex.parser import line_and_column
from ..runtime.constraint import Constraint, State
from ..runtime.explanation import Explanation
from .expected import Expectation, Parse
from .language import Languages
from .net import Net
from .outline import Outline, quoted

_MOST_TEXTS = 12  # beyond ASCII, listed one by one as expected
_LONGEST_TEXT = 40


@dataclass(frozen=True)
class TextExplanation:
    """The verdict on one text.

    fails_at: the index of the first byte that cannot follow; None when the text, so far as it goes, is right. line, column: of
    that byte, or of the end, from 1, in characters. expected: what could stand there, texts in quotes and sets of characters in
    brackets. rules: the rules that were being read, the outermost first, with the lines of the grammar where they are and the
    character of the text where they began. wanted: by rule, what it would have read; empty for languages without rules.
    """

    text: bytes
    accepted: bool
    fails_at: int | None
    line: int
    column: int
    expected: tuple[str, ...]
    may_end: bool  # where it fails, or at its end
    state: State  # before the byte that fails
    rules: tuple[tuple[str, int, int], ...] = ()
    wanted: tuple[tuple[str, str, int], ...] = ()  # (what, rule, line of the grammar)

    def __str__(self) -> str:
        if self.accepted:
            return "accepted"
        expected = " or ".join([*self.expected, *(["the end"] if self.may_end else [])])
        if self.fails_at is None:
            return f"incomplete: the text ends at line {self.line}, column {self.column}; expected {expected}"
        where = f"byte {self.fails_at} (line {self.line}, column {self.column})"
        return f"fails at {where}: {self.text[self.fails_at : self.fails_at + 1]!r} cannot stand there; expected {expected}"


def explain_text(constraint: Constraint, data: bytes, outline: Outline | None = None) -> TextExplanation:
    """Follows a text as far as the constraint goes, and says what is expected where it stops."""
    read = constraint.survives(constraint.start(), data)[0]
    state = constraint.advance_bytes(constraint.start(), data[:read])
    assert state is not None
    fails_at = read if read < len(data) else None
    before = data[:read].decode("utf-8", "replace")
    line, column = line_and_column(before, len(before))
    may_end = constraint.is_accepting(state)
    explanation = TextExplanation(
        data, fails_at is None and may_end, fails_at, line, column, tuple(expected_texts(constraint, state)), may_end, state
    )
    whole = _whole_characters(data[:read])
    if outline is None or outline.unread or explanation.accepted:
        return explanation
    parse = Parse(Net(outline, Languages(), whole), whole)
    if parse.is_cut or parse.read < len(whole):
        return explanation
    rules = tuple((name, _line_of(outline, name), at) for name, at in parse.open_rules())
    wanted = tuple((one.what, one.rule, _line_of(outline, one.rule)) for one in _once(parse.expectations()))
    return TextExplanation(**{**vars(explanation), "rules": rules, "wanted": wanted})


def expected_texts(constraint: Constraint, state: State) -> Iterator[str]:
    """The texts that may come in a state: those that are forced once begun, then a set of characters."""
    live = [byte for byte in range(256) if constraint.advance_bytes(state, bytes([byte])) is not None]
    if live and all(0x80 <= byte < 0xC0 for byte in live):
        yield "the rest of a character"
        return
    leads = [byte for byte in live if byte >= 0x80]
    single: list[int] = []
    for byte in live if len(leads) <= _MOST_TEXTS else [byte for byte in live if byte < 0x80]:
        text = _forced_text(constraint, state, byte)
        if byte < 0x80 and (len(text) == 1 or len(live) > 3 * _MOST_TEXTS):
            single.append(byte)
        else:
            yield quoted(_cut(text)) if "\ufffd" not in text else f"a character that begins with byte 0x{byte:02x}"
    if len(single) == 1:
        yield quoted(chr(single[0]))
    elif single:
        yield f"[{''.join(_range(low, high) for low, high in _runs(single))}]"
    if len(leads) > _MOST_TEXTS:
        yield "a character beyond ASCII"


def _forced_text(constraint: Constraint, state: State, byte: int) -> str:
    """The only text that can come once a byte is read, that byte included."""
    after = constraint.advance_bytes(state, bytes([byte]))
    assert after is not None
    return _decoded(bytes([byte]) + (b"" if constraint.is_accepting(after) else constraint.forced(after)))


def _runs(values: Sequence[int]) -> list[tuple[int, int]]:
    runs: list[tuple[int, int]] = []
    for value in values:
        if runs and value == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], value)
        else:
            runs.append((value, value))
    return runs


def _range(low: int, high: int) -> str:
    first, last = _member(low), _member(high)
    return first if low == high else first + last if high == low + 1 else f"{first}-{last}"


def _member(code: int) -> str:
    char = chr(code)
    return "\\" + char if char in "]\\^-" else quoted(char)[1:-1].replace('\\"', '"')


def _once(found: Sequence[Expectation]) -> list[Expectation]:
    return list({(one.what, one.rule): one for one in found}.values())


def _line_of(outline: Outline, rule: str) -> int:
    return outline.line(outline.rules[rule].at)


def _whole_characters(data: bytes) -> str:
    """The text without a character that is cut off at its end."""
    return data.decode("utf-8", "ignore")


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_TEXT else text[:_LONGEST_TEXT] + "..."


@dataclass(frozen=True)
class TokenExplanation:
    """Why a token is allowed or masked behind a text; `token` is `Constraint.explain`'s verdict."""

    token: Explanation
    expected: tuple[str, ...]  # where the token dies
    nearest: tuple[bytes, ...]  # spellings of the legal tokens that share most with it

    def __str__(self) -> str:
        nearest = f"; nearest legal tokens: {', '.join(repr(_decoded(one)) for one in self.nearest)}" if self.nearest else ""
        if self.token.dies_at is None:
            return f"{self.token}{nearest if not self.token.allowed else ''}"
        spelling = self.token.token or b""
        name = f"token {self.token.token_id} {_decoded(spelling)!r}"
        died, before = spelling[self.token.dies_at : self.token.dies_at + 1], _decoded(spelling[: self.token.dies_at])
        behind = f" behind {before!r}" if before else ""
        expected = " or ".join(self.expected) or "the end"
        return f"{name} is masked: {died!r}{behind} cannot stand there; expected {expected}{nearest}"


def explain_token(constraint: Constraint, state: State, token_id: int) -> TokenExplanation:
    """Why a token is allowed or masked in a state. Raises ValueError for ids outside the vocabulary."""
    found = constraint.explain(state, token_id)
    spellings = constraint.vocabulary.spellings
    nearest = tuple(spellings[one] or b"" for one in found.nearest) if not found.allowed else ()
    expected: tuple[str, ...] = ()
    if found.dies_at is not None:
        at = constraint.advance_bytes(state, (found.token or b"")[: found.dies_at])
        expected = () if at is None else tuple(expected_texts(constraint, at))
    return TokenExplanation(found, expected, nearest)
