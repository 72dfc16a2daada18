"""What the tokens of a published tokenizer mean as bytes.

A tokenizer is read from its parts (model, pre-tokenizer, decoder, added tokens), never from its name. Its decoder is a
chain of small steps; a tokenizer is taken when every step acts on each token alone, because then the text of a sequence
is the concatenation of the texts of its tokens. Steps that look at neighbours (WordPiece and its spaces, CTC, BPE with an
end-of-word suffix) are refused by name. One exception is by contract: what a decoder strips from the two ends of the
whole text (SentencePiece's dummy prefix space) is kept, so `▁` is a space everywhere.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from ..base.errors import ConstraintError


class UnsupportedTokenizer(ConstraintError):
    """The tokenizer's text is not the concatenation of the bytes of its tokens, or its kind is not known."""


class TokenTable(NamedTuple):
    """What a tokenizer says about its ids."""

    tokens: list[bytes | None]  # None: never text
    eos_token_ids: tuple[int, ...]
    special_tokens: dict[str, int]


TextOfToken = Callable[[str], bytes]


def read_tokenizer(tokenizer: Any) -> TokenTable:
    """The token table of a transformers fast tokenizer, a `tokenizers.Tokenizer` or a `tiktoken.Encoding`."""
    if isinstance(tokenizer, str | os.PathLike):
        raise UnsupportedTokenizer(
            f"{os.fspath(tokenizer)!r} is a path; load the tokenizer and pass it, or take LLM(path).vocabulary"
        )
    if hasattr(tokenizer, "decode_single_token_bytes"):
        return _read_tiktoken(tokenizer)
    backend = getattr(tokenizer, "backend_tokenizer", tokenizer)
    if not hasattr(backend, "to_str"):
        raise UnsupportedTokenizer(
            f"{type(tokenizer).__name__} has no fast (tokenizers) backend; load the fast tokenizer of the same model"
        )
    return _read_backend(_Parts(backend), _eos_ids(tokenizer))


def _eos_ids(tokenizer: Any) -> tuple[int, ...]:
    eos = getattr(tokenizer, "eos_token_id", None)
    if eos is None:
        return ()
    return (eos,) if isinstance(eos, int) else tuple(eos)


# --- tokenizers.Tokenizer -------------------------------------------------------------------------------------------


class _Parts:
    """What matters of tokenizer.json, part by part; writing it all out, with its merges, would take seconds."""

    def __init__(self, backend: Any) -> None:
        self.backend = backend
        self.model = _model_spec(backend.model)
        self.decoder = _spec(backend.decoder)
        self.added = {i: (token.content, token.special) for i, token in backend.get_added_tokens_decoder().items()}

    def vocabulary(self) -> dict[str, int]:
        """The model's own tokens."""
        if "vocab" in self.model:  # Unigram: a list of (piece, score)
            return {piece: i for i, (piece, _) in enumerate(self.model["vocab"])}
        return dict(self.backend.get_vocab(with_added_tokens=False))

    def unknown_id(self, vocabulary: dict[str, int]) -> int | None:
        """The id that stands for what the model cannot spell: not the text of its name."""
        unknown = self.model.get("unk_id", self.model.get("unk_token"))
        return vocabulary.get(unknown) if isinstance(unknown, str) else unknown

    def implied_decoder(self) -> dict[str, Any]:
        """Without a decoder the parts that changed the text while encoding tell how to change it back."""
        for part in (self.backend.pre_tokenizer, self.backend.normalizer):
            for step in _leaves(_spec(part)):
                if step["type"] in ("ByteLevel", "Metaspace"):
                    return step
        raise UnsupportedTokenizer(
            f"{self.model['type']} without a decoder: its tokens would be joined by spaces",
            instead="set a ByteLevel, Metaspace or Fuse decoder",
        )


def _spec(part: Any) -> dict[str, Any] | None:
    """A part as it stands in tokenizer.json."""
    try:
        return None if part is None else dict(json.loads(part.__getstate__()))
    except Exception as error:  # what the library raises for parts written in Python
        raise UnsupportedTokenizer(f"{type(part).__name__} cannot be read: {error}") from None


