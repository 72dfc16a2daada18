"""`Vocabulary.from_tokenizer`: token bytes of small and of published tokenizers against what these encode and decode."""

from __future__ import annotations

import json
import lzma
import random
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from maskwright.constraints import ConstraintError, Vocabulary
from maskwright.constraints.vocabulary.tokenizer_text import UnsupportedTokenizer, byte_level_alphabet

CORPUS = [
    "the quick brown fox jumps over the lazy dog, twice  and thrice",
    "Größe über naïve café — 12 345,67 €",
    "def f(x):\n\treturn {'a': [1, 2, 3]}\n\n",
    '{"name":"Ada","tags":["x","y"]}',
] * 4
TEXTS = [*CORPUS[:4], "", " ", "  two  spaces ", "日本語 and 😀‍🌫️ emoji", "\x00\x1f\x7f", "a\r\nb\tc", "Ġ Ā"]


# -- small tokenizers --------------------------------------------------------------------------------------------------------


def byte_level() -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=320, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), special_tokens=["<|end|>"], show_progress=False
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    return tokenizer


def byte_fallback(prefix: bool) -> Tokenizer:
    """As Llama 2 and Gemma: pieces with ▁ for the space, unknown characters as bytes."""
    replace = normalizers.Replace(" ", "▁")
    trained = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    trained.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), replace]) if prefix else replace
    trained.train_from_iterator(
        CORPUS, trainers.BpeTrainer(vocab_size=150, special_tokens=["<unk>", "<s>", "</s>"], show_progress=False)
    )
    spec = json.loads(trained.to_str())
    vocabulary = spec["model"]["vocab"]
    for byte in range(256):
        vocabulary.setdefault(f"<0x{byte:02X}>", len(vocabulary))
    tokenizer = Tokenizer.from_str(json.dumps(spec))
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    tokenizer.decoder = decoders.Sequence([*steps, decoders.Strip(" ", 1, 0)] if prefix else steps)
    return tokenizer


def unigram(replacement: str = "▁", scheme: str = "always", fallback: bool = True) -> Tokenizer:
    """As T5 and XLM-RoBERTa, with bytes for what is unknown."""
    trained = Tokenizer(models.Unigram())
    trained.pre_tokenizer = pre_tokenizers.Metaspace(replacement=replacement, prepend_scheme=scheme)
    trained.train_from_iterator(
        CORPUS, trainers.UnigramTrainer(vocab_size=120, special_tokens=["<pad>", "<unk>"], unk_token="<unk>", show_progress=False)
    )
    spec = json.loads(trained.to_str())
    if fallback:
        spec["model"]["vocab"] += [[f"<0x{byte:02X}>", -20.0] for byte in range(256)]
        spec["model"]["byte_fallback"] = True
    tokenizer = Tokenizer.from_str(json.dumps(spec))
    metaspace = decoders.Metaspace(replacement=replacement, prepend_scheme=scheme)
    tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(), metaspace]) if fallback else metaspace
    return tokenizer


SMALL = {
    "byte level": (byte_level, ""),
    "byte fallback": (lambda: byte_fallback(prefix=False), ""),
    "byte fallback with prefix space": (lambda: byte_fallback(prefix=True), " "),
    "unigram": (lambda: unigram(scheme="never"), ""),
    "unigram with prefix space": (unigram, " "),
    "unigram with another replacement": (lambda: unigram("␣", "never"), ""),
}


def joined(vocabulary: Vocabulary, ids: list[int]) -> bytes:
    parts = [vocabulary.text_tokens[i] for i in ids]
    assert None not in parts, f"an encoding holds ids that are never text: {ids}"
    return b"".join(part for part in parts if part)


@pytest.mark.parametrize("name", SMALL)
def test_bytes_of_an_encoding_are_the_text(name):
    make, prefix = SMALL[name]
    tokenizer = make()
    vocabulary = Vocabulary.from_tokenizer(tokenizer)
    for text in TEXTS:
        if prefix and (not text or text.startswith(" ")):
            continue  # whether these get the prefix depends on the tokenizer
        assert joined(vocabulary, tokenizer.encode(text).ids) == (prefix + text).encode(), text


