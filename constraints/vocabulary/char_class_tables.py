"""What a vocabulary looks like from inside a repetition of characters of one class: tables made once, shared by all
constraints.

A *body* is such a repetition: the inside of a JSON string, `[a-z]{2,20000}`, white space. Comes in: a class of
characters and the trie of all tokens. Goes out: a `BodyClass`, masks of the tokens that are made of the class, by
length, and the trie of the others; and `Exits`, the tokens that leave the class, by what they spell behind it. trie_walk.py
says how they are used, and why that is exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..base.kinds import KEYS_APART
from ..base.utf8 import Ranges, byte_tree, transitions
from ..numba_support.jit import entry
from .trie import TokenTrie
from .vocabulary import TOKEN_OPEN

MAX_SLICE = 48  # characters; longer tokens are few


@dataclass(frozen=True, eq=False)
class SubTrie:
    """The trie of some tokens of a vocabulary. The arrays are as in `TokenTrie`, read-only."""

    byte: NDArray[np.uint8]
    depth: NDArray[np.int32]
    skip: NDArray[np.int32]
    first: NDArray[np.int32]
    order: NDArray[np.int32]

    @classmethod
    def without(cls, left_out: NDArray[np.bool_], trie: TokenTrie) -> SubTrie:
        """The trie of the tokens that do not end at a node of `left_out`. bool [n]"""
        return cls(*map(_read_only, _residual(left_out, trie)))

    @classmethod
    def with_bytes(cls, wanted: bytes, at_least: int, trie: TokenTrie) -> SubTrie:
        """The trie of the tokens that have `at_least` bytes out of `wanted`."""
        is_wanted = np.isin(np.arange(256), list(wanted))
        return cls.without(occurrences(is_wanted, trie) < at_least, trie)

    @classmethod
    def with_each(cls, wanted: bytes, trie: TokenTrie) -> SubTrie:
        """The trie of the tokens that have all bytes of `wanted`."""
        found = [occurrences(np.arange(256) == byte, trie) for byte in wanted]
        return cls.without(np.min(found, axis=0) == 0, trie)

    @classmethod
    def quoted_apart(cls, trie: TokenTrie) -> SubTrie:
        """The trie of the tokens with two quotation marks as far apart as the end of a key and the beginning of the
        next one, see KEYS_APART."""
        is_quote = np.arange(256) == ord('"')
        quotes = occurrences(is_quote, trie)
        left_out = np.ones(quotes.size, np.bool_)
        for node in np.flatnonzero((quotes >= 2) & (np.diff(trie.first) > 0)):
            token = trie.order[trie.first[node]]
            text = trie.token_bytes[trie.token_offsets[token] : trie.token_offsets[token + 1]]
            places = np.flatnonzero(text == ord('"'))
            left_out[node] = places[-1] - places[0] <= KEYS_APART
        return cls.without(left_out, trie)

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in (self.byte, self.depth, self.skip, self.first, self.order))


@dataclass(frozen=True, eq=False)
class Exits:
    """The tokens that leave a class, by their *suffix*: what they spell behind their last character of the class.

    A repetition that may end at any character is left alike from wherever in it, so only the suffixes are walked, not
    the many prefixes.

        class of letters:   "abc." and "xy."   have the suffix "."   and prefixes of 3 and 2 characters
    """

    trie: TokenTrie  # of the suffixes; its tokens are the ids of the whole tokens
    by_prefix: NDArray[np.int32]  # [tokens]  those tokens, the longest prefix first
    prefix: NDArray[np.int32]  # [tokens]  characters of their prefixes, in that order
    rest: SubTrie  # other tokens that are not of the class: their suffix begins with a byte that may belong to the body

    @classmethod
    def build(cls, ranges: Ranges, ambiguous: bytes, trie: TokenTrie) -> Exits:
        """ambiguous: first bytes of suffixes that may belong to the body all the same, such as the backslash in a
        string."""
        table = transitions(byte_tree(ranges))
        num_tokens = trie.token_offsets.size - 1
        end, chars = np.zeros(num_tokens, np.int32), np.zeros(num_tokens, np.int32)
        _fill_prefixes(table, trie.token_offsets, trie.token_bytes, end, chars)
        begin, stop = trie.token_offsets[:-1] + end, trie.token_offsets[1:]  # of the suffixes
        is_exit = begin < stop
        is_exit[is_exit] = ~np.isin(trie.token_bytes[begin[is_exit]], np.frombuffer(ambiguous + TOKEN_OPEN, np.uint8))
        ids = np.flatnonzero(is_exit).astype(np.int32)
        by_prefix = ids[np.argsort(-chars[ids], kind="stable")]
        left_out = _inside(table, trie)[0] | _all_of(is_exit, trie)
        of_suffixes = _trie_of_parts(ids, begin, stop, trie)
        rest = SubTrie.without(left_out, trie)
        return cls(of_suffixes, _read_only(by_prefix), _read_only(chars[by_prefix]), rest)


def _trie_of_parts(ids: NDArray[np.int32], begin: NDArray[np.int32], stop: NDArray[np.int32], trie: TokenTrie) -> TokenTrie:
    """The trie of parts of the tokens `ids`. begin, stop: int32 [V], where the part of each token is in the trie's bytes."""
    is_chosen = np.zeros(begin.size, np.bool_)
    is_chosen[ids] = True
    data = trie.token_bytes.tobytes()
    parts = {i: data[start:end] for i, start, end in zip(ids.tolist(), begin[ids].tolist(), stop[ids].tolist(), strict=True)}
    order = sorted(trie.order[is_chosen[trie.order]].tolist(), key=parts.__getitem__)  # many of which are in order
    offsets = np.zeros(begin.size + 1, np.int32)
    np.cumsum(np.where(is_chosen, stop - begin, 0), out=offsets[1:])
    return TokenTrie.of_spellings(np.array(order, np.int32), offsets, np.frombuffer(b"".join(parts.values()), np.uint8))


