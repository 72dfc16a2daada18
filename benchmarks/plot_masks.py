"""Plots of what `masks.py` or `grammar_masks.py` wrote: latency percentiles on a log scale, and coverage bars of schemas.

    python benchmarks/plot_masks.py benchmarks/results/masks-DATE.json

Writes masks-DATE-latency.svg and masks-DATE-coverage.svg beside it.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

from result_files import errors_as_messages, pyplot, there

plt = pyplot()

PANELS = {
    "compile_and_first_mask_us": "compile + first mask",
    "cold_us": "mask + advance, cold",
    "warm_us": "mask + advance, warm",
}
VERDICTS = {
    "passed": ("passed", "#4c956c"),
    "refused": ("refused by the engine", "#d0d0d0"),
    "timed_out": ("timed out", "#a0a0a0"),
    "crashed": ("crashed", "#606060"),
    "valid_rejected": ("valid instance rejected", "#f2a65a"),
    "invalid_accepted": ("invalid instance accepted", "#c8553d"),
}


def plot_latency(results: dict[str, Any]) -> plt.Figure:
    """One panel a measure: the time below which a share of the masks (or compiles) stays."""
    figure, axes = plt.subplots(1, len(PANELS), figsize=(15, 4.6), layout="constrained")
    for axis, (key, title) in zip(axes, PANELS.items(), strict=True):
        _draw(axis, results["percentiles"], results["summaries"], key)
        axis.set(title=title)
    axes[0].legend(fontsize=8)
    return figure


def plot_languages(results: dict[str, Any]) -> plt.Figure:
    """One panel a language, of the first pass."""
    figure, axes = plt.subplots(1, len(results["languages"]), figsize=(18, 4.6), layout="constrained")
    for axis, (language, summaries) in zip(axes, results["languages"].items(), strict=True):
        _draw(axis, results["percentiles"], summaries, "cold_us")
        axis.set(title=f"{language}: mask + advance, cold")
    axes[0].legend(fontsize=8)
    return figure


def _draw(axis: plt.Axes, percentiles: list[float], summaries: list[dict[str, Any]], key: str) -> None:
    """A line an engine: the time below which a share of the masks stays."""
    for i, one in enumerate(summaries):
        if key in one["curves"]:
            # "nines": 0 %, 90 %, 99 %, 99.9 % are equally far apart, so that tails can be seen
            shown = [(100 / (100 - q), t) for q, t in zip(percentiles, one["curves"][key], strict=True) if q < 100]
            width = 2.4 if i == 0 else 1.3
            axis.plot(*zip(*shown, strict=True), label=one["engine"], linewidth=width, zorder=3 if i == 0 else 2)
    axis.set(xscale="log", yscale="log", ylabel="microseconds", xlim=(1, 10_000))
    axis.set_xticks([2, 10, 100, 1000, 10_000], ["50 %", "90 %", "99 %", "99.9 %", "99.99 %"])
    axis.minorticks_off()
    axis.grid(True, which="major", alpha=0.3)


def plot_coverage(results: dict[str, Any]) -> plt.Figure:
    """One bar an engine: the schemas by verdict; a schema wrong in both ways is counted once, as invalid accepted."""
    figure, axis = plt.subplots(figsize=(11, 0.6 * len(results["summaries"]) + 1.4), layout="constrained")
    names = [one["engine"] for one in results["summaries"]]
    wrong = results["not_passed"]
    left = [0] * len(names)
    for verdict, (label, colour) in VERDICTS.items():
        if verdict == "passed":
            counts = [one["schemas"] - len(wrong[one["engine"]]) for one in results["summaries"]]
        else:
            counts = [sum(verdicts[-1] == verdict for verdicts in wrong[name].values()) for name in names]
        axis.barh(names, counts, left=left, label=label, color=colour)
        left = [a + b for a, b in zip(left, counts, strict=True)]
    axis.invert_yaxis()
    axis.set(xlabel=f"schemas of MaskBench, sample of {left[0]}", xlim=(0, left[0]))
    figure.legend(loc="outside upper center", ncols=len(VERDICTS), fontsize=8)
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("results", type=there, help="what `masks.py --out` wrote")
    path = parser.parse_args().results
    results = json.loads(path.read_text())
    plots = {"latency": plot_languages} if "languages" in results else {"latency": plot_latency, "coverage": plot_coverage}
    for name, plot in plots.items():
        figure = plot(results)
        figure.savefig(path.with_name(f"{path.stem}-{name}.svg"), metadata={"Date": None})


if __name__ == "__main__":
    with errors_as_messages():
        main()
