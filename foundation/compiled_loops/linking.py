"""How compiled functions are linked: one module for each entry point, optimised once.

Numba by itself makes every compiled function a library of its own: it links all that the function calls, directly or
not, optimises the whole and makes machine code of it, before it does the same again for the next function up. For
functions that only compiled code calls, that is wasted. Here they keep their code as it is (`Part`), and an entry
point links each of them once (`Whole`): the loops compile in a third of the time.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any

from numba.core.codegen import JITCodeLibrary

from .compile_time import counted
from .enumerations import MemberCompiler

_RECURSION = ".numba.unresolved$"  # the names of Numba's pointers to functions that call themselves


class Part(JITCodeLibrary):
    """The code of a function that only compiled code calls: neither linked nor optimised, and nothing that Python could call."""

    def finalize(self) -> None:
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        return 0

    @property
    def codegen(self) -> Any:
        """The library's code generator, which keeps nothing for calls from Python."""
        shared = copy(self._codegen)
        shared.set_env = lambda name, env: None
        return shared


class Whole(JITCodeLibrary):
    """The code of an entry point and of all parts that it reaches."""

    def finalize(self) -> None:
        self._linking_libraries = _callers_first(self)
        super().finalize()

    def _optimize_final_module(self) -> None:
        """Tell LLVM that functions are called by this module only, so that it moves more of them into their callers."""
        for function in self._final_module.functions:
            if function.linkage.name == "linkonce_odr" and not function.is_declaration:
                function.linkage = "internal"
        super()._optimize_final_module()

    def _verify_declare_only_symbols(self) -> None:
        """Refuse what would crash: calls of functions that were not linked, and recursion. Of recursion, Numba looks
        for the callee when all is machine code: too late."""
        super()._verify_declare_only_symbols()
        defined = {function.name for part in self._linking_libraries for function in part.get_defined_functions()}
        missing = [one.name for one in self._final_module.functions if one.is_declaration and one.name in defined]
        assert not missing, f"{self.name} calls {missing}, not linked"
        recursive = [one.name for one in self._final_module.global_variables if one.name.startswith(_RECURSION)]
        assert not recursive, f"{self.name} calls functions that call themselves: {recursive}"


def _callers_first(whole: Whole) -> list[Any]:
    """All libraries that an entry point links, each before those that it calls: LLVM leaves out what nothing calls yet
    when it comes."""
    done: set[Any] = set()
    order: list[Any] = []  # callees first
    work: list[tuple[Any, bool]] = [(whole, False)]
    while work:
        library, are_callees_done = work.pop()
        if are_callees_done:
            order.append(library)
        elif library not in done:
            done.add(library)
            work.append((library, True))
            if isinstance(library, (Part, Whole)):
                work += [(callee, False) for callee in library._linking_libraries]
    return order[-2::-1]  # without `whole`


class PartCompiler(MemberCompiler):
    """Numba's compiler for functions that only compiled code calls."""

    def compile_extra(self, func: Callable[..., Any]) -> Any:
        self.state.library = Part(self.state.targetctx.codegen(), func.__qualname__)
        return super().compile_extra(func)


class WholeCompiler(MemberCompiler):
    """Numba's compiler for entry points, the functions that Python calls."""

    def compile_extra(self, func: Callable[..., Any]) -> Any:
        library = self.state.library = Whole(self.state.targetctx.codegen(), func.__qualname__)
        library.enable_object_caching()
        with counted():
            return super().compile_extra(func)
