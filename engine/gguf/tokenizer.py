"""The tokenizer of a GGUF file, built of what its metadata say, as transformers' fast tokenizer.

Two kinds are read. "gpt2": merges over bytes, in words that `pretokenizers.py` cuts. "llama": SentencePiece (`sentencepiece.py`),
of which the file has the pieces and their scores.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from ..errors import ModelFolderError, UnsupportedModel
from . import sentencepiece
from .files import GgufModel
from .pretokenizers import DEFAULT, PRE_TOKENIZERS, PreTokenizer
from .reader import Strings
from .sentencepiece import SentencePieces
from .special_tokens import TokenType, token_id, token_texts, token_types

logger = logging.getLogger(__name__)

_SPECIAL_NAMES = {"bos_token": "bos", "eos_token": "eos", "unk_token": "unknown", "pad_token": "padding"}


class _Tokens(NamedTuple):
    texts: list[str]
    types: list[int]
    vocabulary: dict[str, int]  # of what may come of text, or control: all but unused ones


def gguf_tokenizer(model: GgufModel) -> Any:
    """transformers' tokenizer for the model. Raises ModelFolderError or UnsupportedModel, naming what is wrong."""
    kind = model.metadata.get("tokenizer.ggml.model")
    build = _KINDS.get(str(kind))
    if build is None:
        raise UnsupportedModel(f'{model.path}: tokenizer "{kind}" is not supported; supported: {", ".join(_KINDS)}')
    texts = token_texts(model)
    types = token_types(model, texts)
    tokens = _Tokens(texts, types, {text: i for i, text in enumerate(texts) if types[i] != TokenType.UNUSED})
    try:
        backend, adds_bos = build(model, tokens)
        add_tokens(backend, texts, types)
        _add_ends(backend, model, texts, adds_bos)
    except Exception as error:  # tokenizers raises bare exceptions
        if isinstance(error, ModelFolderError | UnsupportedModel):
            raise
        raise ModelFolderError(
            f"{model.path}: the tokenizer cannot be built: {' '.join(str(error).split())[:300]}"
        ) from None
    from transformers import PreTrainedTokenizerFast

    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        chat_template=_chat_template(model),
        clean_up_tokenization_spaces=False,
        **{
            name: texts[i]
            for name, key in _SPECIAL_NAMES.items()
            if (i := token_id(model, key, len(texts))) is not None
        },
    )


def _byte_level(model: GgufModel, tokens: _Tokens) -> tuple[Any, bool]:
    from tokenizers import Tokenizer, decoders, models

    name = model.metadata.get("tokenizer.ggml.pre")
    if name is None:
        logger.warning(
            '%s: "tokenizer.ggml.pre" is missing: words are cut in a way that may not be the model\'s', model.path
        )
    rule = PRE_TOKENIZERS.get(str(name or DEFAULT))
    if rule is None:
        known = ", ".join(PRE_TOKENIZERS)
        raise UnsupportedModel(f'{model.path}: pre-tokenizer "{name}" is not supported; supported: {known}')
    backend = Tokenizer(models.BPE(tokens.vocabulary, _merges(model, tokens), ignore_merges=rule.ignores_merges))
    backend.pre_tokenizer = word_cutter(rule)
    backend.decoder = decoders.ByteLevel()
    return backend, rule.adds_bos


def word_cutter(rule: PreTokenizer) -> Any:
    """What cuts a text into words, and these into bytes, each of them a character."""
    from tokenizers import Regex, pre_tokenizers

    cuts = [pre_tokenizers.Split(Regex(pattern), "isolated") for pattern in rule.patterns]
    return pre_tokenizers.Sequence([*cuts, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def _merges(model: GgufModel, tokens: _Tokens) -> list[tuple[str, str]]:
    """Pairs in the order in which they are merged. A pair whose parts or whole is no token takes no part."""
    given = model.metadata.get("tokenizer.ggml.merges")
    if not isinstance(given, Strings):
        raise ModelFolderError(f"{model.path}: no merges in this file (tokenizer.ggml.merges)")
    pairs = []
    for merge in given.read():
        left, _, right = merge[1:].partition(" ")  # the first character may be a space itself
        pairs.append((merge[:1] + left, right))
    known = tokens.vocabulary
    return [(left, right) for left, right in pairs if left in known and right in known and left + right in known]


def _sentence_pieces(model: GgufModel, tokens: _Tokens) -> tuple[Any, bool]:
    scores = model.metadata.get("tokenizer.ggml.scores")
    if not isinstance(scores, np.ndarray) or len(scores) != len(tokens.texts):
        raise ModelFolderError(f"{model.path}: tokenizer.ggml.scores is not a number for each of {len(tokens.texts)} tokens")
    pieces = SentencePieces(tokens.texts, scores.tolist(), tokens.types)
    unknown = token_id(model, "unknown", len(tokens.texts))
    pieces.special["unk"] = -1 if unknown is None else unknown
    pieces.has_prefix = bool(model.metadata.get("tokenizer.ggml.add_space_prefix", True))
    return sentencepiece.build(pieces), True


_KINDS: Mapping[str, Callable[[GgufModel, _Tokens], tuple[Any, bool]]] = {
    "gpt2": _byte_level,
    "llama": _sentence_pieces,
}


def add_tokens(backend: Any, texts: list[str], types: list[int]) -> None:
    """Make control tokens, and those that are never cut, ones that are found in a text before anything else."""
    from tokenizers import AddedToken

    kinds = {TokenType.CONTROL: True, TokenType.UNKNOWN: True, TokenType.USER_DEFINED: False}
    backend.add_tokens([
        AddedToken(text, normalized=False, special=kinds[TokenType(kind)])
        for text, kind in zip(texts, types, strict=True)
        if kind in kinds and text
    ])  # fmt: skip


def _add_ends(backend: Any, model: GgufModel, texts: list[str], adds_bos: bool) -> None:
    wanted = {"bos": model.metadata.get("tokenizer.ggml.add_bos_token", adds_bos)}
    wanted["eos"] = model.metadata.get("tokenizer.ggml.add_eos_token", False)
    ids = {name: token_id(model, name, len(texts)) for name, is_wanted in wanted.items() if is_wanted}
    put_around(backend, *((None if (i := ids.get(name)) is None else (texts[i], i)) for name in ("bos", "eos")))


def put_around(backend: Any, before: tuple[str, int] | None, after: tuple[str, int] | None) -> None:
    """Put tokens (text, id) around every text that is encoded with special tokens: at its beginning, and rarely at its end."""
    from tokenizers import processors

    if before is None and after is None:
        return
    single = [*([before[0]] if before else []), "$A", *([after[0]] if after else [])]
    special = [token for token in (before, after) if token is not None]
    backend.post_processor = processors.TemplateProcessing(single=single, pair=None, special_tokens=special)


def _chat_template(model: GgufModel) -> str | dict[str, str] | None:
    """The file's template; where it has one for tools beside, both by their names."""
    template, tools = (model.metadata.get(f"tokenizer.chat_template{name}") for name in ("", ".tool_use"))
    if not isinstance(template, str):
        return None
    return {"default": template, "tool_use": tools} if isinstance(tools, str) else template
