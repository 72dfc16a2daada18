"""What the tokens of a GGUF file are for: which are text, which control a model, and which of those end its turn."""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from ..errors import ModelFolderError
from .files import GgufModel
from .reader import Strings


class TokenType(IntEnum):
    """As in gguf.TokenType."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4  # text that is never cut into smaller tokens
    UNUSED = 5
    BYTE = 6


# Tokens that end a turn although no key names them, as llama.cpp knows them.
_ENDS = frozenset({
    "<|eot_id|>", "<|im_end|>", "<|end|>", "<|return|>", "<|call|>", "<end_of_turn>", "<|endoftext|>", "</s>", "<|eom_id|>",
    "<EOT>", "_<EOT>", "[EOT]", "[EOS]", "<|end_of_text|>", "<end_of_utterance>", "<｜end▁of▁sentence｜>",
    "<|END_OF_TURN_TOKEN|>",
})  # fmt: skip
_NOT_IF = {"<|end|>": {"<|return|>", "<|call|>"}}  # harmony, in which it ends a message and not the turn


def token_texts(model: GgufModel) -> list[str]:
    tokens = model.metadata.get("tokenizer.ggml.tokens")
    if not isinstance(tokens, Strings):
        raise ModelFolderError(f"{model.path}: no tokens in this file (tokenizer.ggml.tokens)")
    return tokens.read()


def token_types(model: GgufModel, texts: list[str]) -> list[int]:
    """The type of each token; of what ends a turn it is CONTROL, whatever the file says."""
    given = model.metadata.get("tokenizer.ggml.token_type")
    if given is None:
        types = [int(TokenType.NORMAL)] * len(texts)
    elif isinstance(given, np.ndarray) and given.dtype.kind in "iu" and len(given) == len(texts):
        types = given.tolist()
    else:
        raise ModelFolderError(
            f"{model.path}: tokenizer.ggml.token_type is not a number for each of {len(texts)} tokens"
        )
    for token_id in end_token_ids(model, texts):
        types[token_id] = TokenType.CONTROL
    return types


def token_id(model: GgufModel, name: str, count: int) -> int | None:
    """The id that "tokenizer.ggml.NAME_token_id" names, None where that is absent or outside the vocabulary."""
    found = model.metadata.get(f"tokenizer.ggml.{name}_token_id")
    return found if isinstance(found, int) and 0 <= found < count else None


def end_token_ids(model: GgufModel, texts: list[str] | None = None) -> list[int]:
    """The ids that end the model's turn: those that keys name, and those that are called as such tokens are."""
    texts = token_texts(model) if texts is None else texts
    named = [token_id(model, name, len(texts)) for name in ("eos", "eot", "eom")]
    known = {text: number for number, text in enumerate(texts) if text in _ENDS}
    called = [number for text, number in known.items() if not (_NOT_IF.get(text) and _NOT_IF[text] <= known.keys())]
    return sorted({number for number in (*named, *called) if number is not None})
