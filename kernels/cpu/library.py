"""The compiled products (native/*.c) as a library: the one that a wheel carries, or else one that is compiled here, once.

A checkout, or a wheel that was made without a C compiler, has the sources only. Where there is a compiler (CC, or cc) the
library is made of them when it is first needed, in some ten seconds, and kept beside other compiled code by the digest of the
sources. Where there is none, or MASKWRIGHT_NATIVE=never, or the processor lacks the instructions, `loaded` gives None and products
are computed otherwise: see `kernels/quantized`.
"""

from __future__ import annotations

import ctypes
import hashlib
import logging
import os
import platform
import shlex
import shutil
import subprocess
import sysconfig
import tempfile
from functools import cache
from pathlib import Path

from ...foundation.compile_cache import folder_in_use, is_writable

logger = logging.getLogger(__name__)

SOURCES = Path(__file__).parent / "native"
FLAGS = ("-O3", "-fPIC", "-fwrapv", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off", "-pthread")
COMPILE_SECONDS = 300
SHIPPED = Path(__file__).with_name("products" + str(sysconfig.get_config_var("EXT_SUFFIX")))


TYPES = (
    "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "MXFP4",
    "CODES2", "CODES3", "CODES4", "CODES5", "CODES6", "CODES7", "CODES8", "FLOAT4", "NF4",
    "F32", "F16", "BF16", "FLOAT8", "EXPONENT8",
)  # fmt: skip - in the order of native/products.h


class Matrix(ctypes.Structure):
    """`Matrix` of native/products.h."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("num_rows", ctypes.c_int64),
        ("num_columns", ctypes.c_int64),
        ("row_bytes", ctypes.c_int64),
        ("type", ctypes.c_int32),
        ("first_column", ctypes.c_int32),
        *((name, ctypes.c_void_p) for name in ("scales", "zeros")),
        *((name, ctypes.c_int64) for name in ("scale_row", "scale_group", "zero_row", "zero_group", "group")),
        *((name, ctypes.c_int32) for name in ("scale_type", "is_unsigned")),
    )


@cache
def loaded() -> ctypes.CDLL | None:
    """The library, set to the best instructions that this processor has; None where it cannot be used."""
    if os.environ.get("MASKWRIGHT_NATIVE") == "never":
        return None
    path = SHIPPED if SHIPPED.is_file() else compiled_library()
    if path is None:
        return None
    try:
        found = ctypes.CDLL(str(path))
    except OSError as problem:  # of another system
        logger.warning("%s cannot be loaded, products are slower: %s", path, problem)
        return None
    number, address, word, real = ctypes.c_int64, ctypes.c_void_p, ctypes.c_int, ctypes.c_float
    found.maskwright_multiply.argtypes = (address, word, address, number, number, address, number, address, word)
    found.maskwright_read_rows.argtypes = (address, address, number, real, address)
    found.maskwright_norm.argtypes = (address, address, address, real, number, number, address, address)
    found.maskwright_gate.argtypes = (word, address, number, number, number, address)
    found.maskwright_turn.argtypes = (address,)
    found.maskwright_attend.argtypes = (address, word)
    found.maskwright_decode.argtypes = (address, address, word)
    found.maskwright_step.argtypes = (address, address, address, word)
    found.maskwright_pick.argtypes = (address, word)
    found.maskwright_are_numbers.argtypes = (address, number, number, number, address)
    for name in ("norm", "gate", "turn", "are_numbers"):
        getattr(found, f"maskwright_{name}").restype = None
    found.maskwright_use.argtypes = (ctypes.c_char_p,)
    return found if found.maskwright_use(b"auto") else None


def compiled_library() -> Path | None:
    """Where the library is that was compiled of these sources, now if not before; None where that is not possible."""
    folder = folder_in_use() / "__pycache__"
    path = folder / f"products-{platform.machine()}-{digest()}.so"
    if path.is_file():
        return path
    command = compiler()
    if command is None or not is_writable(folder):
        return None
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        made = Path(scratch) / "products.so"
        sources = [str(file) for file in sorted(SOURCES.glob("*.c"))]
        arguments = [*command, *FLAGS, "-shared", "-o", str(made), *sources, "-lm"]
        try:
            subprocess.run(arguments, check=True, capture_output=True, timeout=COMPILE_SECONDS)
        except (OSError, subprocess.SubprocessError) as problem:
            reason = getattr(problem, "stderr", None) or str(problem).encode()
            logger.warning("products are slower, their sources do not compile: %s", reason.decode(errors="replace")[-500:])
            return None
        os.replace(made, path)
    return path


def compiler() -> list[str] | None:
    """The command of a C compiler."""
    words = shlex.split(os.environ.get("CC", "cc"))
    return words if words and shutil.which(words[0]) else None


def digest() -> str:
    """Of all that the library is made of."""
    files = sorted(SOURCES.glob("*.[ch]"))
    content = b"\0".join((" ".join(FLAGS).encode(), *(file.read_bytes() for file in files)))
    return hashlib.sha256(content).hexdigest()[:16]
