"""An adapter out of whatever it is stored as."""

from __future__ import annotations

import os
from pathlib import Path

from ..errors import AdapterError
from ..gguf.files import is_gguf
from ..models.architecture import ModelInfo
from .adapter import Adapter
from .gguf_adapter import read_gguf_adapter
from .modules import modules_of
from .peft_folder import read_peft_folder


def read_adapter(path: str | os.PathLike[str], spec: ModelInfo, max_rank: int) -> Adapter:
    """The adapter at `path`, a folder of peft or a GGUF file, for the model of `spec`. Raises AdapterError.

    Nothing in the files is executed, and nothing is read of a tensor before its shape is known to fit.
    """
    if not isinstance(path, str | os.PathLike):
        raise AdapterError(f"an adapter is named by its path, not by {path!r:.80}")
    where = Path(path).expanduser()
    if is_gguf(where):
        return read_gguf_adapter(where, spec, max_rank)
    if not where.is_dir():
        kind = "this is a file" if where.is_file() else "there is no such folder"
        raise AdapterError(f"{where}: {kind}; an adapter is a folder with adapter_config.json, or a GGUF file")
    return read_peft_folder(where, modules_of(spec), max_rank)
