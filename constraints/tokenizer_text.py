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
from typing import Any, NamedTuple

from .errors import ConstraintError


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
            f"{os.fspath(tokenizer)!r} is a path (GGUF files are not supported yet); load it and pass the tokenizer"
        )
    if hasattr(tokenizer, "decode_single_token_bytes"):
        return _read_tiktoken(tokenizer)
    backend = getattr(tokenizer, "backend_tokenizer", tokenizer)
    if not hasattr(backend, "to_str"):
        raise UnsupportedTokenizer(
            f"{type(tokenizer).__name__} has no fast (tokenizers) backend; load the fast tokenizer of the same model"
        )
    return _read_backend(json.loads(backend.to_str()), _eos_ids(tokenizer))


def _eos_ids(tokenizer: Any) -> tuple[int, ...]:
    eos = getattr(tokenizer, "eos_token_id", None)
    if eos is None:
        return ()
    return (eos,) if isinstance(eos, int) else tuple(eos)


# --- tokenizer.json -------------------------------------------------------------------------------------------------


def _read_backend(spec: dict[str, Any], eos_token_ids: tuple[int, ...]) -> TokenTable:
    model = spec["model"]
    base_text, added_text = _readers(spec)
    base = _base_vocabulary(model)
    added = spec.get("added_tokens") or []
    size = 1 + max([*base.values(), *(token["id"] for token in added)], default=-1)
    tokens: list[bytes | None] = [None] * size
    for piece, i in base.items():
        tokens[i] = base_text(piece)
    unknown = _unknown_id(model, base)
    if unknown is not None:
        tokens[unknown] = None
    special: dict[str, int] = {}
    for token in added:
        i, content = token["id"], token["content"]
        if token["special"]:
            tokens[i] = None
            special[content] = i
        elif base.get(content) != i:
            tokens[i] = added_text(content)
    return TokenTable(tokens, eos_token_ids, special)


def _base_vocabulary(model: dict[str, Any]) -> dict[str, int]:
    vocabulary = model["vocab"]
    if isinstance(vocabulary, dict):
        return vocabulary
    return {piece: i for i, (piece, _) in enumerate(vocabulary)}  # Unigram: a list of (piece, score)


def _unknown_id(model: dict[str, Any], base: dict[str, int]) -> int | None:
    """The id that stands for what the model cannot spell: not the text of its name."""
    if model["type"] == "Unigram":
        return model.get("unk_id")
    return base.get(model.get("unk_token"))  # type: ignore[arg-type]


def _readers(spec: dict[str, Any]) -> tuple[TextOfToken, TextOfToken]:
    """How to read tokens of the model, and added tokens, which are literal text even where the model's are not."""
    model = spec["model"]
    _refuse_word_pieces(model)
    steps = list(_steps(spec.get("decoder") or _decoder_implied_by(spec)))
    byte_fallback = bool(model.get("byte_fallback")) or any(step["type"] == "ByteFallback" for step in steps)
    replacements = _string_steps(steps)
    if any(step["type"] == "ByteLevel" for step in steps):
        return _ByteLevelText(replacements), str.encode
    text = _PieceText(replacements, byte_fallback)
    return text, _PieceText(replacements, byte_fallback=False)


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


def _decoder_implied_by(spec: dict[str, Any]) -> dict[str, Any]:
    """Without a decoder the parts that changed the text while encoding tell how to change it back."""
    for part in (spec.get("pre_tokenizer"), spec.get("normalizer")):
        for step in _parts(part):
            if step["type"] in ("ByteLevel", "Metaspace"):
                return step
    raise UnsupportedTokenizer(
        f"{spec['model']['type']} without a decoder: tokens would be joined by spaces; set a ByteLevel, Metaspace or Fuse decoder"
    )


def _parts(part: dict[str, Any] | None) -> Iterator[dict[str, Any]]:
    """The leaves of a (nested) Sequence of decoders, pre-tokenizers or normalizers."""
    if part is None:
        return
    children = next((part[key] for key in ("decoders", "pretokenizers", "normalizers") if key in part), None)
    if children is None:
        yield part
        return
    for child in children:
        yield from _parts(child)


SUPPORTED_STEPS = ("ByteLevel", "ByteFallback", "Metaspace", "Replace", "Fuse", "Strip")


def _steps(decoder: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The decoder's steps that act on single tokens; refuses those that cannot."""
    fused = False
    for step in _parts(decoder):
        kind = step["type"]
        if kind not in SUPPORTED_STEPS:
            raise UnsupportedTokenizer(f"decoder {kind}: the text of a token depends on its neighbours")
        if kind == "Replace" and "String" not in step["pattern"]:
            raise UnsupportedTokenizer(
                f"decoder Replace with the pattern {step['pattern']}: only literal strings are read"
            )
        if kind == "Replace" and fused and len(step["pattern"]["String"]) != 1:
            raise UnsupportedTokenizer(
                f"decoder Replace of {step['pattern']['String']!r} after Fuse: it may match across tokens"
            )
        if kind == "Strip" and fused:
            continue  # it acts on the two ends of the whole text
        fused = fused or kind in ("Fuse", "ByteLevel")
        yield step


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
        return encoding.decode_single_token_bytes(token_id)  # type: ignore[no-any-return]
    except KeyError:
        return None  # ids between the last rank and the first special token
