"""What an adapter_config.json of peft says, checked: what would change what is computed, and is not done, is refused by name."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from ..errors import AdapterError

MOST_BYTES = 4 << 20  # of an adapter_config.json
IGNORED = frozenset({  # they say who made it, how it was trained, or how it was written
    "task_type", "auto_mapping", "peft_version", "base_model_name_or_path", "revision", "inference_mode", "lora_dropout",
    "fan_in_fan_out", "loftq_config", "eva_config", "corda_config", "lora_ga_config", "velora_config", "megatron_config",
    "megatron_core", "runtime_config", "qalora_group_size",
})  # fmt: skip
PARTIAL = frozenset({"exclude_modules", "layers_to_transform", "layers_pattern"})  # the tensors that there are say as much
READ = frozenset({
    "peft_type", "r", "lora_alpha", "use_rslora", "rank_pattern", "alpha_pattern", "target_modules", "init_lora_weights",
})  # fmt: skip
REFUSED = {  # what is refused unless it is None, False or empty, and what to do instead
    "use_dora": "DoRA scales the rows of the whole matrix; merge it into the model",
    "modules_to_save": "it holds whole modules beside the low-rank ones; merge it into the model",
    "lora_bias": "biases beside low-rank matrices are not read; train without them, or merge it into the model",
    "use_qalora": "QALoRA pools what goes in; merge it into the model",
    "use_bdlora": "block-diagonal adapters are not read; merge it into the model",
    "alora_invocation_tokens": "aLoRA takes effect in the middle of a prompt; train a plain LoRA",
    "layer_replication": "layers that come twice are not those of this model",
    "trainable_token_indices": "single rows of the embedding are not adapted; merge it into the model",
    "target_parameters": "parameters outside of linear layers, such as experts, are not adapted; merge it into the model",
    "arrow_config": "routing between adapters is not done; choose one for each request",
    "monteclora_config": "MonteCLoRA has more than two matrices; merge it into the model",
    "kasa_config": "KaSA changes the base weights; merge it into the model",
    "ensure_weight_tying": "tied adapters of embedding and head are not read; merge it into the model",
}
PLAIN_STARTS = (None, True, False, "gaussian", "eva", "orthogonal")  # of training, which leave the base weights what they are
ALL_LINEAR = "all-linear"
_PLAIN = re.compile(r"\^?[\w.-]+")
_MOST_REPETITIONS = 2


@dataclass(frozen=True, slots=True)
class PeftConfig:
    """What of the file decides about numbers."""

    path: Path
    rank: int
    alpha: float
    is_rank_stabilised: bool  # rsLoRA, arXiv:2312.03732
    rank_pattern: Mapping[str, int]
    alpha_pattern: Mapping[str, float]
    targets: tuple[str, ...] | None  # endings of names; None: a pattern, or all linear layers
    is_partial: bool = False  # some layers are left out on purpose

    def scale(self, module: str, rank: int) -> float:
        """By what B A is multiplied for a module whose matrices have this rank."""
        alpha = next((value for key, value in self.alpha_pattern.items() if self._matches(key, module)), self.alpha)
        return alpha / (math.sqrt(rank) if self.is_rank_stabilised else rank)

    def names(self, module: str) -> bool:
        """Whether `target_modules` covers a module, as far as that can be told from a list."""
        return self.targets is None or any(module == name or module.endswith(f".{name}") for name in self.targets)

    def check_rank(self, module: str, rank: int) -> None:
        """Raises AdapterError for a rank that the file does not speak of."""
        if rank not in (self.rank, *self.rank_pattern.values()):
            _fail(self.path, f"the matrices of {module} have rank {rank}, which neither r ({self.rank}) nor rank_pattern names")

    def _matches(self, key: str, module: str) -> bool:
        """As peft matches: an expression for the end of the name, from a point on."""
        if _PLAIN.fullmatch(key):
            name = key.removeprefix("^")
            return module == name or (name == key and module.endswith(f".{name}"))
        return re.match(rf"(.*\.)?({key})$", module) is not None


def read_config(path: Path) -> PeftConfig:
    """The adapter_config.json at `path`. Raises AdapterError, naming what is wrong or not supported."""
    given = _content(path)
    kind = str(given.get("peft_type"))
    if kind.upper() != "LORA":
        _fail(path, f'peft_type "{kind:.40}" is not supported; "LORA" is')
    if given.get("bias", "none") != "none":
        _fail(path, f'bias="{given["bias"]!s:.40}": trained biases are not read; merge it into the model')
    for name, instead in REFUSED.items():
        if given.get(name) not in (None, False, [], {}, ""):
            _fail(path, f"{name} is not supported: {instead}")
    start = given.get("init_lora_weights", True)
    if start not in PLAIN_STARTS:
        _fail(path, f'init_lora_weights="{start!s:.40}" has changed the base weights too; convert it with peft into a plain LoRA')
    for name, value in given.items():
        if name not in IGNORED | PARTIAL | READ | REFUSED.keys() | {"bias"} and value not in (None, False, [], {}, ""):
            _fail(path, f'"{name:.60}" is not known, so it cannot be told what it changes')
    alphas = [(_checked(path, key), value) for key, value in _table(path, given, "alpha_pattern")]
    return PeftConfig(
        path=path,
        rank=_integer(path, "r", given.get("r", 8)),
        alpha=_number(path, "lora_alpha", given.get("lora_alpha", 8)),
        is_rank_stabilised=_flag(path, "use_rslora", given.get("use_rslora", False)),
        rank_pattern={key: _integer(path, f"rank_pattern[{key!r}]", value) for key, value in _table(path, given, "rank_pattern")},
        alpha_pattern={key: _number(path, f"alpha_pattern[{key!r}]", value) for key, value in alphas},
        targets=_targets(path, given.get("target_modules")),
        is_partial=any(given.get(name) for name in PARTIAL) or given.get("layers_to_transform") == 0,
    )


def _content(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > MOST_BYTES:
            _fail(path, f"it has {path.stat().st_size} bytes; at most {MOST_BYTES} are read")
        content = json.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        advice = "an adapter is what peft's save_pretrained writes"
        raise AdapterError(f"{path.parent}: no {path.name} in this folder; {advice}") from None
    except (OSError, ValueError, RecursionError) as error:
        raise AdapterError(f"{path}: cannot be read: {error}") from None
    if not isinstance(content, dict):
        _fail(path, f"it is no JSON object but {type(content).__name__}")
    return content


def _targets(path: Path, given: Any) -> tuple[str, ...] | None:
    """A list of endings; None for a pattern: which modules it means is told by the tensors that there are."""
    if given is None or isinstance(given, str):
        return None
    if not isinstance(given, list) or not all(isinstance(name, str) and name for name in given):
        _fail(path, f"target_modules is a list of names, a pattern or {ALL_LINEAR!r}, not {given!r:.60}")
    return tuple(given)


def _table(path: Path, given: Mapping[str, Any], name: str) -> list[tuple[str, Any]]:
    table = given.get(name) or {}
    if not isinstance(table, dict):
        _fail(path, f"{name} is an object with a number for each name, not {table!r:.60}")
    return list(table.items())


def _checked(path: Path, pattern: str) -> str:
    """A pattern that is matched in bounded time: few repetitions, and none of a group."""
    if _PLAIN.fullmatch(pattern):
        return pattern
    repetitions = re.sub(r"\\.", "", re.sub(r"\[[^]]*\]", "c", pattern))
    if sum(repetitions.count(each) for each in "*+{") > _MOST_REPETITIONS or re.search(r"\)\s*[*+{]", repetitions):
        _fail(path, f"the pattern {pattern!r:.80} repeats too much to be matched safely; write out the names of modules")
    try:
        re.compile(rf"(.*\.)?({pattern})$")
    except (re.error, OverflowError, RecursionError) as error:
        _fail(path, f"the pattern {pattern!r:.80} is no regular expression: {error}")
    return pattern


def _integer(path: Path, name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value < 1 << 20:
        _fail(path, f"{name:.80} is a positive integer, not {value!r:.40}")
    return value


def _number(path: Path, name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e9:
        _fail(path, f"{name:.80} is a number, not {value!r:.40}")
    return float(value)


def _flag(path: Path, name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        _fail(path, f"{name} is true or false, not {value!r:.40}")
    return value


def _fail(path: Path, reason: str) -> NoReturn:
    raise AdapterError(f"{path}: {reason}")
