"""A snapshot as a file: safetensors, with everything that is no array as JSON in its metadata.

    metadata   "maskwright": "session", "header": JSON, "digest": BLAKE2b of the header and of all tensors
    tensors    "prompt", "tokens" int64; "logprob", "kept_mass" float64 (NaN where the model was not asked); "num_allowed",
               "num_top", "top_token" int64, "top_logprob", "share" float64; "model.0", "model.1", ... and "draft.0", ...: what
               the caches keep

Nothing in it is executed or decides what is imported. Everything is checked on loading: the container by safetensors, the digest,
and then each value for its type and range; whatever is wrong is a `SessionError`.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, get_args
from uuid import uuid4

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from ...sampling import SamplingParams, TokenLogprob
from ..errors import SessionError
from ..kv_cache.kept_blocks import BlockContent, Kept, KeptLayout
from ..requests.output import FinishReason, TokenRecord
from .saved_parts import REGISTRIES, made_again, saved_parts
from .snapshot import Belonging, KeptCache, Progress, Snapshot

FORMAT = 1
FIRST_OPTIONS = frozenset(  # of sampling, that every file has; those that came later are off where they are missing
    {
        "temperature", "top_k", "top_p", "min_p", "repetition_penalty", "presence_penalty", "frequency_penalty", "logit_bias",
        "banned_token_ids", "seed", "max_tokens", "min_tokens", "stop", "stop_token_ids", "ignore_eos", "include_stop_in_output",
        "logprobs", "n", "best_of", "jump_forward",
    }
)  # fmt: skip
UNTOLD: Mapping[str, Any] = {"adapter": None, **dict.fromkeys(REGISTRIES, ())}  # of what it belongs to: left out where it is this
KIND = "session"
REQUEST_FIELDS = {"priority": int, "user": str, "num_shared_tokens": int, "cache_salt": str, "label": str}
RECORD_ARRAYS = {
    "tokens": torch.int64,
    "logprob": torch.float64,
    "kept_mass": torch.float64,
    "num_allowed": torch.int64,
    "num_top": torch.int64,
    "top_token": torch.int64,
    "top_logprob": torch.float64,
    "share": torch.float64,
}


def save_snapshot(snapshot: Snapshot, path: str | os.PathLike[str]) -> None:
    """Write the file; one that is there is replaced when the new one is complete. Raises OSError."""
    tensors = {"prompt": torch.tensor(snapshot.prompt_token_ids, dtype=torch.int64), **_record_arrays(snapshot.records)}
    cache = snapshot.cache
    for name, kept in zip(("model", "draft"), () if cache is None else cache.content, strict=False):
        tensors |= {f"{name}.{place}": tensor for place, tensor in enumerate(kept)}
    header = json.dumps(_header(snapshot), ensure_ascii=False, sort_keys=True)
    metadata = {"maskwright": KIND, "header": header, "digest": _digest(header, tensors)}
    target = Path(path)
    temporary = target.with_name(f".{target.name}-{uuid4().hex}")
    try:
        save_file(tensors, temporary, metadata)
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def load_snapshot(path: str | os.PathLike[str]) -> Snapshot:
    """The snapshot in a file. Raises OSError, and SessionError for any file that is none or was changed."""
    metadata, tensors = _read(Path(path))
    try:
        if metadata.get("maskwright") != KIND or "header" not in metadata:
            raise SessionError("file", f"{path} is a safetensors file, but not a saved session")
        if _digest(metadata["header"], tensors) != metadata.get("digest"):
            raise SessionError("file", f"{path} has a wrong checksum: it was changed")
        header = json.loads(metadata["header"])
        _require(isinstance(header, dict), "the header is no object")
        if header.get("format") != FORMAT:
            raise SessionError("format", f"{path} has format {header.get('format')!r}, and this version reads {FORMAT}")
        return _snapshot(header, tensors)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RuntimeError, OverflowError) as error:
        if isinstance(error, SessionError):
            raise
        reason = f"{path} has a right checksum over something else ({type(error).__name__}: {error})"
        raise SessionError("content", reason) from None


# ---- the container


def _read(path: Path) -> tuple[Mapping[str, str], dict[str, Tensor]]:
    if not path.is_file():
        raise FileNotFoundError(f"{path}: {'this is no file' if path.exists() else 'no such file'}")
    try:
        with safe_open(path, framework="pt", device="cpu") as file:
            return file.metadata() or {}, {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, ValueError, TypeError, RuntimeError) as error:
        raise SessionError("file", f"{path} is not a safetensors file, or was cut short ({error})") from None


def _digest(header: str, tensors: Mapping[str, Tensor]) -> str:
    digest = hashlib.blake2b(header.encode(), digest_size=32)
    for name in sorted(tensors):
        tensor = tensors[name].contiguous()
        digest.update(json.dumps([name, str(tensor.dtype), list(tensor.shape)]).encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


# ---- what is in it


def _header(snapshot: Snapshot) -> dict[str, Any]:
    cache = snapshot.cache
    return {
        "format": FORMAT,
        "belongs_to": {name: value for name, value in asdict(snapshot.belongs_to).items() if (name, value) not in UNTOLD.items()},
        "sampling": _sampling_header(snapshot.sampling),
        "progress": asdict(snapshot.progress),
        "request": {name: getattr(snapshot, name) for name in REQUEST_FIELDS},
        "cache": None if cache is None else {
            "num_tokens": cache.num_tokens,
            "layout": cache.layout,
            "draft_model": cache.draft_model,
            "draft_layout": cache.draft_layout,
        },
    }  # fmt: skip


def _sampling_header(sampling: SamplingParams) -> dict[str, Any]:
    found = {field.name: getattr(sampling, field.name) for field in fields(sampling)}
    parts = {option: saved_parts(option, parts) for option in REGISTRIES if (parts := found.pop(option))}
    return {**found, "logit_bias": list(sampling.logit_bias.items()), **parts}


def _snapshot(header: dict[str, Any], tensors: dict[str, Tensor]) -> Snapshot:
    prompt = _array(tensors, "prompt", torch.int64).tolist()
    _require(bool(prompt), "the prompt is empty")
    records = _records(tensors)
    request = {"cache_salt": "", **header["request"]}  # it came later
    _require_types(request, REQUEST_FIELDS)
    _require(0 <= request["num_shared_tokens"] <= len(prompt), "num_shared_tokens is out of range")
    return Snapshot(
        belongs_to=_belonging(header["belongs_to"]),
        prompt_token_ids=tuple(prompt),
        sampling=_sampling(header["sampling"], len(records)),
        records=records,
        progress=_progress(header["progress"]),
        cache=_cache(header["cache"], tensors, len(prompt) + len(records)),
        **{name: request[name] for name in REQUEST_FIELDS},
    )


def _belonging(found: dict[str, Any]) -> Belonging:
    found = {"adapter": None, **{option: [] for option in REGISTRIES}, **found}
    types = {"model": str, "tokenizer": str, "constraint": str | None, "adapter": str | None, **dict.fromkeys(REGISTRIES, list)}
    _require_types(found, types)
    return Belonging(**found | {option: tuple(map(str, found[option])) for option in REGISTRIES})


def _sampling(found: dict[str, Any], num_records: int) -> SamplingParams:
    """Its own checks are those of any user's; a SamplingError is a ValueError."""
    known = {field.name for field in fields(SamplingParams)}
    found = {"loop_bound": 0, **found}  # files that were written before there was one
    _require(FIRST_OPTIONS <= set(found) <= known, f"sampling has the fields {', '.join(sorted(found))}")
    parts = {option: made_again(option, found.get(option, [])) for option in REGISTRIES}
    sampling = SamplingParams(**{**found, "logit_bias": dict(found["logit_bias"]), **parts})
    _require(sampling.num_copies == 1 and sampling.seed is not None, "sampling is not that of one output with a seed")
    _require(num_records <= sampling.max_tokens, "there are more tokens than max_tokens")
    return sampling


