"""The command line: `maskwright generate`, `chat`, `compile`, `quantize`, `serve`, `batch`, `bench`, `schema`, `grammar`,
`conformance`, `verify-parallel`, `doctor`.

This module stays light, so that `--help` and `--version` answer at once; a command's own module loads the rest. Whatever the
user got wrong becomes one line on stderr, with the place in a grammar below it, and exit code 2.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

INCOMPLETE, WRONG_INPUT, INTERRUPTED = 1, 2, 130  # exit codes

_HELP = {"help_option_names": ["--help", "-h"]}
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EIO)

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)


class Forwarded(TyperCommand):
    """Hands all arguments on, unread, to the command line of the command's own module."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.args = args
        return args


def _print_version(is_asked: bool) -> None:
    if is_asked:
        from importlib.metadata import version

        print(f"maskwright {version('maskwright')}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version.")] = False,
    plugin: Annotated[
        list[str] | None, typer.Option("--plugin", metavar="MODULE:FUNCTION|FILE.py", help="Registers things of one's own.")
    ] = None,
) -> None:
    """Structured generation that is exact and finishes."""
    if plugin:
        from ..plugins import load_plugins

        load_plugins(plugin, "--plugin")


@app.command("generate", cls=Forwarded)
def forward_to_generate(context: typer.Context) -> None:
    """Answer prompts under a schema, regular expression, grammar or choice."""
    from .generate import command

    _run(command(), context)


@app.command("chat", cls=Forwarded)
def forward_to_chat(context: typer.Context) -> None:
    """Talk with a model, with tools or a constraint."""
    from .chat import command

    _run(command(), context)


@app.command("compile", cls=Forwarded)
def forward_to_compile(context: typer.Context) -> None:
    """Compile a constraint into a file."""
    from .compile import command

    _run(command(), context)


@app.command("quantize", cls=Forwarded)
def forward_to_quantize(context: typer.Context) -> None:
    """Write a GGUF file with its matrices in other blocks."""
    from .quantize import command

    _run(command(), context)


@app.command("serve", cls=Forwarded)
def forward_to_serve(context: typer.Context) -> None:
    """Serve a model over HTTP, as OpenAI's interface."""
    from .options import spread
    from .serve import command

    for option in ("--served-model-name", "--lora-modules"):
        context.args = spread(context.args, option)
    _run(command(), context)


@app.command("batch", cls=Forwarded)
def forward_to_batch(context: typer.Context) -> None:
    """Answer a file of requests, one line of JSON each."""
    from .batch import command

    _run(command(), context)


@app.command("bench", cls=Forwarded)
def forward_to_bench(context: typer.Context) -> None:
    """Measure how fast, and how right, a model is here."""
    from .bench.command import command

    _run(command(), context)


@app.command("schema", cls=Forwarded)
def forward_to_schema(context: typer.Context) -> None:
    """Check how a JSON Schema is enforced."""
    from .schema import command

    _run(command(), context)


@app.command("grammar", cls=Forwarded)
def forward_to_grammar(context: typer.Context) -> None:
    """Check, test, draw and explain grammars; list those that ship."""
    from .grammar import command

    _run(command(), context)


@app.command("conformance", cls=Forwarded)
def forward_to_conformance(context: typer.Context) -> None:
    """Ask engines about cases with known verdicts."""
    from .conformance import command

    _run(command(), context)


@app.command("verify-parallel", cls=Forwarded)
def forward_to_verify_parallel(context: typer.Context) -> None:
    """Compare a model on several devices with the same on one, token for token."""
    from .verify_parallel import command

    _run(command(), context)


@app.command("doctor", cls=Forwarded)
def forward_to_doctor(context: typer.Context) -> None:
    """Look whether everything that is needed works here."""
    from .doctor import command

    _run(command(), context)


def main(arguments: Sequence[str] | None = None) -> None:
    """The entry point of the `maskwright` command."""
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def run(arguments: Sequence[str]) -> int:
    """Runs one command line and returns its exit code."""
    try:
        asked = [*arguments[1:], "--help"] if arguments[:1] == ["help"] else list(arguments)
        code = app(asked, prog_name="maskwright", standalone_mode=False, **_HELP)
        if sys.stdout is not None:  # closed by the shell, as with `>&-`
            sys.stdout.flush()
    except BrokenPipeError:  # who read the output has gone, as `head` does; within a command typer sees to it, in the same way
        _write_no_more()
        return INCOMPLETE
    except Exception as error:
        message = _explanation(error)
        if message is None:
            raise
        print(f"maskwright: {message}", file=sys.stderr)
        return WRONG_INPUT if not _is_unfinished(error) else INCOMPLETE
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    return code if isinstance(code, int) else 0


def _write_no_more() -> None:
    """What is still to be written to standard output is dropped, at the end of the process too."""
    with suppress(OSError, ValueError):  # there is no file behind it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(command: Any, context: typer.Context) -> None:
    code = command.main(context.args, prog_name=context.command_path, standalone_mode=False, **_HELP)
    if isinstance(code, int) and code:
        raise typer.Exit(code)


def _explanation(error: Exception) -> str | None:
    """One line about an error that is the user's to mend, and below it the place, where it shows one; None for a defect of ours."""
    if hasattr(error, "format_message"):  # what typer finds wrong with the arguments
        return str(error.format_message()) or "missing command; see maskwright --help"
    if isinstance(error, OSError) and error.filename is None and error.errno in _NO_ROOM:
        _write_no_more()
        return f"the output cannot be written: {error.strerror}"
    from .known_errors import KNOWN_ERRORS

    if not isinstance(error, KNOWN_ERRORS):
        return None
    lines = str(error).split("\n")
    place = lines[-2:] if lines[-1].strip() == "^" else []  # a line of a source with a caret below it
    return "\n".join([" ".join(" ".join(lines[: len(lines) - len(place)]).split()), *place])


def _is_unfinished(error: Exception) -> bool:
    from ..errors import OutputError

    return isinstance(error, OutputError)
