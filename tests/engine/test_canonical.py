"""Canonical spellings: the rows of pairs against encoding each pair, and outputs against encoding them."""

from __future__ import annotations

import json
import random
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from maskwright.constraints import Compiler, Vocabulary
from maskwright.constraints import Regex as RegexConstraint
from maskwright.engine.errors import RequestError
from maskwright.engine.gguf.pretokenizers import PRE_TOKENIZERS
from maskwright.engine.gguf.sentencepiece import SentencePieces, build
from maskwright.engine.requests.canonical import CanonicalPairs, Trees
from maskwright.engine.requests.guide import Guide, MaskViews
from maskwright.engine.requests.request import Request
from maskwright.engine.requests.ways_on import with_ways_on
from maskwright.sampling import SamplingParams

CORPUS = [
    "the other theatre's actors they've met; they'll say it's 1234 or 99,000 in all: aaa aaaa aaaaa",
    '{"name": "Ada", "ages": [36, 37, 40],\n  "ok": true,\n  "text": "that isn\'t what we\'re here for"}',
    "Größe über naïve café — 東京 東京都 🙂🙂 x=y+z; a==b; if (a != b) { return a; }\n\n\nend of it  now   again",
]
STYLES = ["gpt-2", "smollm", "qwen2", "llama3", "gpt-4o", "deepseek-v3", "none"]


@cache
def tokenizer_of(style: str) -> Tokenizer:
    """Byte pairs of a small corpus, in words as a family of models cuts them."""
    tokenizer = Tokenizer(models.BPE())
    rule = PRE_TOKENIZERS.get(style)
    cuts = [] if rule is None else [pre_tokenizers.Split(Regex(pattern), "isolated") for pattern in rule.patterns]
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*cuts, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=460, initial_alphabet=alphabet, special_tokens=["<s>", "</s>"], show_progress=False)
    tokenizer.train_from_iterator(CORPUS * 3, trainer)
    if rule is not None and rule.ignores_merges:  # one token that merging does not make, as Llama 3 has them
        specification = json.loads(tokenizer.to_str())
        specification["model"]["ignore_merges"] = True
        specification["model"]["vocab"]["ctors"] = len(specification["model"]["vocab"])
        tokenizer = Tokenizer.from_str(json.dumps(specification))
    tokenizer.add_tokens([AddedToken("<call>", special=False)])
    return tokenizer


def pairs_of(tokenizer: Tokenizer) -> tuple[CanonicalPairs, Vocabulary]:
    ids = {i: text for text, i in tokenizer.get_vocab().items()}
    letters = {char: byte for byte, char in _byte_letters().items()}
    added = {i for i, token in tokenizer.get_added_tokens_decoder().items() if token.special}
    tokens = [None if i in added else _bytes_of(ids[i], letters) for i in range(len(ids))]
    vocabulary = Vocabulary(tokens, eos_token_ids=[tokenizer.token_to_id("</s>")])

    def starts(text: str) -> list[int]:
        assert tokenizer.pre_tokenizer is not None
        return [start for _, (start, _) in tokenizer.pre_tokenizer.pre_tokenize_str(text)]

    return CanonicalPairs(vocabulary, json.loads(tokenizer.to_str()), starts), vocabulary


def _byte_letters() -> dict[int, str]:
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    return {byte: chr(byte) for byte in printable} | {byte: chr(256 + at) for at, byte in enumerate(others)}


def _bytes_of(text: str, letters: dict[str, int]) -> bytes:
    return bytes(letters[char] for char in text) if all(char in letters for char in text) else text.encode()


def flags(row: Any, size: int) -> list[bool]:
    return np.unpackbits(np.asarray(row).view(np.uint8), bitorder="little")[:size].astype(bool).tolist()


@pytest.mark.parametrize("style", STYLES)
def test_rows_are_what_encoding_each_pair_gives(style: str) -> None:
    tokenizer = tokenizer_of(style)
    pairs, vocabulary = pairs_of(tokenizer)
    texts = [None if token is None else token.decode(errors="replace") for token in vocabulary.text_tokens]
    whole = [i for i, text in enumerate(texts) if text and "\ufffd" not in text and text != "<call>"]
    assert len(whole) > 150
    for before in whole:
        row = flags(pairs.allowed(before), vocabulary.size)
        encoded = tokenizer.encode_batch([f"{texts[before]}{texts[i]}" for i in whole], add_special_tokens=False)
        wrong = [texts[i] for i, given in zip(whole, encoded, strict=True) if row[i] != (given.ids == [before, i])]
        assert not wrong, (texts[before], wrong)


