"""What is asked of a matcher in a case. A check returns where all is right, and raises `Wrong` with the first thing that is not."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..constraints import Vocabulary
from .cases import Case, token_ways
from .protocol import Matcher
from .vocabularies import vocabulary

Make = Callable[[], Matcher]


class Wrong(Exception):
    """What a matcher said, and what is right."""


class NotOffered(Exception):
    """The backend lacks what the case asks for."""


class Reader:
    """A matcher with what it has read. Every step asks for the mask first, and holds it against what `accept` says."""

    def __init__(self, make: Make, tokens: Vocabulary) -> None:
        self.matcher, self.tokens, self.read = make(), tokens, list[int]()

    def allowed(self) -> NDArray[np.bool_]:
        """bool [V]"""
        return unpacked(self.matcher.mask(), self.tokens)

    def can_end(self) -> bool:
        """Whether all tokens that end a text are allowed."""
        return bool(self.allowed()[list(self.tokens.eos_token_ids)].all())

    def accept(self, token_id: int) -> bool:
        """Whether the token is allowed, by its mask; `accept` must say the same."""
        is_allowed = bool(self.allowed()[token_id])
        is_accepted = bool(self.matcher.accept(token_id))
        if is_allowed != is_accepted:
            masks, accepts = ("allows", "refuses") if is_allowed else ("forbids", "takes")
            raise Wrong(f"{self}: the mask {masks} {self.name(token_id)}, and accept {accepts} it")
        if is_accepted:
            self.read.append(token_id)
        return is_accepted

    def accept_all(self, token_ids: Iterable[int]) -> bool:
        return all(self.accept(token_id) for token_id in token_ids)

    def name(self, token_id: int) -> str:
        return repr((self.tokens.tokens[token_id] or b"(no text)").decode("utf-8", "backslashreplace"))

    def text(self) -> bytes:
        return b"".join(self.tokens.text_tokens[token_id] or b"" for token_id in self.read)

    def __str__(self) -> str:
        return "behind " + ("nothing" if not self.read else "|".join(self.name(token_id)[1:-1] for token_id in self.read[-12:]))


def unpacked(mask: NDArray[Any], tokens: Vocabulary) -> NDArray[np.bool_]:
    """bool [V] of a packed mask."""
    words = np.ascontiguousarray(mask)
    if words.dtype.itemsize != 4 or words.size < -(-tokens.size // 32):
        raise Wrong(f"a mask is {words.size} words of {words.dtype}, not {-(-tokens.size // 32)} of 32 bits")
    return np.unpackbits(words.view(np.uint8).ravel(), bitorder="little")[: tokens.size].astype(bool)


def verdicts(case: Case, make: Make) -> None:
    """Each text, however it is cut into tokens, is accepted, or rejected. Fields: accept, reject."""
    tokens = vocabulary(case.vocabulary)
    for text in case.accept:
        for way in token_ways(text, tokens, case.id):
            reader = Reader(make, tokens)
            for token_id in way:
                if not reader.accept(token_id):
                    raise Wrong(f"rejects {text!r}: {reader} not {reader.name(token_id)}")
            if way[-1:] != list(tokens.eos_token_ids) and not reader.can_end():
                raise Wrong(f"rejects {text!r}: it may not end {reader}")
    for text in case.reject:
        for way in token_ways(text, tokens, case.id):
            reader = Reader(make, tokens)
            if reader.accept_all(way) and reader.can_end():
                raise Wrong(f"accepts {text!r}: {reader}")


def language(case: Case, make: Make) -> None:
    """At every place of every text of a finite language the mask is exactly what goes on to one of them. Field: strings."""
    tokens, eos = vocabulary(case.vocabulary), list(vocabulary(case.vocabulary).eos_token_ids)
    strings = [text.encode() for text in case.strings]
    seen: set[bytes] = set()
    for text in case.strings:
        for way in token_ways(text, tokens, case.id):
            reader = Reader(make, tokens)
            for token_id in [*way, None]:
                before = reader.text()
                if before not in seen:
                    seen.add(before)
                    right = np.array([t is not None and any(s.startswith(before + t) for s in strings) for t in tokens.text_tokens])
                    right[eos] = before in strings
                    _compare(reader, right)
                if token_id is not None and not reader.accept(token_id):
                    raise Wrong(f"rejects {text!r}: {reader}")


def _compare(reader: Reader, right: NDArray[np.bool_]) -> None:
    allowed = reader.allowed()
    for names, ids in (("forbids", right & ~allowed), ("allows", allowed & ~right)):
        if ids.any():
            first = int(np.flatnonzero(ids)[0])
            raise Wrong(f"{reader}: {names} {reader.name(first)}" + (f" and {int(ids.sum()) - 1} more" if ids.sum() > 1 else ""))


def walk(case: Case, make: Make) -> None:
    """Random walks along the masks never come to an empty one, and what they write is right. Fields: walks, most, judge."""
    for number in range(case.walks):
        rng = random.Random(f"{case.id} {number}")
        reader = Reader(make, vocabulary(case.vocabulary))
        if _walk(reader, case.most, rng):
            _judge(case, reader)


def _walk(reader: Reader, most: int, rng: random.Random, within: int | None = None) -> bool:
    """Whether it came to an end. Long tokens and short ones are as likely, and an end a little less than half."""
    eos = list(reader.tokens.eos_token_ids)
    for taken in range(most):
        allowed = reader.allowed() if within is None else _within(reader, within - taken)
        ids = np.flatnonzero(allowed).tolist()
        if not ids:
            raise Wrong(f"a dead end {reader}: no token is allowed")
        if allowed[eos[0]] and (len(ids) == len(eos) or rng.random() < 0.4):
            return reader.accept(eos[0])
        going_on = [token_id for token_id in ids if token_id not in eos]
        if not reader.accept(rng.choice(going_on)):
            raise AssertionError("Reader.accept compares it with the mask")
    return False


def _within(reader: Reader, count: int) -> NDArray[np.bool_]:
    return unpacked(reader.matcher.mask_within(count), reader.tokens)  # type: ignore[attr-defined]  # checked before


def _judge(case: Case, reader: Reader) -> None:
    try:
        text = reader.text().decode()
    except UnicodeDecodeError:
        raise Wrong(f"writes {reader.text()!r}, which is not UTF-8") from None
    if "pattern" in case.judge and not re.fullmatch(case.judge["pattern"], text):
        raise Wrong(f"writes {text!r}")
    if "schema" in case.judge:
        from jsonschema import Draft202012Validator

        try:
            value = json.loads(text)
        except ValueError:
            raise Wrong(f"writes {text!r}, which is not JSON") from None
        error = next(Draft202012Validator(case.judge["schema"]).iter_errors(value), None)
        if error is not None:
            raise Wrong(f"writes {text!r}: {error.message}")


def rollback(case: Case, make: Make) -> None:
    """Tokens are taken back, one, some, and all of them, behind the end too; then masks are what they were. Field: accept."""
    tokens = vocabulary(case.vocabulary)
    for text in case.accept:
        for way in token_ways(text, tokens, case.id):
            rng = random.Random(f"{case.id} {way}")
            way = [*way, tokens.eos_token_ids[0]]
            reader, masks = Reader(make, tokens), list[NDArray[np.bool_]]()
            for token_id in way:
                masks.append(reader.allowed())
                if not reader.accept(token_id):
                    raise Wrong(f"rejects {text!r}: {reader}")
            for _ in range(8):
                count = rng.choice([1, len(reader.read), rng.randint(1, len(reader.read))])
                try:
                    reader.matcher.rollback(count)
                except NotImplementedError as error:
                    raise NotOffered(f"rollback: {error}") from None
                del reader.read[len(reader.read) - count :]
                at = len(reader.read)
                if not np.array_equal(reader.allowed(), masks[at]):
                    raise Wrong(f"{count} tokens taken back, {reader}: another mask than before")
                if reader.matcher.is_finished():
                    raise Wrong(f"{count} tokens taken back, {reader}: still finished")
                if not reader.accept_all(way[at:]):
                    raise Wrong(f"{count} tokens taken back: rejects {text!r} the second time, {reader}")


def endings(case: Case, make: Make) -> None:
    """EOS is allowed exactly where a text is complete, and nothing is behind it. Field: ends."""
    tokens = vocabulary(case.vocabulary)
    eos = tokens.eos_token_ids[0]
    for text, complete in case.ends.items():
        for way in token_ways(text, tokens, case.id):
            reader = Reader(make, tokens)
            for token_id in [*way, None]:
                if reader.can_end() != (_num_characters(reader.text()) in complete):
                    raise Wrong(f"{'may' if reader.can_end() else 'may not'} end {reader}")
                if reader.matcher.is_finished():
                    raise Wrong(f"finished {reader}, before EOS")
                if token_id is not None and not reader.accept(token_id):
                    raise Wrong(f"rejects {text!r}: {reader}")
            if reader.can_end():
                reader.accept(eos)
                _check_finished(reader)


def _num_characters(text: bytes) -> int:
    """-1 in the middle of one."""
    try:
        return len(text.decode())
    except UnicodeDecodeError:
        return -1


def _check_finished(reader: Reader) -> None:
    if not reader.matcher.is_finished():
        raise Wrong("not finished behind EOS")
    ids = [token_id for token_id in np.flatnonzero(reader.allowed()).tolist() if token_id not in reader.tokens.eos_token_ids]
    if ids:
        raise Wrong(f"behind EOS: allows {reader.name(ids[0])}")


def budgets(case: Case, make: Make) -> None:
    """With so many tokens left every random walk is complete in time. Fields: budgets, walks, judge."""
    if not hasattr(make(), "mask_within"):
        raise NotOffered("mask_within: the backend knows no budgets")
    for count in case.budgets:
        for number in range(case.walks):
            reader = Reader(make, vocabulary(case.vocabulary))
            is_complete = _walk(reader, count, random.Random(f"{case.id} {count} {number}"), count)
            if not is_complete and not reader.can_end():
                raise Wrong(f"not complete after {count} tokens, {reader}")
            _judge(case, reader)


CHECKS: dict[str, Callable[[Case, Make], None]] = {
    "verdicts": verdicts,
    "language": language,
    "walk": walk,
    "rollback": rollback,
    "endings": endings,
    "budgets": budgets,
}
