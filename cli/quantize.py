"""`maskwright quantize`: a GGUF file of a GGUF file or of a folder, or a folder with its matrices quantised."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ..engine.conversion.gguf_file import write_gguf_of_folder
from ..engine.conversion.quantized_folder import FOLDER_KINDS, write_quantized_folder
from ..engine.gguf.writer import KINDS, write_quantized
from .show import notices


def quantize(
    source: Annotated[Path, typer.Argument(help="A GGUF file or a model folder, best of 16 or 32 bits: what is lost adds up.")],
    target: Annotated[Path, typer.Argument(help="What to write: a GGUF file, if it ends with .gguf, or a folder.")],
    type: Annotated[
        str | None,
        typer.Option(help=f"For a GGUF file {', '.join(KINDS)} (else Q8_0), for a folder {', '.join(FOLDER_KINDS)} (else INT8)."),
    ] = None,
) -> None:
    """Write a model with its matrices in fewer bits: a GGUF file of a GGUF file or a folder, or a folder of a folder.

    Norms and routers stay as they are; embedding and head of a GGUF file keep at least 8 bits, those of a folder all.
    """
    with notices.status("") as status:

        def progress(done: int, total: int) -> None:
            status.update(f"tensor {done} of {total}")

        if source.is_dir() and target.suffix.lower() != ".gguf":
            write_quantized_folder(source, target, (type or "INT8").upper(), progress)
        elif source.is_dir():
            write_gguf_of_folder(source, target, (type or "Q8_0").upper(), progress)
        else:
            write_quantized(source, target, (type or "Q8_0").upper(), progress)
    before, after = (_megabytes(path) for path in (source, target))
    notices.print(f"{target}: {after:,.0f} MB ({source.name}: {before:,.0f} MB)", markup=False)


def _megabytes(path: Path) -> float:
    """Of a file, or of the weights in a folder."""
    files = path.glob("*.safetensors") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files) / 1e6


def command() -> Any:
    app = typer.Typer(add_completion=False)
    app.command()(quantize)
    return typer.main.get_command(app)
