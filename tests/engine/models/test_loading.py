"""Model folders: sharded and whole, tokenizers and end-of-text ids, and one clear line for everything that is wrong."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from maskwright.engine import Engine, EngineConfig, Request, load
from maskwright.engine.config import limits_of, resolve, resolve_num_blocks
from maskwright.engine.device import threads
from maskwright.engine.device.threads import threads_for, use_threads
from maskwright.engine.errors import ConfigError, ModelFolderError, RequestError, UnsupportedModel, WeightError
from maskwright.engine.models.decoder import load_decoder
from maskwright.engine.models.families import FAMILIES
from maskwright.engine.models.rope import SUPPORTED, inverse_frequencies
from maskwright.engine.models.spec import ARCHITECTURES, WITH_IMAGES, read_spec, spec_from_config
from maskwright.sampling import SamplingParams

from ..conftest import EOS, LATENT, MODELS, run_all, save_tiny_model

CPU = torch.device("cpu")
CHAT_TEMPLATE = (
    "{% if messages | length > 2 %}{{ raise_exception('too many turns') }}{% endif %}"
    "{% for m in messages %}<s>{{ m.role }}:{{ m.content }}{% endfor %}{% if tools %}{{ tools | length }} tools{% endif %}"
    "{% if add_generation_prompt %}<s>assistant:{% endif %}"
)


@pytest.fixture
def folder(tiny_model, tmp_path) -> Path:
    """A copy to break."""
    copy = tmp_path / "model"
    shutil.copytree(tiny_model("llama").folder, copy)
    return copy


def add_tokenizer(folder: Path, chat_template: str | None = None) -> None:
    """A byte-level tokenizer of <pad>, <s>, </s> and 60 bytes, smaller than the model's head of 99."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    pieces = ["<pad>", "<s>", "</s>", *sorted(pre_tokenizers.ByteLevel.alphabet())[:95]]
    backend = Tokenizer(models.BPE({piece: i for i, piece in enumerate(pieces)}, merges=[]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend, bos_token="<s>", eos_token="</s>", pad_token="<pad>", chat_template=chat_template
    )
    tokenizer.save_pretrained(folder)


def load_tiny(folder: Path):
    return load_decoder(folder, read_spec(folder), torch.float32, CPU)


def edit_weights(folder: Path, edit) -> None:
    path = folder / "model.safetensors"
    weights = load_file(path)
    edit(weights)
    save_file(weights, path)


# ---- weights


def test_sharded_checkpoints_load_to_the_same_weights(tmp_path):
    whole = save_tiny_model(tmp_path / "whole", *MODELS["qwen2"])
    sharded = save_tiny_model(tmp_path / "sharded", *MODELS["qwen2"], max_shard_size="20KB")
    assert len(list(sharded.folder.glob("*.safetensors"))) > 2
    first, second = load_tiny(whole.folder), load_tiny(sharded.folder)
    assert torch.equal(first.embedding.weight, second.embedding.weight) and first.head.weight is first.embedding.weight
    for left, right in zip(first.layers, second.layers, strict=True):
        assert torch.equal(left.attention.qkv.weight, right.attention.qkv.weight)
        assert torch.equal(left.mlp.down.weight, right.mlp.down.weight)


def test_redundant_tensors_of_old_checkpoints_are_passed_over(tmp_path):
    model = save_tiny_model(tmp_path, *MODELS["llama-tied-biased"])
    extra = {"lm_head.weight": torch.zeros(99, 32), "model.layers.0.self_attn.rotary_emb.inv_freq": torch.zeros(4)}
    edit_weights(model.folder, lambda weights: weights.update(extra))
    load_tiny(model.folder)


def test_missing_unknown_and_misshaped_weights_are_named(folder):
    name = "model.layers.1.mlp.up_proj.weight"
    edit_weights(folder, lambda weights: weights.update({name: weights[name][:-1].contiguous()}))
    with pytest.raises(WeightError, match=rf"tensor {name} has shape \[47, 32\], config.json calls for \[48, 32\]"):
        load_tiny(folder)
    edit_weights(folder, lambda weights: weights.pop(name))
    with pytest.raises(WeightError, match=f"lacks {name}, which config.json calls for"):
        load_tiny(folder)
    edit_weights(folder, lambda weights: weights.update({name: torch.zeros(48, 32), "surprise": torch.zeros(1)}))
    with pytest.raises(WeightError, match="holds surprise, which LlamaForCausalLM has no place for"):
        load_tiny(folder)


def test_damaged_and_absent_files_are_named(folder):
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    with pytest.raises(ModelFolderError, match=r"model\.safetensors: not a readable safetensors file"):
        load_tiny(folder)
    weights.rename(folder / "pytorch_model.bin")
    with pytest.raises(
        ModelFolderError, match=r"no model\.safetensors .* it holds pytorch_model\.bin, but only safetensors"
    ):
        load_tiny(folder)
    (folder / "model.safetensors.index.json").write_text(
        json.dumps({"weight_map": {"x": "model-00001-of-00002.safetensors"}})
    )
    with pytest.raises(ModelFolderError, match=r"no model-00001-of-00002\.safetensors"):
        load_tiny(folder)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"x": 1}}))
    with pytest.raises(ModelFolderError, match='"weight_map" gives the file of each tensor by its name'):
        load_tiny(folder)


