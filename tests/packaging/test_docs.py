"""The architecture page names every module, and nothing that is not there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
CODE = re.compile(r"`([\w/.]+)`")
FOLDERS = ("api", "constraints", "engine", "sampling", "kernels", "server")
SUMMARISED = {"api/cli", "engine/models", "kernels/automaton", "kernels/sampler"}  # folders that the page names as a whole


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_module_is_named(folder: str) -> None:
    named = {Path(name).name for name in CODE.findall(PAGE)}
    for source in (ROOT / folder).rglob("*.py"):
        where = source.parent.relative_to(ROOT).as_posix()
        if where not in SUMMARISED and not source.name.startswith("__"):
            assert source.name in named, f"{where}/{source.name} is missing from docs/architecture.md"


def test_every_named_module_exists() -> None:
    existing = {path.name for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")} | {path.name for path in ROOT.glob("*.py")}
    files = [name for name in CODE.findall(PAGE) if name.endswith(".py")]
    assert files
    for name in files:
        assert Path(name).name in existing, f"docs/architecture.md names {name}"
        if "/" in name and name.split("/")[0] in FOLDERS:
            assert (ROOT / name).is_file(), f"docs/architecture.md names {name}"


def test_links_of_the_readme_lead_somewhere() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (ROOT / target).exists(), f"README.md links to {target}"
