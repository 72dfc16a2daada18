"""The architecture page names every room, and no file that is not there; links of the pages lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
CODE = re.compile(r"`([\w/.]+)`")
TOP = ("api", "cli", "conformance", "constraints", "engine", "foundation", "grammars", "integrations", "kernels", "sampling", "server")
HOUSES = ("constraints", "engine", "kernels")  # folders whose rooms have a line each
BELOW = ("front_ends", "json_schema")  # rooms that are made of rooms
# Where files lie that the page names within the section about a folder.
PLACES = ("", "api/", "constraints/", "constraints/*/", "constraints/front_ends/json_schema/", "engine/", "kernels/")


def _rooms(folder: Path) -> list[Path]:
    """The packages in a folder, of those that are made of rooms the rooms."""
    packages = sorted(path.parent for path in folder.glob("*/__init__.py"))
    return [room for package in packages for room in (_rooms(package) if package.name in BELOW else [package])]


def test_every_folder_is_named() -> None:
    for name in TOP:
        assert f"`{name}/`" in PAGE, f"docs/architecture.md does not name {name}/"


@pytest.mark.parametrize("house", HOUSES)
def test_every_room_is_named(house: str) -> None:
    for room in _rooms(ROOT / house):
        where = room.relative_to(ROOT / house).as_posix()
        names = (where, where.removeprefix("front_ends/json_schema/"))
        assert any(f"`{name}/`" in PAGE for name in names), f"{house}/{where}/ is missing from docs/architecture.md"


def test_every_named_file_exists() -> None:
    named = [name for name in CODE.findall(PAGE) if name.endswith((".py", "/"))]
    assert named
    for name in named:
        assert any(next(ROOT.glob(place + name), None) for place in PLACES), f"docs/architecture.md names {name}"


@pytest.mark.parametrize("page", ["README.md", "CHANGELOG.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))])
def test_links_lead_somewhere(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", text):
        assert (ROOT / page).parent.joinpath(target).exists(), f"{page} links to {target}"


def test_the_glossary_names_what_is_in_the_code() -> None:
    """The last column of the tables that say where a term is found: files and names of the package."""
    sources = {path: path.read_text(encoding="utf-8") for folder in TOP for path in (ROOT / folder).rglob("*.py")}
    files, words = {path.name for path in sources}, set(re.findall(r"\w+", "\n".join(sources.values())))
    rows = [line for line in (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8").splitlines() if line.count(" | ") == 3]
    named = [code for row in rows for code in re.findall(r"`([^`]+)`", row.split(" | ")[3])]
    assert len(named) > 50
    for code in named:
        if code.endswith(".py"):
            assert Path(code).name in files, f"docs/glossary.md names {code}"
        else:
            missing = [word for word in re.findall(r"\w+(?![\w*])", code) if word not in words]
            assert not missing, f"docs/glossary.md names {code}"


def test_the_changelog_keeps_its_form() -> None:
    """https://keepachangelog.com: the newest first, changes under the words for their kinds."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    versions = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert versions[0] == "Unreleased"
    assert all(re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", version) for version in versions[1:])
    kinds = re.findall(r"^### (.+)$", text, re.MULTILINE)
    assert kinds and set(kinds) <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