@pytest.mark.parametrize("name", SMALL)
def test_any_sequence_of_tokens_decodes_to_its_bytes(name):
    make, prefix = SMALL[name]
    tokenizer, rng = make(), random.Random(name)
    vocabulary = Vocabulary.from_tokenizer(tokenizer)
    text_ids = vocabulary.lexicographic_ids.tolist()
    for _ in range(300):
        ids = rng.choices(text_ids, k=rng.randrange(1, 6))
        data = joined(vocabulary, ids)
        if is_utf8(data):
            shown = data.decode()
            assert tokenizer.decode(ids) in ({shown, shown.lstrip(" ")} if prefix else {shown}), ids


def is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


@pytest.mark.parametrize("name", SMALL)
def test_every_byte_can_be_spelled(name):
    vocabulary = Vocabulary.from_tokenizer(SMALL[name][0]())
    assert {bytes([byte]) for byte in range(256)} <= set(vocabulary.text_tokens)


# -- added tokens --------------------------------------------------------------------------------------------------------


ADDED = [
    AddedToken("<tool>", normalized=False, special=False),
    AddedToken("Ġliteral é", normalized=False, special=False),
    AddedToken("<left>", lstrip=True, rstrip=True, normalized=False, special=False),
    AddedToken("normal ised", normalized=True, special=False),
    AddedToken("\n\n\n", normalized=False, special=False),
]


@pytest.mark.parametrize("name", ["byte level", "byte fallback", "unigram"])
def test_added_tokens_are_literal_text_unless_special(name):
    tokenizer = SMALL[name][0]()
    tokenizer.add_tokens(ADDED)
    tokenizer.add_special_tokens([AddedToken("<|control|>", special=True)])
    vocabulary = Vocabulary.from_tokenizer(tokenizer)
    for token in ADDED:
        assert vocabulary.text_tokens[tokenizer.token_to_id(token.content)] == token.content.encode()
    control = tokenizer.token_to_id("<|control|>")
    assert vocabulary.tokens[control] is None
    assert vocabulary.special_tokens["<|control|>"] == control
    text = "a <tool> b Ġliteral é c\n\n\nd normal ised"
    assert joined(vocabulary, tokenizer.encode(text).ids) == text.encode()


def test_an_added_token_that_the_model_has_too_keeps_its_meaning():
    """Gemma lists "▁▁" as an added token; it is still what two spaces are encoded to."""
    tokenizer = byte_fallback(prefix=False)
    piece = next(piece for piece in tokenizer.get_vocab() if piece.startswith("▁") and len(piece) > 2)
    tokenizer.add_tokens([AddedToken(piece, normalized=False, special=False)])
    vocabulary = Vocabulary.from_tokenizer(tokenizer)
    assert vocabulary.tokens[tokenizer.token_to_id(piece)] == piece.replace("▁", " ").encode()


def test_named_special_tokens_are_not_text():
    tokenizer = byte_level()
    vocabulary = Vocabulary.from_tokenizer(tokenizer)
    assert vocabulary.special_tokens == {"<|end|>": tokenizer.token_to_id("<|end|>")}
    assert vocabulary.eos_token_ids == ()


def test_the_unknown_token_is_not_text():
    for tokenizer in (byte_fallback(prefix=False), unigram()):
        assert Vocabulary.from_tokenizer(tokenizer).text_tokens[tokenizer.token_to_id("<unk>")] is None


# -- sizes and end of text -----------------------------------------------------------------------------------------------


def test_padding_of_the_head_is_never_text():
    tokenizer = byte_level()
    natural = Vocabulary.from_tokenizer(tokenizer)
    padded = Vocabulary.from_tokenizer(tokenizer, eos_token_ids=[0, 401], size=402)
    assert padded.size == 402
    assert padded.tokens[: natural.size] == natural.tokens
    assert set(padded.tokens[natural.size :]) == {None}
    assert padded.eos_token_ids == (0, 401)


def test_holes_between_ids_are_never_text():
    spec = json.loads(byte_level().to_str())
    spec["model"]["vocab"]["zz"] = 500
    vocabulary = Vocabulary.from_tokenizer(Tokenizer.from_str(json.dumps(spec)))
    assert (vocabulary.size, vocabulary.tokens[499], vocabulary.tokens[500]) == (501, None, b"zz")


