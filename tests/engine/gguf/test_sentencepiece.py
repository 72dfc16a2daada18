"""Folders whose tokenizer is a `tokenizer.model`: texts are encoded as the library that made it does."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from maskwright.engine.gguf.sentencepiece import read_sentence_pieces
from maskwright.engine.models.spec import spec_from_config
from maskwright.engine.models.tokenizer import load_tokenizer

from ..conftest import SIZES
from .llama_cpp import random_text

TEXTS = [random_text(seed).replace("\0", "") for seed in range(150)]


@pytest.fixture(scope="module", params=["bpe", "unigram"])
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    """(SentencePiece's own processor, the folder with its tokenizer.model)."""
    import sentencepiece

    folder = tmp_path_factory.mktemp(request.param)
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(random_text(seed).replace("\0", "").replace("\n", " ") for seed in range(1000, 2200)),
        model_prefix=str(folder / "tokenizer"), vocab_size=1200, model_type=request.param, byte_fallback=True, minloglevel=2,
        normalization_rule_name="identity", remove_extra_whitespaces=False, character_coverage=0.98, hard_vocab_limit=False,
    )  # fmt: skip
    processor = sentencepiece.SentencePieceProcessor(model_file=str(folder / "tokenizer.model"))
    config = {**SIZES, "architectures": ["LlamaForCausalLM"], "vocab_size": processor.get_piece_size() + 2}
    (folder / "config.json").write_text(json.dumps(config))
    return processor, folder


def loaded(folder: Path) -> Any:
    return load_tokenizer(folder, spec_from_config(json.loads((folder / "config.json").read_text())))


def test_a_model_file_is_all_that_a_tokenizer_needs(library: tuple[Any, Path]) -> None:
    processor, folder = library
    tokenizer = loaded(folder)
    for text in TEXTS:
        assert list(tokenizer.encode(text, add_special_tokens=False)) == processor.encode(text), text
    assert tokenizer.encode("")[:1] == (1,)
    vocabulary = tokenizer.vocabulary
    assert vocabulary.eos_token_ids == (2,) and vocabulary.special_tokens.keys() >= {"<s>", "</s>", "<unk>"}
    assert vocabulary.tokens[processor.piece_to_id("<0x0A>")] == b"\n"


def test_what_stands_beside_it_is_read(library: tuple[Any, Path], tmp_path: Path) -> None:
    processor, folder = library
    size = processor.get_piece_size()
    for path in folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    token = {"lstrip": False, "normalized": False, "rstrip": False, "single_word": False, "special": True}
    added = {str(size): {"content": "<|im_start|>", **token}, str(size + 1): {"content": "<|im_end|>", **token}}
    config = {"added_tokens_decoder": added, "eos_token": {"content": "<|im_end|>"}, "add_bos_token": False, "add_eos_token": True}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    (tmp_path / "chat_template.jinja").write_text("{{ eos_token }}{{ messages[0].content }}")
    tokenizer = loaded(tmp_path)
    assert tokenizer.encode("<|im_start|>a") == (size, *processor.encode("a"), size + 1)
    assert tokenizer.vocabulary.eos_token_ids == (2, size + 1)
    assert tokenizer.render_chat([{"role": "user", "content": "hi"}]) == "<|im_end|>hi"


def test_damaged_files_are_an_error_or_another_model(library: tuple[Any, Path], tmp_path: Path) -> None:
    content, chance = (library[1] / "tokenizer.model").read_bytes(), random.Random(0)
    path = tmp_path / "tokenizer.model"
    for _ in range(200):
        damaged = bytearray(content)
        for _ in range(chance.choice((1, 5))):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        path.write_bytes(damaged[: chance.randrange(len(damaged))] if chance.random() < 0.5 else damaged)
        found = read_sentence_pieces(path)
        assert found is None or len(found.texts) == len(found.scores) == len(found.types) > 0


def test_another_format_is_left_to_transformers(tmp_path: Path) -> None:
    for content in (b"aGVsbG8= 0\n", b"", b"{}"):  # the first is tiktoken's
        (tmp_path / "tokenizer.model").write_bytes(content)
        assert read_sentence_pieces(tmp_path / "tokenizer.model") is None