@pytest.mark.parametrize("style", STYLES)
def test_a_pair_is_what_its_row_says(style: str) -> None:
    made, vocabulary = known(style)
    asked, _ = pairs_of(tokenizer_of(style))  # which has no rows
    for before in (-1, *range(0, vocabulary.size, 3), vocabulary.size):
        row = flags(made.allowed(before), vocabulary.size)
        assert [asked.is_pair(before, token_id) for token_id in range(vocabulary.size)] == row, before
        assert [made.is_pair(before, token_id) for token_id in range(vocabulary.size)] == row, before


@pytest.mark.parametrize("style", ["none", "smollm", "llama3"])
@given(st.text("theoriansc 1239.,:{}\"é東🙂", max_size=24).filter(lambda text: "  " not in text))
@settings(deadline=None, max_examples=60)
def test_what_the_tokenizer_writes_is_allowed(style: str, text: str) -> None:
    tokenizer = tokenizer_of(style)
    pairs, vocabulary = known(style)
    for before, after in pairwise(tokenizer.encode(text, add_special_tokens=False).ids):
        assert flags(pairs.allowed(before), vocabulary.size)[after], (text, before, after)


@cache
def known(style: str) -> tuple[CanonicalPairs, Vocabulary]:
    return pairs_of(tokenizer_of(style))


def test_tokens_of_no_merges_may_stand_anywhere() -> None:
    pairs, vocabulary = known("gpt-2")
    tokenizer = tokenizer_of("gpt-2")
    call, end, letter = tokenizer.token_to_id("<call>"), tokenizer.token_to_id("</s>"), tokenizer.token_to_id("a")
    row = flags(pairs.allowed(letter), vocabulary.size)
    assert row[call] and row[end]
    assert flags(pairs.allowed(call), vocabulary.size)[letter] and flags(pairs.allowed(-1), vocabulary.size)[letter]


@given(st.lists(st.tuples(st.text("ab", min_size=1, max_size=3), st.text("ab", min_size=1, max_size=3)), max_size=9, unique=True))
@example([("aa", "a"), ("a", "a")])  # what a merge makes possible comes at once, also before another one of its rank
@settings(deadline=None, max_examples=150)
def test_trees_of_any_merges(merges: list[tuple[str, str]]) -> None:
    """Merges in any order, some never met, tokens made in several ways or in none: against the library on every pair."""
    vocabulary = {text: i for i, text in enumerate(dict.fromkeys(["a", "b", *(part for pair in merges for part in (*pair, "".join(pair)))]))}
    model = models.BPE(vocabulary, merges)
    trees = Trees(vocabulary, merges)
    spelt = {i: text for text, i in vocabulary.items()}
    reached = {i for i, text in spelt.items() if [token.id for token in model.tokenize(text)] == [i]}
    assert set(trees.reached) == reached
    for before in reached:
        joined = trees.joined_behind(before, len(vocabulary))
        for after in reached:
            is_pair = [token.id for token in model.tokenize(spelt[before] + spelt[after])] == [before, after]
            assert bool(joined[after]) != is_pair, (spelt[before], spelt[after])
            assert trees.is_joined(before, after) != is_pair


def test_sequences_are_canonical_when_their_pairs_are() -> None:
    """Of all spellings of texts, those with canonical pairs only are the tokenizer's own, and no other."""
    tokenizer = tokenizer_of("none")
    pairs, vocabulary = known("none")
    tokens = vocabulary.text_tokens
    for text in ("theatre", "aaaaaaa", "they'll", "1234, 99"):
        found = [ids for ids in spellings(text.encode(), tokens) if all(flags(pairs.allowed(a), vocabulary.size)[b] for a, b in pairwise(ids))]
        alone = [ids for ids in found if len(ids) > 1 or tokenizer.encode(text).ids == list(ids)]
        assert alone == [tuple(tokenizer.encode(text, add_special_tokens=False).ids)]


def spellings(data: bytes, tokens: Any) -> list[tuple[int, ...]]:
    if not data:
        return [()]
    return [(i, *rest) for i, token in enumerate(tokens) if token and data.startswith(token) for rest in spellings(data[len(token) :], tokens)]


def test_a_mask_is_never_emptied() -> None:
    pairs, vocabulary = known("none")
    tokenizer = tokenizer_of("none")
    letters = {text: tokenizer.token_to_id(text) for text in ("t", "h", "e")}
    constraint = Compiler(vocabulary).compile(RegexConstraint("the"))
    guide = Guide(constraint, 20, canonical=pairs)
    MaskViews().fill([guide])
    assert guide.advance(letters["t"])  # what a draft or a caller may have written
    MaskViews().fill([guide])
    assert guide.num_allowed >= 1 and flags(guide.mask, vocabulary.size)[letters["h"]]
    assert guide.has_masks_of_its_own and not Guide(constraint, 20).has_masks_of_its_own