def test_a_narrower_head_may_only_lose_special_tokens():
    tokenizer = byte_level()
    tokenizer.add_special_tokens(["<image>"])
    image = tokenizer.token_to_id("<image>")
    cut = Vocabulary.from_tokenizer(tokenizer, size=image)
    assert (cut.size, "<image>" in cut.special_tokens) == (image, False)
    with pytest.raises(ValueError, match=f"size={image - 1} leaves out token {image - 1}"):
        Vocabulary.from_tokenizer(tokenizer, size=image - 1)
    with pytest.raises(ValueError, match=f"size={image} leaves out token {image}"):
        Vocabulary.from_tokenizer(tokenizer, eos_token_ids=[image], size=image)


def test_transformers_tokenizer_names_its_end_and_others_join_it(tmp_path):
    transformers = pytest.importorskip("transformers")
    tokenizer = byte_level()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    fast = transformers.PreTrainedTokenizerFast(tokenizer_file=str(tmp_path / "tokenizer.json"), eos_token="<|end|>")
    end = tokenizer.token_to_id("<|end|>")
    assert Vocabulary.from_tokenizer(fast).eos_token_ids == (end,)
    assert Vocabulary.from_tokenizer(fast, eos_token_ids=[7]).eos_token_ids == tuple(sorted({end, 7}))
    assert Vocabulary.from_tokenizer(fast).tokens == Vocabulary.from_tokenizer(tokenizer).tokens


# -- other decoders, and refusals ----------------------------------------------------------------------------------------


def test_without_a_decoder_the_encoder_tells():
    tokenizer = byte_level()
    with_decoder = Vocabulary.from_tokenizer(tokenizer)
    tokenizer.decoder = None
    assert Vocabulary.from_tokenizer(tokenizer) == with_decoder


def word_level(decoder: Any) -> Tokenizer:
    tokenizer = Tokenizer(models.WordLevel({"a": 0, "b": 1, "▁c": 2, "<unk>": 3}, unk_token="<unk>"))
    tokenizer.decoder = decoder
    return tokenizer


def test_whole_characters_joined_by_fuse():
    vocabulary = Vocabulary.from_tokenizer(word_level(decoders.Fuse()))
    assert vocabulary.tokens == (b"a", b"b", "▁c".encode(), None)


def bpe_with_affixes() -> Tokenizer:
    tokenizer = Tokenizer(models.BPE({"a</w>": 0}, [], end_of_word_suffix="</w>"))
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


@pytest.mark.parametrize(
    ("tokenizer", "message"),
    [
        (Tokenizer(models.WordPiece({"a": 0, "##b": 1})), "WordPiece: its decoder puts spaces between tokens"),
        (word_level(None), "WordLevel without a decoder: its tokens would be joined by spaces"),
        (word_level(decoders.WordPiece()), "decoder WordPiece"),
        (word_level(decoders.BPEDecoder()), "decoder BPEDecoder"),
        (word_level(decoders.CTC()), "decoder CTC"),
        (word_level(decoders.Sequence([decoders.Fuse(), decoders.Replace("ab", "c")])), "Replace of 'ab' after Fuse"),
        (word_level(decoders.Sequence([decoders.ByteLevel(), decoders.Replace("a", "c")])), "Replace of 'a' after ByteLevel"),
        (word_level(decoders.Sequence([decoders.Fuse(), decoders.ByteFallback()])), "ByteFallback after Fuse"),
        (bpe_with_affixes(), "BPE with end_of_word_suffix='</w>'"),
        (object(), "object has no fast .tokenizers. backend"),
        ("model.gguf", "is a path; load the tokenizer and pass it"),
        (Path("model.gguf"), "is a path; load the tokenizer and pass it"),
    ],
)
def test_what_does_not_concatenate_is_refused_by_name(tokenizer, message):
    with pytest.raises(UnsupportedTokenizer, match=message) as caught:
        Vocabulary.from_tokenizer(tokenizer)
    assert isinstance(caught.value, ConstraintError)


class RankedEncoding:
    """What tiktoken's `Encoding` offers, as far as it is read."""

    n_vocab = 6
    special_tokens_set = frozenset({"<|endoftext|>", "<|fim|>"})

    def encode_single_token(self, name: str) -> int:
        return {"<|endoftext|>": 4, "<|fim|>": 5}[name]

    def decode_single_token_bytes(self, token_id: int) -> bytes:
        return {0: b"a", 1: b"\xff", 2: b"a\x80"}[token_id]


