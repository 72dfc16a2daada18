"""What is read of adapters, and what is refused: by the name of the file, the key or the tensor, whatever is in it."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from maskwright.engine.adapters.adapter import Adapter
from maskwright.engine.adapters.modules import takes_adapters, why_no_adapters
from maskwright.engine.adapters.peft_config import read_config
from maskwright.engine.adapters.reading import read_adapter
from maskwright.engine.errors import AdapterError, UnsupportedModel
from maskwright.engine.models.spec import read_spec, spec_from_config

from .making import peft_adapter

Q_A = "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight"
Q_B = Q_A.replace("lora_A", "lora_B")


@pytest.fixture(scope="module")
def sound(tiny_model, tmp_path_factory) -> tuple[Any, Path]:
    """(spec of the model, a folder that is read)"""
    tiny, folder = tiny_model("llama"), tmp_path_factory.mktemp("sound")
    peft_adapter(tiny, folder)
    return read_spec(tiny.folder), folder


@pytest.fixture
def changed(sound, tmp_path) -> Callable[..., Adapter]:
    """Read the sound folder with other keys in its configuration, or other tensors."""
    spec, folder = sound

    def read(tensors: Callable[[dict], Any] | None = None, max_rank: int = 16, **keys: Any) -> Adapter:
        copy = tmp_path / "adapter"
        shutil.copytree(folder, copy, dirs_exist_ok=True)
        path = copy / "adapter_config.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **keys}))
        if tensors is not None:
            held = load_file(copy / "adapter_model.safetensors")
            tensors(held)
            save_file(held, copy / "adapter_model.safetensors")
        return read_adapter(copy, spec, max_rank)

    return read


def test_a_sound_folder_is_read(sound):
    spec, folder = sound
    adapter = read_adapter(folder, spec, 16)
    assert adapter.rank == 4 and len(adapter.parts) == 3 * 4 and adapter.num_parameters == 3 * 4 * (32 * 6 + 16 * 2)
    assert {part.scale for part in adapter.parts.values()} == {2.0}


REFUSED_KEYS: list[tuple[dict[str, Any], str]] = [
    ({"peft_type": "IA3"}, 'peft_type "IA3" is not supported; "LORA" is'),
    ({"peft_type": None}, 'peft_type "None" is not supported'),
    ({"use_dora": True}, "use_dora is not supported: DoRA scales"),
    ({"modules_to_save": ["lm_head"]}, "modules_to_save is not supported"),
    ({"bias": "lora_only"}, 'bias="lora_only": trained biases are not read'),
    ({"lora_bias": True}, "lora_bias is not supported"),
    ({"use_qalora": True}, "use_qalora is not supported"),
    ({"alora_invocation_tokens": [1, 2]}, "alora_invocation_tokens is not supported"),
    ({"layer_replication": [[0, 2]]}, "layer_replication is not supported"),
    ({"trainable_token_indices": [5]}, "trainable_token_indices is not supported"),
    ({"target_parameters": ["mlp.experts.down_proj"]}, "target_parameters is not supported"),
    ({"init_lora_weights": "pissa_niter_4"}, 'init_lora_weights="pissa_niter_4" has changed the base weights'),
    ({"init_lora_weights": "olora"}, 'init_lora_weights="olora" has changed the base weights'),
    ({"something_new": 3}, '"something_new" is not known'),
    ({"r": 0}, "r is a positive integer, not 0"),
    ({"r": True}, "r is a positive integer, not True"),
    ({"r": 5}, "have rank 4, which neither r (5) nor rank_pattern names"),
    ({"rank_pattern": {"q_proj": "x"}}, "rank_pattern['q_proj'] is a positive integer, not 'x'"),
    ({"rank_pattern": [1]}, "rank_pattern is an object with a number for each name"),
    ({"lora_alpha": "8"}, "lora_alpha is a number, not '8'"),
    ({"lora_alpha": float("nan")}, "lora_alpha is a number, not nan"),
    ({"use_rslora": 1}, "use_rslora is true or false, not 1"),
    ({"alpha_pattern": {"(a+)+b": 3}}, "repeats too much to be matched safely"),
    ({"alpha_pattern": {".*.*.*x": 3}}, "repeats too much to be matched safely"),
    ({"alpha_pattern": {"(": 3}}, "is no regular expression"),
    ({"target_modules": 7}, "target_modules is a list of names, a pattern or 'all-linear', not 7"),
    ({"target_modules": ["q_proj", "k_proj", "v_proj", "o_proj", "up_proj"]}, "it lacks the matrices of model.layers.0.mlp.up_proj"),
    ({"target_modules": ["q_proj", "k_proj", "v_proj"]}, "o_proj.lora_A.weight: target_modules does not name its module"),
]  # fmt: skip


@pytest.mark.parametrize(("keys", "message"), REFUSED_KEYS, ids=[message[:40] for _, message in REFUSED_KEYS])
def test_what_a_configuration_asks_for_is_refused_by_name(keys, message, changed):
    with pytest.raises(AdapterError) as caught:
        changed(**keys)
    assert message in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("keys", [{"use_dora": None, "bias": "none"}, {"inference_mode": False, "lora_dropout": 0.1}, {"future_switch": False}, {"init_lora_weights": "gaussian"}])
def test_what_asks_for_nothing_is_read(keys, changed):
    assert changed(**keys).rank == 4


def renamed(old: str, new: str) -> Callable[[dict], Any]:
    return lambda held: held.__setitem__(new, held.pop(old))


def replaced(name: str, tensor: torch.Tensor) -> Callable[[dict], Any]:
    return lambda held: held.__setitem__(name, tensor)


EXPERT = "base_model.model.model.layers.0.block_sparse_moe.experts.1.w1.lora_A.weight"
REFUSED_TENSORS: list[tuple[str, Callable[[dict], Any], str]] = [
    ("shape of A", replaced(Q_A, torch.zeros(4, 31)), "it has shape [4, 31], and the model's matrix calls for [rank, 32]"),
    ("shape of B", replaced(Q_B, torch.zeros(33, 4)), "it has shape [33, 4], and the model's matrix calls for [32, rank]"),
    ("no rank", replaced(Q_A, torch.zeros(0, 32)), "it has shape [0, 32]"),
    ("dimensions", replaced(Q_A, torch.zeros(4, 32, 1)), "it has shape [4, 32, 1]"),
    ("ranks differ", replaced(Q_B, torch.zeros(32, 5)), f"{Q_B}: it has rank 5, and {Q_A} has 4"),
    ("no B", lambda held: held.pop(Q_B), f"{Q_A}: the other matrix of model.layers.0.self_attn.q_proj is missing"),
    ("not finite", replaced(Q_A, torch.full((4, 32), torch.nan)), f"{Q_A}: some of it are no finite numbers"),
    ("integers", replaced(Q_A, torch.zeros(4, 32, dtype=torch.int32)), f"{Q_A} is of type int32"),
    ("no such layer", renamed(Q_A, Q_A.replace("layers.0", "layers.9")), "this model has no such linear layer"),
    ("no such module", renamed(Q_A, Q_A.replace("q_proj", "z_q_proj")), "target_modules does not name its module"),
    ("magnitudes", replaced(Q_A.replace("lora_A.weight", "lora_magnitude_vector"), torch.zeros(32)), "DoRA is not supported"),
    ("embedding", replaced("base_model.model.model.embed_tokens.lora_embedding_A", torch.zeros(4, 9)), "adapters of the embedding are not supported"),
    ("biases", replaced(Q_B.replace("weight", "bias"), torch.zeros(32)), "trained biases are not supported"),
    ("base", replaced("base_model.model.lm_head.base_layer.weight", torch.zeros(2, 2)), "save it with save_embedding_layers=False"),
    ("whole module", replaced("base_model.model.lm_head.modules_to_save.weight", torch.zeros(2, 2)), "whole modules beside the low-rank ones"),
    ("stranger", replaced("x", torch.zeros(2)), "tensor x: it is no matrix of a LoRA adapter"),
    ("twice", replaced(Q_A.removeprefix("base_model.model."), torch.zeros(4, 32)), "it is for the same matrix as"),
]  # fmt: skip


@pytest.mark.parametrize(("tensors", "message"), [row[1:] for row in REFUSED_TENSORS], ids=[row[0] for row in REFUSED_TENSORS])
def test_tensors_that_do_not_fit_are_refused_by_name(tensors, message, changed):
    with pytest.raises(AdapterError) as caught:
        changed(tensors)
    assert message in str(caught.value) and "adapter_model.safetensors: tensor " in str(caught.value)


def test_experts_and_embeddings_are_refused_by_name(tiny_model, sound, tmp_path):
    _, folder = sound
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    config = tmp_path / "adapter_config.json"
    for name, message in ((EXPERT, "adapters of the experts of a mixture are not supported"), ("base_model.model.model.embed_tokens.lora_A.weight", "adapters of the embedding are not supported")):
        config.write_text(json.dumps({**json.loads(config.read_text()), "target_modules": ".*"}))
        save_file({name: torch.zeros(4, 32)}, tmp_path / "adapter_model.safetensors")
        with pytest.raises(AdapterError, match=message):
            read_adapter(tmp_path, read_spec(tiny_model("mixtral").folder), 16)


def test_the_rank_has_a_bound(changed):
    with pytest.raises(AdapterError, match="it has rank 4, and max_adapter_rank is 3; raise that"):
        changed(max_rank=3)


def test_folders_that_are_none(sound, tmp_path):
    spec, folder = sound
    for path, message in ((tmp_path / "nowhere", "there is no such folder"), (tmp_path, "no adapter_config.json in this folder")):
        with pytest.raises(AdapterError, match=message):
            read_adapter(path, spec, 16)
    with pytest.raises(AdapterError, match="named by its path, not by None"):
        read_adapter(None, spec, 16)
    (tmp_path / "file").write_text("x")
    with pytest.raises(AdapterError, match="this is a file"):
        read_adapter(tmp_path / "file", spec, 16)
    shutil.copy(folder / "adapter_config.json", tmp_path)
    with pytest.raises(AdapterError, match=r"no adapter_model.safetensors in this folder$"):
        read_adapter(tmp_path, spec, 16)
    (tmp_path / "adapter_model.bin").write_bytes(b"x")
    with pytest.raises(AdapterError, match=r"adapter_model.bin is not read, it may run code"):
        read_adapter(tmp_path, spec, 16)
    (tmp_path / "adapter_model.safetensors").write_bytes(b"\xff" * 40)
    with pytest.raises(AdapterError, match="not a readable safetensors file"):
        read_adapter(tmp_path, spec, 16)
    for content in ("{", "[]", '"x"', "[" * 100_000, "\udcff"):
        (tmp_path / "adapter_config.json").write_bytes(content.encode(errors="surrogateescape"))
        with pytest.raises(AdapterError, match=r"adapter_config\.json"):
            read_adapter(tmp_path, spec, 16)
    with pytest.raises(UnsupportedModel, match='this is a LoRA adapter and no model; name its base model'):
        read_spec(folder)


def test_damaged_files_are_errors_of_ours(sound, tmp_path):
    """Whatever bytes are changed: either it is read, or an AdapterError says why not."""
    spec, folder = sound
    rng = random.Random(0)
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    outcomes = set()
    for name in ("adapter_model.safetensors", "adapter_config.json"):
        whole = (folder / name).read_bytes()
        for _ in range(150):
            damaged = bytearray(whole)
            for _ in range(rng.randrange(1, 6)):
                damaged[rng.randrange(min(len(damaged), 4000))] = rng.randrange(256)
            (tmp_path / name).write_bytes(damaged[: rng.choice([len(damaged), rng.randrange(len(damaged))])])
            try:
                read_adapter(tmp_path, spec, 16)
                outcomes.add("read")
            except AdapterError:
                outcomes.add("refused")
        (tmp_path / name).write_bytes(whole)
    assert outcomes == {"read", "refused"}


def test_scales_are_those_of_peft(tmp_path):
    """For plain names, names from the start, and expressions: the first pattern that matches counts."""
    peft = pytest.importorskip("peft")
    from peft.utils.other import get_pattern_key

    patterns = {"self_attn.q_proj": 3, "^model.layers.1.mlp.up_proj": 5, r"layers\.[02]\.mlp\.(up|down)_proj": 7, "proj": 11, "model.layers.0.*": 13, "k_proj": 17}
    (tmp_path / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA", "r": 4, "lora_alpha": 8, "alpha_pattern": patterns, "use_rslora": True}))
    config = read_config(tmp_path / "adapter_config.json")
    names = [f"model.layers.{layer}.{module}" for layer in range(3) for module in ("self_attn.q_proj", "self_attn.k_proj", "mlp.up_proj", "mlp.down_proj", "mlp.gate")]
    for name in names:
        expected = patterns.get(get_pattern_key(patterns.keys(), name), 8) / 2
        assert config.scale(name, 4) == expected, name
    assert peft.__version__


def test_a_fingerprint_is_that_of_what_is_added(changed, sound):
    spec, folder = sound
    same = read_adapter(folder, spec, 16).fingerprint
    assert changed(task_type="CAUSAL_LM").fingerprint == same
    assert changed(lora_alpha=9).fingerprint != same
    assert changed(lambda held: held[Q_B].view(-1)[0].add_(1)).fingerprint != same


def test_models_of_transformers_take_none(sound):
    """Their products are not ours."""
    spec = spec_from_config({"architectures": ["GPTNeoXForCausalLM"], "model_type": "gpt_neox"})
    assert takes_adapters(sound[0]) and not takes_adapters(spec)
    why = "adapters are for native families, and GPTNeoXForCausalLM is computed by transformers; merge it into the model"
    assert why_no_adapters(spec) == why
