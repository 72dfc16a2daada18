"""The token table: validation, what is text, numbering in byte order, identity."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskwright.constraints import Vocabulary

TOKENS = [b"b", None, b"a", b"", b"ab", b"</s>", b"a", b"<tool>", b"\xff"]
VOCABULARY = Vocabulary(TOKENS, eos_token_ids=[5, 1, 5], special_tokens={"<tool>": 7})

tables = st.lists(st.one_of(st.none(), st.binary(max_size=4)), min_size=1, max_size=40)


def test_what_is_given_is_kept():
    assert VOCABULARY.size == len(VOCABULARY) == 9
    assert VOCABULARY.tokens == tuple(TOKENS)
    assert VOCABULARY.eos_token_ids == (1, 5)
    assert VOCABULARY.special_tokens == {"<tool>": 7}


def test_eos_special_empty_and_padding_are_never_text():
    assert VOCABULARY.text_tokens == (b"b", None, b"a", None, b"ab", None, b"a", None, b"\xff")


def test_sorted_numbers_text_in_byte_order_and_the_rest_after_it():
    by_bytes, old_id_of_new = VOCABULARY.sorted()
    assert old_id_of_new.tolist() == [2, 6, 4, 0, 8, 1, 3, 5, 7]
    assert old_id_of_new.dtype == np.int32
    assert by_bytes.tokens == (b"a", b"a", b"ab", b"b", b"\xff", None, b"", b"</s>", b"<tool>")
    assert by_bytes.eos_token_ids == (5, 7)
    assert by_bytes.special_tokens == {"<tool>": 8}


@given(tables, st.data())
def test_sorted_is_the_same_vocabulary_renumbered(tokens, data):
    eos = data.draw(st.lists(st.integers(0, len(tokens) - 1), max_size=2))
    vocabulary = Vocabulary(tokens, eos_token_ids=eos, special_tokens={"s": data.draw(st.integers(0, len(tokens) - 1))})
    by_bytes, old_id_of_new = vocabulary.sorted()
    assert sorted(old_id_of_new.tolist()) == list(range(vocabulary.size))
    assert [vocabulary.text_tokens[old] for old in old_id_of_new] == list(by_bytes.text_tokens)
    assert {old_id_of_new[new] for new in by_bytes.eos_token_ids} == set(eos)
    text = [token for token in by_bytes.text_tokens if token]
    assert text == sorted(text)
    assert list(by_bytes.text_tokens[: len(text)]) == text
    again, unchanged = by_bytes.sorted()
    assert again == by_bytes
    assert unchanged.tolist() == list(range(vocabulary.size))


def test_equal_tables_are_equal_and_hash_alike():
    same = Vocabulary(tuple(TOKENS), eos_token_ids=(1, 5), special_tokens={"<tool>": 7})
    assert same == VOCABULARY
    assert hash(same) == hash(VOCABULARY)
    assert {same: "found"}[VOCABULARY] == "found"


@pytest.mark.parametrize(
    "other",
    [
        Vocabulary([*TOKENS, None], eos_token_ids=[1, 5], special_tokens={"<tool>": 7}),
        Vocabulary(TOKENS, eos_token_ids=[1], special_tokens={"<tool>": 7}),
        Vocabulary(TOKENS, eos_token_ids=[1, 5], special_tokens={"<tool>": 8}),
        Vocabulary(TOKENS, eos_token_ids=[1, 5], special_tokens={"<other>": 7}),
        Vocabulary([b"", *TOKENS[1:]], eos_token_ids=[1, 5], special_tokens={"<tool>": 7}),
        Vocabulary([b"b", b"", *TOKENS[2:]], eos_token_ids=[1, 5], special_tokens={"<tool>": 7}),
    ],
)
def test_any_difference_changes_the_fingerprint(other):
    assert other != VOCABULARY
    assert other.fingerprint != VOCABULARY.fingerprint


def test_bytes_do_not_run_into_each_other_in_the_fingerprint():
    assert Vocabulary([b"ab", b"c"]).fingerprint != Vocabulary([b"a", b"bc"]).fingerprint


def test_fingerprint_is_stable():
    """Saved with compiled constraints, so it may only change when the format of what is saved does."""
    assert VOCABULARY.fingerprint == "a9500192e3679a0f58340268c70a74fc806747156437be8887f6d4148958c48c"


@pytest.mark.parametrize("copied", [pickle.loads(pickle.dumps(VOCABULARY)), copy.deepcopy(VOCABULARY)])
def test_copies_are_equal(copied):
    assert copied == VOCABULARY
    assert copied.tokens == VOCABULARY.tokens
    assert copied.special_tokens == VOCABULARY.special_tokens


def test_nothing_can_be_changed():
    with pytest.raises(AttributeError):
        VOCABULARY.tokens = ()  # type: ignore[misc]
    with pytest.raises(TypeError):
        VOCABULARY.special_tokens["x"] = 1  # type: ignore[index]
    with pytest.raises(ValueError, match="read-only"):
        VOCABULARY.sorted()[1][0] = 0
    with pytest.raises(ValueError, match="read-only"):
        VOCABULARY.lexicographic_ids[0] = 0


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (dict(tokens=[b"a"], eos_token_ids=[1]), ValueError, "eos_token_ids: id 1 is outside the vocabulary of 1 ids"),
        (dict(tokens=[b"a"], eos_token_ids=[-1]), ValueError, "id -1 is outside"),
        (dict(tokens=[b"a"], special_tokens={"<x>": 9}), ValueError, "special_tokens.'<x>'.: id 9 is outside"),
        (dict(tokens=["a"]), TypeError, r"tokens\[0\] must be bytes or None, not str"),
        (dict(tokens=[b"a", 7]), TypeError, r"tokens\[1\] must be bytes or None, not int"),
        (dict(tokens="ab"), TypeError, "tokens must be a sequence of bytes or None"),
        (dict(tokens=b"ab"), TypeError, "tokens must be a sequence of bytes or None"),
        (dict(tokens=7), TypeError, "tokens must be a sequence of bytes or None"),
        (dict(tokens=[b"a"], eos_token_ids=["a"]), TypeError, "eos_token_ids: a token id is an int, not str"),
        (dict(tokens=[b"a"], eos_token_ids=0), TypeError, "eos_token_ids must be ids, not int"),
        (dict(tokens=[b"a"], special_tokens=["a"]), TypeError, "special_tokens must map names to ids, not list"),
        (dict(tokens=[b"a"], special_tokens={0: 0}), TypeError, "special_tokens: a name is a string, not int"),
    ],
)
def test_wrong_arguments_are_named(arguments, error, message):
    with pytest.raises(error, match=message):
        Vocabulary(**arguments)


def test_numpy_ids_are_ids():
    vocabulary = Vocabulary([b"a", b"b"], eos_token_ids=np.array([1]))
    assert vocabulary.eos_token_ids == (1,)
    assert all(type(i) is int for i in vocabulary.eos_token_ids)


def test_an_empty_vocabulary_is_one():
    assert Vocabulary([]).sorted()[1].tolist() == []


def test_special_tokens_are_spelled_by_their_ids_and_no_text_can_be():
    vocabulary = Vocabulary([b"a", b"\xff", b"x\xff", b"<x>", None, b"b", None], eos_token_ids=[4], special_tokens={"<x>": 3, "<e>": 4, "<y>": 3})
    assert vocabulary.text_tokens == (b"a", b"\xff", b"x\xff", None, None, b"b", None)
    assert vocabulary.spellings == (b"a", None, None, b"\xff3\xfe", None, b"b", None)
    assert vocabulary.spelled_ids.tolist() == [0, 5, 3]
    with pytest.raises(UnicodeDecodeError):
        b"".join(s for s in vocabulary.spellings if s).decode()