def test_tiktoken_encodings_are_read_as_they_are():
    vocabulary = Vocabulary.from_tokenizer(RankedEncoding())
    assert vocabulary.tokens == (b"a", b"\xff", b"a\x80", None, None, None)
    assert vocabulary.eos_token_ids == (4,)
    assert vocabulary.special_tokens == {"<|endoftext|>": 4, "<|fim|>": 5}


def test_real_tiktoken_agrees():
    tiktoken = pytest.importorskip("tiktoken")
    ranks = {bytes([byte]): byte for byte in range(256)} | {b"ab": 256}
    encoding = tiktoken.Encoding("small", pat_str=r"\S+|\s+", mergeable_ranks=ranks, special_tokens={"<|endoftext|>": 258})
    vocabulary = Vocabulary.from_tokenizer(encoding)
    assert vocabulary.tokens == (*ranks, None, None)
    assert vocabulary.eos_token_ids == (258,)


def test_byte_level_alphabet_is_the_librarys():
    assert set(byte_level_alphabet()) == set(pre_tokenizers.ByteLevel.alphabet())
    assert len(byte_level_alphabet()) == 256


# -- published tokenizers --------------------------------------------------------------------------------------------------


PUBLISHED = ["gpt2", "mistral-v1", "llama-3.2", "qwen3", "tekken-nemo", "gemma", "gpt-oss", "deepseek-v3", "gemma-3"]
PREFIX_SPACE = {"mistral-v1"}
NORMALISED = {"qwen3"}  # to NFC


def load_published(shared_data: Path, name: str) -> Tokenizer:
    path = shared_data / "tokenizers" / name / "tokenizer.json"
    if path.exists():
        return Tokenizer.from_file(str(path))
    return Tokenizer.from_buffer(lzma.decompress(path.with_suffix(".json.xz").read_bytes()))


@pytest.fixture(scope="module", params=PUBLISHED)
def published(request, shared_data) -> tuple[str, Tokenizer, Vocabulary]:
    tokenizer = load_published(shared_data, request.param)
    return request.param, tokenizer, Vocabulary.from_tokenizer(tokenizer)


def golden_encodings(shared_data: Path, name: str) -> list[tuple[str, list[int]]]:
    with lzma.open(shared_data / "tokenizers" / "golden_encodings.jsonl.xz", "rt", encoding="utf-8") as lines:
        cases = [json.loads(line) for line in lines]
    return [(case["text"], case["ids"]) for case in cases if case["tokenizer"] == name]


def test_golden_encodings_spell_their_texts(published, shared_data):
    name, _, vocabulary = published
    cases = golden_encodings(shared_data, name)
    assert len(cases) > 50
    for text, ids in cases:
        if any(special in text for special in vocabulary.special_tokens):
            continue  # encoded as that token, which is never text
        expected = unicodedata.normalize("NFC", text) if name in NORMALISED else text
        if name in PREFIX_SPACE and text:
            expected = " " + expected
        assert joined(vocabulary, ids) == expected.encode(), text


def test_every_text_token_decodes_to_its_bytes(published):
    """`decode` shows what is not UTF-8 as U+FFFD, once per byte or once per run, and Mistral's drops a space in front."""
    name, tokenizer, vocabulary = published
    ids = [i for i, token in enumerate(vocabulary.text_tokens) if token]
    shown = tokenizer.decode_batch([[i] for i in ids], skip_special_tokens=False)
    for i, text in zip(ids, shown, strict=True):
        expected = vocabulary.tokens[i].decode(errors="replace")
        assert text == (expected.removeprefix(" ") if name in PREFIX_SPACE else expected), i


def test_ids_that_are_not_text_are_the_special_ones(published):
    _, tokenizer, vocabulary = published
    not_text = {i for i, token in enumerate(vocabulary.text_tokens) if token is None}
    assert not_text == {i for i, token in tokenizer.get_added_tokens_decoder().items() if token.special}
    assert vocabulary.size == tokenizer.get_vocab_size(with_added_tokens=True)


def test_through_transformers(shared_data):
    transformers = pytest.importorskip("transformers")
    fast = transformers.AutoTokenizer.from_pretrained(str(shared_data / "tokenizers" / "gpt2"))
    vocabulary = Vocabulary.from_tokenizer(fast, size=50304)
    assert vocabulary.eos_token_ids == (50256,)
    assert vocabulary.tokens[:50257] == Vocabulary.from_tokenizer(fast.backend_tokenizer).tokens
    assert vocabulary.size == 50304
