"""What config.json may leave out, older spellings, text parts of models with images, and the families' own refusals."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
import torch

from maskwright.engine.errors import UnsupportedModel, WeightError
from maskwright.engine.models.decoder import load_decoder
from maskwright.engine.models.rope import inverse_frequencies, rope_spec
from maskwright.engine.models.spec import read_spec, spec_from_config

from ..conftest import LATENT, MODELS, SIZES, TinyModel, save_tiny_model
from .test_decoder import BLOCK_SIZE, expected_logits, forward, load, random_tokens

CONFIGS = [*sorted({class_name for class_name, _ in MODELS.values()}), "Mamba2Config"]


@pytest.mark.parametrize("class_name", CONFIGS)
def test_a_key_that_is_left_out_means_what_transformers_takes_it_for(class_name):
    import transformers

    config = getattr(transformers, class_name)()
    text = transformers.AutoModelForCausalLM._model_mapping[type(config)].__name__
    full = {**config.to_dict(), "architectures": [text], "eos_token_id": 1}
    expected, num_left_out = spec_from_config(full), 0
    for name in full.keys() - {"architectures", "eos_token_id", "rope_parameters"}:
        try:
            spec = spec_from_config({key: value for key, value in full.items() if key != name})
        except UnsupportedModel as error:
            assert f'"{name}"' in str(error)
            continue
        num_left_out += 1
        for field in fields(spec):
            if field.name not in ("ropes", "dtype"):
                assert getattr(spec, field.name) == getattr(expected, field.name), (name, field.name)
    assert num_left_out > 10


def test_gemma_3_as_it_was_spelled_first():
    import transformers

    old = {
        **SIZES, "architectures": ["Gemma3ForCausalLM"], "num_hidden_layers": 7, "head_dim": 16, "sliding_window": 6,
        "sliding_window_pattern": 3, "rope_theta": 5e5, "rope_local_base_freq": 300.0, "rope_scaling": {"rope_type": "linear", "factor": 8.0},
    }  # fmt: skip
    new = transformers.Gemma3TextConfig(**{k: v for k, v in old.items() if k != "architectures"}).to_dict()
    one, other = spec_from_config(old), spec_from_config({**new, "architectures": ["Gemma3ForCausalLM"]})
    assert replace(one, ropes=()) == replace(other, ropes=(), dtype=one.dtype)
    for left, right in zip(one.ropes, other.ropes, strict=True):
        assert torch.equal(inverse_frequencies(left)[0], inverse_frequencies(right)[0])


def test_a_missing_number_of_a_family_is_named():
    sizes = {**SIZES, "architectures": ["DeepseekV3ForCausalLM"]}
    with pytest.raises(UnsupportedModel, match=r'"q_lora_rank" is missing, which DeepseekV3ForCausalLM needs'):
        spec_from_config(sizes)


@pytest.mark.parametrize(
    ("architecture", "changes", "message"),
    [
        ("Gemma3ForCausalLM", {"use_bidirectional_attention": True}, "use_bidirectional_attention is for encoders"),
        ("GraniteForCausalLM", {"residual_multiplier": 0}, '"residual_multiplier" is 0; it must be a positive number'),
        ("DeepseekV2ForCausalLM", {**LATENT, "topk_method": "noaux_tc"}, 'topk_method "noaux_tc" is not supported; supported: greedy'),
        ("Ministral3ForCausalLM", {"rope_parameters": {"rope_theta": 1e4}}, "Ministral3ForCausalLM needs llama_4_scaling_beta"),
        ("Qwen2MoeForCausalLM", {"use_sliding_window": True}, '"use_sliding_window" is not supported for Qwen2MoeForCausalLM'),
        ("Gemma2ForCausalLM", {"layer_types": ["ring_attention"]}, 'layer type "ring_attention" is not supported'),
        ("Gemma2ForCausalLM", {"hidden_activation": "relu"}, 'hidden_act "relu" is not supported'),
        ("Gemma3ForConditionalGeneration", {"text_config": {"model_type": "x"}}, 'text_config of model type "x"'),
    ],
)
def test_what_families_refuse(architecture, changes, message):
    with pytest.raises(UnsupportedModel, match=message):
        spec_from_config({**SIZES, "architectures": [architecture], **changes})


def test_longrope_needs_a_number_for_each_pair_of_dimensions():
    rope = {"rope_type": "longrope", "short_factor": [1.0], "long_factor": [1.0], "original_max_position_embeddings": 32}
    spec = spec_from_config({**SIZES, "architectures": ["Phi3ForCausalLM"], "rope_parameters": rope})
    with pytest.raises(UnsupportedModel, match='rope "long_factor" has 1 numbers, 4 are needed'):
        inverse_frequencies(spec.ropes[0])


@pytest.mark.parametrize(
    ("rope", "message"),
    [
        ({"rope_theta": 0.5}, 'rope parameter "rope_theta" is 0.5; it must be a number above 1'),
        ({"rope_theta": float("nan")}, 'rope parameter "rope_theta" is nan'),
        ({"rope_type": "yarn", "factor": -4.0}, 'rope parameter "factor" is -4.0; it must be a number above 0'),
        ({"rope_type": "yarn", "factor": 4.0, "beta_fast": 0}, 'rope parameter "beta_fast" is 0'),
        ({"rope_type": "longrope", "short_factor": ["a"], "long_factor": [1.0]}, 'rope parameter "short_factor" is .a.'),
        ({"rope_type": "longrope", "short_factor": 1.0, "long_factor": [1.0]}, 'rope parameter "short_factor" is 1.0; it must be a list'),
        ({"partial_rotary_factor": 0.4}, "3 dimensions of a head turn; they do so in pairs"),
        ({"partial_rotary_factor": 2.0}, "16 dimensions of a head turn, which has 8"),
    ],
)
def test_a_rotation_that_nothing_turns_by_is_refused(rope, message):
    with pytest.raises(UnsupportedModel, match=message):
        spec_from_config({**SIZES, "architectures": ["LlamaForCausalLM"], "rope_parameters": {"rope_theta": 1e4, **rope}})


def test_no_share_of_a_head_is_one_dimension_short():
    """30 / 44 times 44 is 29.99... in floating point."""
    for head_dim in range(2, 200, 2):
        for dim in range(2, head_dim + 1, 2):
            assert rope_spec({"partial_rotary_factor": dim / head_dim, "max_position_embeddings": 9}, head_dim).dim == dim


@pytest.mark.parametrize("name", ["Gemma3", "Llama4", "Mistral3"])
def test_the_text_part_of_a_model_with_images(name, tmp_path):
    import transformers

    text = {**SIZES, "head_dim": 8}
    if name == "Mistral3":
        text["model_type"] = "mistral"
    if name == "Llama4":
        text |= {"intermediate_size_mlp": 40, "num_local_experts": 2}
    vision = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "image_size": 28}
    vision |= {"patch_size": 14, "model_type": "pixtral", "head_dim": 8} if name == "Mistral3" else {"patch_size": 14}
    if name == "Llama4":
        vision |= dict.fromkeys(("vision_output_dim", "projector_input_dim", "projector_output_dim"), 16)
    config = getattr(transformers, f"{name}Config")(text_config=text, vision_config=vision)
    torch.manual_seed(0)
    model = getattr(transformers, f"{name}ForConditionalGeneration")(config).float().eval()
    model.save_pretrained(tmp_path)
    decoder, cache = load(tmp_path)
    tokens = random_tokens(20)
    logits = forward(decoder, cache, [(tokens, 0, [3, 1, 2, 7, 5])])
    torch.testing.assert_close(logits, expected_logits(TinyModel(tmp_path, model), tokens), atol=2e-4, rtol=2e-4)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", ["gemma2", "mixtral", "deepseek-v3", "cohere", "starcoder2", "llama4"])
def test_half_precision_stays_close(name, dtype, tiny_model):
    model = tiny_model(name)
    decoder = load_decoder(model.folder, read_spec(model.folder), dtype, torch.device("cpu"))
    tokens = random_tokens(12)
    logits = forward(decoder, decoder.allocate_cache(8, BLOCK_SIZE), [(tokens, 0, [1, 2, 3])]).float()
    similarity = torch.nn.functional.cosine_similarity(logits, expected_logits(model, tokens))
    assert similarity.median() > 0.98  # a router may choose otherwise for one token


@pytest.mark.parametrize("saved", [torch.bfloat16, torch.float16])
def test_checkpoints_in_half_precision_load(saved, tmp_path):
    import transformers

    save_tiny_model(tmp_path, *MODELS["gemma2"]).reference.to(saved).save_pretrained(tmp_path)
    reference = transformers.AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float32)
    decoder, cache = load(tmp_path)
    assert read_spec(tmp_path).dtype == str(saved).removeprefix("torch.")
    tokens = random_tokens(12)
    logits = forward(decoder, cache, [(tokens, 0, [1, 2, 3])])
    expected = expected_logits(TinyModel(tmp_path, reference), tokens)
    torch.testing.assert_close(logits, expected, atol=2e-4, rtol=2e-4)


def test_expert_weights_that_are_missing_or_misshaped_are_named(tmp_path):
    from safetensors.torch import load_file, save_file

    save_tiny_model(tmp_path, *MODELS["mixtral"])
    path = tmp_path / "model.safetensors"
    weights = load_file(path)
    name = "model.layers.1.block_sparse_moe.experts.2.w3.weight"
    save_file({**weights, name: weights[name][:-1].contiguous()}, path)
    with pytest.raises(WeightError, match=rf"tensor {name} has shape \[47, 32\], config.json calls for \[48, 32\]"):
        load(tmp_path)
    del weights[name]
    save_file(weights, path)
    with pytest.raises(WeightError, match=f"the checkpoint lacks {name}"):
        load(tmp_path)
