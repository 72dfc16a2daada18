"""The flat byte trie against a trie of nested dictionaries."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskwright.constraints import Vocabulary
from maskwright.constraints.base.utf8 import normalize
from maskwright.constraints.vocabulary.char_class_tables import Exits
from maskwright.constraints.vocabulary.trie import TokenTrie


class Node(dict):
    """byte -> child; the plain twin."""

    def __init__(self) -> None:
        super().__init__()
        self.token_ids: list[int] = []

    def insert(self, token: bytes, token_id: int) -> None:
        node = self
        for byte in token:
            node = node.setdefault(byte, Node())
        node.token_ids.append(token_id)

    def depth_first(self, depth: int = 1) -> Iterator[tuple[int, int, Node]]:
        for byte in sorted(self):
            yield byte, depth, self[byte]
            yield from self[byte].depth_first(depth + 1)

    def size(self) -> int:
        return sum(1 + child.size() for child in self.values())


def plain_trie(vocabulary: Vocabulary) -> Node:
    root = Node()
    for token_id, token in enumerate(vocabulary.spellings):
        if token:
            root.insert(token, token_id)
    return root


def check(vocabulary: Vocabulary) -> TokenTrie:
    trie, expected = TokenTrie.build(vocabulary), list(plain_trie(vocabulary).depth_first())
    trie.validate()
    assert trie.byte.tolist() == [byte for byte, _, _ in expected]
    assert trie.depth.tolist() == [depth for _, depth, _ in expected]
    assert trie.skip.tolist() == [i + 1 + node.size() for i, (_, _, node) in enumerate(expected)]
    ending = [trie.order[trie.first[i] : trie.first[i + 1]].tolist() for i in range(trie.num_nodes)]
    assert ending == [node.token_ids for _, _, node in expected]
    return trie


few_bytes = st.lists(st.sampled_from(b"ab\xc3\xa9"), max_size=5).map(bytes)


@given(st.lists(st.one_of(st.none(), few_bytes, st.binary(max_size=3)), max_size=60), st.data())
def test_agrees_with_nested_dictionaries(tokens, data):
    eos = data.draw(st.lists(st.integers(0, len(tokens) - 1), max_size=2)) if tokens else []
    check(Vocabulary(tokens, eos_token_ids=eos))


def test_agrees_on_many_random_tokens():
    rng = random.Random(0)
    check(Vocabulary([rng.randbytes(rng.randrange(1, 4)) for _ in range(3000)]))


@pytest.mark.parametrize("length", [255, 256, 300])
def test_long_tokens_have_their_depth(length):
    trie = check(Vocabulary([b"-" * length, b"-" * 16, b" " * (length - 1)]))
    assert trie.max_depth == length
    assert trie.depth.max() == length


@pytest.mark.parametrize("tokens", [[], [None], [b""], [b"", None]])
def test_without_text_it_is_empty(tokens):
    trie = check(Vocabulary(tokens))
    assert (trie.num_nodes, trie.max_depth, trie.first.tolist()) == (0, 0, [0])


def test_tokens_of_a_subtree_are_one_range():
    vocabulary = Vocabulary([b"a", b"abc", b"b", b"ab", b"a", b"ac"])
    trie = TokenTrie.build(vocabulary)
    for i in range(trie.num_nodes):
        token = trie.order[trie.first[i] : trie.first[trie.skip[i]]].tolist()
        prefix = bytes(path_to(trie, i))
        assert token == sorted(
            (t for t, text in enumerate(vocabulary.tokens) if text.startswith(prefix)),
            key=lambda t: (vocabulary.tokens[t], t),
        )


def path_to(trie: TokenTrie, node: int) -> list[int]:
    return [int(trie.byte[i]) for i in range(node + 1) if trie.skip[i] > node]


def test_bytes_by_id_leave_out_what_is_never_text():
    vocabulary = Vocabulary([b"a", None, b"", b"bc", b"<e>", b"<s>"], eos_token_ids=[4], special_tokens={"<s>": 5})
    trie = TokenTrie.build(vocabulary)
    assert [trie.bytes_of(i) for i in range(vocabulary.size)] == [b"a", b"", b"", b"bc", b"", vocabulary.spellings[5]]
    assert trie.token_offsets.tolist() == [0, 1, 1, 1, 3, 3, 6]  # a special token is read as its id between two bytes


def test_arrays_are_what_compiled_code_expects_and_read_only():
    trie = TokenTrie.build(Vocabulary([b"a", b"ab"]))
    for name, dtype in dict(
        byte=np.uint8, depth=np.int32, skip=np.int32, first=np.int32, order=np.int32, token_offsets=np.int32,
        token_bytes=np.uint8,
    ).items():  # fmt: skip
        array = getattr(trie, name)
        assert (array.dtype, array.flags.c_contiguous, array.flags.writeable) == (dtype, True, False), name


@pytest.mark.parametrize(("name", "position", "value"), [("skip", 0, 2), ("depth", 1, 1), ("byte", 1, 99), ("order", 0, 1)])
def test_validate_finds_what_is_broken(name, position, value):
    trie = TokenTrie.build(Vocabulary([b"ab", b"ac", b"b"]))
    array = getattr(trie, name).copy()
    array[position] = value
    object.__setattr__(trie, name, array)
    with pytest.raises(AssertionError):
        trie.validate()


@given(st.lists(st.text('ab" \n\\,é', min_size=1, max_size=6), max_size=30), st.sampled_from([b"", b"\\", b"a,"]))
def test_exits_are_the_suffixes_behind_a_class(texts: list[str], ambiguous: bytes) -> None:
    tokens = [*(bytes([byte]) for byte in range(256)), *(text.encode() for text in texts)]
    trie = TokenTrie.build(Vocabulary([*tokens, None], eos_token_ids=[len(tokens)]))
    exits = Exits.build(normalize([(0x20, 0x20), (0x61, 0x62)]), ambiguous, trie)
    suffixes = [token.lstrip(b" ab") if b"\xff" not in token else b"" for token in tokens]
    expected = [suffix if suffix and suffix[:1] not in {bytes([byte]) for byte in ambiguous} else None for suffix in suffixes]
    assert [exits.trie.bytes_of(i) or None for i in range(len(tokens))] == expected
    exits.trie.validate()
    assert sorted(exits.by_prefix.tolist()) == [i for i, suffix in enumerate(expected) if suffix]
