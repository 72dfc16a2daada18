"""What all constraints over one vocabulary share: its trie, its single bytes, its body classes."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .bodies import BodyClass, SubTrie
from .trie import TokenTrie
from .utf8 import Ranges, normalize
from .vocabulary import TOKEN_OPEN, Vocabulary

JSON_CHARACTERS: Ranges = normalize([(0x20, 0x21), (0x23, 0x5B), (0x5D, 0x10FFFF)])  # need no escape in a JSON string
JSON_SPACE: Ranges = normalize([(0x09, 0x0A), (0x0D, 0x0D), (0x20, 0x20)])  # may stand between the tokens of JSON
_EAGER = (JSON_CHARACTERS, JSON_SPACE)  # nearly every schema needs these, so they are not left to the first mask
_NODES_BEFORE_TABLES = 1_000_000  # trie nodes walked inside a class before its tables are worth their time and megabyte
_MAX_BODIES = 64


class Lexicon:
    """A vocabulary prepared for mask walks. Thread-safe."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.trie = TokenTrie.build(vocabulary)
        self.words = (vocabulary.size + 31) // 32
        self._lock = threading.Lock()
        self._walked: dict[Ranges, int] = {}
        self._bodies: dict[Ranges, BodyClass] = {}
        self._quoted: dict[int, SubTrie] = {}
        for ranges in _EAGER:
            self.body(ranges)

    def body(self, ranges: Ranges) -> BodyClass | None:
        """The tables of a character class; None while walks inside it have not been long enough to pay for them."""
        with self._lock:
            body = self._bodies.get(ranges)
            is_due = ranges in _EAGER or self._walked.get(ranges, 0) > _NODES_BEFORE_TABLES
            if body is None and is_due and len(self._bodies) < _MAX_BODIES:
                body = self._bodies[ranges] = BodyClass.build(ranges, self.trie, self.words)
            return body

    def stride(self, ranges: Ranges) -> int:
        """One token can spell any number of characters of a class up to this; 1 where it has not been found out."""
        body = self._bodies.get(ranges)
        return 1 if body is None else body.stride

    def note_walk(self, ranges: Ranges, visited: int) -> None:
        """Count the trie nodes that a walk inside a class without tables has visited."""
        with self._lock:
            self._walked[ranges] = self._walked.get(ranges, 0) + visited

    def quoted(self, at_least: int) -> SubTrie:
        """The tokens with that many quotation marks: those that can open a key, end another one before, and so on."""
        if at_least not in self._quoted:
            self._quoted[at_least] = SubTrie.with_bytes(b'"', at_least, self.trie)
        return self._quoted[at_least]

    @cached_property
    def separated(self) -> SubTrie:
        """The tokens with a quotation mark or a comma: those in which a key or another item can begin."""
        return SubTrie.with_bytes(b'",', 1, self.trie)

    @cached_property
    def single_bytes(self) -> NDArray[np.bool_]:
        """[256] whether some token is exactly that byte."""
        present = np.zeros(256, np.bool_)
        trie = self.trie
        is_token = np.diff(trie.first) > 0
        present[trie.byte[(trie.depth == 1) & is_token]] = True
        return present

    @cached_property
    def spells_every_byte(self) -> bool:
        """Whether every byte of text is a token, so that whatever has a completion in bytes has one in tokens."""
        return bool(self.single_bytes[: TOKEN_OPEN[0]].all())

    @cached_property
    def eos_row(self) -> NDArray[np.uint32]:
        """The mask of the EOS ids. uint32 [words]"""
        row = self.row_of(self.vocabulary.eos_token_ids)
        row.setflags(write=False)
        return row

    def row_of(self, token_ids: Iterable[int]) -> NDArray[np.uint32]:
        """The mask of a few tokens. uint32 [words]"""
        row = np.zeros(self.words, np.uint32)
        for token_id in token_ids:
            row[token_id >> 5] |= np.uint32(1 << (token_id & 31))
        return row

    @cached_property
    def eos_ids(self) -> frozenset[int]:
        return frozenset(self.vocabulary.eos_token_ids)

    def mask_of(self, chosen: NDArray[np.bool_], order: NDArray[np.int32] | None = None) -> NDArray[np.uint32]:
        """The packed mask of the tokens order[chosen]; order is the trie's unless given. bool [tokens] -> uint32 [words]"""
        bits = np.zeros(self.words * 32, np.bool_)
        bits[(self.trie.order if order is None else order)[chosen]] = True
        return np.packbits(bits, bitorder="little").view(np.uint32)
