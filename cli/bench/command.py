"""`maskwright bench`: how fast, and how right, a model is here; in tables, as JSON, in plots, beside a saved run."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from ...engine.device.profiling import profiled
from ...errors import UsageError
from ...llm import LLM
from ...model_folder import EMBEDDED
from ..model_options import (
    DeviceOption,
    DtypeOption,
    ModelOption,
    ProfileOption,
    engine_options,
    engine_parameters,
    load_model,
)
from ..options import with_parameters
from ..show import notices
from . import generation, quality
from .generation import Load
from .report import plot, require_matplotlib, table_of
from .runs import Case, as_json, load_run, run_of, save_run

RUN = "Run"
OutOption = Annotated[Path | None, typer.Option(metavar="FILE.json", help="Save the run.", rich_help_panel=RUN)]
CompareOption = Annotated[Path | None, typer.Option(metavar="FILE.json", help="A saved run, to compare with.", rich_help_panel=RUN)]
PlotOption = Annotated[Path | None, typer.Option(metavar="FILE.svg|.png", help="Draw the run.", rich_help_panel=RUN)]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the run as JSON.", rich_help_panel=RUN)]
NoteOption = Annotated[str, typer.Option(help="Kept with the run: what was tried, what else ran.", rich_help_panel=RUN)]
BatchesOption = Annotated[list[int] | None, typer.Option("--batch", help="Requests at once; may be repeated.")]
LengthsOption = Annotated[list[int] | None, typer.Option("--length", help="Tokens of a prompt; may be repeated.")]
TokensOption = Annotated[int, typer.Option("--tokens", help="Of an output.", min=1)]
RepeatsOption = Annotated[int, typer.Option(help="Of each case.", min=1)]
TemperatureOption = Annotated[float, typer.Option("--temperature", help="0: greedy.", min=0)]
Measure = Callable[[LLM], Iterable[Case]]


def _positive(option: str, given: list[int] | None, default: tuple[int, ...]) -> tuple[int, ...]:
    if given and min(given) < 1:
        raise UsageError(f"{option} is 1 or more, not {min(given)}")
    return tuple(given) if given else default


def _generation(
    measure: Callable[[LLM, Load], Iterator[Case]], batches: tuple[int, ...], lengths: tuple[int, ...], num_tokens: int
) -> Any:
    """The command of one of the benchmarks in `generation.py`, with its defaults."""

    def bench(
        batch: BatchesOption = None,
        length: LengthsOption = None,
        tokens: TokensOption = num_tokens,
        repeats: RepeatsOption = 3,
        temperature: TemperatureOption = 0.0,
        **options: Any,
    ) -> None:
        load = Load(_positive("--batch", batch, batches), _positive("--length", length, lengths), tokens, repeats, temperature)
        given = {"batches": load.batches, "lengths": load.lengths, "tokens": tokens, "repeats": repeats, "temperature": temperature}
        _run(measure.__name__, lambda llm: measure(llm, load), given, options)

    bench.__doc__ = measure.__doc__
    return bench


def masks(
    count: Annotated[int, typer.Option(help="Schemas.", min=1)] = 100,
    schemas: Annotated[Path | None, typer.Option(metavar="FILE.jsonl", help='Lines with "schema" and "tests".')] = None,
    **options: Any,
) -> None:
    """Compile schemas for this model's tokens, and make the masks of an instance of each."""
    _run("masks", lambda llm: quality.masks(llm, count, schemas), {"count": count, "schemas": schemas and str(schemas)}, options)


def answers(count: Annotated[int, typer.Option(help="Tasks of each kind.", min=1)] = 50, **options: Any) -> None:
    """Extraction and classification with known answers, with and without a constraint."""
    _run("answers", lambda llm: quality.answers(llm, count), {"count": count}, options)


def serve(
    rate: Annotated[list[float] | None, typer.Option(help="Requests a second; may be repeated.")] = None,
    seconds: Annotated[float, typer.Option(help="For which requests arrive.", min=0)] = 20.0,
    tokens: TokensOption = 32,
    share: Annotated[float, typer.Option(help="Of requests for JSON of a schema.", min=0, max=1)] = 0.5,
    url: Annotated[str | None, typer.Option(help="A server that runs, instead of one in this process.")] = None,
    **options: Any,
) -> None:
    """The server under requests that arrive at random: the first text, the time between two, tokens a second."""
    from . import serving

    rates = tuple(rate or (1.0, 4.0))
    if min(rates) <= 0:
        raise UsageError(f"--rate is above 0, not {min(rates):g}")
    given = {"rates": rates, "seconds": seconds, "tokens": tokens, "share": share, "url": url}

    def measure(llm: LLM | None) -> Iterator[Case]:
        with serving.serving(llm) if llm is not None else nullcontext(url or "") as address:
            yield from serving.serve(address, rates, seconds, tokens, share)

    _run("serve", measure, given, options, loads=url is None)


def _run(
    name: str, measure: Callable[[Any], Iterable[Case]], given: dict[str, Any], options: dict[str, Any], *, loads: bool = True
) -> None:
    """Measure, and tell: what is wrong with the options is said before."""
    before = None if options["compare"] is None else load_run(options["compare"], name)
    if options["plot"] is not None:
        require_matplotlib()
    for option in ("out", "plot"):
        if options[option] is not None and not options[option].resolve().parent.is_dir():
            raise UsageError(f"--{option} {options[option]}: there is no such folder")
    engine = engine_options(options)
    llm = load_model(options["model"], options["device"], options["dtype"], **engine) if loads else None
    cases: list[Case] = []
    with profiled(options["profile"]), notices.status(f"{name} ...") as status:
        for case in measure(llm):
            cases.append(case)
            status.update(f"{name}: {case.name}")
    settings = given | {option: str(value) for option, value in engine.items()}
    run = run_of(name, str(options["model"]), cases, settings, options["note"], "cpu" if llm is None else llm.config.device)
    if options["out"] is not None:
        save_run(run, options["out"])
    if options["plot"] is not None:
        plot(run, options["plot"], before)
    if options["json"]:
        print(as_json(run))
    else:
        Console(highlight=False).print(table_of(run, before))


def _shared() -> list[inspect.Parameter]:
    """Options of every benchmark."""
    annotations: dict[str, tuple[Any, Any]] = {
        "model": (ModelOption, EMBEDDED), "device": (DeviceOption, "auto"), "dtype": (DtypeOption, "auto"),
        "out": (OutOption, None), "compare": (CompareOption, None), "plot": (PlotOption, None), "json": (JsonOption, False),
        "note": (NoteOption, ""), "profile": (ProfileOption, None),
    }  # fmt: skip
    kind = inspect.Parameter.KEYWORD_ONLY
    own = [inspect.Parameter(name, kind, default=default, annotation=hint) for name, (hint, default) in annotations.items()]
    return [*own, *engine_parameters()]


BENCHES: dict[str, Callable[..., None]] = {
    "latency": _generation(generation.latency, (1, 8), (64,), 32),
    "throughput": _generation(generation.throughput, (32,), (64,), 64),
    "prefill": _generation(generation.prefill, (1,), (64, 128, 256, 512), 1),
    "decode": _generation(generation.decode, (1, 8, 32), (64, 256), 32),
    "serve": serve,
    "masks": masks,
    "answers": answers,
}


def command() -> Any:
    """The command, with one below it for each benchmark."""
    app = typer.Typer(add_completion=False, no_args_is_help=True, help="Measure how fast, and how right, a model is here.")
    for name, bench in BENCHES.items():
        app.command(name)(with_parameters(bench, _shared()))
    return typer.main.get_command(app)