def _progress(found: dict[str, Any]) -> Progress:
    counts = dict.fromkeys(("num_jumped", "num_drafted", "num_accepted", "num_refused"), int)
    flags = dict.fromkeys(("is_tight", "closed_by_budget", "bans_overridden"), bool)
    _require_types(found, {"num_cached": int | None, **counts, **flags, "finish_reason": str | None, "error": str | None})
    for name in ("num_cached", *counts):
        _require(0 <= (found[name] or 0) < 1 << 31, f"{name} is out of range")
    _require(found["finish_reason"] in (None, *get_args(FinishReason)), "finish_reason is none of those there are")
    return Progress(**found)


def _cache(found: dict[str, Any] | None, tensors: dict[str, Tensor], num_tokens: int) -> KeptCache | None:
    if found is None:
        return None
    _require_types(found, {"num_tokens": int, "layout": list, "draft_model": str | None, "draft_layout": list | None})
    count = found["num_tokens"]
    _require(0 < count < num_tokens, "the cache is of all tokens, or of none")
    layout, draft_layout = _layout(found["layout"]), None
    draft: Kept = ()
    if found["draft_layout"] is not None:
        draft_layout = _layout(found["draft_layout"])
        draft = _kept(tensors, "draft", draft_layout, count)
    content = BlockContent(_kept(tensors, "model", layout, count), draft)
    return KeptCache(count, content, layout, found["draft_model"], draft_layout)


