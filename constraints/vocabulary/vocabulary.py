"""The vocabulary: what every token id means as bytes, and which ids are never text."""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .byte_order import concatenated, sorted_ids
from .tokenizer_text import read_tokenizer

TOKEN_OPEN, TOKEN_CLOSE = b"\xff", b"\xfe"  # no UTF-8 text has them: they spell special tokens in automata


@dataclass(frozen=True, eq=False, repr=False)
class Vocabulary:
    """The token table of a model: token id -> bytes. Immutable, hashable, picklable; equal when the fingerprints are.

    A token is *text* when it has at least one byte and is neither an EOS id nor a special token. The text of a token
    sequence is the concatenation of the bytes of its tokens.

    Args:
        tokens: the bytes of every id in [0, V); None (and b"") for ids that are never text, such as padding rows of
            the model head.
        eos_token_ids: ids that end the output. They are never text, even if they have bytes.
        special_tokens: name -> id of control tokens. They are never text, even if they have bytes.

    Raises:
        TypeError: something is of the wrong type. ValueError: an id is outside [0, V).
    """

    tokens: Sequence[bytes | None]  # these two are kept as tuples
    eos_token_ids: Sequence[int] = ()
    special_tokens: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        tokens = _checked_tokens(self.tokens)
        eos = _checked_eos(self.eos_token_ids, len(tokens))
        special = _checked_special(self.special_tokens, len(tokens))
        object.__setattr__(self, "tokens", tokens)
        object.__setattr__(self, "eos_token_ids", eos)
        object.__setattr__(self, "special_tokens", MappingProxyType(special))

    @classmethod
    def from_tokenizer(
        cls, tokenizer: Any, eos_token_ids: Iterable[int] | None = None, size: int | None = None
    ) -> Vocabulary:
        """The exact vocabulary of a tokenizer.

        Args:
            tokenizer: a fast tokenizer of transformers, a `tokenizers.Tokenizer` or a `tiktoken.Encoding`.
            eos_token_ids: more ids that end the output, beside those the tokenizer names. (A bare
                `tokenizers.Tokenizer` names none.)
            size: V, when the model head is wider than the tokenizer (padding ids are never text), or narrower (then
                only special tokens may lie beyond it).

        Raises:
            UnsupportedTokenizer: the text of its tokens is not the concatenation of their bytes, or cannot be known.
        """
        table = read_tokenizer(tokenizer)
        eos = {*table.eos_token_ids, *(eos_token_ids or ())}
        tokens, special = _resized(table.tokens, table.special_tokens, eos, size)
        return cls(tokens, eos_token_ids=eos, special_tokens=special)  # type: ignore[arg-type]

    @property
    def size(self) -> int:
        """V: the number of ids, text or not, which is the width of masks and logits."""
        return len(self.tokens)

    @cached_property
    def text_tokens(self) -> tuple[bytes | None, ...]:
        """The bytes of every id that is text, None for all others (EOS, special, b"", padding)."""
        tokens = [token or None for token in self.tokens]
        for token_id in (*self.eos_token_ids, *self.special_tokens.values()):
            tokens[token_id] = None
        return tuple(tokens)

    @cached_property
    def lexicographic_ids(self) -> NDArray[np.int32]:
        """The ids of the text tokens by their bytes, duplicates by id. int32 [number of text tokens], read-only."""
        offsets, data = concatenated(self.text_tokens)
        return _read_only(sorted_ids(np.flatnonzero(np.diff(offsets)).astype(np.int32), offsets, data))

    @cached_property
    def spellings(self) -> tuple[bytes | None, ...]:
        """The bytes that automata read for every id: those of a text token; of a special token its id between two bytes
        that no text has.

        None for EOS, b"", padding, and for text with the byte 0xFF, which is never part of UTF-8.
        """
        spelled = list(self.text_tokens)
        if TOKEN_OPEN in b"".join(filter(None, spelled)):
            spelled = [None if token is not None and TOKEN_OPEN in token else token for token in spelled]
        for token_id in set(self.special_tokens.values()) - set(self.eos_token_ids):
            spelled[token_id] = token_spelling(token_id)
        return tuple(spelled)

    @cached_property
    def spelled_ids(self) -> NDArray[np.int32]:
        """The ids that automata read, by their spellings, duplicates by id. int32, read-only."""
        is_spelled = np.array([token is not None for token in self.spellings], np.bool_)
        text = self.lexicographic_ids[is_spelled[self.lexicographic_ids]]
        special = sorted(set(self.special_tokens.values()) - set(self.eos_token_ids), key=token_spelling)
        return _read_only(np.concatenate([text, np.array(special, np.int32)]))

    def sorted(self) -> tuple[Vocabulary, NDArray[np.int32]]:
        """(vocabulary, old_id_of_new): this vocabulary with its ids in byte order, and the old id of each new one
        (int32 [V], read-only).

        Text tokens come first, in lexicographic byte order (duplicates by old id), so every subtree of the byte trie is
        one range of ids; all other ids follow in their old order. EOS and special ids are renumbered with them.
        `new_of_old` is `numpy.argsort(old_id_of_new)`.
        """
        is_text = np.array([token is not None for token in self.text_tokens], bool)
        others = np.flatnonzero(~is_text).astype(np.int32)
        old_of_new = np.concatenate([self.lexicographic_ids, others])
        new_of_old = np.argsort(old_of_new)
        renumbered = Vocabulary(
            tuple(self.tokens[i] for i in old_of_new.tolist()),
            tuple(int(new_of_old[i]) for i in self.eos_token_ids),
            {name: int(new_of_old[i]) for name, i in self.special_tokens.items()},
        )
        return renumbered, _read_only(old_of_new)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 (hex) of tokens, EOS ids and special tokens: the same in every process and on every machine."""
        offsets, data = concatenated(self.tokens)
        lengths = np.diff(offsets).astype("<i4")
        lengths[np.array([token is None for token in self.tokens], np.bool_)] = -1
        digest = hashlib.sha256(lengths.tobytes())
        digest.update(data.tobytes())
        digest.update(repr((self.size, self.eos_token_ids, sorted(self.special_tokens.items()))).encode())
        return digest.hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vocabulary) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __len__(self) -> int:
        return self.size

    def __reduce__(self) -> tuple[Any, ...]:
        return Vocabulary, (self.tokens, self.eos_token_ids, dict(self.special_tokens))

    def __repr__(self) -> str:
        num_text = sum(token is not None for token in self.text_tokens)
        return f"Vocabulary(size={self.size}, text={num_text}, eos_token_ids={list(self.eos_token_ids)})"


def token_spelling(token_id: int) -> bytes:
    """The bytes that stand for a special token in automata. No such spelling is a prefix of another."""
    return TOKEN_OPEN + str(token_id).encode() + TOKEN_CLOSE


def _checked_tokens(tokens: Sequence[bytes | None]) -> tuple[bytes | None, ...]:
    if isinstance(tokens, str | bytes) or not isinstance(tokens, Sequence):
        raise TypeError(f"tokens must be a sequence of bytes or None, one per id, not {type(tokens).__name__}")
    for i, token in enumerate(tokens):
        if token is not None and type(token) is not bytes:
            raise TypeError(f"tokens[{i}] must be bytes or None, not {type(token).__name__}")
    return tuple(tokens)


def _checked_eos(eos_token_ids: Iterable[int], size: int) -> tuple[int, ...]:
    if isinstance(eos_token_ids, str | bytes) or not isinstance(eos_token_ids, Iterable):
        raise TypeError(f"eos_token_ids must be ids, not {type(eos_token_ids).__name__}")
    return tuple(sorted({_checked_id(i, size, "eos_token_ids") for i in eos_token_ids}))


def _checked_special(special_tokens: Mapping[str, int], size: int) -> dict[str, int]:
    if not isinstance(special_tokens, Mapping):
        raise TypeError(f"special_tokens must map names to ids, not {type(special_tokens).__name__}")
    for name in special_tokens:
        if not isinstance(name, str):
            raise TypeError(f"special_tokens: a name is a string, not {type(name).__name__}")
    return {name: _checked_id(i, size, f"special_tokens[{name!r}]") for name, i in special_tokens.items()}


def _checked_id(token_id: Any, size: int, where: str) -> int:
    try:
        value = operator.index(token_id)
    except TypeError:
        raise TypeError(f"{where}: a token id is an int, not {type(token_id).__name__}") from None
    if not 0 <= value < size:
        raise ValueError(f"{where}: id {value} is outside the vocabulary of {size} ids")
    return value


def _resized(
    tokens: Sequence[bytes | None], special: Mapping[str, int], eos: set[int], size: int | None
) -> tuple[list[bytes | None], dict[str, int]]:
    """The table cut or padded to `size` ids. Only what can never be text may be cut off."""
    size = len(tokens) if size is None else operator.index(size)
    lost = next((i for i in range(size, len(tokens)) if tokens[i] or i in eos), None)
    if lost is not None:
        raise ValueError(f"size={size} leaves out token {lost} ({tokens[lost]!r}); the tokenizer has {len(tokens)} ids")
    padded = [*tokens[:size], *[None] * (size - len(tokens))]
    return padded, {name: i for name, i in special.items() if i < size}


def _read_only(array: NDArray[np.int32]) -> NDArray[np.int32]:
    array.setflags(write=False)
    return array
