"""Blocks as numbers on a CPU: which loop decodes a block type, and the length of its inner loops."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from . import block_loops as loops

_DECODERS = {
    "Q4_0": (loops.decode_q4_0, 16),
    "Q4_1": (loops.decode_q4_1, 16),
    "Q5_0": (loops.decode_q5_0, 16),
    "Q5_1": (loops.decode_q5_1, 16),
    "Q8_0": (loops.decode_q8_0, 32),
    "Q2_K": (loops.decode_q2_k, 16),
    "Q3_K": (loops.decode_q3_k, 16),
    "Q4_K": (loops.decode_q4_k, 32),
    "Q5_K": (loops.decode_q5_k, 32),
    "Q6_K": (loops.decode_q6_k, 16),
    "IQ4_NL": (loops.decode_iq4_nl, 16),
    "MXFP4": (loops.decode_mxfp4, 16),
}


def decode(name: str, data: NDArray[np.uint8], out: NDArray[np.float32]) -> None:
    """Write the numbers of blocks of a type: data [rows, row_bytes], out [rows, columns]."""
    function, run = _DECODERS[name]
    function(data, out, run)