def _layout(found: list[Any]) -> KeptLayout:
    is_state, parts = found
    _require(isinstance(is_state, bool), "is_state is no bool")
    checked = []
    for dtype, shape in parts:
        _require(isinstance(dtype, str) and all(type(size) is int and size >= 0 for size in shape), "a layout is malformed")
        checked.append((dtype, tuple(shape)))
    return KeptLayout(is_state, tuple(checked))


def _kept(tensors: dict[str, Tensor], name: str, layout: KeptLayout, num_tokens: int) -> Kept:
    kept = []
    for place, (dtype, shape) in enumerate(layout.parts):
        tensor = tensors[f"{name}.{place}"]
        wanted = shape if layout.is_state else (num_tokens, *shape)
        fits = str(tensor.dtype) == f"torch.{dtype}" and tuple(tensor.shape) == wanted
        _require(fits, f"{name}.{place} is not what the layout says")
        kept.append(tensor)
    return tuple(kept)


# ---- records


def _record_arrays(records: tuple[TokenRecord, ...]) -> dict[str, Tensor]:
    top = [each for record in records for each in record.top]
    columns: dict[str, list[Any]] = {
        "tokens": [record.token_id for record in records],
        "logprob": [math.nan if record.logprob is None else record.logprob for record in records],
        "kept_mass": [math.nan if record.kept_mass is None else record.kept_mass for record in records],
        "num_allowed": [record.num_allowed for record in records],
        "num_top": [len(record.top) for record in records],
        "top_token": [each.token_id for each in top],
        "top_logprob": [each.logprob for each in top],
        "share": [math.nan if record.share is None else record.share for record in records],
    }
    return {name: torch.tensor(column, dtype=RECORD_ARRAYS[name]) for name, column in columns.items()}


def _records(tensors: dict[str, Tensor]) -> tuple[TokenRecord, ...]:
    if "share" not in tensors:  # files that were written before there was mirostat
        tensors = {**tensors, "share": torch.full_like(tensors["logprob"], math.nan)}
    columns = {name: _array(tensors, name, dtype).tolist() for name, dtype in RECORD_ARRAYS.items()}
    num_top = columns["num_top"]
    _require(all(0 <= count <= len(columns["top_token"]) for count in num_top), "num_top is out of range")
    _require(sum(num_top) == len(columns["top_token"]) == len(columns["top_logprob"]), "num_top does not add up")
    top = map(TokenLogprob, columns["top_token"], columns["top_logprob"])
    rows = zip(*(columns[name] for name in ("tokens", "logprob", "kept_mass", "num_allowed", "num_top", "share")), strict=True)
    return tuple(
        TokenRecord(
            token_id, _known(logprob), _known(kept_mass), num_allowed, tuple(next(top) for _ in range(count)), _known(share)
        )
        for token_id, logprob, kept_mass, num_allowed, count, share in rows
    )


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value


def _array(tensors: dict[str, Tensor], name: str, dtype: torch.dtype) -> Tensor:
    tensor = tensors[name]
    _require(tensor.dtype == dtype and tensor.ndim == 1, f"{name} is no list of {dtype}")
    return tensor


def _require_types(found: dict[str, Any], types: Mapping[str, Any]) -> None:
    _require(isinstance(found, dict) and found.keys() == types.keys(), f"{', '.join(types)} are expected")
    for name, kind in types.items():
        is_bool = isinstance(found[name], bool)
        _require(isinstance(found[name], kind) and is_bool == (kind is bool), f"{name} is a {type(found[name]).__name__}")


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise ValueError(otherwise)
