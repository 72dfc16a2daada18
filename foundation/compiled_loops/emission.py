"""Entry points as object code, for several levels of a processor, and a table of them in C: what setup.py makes a library of.

Functions are read, typed and lowered once, and linked into one module, each of them once: what masks, advancing and the building
of automata have in common is in memory once, and optimised once. The module is then optimised for every level by itself, in as
many processes as there are processors. An entry point gets a second name whose type is the same for all (`Function` of
entry_points.h): words in, words out.
"""

from __future__ import annotations

import json
import os
import platform
import re
import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from functools import cache
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba.core import cgutils, compiler, types
from numba.core.codegen import AOTCPUCodegen
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target
from numba.np.arrayobj import populate_array

from . import library
from .declarations import TRUTH, ArrayType, Declaration, Loops
from .enumerations import MemberCompiler
from .linking import Part, Whole

_MOST_ARGUMENTS, _MOST_WORDS, _MOST_RESULTS, _MOST_LEVELS = 12, 48, 8, 3  # as in entry_points.h
_WORD = ir.IntType(64)
_STATUS = ir.IntType(32)
# What machine code may ask of entry_points.c and of C.
_SUPPLIED = re.compile(r"NRT_(Allocate|Free|MemInfo_(alloc|alloc_aligned|call_dtor))|mem(cpy|set|move|cmp)|log10|llvm\..*")


_ENTRY = re.compile(r"^@entry\b", re.MULTILINE)


def emit_all(output: Path, of: Sequence[str]) -> None:
    """Write the object code of all entry points of the package for these levels, the table of them, and what they were made of."""
    parts = [_loops_of(part) for part in library.PARTS]
    emit([one for part in parts for one in part.declared], output, of)
    stamps = {part: loops.stamp for part, loops in zip(library.PARTS, parts, strict=True)}
    (output / "stamps.json").write_text(json.dumps(stamps))


def _loops_of(part: str) -> Loops:
    """The `Loops` of a part of the package, when all modules are imported that declare entry points with it."""
    found = []
    for path in library.sources(part):
        if _ENTRY.search(path.read_text(encoding="utf-8")):
            folders = path.relative_to(library.ROOT).with_suffix("").parts
            found.append(import_module(".".join(("maskwright", *folders))))
    (loops,) = {id(one.entry.__self__): one.entry.__self__ for one in found}.values()
    assert isinstance(loops, Loops)
    return loops


def levels_here() -> list[str]:
    """Those of the levels that this machine's processor has."""
    if platform.machine() not in ("x86_64", "AMD64"):
        return levels()
    has = llvm.get_host_cpu_features()
    needs = {
        "x86-64-v2": ("sse4.2", "popcnt", "cx16"),
        "x86-64-v3": ("avx2", "bmi", "bmi2", "fma", "f16c", "lzcnt", "movbe"),
        "x86-64-v4": ("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"),
    }
    return [level for level in levels() if all(has.get(one, False) for one in needs[level])]


def levels() -> list[str]:
    """Kinds of processors to compile for, as LLVM names them; those with more instructions last."""
    if platform.machine() in ("x86_64", "AMD64"):
        return ["x86-64-v2", "x86-64-v3", "x86-64-v4"]
    return ["apple-m1" if sys.platform == "darwin" else "generic"]


class _Root(Whole):
    """All entry points and all that they reach, each function once: not optimised yet, and not loaded."""

    def __init__(self, generator: Any, entry_points: Sequence[Part]) -> None:
        super().__init__(generator, "loops")
        for one in entry_points:
            self._final_module.link_in(one._final_module)
        self._linking_libraries = [callee for one in entry_points for callee in one._linking_libraries]

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        assert not self._dynamic_globals, f"{self.name} holds addresses of this process: {self._dynamic_globals}"
        self._verify_declare_only_symbols()
        self._finalized = True


class _EntryPointCompiler(MemberCompiler):
    def compile_extra(self, func: Callable[..., Any]) -> Any:
        self.state.library = Part(self.state.targetctx.codegen(), func.__qualname__)
        return super().compile_extra(func)


def numba_type(declared: str | ArrayType) -> Any:
    if isinstance(declared, str):
        return types.boolean if declared == TRUTH else types.int64
    item = types.boolean if declared.item == "bool" else getattr(types, declared.item)
    return types.Array(item, declared.dimensions, "C", readonly=declared.is_const)


