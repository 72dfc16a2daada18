"""Which tokens may follow a token in texts as the tokenizer itself writes them, for byte-pair encoding.

Most texts can be written in many ways as tokens, of which a model has seen one: the tokenizer's, the *canonical* one. A sequence is
canonical if and only if each two tokens that follow one another are, that is, if encoding their joined text gives these two
(Vieira et al., "Language Models over Canonical Byte-Pair Encodings", arXiv:2506.07956). So one bit row for each token before is all
that there is to know, and it is made when that token first comes.

Inside a word. Byte-pair encoding joins the pair that comes first in its list of merges, the leftmost first. A token is a tree of
merges. Two tokens a, b of one word stay two unless some merge crosses their boundary before either side has grown past it: one
of u and v, where u lies on the right edge of a's tree and v on the left edge of b's, that comes before the merge which takes u
into its parent, and not after the one which takes v into its parent.

Between words. The tokenizer cuts a text into words first, by rules that look at the characters around a cut. Where it cuts between
a and b, nothing joins them. Where it cuts inside of a or b because the other one is there, the pair is not canonical. These rules
are asked with a and the first characters of b, once for all tokens that begin with these.

What pairs cannot say: a rule that looks beyond two tokens (white space in front of a word in GPT-2's rule), text that spells an
added token, and texts that a normalizer changes. Tokens that byte-pair encoding does not make (added ones, bytes of fallback) may
stand anywhere.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias
from unicodedata import category

import numpy as np
from numpy.typing import NDArray

from ...constraints.vocabulary.vocabulary import Vocabulary
from ..errors import RequestError

MAX_BYTES = 1 << 26  # of rows that are kept
HEAD, HEAD_OF_CONTRACTIONS = 1, 3  # letters of a word in a token that decide where words end in front of it, or in it
_APOSTROPHES = ("'", "\u2019")
FIRST, LAST = -1, 1 << 62  # before and behind all ranks

Cut: TypeAlias = Callable[[str], Sequence[int]]  # the places in a text where its words begin
Time: TypeAlias = tuple[int, int]  # (record, rank of what follows at once on it)
NEVER: Time = (LAST, LAST)
Mask = NDArray[np.uint32]


class CanonicalPairs:
    """The rows of all tokens before. `allowed` makes them; `narrowed` puts one to use."""

    def __init__(self, vocabulary: Vocabulary, specification: Mapping[str, Any], cut: Cut) -> None:
        """specification: a tokenizer.json. Raises RequestError for tokenizers that do not merge pairs, or cut words in a way that
        is not known."""
        model = _checked(specification)
        self._vocabulary, self._cut = vocabulary, cut if specification.get("pre_tokenizer") else None
        self._takes_words = bool(model.get("ignore_merges"))
        texts: dict[str, int] = {text: i for text, i in model["vocab"].items() if i < vocabulary.size}
        self._trees = Trees(texts, [pair if isinstance(pair, list) else pair.split(" ") for pair in model["merges"]])
        self._texts = [None if token is None else _decoded(token) for token in vocabulary.text_tokens]
        added = {int(token["id"]) for token in specification.get("added_tokens", ())}
        outside = {i for text, i in texts.items() if text.startswith("<0x") and text.endswith(">")} | added
        exempt = [i for i in range(vocabulary.size) if i in outside or i not in self._trees]
        self._exempt = _flags(vocabulary.size, exempt)
        self._of_merges = _flags(vocabulary.size, self._trees.reached) & ~self._exempt
        self._is_word = np.array([self._is_one_word(text) for text in self._texts], bool)
        self._heads = {length: self._by_head(length) for length in (HEAD, HEAD_OF_CONTRACTIONS)}
        self._rows: dict[int, Mask] = {}

    def narrowed(self, mask: Mask, before: int) -> Mask:
        """What of a mask may follow the token `before`; all of it where nothing may, so that no text comes to a dead end."""
        left = mask & self.allowed(before)
        return left if left.any() else mask

    def allowed(self, before: int) -> Mask:
        """The tokens that may follow. uint32 [ceil(V / 32)], read-only."""
        row = self._rows.get(before)
        if row is None:
            if len(self._rows) * self._vocabulary.size > MAX_BYTES * 8:
                self._rows.clear()
            row = self._rows[before] = self._row(before)
        return row

    def is_pair(self, before: int, token_id: int) -> bool:
        """Whether a token may follow, as `allowed` has it, without the row of all tokens where that is not there yet."""
        row = self._rows.get(before)
        if row is not None:
            return bool(row[token_id >> 5] >> np.uint32(token_id & 31) & 1)
        may_begin = self._of_merges[token_id] or (self._takes_words and self._is_word[token_id])
        if self._exempt[token_id] or self._has_no_merges(before):
            return bool(self._exempt[token_id] or may_begin)
        if not self._is_word[token_id]:
            return False
        text = self._texts[before]
        begins = self._begins(text, self._texts[token_id])
        if text is not None and begins - {len(text)}:
            return False
        if begins:
            return bool(may_begin)
        return bool(self._of_merges[before] and self._of_merges[token_id]) and not self._is_joined(before, token_id)

    def _is_joined(self, before: int, token_id: int) -> bool:
        return self._trees.is_joined(before, token_id) or (self._takes_words and token_id in self._trees.completions(before))

    def _has_no_merges(self, before: int) -> bool:
        """A token beside byte-pair encoding, or none."""
        return not 0 <= before < self._vocabulary.size or bool(self._exempt[before]) or not self._vocabulary.text_tokens[before]

    def _begins(self, text: str | None, other: str | None) -> set[int]:
        """Where words begin, other than the first, in a text and the other one behind it."""
        if text is None or not other or self._cut is None:
            return set()
        return set(self._cut(text + _head(other, self._length_behind(text)))) - {0}

    @staticmethod
    def _length_behind(text: str) -> int:
        return HEAD_OF_CONTRACTIONS if text.endswith(_APOSTROPHES) else HEAD

    def _row(self, before: int) -> Mask:
        if self._has_no_merges(before):
            return _packed(self._exempt | self._of_merges | self._whole_words)
        cut, spoilt = self._words(self._texts[before])
        joined = self._joined(before)
        inside = self._of_merges & ~joined & ~cut & bool(self._of_merges[before])
        return _packed(self._exempt | (~spoilt & (inside | (cut & (self._of_merges | self._whole_words)))))

    @property
    def _whole_words(self) -> NDArray[np.bool_]:
        """Tokens that merging does not make, but that the tokenizer takes for a word that they are."""
        return self._is_word & ~self._exempt & self._takes_words

    def _joined(self, before: int) -> NDArray[np.bool_]:
        """bool [V]: a merge crosses the boundary. With whole words, also: both together are a token."""
        joined = self._trees.joined_behind(before, self._vocabulary.size)
        if self._takes_words:
            joined[np.array(list(self._trees.completions(before)), np.int64)] = True
        return joined

    def _words(self, text: str | None) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """(tokens in front of which a word ends, tokens with which a word ends elsewhere), behind a text; bool [V] each."""
        cut, spoilt = np.zeros((2, self._vocabulary.size), bool)
        spoilt[: len(self._is_word)] = ~self._is_word & ~self._exempt[: len(self._is_word)]
        if text is None or self._cut is None:
            return cut, spoilt
        for head, token_ids in self._heads[self._length_behind(text)].items():
            begins = set(self._cut(text + head)) - {0}
            cut[token_ids] = len(text) in begins
            if begins - {len(text)}:
                spoilt[token_ids] = True
        return cut, spoilt

    def _is_one_word(self, text: str | None) -> bool:
        return text is None or self._cut is None or not set(self._cut(text)) - {0}

    def _by_head(self, length: int) -> dict[str, NDArray[np.int64]]:
        found = defaultdict[str, list[int]](list)
        for token_id, text in enumerate(self._texts):
            if text and not self._exempt[token_id]:
                found[_head(text, length)].append(token_id)
        return {head: np.array(token_ids) for head, token_ids in found.items()}


class Trees:
    """The tree of merges of each token that merging makes. Symbols are texts in the tokenizer's own alphabet.

    Two sides of a boundary are merged in turns, always by the pair of the least rank, the left one where two are equal. What one
    side does, it does as if it were alone; a merge waits for the other side as the greatest rank in its tree would, its `record`,
    since what a merge makes possible at a lesser rank follows at once. So a merge across the boundary has a time on either side,
    and is made if it comes before the merges that take its parts into their parents.
    """

    def __init__(self, vocabulary: Mapping[str, int], merges: Iterable[Sequence[str]]) -> None:
        self._ids = vocabulary
        self._spelt = {token_id: text for text, token_id in vocabulary.items()}
        self._ranks: dict[tuple[int, int], int] = {}
        made = defaultdict[int, list[tuple[int, int]]](list)
        for rank, (left, right) in enumerate(merges):
            if left in vocabulary and right in vocabulary and left + right in vocabulary:
                pair = vocabulary[left], vocabulary[right]
                if self._ranks.setdefault(pair, rank) == rank:
                    made[vocabulary[left + right]].append(pair)
        self._parts: dict[int, tuple[int, int]] = {}  # token -> (left part, right part) of its last merge
        self._records: dict[int, int] = {token_id: FIRST for text, token_id in vocabulary.items() if len(text) == 1}
        for token_id in sorted(made, key=lambda token_id: len(self._spelt[token_id])):
            self._grow(token_id, made[token_id])
        self.reached = list(self._records)
        self._index()

    def __contains__(self, token_id: object) -> bool:
        """Whether it is a token of the vocabulary of merges, though perhaps one that merging never makes."""
        return token_id in self._spelt

    def joined_behind(self, before: int, size: int) -> NDArray[np.bool_]:
        """bool [size]: the tokens b for which a merge crosses the boundary behind `before`."""
        joined = np.zeros(size, bool)
        for part, limit in self._right_edge(before):
            for beside, on_left, on_right in self._behind.get(part, ()):
                if on_left < limit:
                    tokens, limits = self._leading[beside]
                    joined[tokens[: bisect_right(limits, _backwards(on_right))]] = True
        return joined

    def is_joined(self, before: int, after: int) -> bool:
        """Of one of these tokens."""
        return (before, after) in self._ranks or self._crosses(before, after)

    def completions(self, before: int) -> Iterable[int]:
        """Tokens that merging does not make, whose text is that of `before` and of the token that is given."""
        return self._rests.get(before, ())

    def _grow(self, token_id: int, pairs: Iterable[tuple[int, int]]) -> None:
        """Find the merge by which a token comes about, if it does: of its own text nothing else is made then."""
        for left, right in pairs:
            if left in self._records and right in self._records and not self._crosses(left, right):
                self._parts[token_id] = left, right
                self._records[token_id] = max(self._records[left], self._records[right], self._ranks[left, right])
                return

    def _crosses(self, left: int, right: int) -> bool:
        """Whether a merge crosses the boundary of two tokens, other than that of both as they are."""
        for part, limit in self._right_edge(left):
            for beside, other in self._left_edge(right):
                if (part, beside) in self._ranks and (part, beside) != (left, right):
                    on_left, on_right = self._times(part, beside)
                    if on_left < limit and on_right <= other:
                        return True
        return False

    def _times(self, left: int, right: int) -> tuple[Time, Time]:
        """When the merge of two parts is made across a boundary, as its left side sees it and as its right side does."""
        before, after, rank = self._records[left], self._records[right], self._ranks[left, right]
        if rank > max(before, after):
            return (rank, LAST), (rank, FIRST)
        if after < before:  # it follows at once on what makes the left part
            return (before, rank), (before, FIRST)
        return (after, LAST), (after, rank)

    def _index(self) -> None:
        """Tables for `joined_behind` and `completions`."""
        self._behind = defaultdict[int, list[tuple[int, Time, Time]]](list)  # left part -> (right part, its times)
        for left, right in self._ranks:
            if left in self._records and right in self._records:
                self._behind[left].append((right, *self._times(left, right)))
        leading = defaultdict[int, list[tuple[Time, int]]](list)
        for token_id in self.reached:
            for part, limit in self._left_edge(token_id):
                leading[part].append((_backwards(limit), token_id))
        self._leading: dict[int, tuple[NDArray[np.int64], list[Time]]] = {}
        for part, found in leading.items():  # the tokens on whose left edge a part is, those first that take it in last
            found.sort()
            self._leading[part] = np.array([token_id for _, token_id in found]), [limit for limit, _ in found]
        self._rests = defaultdict[int, list[int]](list)
        for text in (self._spelt[token_id] for token_id in self._spelt.keys() - self._records.keys()):
            for at in range(1, len(text)):
                if text[:at] in self._ids and text[at:] in self._ids:
                    self._rests[self._ids[text[:at]]].append(self._ids[text[at:]])

    def _right_edge(self, token_id: int) -> Iterator[tuple[int, Time]]:
        """The parts on the right edge of a tree, each with the time of the merge that takes it into its parent."""
        yield token_id, NEVER
        while token_id in self._parts:
            left, right = self._parts[token_id]
            follows = self._records[token_id] == self._records[right]
            yield right, (self._records[token_id], self._ranks[left, right] if follows else LAST)
            token_id = right

    def _left_edge(self, token_id: int) -> Iterator[tuple[int, Time]]:
        """The same of the left edge, where a merge does not follow at once whose other part comes later by its place alone."""
        yield token_id, NEVER
        while token_id in self._parts:
            left, right = self._parts[token_id]
            follows = self._records[token_id] == self._records[left] > self._records[right]
            yield left, (self._records[token_id], self._ranks[left, right] if follows else LAST)
            token_id = left


def _backwards(time: Time) -> Time:
    """In the opposite order."""
    return -time[0], -time[1]


def _checked(specification: Mapping[str, Any]) -> Mapping[str, Any]:
    """The model of a tokenizer.json, if its canonical sequences are known by pairs."""
    model: Mapping[str, Any] = specification["model"]
    kind = model.get("type") or ("BPE" if "merges" in model else "?")
    if kind != "BPE" or model.get("continuing_subword_prefix") or model.get("end_of_word_suffix"):
        raise _refused(f"this tokenizer is {kind}, or marks parts of words")
    if model.get("dropout"):
        raise _refused("this tokenizer leaves merges out at random")
    steps = specification.get("pre_tokenizer")
    listed = steps.get("pretokenizers", [steps]) if steps else []
    kinds = [each["type"] for each in listed]
    if kinds and kinds[-1] != "ByteLevel" and any(each["type"] != "Metaspace" or each.get("split", True) for each in listed):
        raise _refused(f"this tokenizer cuts words by {', '.join(kinds)}")
    return model


def _refused(reason: str) -> RequestError:
    return RequestError(
        f"canonical spellings are known for byte-pair encoding over bytes or pieces, and {reason}; leave canonical out"
    ).about("canonical")


def _decoded(token: bytes) -> str | None:
    """The text of a token; None where it ends or begins inside a character."""
    try:
        return token.decode()
    except UnicodeDecodeError:
        return None


def _head(text: str, length: int) -> str:
    """What stands for a token in the eyes of rules for words: so many of its letters where these are of one kind, the first a
    capital perhaps, with the one character that may stand before them; else all of it."""
    before = int(not text[0].isalpha())
    word = text[before:]
    kinds = [(category(char), char.isascii()) for char in word]
    if not word.isalpha() or text.startswith(_APOSTROPHES) or len(set(kinds[1:])) > 1:
        return text
    return text[: before + max(length, 1 + (kinds[-1] != kinds[0]))]


def _flags(size: int, token_ids: Iterable[int]) -> NDArray[np.bool_]:
    flags = np.zeros(size, bool)
    flags[list(token_ids)] = True
    return flags


def _packed(flags: NDArray[np.bool_]) -> Mask:
    row = np.packbits(np.pad(flags, (0, -len(flags) % 32)), bitorder="little").view(np.uint32)
    row.setflags(write=False)
    return row