_MODEL_OPTIONS = ("unk_token", "byte_fallback", "continuing_subword_prefix", "end_of_word_suffix")


def _model_spec(model: Any) -> dict[str, Any]:
    kind = type(model).__name__
    if kind == "Unigram":  # has no merges, and its options are to be had in no other way
        return _spec(model) or {}
    return {"type": kind, **{name: getattr(model, name, None) for name in _MODEL_OPTIONS}}


def _read_backend(parts: _Parts, eos_token_ids: tuple[int, ...]) -> TokenTable:
    base_text, added_text = _readers(parts)
    base = parts.vocabulary()
    tokens: list[bytes | None] = [None] * (1 + max([*base.values(), *parts.added], default=-1))
    for i, text in zip(base.values(), base_text.all(list(base)), strict=True):
        tokens[i] = text
    unknown = parts.unknown_id(base)
    if unknown is not None:
        tokens[unknown] = None
    special: dict[str, int] = {}
    for i, (content, is_special) in parts.added.items():
        if is_special:
            tokens[i] = None
            special[content] = i
        elif base.get(content) != i:
            tokens[i] = added_text(content)
    return TokenTable(tokens, eos_token_ids, special)


def _readers(parts: _Parts) -> tuple[_PieceText | _ByteLevelText, TextOfToken]:
    """How to read tokens of the model, and added tokens, which are literal text even where the model's are not."""
    _refuse_word_pieces(parts.model)
    steps = list(_steps(parts.decoder or parts.implied_decoder()))
    kinds = {step["type"] for step in steps}
    replacements = _string_steps(steps)
    if "ByteLevel" in kinds:
        return _ByteLevelText(replacements), str.encode
    byte_fallback = bool(parts.model.get("byte_fallback")) or "ByteFallback" in kinds
    return _PieceText(replacements, byte_fallback), _PieceText(replacements, byte_fallback=False)


def _refuse_word_pieces(model: dict[str, Any]) -> None:
    if model["type"] == "WordPiece":
        raise UnsupportedTokenizer(
            "WordPiece: its decoder puts spaces between tokens, so token bytes do not concatenate"
        )
    for affix in ("continuing_subword_prefix", "end_of_word_suffix"):
        if model.get(affix):
            raise UnsupportedTokenizer(
                f"{model['type']} with {affix}={model[affix]!r}: the text of a token depends on its neighbours"
            )


def _leaves(part: dict[str, Any] | None) -> Iterator[dict[str, Any]]:
    """The leaves of a (nested) Sequence of decoders, pre-tokenizers or normalizers."""
    if part is None:
        return
    children = next((part[key] for key in ("decoders", "pretokenizers", "normalizers") if key in part), None)
    if children is None:
        yield part
        return
    for child in children:
        yield from _leaves(child)


SUPPORTED_STEPS = ("ByteLevel", "ByteFallback", "Metaspace", "Replace", "Fuse", "Strip")


