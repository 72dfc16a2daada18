"""`maskwright verify-parallel`: whether a model on several devices gives what it gives on one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ..engine import EngineConfig, EngineFeatures
from ..engine.verification import ParallelReport, verify_parallel
from ..errors import UsageError
from ..model_folder import EMBEDDED, find_model
from .model_options import DeviceOption, ModelOption, RevisionOption, engine_options, engine_parameters
from .options import with_parameters
from .show import notices

PROMPTS = (  # two begin alike, so that what they share is computed once; one repeats itself, so that guesses are made
    "The capital of France is Paris. The capital of Italy is",
    "The capital of France is Paris. The capital of Spain is",
    "one two three four one two three four one two three four one two",
    "def add(a, b):\n    return",
)


def verify(
    model: ModelOption = EMBEDDED,
    revision: RevisionOption = None,
    device: DeviceOption = "auto",
    prompts: Annotated[Path | None, typer.Option(help="A file with a prompt on each line; a few short ones without.")] = None,
    max_tokens: Annotated[int, typer.Option("--max-tokens", "-n", min=1, help="Of each answer.")] = 32,
    **options: Any,
) -> None:
    """Answer prompts in float32 on one device, and on several with --tensor-parallel and any other options of the engine.

    The exit code is 1 where tokens differ.
    """
    features, settings = EngineFeatures.split(engine_options(options))
    settings.setdefault("tensor_parallel", 2)
    config = EngineConfig(model=find_model(model, revision=revision), device=device, **settings)
    if config.tensor_parallel == 1:
        raise UsageError("--tensor-parallel 1 leaves nothing to compare; say how many devices there are to be")
    texts = PROMPTS if prompts is None else _lines(prompts)
    with notices.status("answering on one device, then on several ..."):
        report = verify_parallel(config, features, texts, max_tokens)
    print("\n".join(_told(report, config.tensor_parallel)))
    if not report.is_same:
        raise typer.Exit(1)


def _lines(path: Path) -> list[str]:
    try:
        texts = [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--prompts {path}: {error}") from None
    if not texts:
        raise UsageError(f"--prompts {path}: there is no prompt in it")
    return texts


def _told(report: ParallelReport, size: int) -> list[str]:
    apart = f"largest difference of logits: {report.largest_difference:.2g} (largest logit: {report.largest_logit:.3g})"
    of_what = f"{report.num_tokens} tokens of {report.num_prompts} prompts"
    found = report.difference
    if found is None:
        return [f"the same on 1 device and on {size}: {of_what}", apart]
    margin = "" if found.margin is None else f", whose logits lie {found.margin:.2g} apart on one"
    return [
        f"not the same on 1 device and on {size}: of {of_what} the first that differs is token {found.place} of prompt "
        f"{found.prompt}: {found.expected} on one, {found.found} on {size}{margin}",
        apart,
    ]


def command() -> Any:
    """The command with one option for each field of EngineFeatures and EngineConfig."""
    app = typer.Typer(add_completion=False)
    app.command()(with_parameters(verify, engine_parameters()))
    return typer.main.get_command(app)
