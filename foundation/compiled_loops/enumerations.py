"""Members of enumerations in compiled code: `Kind.CLASS` there costs and means what a number in its place would.

Numba knows members as values of a type of their own, which takes time to compile, and does not count as an integer everywhere.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import EnumMeta
from typing import Any

from numba.core import ir
from numba.core.compiler import Compiler
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.ir_utils import build_definitions
from numba.core.untyped_passes import TranslateByteCode


@register_pass(mutates_CFG=False, analysis_only=False)
class _MembersToNumbers(FunctionPass):
    """In a function's code, which has just been read: attributes of enumerations of integers become constants."""

    _name = "members_to_numbers"

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        blocks = state.func_ir.blocks
        assigned = [statement for block in blocks.values() for statement in block.find_insts(ir.Assign)]
        classes = {one.target.name: one for one in assigned if _is_enumeration(one.value)}
        members = [one for one in assigned if _is_attribute_of(one.value, classes)]
        numbers = [int(getattr(classes[one.value.value.name].value.value, one.value.attr)) for one in members]
        for one, number in zip(members, numbers, strict=True):
            classes[one.value.value.name].value = ir.Const(0, one.loc)  # loaded for the member alone
            one.value = ir.Const(number, one.loc)
        if members:
            state.func_ir._definitions = build_definitions(blocks)
        return bool(members)


def _is_enumeration(value: Any) -> bool:
    return isinstance(value, (ir.Global, ir.FreeVar)) and isinstance(value.value, EnumMeta) and issubclass(value.value, int)


def _is_attribute_of(value: Any, classes: Collection[str]) -> bool:
    return isinstance(value, ir.Expr) and value.op == "getattr" and value.value.name in classes


class MemberCompiler(Compiler):
    """Numba's compiler, with members of enumerations as numbers."""

    def define_pipelines(self) -> list[Any]:
        pipelines: list[Any] = super().define_pipelines()
        for pipeline in pipelines:
            pipeline.add_pass_after(_MembersToNumbers, TranslateByteCode)
            pipeline.finalize()
        return pipelines
