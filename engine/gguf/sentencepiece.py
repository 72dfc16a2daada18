"""SentencePiece: tokenizers of pieces with scores, out of GGUF files and of `tokenizer.model` beside safetensors.

A `tokenizer.model` is a message of sentencepiece_model.proto, of which a dozen fields are read here; pieces have the same types as
tokens in GGUF. Two kinds are built: "bpe", in which pieces that join to a piece are merged, the best first, and "unigram".
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from .special_tokens import TokenType

_UNIGRAM, _BPE = 1, 2  # of TrainerSpec.ModelType


@dataclass(slots=True)
class SentencePieces:
    """What a SentencePiece model says."""

    texts: list[str] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    types: list[int] = field(default_factory=list)
    is_unigram: bool = False
    has_prefix: bool = True  # a space is put before every text
    squeezes: bool = False  # several spaces become one
    normalization: bytes = b""  # a compiled table
    special: dict[str, int] = field(default_factory=lambda: {"unk": 0, "bos": 1, "eos": 2, "pad": -1})  # -1: there is none

    @property
    def vocabulary(self) -> dict[str, int]:
        """The pieces that may come of a text, or control."""
        return {text: i for i, text in enumerate(self.texts) if self.types[i] != TokenType.UNUSED}

    def text_of(self, name: str) -> str | None:
        number = self.id_of(name)
        return None if number is None else self.texts[number]

    def id_of(self, name: str) -> int | None:
        number = self.special[name]
        return number if 0 <= number < len(self.texts) else None


def build(pieces: SentencePieces) -> Any:
    """The tokenizer, without added tokens and what is put around a text."""
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers

    unknown = pieces.id_of("unk")
    if pieces.is_unigram:
        scored = list(zip(pieces.texts, pieces.scores, strict=True))
        backend = Tokenizer(models.Unigram(scored, unk_id=unknown, byte_fallback=TokenType.BYTE in pieces.types))
    else:
        name = None if unknown is None else pieces.texts[unknown]
        merges = _merges(pieces)
        backend = Tokenizer(models.BPE(pieces.vocabulary, merges, unk_token=name, fuse_unk=True, byte_fallback=True))
    table = [normalizers.Precompiled(pieces.normalization)] if pieces.normalization else []
    squeezed = [normalizers.Strip(), normalizers.Replace(Regex(" {2,}"), " ")] if pieces.squeezes else []
    prefix = [normalizers.Prepend("▁")] if pieces.has_prefix else []
    backend.normalizer = normalizers.Sequence([*table, *squeezed, *prefix, normalizers.Replace(" ", "▁")])
    stripped = [decoders.Strip(" ", 1, 0)] if pieces.has_prefix else []
    backend.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), *stripped])
    return backend


def _merges(pieces: SentencePieces) -> list[tuple[str, str]]:
    """Every pair of pieces that makes a piece, those of the best score first."""
    known, kinds = pieces.vocabulary, (TokenType.NORMAL, TokenType.USER_DEFINED)
    order = np.argsort(-np.array(pieces.scores, np.float64), kind="stable").tolist()
    merged = (pieces.texts[i] for i in order if pieces.types[i] in kinds)
    cuts = ((text[:at], text[at:]) for text in merged for at in range(1, len(text)))
    return [(left, right) for left, right in cuts if left in known and right in known]


# ---- files


def read_sentence_pieces(path: Path) -> SentencePieces | None:
    """What a `tokenizer.model` says, None where it is in another format."""
    try:
        return _model(path.read_bytes())
    except (ValueError, struct.error, UnicodeDecodeError):
        return None


def _model(content: bytes) -> SentencePieces:
    found = SentencePieces(squeezes=True)
    for number, value in _fields(content):
        if number == 1:
            _add_piece(found, value)
        elif number == 2:
            _read_trainer(found, value)
        elif number == 3:
            _read_normalizer(found, value)
    if not found.texts:
        raise ValueError("no pieces")
    return found


def _add_piece(found: SentencePieces, message: Any) -> None:
    members = dict(_fields(message))
    found.texts.append(bytes(members.get(1, b"")).decode())
    found.scores.append(struct.unpack("<f", members.get(2, bytes(4)))[0])
    found.types.append(members.get(3, int(TokenType.NORMAL)))


def _read_trainer(found: SentencePieces, message: Any) -> None:
    members = dict(_fields(message))
    kind = members.get(3, _UNIGRAM)
    if kind not in (_UNIGRAM, _BPE):
        raise ValueError("neither unigram nor BPE")
    found.is_unigram = kind == _UNIGRAM
    for number, name in ((40, "unk"), (41, "bos"), (42, "eos"), (43, "pad")):
        value = members.get(number, found.special[name])
        found.special[name] = value - (1 << 64) if value >= 1 << 63 else value


def _read_normalizer(found: SentencePieces, message: Any) -> None:
    members = dict(_fields(message))
    found.normalization = bytes(members.get(2, b""))
    found.has_prefix, found.squeezes = bool(members.get(3, 1)), bool(members.get(4, 1))


def _fields(message: Any) -> Iterator[tuple[int, Any]]:
    """(number, value) of each field of a protobuf message: an int, or bytes. Raises ValueError where it is cut short."""
    if isinstance(message, int):
        raise ValueError("a number, not a message")
    view, place = memoryview(message), 0
    while place < len(view):
        key, place = _varint(view, place)
        kind = key & 7
        if kind == 0:
            value, place = _varint(view, place)
            yield key >> 3, value
            continue
        length, place = _varint(view, place) if kind == 2 else ({1: 8, 5: 4}.get(kind, -1), place)
        if length < 0 or place + length > len(view):
            raise ValueError("cut short, or no message")
        yield key >> 3, bytes(view[place : place + length])
        place += length


def _varint(view: memoryview, place: int) -> tuple[int, int]:
    value, shift = 0, 0
    while shift < 70:
        if place >= len(view):
            raise ValueError("cut short")
        byte = view[place]
        value, place, shift = value | (byte & 127) << shift, place + 1, shift + 7
        if byte < 128:
            return value, place
    raise ValueError("a number without an end")
