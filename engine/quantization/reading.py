"""The one reading of "quantization_config" in config.json."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NoReturn

from ...kernels.quantized.rounding import Rounding
from ..errors import UnsupportedModel
from .awq import Awq
from .bitsandbytes import Int8, Nf4
from .compressed import Granularity, MxFloats, PackedIntegers, PlainCodes
from .float8 import Float8
from .gptq import Gptq
from .plan import Pattern, Plan, Rule, compiled
from .scheme import Scheme

Config = Mapping[str, Any]
EVERYTHING = (Pattern("all"),)


def read_plan(config: Config) -> Plan:
    """What "quantization_config" says. Raises UnsupportedModel, naming the method or key and what is supported."""
    method = config.get("quant_method")
    if method is None and (config.get("load_in_4bit") or config.get("load_in_8bit")):
        method = "bitsandbytes"
    if not isinstance(method, str) or method not in _METHODS:
        _refuse(f'quantised weights ("{method}") are not supported; supported: {", ".join(_METHODS)}')
    return Plan(method, tuple(_METHODS[method](config)))


# ---- methods


def _gptq(config: Config) -> Iterable[Rule]:
    layout = config.get("checkpoint_format", config.get("format", "gptq"))
    if layout not in ("gptq", "gptq_v2"):
        _refuse(f'a GPTQ checkpoint in the layout "{layout}" is not supported; supported: gptq, gptq_v2')

    if config.get("pack_dtype", "int32") not in (None, "int32"):
        _refuse(f'"pack_dtype" is {config["pack_dtype"]!r}; supported: int32')

    def scheme(values: Config) -> Gptq:
        return Gptq(_choice(values, "bits", (2, 3, 4, 8)), _group_size(values), layout == "gptq")

    for name, changes in _mapping(config, "dynamic").items():  # patterns of GPTQModel; "-:" excludes
        expression = name.removeprefix("+:").removeprefix("-:")
        patterns = _patterns([expression], "regex")
        excluded = name.startswith("-:") or changes is False
        yield Rule(patterns, None if excluded else scheme({**config, **_mapping({name: changes}, name)}))
    inner = config.get("modules_in_block_to_quantize")
    if inner:
        groups = inner if isinstance(inner, list) else [inner]
        flat = [name for group in groups for name in (group if isinstance(group, list) else [group])]
        names = _names({"modules_in_block_to_quantize": flat}, "modules_in_block_to_quantize")
        yield Rule(_patterns([*names, "lm_head"], "part"), scheme(config))
    else:
        yield Rule(EVERYTHING, scheme(config))


def _awq(config: Config) -> Iterable[Rule]:
    version = str(config.get("version", "gemm")).lower()
    if version != "gemm":
        _refuse(f'AWQ in the layout "{version}" is not supported; supported: gemm')
    width = config.get("bits", config.get("w_bit", 4))
    _choice({"bits": width}, "bits", (4,))
    size = _group_size(config if "group_size" in config else {"group_size": config.get("q_group_size", 128)})
    yield from _except(config, "modules_to_not_convert", Awq(size))


def _fp8(config: Config) -> Iterable[Rule]:
    block = None if config.get("weight_block_size") is None else _pair(config, "weight_block_size")
    activations = config.get("activation_scheme", "dynamic")
    if activations not in ("dynamic", "static"):
        _refuse(f'"activation_scheme" is "{activations}"; supported: dynamic, static')
    if config.get("scale_fmt") not in (None, "float"):
        _refuse(f'"scale_fmt" is "{config["scale_fmt"]}"; supported: float')
    is_static = activations == "static"
    inputs = Rounding("float8", None if block is None or is_static else block[1])
    for key in ("modules_to_not_convert", "ignored_layers"):
        yield Rule(_patterns(_names(config, key), "part"), None)
    yield Rule(EVERYTHING, Float8(block, inputs, has_input_scale=is_static))


def _modelopt(config: Config) -> Iterable[Rule]:
    """TensorRT Model Optimizer's FP8: a scale for each matrix, one for its inputs."""
    inner = _mapping(config, "quantization") or config  # hf_quant_config.json has it one level down
    algorithm = inner.get("quant_algo")
    if algorithm != "FP8":
        _refuse(f'"quant_algo" of modelopt is "{algorithm}"; supported: FP8')
    for key in ("ignore", "exclude_modules"):
        yield Rule(tuple(pattern for name in _names(inner, key) for pattern in _wildcard(name)), None)
    yield Rule(EVERYTHING, Float8(None, Rounding("float8"), has_input_scale=True))


