"""What all constraints over one vocabulary share: the trie, the packed vocabulary, and the tables of body classes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..base.ids import Place
from ..base.spares import Spares
from ..base.utf8 import Ranges, intersect, invert, normalize
from . import stored_tables
from .char_class_tables import BodyClass, Exits
from .packed_vocabulary import PackedVocabulary
from .trie import TokenTrie
from .vocabulary import TOKEN_OPEN, Vocabulary

T = TypeVar("T")
JSON_CHARACTERS: Ranges = normalize([(0x20, 0x21), (0x23, 0x5B), (0x5D, 0x10FFFF)])  # need no escape in a JSON string
JSON_SPACE: Ranges = normalize([(0x09, 0x0A), (0x0D, 0x0D), (0x20, 0x20)])  # may stand between the tokens of JSON
LINE_CHARACTERS: Ranges = intersect(JSON_CHARACTERS, invert(((0x2028, 0x2029),)))  # those that `.` of ECMA-262 matches
# Nearly every schema needs these, so they are not left to the first mask. The bytes may follow a character inside the body.
_EAGER = {JSON_CHARACTERS: b"\\" + bytes(range(0x80, 0x100)), JSON_SPACE: b"", LINE_CHARACTERS: b"\\" + bytes(range(0x80, 0x100))}
_WALKS_BEFORE_TABLES = 250  # masks made inside a class before its tables are worth their time and megabyte
_MAX_BODIES = 64
_MAX_ASKED = 4096  # classes of which it is kept whether a token is one of their characters


class SharedVocabulary:
    """A vocabulary prepared for mask walks. Thread-safe."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.words = (vocabulary.size + 31) // 32
        self.num_mask_misses = 0  # masks that were computed, by all constraints that share this
        self._lock = threading.Lock()
        self._of_thread = threading.local()
        self._walked: dict[Ranges, int] = {}
        self._builders: dict[Ranges, threading.Thread] = {}
        self._has_character: dict[Ranges, bool] = {}
        self._spares: dict[object, Spares[SharedVocabulary, Any]] = {}  # by what makes them
        path = stored_tables.path_of(vocabulary)
        kept = None if path is None else stored_tables.read(path, vocabulary)
        if kept is None:
            kept = self._built()
            if path is not None:
                stored_tables.write(path, vocabulary, kept)
                kept = stored_tables.read(path, vocabulary) or kept  # the first process shares them, too
        self.trie, self.packed_vocabulary, self._bodies, self._offsets = kept.trie, kept.packed, kept.bodies, kept.offsets

    def _built(self) -> stored_tables.Tables:
        """The tables that nearly every schema needs."""
        self.trie = TokenTrie.build(self.vocabulary)
        eos = tuple(self.vocabulary.eos_token_ids)
        self.packed_vocabulary = PackedVocabulary(self.trie, self.words, eos, self.spells_every_byte)
        self._bodies, self._offsets = {}, {}
        for ranges, ambiguous in _EAGER.items():
            self._build(ranges, Exits.build(ranges, ambiguous, self.trie))
        self.packed_vocabulary.tell_strings(self.tables(JSON_CHARACTERS), self.tables(LINE_CHARACTERS))
        return stored_tables.Tables(self.trie, self.packed_vocabulary, self._bodies, self._offsets)

    def spare(self, make: Callable[[SharedVocabulary], T]) -> T:
        """A value that `make` has made for this vocabulary, and nobody else has; a few are made at a time."""
        spares = self._spares.get(make)
        if spares is None:
            spares = self._spares.setdefault(make, Spares(make))
        made: T = spares.take(self)
        return made

    @property
    def unsettled_room(self) -> NDArray[np.int32]:
        """int32 [2 * tokens of the trie, 5]: scratch of the calling thread, to which compiled code writes unsettled tokens
        (judging.py). Twice the tokens, because those that go along candidates and those in which words begin are listed
        one after the other."""
        room: NDArray[np.int32] | None = getattr(self._of_thread, "unsettled_room", None)
        if room is None:
            room = self._of_thread.unsettled_room = np.empty((2 * self.trie.order.size, 5), np.int32)
        return room

    def body(self, ranges: Ranges) -> BodyClass | None:
        """The tables of a character class; None when they have not been built."""
        return self._bodies.get(ranges)

    def tables(self, ranges: Ranges) -> Place:
        """The place of the tables of a character class in the packed vocabulary, 0 when it has none."""
        return self._offsets.get(ranges, Place(0))

    def tables_wanted(self, ranges: Ranges) -> Place:
        """`tables`, asked for after a mask was made without them. When that has happened often enough they are built, by another
        thread: that takes as long as hundreds of masks, and none of them waits."""
        with self._lock:
            self._walked[ranges] = self._walked.get(ranges, 0) + 1
            is_due = (
                self._walked[ranges] > _WALKS_BEFORE_TABLES
                and len(self._bodies) + len(self._builders) < _MAX_BODIES
                and self.packed_vocabulary.has_room()
            )
            if is_due and ranges not in self._bodies and ranges not in self._builders:
                builder = self._builders[ranges] = threading.Thread(target=self._build_later, args=(ranges,), daemon=True)
                builder.start()
            return self.tables(ranges)

    def wait_for_tables(self) -> None:
        """Until all tables are there that are being built."""
        for builder in list(self._builders.values()):
            builder.join()

    def _build_later(self, ranges: Ranges) -> None:
        body = BodyClass.build(ranges, self.trie, self.words)
        with self._lock:
            if self.packed_vocabulary.has_room():
                self._keep(ranges, body)
            del self._builders[ranges]

    def copies_per_token(self, ranges: Ranges) -> int:
        """A number of characters of a class up to which one token can spell any number of them; 1 where that is not
        known."""
        body = self._bodies.get(ranges)
        return 1 if body is None else body.copies_per_token

    def has_character(self, ranges: Ranges, find_out: Callable[[], bool]) -> bool:
        """Whether some token is one character of a class, found out once."""
        known = self._has_character.get(ranges)
        if known is None:
            if len(self._has_character) >= _MAX_ASKED:
                self._has_character.clear()
            known = self._has_character[ranges] = find_out()
        return known

    def _build(self, ranges: Ranges, exits: Exits | None = None) -> None:
        self._keep(ranges, BodyClass.build(ranges, self.trie, self.words), exits)

    def _keep(self, ranges: Ranges, body: BodyClass, exits: Exits | None = None) -> None:
        self._bodies[ranges] = body
        self._offsets[ranges] = self.packed_vocabulary.body_class(ranges, body, exits)

    @cached_property
    def single_bytes(self) -> NDArray[np.bool_]:
        """bool [256]: whether some token is exactly this byte."""
        present = np.zeros(256, np.bool_)
        trie = self.trie
        is_token = np.diff(trie.first) > 0
        present[trie.byte[(trie.depth == 1) & is_token]] = True
        return present

    @cached_property
    def num_plain_bytes(self) -> int:
        """How many printable characters of one byte that stand for themselves in JSON strings are tokens."""
        return int(self.single_bytes[[byte for byte in range(0x20, 0x7F) if byte not in b'"\\']].sum())

    @cached_property
    def spells_every_byte(self) -> bool:
        """Whether every byte of text is a token, so that whatever has a completion in bytes has one in tokens."""
        return bool(self.single_bytes[: TOKEN_OPEN[0]].all())

    @cached_property
    def eos_row(self) -> NDArray[np.uint32]:
        """The mask of the EOS ids. uint32 [words], read-only"""
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

    def mask_of(self, token_ids: NDArray[np.int32]) -> NDArray[np.uint32]:
        """The packed mask of many tokens. uint32 [words]"""
        bits = np.zeros(self.words * 32, np.bool_)
        bits[token_ids] = True
        return np.packbits(bits, bitorder="little").view(np.uint32)