@dataclass(frozen=True, eq=False)
class BodyClass:
    """The tables of one character class for one vocabulary."""

    slices: NDArray[
        np.uint32
    ]  # [1 + lengths, ceil(V / 32)]  row r: tokens of the class of at most r characters; last: all
    longest: int  # characters in the longest token of the class
    copies_per_token: int  # for every number of characters up to this some token of the class has so many, all whole
    residual: SubTrie  # the tokens that are not of the class
    # characters in the longest token that is not of the class, if more than control characters end its prefix that is
    longest_outside: int
    long_tokens: NDArray[np.int32]  # the tokens of the class that are longer than that, or than MAX_SLICE, the longest first
    long_token_lengths: NDArray[np.int32]  # characters of these

    @classmethod
    def build(cls, ranges: Ranges, trie: TokenTrie, words: int) -> BodyClass:
        """Tables for characters in `ranges`; masks have `words` 32-bit words. Time: a few passes over the trie."""
        table = transitions(byte_tree(ranges))
        inside, whole, chars = _inside(table, trie)
        longest = int(chars[inside].max(initial=0))
        lengths = set(chars[whole & (np.diff(trie.first) > 0)].tolist())
        copies_per_token = next(length for length in range(longest + 1) if length + 1 not in lengths)
        slices = np.zeros((min(longest, MAX_SLICE) + 2, words), np.uint32)
        _fill_slices(slices, inside, chars, trie.first, trie.order)
        longest_outside = int(_longest_outside(table, trie.token_offsets, trie.token_bytes))
        length = np.repeat(np.where(inside, chars, 0), np.diff(trie.first))  # of the tokens in their order; 0: not of the class
        long_tokens = np.flatnonzero(length > min(longest_outside, MAX_SLICE))
        long_tokens = long_tokens[np.argsort(-length[long_tokens], kind="stable")]
        return cls(
            slices=_read_only(slices),
            longest=longest,
            copies_per_token=max(copies_per_token, 1),
            residual=SubTrie.without(inside, trie),
            longest_outside=longest_outside,
            long_tokens=_read_only(trie.order[long_tokens]),
            long_token_lengths=_read_only(length[long_tokens]),
        )

    @property
    def nbytes(self) -> int:
        return int(self.slices.nbytes) + self.residual.nbytes


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Read-only like the arrays of a trie: compiled code is specialised on it."""
    array.setflags(write=False)
    return array


def _inside(table: NDArray[np.int16], trie: TokenTrie) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.int32]]:
    """(inside, whole, chars) for every node: whether the path to it stays inside the class; whether it ends with a
    whole character, too; how many characters it begins. table: the automaton of the class's characters."""
    n = trie.byte.size
    inside, whole, chars = np.zeros(n, np.bool_), np.zeros(n, np.bool_), np.zeros(n, np.int32)
    _fill_inside(table, trie.byte, trie.depth, trie.max_depth, inside, whole, chars)
    return inside, whole, chars


