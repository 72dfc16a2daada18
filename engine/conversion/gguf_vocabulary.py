"""The tokenizer of a model folder as GGUF says it: tokens with their kinds, merges or scores, special tokens, chat template.

GGUF has names for ways to cut words, and flags where a tokenizer.json has a program. Which name or flag is meant is found by trial:
that whose tokenizer, as it will be read from the file, encodes `probe_texts` as the folder's does. What no trial fits is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np

from ..errors import ConfigError
from ..gguf.files import GgufModel
from ..gguf.pretokenizers import DEFAULT, PRE_TOKENIZERS
from ..gguf.reader import HeldStrings, Value
from ..gguf.sentencepiece import read_sentence_pieces
from ..gguf.special_tokens import TokenType, end_token_ids
from ..gguf.tokenizer import gguf_tokenizer, word_cutter
from ..models.architecture import ModelSpec
from ..models.tokenizer import end_ids, load_backend
from .probe_texts import probe_texts

_BYTE = re.compile(r"<0x[0-9A-F]{2}>")
_FIRST = ("llama-bpe", "qwen2", "gpt-2", "smollm", "tekken", "gpt-4o", "deepseek-v3")  # of names that mean the same
_IDS = {"bos": "bos", "eos": "eos", "unknown": "unk", "padding": "pad"}  # the key's name, that of transformers
_MORE_ENDS = ("eot", "eom")  # keys for ends of a turn that no list of llama.cpp's names


class _Given(NamedTuple):
    """A folder's tokenizer."""

    folder: Path
    backend: Any  # of transformers
    content: Mapping[str, Any]  # tokenizer.json
    size: int  # of the model's vocabulary

    @property
    def model(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.content["model"]
        return found

    def refuse(self, reason: str) -> NoReturn:
        raise ConfigError(f"{self.folder}: its tokenizer cannot be written as GGUF: {reason}")


def vocabulary_of(folder: Path, spec: ModelSpec) -> dict[str, Value]:
    """Keys and values. Raises ConfigError for a tokenizer that no GGUF file describes, ModelFolderError where there is none."""
    backend = load_backend(folder)
    given = _Given(folder, backend, json.loads(backend.backend_tokenizer.to_str()), spec.vocab_size)
    if given.model["type"] != "BPE":
        given.refuse(f"it is of the kind {given.model['type']}; what can be written are merges over bytes, and SentencePiece's")
    texts, types = _tokens(given)
    common: dict[str, Value] = {
        "tokenizer.ggml.tokens": HeldStrings(tuple(texts)),
        "tokenizer.ggml.token_type": np.array(types, np.int32),
        **_special_ids(given),
        **_around(given),
        **_templates(backend.chat_template),
    }
    trials = _byte_level(given) if _is_byte_level(given.content) else _sentence_pieces(given, texts, types)
    for trial in trials:
        metadata = {**common, **trial}
        if _encodes_alike(given, metadata):
            return {**metadata, **_more_ends(given, metadata, end_ids(folder, spec))}
    given.refuse("it cuts texts in a way that GGUF has no name for")


# ---- tokens


def _tokens(given: _Given) -> tuple[list[str], list[int]]:
    """The text and kind of each id; ids without a token are unused."""
    texts = [f"[PAD{number}]" for number in range(given.size)]
    types = [int(TokenType.UNUSED)] * given.size
    unknown, is_byte_level = given.model.get("unk_token"), _is_byte_level(given.content)
    for text, number in given.model["vocab"].items():
        if number < given.size:
            is_byte = not is_byte_level and _BYTE.fullmatch(text) is not None
            kind = TokenType.BYTE if is_byte else TokenType.UNKNOWN if text == unknown else TokenType.NORMAL
            texts[number], types[number] = text, int(kind)
    for token in given.content.get("added_tokens") or ():
        number = token["id"]
        if number < given.size and types[number] != TokenType.UNKNOWN:
            texts[number] = token["content"]
            types[number] = int(TokenType.CONTROL if token["special"] else TokenType.USER_DEFINED)
    return texts, types


def _is_byte_level(content: Mapping[str, Any]) -> bool:
    return any(part.get("type") == "ByteLevel" for part in _steps(content.get("pre_tokenizer")))


def _steps(program: Any) -> Iterator[Mapping[str, Any]]:
    """The parts of a normalizer or pre-tokenizer, which may be sequences of others."""
    if isinstance(program, Mapping):
        inner = program.get("pretokenizers") or program.get("normalizers")
        if inner is None:
            yield program
        for part in inner or ():
            yield from _steps(part)


def _special_ids(given: _Given) -> dict[str, Value]:
    ids = {name: getattr(given.backend, f"{theirs}_token_id") for name, theirs in _IDS.items()}
    return {f"tokenizer.ggml.{name}_token_id": i for name, i in ids.items() if i is not None and i < given.size}


def _around(given: _Given) -> dict[str, Value]:
    """Whether every text begins with the token that begins texts, and ends with the one that ends them."""
    plain, full = (given.backend.encode("a", add_special_tokens=has_special) for has_special in (False, True))
    for begins in (False, True):
        for ends in (False, True):
            bos, eos = given.backend.bos_token_id, given.backend.eos_token_id
            if full == [*([bos] if begins else []), *plain, *([eos] if ends else [])]:
                return {"tokenizer.ggml.add_bos_token": begins, "tokenizer.ggml.add_eos_token": ends}
    given.refuse("it puts other tokens around a text than those that begin and end one")


def _templates(template: str | Mapping[str, str] | None) -> dict[str, Value]:
    if template is None:
        return {}
    if isinstance(template, str):
        return {"tokenizer.chat_template": template}
    named = {"": template.get("default"), ".tool_use": template.get("tool_use")}
    return {f"tokenizer.chat_template{name}": text for name, text in named.items() if text is not None}


def _more_ends(given: _Given, metadata: Mapping[str, Value], wanted: Iterable[int]) -> dict[str, Value]:
    """Keys for the ends of a turn that are not known by their names."""
    found = set(end_token_ids(_as_file(given, metadata)))
    missing = sorted(number for number in set(wanted) - found if number < given.size)
    if "tokenizer.ggml.eos_token_id" not in metadata and missing:
        return {"tokenizer.ggml.eos_token_id": missing[0], **_named(given, missing[1:])}
    return _named(given, missing)


def _named(given: _Given, ids: Sequence[int]) -> dict[str, Value]:
    if len(ids) > len(_MORE_ENDS):
        named = ", ".join(map(str, ids[:5]))
        given.refuse(f"{len(ids)} more tokens end a turn ({named}), and GGUF has {len(_MORE_ENDS)} keys for them")
    return {f"tokenizer.ggml.{name}_token_id": number for name, number in zip(_MORE_ENDS, ids, strict=False)}


# ---- the two kinds


def _byte_level(given: _Given) -> Iterator[dict[str, Value]]:
    merges = [" ".join(merge) if isinstance(merge, list) else merge for merge in given.model["merges"]]
    words = given.backend.backend_tokenizer.pre_tokenizer
    expected = [_pieces(words, text) for text in probe_texts()]
    others = [name for name in PRE_TOKENIZERS if name not in (*_FIRST, DEFAULT)]
    tried = set()
    for name in (*_FIRST, *others, DEFAULT):
        rule = PRE_TOKENIZERS[name]
        if rule in tried or rule.ignores_merges != bool(given.model.get("ignore_merges")):
            continue
        tried.add(rule)
        cutter = word_cutter(rule)
        if all(_pieces(cutter, text) == pieces for text, pieces in zip(probe_texts(), expected, strict=True)):
            yield {"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": name, "tokenizer.ggml.merges": HeldStrings(tuple(merges))}


def _pieces(cutter: Any, text: str) -> list[str]:
    return [piece for piece, _ in cutter.pre_tokenize_str(text)]


def _sentence_pieces(given: _Given, texts: Sequence[str], types: Sequence[int]) -> Iterator[dict[str, Value]]:
    if not given.model.get("byte_fallback"):
        given.refuse("its merges are neither over bytes, nor SentencePiece's")
    scores = np.array(_scores(given, texts, types), np.float32)
    for has_prefix in (True, False):
        yield {"tokenizer.ggml.model": "llama", "tokenizer.ggml.scores": scores, "tokenizer.ggml.add_space_prefix": has_prefix}


def _scores(given: _Given, texts: Sequence[str], types: Sequence[int]) -> list[float]:
    """Those of tokenizer.model, where it is there and has the same pieces; else by merges, of which the first is best."""
    path = given.folder / "tokenizer.model"
    pieces = read_sentence_pieces(path) if path.is_file() else None
    if pieces is not None and not pieces.is_unigram and _has_pieces(pieces.texts, texts, types):
        return [*pieces.scores, *[0.0] * len(texts)][: len(texts)]
    ranks: dict[str, int] = {}
    for rank, merge in enumerate(given.model["merges"]):
        ranks.setdefault("".join(merge if isinstance(merge, list) else merge.split(" ", 1)), rank)
    last = len(given.model["merges"])
    return [float(-ranks.get(text, last + number)) for number, text in enumerate(texts)]


def _has_pieces(pieces: Sequence[str], texts: Sequence[str], types: Sequence[int]) -> bool:
    """Whether all tokens that come of texts are the pieces of the same ids."""
    normal = [number for number, kind in enumerate(types) if kind == TokenType.NORMAL]
    return all(number < len(pieces) and pieces[number] == texts[number] for number in normal)


def _as_file(given: _Given, metadata: Mapping[str, Value]) -> GgufModel:
    return GgufModel(given.folder, metadata, {})


def _encodes_alike(given: _Given, metadata: Mapping[str, Value]) -> bool:
    made = gguf_tokenizer(_as_file(given, metadata))
    encode = {"add_special_tokens": False, "verbose": False}
    return all(made.encode(text, **encode) == given.backend.encode(text, **encode) for text in probe_texts())
