"""10,000 rows through Ray Data with two workers, one of which dies in between: each row comes out once, with an output that is valid.

    python tests/nightly/ray_data.py [ROWS]

`make ray` runs it, in an environment with `ray[data]`.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import ray
from pydantic import BaseModel, Field

from maskwright.integrations.columns import Extract

WORKERS, ROWS_A_PIECE = 2, 250


class Person(BaseModel):
    name: str = Field(max_length=12)
    age: int = Field(ge=0, le=99)


class Mortal(Extract):
    """The stage, whose process dies at its third piece, once."""

    def __init__(self, mark: str, **options: Any) -> None:
        super().__init__(**options)
        self._mark, self._num_pieces = Path(mark), 0

    def __call__(self, piece: Any) -> dict[str, Any]:
        self._num_pieces += 1
        if self._num_pieces == 3:
            try:
                self._mark.touch(exist_ok=False)
            except FileExistsError:
                pass
            else:
                os._exit(1)
        return super().__call__(piece)


def main(num_rows: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        source, target, mark = (Path(folder) / name for name in ("in.jsonl", "out", "died"))
        rows = ({"id": row, "text": f"Ada {row}, {row % 90} years old"} for row in range(num_rows))
        source.write_text("\n".join(map(json.dumps, rows)))
        ray.init(num_cpus=WORKERS + 1, include_dashboard=False, log_to_driver=False)
        started = time.perf_counter()
        stage = {"prompt": "{text}", "schema": Person, "sampling": {"temperature": 0}, "mark": str(mark), "threads": 1}
        read = ray.data.read_json(str(source), lines=True)
        read.map_batches(Mortal, fn_constructor_kwargs=stage, batch_size=ROWS_A_PIECE, concurrency=WORKERS).write_parquet(str(target))
        seconds = time.perf_counter() - started
        found = ray.data.read_parquet(str(target)).take_all()
        ray.shutdown()
        assert mark.exists(), "no worker died"
    assert sorted(row["id"] for row in found) == list(range(num_rows)), f"{len(found)} rows came out"
    for row in found:
        assert row["error"] is None, row
        Person.model_validate_json(row["output"])
    print(f"{num_rows:,} rows in {seconds:.0f} s, {num_rows / seconds:.0f} a second, with a worker that died: each came out once")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
