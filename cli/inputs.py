"""What the command line names: schemas, grammars, prompts and tools, read from files, modules and standard input."""

from __future__ import annotations

import codecs
import importlib
import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from .. import grammars
from ..constraints.lab.grammar_file import GrammarFile
from ..errors import UsageError


def read_text(path: Path, option: str) -> str:
    """The text of a file, without a byte order mark. Raises UsageError naming the option."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise UsageError(f"{option} {path}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        if path.read_bytes().startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise UsageError(f"{option} {path}: this is UTF-16 text; save it as UTF-8") from None
        raise UsageError(f"{option} {path}: not UTF-8 text ({error.reason} at byte {error.start})") from None


def read_schema(name: str) -> Any:
    """A JSON Schema from `file.json`, or a type from `module:Class` or `file.py:Class`."""
    if ":" in name and not name.endswith(".json"):
        return named_object(name, "--schema")
    text = read_text(Path(name), "--schema")
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise UsageError(f"--schema {name}: not JSON: {error.msg} at line {error.lineno}, column {error.colno}") from None


def read_grammar(name: str) -> str:
    """The text of a grammar file, or of a grammar that ships in the package, by its name."""
    return grammar_file(name, "--grammar", language="gbnf").text


def grammar_file(name: str, option: str, language: str | None = None, start: str | None = None) -> GrammarFile:
    """A grammar file, or a grammar that ships in the package, by its name. A file of that name is preferred."""
    if name in grammars.names() and not Path(name).is_file():
        return GrammarFile.named(grammars.path(name).name, grammars.text(name), None, start)
    if not Path(name).exists():
        known = ", ".join(grammars.names())
        raise UsageError(f"{option} {name}: there is no such file, nor a grammar of that name ({known})")
    return GrammarFile.named(name, read_text(Path(name), option), language, start)


def named_object(name: str, option: str) -> Any:
    """What `module:Name` or `file.py:Name` stands for."""
    module_name, _, attribute = name.rpartition(":")
    module = _load_module(module_name, option, name)
    try:
        return getattr(module, attribute)
    except AttributeError:
        raise UsageError(f'{option} {name}: {module_name} has no "{attribute}"') from None


def read_prompts(prompt: str | None, prompt_file: Path | None) -> list[str]:
    """The prompt given, the lines of the file, or standard input when neither is given."""
    if prompt is not None and prompt_file is not None:
        raise UsageError("a prompt and --prompt-file contradict each other: give one of them")
    if prompt_file is not None:
        lines = [line for line in read_text(prompt_file, "--prompt-file").splitlines() if line.strip()]
        if not lines:
            raise UsageError(f"--prompt-file {prompt_file}: there is no prompt in it")
        return lines
    if prompt is None and sys.stdin.isatty():
        raise UsageError("there is no prompt: give one, or --prompt-file, or pipe it in")
    text = sys.stdin.read().strip() if prompt is None else prompt
    if not text:
        raise UsageError("the prompt is empty")
    return [text]


def _load_module(module_name: str, option: str, name: str) -> ModuleType:
    try:
        if module_name.endswith(".py"):
            return _load_file(Path(module_name))
        if "" not in sys.path:  # a console script does not look into the current folder by itself
            sys.path.insert(0, "")
        return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise UsageError(f'{option} {name}: there is no module "{error.name}"') from None
    except FileNotFoundError:
        raise UsageError(f"{option} {name}: there is no such file") from None
    except Exception as error:  # whatever the user's own code raises
        raise UsageError(f"{option} {name}: loading it failed: {type(error).__name__}: {error}") from error


def _load_file(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None, "a name that ends in .py has a loader"
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)  # dataclasses and Pydantic look their module up
    spec.loader.exec_module(module)
    return module
