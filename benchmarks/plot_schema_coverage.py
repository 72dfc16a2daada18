"""A plot of what `schema_coverage.py` wrote: schemas and test groups by verdict, one bar for each collection and engine.

    python benchmarks/plot_schema_coverage.py benchmarks/results/json-schema-coverage-DATE.json

Writes json-schema-coverage-DATE.svg beside it.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

from result_files import errors_as_messages, pyplot, there

plt = pyplot()

VERDICTS = {"right": "#4c956c", "refused": "#d0d0d0", "malformed": "#b8b8b8", "timed out": "#a0a0a0", "hung": "#808080",
            "crashed": "#606060", "wrong": "#c8553d"}  # fmt: skip


def plot(results: dict[str, Any]) -> plt.Figure:
    """Shares of 100 %, on an axis that begins where the least of them ends."""
    bars = [
        (f"{section}, {engine} ({cases['total']})", {verdict: 100 * cases[verdict] / cases["total"] for verdict in VERDICTS})
        for collection in ("suite", "maskbench")
        for engine, one in results.get(collection, {}).items()
        for section, summary in one["summaries"].items()
        if (cases := summary["cases"])["total"] and section != "all"
    ]
    figure, axis = plt.subplots(figsize=(11, 0.4 * len(bars) + 1.4), layout="constrained")
    left = [0.0] * len(bars)
    for verdict, colour in VERDICTS.items():
        shares = [share[verdict] for _, share in bars]
        if any(shares):
            axis.barh([name for name, _ in bars], shares, left=left, label=verdict, color=colour)
        left = [a + b for a, b in zip(left, shares, strict=True)]
    axis.invert_yaxis()
    axis.set(xlabel="% of test groups or schemas", xlim=(max(min(share["right"] for _, share in bars) - 2, 0), 100))
    figure.legend(loc="outside upper center", ncols=len(VERDICTS), fontsize=8)
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("results", type=there, help="what `schema_coverage.py --output` wrote")
    path = parser.parse_args().results
    plot(json.loads(path.read_text())).savefig(path.with_suffix(".svg"), metadata={"Date": None})


if __name__ == "__main__":
    with errors_as_messages():
        main()