def _all_of(is_chosen: NDArray[np.bool_], trie: TokenTrie) -> NDArray[np.bool_]:
    """For every node: whether the tokens that end there are among the chosen ones."""
    chosen = np.zeros(trie.first.size - 1, np.bool_)
    _fill_chosen(is_chosen, trie.first, trie.order, chosen)
    return chosen


def occurrences(wanted: NDArray[np.bool_], trie: TokenTrie) -> NDArray[np.int32]:
    """For every node: how many bytes on the path to it are wanted. int32 [n]; wanted: bool [256]"""
    found = np.zeros(trie.byte.size, np.int32)
    _fill_occurrences(wanted, trie.byte, trie.depth, trie.max_depth, found)
    return found


def _residual(left_out: NDArray[np.bool_], trie: TokenTrie) -> list[NDArray[Any]]:
    """The arrays of the trie of the tokens that do not end at a node that is left out."""
    n = trie.byte.size
    byte, depth, skip = np.empty(n, np.uint8), np.empty(n, np.int32), np.empty(n, np.int32)
    first, order = np.zeros(n + 1, np.int32), np.empty(trie.order.size, np.int32)
    trie_of_all = (trie.byte, trie.depth, trie.skip, trie.first, trie.order)
    nodes, tokens = _fill_residual(left_out, *trie_of_all, byte, depth, skip, first, order)
    return [part.copy() for part in (byte[:nodes], depth[:nodes], skip[:nodes], first[: nodes + 1], order[:tokens])]


@entry(
    table="const int16[:,:]", byte="const uint8[:]", depth="const int32[:]", inside="bool[:]", whole="bool[:]", chars="int32[:]"
)
def _fill_inside(table, byte, depth, max_depth, inside, whole, chars):
    """See `_inside`. table: the automaton of the class's characters."""
    n = byte.size
    state = np.zeros(max_depth + 1, np.int16)
    begun = np.zeros(max_depth + 1, np.int32)
    for i in range(n):
        d = depth[i]
        before = state[d - 1]
        after = table[before, byte[i]] if before >= 0 else -1
        state[d] = after
        begun[d] = begun[d - 1] + (1 if before == 0 else 0)
        inside[i], whole[i], chars[i] = after >= 0, after == 0, begun[d]


@entry(table="const int16[:,:]", offsets="const int32[:]", data="const uint8[:]", length="int32[:]", chars="int32[:]")
def _fill_prefixes(table, offsets, data, length, chars):
    """For every token the bytes and characters of its longest prefix of whole characters of the class; both are zero before."""
    for token in range(length.size):
        state = 0
        for i in range(offsets[token], offsets[token + 1]):
            state = table[state, data[i]]
            if state < 0:
                break
            if state == 0:
                length[token], chars[token] = i + 1 - offsets[token], chars[token] + 1


