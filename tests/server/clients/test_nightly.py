"""What `make clients` runs: each library has its pins and its script, and one of them is tried here with what is installed."""

from __future__ import annotations

import re
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

from ..serving import Served

FOLDER = Path(__file__).resolve().parents[2] / "nightly"


@pytest.fixture(scope="module")
def nightly() -> ModuleType:
    spec = spec_from_file_location("nightly_clients", FOLDER / "clients.py")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look for it
    spec.loader.exec_module(module)
    return module


def test_every_library_is_pinned_and_has_a_script(nightly: ModuleType) -> None:
    libraries = nightly.libraries()
    scripts = {f"{path.parent.name}/{path.name}" for path in FOLDER.glob("[jp]*/*") if path.suffix in (".py", ".mjs") and path.stem != "checks"}
    assert {library.script for library in libraries} == scripts
    for library in libraries:
        pin = r"@?[\w./-]+@[\d.]+" if library.is_javascript else r"[\w-]+(\[[\w,]+\])?==[\w.]+"
        assert all(re.fullmatch(pin, package) for package in library.packages), library
        script = (FOLDER / library.script).read_text(encoding="utf-8")
        assert all(name in script for name in ("typed output", "streaming", "error")), library


@pytest.fixture
def environment(nightly: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment that is this one: nothing is installed."""
    monkeypatch.setattr(nightly, "install", lambda library, folder: "")
    (tmp_path / "bin").mkdir()
    python = tmp_path / "bin" / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    return tmp_path


def test_openais_client_passes(nightly: ModuleType, environment: Path, server: Served) -> None:
    (library,) = [each for each in nightly.libraries() if each.name == "openai"]
    tried = nightly.attempt(library, environment, server.url)
    assert {name: how for name, (how, _) in tried.checks.items()} == dict.fromkeys(nightly.CHECKS, "ok"), tried
    assert not tried.is_wrong and "| openai==" in nightly.table([tried])


def test_a_server_that_is_not_there_fails(nightly: ModuleType, environment: Path) -> None:
    (library,) = [each for each in nightly.libraries() if each.name == "openai"]
    tried = nightly.attempt(library, environment, "http://127.0.0.1:9")
    assert tried.is_wrong and nightly.table([tried]).count("FAILED") >= len(nightly.CHECKS)


def test_a_script_that_ends_early_fails(nightly: ModuleType, environment: Path) -> None:
    tried = nightly.attempt(nightly.Library("none", "python/no_such_script.py", ()), environment, "")
    assert tried.is_wrong and "no_such_script" in nightly.table([tried])


def test_what_cannot_be_installed_is_skipped_and_said(nightly: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = nightly.Library("nothing", "python/openai_client.py", ("nothing==0",))
    monkeypatch.setattr(nightly, "install", lambda *_: "cannot be installed: no")
    tried = nightly.attempt(library, tmp_path, "")
    assert not tried.is_wrong and "skipped nothing: cannot be installed: no" in nightly.table([tried])
