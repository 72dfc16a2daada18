"""`maskwright quantize`: a GGUF file with its matrices in other blocks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ..engine.gguf.writer import KINDS, write_quantized
from .show import notices


def quantize(
    source: Annotated[Path, typer.Argument(help="A GGUF file, best one of 16 or 32 bits: what is lost adds up.")],
    target: Annotated[Path, typer.Argument(help="The GGUF file to write.")],
    type: Annotated[str, typer.Option(help=f"Of the matrices: {', '.join(KINDS)}.")] = "Q8_0",
) -> None:
    """Write a GGUF file with its matrices in other blocks.

    Norms and routers stay as they are; embedding and head keep at least 8 bits.
    """
    with notices.status("") as status:
        write_quantized(source, target, type.upper(), lambda done, total: status.update(f"tensor {done} of {total}"))
    before, after = (path.stat().st_size / 1e6 for path in (source, target))
    notices.print(f"{target}: {after:,.0f} MB ({source.name}: {before:,.0f} MB)", markup=False)


def command() -> Any:
    app = typer.Typer(add_completion=False)
    app.command()(quantize)
    return typer.main.get_command(app)
