"""Builds the package; loops, and the modules that lower schemas to grammars, become machine code.

The modules are the same typed Python, made C of by mypyc (https://mypyc.readthedocs.io): a constraint compiles in 60 % of the time.
The loops, which compute masks, are compiled by Numba into one library (foundation/compiled_loops), in a wheel for several levels
of processors, so that nothing is compiled where it is installed. Where mypyc, Numba or a C compiler is missing, modules stay
Python and loops are compiled at their first call, with a warning. A wheel has the products of `kernels/cpu` compiled, too.
MASKWRIGHT_NATIVE=require makes that an error; MASKWRIGHT_NATIVE=never leaves all as it is. A wheel has machine code beside its
sources. For an editable installation it lies in a folder of its own, and is used as long as the sources are those it was made of:
constraints/machine_code.py, foundation/compiled_loops/library.py.
"""

import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import BaseError, CCompilerError

ROOT = Path(__file__).parent
STAGE = ROOT / "build" / "native"  # the package as it is imported: mypyc takes the names of modules from their folders
EDITABLE = ROOT / "build" / "machine_code" / str(sys.implementation.cache_tag)  # as constraints/machine_code.py looks for it
LOOPS = ROOT / "build" / "loops"  # object code of entry points, and a table of them
# Functions of mypyc that are called where something was raised, as its CPy.h declares them; included in all C that it writes.
RARELY_CALLED = """\
struct _object;
#define MASKWRIGHT_RARE __attribute__((cold)) void
MASKWRIGHT_RARE CPy_AddTraceback(const char *, const char *, int, struct _object *);
MASKWRIGHT_RARE CPy_TypeErrorTraceback(const char *, const char *, int, struct _object *, const char *, struct _object *);
MASKWRIGHT_RARE CPy_TypeError(const char *, struct _object *);
"""
MODE = os.environ.get("MASKWRIGHT_NATIVE", "auto")

# The rooms of constraints/ whose modules become machine code, but for those that stay Python. All recursion in these is bounded
# by constants: no interpreter counts how deep machine code calls itself. Classes with `__slots__` cannot be compiled, and
# subclasses of compiled classes have to be.
NATIVE_ROOMS = [f"front_ends/json_schema/{room}" for room in ("strings", "algebra", "lowering")]
STAYS_PYTHON = [
    *(f"front_ends/json_schema/strings/{name}" for name in ("addresses", "formats", "text_classes")),
    *(f"front_ends/json_schema/algebra/{name}" for name in ("claims", "clauses", "discriminators", "mixed_arrays")),
]
NATIVE_BESIDES = [
    *(f"front_ends/json_schema/documents/{name}" for name in ("dialect", "document", "drafts", "forms", "inspection", "keywords")),
    *(f"front_ends/json_schema/documents/{name}" for name in ("nesting", "paths", "policy", "reading", "relaxation")),
    *(f"grammar/{name}" for name in ("cardinality", "copies", "emptiness", "expression", "lowering_cache", "matcher")),
    *(f"grammar/{name}" for name in ("separated_lists", "stopwatch", "store", "unordered_members")),
    *(f"grammar/{name}" for name in ("components", "left_factoring", "left_recursion", "merged_repetitions", "recursion")),
    *(f"front_ends/regex/{name}" for name in ("context", "lookbehind", "lowering", "parser", "rows")),
    *(f"front_ends/regex/{name}_dialect" for name in ("ecma", "lark", "python", "rust")),
    "front_ends/numbers/digits", "front_ends/numbers/numbers",
    "automaton/assembling/assembly", "automaton/machine",
]


def native_names() -> list[str]:
    """Of all modules that become machine code: the paths in constraints/, without `.py`."""
    folder = ROOT / "constraints"
    files = [file for room in NATIVE_ROOMS for file in (folder / room).glob("*.py") if file.stem != "__init__"]
    inside = {file.relative_to(folder).with_suffix("").as_posix() for file in files}
    return sorted(inside - set(STAYS_PYTHON) | set(NATIVE_BESIDES))


def all_packages() -> list[str]:
    """Import packages: all folders with an `__init__.py` of the top-level folders that ship, `package-dir` in pyproject.toml."""
    directories = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-dir"]
    found = []
    for package, top in directories.items():
        for init in (ROOT / top).rglob("__init__.py"):
            found.append(".".join((package, *init.parent.relative_to(ROOT / top).parts)))
    return sorted(found)


