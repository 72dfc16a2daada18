"""A model folder as one GGUF file: what it computes, how it encodes, what it refuses to say."""

from __future__ import annotations

import json
import logging
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
import typer
from safetensors.torch import load_file
from transformers import PreTrainedTokenizerFast
from typer.testing import CliRunner

from maskwright.cli.quantize import quantize
from maskwright.engine.conversion.gguf_file import write_gguf_of_folder
from maskwright.engine.conversion.gguf_parameters import differences
from maskwright.engine.errors import ConfigError
from maskwright.engine.gguf.files import open_gguf
from maskwright.engine.gguf.pretokenizers import PRE_TOKENIZERS
from maskwright.engine.gguf.sentencepiece import build, read_sentence_pieces
from maskwright.engine.gguf.tokenizer import add_tokens, put_around, word_cutter
from maskwright.engine.models.spec import read_spec
from maskwright.engine.models.tokenizer import load_tokenizer

from ..conftest import SIZES, save_tiny_model
from .llama_cpp import MISSING, LlamaCpp, random_text
from .test_llama_cpp import IN_LLAMA_CPP, compared, loaded
from .test_models import BLOCKS, MODELS, logits
from .test_tokenizer import SPECIAL, byte_level, sentence_piece  # noqa: F401
from .writing import Kind, write_gguf

NOT_WRITTEN = ("granite", "llama4")
WRITTEN = [name for name in MODELS if name not in NOT_WRITTEN]
TEMPLATE = "{% for message in messages %}<|im_start|>{{ message.content }}<|im_end|>{% endfor %}"


def save_bytes(folder: Path, tokenizer: Any, pre: str = "gpt-2", **options: Any) -> Path:
    """The byte-level tokenizer of the tests, with words cut as a name says, into a model's folder."""
    from tokenizers import AddedToken, Tokenizer

    copy = Tokenizer.from_str(tokenizer.to_str())
    content = json.loads(copy.to_str())
    content["model"]["ignore_merges"] = PRE_TOKENIZERS[pre].ignores_merges
    copy = Tokenizer.from_str(json.dumps(content))
    copy.pre_tokenizer = word_cutter(PRE_TOKENIZERS[pre])
    copy.add_tokens([AddedToken(text, normalized=False, special=text != "<think>") for text in SPECIAL])
    options = {"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>", "chat_template": TEMPLATE, **options}
    PreTrainedTokenizerFast(tokenizer_object=copy, **options).save_pretrained(folder)
    return folder


