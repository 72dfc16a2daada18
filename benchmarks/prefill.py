"""Latency and memory of a prompt's forward pass against its length, for every cache layout and way to attend.

    python benchmarks/prefill.py [--shape small|0.6b|8b] [--device cpu] [--lengths 128 256 ...] [--chunk N]
                                 [--variants paged-fused ...] [--profile FOLDER] [--out RESULTS.json]

One sequence, computed in one chunk, or in chunks of --chunk tokens as an engine with that `max_batch_tokens` would.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from lengths import Setup, main, parser
from result_files import count


def prefill(setup: Setup, length: int, chunk: int | None) -> None:
    for start in range(0, length, chunk or length):
        setup.forward([(start, min(chunk or length, length - start), setup.tables[0])])


def prepare(chunk: int | None, setup: Setup, length: int) -> Callable[[], object]:
    return partial(prefill, setup, length, chunk)


if __name__ == "__main__":
    options = parser(__doc__, [128, 256, 512, 1024, 2048, 4096])
    options.add_argument("--chunk", type=count, help="tokens per step; all at once unless given")
    arguments = options.parse_args()
    main(arguments, "prefill of one prompt", partial(prepare, arguments.chunk))