def lowered(declaration: Declaration) -> tuple[Part, Any]:
    """(the code of an entry point alone, with its second name; the type of what it returns)."""
    with global_compiler_lock:
        flags = compiler.Flags()
        options = {"nopython": True, "nogil": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
        cpu_target.options.parse_as_flags(flags, options)
        flags.no_compile = True
        arguments = tuple(map(numba_type, declaration.arguments))
        made = compiler.compile_extra(
            cpu_target.typing_context, cpu_target.target_context, declaration.function, arguments, None, flags, {},
            pipeline_class=_EntryPointCompiler,
        )  # fmt: skip
        made.library._final_module.link_in(
            llvm.parse_assembly(str(_second_name(declaration.name, made.target_context, made.fndesc)))
        )
    return made.library, made.fndesc.restype


def linked(entry_points: Sequence[Part], names: Collection[str]) -> bytes:
    """Bitcode of one module of all entry points, of which nothing but their second names can be called from outside."""
    with global_compiler_lock:
        root = _Root(cpu_target.target_context.codegen(), entry_points)
        root.finalize()
        module = root._final_module
    for one in (*module.functions, *module.global_variables):
        if not one.is_declaration and one.name not in names and not one.name.startswith("llvm."):
            one.linkage = "internal"
    return module.as_bitcode()


def _second_name(name: str, context: Any, descriptor: Any) -> ir.Module:
    """A function that takes words, calls the entry point and writes words."""
    module = context.create_module(f"{name} of words")
    callee = ir.Function(
        module, context.call_conv.get_function_type(descriptor.restype, descriptor.argtypes), descriptor.llvm_func_name
    )
    function = ir.Function(module, ir.FunctionType(_STATUS, [_WORD.as_pointer(), _WORD.as_pointer()]), name)
    builder = ir.IRBuilder(function.append_basic_block())
    words, results = function.args
    arguments, at = [], 0
    for kind in descriptor.argtypes:
        value, count = _taken(context, builder, kind, words, at)
        arguments.append(value)
        at += count
    status, result = context.call_conv.call_function(builder, callee, descriptor.restype, descriptor.argtypes, arguments)
    with cgutils.if_likely(builder, status.is_ok):
        for i, (kind, value) in enumerate(_results(builder, descriptor.restype, result)):
            word = builder.zext(value, _WORD) if isinstance(kind, types.Boolean) else value
            assert word.type == _WORD, f"{name} returns {kind}"
            builder.store(word, builder.gep(results, [_WORD(i)]))
    builder.ret(builder.select(status.is_ok, _STATUS(0), _STATUS(1)))
    return module


def _taken(context: Any, builder: Any, kind: Any, words: Any, at: int) -> tuple[Any, int]:
    """(an argument as Numba has it, how many words it takes)."""

    def word(i: int) -> Any:
        return builder.load(builder.gep(words, [_WORD(at + i)]))

    if isinstance(kind, types.Boolean):
        return builder.trunc(word(0), ir.IntType(1)), 1
    if isinstance(kind, types.Integer):
        return word(0), 1
    array = context.make_array(kind)(context, builder)
    itemsize = context.get_abi_sizeof(context.get_data_type(kind.dtype))
    shape = [word(1 + axis) for axis in range(kind.ndim)]
    strides = [_WORD(itemsize)]
    for length in reversed(shape[1:]):
        strides.insert(0, builder.mul(strides[0], length))
    data = builder.inttoptr(word(0), array.data.type)
    populate_array(array, data=data, shape=shape, strides=strides, itemsize=itemsize, meminfo=None)
    return array._getvalue(), 1 + kind.ndim


def _results(builder: Any, kind: Any, value: Any) -> list[tuple[Any, Any]]:
    if kind == types.none:
        return []
    if isinstance(kind, types.BaseTuple):
        return [(part, builder.extract_value(value, i)) for i, part in enumerate(kind)]
    return [(kind, value)]


@cache
def _inline_larger_functions() -> None:
    """LLVM's own threshold is for functions of one caller each (`Whole`): with it masks here took 2 % longer. Once a process."""
    llvm.set_option("emission", "--inline-threshold=1000")


@cache
def _generator(level: str) -> Any:
    return AOTCPUCodegen(f"loops of {level}", cpu_name=level)


class _Optimised(Whole):
    """A module to which Numba's passes are applied for another processor than that of this machine."""

    def __init__(self, generator: Any, module: Any) -> None:
        super().__init__(generator, "optimised")
        self._final_module = module


def emitted(names: Iterable[str], bitcode: bytes, level: str, output: Path) -> None:
    """Optimise the module of entry points for a level, and write its object code."""
    with global_compiler_lock:
        _inline_larger_functions()
        generator = _generator(level)
        whole = _Optimised(generator, llvm.parse_bitcode(bitcode))
        whole._optimize_final_module()
        module = whole._final_module
        for name in names:
            module.get_function(name).name = symbol(name, level)
        asked = [one.name for one in (*module.functions, *module.global_variables) if one.is_declaration]
        missing = [one for one in asked if not _SUPPLIED.fullmatch(one)]
        assert not missing, f"entry points call {missing}, which the library does not have"
        output.write_bytes(generator._tm.emit_object(module))


def symbol(name: str, level: str) -> str:
    return "loops_" + re.sub(r"\W", "_", f"{level}_{name}")


def emit(declarations: Sequence[Declaration], output: Path, of: Sequence[str]) -> None:
    """Write the object code of entry points for these levels, and the table of them."""
    output.mkdir(parents=True, exist_ok=True)
    names = [one.name for one in declarations]
    parts, results = zip(*map(lowered, declarations), strict=True)
    bitcode = linked(parts, names)
    with _pool() as pool:
        _finish([pool.submit(emitted, names, bitcode, level, output / f"{level}.o") for level in of])
    (output / "table.c").write_text(table(list(zip(declarations, results, strict=True)), of))


def _pool() -> Executor:
    """Processes that know all that is imported here; where forking is not safe, a thread."""
    if sys.platform == "linux":
        return ProcessPoolExecutor(os.cpu_count(), get_context("fork"))
    return ThreadPoolExecutor(1)


def _finish(waiting: list[Future[None]]) -> None:
    for one in waiting:
        one.result()


def table(entries: Sequence[tuple[Declaration, Any]], of: Sequence[str]) -> str:
    """The table of entry points, in C."""
    lines = ['#include <stddef.h>', '#include "entry_points.h"']
    names = [[symbol(one.name, level) for level in of] for one, _ in entries]
    lines += [f"extern int32_t {name}(const int64_t *, int64_t *);" for row in names for name in row]
    lines.append("const char *const LEVELS[] = {" + ", ".join(f'"{level}"' for level in of) + ", NULL};")
    lines.append("const Declaration DECLARATIONS[] = {")
    for (one, result), functions in zip(entries, names, strict=True):
        words = sum(1 + kind.dimensions if isinstance(kind, ArrayType) else 1 for kind in one.arguments)
        fits = len(one.arguments) <= _MOST_ARGUMENTS and words <= _MOST_WORDS and len(_result_types(result)) <= _MOST_RESULTS
        assert fits and len(of) <= _MOST_LEVELS, f"{one.name} has more than entry_points.h has room for"
        arguments = ", ".join(map(_argument, one.arguments))
        is_tuple = isinstance(result, types.BaseTuple)
        kinds = "".join("t" if isinstance(kind, types.Boolean) else "n" for kind in _result_types(result))
        lines.append(
            f'    {{"{one.name}", {len(one.arguments)}, {{{arguments}}}, {int(is_tuple)}, "{kinds}", {{{", ".join(functions)}}}}},'
        )
    lines += ["};", f"const int NUM_DECLARATIONS = {len(entries)};", ""]
    return "\n".join(lines)


def _argument(declared: str | ArrayType) -> str:
    if isinstance(declared, str):
        return "{'t', 0, 0, 0}" if declared == TRUTH else "{'n', 8, 0, 0}"
    item = np.dtype(declared.item)
    return f"{{'{item.kind}', {item.itemsize}, {declared.dimensions}, {int(declared.is_const)}}}"


def _result_types(result: Any) -> list[Any]:
    if result == types.none:
        return []
    return list(result) if isinstance(result, types.BaseTuple) else [result]
