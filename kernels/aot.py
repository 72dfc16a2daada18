"""Kernels compiled ahead of time for a GPU that need not be there, and what the machine code looks like.

    python -m maskwright.kernels.aot                 # every kernel, a table
    python -m maskwright.kernels.aot sampler --json  # one operation, one JSON object per line

Each operation lists its kernels in `kernels/<operation>/variants.py` as `VARIANTS`. TRITON_INTERPRET must not be set: in that mode
there is nothing to compile.
"""

from __future__ import annotations

import argparse
import importlib
import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from .triton_support import INTERPRETED

# folders of kernels/ that have a variants.py
OPERATIONS: tuple[str, ...] = ("attention", "automaton", "fused", "lora", "moe", "quantized", "sampler")
HOPPER = GPUTarget("cuda", 90, 32)


@dataclass(frozen=True, kw_only=True)
class Variant:
    """One kernel with the types and constants of one kind of launch, and what its machine code must keep to.

    An argument may be a named tuple: its type is one of types, and "argument.member" names a member in `constants` and `aligned`.
    The type of a member that is a constant is "constexpr".
    """

    name: str
    kernel: Any  # a function under @triton.jit
    types: Mapping[str, Any]  # "*bf16", "*i32", "i32", "fp32", ... or a tuple of them, for each argument that is no constant
    constants: Mapping[str, Any]  # tl.constexpr arguments; None and 1 for arguments that the launcher specialises away
    aligned: Sequence[str] = ()  # arguments or "argument.member", divisible by 16 (pointers: bytes), as the launcher specialises
    num_warps: int = 4
    num_stages: int = 3
    fuse: bool = False  # whether a product and a sum may become one instruction (the launch's enable_fp_fusion)
    max_registers: int = 128  # per thread; 128 leaves room for 16 warps on each multiprocessor
    max_shared: int = 48 * 1024  # bytes
    max_stack: int = 0  # bytes per thread of spilled registers
    required: Sequence[str] = ()  # opcodes that must occur, such as HGMMA
    elements: int = 1  # handled by each thread, in one round of the longest loop or at all: for instructions per element


@dataclass(frozen=True, kw_only=True)
class Report:
    """What ptxas and the disassembler say about a variant."""

    name: str
    registers: int  # per thread
    stack: int  # bytes per thread; more than 0 means that registers are spilled
    shared: int  # bytes per block
    instructions: int  # of machine code, without padding
    loop_instructions: int  # of the longest loop; 0 without a loop
    opcodes: dict[str, int] = field(default_factory=dict)
    per_element: float = 0.0  # instructions per element

    def faults(self, variant: Variant) -> list[str]:
        """Where it does not keep to what the variant asks for."""
        found = [f"{opcode} is missing" for opcode in variant.required if opcode not in self.opcodes]
        if self.stack > variant.max_stack:
            found.append(f"registers are spilled: {self.stack} bytes of stack, at most {variant.max_stack} are wanted")
        if self.registers > variant.max_registers:
            found.append(f"{self.registers} registers, at most {variant.max_registers} are wanted")
        if self.shared > variant.max_shared:
            found.append(f"{self.shared} bytes of shared memory, at most {variant.max_shared} are wanted")
        return found


def compile_variant(variant: Variant, target: GPUTarget = HOPPER) -> Report:
    """Compiles it and reads the machine code. Takes 0.1 to 5 s the first time, then Triton's cache answers."""
    if INTERPRETED.value:
        raise RuntimeError("TRITON_INTERPRET is set, so kernels are not compiled; unset it before importing triton")
    names = variant.kernel.arg_names
    missing = [name for name in names if name not in variant.types and name not in variant.constants]
    if missing:
        raise ValueError(f"{variant.name}: neither a type nor a constant is given for {', '.join(missing)}")
    source = ASTSource(
        variant.kernel,
        {name: "constexpr" if name in variant.constants else variant.types[name] for name in names},
        {place_of(name, variant): value for name, value in variant.constants.items()},
        {place_of(name, variant): [["tt.divisibility", 16]] for name in variant.aligned},
    )
    options = {"num_warps": variant.num_warps, "num_stages": variant.num_stages, "enable_fp_fusion": variant.fuse}
    compiled = triton.compile(source, target=target, options=options)
    return read_machine_code(variant, compiled.asm["cubin"], compiled.metadata.shared)