class AllOrNothing(build_ext):
    """Extensions that need each other: when one of them does not compile, none is left behind."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count()

    def build_extensions(self) -> None:
        self.compiler.compile = file_by_file(self.compiler.compile)
        super().build_extensions()

    def run(self) -> None:
        names = {extension.name for extension in self.extensions}
        if self.editable_mode:
            self.inplace, self.build_lib = False, str(EDITABLE)
            if names - {library().MODULE}:
                shutil.rmtree(EDITABLE / "maskwright" / "constraints", ignore_errors=True)
        try:
            super().run()
            if self.editable_mode and names - {library().MODULE}:
                (EDITABLE / "manifest.json").write_text(json.dumps(manifest()))
            if library().MODULE in names:
                stamps = json.loads((LOOPS / "stamps.json").read_text())
                library().write_manifest(Path(self.get_ext_fullpath(library().MODULE)), stamps)
        except (BaseError, CCompilerError) as problem:
            stay_python(problem)
            for extension in self.extensions:
                Path(self.get_ext_fullpath(extension.name)).unlink(missing_ok=True)
            self.extensions = []


def file_by_file(compile_all: Callable[..., list[str]]) -> Callable[..., list[str]]:
    """A compiler's `compile` that has as many files compiled at once as there are processors."""

    def compile_each(sources: list[str], *arguments: Any, **options: Any) -> list[str]:
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            longest_first = sorted(sources, key=os.path.getsize, reverse=True)
            made = pool.map(lambda source: compile_all([source], *arguments, **options), longest_first)
            return sorted(path for paths in made for path in paths)

    return compile_each


def native_modules() -> list[Extension]:
    """What mypyc makes of the modules. Raises ImportError where it is not installed, and SystemExit where it refuses them."""
    from mypyc.build import mypycify

    ignored = shutil.ignore_patterns("__pycache__", "embedded")
    shutil.rmtree(STAGE, ignore_errors=True)
    shutil.copytree(ROOT / "api", STAGE / "maskwright", ignore=ignored)
    for folder in ("constraints", "foundation"):
        shutil.copytree(ROOT / folder, STAGE / "maskwright" / folder, ignore=ignored)
    options = ["--config-file=", "--no-site-packages", "--ignore-missing-imports", "--follow-imports=silent"]
    staged = STAGE.relative_to(ROOT) / "maskwright" / "constraints"  # as tracebacks say it: nothing of this machine
    paths = [str(staged / f"{name}.py") for name in native_names()]
    extensions: list[Extension] = mypycify(
        [*options, *paths],
        target_dir=str(ROOT / "build"),
        group_name="maskwright",
        opt_level="2",
        debug_level="0",
        multi_file=True,  # compiled at once
    )
    flags = layout_flags()
    for extension in extensions:  # all of them hold one list
        extension.extra_compile_args = [*extension.extra_compile_args, *flags]
    return extensions


def layout_flags() -> list[str]:
    """What makes the compiler lay machine code out for caches that hold none of it, as a compile mostly finds them: a constraint
    takes a twentieth less time then.

    Modules call each other directly, and not through a table, as nothing else calls them; and what is done where something was
    raised, a quarter of all code, lies apart from the rest.
    """
    if os.name != "posix":
        return []
    header = ROOT / "build" / "rarely_called.h"
    header.write_text(RARELY_CALLED)
    return ["-fvisibility=hidden", "-fno-plt", "-include", str(header.relative_to(ROOT))]


