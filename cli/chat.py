"""`maskwright chat`: a conversation on the terminal, one line a turn."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Any

import typer

from ..chat import Reply
from ..constraint_choice import ConstraintOptions
from ..errors import MaskwrightError, UsageError
from ..llm import LLM
from ..model_folder import EMBEDDED
from ..sampling import SamplingParams
from .inputs import named_object
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
from .show import notices, show_loops


def chat(
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

    Each line of standard input is one turn; an empty line or the end of input ends the conversation. What a tool returns is
    shown.
    """
    constraint = constraint_options(schema, regex, grammar, choice)
    tools = [named_object(name, "--tool") for name in tool or ()]
    asked, engine = sampling_options(options, greedy), engine_options(options)  # wrong values are refused before a model is loaded
    name, adapters = named_adapter(adapter)
    llm = load_model(model, device, dtype, revision=revision, download=download, adapters=adapters, **engine)
    conversation = Conversation(llm, system, replace(llm.default_sampling, **asked), constraint, tools, tool_choice, name)
    for line in _lines():
        conversation.say(line)


def command() -> Any:
    """The command with one option for each field of SamplingParams, EngineConfig and EngineFeatures."""
    app = typer.Typer(add_completion=False)
    parameters = [*option_parameters(SamplingParams, SAMPLING), *engine_parameters()]
    app.command()(with_parameters(chat, parameters))
    return typer.main.get_command(app)


class Conversation:
    """The messages so far and how the next reply is made."""

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
        self._messages: list[dict[str, Any]] = [] if system is None else [{"role": "system", "content": system}]

    def say(self, text: str) -> None:
        """One turn: the user's text, then the reply, shown and remembered."""
        messages = [*self._messages, {"role": "user", "content": text}]
        reply = self._llm.chat(
            messages,
            tools=self._tools,
            tool_choice=self._tool_choice,
            sampling=self._sampling,
            adapter=self._adapter,
            **self._constraint,
        )
        print(reply.text, flush=True)
        show_loops([reply.output])
        _run_calls(reply)
        self._messages = [*messages, reply.message()]


def _run_calls(reply: Reply) -> None:
    for call in reply.tool_calls:
        try:
            result = call.run()
        except MaskwrightError:
            raise
        except Exception as error:  # whatever the user's own function raises
            raise UsageError(f'the tool "{call.name}" failed: {type(error).__name__}: {error}') from error
        print(f"{call.name} -> {json.dumps(result, default=str, ensure_ascii=False)}", flush=True)


def _lines() -> Iterator[str]:
    """What the user says, up to an empty line or the end of input."""
    is_terminal = sys.stdin.isatty()
    while True:
        try:
            line = notices.input("[bold]> [/]") if is_terminal else sys.stdin.readline()
        except EOFError:
            return
        if not line.strip():
            return
        yield line.strip()