def _wildcard(name: str) -> tuple[Pattern, ...]:
    """A name, or one in which "*" stands for anything."""
    if "*" not in name:
        return _patterns([name], "part")
    return _patterns([".*".join(map(re.escape, name.split("*"))) + "$"], "regex")


def _fbgemm(config: Config) -> Iterable[Rule]:
    ceiling = config.get("activation_scale_ub")
    if ceiling is not None and not (isinstance(ceiling, int | float) and 0 < ceiling < math.inf):
        _refuse(f'"activation_scale_ub" is {ceiling!r}; it must be a positive number')
    inputs = Rounding("float8", ceiling=ceiling)
    yield from _except(config, "modules_to_not_convert", Float8(None, inputs))


def _bitsandbytes(config: Config) -> Iterable[Rule]:
    if config.get("load_in_8bit"):
        scheme: Scheme = Int8()
    elif config.get("bnb_4bit_quant_type", "fp4") == "nf4":
        scheme = Nf4()
    else:
        _refuse('bitsandbytes with "bnb_4bit_quant_type" "fp4" is not supported; supported: nf4, and 8 bits')
    if config.get("bnb_4bit_quant_storage") not in (None, "uint8"):
        _refuse(f'"bnb_4bit_quant_storage" is "{config["bnb_4bit_quant_storage"]}"; supported: uint8')
    yield from _except(config, "llm_int8_skip_modules", scheme)


def _compressed(config: Config) -> Iterable[Rule]:
    if _mapping(config, "transform_config") or _mapping(config, "sparsity_config").get("format") not in (None, "dense"):
        _refuse('"transform_config" and "sparsity_config" of compressed-tensors are not supported')
    yield Rule(tuple(pattern for name in _names(config, "ignore") for pattern in _target(name)), None)
    groups = _mapping(config, "config_groups")
    ordered: list[tuple[tuple[Pattern, ...], Scheme]] = []
    for name, group in groups.items():
        if not isinstance(group, Mapping) or not isinstance(group.get("weights"), Mapping):
            _refuse(f'group "{name}" of "config_groups" does not say how weights are stored')
        form = group.get("format") or config.get("format")
        if group.get("output_activations") and not all(name.endswith(_CACHED) for name in _names(group, "targets")):
            _refuse(f'"output_activations" of group "{name}" are not supported; those of keys and values are passed over')
        targets = tuple(pattern for target in _names(group, "targets") for pattern in _target(target))
        ordered.append((targets, _compressed_scheme(str(form), group["weights"], _mapping(group, "input_activations"))))
    for kind in ("name", "regex", "all"):  # as there: names come before expressions, and these before classes
        for patterns, scheme in ordered:
            yield Rule(tuple(pattern for pattern in patterns if pattern.kind == kind), scheme)


def _target(name: str) -> tuple[Pattern, ...]:
    if name == "Linear":
        return EVERYTHING
    return _patterns([name.removeprefix("re:")], "regex" if name.startswith("re:") else "name")


_CACHED = ("k_proj", "v_proj")  # whose outputs are keys and values
_FORMATS = ("pack-quantized", "int-quantized", "float-quantized", "naive-quantized", "mxfp4-pack-quantized")


def _compressed_scheme(form: str, weights: Config, inputs: Config) -> Scheme:
    if form not in _FORMATS:
        _refuse(f'the format "{form}" of compressed-tensors is not supported; supported: {", ".join(_FORMATS)}')
    if weights.get("dynamic"):
        _refuse('weights with "dynamic" scales mean nothing')
    kind = _choice(weights, "type", ("int", "float"), default="int")
    if form == "mxfp4-pack-quantized":
        if inputs:
            _refuse('"input_activations" beside mxfp4 are not supported; weights alone are')
        _choice(weights, "num_bits", (4,))
        return MxFloats()
    granularity, is_symmetric = _granularity(weights), bool(weights.get("symmetric", True))
    rounding = None if not inputs else _rounding(inputs)
    if form == "pack-quantized":
        if not is_symmetric and granularity.strategy not in ("group", "channel"):
            _refuse(f'zero points with "strategy" "{granularity.strategy}" are not supported; supported: channel, group')
        if kind != "int":
            _refuse('"type" is "float" with the format "pack-quantized"; supported: int')
        if rounding is not None and not inputs.get("dynamic"):
            _refuse('static "input_activations" with the format "pack-quantized" are not supported')
        return PackedIntegers(_choice(weights, "num_bits", tuple(range(2, 9))), granularity, is_symmetric, rounding)
    _choice(weights, "num_bits", (8,))
    has_input_scale = bool(inputs) and not inputs.get("dynamic")
    return PlainCodes("int8" if kind == "int" else "float8", granularity, is_symmetric, rounding, has_input_scale)