# ---- config.json


def test_folder_and_config_errors(tmp_path):
    with pytest.raises(ModelFolderError, match=r"nowhere: no such model folder"):
        read_spec(tmp_path / "nowhere")
    with pytest.raises(ModelFolderError, match=r"no config\.json in this folder"):
        read_spec(tmp_path)
    (tmp_path / "config.json").write_text('{"a": 1,\n}')
    with pytest.raises(ModelFolderError, match=r"config\.json: not valid JSON: .* line 2"):
        read_spec(tmp_path)


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("adapter_config.json", "this is a LoRA adapter and no model; name its base model"),
    ],
)
def test_what_a_folder_may_not_be(file, message, tmp_path):
    (tmp_path / file).write_text("{}")
    with pytest.raises(UnsupportedModel, match=message):
        read_spec(tmp_path)


@pytest.mark.parametrize("named", [[], None])
def test_the_model_type_says_what_config_json_leaves_open(named, folder, edit_config):
    expected = read_spec(folder)
    edit_config(folder, architectures=named)
    assert read_spec(folder) == expected


def test_model_types_stand_for_their_own_architectures():
    from transformers.models.auto import modeling_auto

    assert {*ARCHITECTURES.values()} == {*FAMILIES, *WITH_IMAGES, "Mamba2ForCausalLM"}
    texts, with_images = modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, modeling_auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES
    for model_type, architecture in ARCHITECTURES.items():
        assert (with_images if architecture in WITH_IMAGES else texts)[model_type] == architecture


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"hidden_size": 8}, '"architectures" is missing, and so is "model_type"'),
        ({"architectures": [], "model_type": 3}, '"architectures" is missing, and so is "model_type"'),
        ({"architectures": "LlamaForCausalLM"}, '"architectures" is a list of names, .* not "LlamaForCausalLM"'),
        ({"architectures": [None]}, r'"architectures" is a list of names, .* not \[null\]'),
        ({"model_type": "nope"}, 'model type "nope" is not supported: it is neither native'),
    ],
)
def test_what_says_nothing_of_the_model_is_named(config, message):
    with pytest.raises(UnsupportedModel, match=message):
        spec_from_config(config)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"architectures": ["MambaForCausalLM"]},
            'architecture "MambaForCausalLM" .* is not supported: it is neither native nor',
        ),
        ({"hidden_size": None}, '"hidden_size" must be a positive integer'),
        ({"hidden_act": "relu"}, 'hidden_act "relu" is not supported'),
        ({"quantization_config": {"quant_method": "aqlm"}}, r'quantised weights \("aqlm"\) are not supported; supported: gptq, awq, compr'),
        ({"text_config": {"quantization_config": {"quant_method": "hqq"}}}, r'quantised weights \("hqq"\) are not supported'),
        ({"quantization_config": [1]}, '"quantization_config" must be an object'),
        ({"rope_parameters": {"rope_type": "dynamic"}}, 'rope type "dynamic" needs the parameter "factor"'),
        ({"num_key_value_heads": 3}, "4 attention heads cannot share 3 key-value heads"),
        ({"num_key_value_heads": "x"}, "\"num_key_value_heads\" must be a positive integer, got 'x'"),
        ({"num_key_value_heads": -1}, '"num_key_value_heads" must be a positive integer, got -1'),
        ({"head_dim": 1.5}, '"head_dim" must be a positive integer, got 1.5'),
        ({"hidden_size": 10**12}, '"hidden_size" is 1000000000000, more than any model has'),
        ({"head_dim": 10**12}, '"head_dim" is 1000000000000, more than any model has'),
        ({"num_hidden_layers": 10**6}, '"num_hidden_layers" is 1000000, more than any model has'),
        ({"rms_norm_eps": None}, '"rms_norm_eps" must be a number from 0 to 1, got None'),
        ({"rms_norm_eps": 2}, '"rms_norm_eps" must be a number from 0 to 1, got 2'),
        ({"rope_parameters": None, "rope_scaling": "linear"}, "how positions turn is an object .* not 'linear'"),
        ({"rope_parameters": {"rope_type": "spiral"}}, 'rope type "spiral" is not supported'),
        ({"rope_parameters": {"rope_type": "longrope"}}, 'rope type "longrope" needs the parameter "short_factor"'),
        ({"rope_parameters": {"rope_type": "linear"}}, 'rope type "linear" needs the parameter "factor"'),
        ({"dtype": "float8_e4m3fn"}, 'dtype "float8_e4m3fn" is not supported'),
    ],
)
def test_what_config_json_may_not_say(changes, message, folder, edit_config):
    edit_config(folder, **changes)
    with pytest.raises(UnsupportedModel, match=message):
        read_spec(folder)


