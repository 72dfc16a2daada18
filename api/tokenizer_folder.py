"""The tokenizer of a folder, without a model: its vocabulary, and how it splits a text."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from .constraints import Vocabulary
from .errors import MaskwrightError, UsageError
from .model_folder import EMBEDDED, embedded_model


class FolderTokenizer(NamedTuple):
    """A vocabulary, and a function from a text to ids of it, which adds no tokens around the text."""

    name: str
    vocabulary: Vocabulary
    encode: Callable[[str], Sequence[int]]


def read_tokenizer(name: str) -> FolderTokenizer:
    """The tokenizer of a folder with a `tokenizer.json`, of a GGUF file, or "embedded". Raises UsageError."""
    folder = embedded_model() if name == EMBEDDED else Path(name).expanduser()
    path = folder / "tokenizer.json" if folder.is_dir() else folder
    if path.is_file() and path.suffix.lower() == ".gguf":
        return _of_gguf(name, path)
    if not path.is_file():
        what = "there is no tokenizer.json in this folder" if folder.is_dir() else "there is no such folder"
        raise UsageError(f"--tokenizer {name}: {what}")
    from tokenizers import Tokenizer

    try:
        backend = Tokenizer.from_file(str(path))
        vocabulary = Vocabulary.from_tokenizer(backend, eos_token_ids=_eos_ids(path.parent, backend))
    except Exception as error:  # tokenizers raises bare exceptions
        raise UsageError(f"--tokenizer {name}: {' '.join(str(error).split())}") from None
    return FolderTokenizer(name, vocabulary, lambda text: backend.encode(text, add_special_tokens=False).ids)


def _of_gguf(name: str, path: Path) -> FolderTokenizer:
    from .engine.gguf.files import open_gguf
    from .engine.gguf.special_tokens import end_token_ids
    from .engine.gguf.tokenizer import gguf_tokenizer

    try:
        model = open_gguf(path)
        backend = gguf_tokenizer(model)
    except MaskwrightError as error:
        raise UsageError(f"--tokenizer {error}") from None
    vocabulary = Vocabulary.from_tokenizer(backend, eos_token_ids=end_token_ids(model))
    return FolderTokenizer(name, vocabulary, lambda text: backend.encode(text, add_special_tokens=False))


def _eos_ids(folder: Path, backend: Any) -> list[int]:
    """The ids of the tokens that the files beside the tokenizer name as the end of a text."""
    token = _read(folder / "tokenizer_config.json").get("eos_token")
    name = token.get("content") if isinstance(token, dict) else token
    of_name = backend.token_to_id(name) if isinstance(name, str) else None
    generation = _read(folder / "generation_config.json").get("eos_token_id")
    listed = generation if isinstance(generation, list) else [generation]
    return [found for found in dict.fromkeys([of_name, *listed]) if isinstance(found, int)]


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
