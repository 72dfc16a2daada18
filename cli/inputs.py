"""What the command line names: schemas, grammars, prompts and tools, read from files, modules and standard input."""

from __future__ import annotations

import codecs
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .. import grammars
from ..constraints import Source
from ..constraints.lab.grammar_file import GRAMMAR_LANGUAGES, GrammarFile, language_of
from ..errors import UsageError
from ..plugins import named_object

STANDARD = Path("-")  # in place of a file: standard input, or output


def read_text(path: Path, option: str) -> str:
    """The text of a file, "-" for standard input, without a byte order mark. Raises UsageError naming the option."""
    if path == STANDARD:
        return "".join(piped_lines()).removeprefix("\ufeff")
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise UsageError(f"{option} {path}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        if path.read_bytes().startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise UsageError(f"{option} {path}: this is UTF-16 text; save it as UTF-8") from None
        raise UsageError(f"{option} {path}: not UTF-8 text ({error.reason} at byte {error.start})") from None


def piped_lines() -> Iterator[str]:
    """Standard input, line by line; nothing where the shell has closed it, as with `<&-`. Raises UsageError where it is no text."""
    try:
        yield from iter(sys.stdin.readline, "") if sys.stdin is not None else ()
    except UnicodeDecodeError as error:
        raise UsageError(f"standard input: not {error.encoding} text ({error.reason} at byte {error.start})") from None


def is_terminal() -> bool:
    """Whether somebody types what standard input gives."""
    return sys.stdin is not None and sys.stdin.isatty()


def schema_source(name: str, option: str) -> Any:
    """The text of a schema, from a file or as it is written, or a type from `module:Class` or `file.py:Class`."""
    if not name.strip():
        raise UsageError(f"{option}: it is empty; give a file, a schema or MODULE:CLASS")
    if name.lstrip().startswith(("{", "[")) or name.strip() in ("true", "false"):
        return name
    if ":" in name and not name.endswith(".json"):
        return named_object(name, option)
    return read_text(Path(name), option)


def read_schema(name: str) -> Any:
    """The text of a JSON Schema, or a type. Raises UsageError where the text is no schema at all, before a model is loaded."""
    text = schema_source(name, "--schema")
    if not isinstance(text, str):
        return text
    try:
        schema = json.loads(text)
    except json.JSONDecodeError as error:
        hint = f"; a class in it is {name}:CLASS" if name.endswith(".py") else ""
        raise UsageError(f"--schema {name}: not JSON: {error.msg} at line {error.lineno}, column {error.colno}{hint}") from None
    if not isinstance(schema, dict | bool):
        raise UsageError(f"--schema {name}: a schema is an object or a boolean, not {type(schema).__name__}")
    return text


def read_grammar(name: str) -> str | Source:
    """The text of a grammar file, or of a grammar that ships in the package, by its name; the source in a registered language."""
    language = language_of(Path(name).suffix)
    if language is not None and not GRAMMAR_LANGUAGES.is_built_in(language) and Path(name).is_file():
        return grammar_file(name, "--grammar").source
    return grammar_file(name, "--grammar", language="gbnf").text


def grammar_file(name: str, option: str, language: str | None = None, start: str | None = None) -> GrammarFile:
    """A grammar file, or a grammar that ships in the package, by its name. A file of that name is preferred."""
    if name in grammars.names() and not Path(name).is_file():
        return GrammarFile.named(grammars.path(name).name, grammars.text(name), None, start)
    if Path(name) != STANDARD and not Path(name).exists():
        known = ", ".join(grammars.names())
        raise UsageError(f"{option} {name}: there is no such file, nor a grammar of that name ({known})")
    return GrammarFile.named(name, read_text(Path(name), option), language, start)


def read_prompts(prompt: str | None, prompt_file: Path | None) -> list[str]:
    """The prompt given, the lines of the file, or standard input when neither is given."""
    if prompt is not None and prompt_file is not None:
        raise UsageError("a prompt and --prompt-file contradict each other: give one of them")
    if prompt_file is not None:
        lines = [line for line in read_text(prompt_file, "--prompt-file").splitlines() if line.strip()]
        if not lines:
            raise UsageError(f"--prompt-file {prompt_file}: there is no prompt in it")
        return lines
    if prompt is None and is_terminal():
        raise UsageError("there is no prompt: give one, or --prompt-file, or pipe it in")
    text = "".join(piped_lines()).strip() if prompt is None else prompt
    if not text:
        raise UsageError("the prompt is empty")
    return [text]
