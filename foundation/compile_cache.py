"""Where compiled loops are kept, so that a machine compiles them once.

Numba stores machine code beside the source. In a read-only installation that fails, and the fallback is a user folder:

    1. NUMBA_CACHE_DIR, when the user has set it
    2. beside the source, when that is writable                     (nothing is set)
    3. $XDG_CACHE_HOME/maskwright/numba, or ~/.cache/maskwright/numba
    4. a folder of this user in the system's folder for temporary files

Import this module before the first `@njit(cache=True)`; importing it is enough.
"""

from __future__ import annotations

import getpass
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

VARIABLE = "NUMBA_CACHE_DIR"


def choose_cache_folder(package: Path, environment: Mapping[str, str], temporary: Path) -> Path | None:
    """The folder to tell Numba about, or None when its own choice works: it is set by the user or `package` is writable."""
    if environment.get(VARIABLE) or is_writable(package / "__pycache__"):
        return None
    per_user = temporary / f"maskwright-{_user_name()}" / "numba"
    candidates = (*_user_cache(environment), per_user)
    return next((folder for folder in candidates if is_writable(folder)), None)


def folder_in_use() -> Path:
    """Where compiled code is kept: what the environment says, or below the sources of the core."""
    return Path(os.environ.get(VARIABLE) or Path(__file__).parents[1] / "constraints")


def is_writable(folder: Path) -> bool:
    """Whether files can be made in `folder`, which is created when missing."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _user_cache(environment: Mapping[str, str]) -> tuple[Path, ...]:
    if environment.get("XDG_CACHE_HOME"):
        return (Path(environment["XDG_CACHE_HOME"]) / "maskwright" / "numba",)
    if environment.get("HOME"):
        return (Path(environment["HOME"]) / ".cache" / "maskwright" / "numba",)
    return ()


def _user_name() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container may run under an id without a name
        return str(os.getuid())


def _tell_numba(folder: Path) -> None:
    os.environ[VARIABLE] = str(folder)
    if "numba" in sys.modules:  # it read the variable when it was imported
        sys.modules["numba"].config.CACHE_DIR = str(folder)


_folder = choose_cache_folder(Path(__file__).parent, os.environ, Path(tempfile.gettempdir()))
if _folder is not None:
    _tell_numba(_folder)
