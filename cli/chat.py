"""`maskwright chat`: a conversation on the terminal, one line a turn."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from typing import Annotated, Any

import typer

from ..constraint_choice import ConstraintOptions
from ..conversation import Message
from ..llm import LLM
from ..model_folder import EMBEDDED
from ..plugins import named_object
from ..sampling import SamplingParams
from ..tool_loop import Replied, ToolEnded, ToolsDone
from ..tools import unique_tools
from .inputs import is_terminal, piped_lines
from .model_options import (
    CONSTRAINT,
    SAMPLING,
    AdapterOption,
    ChoiceOption,
    DeviceOption,
    DownloadOption,
    DtypeOption,
    GrammarOption,
    GreedyOption,
    ModelOption,
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
from .show import notices, show_fields, show_loops, show_remarks


def chat(
    prompt: Annotated[str | None, typer.Option("--prompt", "-p", help="The first turn, before those of standard input.")] = None,
    system: Annotated[str | None, typer.Option(help="What the model is told first.")] = None,
    tool: Annotated[
        list[str] | None,
        typer.Option(metavar="MODULE:FUNCTION", help="A function the model may call; repeatable.", rich_help_panel=CONSTRAINT),
    ] = None,
    tool_choice: Annotated[
        str, typer.Option(help="auto, none, required, or the name of a tool.", rich_help_panel=CONSTRAINT)
    ] = "auto",
    schema: SchemaOption = None,
    regex: RegexOption = None,
    grammar: GrammarOption = None,
    choice: ChoiceOption = None,
    model: ModelOption = EMBEDDED,
    revision: RevisionOption = None,
    download: DownloadOption = False,
    device: DeviceOption = "auto",
    dtype: DtypeOption = "auto",
    adapter: AdapterOption = None,
    greedy: GreedyOption = False,
    **options: Any,
) -> None:
    """Talk with a model, with tools or a constraint.

    Each line of standard input is one turn, behind --prompt if it is there; an empty line or the end of input ends the
    conversation. What a tool returns is shown.
    """
    constraint = constraint_options(schema, regex, grammar, choice)
    tools = list(unique_tools([named_object(name, "--tool") for name in tool or ()]))
    asked, engine = sampling_options(options, greedy), engine_options(options)  # wrong values are refused before a model is loaded
    name, adapters = named_adapter(adapter)
    llm = load_model(model, device, dtype, revision=revision, download=download, adapters=adapters, **engine)
    conversation = Conversation(llm, system, replace(llm.default_sampling, **asked), constraint, tools, tool_choice, name)
    for line in chain([] if prompt is None else [prompt], _lines()):
        conversation.say(line)


def command() -> Any:
    """The command with one option for each field of SamplingParams, EngineConfig and EngineFeatures."""
    app = typer.Typer(add_completion=False)
    parameters = [*option_parameters(SamplingParams, SAMPLING), *engine_parameters()]
    app.command()(with_parameters(chat, parameters))
    return typer.main.get_command(app)


class Conversation:
    """The messages so far and how the next replies are made."""

    def __init__(
        self,
        llm: LLM,
        system: str | None,
        sampling: SamplingParams,
        constraint: ConstraintOptions,
        tools: list[Any],
        tool_choice: str,
        adapter: str | None = None,
    ) -> None:
        self._adapter = adapter
        self._llm, self._sampling, self._constraint = llm, sampling, constraint
        self._tools, self._tool_choice = tools, tool_choice
        self._messages: list[Message] = [] if system is None else [{"role": "system", "content": system}]

    def say(self, text: str) -> None:
        """One turn: the user's text, then replies and results of calls up to the answer, shown and remembered."""
        events = self._llm.stream_tools(
            [*self._messages, {"role": "user", "content": text}],
            tools=self._tools,
            tool_choice=self._tool_choice,
            sampling=self._sampling,
            adapter=self._adapter,
            on_error="raise",  # it is the user's own function
            **self._constraint,
        )
        for event in events:
            if isinstance(event, Replied):
                print(event.reply.text, flush=True)
                show_remarks([event.reply.output.constraint])
                show_loops([event.reply.output])
                show_fields([event.reply.output])
            elif isinstance(event, ToolEnded):
                print(f"{event.result.call.name} -> {json.dumps(event.result.value, default=str, ensure_ascii=False)}", flush=True)
            elif isinstance(event, ToolsDone):
                self._messages = list(event.run.messages)


def _lines() -> Iterator[str]:
    """What the user says, up to an empty line or the end of input."""
    for line in _typed_lines() if is_terminal() else piped_lines():
        if not line.strip():
            return
        yield line.strip()


def _typed_lines() -> Iterator[str]:
    with suppress(EOFError):
        while True:
            yield notices.input("[bold]> [/]")
