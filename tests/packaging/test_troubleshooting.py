"""Every message that the troubleshooting page quotes is one that the code prints."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
MESSAGES = [line for block in re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines()]
HOLE = "…"


def _templates(tree: ast.AST) -> Iterator[str]:
    """The texts in a module, with a hole for what an f-string fills in."""
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else HOLE for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


@cache
def _printed() -> list[str]:
    folders = ("api", "cli", "constraints", "engine", "foundation", "kernels", "sampling", "server")
    sources = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    return [text for path in sources for text in _templates(ast.parse(path.read_text(encoding="utf-8")))]


def test_there_are_messages() -> None:
    assert len(MESSAGES) > 25


@pytest.mark.parametrize("message", MESSAGES)
def test_a_quoted_message_is_in_the_code(message: str) -> None:
    found = [text for text in _printed() if message.removesuffix(HOLE) in text]
    assert found, f"docs/troubleshooting.md quotes what is not printed any more: {message}"


def test_options_that_are_named_exist() -> None:
    """Options of the command line and extras of the package."""
    from maskwright.cli import chat, doctor, generate, serve

    commands = (chat, doctor, generate, serve)
    known = {name for each in commands for parameter in each.command().params for name in (*parameter.opts, *parameter.secondary_opts)}
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", PAGE))
    assert named and not named - known
