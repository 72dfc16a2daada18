"""Modules as machine code in an editable installation, as long as their sources are those that it was made of.

In a wheel machine code lies beside the sources, and imports find it first. In a checkout sources are edited, so what an editable
installation has compiled (setup.py) lies in a folder of its own. It is used when no source has changed since, all of it or nothing,
because compiled modules rely on each other. MASKWRIGHT_NATIVE=never leaves everything Python.

Import this module before those that it may replace; importing it is enough.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Mapping, Sequence
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType

SHARED = "maskwright__mypyc"  # what all compiled modules are parts of


class Finder:
    """Finds modules by their full names, as these files. No base class says so: `importlib.abc` loads much that is not needed."""

    def __init__(self, files: Mapping[str, Path]) -> None:
        self._files = files

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        file = self._files.get(fullname)
        return None if file is None else spec_from_file_location(fullname, file)


def compiled_files(folder: Path, sources: Path, package: str) -> dict[str, Path]:
    """The compiled modules in a folder by full name; none when a source has changed, or when something is missing.

    sources: the folder of the package from which they were compiled.
    """
    try:
        manifest = json.loads((folder / "manifest.json").read_bytes())
        names = {f"{package}.{name.replace('/', '.')}": name for name in manifest["sources"]}
        files = {full: folder / (full.replace(".", "/") + manifest["suffix"]) for full in (*names, SHARED)}
        is_current = all(
            hashlib.sha256((sources / f"{name}.py").read_bytes()).hexdigest() == digest
            for name, digest in manifest["sources"].items()
        )
    except (OSError, ValueError, KeyError, TypeError):  # nothing was compiled, or it was not finished
        return {}
    return files if is_current and all(map(Path.is_file, files.values())) else {}


def _use() -> None:
    here = Path(__file__).resolve().parent
    folder = here.parent / "build" / "machine_code" / str(sys.implementation.cache_tag)
    if os.environ.get("MASKWRIGHT_NATIVE") != "never" and folder.is_dir():
        files = compiled_files(folder, here, __package__)
        if files:
            sys.meta_path.insert(0, Finder(files))


_use()
