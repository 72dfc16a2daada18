"""Every kernel compiles for sm_90 on a machine without a GPU, without spilling registers, within its bounds."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("triton")

from maskwright.kernels import aot
from maskwright.kernels.aot import OPERATIONS, Variant, compile_variant, longest_loop, opcode, variants_of
from maskwright.kernels.triton_support import INTERPRETED, dot

KERNELS = Path(aot.__file__).parent


@pytest.mark.slow
def test_kernels_compile_within_their_bounds() -> None:
    """In a process of its own, since this one may interpret kernels instead; one for all, since torch takes seconds to import."""
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    command = [sys.executable, "-m", "maskwright.kernels.aot", "--json"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    reports = [json.loads(line) for line in done.stdout.splitlines()]
    assert {report["operation"] for report in reports} == set(OPERATIONS), done.stderr
    assert [f"{report['name']}: {fault}" for report in reports for fault in report["faults"]] == []
    assert done.returncode == 0, done.stderr


def test_instructions_are_told_apart_by_name() -> None:
    assert opcode("@!P0 LDG.E.128 R4, desc[UR4][R2.64]") == "LDG"
    assert opcode("HGMMA.64x64x16.F32.BF16 R24, gdesc[UR8], R24") == "HGMMA"
    assert opcode("@UP1 UIADD3 UR4, UR4, 0x1, URZ") == "UIADD3"


def test_the_longest_loop_is_the_one_with_most_instructions() -> None:
    code = [(0, "MOV R1, R2"), (16, "IADD3 R1, R1, 0x1"), (32, "@P0 BRA 0x10"), (48, "EXIT"), (64, "BRA 0x40")]
    assert longest_loop(code) == 2


@pytest.mark.skipif(not INTERPRETED.value, reason="kernels are compiled here")
def test_nothing_can_be_compiled_in_the_interpreter() -> None:
    with pytest.raises(RuntimeError, match="TRITON_INTERPRET"):
        compile_variant(Variant(name="dot", kernel=dot, types={}, constants={}))


def test_every_operation_with_variants_is_listed() -> None:
    assert sorted(OPERATIONS) == sorted(path.parent.name for path in KERNELS.glob("*/variants.py"))


def jitted_functions() -> Iterator[ast.FunctionDef]:
    """All functions under @triton.jit, from the sources: nothing has to be imported for it to be seen."""
    for path in KERNELS.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and any("triton.jit" in ast.unparse(mark) for mark in node.decorator_list):
                yield node


def test_every_kernel_has_a_variant() -> None:
    """A kernel is a function under @triton.jit that no other one calls: it can only be launched."""
    jitted = list(jitted_functions())
    called = {
        call.func.id
        for function in jitted
        for call in ast.walk(function)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
    }
    kernels = {function.name for function in jitted} - called
    assert len(kernels) >= 15
    compiled = {variant.kernel.__name__ for operation in OPERATIONS for variant in variants_of(operation)}
    assert kernels == compiled


def test_every_switch_of_a_kernel_is_compiled_on_and_off() -> None:
    chosen: dict[tuple[str, str], set[bool]] = {}
    for variant in (variant for operation in OPERATIONS for variant in variants_of(operation)):
        for name, value in variant.constants.items():
            if isinstance(value, bool):
                chosen.setdefault((variant.kernel.__name__, name), set()).add(value)
    assert {switch: values for switch, values in chosen.items() if len(values) == 1} == {}


def optional_arguments(kernel: ast.FunctionDef) -> set[str]:
    """Arguments, or "argument.member", that the kernel compares with None."""
    arguments = {argument.arg for argument in kernel.args.args}
    compared = {
        ast.unparse(node.left)
        for node in ast.walk(kernel)
        if isinstance(node, ast.Compare) and isinstance(node.comparators[0], ast.Constant) and node.comparators[0].value is None
    }
    return {name for name in compared if name.split(".")[0] in arguments}


def test_every_optional_argument_of_a_kernel_is_compiled_given_and_missing() -> None:
    variants = [variant for operation in OPERATIONS for variant in variants_of(operation)]
    optional = {function.name: optional_arguments(function) for function in jitted_functions()}
    for variant in variants:
        optional[variant.kernel.__name__] |= {name for name, value in variant.constants.items() if value is None}
    missing: dict[tuple[str, str], set[bool]] = {}
    for variant in variants:
        kernel = variant.kernel.__name__
        for name in optional[kernel]:
            is_missing = any(variant.constants.get(each, name) is None for each in (name, name.split(".")[0]))
            missing.setdefault((kernel, name), set()).add(is_missing)
    assert {("attend_kernel", "cache.key_scale"), ("attend_kernel", "soft_cap")} <= set(missing)
    assert {argument for argument, states in missing.items() if len(states) == 1} == set()


def test_what_a_variant_asks_for_is_checked() -> None:
    variant = Variant(name="dot", kernel=dot, types={}, constants={}, max_registers=32, required=("HGMMA",))
    report = aot.Report(name="dot", registers=40, stack=8, shared=1 << 20, instructions=1, loop_instructions=0)
    assert [fault.split(",")[0] for fault in report.faults(variant)] == [
        "HGMMA is missing",
        "registers are spilled: 8 bytes of stack",
        "40 registers",
        "1048576 bytes of shared memory",
    ]