@entry(table="const int16[:,:]", offsets="const int32[:]", data="const uint8[:]")
def _longest_outside(table, offsets, data):
    """The most characters of any token with a character that is not of the class, unless the first such character is a
    control character."""
    most = 0
    for token in range(offsets.size - 1):
        state, first = 0, offsets[token]
        for i in range(offsets[token], offsets[token + 1]):
            if state == 0:
                first = i
            state = table[state, data[i]]
            if state < 0:
                break
        if state < 0 and data[first] >= 0x20:
            chars = 0
            for i in range(offsets[token], offsets[token + 1]):
                chars += 0 if 0x80 <= data[i] < 0xC0 else 1
            most = max(most, chars)
    return most


@entry(is_chosen="const bool[:]", first="const int32[:]", order="const int32[:]", chosen="bool[:]")
def _fill_chosen(is_chosen, first, order, chosen):
    """For every node: whether the tokens that end there are among the chosen ones. (They are equal, so all or none
    are.)"""
    for i in range(chosen.size):
        chosen[i] = first[i] != first[i + 1] and is_chosen[order[first[i]]]


@entry(wanted="const bool[:]", byte="const uint8[:]", depth="const int32[:]", found="int32[:]")
def _fill_occurrences(wanted, byte, depth, max_depth, found):
    """See `occurrences`."""
    seen = np.zeros(max_depth + 1, np.int32)
    for i in range(byte.size):
        seen[depth[i]] = seen[depth[i] - 1] + (1 if wanted[byte[i]] else 0)
        found[i] = seen[depth[i]]


@entry(
    slices="uint32[:,:]", inside="const bool[:]", chars="const int32[:]", first="const int32[:]", order="const int32[:]",
)
def _fill_slices(slices, inside, chars, first, order):
    """Fill slices[r] with the mask of the tokens of the class of at most r characters, the last one with that of all."""
    last = slices.shape[0] - 1
    for i in range(inside.size):
        if inside[i]:
            for k in range(first[i], first[i + 1]):
                word, bit = order[k] >> 5, np.uint32(1) << np.uint32(order[k] & 31)
                slices[min(chars[i], last), word] |= bit
    for max_chars in range(last):
        slices[max_chars + 1] |= slices[max_chars]


@entry(
    inside="const bool[:]", byte="const uint8[:]", depth="const int32[:]", skip="const int32[:]", first="const int32[:]",
    order="const int32[:]", new_byte="uint8[:]", new_depth="int32[:]", new_skip="int32[:]", new_first="int32[:]",
    new_order="int32[:]",
)  # fmt: skip
def _fill_residual(inside, byte, depth, skip, first, order, new_byte, new_depth, new_skip, new_first, new_order):
    """(nodes, tokens) of the trie of the tokens that do not end at a node of `inside`, whose arrays are written."""
    n = byte.size
    kept = np.zeros(n + 1, np.int32)  # new index of node i, or of the next kept node
    keep = np.zeros(n, np.bool_)
    deepest = np.int64(0)
    for i in range(n):
        deepest = max(deepest, np.int64(depth[i]))
    last_at = np.empty(deepest + 2, np.int32)
    for d in range(last_at.size):
        last_at[d] = -1
    for i in range(n):
        last_at[depth[i]] = i
        if not inside[i] and first[i] != first[i + 1]:
            d = depth[i]
            while d > 0 and not keep[last_at[d]]:
                keep[last_at[d]] = True
                d -= 1
    for i in range(n):
        kept[i + 1] = kept[i] + (1 if keep[i] else 0)
    m = kept[n]
    tokens = 0
    for i in range(n):
        if keep[i]:
            k = kept[i]
            new_byte[k], new_depth[k], new_skip[k] = byte[i], depth[i], kept[skip[i]]
            new_first[k] = tokens
            if not inside[i]:
                for j in range(first[i], first[i + 1]):
                    new_order[tokens] = order[j]
                    tokens += 1
    new_first[m] = tokens
    return np.int64(m), np.int64(tokens)
