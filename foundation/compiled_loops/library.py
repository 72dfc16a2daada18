"""The library of loops: found, and taken only where it is what the sources say.

In a wheel it lies beside this file; for an editable installation in the folder where setup.py leaves what it compiles. Its
manifest says of which sources it was made, and the digest of the library itself, so that a stale, foreign or damaged one is noticed
before it is loaded. MASKWRIGHT_NATIVE=never leaves it alone.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import sys
import sysconfig
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

logger = logging.getLogger(__name__)

MODULE = "maskwright.foundation.compiled_loops.entry_points"
_HERE = Path(__file__).resolve().parent
ROOT = _HERE.parents[1]  # of an editable installation the root of the checkout
# Parts of the package that have loops, and all files from which these take code or constants. More is named than compiled: nothing
# can be forgotten.
PARTS = {
    "constraints": tuple(
        f"constraints/{room}/**/*.py"
        for room in ("base", "numba_support", "vocabulary", "automaton", "masks", "uniqueness", "token_automaton")
    ),
    "kernels": tuple(f"kernels/quantized/{name}.py" for name in ("loops", "block_loops", "block_values", "scaled_loops")),
}
_MAKERS = [*sorted(_HERE.glob("*.py")), *sorted((_HERE / "native").glob("*"))]  # what makes machine code of sources


def sources(part: str) -> list[Path]:
    return sorted(path for pattern in PARTS[part] for path in ROOT.glob(pattern))


def stamp(part: str) -> str:
    """Changes with any source of the loops of a part, and with what makes machine code of them."""
    digests = [hashlib.sha256(path.read_bytes()).digest() for path in (*_MAKERS, *sources(part))]
    return hashlib.sha256(b"".join(digests)).hexdigest()


def file_name() -> str:
    return "entry_points" + str(sysconfig.get_config_var("EXT_SUFFIX"))


def candidates() -> list[Path]:
    """Where the library may be, the first one that is there counts."""
    made = ROOT / "build" / "machine_code" / str(sys.implementation.cache_tag) / Path(*MODULE.split(".")[:-1])
    return [_HERE / file_name(), made / file_name()]


def write_manifest(library: Path, stamps: dict[str, str]) -> None:
    """Beside a library: what it was made of, by the name of the part of the package."""
    content = {"digest": hashlib.sha256(library.read_bytes()).hexdigest(), "stamps": stamps}
    library.with_name("entry_points.json").write_text(json.dumps(content))


def opened(part: str, stamp: str) -> Any:
    """The library as a module, with `entry` and `levels`; None when there is none that has this part's loops with this stamp."""
    if os.environ.get("MASKWRIGHT_NATIVE") == "never":
        return None
    path = next((path for path in candidates() if path.is_file()), None)
    return None if path is None or not is_made_of(path, part, stamp) else _loaded(path)


def is_made_of(library: Path, part: str, stamp: str) -> bool:
    """Whether a library is whole, and has the loops of the part as its sources are now."""
    try:
        manifest = json.loads(library.with_name("entry_points.json").read_bytes())
        if manifest["stamps"].get(part) != stamp:
            logger.debug("%s was made of other sources", library)
            return False
        is_whole = bool(manifest["digest"] == _digest_of(library))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as problem:
        logger.warning("%s is not used, its manifest cannot be read: %s", library, problem)
        return False
    if not is_whole:
        logger.warning("%s is not used, it is damaged: its digest is not that of its manifest", library)
    return is_whole


@cache
def _digest_of(library: Path) -> str:
    return hashlib.sha256(library.read_bytes()).hexdigest()


@cache
def _loaded(library: Path) -> Any:
    spec = spec_from_file_location(MODULE, library)
    assert spec is not None and spec.loader is not None
    try:
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
    except ImportError as problem:  # of another system
        logger.warning("%s cannot be loaded: %s", library, problem)
        return None
    return module if module.levels() else None