@pytest.mark.parametrize("style", ["none", "gpt-2", "llama3"])
@pytest.mark.parametrize(
    "pattern",
    [
        "(theatre|others|actors|all)(,(theatre|they|here)){0,3}", "[aeh]{1,3}(there|where)?x", '\\{"(name|ages|text)":(true|36)\\}',
        "[a-z0-9A-Z,.=]ere", "[a-z]{1,6}(ere|ther|ey)", '\\{"name":"[a-z,.]{0,9}", ?"(ages|text)":true\\}',
    ],
)  # fmt: skip
def test_no_token_is_allowed_that_leads_away_from_the_spelling(style: str, pattern: str) -> None:
    """Whatever is drawn from the masks, the tokens are the tokenizer's own."""
    tokenizer = tokenizer_of(style)
    pairs, vocabulary = known(style)
    constraint = Compiler(vocabulary).compile(RegexConstraint(pattern))
    for seed in range(40):
        rng, guide, drawn = random.Random(seed), Guide(constraint, 60, canonical=pairs), list[int]()
        while True:
            MaskViews().fill([guide])
            token_id = rng.choice([i for i, is_allowed in enumerate(flags(guide.mask, vocabulary.size)) if is_allowed])
            if token_id in vocabulary.eos_token_ids:
                break
            assert guide.advance(token_id)
            drawn.append(token_id)
        text = b"".join(vocabulary.tokens[token_id] or b"" for token_id in drawn).decode()
        assert drawn == tokenizer.encode(text, add_special_tokens=False).ids, text


def test_pieces_of_sentencepiece() -> None:
    texts = ["<unk>", "<s>", "</s>", "<0x41>", "▁", "a", "b", "ab", "▁a", "▁ab", "aba"]
    types = [2, 3, 3, 6, *[1] * 7]
    pieces = SentencePieces(texts, [0.0, 0, 0, 0, -9, -8, -7, -2, -3, -1, -4], types, has_prefix=False)
    tokenizer = build(pieces)
    vocabulary = Vocabulary([None, None, None, b"A", *(text.replace("▁", " ").encode() for text in texts[4:])], eos_token_ids=[2])
    pairs = CanonicalPairs(vocabulary, json.loads(tokenizer.to_str()), lambda text: [0])
    for before in range(4, 11):
        row = flags(pairs.allowed(before), len(texts))
        for after in range(4, 11):
            text = (texts[before] + texts[after]).replace("▁", " ")
            assert row[after] == (tokenizer.encode(text).ids == [before, after]), text
        assert row[3]


@pytest.mark.parametrize(
    ("specification", "message"),
    [
        ({"model": {"type": "Unigram", "vocab": []}}, "Unigram"),
        ({"model": {"type": "BPE", "vocab": {}, "merges": [], "end_of_word_suffix": "</w>"}}, "parts of words"),
        ({"model": {"type": "BPE", "vocab": {}, "merges": [], "dropout": 0.1}}, "at random"),
        ({"model": {"type": "BPE", "vocab": {}, "merges": []}, "pre_tokenizer": {"type": "Whitespace"}}, "Whitespace"),
    ],
)
def test_tokenizers_that_are_not_known_by_pairs_are_refused(specification: Any, message: str) -> None:
    with pytest.raises(RequestError, match=message) as raised:
        CanonicalPairs(known("none")[1], specification, lambda text: [0])
    assert raised.value.part == "canonical"


def test_without_a_constraint_it_is_refused() -> None:
    with pytest.raises(RequestError, match="there is no constraint"):
        Request(prompt_token_ids=(1,), sampling=SamplingParams(canonical=True))


@pytest.mark.parametrize("most_places", [1024, 100_000])
def test_a_long_way_without_a_choice_needs_no_deep_stack(most_places: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing but the end of 3,000 letters, or the number of places, ends the search."""
    monkeypatch.setattr("maskwright.engine.requests.ways_on.MOST_PLACES", most_places)
    pairs, vocabulary = known("none")
    constraint, before = Compiler(vocabulary).compile(RegexConstraint("[ab]" + "xq" * 1_500)), tokenizer_of("none").token_to_id("Z")
    state = constraint.start()
    mask = with_ways_on(constraint.mask(state), pairs, constraint, state, before)
    assert mask.tolist() == constraint.mask(state).tolist()
