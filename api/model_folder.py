"""Where a model lives: a folder, a GGUF file, the local Hugging Face cache, or the package itself. Nothing is downloaded."""

from __future__ import annotations

import os
from pathlib import Path

from .errors import ModelNotFound, UsageError

EMBEDDED = "embedded"  # the name of the model that ships in the package


def embedded_model() -> Path:
    """The folder of the model that ships in the package."""
    return Path(__file__).parent / "embedded"


def find_model(name: str | os.PathLike[str]) -> Path:
    """The folder of a model, or its file where it is one of GGUF.

    Args:
        name: "embedded", a folder, a GGUF file, a folder that holds one, or a Hugging Face repository ("owner/name") that has been
            downloaded before.

    Raises:
        ModelNotFound: it is none of them, or the folder has no config.json. UnsupportedModel: it is a model in another format, or
            one of several.
    """
    if not isinstance(name, str | os.PathLike):
        raise UsageError(f"a model is a folder or the name of one, not {type(name).__name__}")
    folder = embedded_model() if name == EMBEDDED else Path(name).expanduser()
    if not folder.exists() and _could_be_repository(str(name)):
        folder = _cached_repository(str(name))
    if not folder.exists():
        raise ModelNotFound(str(name), "there is no such file" if folder.suffix == ".gguf" else "there is no such folder")
    from .engine.gguf.files import gguf_in, is_gguf  # here, so that only who loads a model waits for torch
    from .engine.models.files import refuse_other_formats

    if is_gguf(folder):
        return folder
    refuse_other_formats(folder)
    if folder.is_file():
        raise ModelNotFound(str(name), f"this is a file; a model is a folder, such as the one that holds it, {folder.parent}")
    if not (folder / "config.json").is_file():
        file = gguf_in(folder)
        if file is not None:
            return file
        raise ModelNotFound(str(name), f"{folder} is not a model folder, it has no config.json")
    return folder


def _could_be_repository(name: str) -> bool:
    return name.count("/") == 1 and not name.startswith((".", "/", "~")) and not name.endswith(("/", ".gguf"))


def _cached_repository(name: str) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(name, local_files_only=True))
    except (LocalEntryNotFoundError, HFValidationError):
        reason = f"there is no such folder, and it is not in the local Hugging Face cache; fetch it with `hf download {name}`"
        raise ModelNotFound(name, reason) from None
