"""Tokenizers out of GGUF files encode as what they were made of does, and as llama.cpp does."""

from __future__ import annotations

import json
import re
import unicodedata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import gguf
import pytest
import torch

from maskwright.constraints import Compiler
from maskwright.constraints.front_ends.regex.regex import Regex
from maskwright.constraints.vocabulary.vocabulary import Vocabulary
from maskwright.engine import EngineConfig, Request, load
from maskwright.engine.errors import ModelFolderError, RequestError, UnsupportedModel
from maskwright.engine.gguf.files import open_gguf
from maskwright.engine.gguf.pretokenizers import PRE_TOKENIZERS
from maskwright.engine.gguf.special_tokens import TokenType, end_token_ids
from maskwright.engine.gguf.tokenizer import gguf_tokenizer
from maskwright.engine.models.spec import read_spec
from maskwright.engine.models.tokenizer import load_tokenizer
from maskwright.sampling import SamplingParams

from ..conftest import run_all
from .llama_cpp import MISSING, LlamaCpp, random_text
from .writing import add_key

TEXTS = [random_text(seed) for seed in range(150)]
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>"]
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = (int(kind) for kind in TokenType)


@pytest.fixture(scope="session")
def byte_level() -> Any:
    """A byte-level tokenizer of 800 tokens, trained on texts of many scripts."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=800, special_tokens=SPECIAL, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    tokenizer.train_from_iterator([random_text(seed) for seed in range(1000, 2200)], trainer)
    return tokenizer


@pytest.fixture(scope="session")
def sentence_piece(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A SentencePiece model of 700 pieces, those of all bytes among them."""
    import sentencepiece

    prefix = tmp_path_factory.mktemp("pieces") / "model"
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(text.replace("\n", " ") for seed in range(1000, 2200) if (text := random_text(seed).replace("\0", ""))),
        model_prefix=str(prefix), vocab_size=1200, model_type="bpe", byte_fallback=True, normalization_rule_name="identity",
        remove_extra_whitespaces=False, split_digits=True, character_coverage=0.98, minloglevel=2, allow_whitespace_only_pieces=True,
        hard_vocab_limit=False,
    )  # fmt: skip
    return sentencepiece.SentencePieceProcessor(model_file=f"{prefix}.model")


def write(path: Path, keys: dict[str, Any]) -> Path:
    """A Llama of one small layer around a tokenizer, so that llama.cpp runs it."""
    size, hidden, generator = len(keys["tokens"]), 32, torch.Generator().manual_seed(0)
    writer = gguf.GGUFWriter(path, "llama")
    shape = {"block_count": 1, "context_length": 512, "embedding_length": hidden, "feed_forward_length": 32, "attention.head_count": 2}
    shape |= {"attention.layer_norm_rms_epsilon": 1e-5, "rope.dimension_count": 16}
    for key, value in shape.items():
        add_key(writer, f"llama.{key}", value)
    for key, value in keys.items():
        add_key(writer, f"tokenizer.{key}" if key.startswith("chat") else f"tokenizer.ggml.{key}", value)
    names = ["attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"]
    matrices = {"token_embd": (size, hidden), **{f"blk.0.{name}": (hidden, hidden) for name in names}}
    for name, shape_of in matrices.items():
        writer.add_tensor(f"{name}.weight", torch.randn(shape_of, generator=generator).numpy())
    for name in ("output_norm", "blk.0.attn_norm", "blk.0.ffn_norm"):
        writer.add_tensor(f"{name}.weight", torch.ones(hidden).numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def of_byte_level(tokenizer: Any, cut: str | None, **keys: Any) -> dict[str, Any]:
    content = json.loads(tokenizer.to_str())["model"]
    tokens = [token for token, _ in sorted(content["vocab"].items(), key=lambda item: item[1])]
    merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in content["merges"]]
    kinds = {"<think>": USER_DEFINED, **dict.fromkeys(SPECIAL[:3], CONTROL)}
    types = [kinds.get(token, NORMAL) for token in tokens]
    found = {"model": "gpt2", "pre": cut, "tokens": tokens, "token_type": types, "merges": merges, "bos_token_id": 0, "eos_token_id": 0}
    return {**found, **keys}


def of_sentence_piece(model: Any, **keys: Any) -> dict[str, Any]:
    ids = range(model.get_piece_size())
    kinds = [
        BYTE if model.is_byte(i) else UNKNOWN if model.is_unknown(i) else CONTROL if model.is_control(i) else NORMAL for i in ids
    ]
    found = {
        "model": "llama", "tokens": [model.id_to_piece(i) for i in ids], "scores": [model.get_score(i) for i in ids],
        "token_type": kinds, "bos_token_id": 1, "eos_token_id": 2, "unknown_token_id": 0,
    }  # fmt: skip
    return {**found, **keys}


