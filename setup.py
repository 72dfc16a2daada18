"""Builds the package; in a wheel, the modules that lower schemas to grammars are machine code.

They are the same typed Python, made C of by mypyc (https://mypyc.readthedocs.io): a constraint compiles in 60 % of the time. Where
mypyc or a C compiler is missing they stay Python, with a warning. MASKWRIGHT_NATIVE=require makes that an error;
MASKWRIGHT_NATIVE=never leaves them Python. An editable installation is Python, so that what is edited is what runs.
"""

import os
import shutil
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import BaseError, CCompilerError

ROOT = Path(__file__).parent
STAGE = ROOT / "build" / "native"  # the package as it is imported: mypyc takes the names of modules from their folders
MODE = os.environ.get("MASKWRIGHT_NATIVE", "auto")

# All recursion in these is bounded by constants: no interpreter counts how deep machine code calls itself. Classes with `__slots__`
# cannot be compiled, and subclasses of compiled classes have to be.
NATIVE = [
    *("bags", "cardinality", "chains", "emptiness", "expression", "fragments", "matcher", "store"),
    *("schema/annotations", "schema/any_spelling", "schema/branches", "schema/containers", "schema/disjoint", "schema/drafts"),
    *("schema/escapes", "schema/exclusions", "schema/keywords", "schema/lowering", "schema/membership", "schema/names"),
    *("schema/negation", "schema/numbering", "schema/objects", "schema/parts", "schema/plain", "schema/products"),
    *("schema/sameness", "schema/series", "schema/shaping", "schema/text", "schema/variants"),
]


class AllOrNothing(build_ext):
    """Extensions that need each other: when one of them does not compile, none is left behind."""

    def run(self) -> None:
        try:
            super().run()
        except (BaseError, CCompilerError) as problem:
            stay_python(problem)
            for extension in self.extensions:
                Path(self.get_ext_fullpath(extension.name)).unlink(missing_ok=True)
            self.extensions = []


def native_modules() -> list[Extension]:
    """What mypyc makes of the modules. Raises ImportError where it is not installed, and SystemExit where it refuses them."""
    from mypyc.build import mypycify

    ignored = shutil.ignore_patterns("__pycache__", "embedded")
    shutil.rmtree(STAGE, ignore_errors=True)
    shutil.copytree(ROOT / "api", STAGE / "maskwright", ignore=ignored)
    shutil.copytree(ROOT / "constraints", STAGE / "maskwright" / "constraints", ignore=ignored)
    options = ["--config-file=", "--no-site-packages", "--ignore-missing-imports", "--follow-imports=silent"]
    paths = [str(STAGE / "maskwright" / "constraints" / f"{name}.py") for name in NATIVE]
    return mypycify([*options, *paths], target_dir=str(ROOT / "build"), group_name="maskwright", opt_level="2", debug_level="0")


def wanted_modules() -> list[Extension]:
    if MODE == "never" or "bdist_wheel" not in sys.argv:
        return []
    try:
        return native_modules()
    except (ImportError, SystemExit) as problem:
        stay_python(problem)
        return []


def stay_python(problem: BaseException) -> None:
    if MODE == "require":
        raise problem
    print(f"warning: no module is compiled, compiling constraints will be slower: {problem}", file=sys.stderr)


if MODE not in ("auto", "require", "never"):
    raise SystemExit(f"MASKWRIGHT_NATIVE={MODE!r} is not one of its values: auto, require, never")
setup(ext_modules=wanted_modules(), cmdclass={"build_ext": AllOrNothing})