def products() -> Extension:
    """Products of `kernels/cpu`, a plain library that ctypes loads: what a checkout compiles when it is first needed."""
    folder = Path("kernels/cpu/native")
    flags = ["-O3", "-g0", "-fwrapv", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off", "-pthread"]
    return Extension(
        "maskwright.kernels.cpu.products",
        sources=[str(file) for file in sorted(folder.glob("*.c"))],
        depends=[str(file) for file in sorted(folder.glob("*.h"))],
        extra_compile_args=flags,
        extra_link_args=["-pthread", "-lm"],
        optional=True,  # its sources ship too
    )


# Imports the loops without the rest of the package: what that needs is not installed where packages are built.
EMIT = """
import sys
from pathlib import Path
from types import ModuleType
root, output, kind = sys.argv[1:]
for name in ("maskwright", "maskwright.constraints", "maskwright.foundation", "maskwright.kernels", "maskwright.kernels.quantized"):
    package = sys.modules[name] = ModuleType(name)
    package.__path__ = [str(Path(root, *name.split(".")[1:]))]
from maskwright.foundation.compiled_loops import emission
emission.emit_all(Path(output), emission.levels() if kind == "all" else emission.levels_here()[-1:])
"""


def begun_emission(is_editable: bool) -> "subprocess.Popen[bytes]":
    """A process that makes object code of the loops: for the best level of this machine's processor where it is for this machine,
    else for all levels."""
    shutil.rmtree(LOOPS, ignore_errors=True)
    baseline = "x86-64-v2" if platform.machine() in ("x86_64", "AMD64") else "generic"
    environment = {"MASKWRIGHT_NATIVE": "never", "NUMBA_CPU_NAME": baseline, "NUMBA_CPU_FEATURES": ""}
    kind = "own" if is_editable else "all"
    return subprocess.Popen([sys.executable, "-c", EMIT, str(ROOT), str(LOOPS), kind], env=os.environ | environment)


def loops(emission: "subprocess.Popen[bytes]") -> Extension:
    """The loops as one library. Raises ImportError or subprocess.CalledProcessError where they cannot be compiled."""
    import numpy

    if emission.wait():
        raise subprocess.CalledProcessError(emission.returncode, emission.args)
    native = Path("foundation/compiled_loops/native")
    return Extension(
        library().MODULE,
        sources=[str(native / "entry_points.c"), str(LOOPS.relative_to(ROOT) / "table.c")],
        include_dirs=[str(native), numpy.get_include()],
        extra_objects=[str(path) for path in sorted(LOOPS.glob("*.o"))],
        extra_compile_args=["-O2", "-g0"],
        libraries=["m"],
    )


def library() -> ModuleType:
    """foundation/compiled_loops/library.py, which imports nothing of the package."""
    spec = spec_from_file_location("loops_library", ROOT / "foundation" / "compiled_loops" / "library.py")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def are_loops_made() -> bool:
    """Whether an editable installation has a library of these very loops already."""
    made = library()
    return all(made.is_made_of(made.candidates()[-1], part, made.stamp(part)) for part in made.PARTS)


def manifest() -> dict[str, object]:
    """What machine code is made of: the digest of each source, and how the names of the files that hold it end."""
    sources = {name: hashlib.sha256((ROOT / "constraints" / f"{name}.py").read_bytes()).hexdigest() for name in native_names()}
    return {"suffix": sysconfig.get_config_var("EXT_SUFFIX"), "sources": sources}


def is_made() -> bool:
    """Whether an editable installation has machine code of these very sources already."""
    try:
        return bool(json.loads((EDITABLE / "manifest.json").read_text()) == manifest())
    except (OSError, ValueError):
        return False


def wanted_modules() -> list[Extension]:
    is_editable = "editable_wheel" in sys.argv
    if MODE == "never" or not (is_editable or "bdist_wheel" in sys.argv):
        return []
    wanted = [] if is_editable else [products()]
    emission = None if is_editable and are_loops_made() else begun_emission(is_editable)  # beside mypyc, which has one thread
    if not (is_editable and is_made()):
        try:
            wanted += native_modules()
        except (ImportError, SystemExit) as problem:
            stay_python(problem)
    if emission is not None:
        try:
            wanted.append(loops(emission))
        except (ImportError, subprocess.CalledProcessError) as problem:
            stay_python(problem)
    return wanted


def stay_python(problem: BaseException) -> None:
    if MODE == "require":
        raise problem
    print(f"warning: not everything is compiled, constraints will be slower: {problem}", file=sys.stderr)


if __name__ == "__main__":
    if MODE not in ("auto", "require", "never"):
        raise SystemExit(f"MASKWRIGHT_NATIVE={MODE!r} is not one of its values: auto, require, never")
    setup(packages=all_packages(), ext_modules=wanted_modules(), cmdclass={"build_ext": AllOrNothing})
