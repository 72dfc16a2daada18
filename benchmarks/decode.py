"""Latency and memory of one decode step against the length of its contexts, for every cache layout and way to attend.

    python benchmarks/decode.py [--shape small|0.6b|8b] [--device cpu] [--lengths 128 256 ...] [--batch N]
                                [--variants paged-fused ...] [--profile FOLDER] [--out RESULTS.json]

All sequences of the batch have a context of the given length. What is in the cache does not matter, so it is not computed.
`constrained_decode.py` measures whole requests, with and without a constraint.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from lengths import Setup, main, parser
from result_files import count


def prepare(setup: Setup, length: int) -> Callable[[], object]:
    return partial(setup.forward, [(length - 1, 1, table) for table in setup.tables])


if __name__ == "__main__":
    options = parser(__doc__, [128, 256, 512, 1024, 2048, 4096, 8192])
    options.add_argument("--batch", type=count, default=8, help="sequences")
    arguments = options.parse_args()
    main(arguments, f"one decode step, batch {arguments.batch}", prepare)