def place_of(name: str, variant: Variant) -> tuple[int, ...]:
    """Where the compiler finds an argument, or the member of one."""
    argument, *member = name.split(".")
    place = variant.kernel.arg_names.index(argument)
    return (place, *(variant.types[argument]._fields.index(each) for each in member))


def all_members(types: Mapping[str, Any], absent: Collection[str] = ()) -> list[str]:
    """The names of all arguments, "argument.member" for those that are named tuples, but for those that are absent."""
    names = [
        f"{name}.{member}" if member else name for name, type_ in types.items() for member in getattr(type_, "_fields", ("",))
    ]
    return [name for name in names if name not in absent]


def read_machine_code(variant: Variant, cubin: bytes, shared: int) -> Report:
    """The report of a compiled variant. shared: bytes of shared memory per block."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        usage, listing = disassemble("-res-usage", file.name), disassemble("-sass", file.name)
    resources = re.search(r"REG:(\d+) STACK:(\d+)", usage)
    assert resources is not None, usage
    code = [(int(address, 16), text) for address, text in re.findall(r"/\*([0-9a-f]{4,})\*/\s+(.*?);", listing)]
    opcodes = Counter(opcode(text) for _, text in code)
    del opcodes["NOP"]  # padding
    loop = longest_loop(code)
    return Report(
        name=variant.name,
        registers=int(resources[1]),
        stack=int(resources[2]),
        shared=shared,
        instructions=opcodes.total(),
        loop_instructions=loop,
        opcodes=dict(opcodes.most_common()),
        per_element=round((loop or opcodes.total()) / variant.elements, 2),
    )


def disassemble(option: str, cubin: str) -> str:
    """What the `cuobjdump` of Triton's own wheel prints."""
    tool = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
    return subprocess.run([tool, option, cubin], capture_output=True, text=True, check=True).stdout


def opcode(instruction: str) -> str:
    """ "@!P0 LDG.E.128 R4, ..." -> "LDG"."""
    return re.sub(r"^@!?U?P\w+\s+", "", instruction).split(" ")[0].split(".")[0]


def longest_loop(code: Sequence[tuple[int, str]]) -> int:
    """Instructions from the target of a backward branch to the branch, at most; the endless loop behind the end is none."""
    longest = 0
    for address, text in code:
        target = re.search(r"\bBRA\b.*?(0x[0-9a-f]+)", text)
        if target and int(target[1], 16) < address:
            longest = max(longest, sum(int(target[1], 16) <= other <= address for other, _ in code))
    return longest


def variants_of(operation: str) -> list[Variant]:
    """The variants of an operation, a folder of kernels/."""
    return list(importlib.import_module(f".{operation}.variants", __package__).VARIANTS)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Compile kernels for sm_90 and report registers, spills and instructions.")
    parser.add_argument("operations", nargs="*", default=OPERATIONS, help=f"of {', '.join(OPERATIONS)}")
    parser.add_argument("--json", action="store_true", help="one JSON object per line")
    options = parser.parse_args(arguments)
    failed = False
    for operation in options.operations:
        for variant in variants_of(operation):
            report = compile_variant(variant)
            faults = report.faults(variant)
            failed |= bool(faults)
            fields = {"operation": operation, **asdict(report), "faults": faults}
            print(json.dumps(fields) if options.json else line(report, faults), flush=True)
    return int(failed)


def line(report: Report, faults: Sequence[str]) -> str:
    return (
        f"{report.name:48} {report.registers:4} registers {report.shared:6} shared {report.instructions:5} instructions "
        f"{report.per_element:6} per element  {'; '.join(faults)}"
    )


if __name__ == "__main__":
    sys.exit(main())
