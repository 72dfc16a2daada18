"""Where a model lives: a folder, the local Hugging Face cache, or the package itself. Nothing is downloaded."""

from __future__ import annotations

import os
from pathlib import Path

from .errors import ModelNotFound, UsageError

EMBEDDED = "embedded"  # the name of the model that ships in the package


def embedded_model() -> Path:
    """The folder of the model that ships in the package."""
    return Path(__file__).parent / "embedded"


def find_model(name: str | os.PathLike[str]) -> Path:
    """The folder of a model.

    Args:
        name: "embedded", a folder, or a Hugging Face repository ("owner/name") that has been downloaded before.

    Raises:
        ModelNotFound: it is none of them, or the folder has no config.json. UnsupportedModel: it is a model in another format.
    """
    if not isinstance(name, str | os.PathLike):
        raise UsageError(f"a model is a folder or the name of one, not {type(name).__name__}")
    folder = embedded_model() if name == EMBEDDED else Path(name).expanduser()
    if not folder.exists() and _could_be_repository(str(name)):
        folder = _cached_repository(str(name))
    from .engine.models.files import refuse_other_formats  # here, so that only who loads a model waits for torch

    refuse_other_formats(folder)
    if folder.is_file():
        raise ModelNotFound(str(name), f"this is a file; a model is a folder, such as the one that holds it, {folder.parent}")
    if not folder.is_dir():
        raise ModelNotFound(str(name), "there is no such folder")
    if not (folder / "config.json").is_file():
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