def save_pieces(folder: Path, model: Any, tmp_path: Path, *, has_prefix: bool = True) -> Path:
    """The SentencePiece tokenizer of the tests, as transformers has it: merges, without scores."""
    (tmp_path / "tokenizer.model").write_bytes(model.serialized_model_proto())
    pieces = read_sentence_pieces(tmp_path / "tokenizer.model")
    assert pieces is not None
    pieces.has_prefix, pieces.squeezes = has_prefix, False
    backend = build(pieces)
    add_tokens(backend, pieces.texts, pieces.types)
    put_around(backend, ("<s>", 1), None)
    names = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    PreTrainedTokenizerFast(tokenizer_object=backend, **names).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def pieces(sentence_piece: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[int, Any]:  # noqa: F811
    """The number of pieces, and what saves their tokenizer into a folder."""
    return sentence_piece.get_piece_size(), sentence_piece


def made(tmp_path: Path, name: str, pieces: tuple[int, Any], **changes: Any) -> Path:
    """A small model of a family, with a tokenizer."""
    class_name, given = MODELS[name]
    sizes = {**BLOCKS, "vocab_size": pieces[0] + 5, **given, **changes}  # rows for tokens that there are none of
    return save_pieces(save_tiny_model(tmp_path / "folder", class_name, sizes).folder, pieces[1], tmp_path)


@pytest.mark.parametrize("name", WRITTEN)
def test_a_family_computes_the_same_as_gguf(name: str, pieces: tuple[int, Any], tmp_path: Path) -> None:
    folder, target = made(tmp_path, name, pieces), tmp_path / "model.gguf"
    write_gguf_of_folder(folder, target, "F32")
    expected = logits(folder)
    assert torch.allclose(logits(target), expected, atol=2e-5 * expected.abs().max().item())
    assert differences(read_spec(target), read_spec(folder)) == []


@pytest.mark.parametrize("name", ["llama", "mixtral", "gemma3", "deepseek2"])
def test_tensors_are_those_of_a_converter(name: str, pieces: tuple[int, Any], tmp_path: Path) -> None:
    folder = made(tmp_path, name, pieces)
    write_gguf_of_folder(folder, tmp_path / "found.gguf", "Q8_0")
    found, expected = open_gguf(tmp_path / "found.gguf"), open_gguf(write_gguf(tmp_path / "expected.gguf", folder, Kind.Q8_0))
    assert found.tensors.keys() == expected.tensors.keys()
    for tensor_name, tensor in expected.tensors.items():
        ours = found.tensors[tensor_name]
        assert ours.shape == tensor.shape, tensor_name
        if ours.type == tensor.type:
            assert ours.data.flatten().equal(tensor.data.flatten()), tensor_name
        else:
            assert (ours.type, tensor.type) == ("F32", "F16"), "rows that are no whole blocks stay as they are"


@pytest.mark.parametrize("pre", ["gpt-2", "qwen2", "llama-bpe", "smollm", "tekken", "deepseek-v3", "gpt-4o"])
def test_how_words_are_cut_is_found_by_trial(pre: str, byte_level: Any, tmp_path: Path) -> None:  # noqa: F811
    folder = save_tiny_model(tmp_path / "folder", "LlamaConfig", {**BLOCKS, "vocab_size": 810}).folder
    save_bytes(folder, byte_level, pre)
    write_gguf_of_folder(folder, tmp_path / "model.gguf", "Q8_0")
    model = open_gguf(tmp_path / "model.gguf")
    assert PRE_TOKENIZERS[str(model.metadata["tokenizer.ggml.pre"])] == PRE_TOKENIZERS[pre]
    ours, theirs = (load_tokenizer(path, read_spec(path)) for path in (tmp_path / "model.gguf", folder))
    for seed in range(100):
        text = random_text(seed, tuple(SPECIAL))
        assert ours.encode(text) == theirs.encode(text)
    assert ours.chat_template == TEMPLATE and ours.eos_token == "<|im_end|>"
    assert set(theirs.vocabulary.eos_token_ids) <= set(ours.vocabulary.eos_token_ids)


@pytest.mark.parametrize("has_prefix", [True, False])
def test_pieces_have_scores_by_the_order_of_merges(has_prefix: bool, pieces: tuple[int, Any], tmp_path: Path) -> None:
    folder = save_tiny_model(tmp_path / "folder", "LlamaConfig", {**BLOCKS, "vocab_size": pieces[0]}).folder
    save_pieces(folder, pieces[1], tmp_path, has_prefix=has_prefix)
    write_gguf_of_folder(folder, tmp_path / "model.gguf", "BF16")
    assert open_gguf(tmp_path / "model.gguf").metadata["tokenizer.ggml.add_space_prefix"] is has_prefix
    ours, theirs = (load_tokenizer(path, read_spec(path)) for path in (tmp_path / "model.gguf", folder))
    for seed in range(200):
        text = random_text(seed).replace("\0", "")
        assert ours.encode(text) == theirs.encode(text)
        assert ours.decode(ours.encode(text)) == theirs.decode(theirs.encode(text))


def test_every_end_of_a_turn_has_a_key(byte_level: Any, tmp_path: Path) -> None:  # noqa: F811
    folder = save_tiny_model(tmp_path / "folder", "LlamaConfig", {**BLOCKS, "vocab_size": 804}).folder
    save_bytes(folder, byte_level)
    path = folder / "generation_config.json"
    path.write_text(json.dumps({"eos_token_id": [2, 300, 301]}))
    write_gguf_of_folder(folder, tmp_path / "model.gguf", "F16")
    assert {2, 300, 301} <= set(load_tokenizer(tmp_path / "model.gguf", read_spec(tmp_path / "model.gguf")).vocabulary.eos_token_ids)
    path.write_text(json.dumps({"eos_token_id": [2, 300, 301, 302]}))
    with pytest.raises(ConfigError, match=r"3 more tokens end a turn \(300, 301, 302\), and GGUF has 2 keys"):
        write_gguf_of_folder(folder, tmp_path / "other.gguf", "F16")


def test_a_window_without_a_key_bounds_the_length(pieces: tuple[int, Any], tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = made(tmp_path, "mistral", pieces, sliding_window=24)
    with caplog.at_level(logging.WARNING):
        write_gguf_of_folder(folder, tmp_path / "model.gguf", "F32")
    assert "its layers see 24 tokens; the file is for texts of no more" in caplog.text
    assert read_spec(tmp_path / "model.gguf").max_positions == 24
    expected = logits(folder)
    assert torch.allclose(logits(tmp_path / "model.gguf"), expected, atol=2e-5 * expected.abs().max().item())


def test_numbers_of_16_bits_stay_what_they_are(byte_level: Any, tmp_path: Path) -> None:  # noqa: F811
    folder = save_bytes(save_tiny_model(tmp_path / "folder", "LlamaConfig", {**BLOCKS, "vocab_size": 800}).folder, byte_level)
    write_gguf_of_folder(folder, tmp_path / "model.gguf", "BF16")
    stored = open_gguf(tmp_path / "model.gguf").tensors["blk.1.ffn_down.weight"]
    expected = load_file(folder / "model.safetensors")["model.layers.1.mlp.down_proj.weight"].bfloat16()
    assert stored.type == "BF16" and stored.data.view(torch.bfloat16).equal(expected)


@pytest.mark.parametrize("name", NOT_WRITTEN)
def test_a_family_that_is_not_written_is_named(name: str, pieces: tuple[int, Any], tmp_path: Path) -> None:
    folder = made(tmp_path, name, pieces)
    with pytest.raises(ConfigError, match="ForCausalLM cannot be written as GGUF; what can: LlamaForCausalLM"):
        write_gguf_of_folder(folder, tmp_path / "model.gguf", "F32")


def test_what_cannot_be_said_is_refused_before_anything_is_written(byte_level: Any, tmp_path: Path, edit_config: Any) -> None:  # noqa: F811
    from tokenizers import pre_tokenizers

    folder = save_bytes(save_tiny_model(tmp_path / "folder", "Qwen3MoeConfig", {**BLOCKS, **MODELS["qwen3moe"][1], "vocab_size": 800}).folder, byte_level)
    target = tmp_path / "model.gguf"
    with pytest.raises(ConfigError, match='"Q4_K" cannot be written'):
        write_gguf_of_folder(folder, target, "Q4_K")
    edit_config(folder, norm_topk_prob=False)
    with pytest.raises(ConfigError, match="GGUF cannot say of Qwen3MoeForCausalLM what its configuration does: experts is"):
        write_gguf_of_folder(folder, target, "Q8_0")
    edit_config(folder, norm_topk_prob=True)
    byte_level.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    content = json.loads((folder / "tokenizer.json").read_text())
    content["pre_tokenizer"] = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": False}
    (folder / "tokenizer.json").write_text(json.dumps(content))
    with pytest.raises(ConfigError, match="it cuts texts in a way that GGUF has no name for"):
        write_gguf_of_folder(folder, target, "Q8_0")
    content["model"] = {"type": "WordLevel", "vocab": {"a": 0, "<unk>": 1}, "unk_token": "<unk>"}
    (folder / "tokenizer.json").write_text(json.dumps(content))
    with pytest.raises(ConfigError, match="it is of the kind WordLevel"):
        write_gguf_of_folder(folder, target, "Q8_0")
    assert not target.exists()


def test_the_command_writes_what_the_name_of_the_target_says(byte_level: Any, tmp_path: Path) -> None:  # noqa: F811
    folder = save_bytes(save_tiny_model(tmp_path / "folder", "LlamaConfig", {**BLOCKS, "vocab_size": 800}).folder, byte_level)
    app = typer.Typer()
    app.command()(quantize)
    result = CliRunner().invoke(app, [str(folder), str(tmp_path / "model.gguf"), "--type", "q4_0"])
    assert result.exit_code == 0, result.output
    kinds = {tensor.type for name, tensor in open_gguf(tmp_path / "model.gguf").tensors.items() if "ffn" in name and "norm" not in name}
    assert kinds == {"Q4_0"}
    result = CliRunner().invoke(app, [str(folder), str(tmp_path / "other"), "--type", "Q4_0"])
    assert "name a target that ends with .gguf" in str(result.exception)


@pytest.mark.parametrize("name", WRITTEN)
def test_hyper_parameters_are_those_of_a_converter(name: str, pieces: tuple[int, Any], tmp_path: Path) -> None:
    folder = made(tmp_path, name, pieces)
    write_gguf_of_folder(folder, tmp_path / "found.gguf", "F16")
    expected = open_gguf(write_gguf(tmp_path / "expected.gguf", folder, Kind.F16))
    found = open_gguf(tmp_path / "found.gguf")
    own = {key: value for key, value in expected.metadata.items() if key.startswith(f"{expected.architecture}.")}
    assert {key: found.metadata.get(key) for key in own if own[key] != 0} == {key: own[key] for key in own if own[key] != 0}


@pytest.mark.skipif(find_spec("xllamacpp") is None, reason=MISSING)
@pytest.mark.parametrize("name", WRITTEN)
def test_llama_cpp_computes_the_same(name: str, pieces: tuple[int, Any], tmp_path: Path) -> None:
    likely = {"logit_scale": 1.0} if name in ("command-r", "cohere2") else {}  # so that some tokens are
    likely |= {} if name == "deepseek2" else {"initializer_range": 0.2}  # larger numbers, and its cache in float16 chooses other experts
    folder = made(tmp_path, name, pieces, **IN_LLAMA_CPP.get(name, {}), **likely)
    path = tmp_path / "model.gguf"
    write_gguf_of_folder(folder, path, "F32")
    seed = 3 if name == "exaone4-sliding" else 1  # behind the first prompt it chooses tokens of which the server tells no probabilities
    prompt = torch.randint(3, SIZES["vocab_size"], (20,), generator=torch.Generator().manual_seed(seed)).tolist()
    with LlamaCpp(path, context=128) as llama_cpp:
        found = compared(loaded(path), llama_cpp, prompt, 8)
        text = "Hello World, it's 3.14159 and Straße"
        assert llama_cpp.tokenize(text) == list(load_tokenizer(folder, read_spec(folder)).encode(text))
    assert found.apart < 0.1 and found.margin < 0.1