def test_the_older_spelling_of_rope_means_the_same(folder):
    config = json.loads((folder / "config.json").read_text())
    config.pop("rope_parameters")
    for scaling in [
        {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32},
        {"type": "linear", "factor": 2.0},
    ]:
        old = spec_from_config({**config, "rope_theta": 500.0, "rope_scaling": scaling})
        new = spec_from_config({**config, "rope_parameters": {"rope_theta": 500.0, **scaling}})
        assert old.ropes == new.ropes and old.ropes[0].kind in SUPPORTED
        assert torch.equal(inverse_frequencies(old.ropes[0])[0], inverse_frequencies(new.ropes[0])[0])


# ---- settings


def test_auto_is_resolved_to_a_new_config(folder):
    config = EngineConfig(model=folder, device="cpu")
    resolved = resolve(config, read_spec(folder))
    assert (resolved.dtype, resolved.max_model_len, resolved.kv_memory_fraction) == ("float32", 128, 0.3)
    assert config.dtype == "auto" and config.max_model_len is None


def test_blocks_follow_from_memory_and_use(folder):
    resolved = resolve(EngineConfig(model=folder, device="cpu", max_sequences=4), read_spec(folder))
    assert resolve_num_blocks(resolved, bytes_per_block=1000, free_bytes=10**9) == 4 * 8
    few = resolve_num_blocks(resolved, bytes_per_block=1000, free_bytes=10**4)
    assert few == 3 and limits_of(resolved, few).max_model_len == 48
    with pytest.raises(ConfigError, match="max_model_len 64 does not fit into the KV cache of 3 blocks of 16 tokens"):
        limits_of(resolved, few, wanted_len=64)
    with pytest.raises(ConfigError, match="no memory for the KV cache"):
        resolve_num_blocks(resolved, bytes_per_block=1000, free_bytes=100)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"block_size": 0}, "block_size must be an integer of at least 1, got 0"),
        ({"threads": "two"}, "threads must be an integer of at least 1, got 'two'"),
        ({"dtype": "int4"}, 'dtype must be "auto" or one of float32, bfloat16, float16, got "int4"'),
        ({"kv_memory_fraction": 1.5}, r"kv_memory_fraction must be a number in \(0, 1\], got 1.5"),
        ({"max_batch_tokens": 8, "max_sequences": 9}, r"max_batch_tokens \(8\) must be at least max_sequences \(9\)"),
        ({"page_size": 16}, 'unknown engine option "page_size"; known: model, device'),
    ],
)
def test_bad_settings_are_named(options, message, folder):
    with pytest.raises(ConfigError, match=message):
        EngineConfig.from_options({"model": folder, **options})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"device": "tpu"}, 'unknown device "tpu"|device "tpu" is not supported'),
        ({"device": "cuda:99"}, 'device "cuda:99" was asked for, but PyTorch sees'),
        ({"max_model_len": 129}, "max_model_len 129 is longer than the 128 positions"),
    ],
)
def test_settings_that_the_machine_or_model_cannot_meet(options, message, folder):
    with pytest.raises(ConfigError, match=message):
        resolve(EngineConfig(model=folder, **options), read_spec(folder))


def test_threads_hold_within_a_step_only():
    before = torch.get_num_threads()
    with use_threads(before + 1):
        assert torch.get_num_threads() == before + 1
    assert torch.get_num_threads() == before