def _steps(decoder: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The decoder's steps that act on single tokens; refuses those that cannot."""
    joined = ""  # the step after which the text is one string
    for step in _leaves(decoder):
        kind = step["type"]
        if kind not in SUPPORTED_STEPS:
            raise UnsupportedTokenizer(f"decoder {kind}: the text of a token depends on its neighbours")
        if kind == "Strip" and joined:
            continue  # it acts on the two ends of the whole text
        if kind == "Replace":
            _check_replace(step, joined)
        elif joined and kind != "Fuse":
            raise UnsupportedTokenizer(f"decoder {kind} after {joined}: it acts on the whole text")
        if kind in ("Fuse", "ByteLevel"):
            joined = kind
        yield step


def _check_replace(step: dict[str, Any], joined: str) -> None:
    pattern = step["pattern"].get("String")
    if pattern is None:
        raise UnsupportedTokenizer(f"decoder Replace with the pattern {step['pattern']}: only plain strings are read")
    if joined == "ByteLevel" or (joined and len(pattern) != 1):
        raise UnsupportedTokenizer(f"decoder Replace of {pattern!r} after {joined}: it may match across tokens")


def _string_steps(steps: list[dict[str, Any]]) -> list[Callable[[str], str]]:
    return [_string_step(step) for step in steps if step["type"] in ("Metaspace", "Replace", "Strip")]


def _string_step(step: dict[str, Any]) -> Callable[[str], str]:
    if step["type"] == "Strip":
        return lambda text: _strip(text, step["content"], step["start"], step["stop"])
    old, new = (
        (step["replacement"], " ") if step["type"] == "Metaspace" else (step["pattern"]["String"], step["content"])
    )
    return lambda text: text.replace(old, new)


def _strip(text: str, char: str, start: int, stop: int) -> str:
    """Up to `start` leading and `stop` trailing copies of `char` removed."""
    leading = min(start, len(text) - len(text.lstrip(char)))
    text = text[leading:]
    trailing = min(stop, len(text) - len(text.rstrip(char)))
    return text[: len(text) - trailing]


class _PieceText:
    """Pieces that are text, apart from `<0xNN>`, which is the byte NN when the model falls back to bytes."""

    def __init__(self, replacements: list[Callable[[str], str]], byte_fallback: bool) -> None:
        self.replacements = replacements
        self.byte_of_piece = {f"<0x{byte:02X}>": bytes([byte]) for byte in range(256)} if byte_fallback else {}

    def all(self, pieces: list[str]) -> list[bytes]:
        return list(map(self, pieces))

    def __call__(self, piece: str) -> bytes:
        byte = self.byte_of_piece.get(piece)
        if byte is not None:
            return byte
        for replace in self.replacements:
            piece = replace(piece)
        return piece.encode()


class _ByteLevelText:
    """Pieces in the alphabet of GPT-2, one character per byte; a piece with any other character is literal text."""

    def __init__(self, replacements: list[Callable[[str], str]]) -> None:
        self.replacements = replacements
        self.latin1_of_char = {ord(char): byte for byte, char in enumerate(byte_level_alphabet())}
        self.alphabet = set(byte_level_alphabet())
        self.byte_of_code = np.full(1 + max(self.latin1_of_char), -1, np.int16)
        self.byte_of_code[list(self.latin1_of_char)] = list(self.latin1_of_char.values())

    def all(self, pieces: list[str]) -> list[bytes]:
        """Of all pieces at once where each is in the alphabet, so that a character is a byte."""
        codes = np.frombuffer("".join(pieces).encode("utf-32-le", "surrogatepass"), np.uint32)
        if self.replacements or codes.max(initial=0) >= self.byte_of_code.size or (self.byte_of_code[codes] < 0).any():
            return list(map(self, pieces))
        text = self.byte_of_code[codes].astype(np.uint8).tobytes()
        ends = list(accumulate(map(len, pieces)))
        return [text[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]

    def __call__(self, piece: str) -> bytes:
        for replace in self.replacements:
            piece = replace(piece)
        if self.alphabet.issuperset(piece):
            return piece.translate(self.latin1_of_char).encode("latin-1")
        return piece.encode()


def byte_level_alphabet() -> list[str]:
    """The character that stands for each byte in byte-level BPE.

    Source: `bytes_to_unicode` of openai/gpt-2 (encoder.py): printable Latin-1 stands for itself, the other bytes take
    the code points from 256 on, in order.
    """
    printable = {*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)}
    free = iter(range(256, 512))
    return [chr(byte) if byte in printable else chr(next(free)) for byte in range(256)]


# --- tiktoken -------------------------------------------------------------------------------------------------------


def _read_tiktoken(encoding: Any) -> TokenTable:
    special = {name: encoding.encode_single_token(name) for name in encoding.special_tokens_set}
    special_ids = set(special.values())
    tokens = [None if i in special_ids else _tiktoken_bytes(encoding, i) for i in range(encoding.n_vocab)]
    eos = special.get("<|endoftext|>")  # what `Encoding.eot_token` means
    return TokenTable(tokens, () if eos is None else (eos,), special)


def _tiktoken_bytes(encoding: Any, token_id: int) -> bytes | None:
    try:
        token: bytes = encoding.decode_single_token_bytes(token_id)
    except KeyError:
        return None  # between the last rank and the first special token
    return token