def test_a_byte_level_tokenizer_encodes_as_what_it_was_made_of(byte_level: Any, tmp_path: Path) -> None:
    made = gguf_tokenizer(open_gguf(write(tmp_path / "model.gguf", of_byte_level(byte_level, "gpt-2"))))
    for text in TEXTS:
        ids = byte_level.encode(text).ids
        assert made.encode(text) == ids and made.decode(ids) == text
    assert Vocabulary.from_tokenizer(made).tokens[10:] == Vocabulary.from_tokenizer(byte_level).tokens[10:]


@pytest.mark.parametrize("has_prefix", [True, False])
def test_sentence_pieces_encode_as_the_library_does(has_prefix: bool, sentence_piece: Any, tmp_path: Path) -> None:
    keys = of_sentence_piece(sentence_piece, add_space_prefix=has_prefix, add_bos_token=False)
    made = gguf_tokenizer(open_gguf(write(tmp_path / "model.gguf", keys)))
    for text in TEXTS:
        expected = sentence_piece.encode(text.replace("\0", ""))  # which puts a space before every text
        first = sentence_piece.encode("")[:1]
        if has_prefix:
            assert made.encode(text.replace("\0", "")) == first + expected
    vocabulary = Vocabulary.from_tokenizer(made)
    assert vocabulary.tokens[sentence_piece.piece_to_id("▁")] == b" "
    assert vocabulary.tokens[sentence_piece.piece_to_id("<0x0A>")] == b"\n"


needs_llama_cpp = pytest.mark.skipif(find_spec("xllamacpp") is None, reason=MISSING)


def is_cased_beyond_ascii(char: str) -> bool:
    return ord(char) > 127 and unicodedata.category(char) in ("Lu", "Lt", "Ll", "Mn", "Mc", "Me", "Lm")


def is_wide_space(char: str) -> bool:
    return ord(char) > 127 and char.isspace()


# Where llama.cpp comes only near to the models' own expressions, and these are what is read here.
APART = {**dict.fromkeys(("tekken", "gpt-4o", "llama4", "minimax-m2"), is_cased_beyond_ascii), "deepseek-coder": is_wide_space}


@needs_llama_cpp
@pytest.mark.parametrize("pre", [*PRE_TOKENIZERS, None])
def test_every_way_to_cut_words_is_that_of_llama_cpp(pre: str | None, byte_level: Any, tmp_path: Path) -> None:
    path = write(tmp_path / "model.gguf", of_byte_level(byte_level, pre))
    mine = load_tokenizer(path, read_spec(path))
    with LlamaCpp(path) as theirs:
        texts = [random_text(seed, tuple(SPECIAL)) for seed in range(120)]
        is_apart = APART.get(pre or "", lambda char: False)
        for text in (text for text in texts if not any(map(is_apart, text))):
            assert list(mine.encode(text)) == theirs.tokenize(text), text


@needs_llama_cpp
@pytest.mark.parametrize("has_prefix", [True, False])
def test_sentence_pieces_are_those_of_llama_cpp(has_prefix: bool, sentence_piece: Any, tmp_path: Path) -> None:
    path = write(tmp_path / "model.gguf", of_sentence_piece(sentence_piece, add_space_prefix=has_prefix))
    mine = load_tokenizer(path, read_spec(path))
    with LlamaCpp(path) as theirs:
        for text in [random_text(seed, ("<s>", "</s>")) for seed in range(300)]:
            assert list(mine.encode(text)) == theirs.tokenize(text), text


def test_tokens_that_end_a_turn_are_found_by_key_and_by_name(byte_level: Any, tmp_path: Path) -> None:
    path = write(tmp_path / "model.gguf", of_byte_level(byte_level, "gpt-2", eos_token_id=40, eot_token_id=41))
    assert end_token_ids(open_gguf(path)) == [0, 2, 40, 41]
    assert load_tokenizer(path, read_spec(path)).vocabulary.eos_token_ids == (0, 2, 40, 41)


def test_a_file_is_all_that_an_engine_needs(byte_level: Any, tmp_path: Path) -> None:
    path = write(tmp_path / "model.gguf", of_byte_level(byte_level, "gpt-2", chat_template="{{ messages[0].content }}"))
    loaded = load(EngineConfig(model=path, max_model_len=64))
    constraint = Compiler(loaded.tokenizer.vocabulary).compile(Regex("[a-z]{3} [0-9]{2}"))
    prompt = loaded.tokenizer.encode_chat([{"role": "user", "content": "hello"}])
    request = Request(prompt_token_ids=prompt, sampling=SamplingParams(max_tokens=20, temperature=0.0), constraint=constraint)
    output = run_all(loaded.engine, {0: [request]})[0]
    assert re.fullmatch("[a-z]{3} [0-9]{2}", output.text)
    footprint = loaded.engine.footprint
    assert 0 < footprint.weight_bytes < path.stat().st_size and footprint.cache_bytes > 0


def test_unused_tokens_are_never_text(byte_level: Any, tmp_path: Path) -> None:
    keys = of_byte_level(byte_level, "gpt-2")
    keys["tokens"] += ["[PAD1]", "[PAD2]", "end"]
    keys["token_type"] += [UNUSED, UNUSED, NORMAL]
    path = write(tmp_path / "model.gguf", keys)
    assert load_tokenizer(path, read_spec(path)).vocabulary.text_tokens[-3:] == (None, None, b"end")