def test_threads_are_as_many_as_there_are_cores_for_them(monkeypatch):
    monkeypatch.setattr(threads, "usable_cores", lambda: 64.0)
    assert (threads_for(None, 1 << 20), threads_for(None, 1 << 30), threads_for(3, 1 << 20)) == (1, None, 3)
    assert threads_for(None, 1 << 20, is_compiled=True) is None
    monkeypatch.setattr(threads, "usable_cores", lambda: 1.5)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 8)
    assert (threads_for(None, 1 << 30), threads_for(None, 1 << 20, is_compiled=True), threads_for(3, 1 << 30)) == (1, 1, 3)


# ---- the whole folder


def test_load_gives_a_running_engine_with_text(folder, tiny_model):
    add_tokenizer(folder)
    engine, tokenizer, _, config = load(EngineConfig(model=folder, device="cpu", max_sequences=2))
    assert isinstance(engine, Engine) and config.num_kv_blocks == 16
    assert (tokenizer.vocabulary.size, tokenizer.vocabulary.eos_token_ids) == (98, (EOS,))
    prompt = tokenizer.encode("0123")
    output = run_all(
        engine, {0: [Request(prompt_token_ids=prompt, sampling=SamplingParams(temperature=0, max_tokens=8))]}
    )[0]
    expected = tiny_model("llama").greedy(list(prompt), 8)
    assert list(output.token_ids) == expected
    assert output.text == b"".join(tokenizer.vocabulary.text_tokens[t] or b"" for t in expected).decode(
        errors="replace"
    )


@pytest.mark.parametrize(
    ("class_name", "changes", "options"),
    [
        ("Mamba2Config", {"num_heads": 8, "head_dim": 8, "state_size": 6, "n_groups": 2}, {}),
        ("DeepseekV3Config", LATENT, {}),
        ("StableLmConfig", {}, {}),
        ("StableLmConfig", {}, {"kv_layout": "contiguous", "attention": "streaming"}),
        ("Gemma2Config", {"head_dim": 16}, {"kv_layout": "contiguous", "attention": "naive"}),
    ],
)
def test_every_kind_of_model_loads_into_a_running_engine(class_name, changes, options, tmp_path):
    model = save_tiny_model(tmp_path, class_name, {**changes, "eos_token_id": EOS})
    add_tokenizer(tmp_path)
    loaded = load(EngineConfig(model=tmp_path, device="cpu", max_sequences=2, max_model_len=64, **options))
    assert loaded.config.block_size == (64 if options or loaded.spec.is_recurrent else 16)
    assert loaded.config.num_kv_blocks == 2 * 64 // loaded.config.block_size
    prompts = [loaded.tokenizer.encode(text) for text in ("0123", "6", "45")]
    sampling = SamplingParams(temperature=0, max_tokens=8)
    requests = [Request(prompt_token_ids=prompt, sampling=sampling) for prompt in prompts]
    outputs = run_all(loaded.engine, {0: requests})
    assert [list(outputs[i].token_ids) for i in range(3)] == [model.greedy(list(prompt), 8) for prompt in prompts]


def test_end_of_text_ids_are_the_union_of_tokenizer_and_generation_config(folder, edit_config):
    add_tokenizer(folder)
    (folder / "generation_config.json").write_text('{"eos_token_id": [7, 9]}')
    edit_config(folder, eos_token_id=98)  # in the padding of the head
    vocabulary = load(EngineConfig(model=folder, device="cpu")).tokenizer.vocabulary
    assert vocabulary.eos_token_ids == (EOS, 7, 9, 98) and vocabulary.size == 99


def test_chat_goes_through_the_template(folder):
    add_tokenizer(folder, CHAT_TEMPLATE)
    tokenizer = load(EngineConfig(model=folder, device="cpu")).tokenizer
    messages = [{"role": "user", "content": "0?"}]
    assert tokenizer.render_chat(messages, tools=[{"name": "f"}]) == "<s>user:0?1 tools<s>assistant:"
    assert tokenizer.encode_chat(messages)[0] == 1
    with pytest.raises(RequestError, match="chat template rejects these messages: too many turns"):
        tokenizer.render_chat(messages * 3)


def test_a_model_without_template_or_tokenizer_says_so(folder):
    with pytest.raises(ModelFolderError, match=r"no tokenizer\.json in this folder"):
        load(EngineConfig(model=folder, device="cpu"))
    add_tokenizer(folder)
    tokenizer = load(EngineConfig(model=folder, device="cpu")).tokenizer
    with pytest.raises(RequestError, match="no chat template"):
        tokenizer.encode_chat([{"role": "user", "content": "0"}])
    (folder / "tokenizer.json").write_text("{")
    with pytest.raises(ModelFolderError, match="the tokenizer cannot be loaded"):
        load(EngineConfig(model=folder, device="cpu"))