def _granularity(weights: Config) -> Granularity:
    size = weights.get("group_size")
    strategy = weights.get("strategy") or ("tensor" if size is None else "channel" if size == -1 else "group")
    if strategy == "group":
        return Granularity("group", (1, _positive(weights, "group_size")))
    if strategy == "block":
        return Granularity("block", _pair(weights, "block_structure"))
    if strategy == "tensor":
        return Granularity("tensor")
    if strategy == "channel":
        return Granularity("channel")
    _refuse(f'"strategy" of weights is "{strategy}"; supported: tensor, channel, group, block')


def _rounding(inputs: Config) -> Rounding:
    """Dynamic scales are each row's own, also where a whole batch is to share one: nothing may depend on who else is in it."""
    _choice(inputs, "num_bits", (8,))
    kind = _choice(inputs, "type", ("int", "float"), default="int")
    strategy, is_dynamic = inputs.get("strategy") or "tensor", inputs.get("dynamic", False)
    if is_dynamic not in (True, False):
        _refuse(f'"dynamic" of input_activations is {is_dynamic!r}; supported: true, false')
    if strategy not in (("token", "tensor", "group") if is_dynamic else ("tensor",)):
        _refuse(f'"strategy" of input_activations is "{strategy}"; supported: token, tensor and group if dynamic, else tensor')
    group = _positive(inputs, "group_size") if strategy == "group" else None
    return Rounding("int8" if kind == "int" else "float8", group, bool(inputs.get("symmetric", True)))


_METHODS: Mapping[Any, Callable[[Config], Iterable[Rule]]] = {
    "gptq": _gptq,
    "awq": _awq,
    "compressed-tensors": _compressed,
    "fp8": _fp8,
    "fbgemm_fp8": _fbgemm,
    "modelopt": _modelopt,
    "bitsandbytes": _bitsandbytes,
    "mxfp4": lambda config: (),  # the experts of gpt-oss, which are all that it stores so: `gpt_oss.py`
}

# ---- values


def _except(config: Config, key: str, scheme: Scheme) -> Iterable[Rule]:
    yield Rule(_patterns(_names(config, key), "part"), None)
    yield Rule(EVERYTHING, scheme)


def _patterns(names: Iterable[str], kind: Any) -> tuple[Pattern, ...]:
    found = tuple(Pattern(kind, name) for name in names)
    for pattern in found:
        if pattern.kind == "regex":
            compiled(pattern.text)
    return found


def _names(config: Config, key: str) -> Sequence[str]:
    names = config.get(key) or []
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        _refuse(f'"{key}" must be a list of names')
    return names


def _mapping(config: Config, key: str) -> Mapping[str, Any]:
    found = config.get(key) or {}
    if not isinstance(found, Mapping):
        _refuse(f'"{key}" must be an object')
    return found


def _choice(config: Config, key: str, choices: tuple[Any, ...], default: Any = None) -> Any:
    value = config.get(key, default)
    if isinstance(value, bool) or value not in choices:
        _refuse(f'"{key}" is {value!r}; supported: {", ".join(map(str, choices))}')
    return value


def _positive(config: Config, key: str) -> int:
    value = config.get(key)
    if type(value) is not int or value < 1:
        _refuse(f'"{key}" is {value!r}; it must be a positive integer')
    return value


def _group_size(config: Config) -> int:
    return -1 if config.get("group_size", 128) == -1 else _positive({"group_size": 128, **config}, "group_size")


def _pair(config: Config, key: str) -> tuple[int, int]:
    value = config.get(key)
    if not (isinstance(value, list) and len(value) == 2 and all(type(size) is int and size > 0 for size in value)):
        _refuse(f'"{key}" is {value!r}; it must be two positive integers')
    return value[0], value[1]


def _refuse(reason: str) -> NoReturn:
    raise UnsupportedModel(f"config.json: quantization_config: {reason}")
