"""Where a model lives: a folder, a GGUF file, the local Hugging Face cache, or the package itself.

Nothing is downloaded unless it is asked for.
"""

from __future__ import annotations

import os
from pathlib import Path

from .errors import ModelNotFound, UsageError

EMBEDDED = "embedded"  # the name of the model that ships in the package
_FILES_OF_WEIGHTS = (".gguf", ".safetensors", ".bin", ".pt", ".pth")


def embedded_model() -> Path:
    """The folder of the model that ships in the package."""
    return Path(__file__).parent / "embedded"


def find_model(name: str | os.PathLike[str], *, revision: str | None = None, download: bool = False) -> Path:
    """The folder of a model, or its file where it is one of GGUF.

    Args:
        name: "embedded", a folder, a GGUF file, a folder that holds one, or a Hugging Face repository ("owner/name" or "name")
            that has been downloaded before.
        revision: of a repository, a branch, tag or commit. None: the one that was fetched for "main".
        download: fetch a repository, or what has changed of it, with a progress bar. HF_HUB_OFFLINE forbids it.

    Raises:
        ModelNotFound: it is none of them, cannot be fetched, or has no config.json. UnsupportedModel: it is a model in another
            format, or one of several. UsageError: a revision of what is no repository.
    """
    if not isinstance(name, str | os.PathLike):
        raise UsageError(f"a model is a folder or the name of one, not {type(name).__name__}")
    folder = embedded_model() if name == EMBEDDED else _path(name)
    if not folder.exists() and _could_be_repository(str(name)):
        folder = _repository(str(name), revision, download)
    elif revision is not None:
        raise UsageError(f'revision="{revision}": only a repository has revisions, and "{name}" is none')
    if not folder.exists():
        is_file = folder.suffix.lower() in _FILES_OF_WEIGHTS
        raise ModelNotFound(str(name), f"there is no such {'file' if is_file else 'folder'}")
    from .engine.gguf.files import gguf_in, is_gguf  # here, so that only who loads a model waits for torch
    from .engine.models.files import refuse_other_formats

    if is_gguf(folder):
        return folder
    refuse_other_formats(folder)
    if folder.is_file():
        raise ModelNotFound(str(name), f"this is a file; a model is a folder, such as the one that holds it, {folder.parent}")
    if not any(folder.glob("*.safetensors")):
        file = gguf_in(folder)
        if file is not None:
            return file
    if not (folder / "config.json").is_file():
        raise ModelNotFound(str(name), f"{folder} is not a model folder, it has no config.json")
    return folder


def _path(name: str | os.PathLike[str]) -> Path:
    """A name as a path that can be looked for. Raises ModelNotFound where it is too long, or the home of nobody, ..."""
    try:
        path = Path(name).expanduser()
        path.exists()
    except (OSError, RuntimeError, ValueError) as error:
        raise ModelNotFound(f"{name!s:.80}", f"it cannot be looked for: {getattr(error, 'strerror', None) or error}") from None
    return path


def _could_be_repository(name: str) -> bool:
    return name.count("/") < 2 and not name.startswith((".", "/", "~")) and not name.lower().endswith(("/", ".gguf"))


_WANTED = ("*.json", "*.safetensors", "*.model", "*.jinja", "*.txt")  # of a repository


def _repository(name: str, revision: str | None, download: bool) -> Path:
    """The folder of a repository in the local cache, fetched first if that is asked for."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(name, revision=revision, local_files_only=not download, allow_patterns=list(_WANTED)))
    except (LocalEntryNotFoundError, HFValidationError) as error:
        if download and isinstance(error, LocalEntryNotFoundError):
            raise ModelNotFound(name, f"it is in no folder, and cannot be fetched: {_one_line(error)}") from None
        at = f" --revision {revision}" if revision else ""
        how = f"fetch it with download=True, --download or `hf download {name}{at}`"
        raise ModelNotFound(name, f"there is no such folder, and it is not in the local Hugging Face cache; {how}") from None
    except Exception as error:  # of networks, permissions and repositories
        raise ModelNotFound(name, f"it cannot be fetched: {_one_line(error)}") from None


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