def test_a_chat_template_and_one_for_tools(byte_level: Any, tmp_path: Path) -> None:
    plain, tools = "{{ messages[0].content }}", "{{ tools | length }} tools"
    keys = {"chat_template": plain, "chat_template.tool_use": tools}
    path = write(tmp_path / "model.gguf", of_byte_level(byte_level, "gpt-2", **keys))
    tokenizer = load_tokenizer(path, read_spec(path))
    assert tokenizer.render_chat([{"role": "user", "content": "hi"}]) == "hi"
    assert tokenizer.render_chat([{"role": "user", "content": "hi"}], tools=[{"type": "function"}]) == "1 tools"


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{% for i in range(99999) %}{% for j in range(99999) %}{% set x = j %}{% endfor %}{% endfor %}", "it takes longer than 0.2 s"),
        ("{% for i in range(99999) %}{% for j in range(99999) %}x{% endfor %}{% endfor %}", "it takes longer than 0.2 s"),
        ("{% macro again(i) %}{{ again(i) }}{% endmacro %}{{ again(1) }}", "recursion"),
        ("{{ 'x' * 5000 }}", "it writes 5000 characters, and 4000 are allowed"),
        ("{% for i in range(10 ** 9) %}x{% endfor %}", "Range too big"),
        ("{{ ''.__class__.__mro__ }}{{ cycler.__init__.__globals__ }}", "unsafe|undefined"),
    ],
)
def test_a_hostile_template_ends_as_a_request_that_is_refused(
    template: str, message: str, byte_level: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("maskwright.engine.models.tokenizer.TEMPLATE_SECONDS", 0.2)
    monkeypatch.setattr("maskwright.engine.models.tokenizer.TEMPLATE_CHARACTERS", 4000)
    path = write(tmp_path / "model.gguf", of_byte_level(byte_level, "gpt-2", chat_template=template))
    with pytest.raises(RequestError, match=message):
        load_tokenizer(path, read_spec(path)).render_chat([{"role": "user", "content": "hi"}])


CONVERSATION = [
    {"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"},
    {"role": "user", "content": "Bye"},
]  # fmt: skip
BUILT_IN = {
    "<|im_start|>": "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nHello<|im_end|>\n"
    "<|im_start|>user\nBye<|im_end|>\n<|im_start|>assistant\n",
    "<|start_header_id|>": "BOS<|start_header_id|>system<|end_header_id|>\n\nBe brief.<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nHi"
    "<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\nHello<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nBye<|eot_id|>"
    "<|start_header_id|>assistant<|end_header_id|>\n\n",
    "<start_of_turn>": "BOS<start_of_turn>user\nBe brief.\n\nHi<end_of_turn>\n<start_of_turn>model\nHello<end_of_turn>\n"
    "<start_of_turn>user\nBye<end_of_turn>\n<start_of_turn>model\n",
    "<｜Assistant｜>": "BOSBe brief.<｜User｜>Hi<｜Assistant｜>Hello<｜end▁of▁sentence｜><｜User｜>Bye<｜Assistant｜>",
    "[INST]": "BOS[INST] Be brief.\n\nHi[/INST] HelloEOS[INST] Bye[/INST]",
}


@pytest.mark.parametrize("token", [*BUILT_IN, None])
def test_a_model_without_a_template_gets_that_of_its_family_and_says_so(
    token: str | None, byte_level: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    keys = of_byte_level(byte_level, "gpt-2", bos_token_id=800, eos_token_id=801)
    keys["tokens"] = [text.replace("<|im_start|>", "<|other|>") for text in keys["tokens"]] + ["BOS", "EOS", token or "<|nothing|>"]
    keys["token_type"] += [CONTROL] * 3
    path = write(tmp_path / "model.gguf", keys)
    tokenizer = load_tokenizer(path, read_spec(path))
    assert tokenizer.has_chat_template == (token is not None) == ("has no chat template" in caplog.text)
    if token is not None:
        assert tokenizer.render_chat(CONVERSATION) == BUILT_IN[token]


@pytest.mark.parametrize(
    ("keys", "error", "message"),
    [
        ({"model": "bert"}, UnsupportedModel, 'tokenizer "bert" is not supported; supported: gpt2, llama'),
        ({"pre": "nope"}, UnsupportedModel, 'pre-tokenizer "nope" is not supported; supported: default'),
        ({"merges": None}, ModelFolderError, "no merges in this file"),
        ({"model": "llama"}, ModelFolderError, "scores is not a number for each of 800 tokens"),
        ({"token_type": [1, 2]}, ModelFolderError, "token_type is not a number for each of 800 tokens"),
    ],
)
def test_what_a_tokenizer_lacks_is_named(keys: dict[str, Any], error: type[Exception], message: str, byte_level: Any, tmp_path: Path) -> None:
    path = write(tmp_path / "model.gguf", of_byte_level(byte_level, "gpt-2", **keys))
    with pytest.raises(error, match=message):
        gguf_tokenizer(open_gguf(path))
