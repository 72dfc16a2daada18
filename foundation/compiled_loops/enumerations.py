"""Names for numbers in compiled code: a member of an enumeration, `Kind.CLASS`, costs and means there what a number in its place
would, and `StateId(number)`, of a type that is new to the type checker alone, is the number.

Numba knows members as values of a type of their own, which takes time to compile, and does not count as an integer everywhere.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import EnumMeta
from typing import Any, NewType

from numba.core import ir
from numba.core.compiler import Compiler
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.ir_utils import build_definitions
from numba.core.untyped_passes import TranslateByteCode


@register_pass(mutates_CFG=False, analysis_only=False)
class _MembersToNumbers(FunctionPass):
    """In a function's code, which has just been read: attributes of enumerations of integers become constants, and calls of new
    types their arguments."""

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
        types = {one.target.name: one for one in assigned if _is_new_type(one.value)}
        calls = [one for one in assigned if _is_call(one.value) and one.value.func.name in types]
        for one in calls:
            types[one.value.func.name].value = ir.Const(0, one.loc)
            (one.value,) = one.value.args
        if members or calls:
            state.func_ir._definitions = build_definitions(blocks)
        return bool(members or calls)


def _is_call(value: Any) -> bool:
    return isinstance(value, ir.Expr) and value.op == "call"


def _is_new_type(value: Any) -> bool:
    return isinstance(value, (ir.Global, ir.FreeVar)) and isinstance(value.value, NewType)


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
