"""`maskwright generate`: prompts in, constrained outputs out."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer
from rich.console import Console

from ..constraint_choice import ConstraintOptions
from ..constraints import Constraint
from ..engine.device.profiling import profiled
from ..errors import UsageError
from ..events import Delta, Done
from ..llm import LLM
from ..model_folder import EMBEDDED
from ..outputs import GenerationOutput
from ..pieces import TokenPiece
from ..sampling import SamplingParams
from . import show
from .inputs import STANDARD, read_prompts
from .model_options import (
    CONSTRAINT,
    OUTPUT,
    SAMPLING,
    AdapterOption,
    ChoiceOption,
    DeviceOption,
    DownloadOption,
    DtypeOption,
    GrammarOption,
    GreedyOption,
    ModelOption,
    ProfileOption,
    RegexOption,
    RevisionOption,
    SchemaOption,
    constraint_options,
    engine_options,
    engine_parameters,
    load_model,
    named_adapter,
    sampling_options,
)
from .options import option_parameters, with_parameters


def generate(
    prompt: Annotated[str | None, typer.Argument(help="The prompt; standard input when it is not given.")] = None,
    named_prompt: Annotated[str | None, typer.Option("--prompt", "-p", help="The prompt, as an option.")] = None,
    prompt_file: Annotated[Path | None, typer.Option(help="A file with one prompt a line.")] = None,
    schema: SchemaOption = None,
    regex: RegexOption = None,
    grammar: GrammarOption = None,
    choice: ChoiceOption = None,
    compiled: Annotated[
        Path | None, typer.Option(help="What `maskwright compile` wrote.", rich_help_panel=CONSTRAINT)
    ] = None,
    model: ModelOption = EMBEDDED,
    revision: RevisionOption = None,
    download: DownloadOption = False,
    device: DeviceOption = "auto",
    dtype: DtypeOption = "auto",
    adapter: AdapterOption = None,
    greedy: GreedyOption = False,
    stream: Annotated[bool, typer.Option(help="Show the output while it is made.", rich_help_panel=OUTPUT)] = True,
    show_mask: Annotated[
        bool, typer.Option("--show-mask", help="Colour what the constraint forced and what was free.", rich_help_panel=OUTPUT)
    ] = False,
    timing: Annotated[bool, typer.Option("--timing", help="Say how long it took.", rich_help_panel=OUTPUT)] = False,
    output: Annotated[Path | None, typer.Option(help="Write to this file instead.", rich_help_panel=OUTPUT)] = None,
    profile: ProfileOption = None,
    **options: Any,
) -> None:
    """Answer prompts under a schema, regular expression, grammar or choice.

    One prompt gives its output as it is; --prompt-file gives one line of JSON for each prompt.
    """
    if show_mask and (prompt_file is not None or output is not None):
        raise UsageError("--show-mask colours one prompt on the terminal; it cannot be combined with --prompt-file or --output")
    constraint = constraint_options(schema, regex, grammar, choice)
    if compiled is not None and constraint:
        raise UsageError(f"--compiled and --{next(iter(constraint))} contradict each other: an output has one constraint")
    prompts = read_prompts(_one_of(prompt, named_prompt), prompt_file)
    asked, engine = sampling_options(options, greedy), engine_options(options)  # wrong values are refused before a model is loaded
    with show.stopwatch() as loading:
        name, adapters = named_adapter(adapter)
        llm = load_model(model, device, dtype, revision=revision, download=download, adapters=adapters, **engine)
    if compiled is not None:
        constraint = {"constraint": _loaded(llm, compiled)}
    params, load_seconds = replace(llm.default_sampling, **asked), loading()
    with show.stopwatch() as running, _opened(output) as target, profiled(profile):
        if prompt_file is not None:
            outputs = _many(llm, prompts, params, constraint, target, name)
        else:
            outputs = _one(llm, prompts[0], params, constraint, target, stream, show_mask, name)
    show.show_remarks(each.constraint for each in outputs)
    show.show_loops(outputs)
    show.show_fields(outputs)
    if timing:
        show.show_timing(sum(len(each.token_ids) for each in outputs), running(), load_seconds, llm.driver.footprint)


def command() -> Any:
    """The command with one option for each field of SamplingParams, EngineConfig and EngineFeatures."""
    app = typer.Typer(add_completion=False)
    parameters = [*option_parameters(SamplingParams, SAMPLING), *engine_parameters()]
    app.command()(with_parameters(generate, parameters))
    return typer.main.get_command(app)


def _one_of(prompt: str | None, named: str | None) -> str | None:
    if prompt is not None and named is not None:
        raise UsageError(f"there are two prompts: {named!r} after --prompt, and {prompt!r}; give one of them")
    return prompt if named is None else named


def _loaded(llm: LLM, path: Path) -> Constraint:
    try:
        return llm.compiler.load(path)
    except OSError as error:
        raise UsageError(f"--compiled {path}: {error.strerror or error}") from None


def _many(
    llm: LLM,
    prompts: Sequence[str],
    params: SamplingParams,
    constraint: ConstraintOptions,
    target: TextIO,
    adapter: str | None,
) -> list[GenerationOutput]:
    with show.prompt_progress(len(prompts)) as progress:
        outputs = llm.generate(prompts, sampling=params, progress=progress, adapter=adapter, **constraint)
    given = [each for output in outputs for each in (output, *output.alternatives)]
    for each in given:
        print(json.dumps(_as_record(each), ensure_ascii=False), file=target)
    return given


def _as_record(output: GenerationOutput) -> dict[str, Any]:
    value = json.loads(output.text) if output.choice.is_json and output.is_complete else output.text
    record = {"prompt": output.prompt, "output": value, "finish_reason": output.finish_reason}
    record |= {"loops": [asdict(loop) for loop in output.loops]} if output.loops else {}
    return record | {"captures": output.captures} if output.is_complete and output.captures else record


def _one(
    llm: LLM,
    prompt: str,
    params: SamplingParams,
    constraint: ConstraintOptions,
    target: TextIO,
    stream: bool,
    show_mask: bool,
    adapter: str | None,
) -> list[GenerationOutput]:
    if show_mask:
        show.show_prompt(prompt)
        outputs = [_coloured(llm.stream_tokens(prompt, sampling=params, adapter=adapter, **constraint))]
        show.show_value(outputs[0].parsed)
    elif stream and params.num_copies == 1:
        outputs = [_streamed(llm.stream_text(prompt, sampling=params, adapter=adapter, **constraint), target)]
    else:
        (first,) = llm.generate(prompt, sampling=params, adapter=adapter, **constraint)
        outputs = [first, *first.alternatives]
        for output in outputs:
            print(output.text, file=target)
    for output in outputs:
        output.parsed  # noqa: B018 - raises what is wrong with the output
    return outputs


def _streamed(events: Iterator[Delta | Done], target: TextIO) -> GenerationOutput:
    for event in events:
        if isinstance(event, Done):
            print(file=target)
            return event.output
        print(event.text, end="", flush=True, file=target)
    raise AssertionError("a stream ends with Done")


def _coloured(events: Iterator[TokenPiece | Done]) -> GenerationOutput:
    console, pieces = Console(highlight=False), list[TokenPiece]()
    for event in events:
        if isinstance(event, Done):
            print(flush=True)
            show.show_legend(pieces)
            return event.output
        pieces.append(event)
        show.show_piece(console, event)
    raise AssertionError("a stream ends with Done")


@contextmanager
def _opened(path: Path | None) -> Iterator[TextIO]:
    if path is None or path == STANDARD:
        yield sys.stdout
        return
    try:
        file = path.open("w", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--output {path}: {error.strerror or error}") from None
    with file:
        yield file
