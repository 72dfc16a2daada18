"""Plots of what `run.py` kept, written beside it.

    python benchmarks/gpu/plots.py benchmarks/results/gpu-DEVICE-DATE.json
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

try:
    import matplotlib
except ImportError:
    if __name__ != "__main__":
        raise
    raise SystemExit("plots need matplotlib (pip install matplotlib)") from None

matplotlib.use("svg")
import matplotlib.pyplot as plt


def plot_sampler(results: dict[str, Any]) -> plt.Figure | None:
    """One panel a kind of rows, at the largest vocabulary: times one read of the logits."""
    lines = [line for line in results["lines"] if line["what"] == "sampler" and "us" in line]
    if not lines:
        return None
    largest, dtype = max(line["vocabulary"] for line in lines), lines[0]["dtype"]
    panels: dict[str, dict[str, list[tuple[float, float]]]] = defaultdict(lambda: defaultdict(list))
    for line in lines:
        if line["vocabulary"] == largest and line["dtype"] == dtype:
            panels[line["kind"]][line["by"]].append((line["batch"], line["times_floor"]))
    figure, axes = plt.subplots(3, -(-len(panels) // 3), figsize=(15, 10), layout="constrained", squeeze=False)
    for axis, (kind, curves) in zip(axes.flat, panels.items(), strict=False):
        _curves(axis, curves, kind, "times one read of the logits")
        axis.set(yscale="log")
    for axis in axes.flat[len(panels) :]:
        axis.set_axis_off()
    figure.suptitle(f"{results['machine']['device']}: {dtype} logits, vocabulary {largest}")
    return figure


def plot_steps(results: dict[str, Any]) -> plt.Figure | None:
    """Microseconds of a free and a constrained step, without and with the stand-in for a forward pass."""
    lines = [line for line in results["lines"] if line["what"] == "step"]
    if not lines:
        return None
    largest, dtype = max(line["vocabulary"] for line in lines), lines[0]["dtype"]
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained")
    for axis, forward in zip(axes, (False, True), strict=True):
        curves = defaultdict(list)
        for line in lines:
            if (line["vocabulary"], line["dtype"], line["forward"]) == (largest, dtype, forward):
                curves["free" if line["masks"] == "none" else f"{line['masks']} tokens legal"].append((line["batch"], line["us"]))
        _curves(axis, curves, "head, sampler and automaton" if forward else "sampler and automaton", "microseconds")
    return figure


def plot_attention(results: dict[str, Any]) -> plt.Figure | None:
    """One column a model: decode as a share of the copy bandwidth, prefill in TFLOP/s."""
    models = [line["model"] for line in results["lines"] if line["what"] == "attention check"]
    if not models:
        return None
    figure, axes = plt.subplots(2, len(models), figsize=(4.2 * len(models), 8), layout="constrained", squeeze=False)
    for (above, below), model in zip(axes.T, models, strict=True):
        lines, curves = [line for line in results["lines"] if line.get("model") == model], defaultdict(list)
        for line in lines:
            if line["what"] == "decode attention":
                curves[f"context {line['context']}"].append((line["batch"], line["share_of_copy_bandwidth"]))
        window = f", window {model['window']}" if model["window"] else ""
        title = f"{model['num_heads']}/{model['num_kv_heads']} heads of {model['head_dim']}, {model['cache_dtype'][6:]}{window}"
        _curves(above, curves, title, "share of copy bandwidth")
        _prefill_bars(below, [line for line in lines if line["what"] == "prefill attention"])
    return figure


def _prefill_bars(axis: plt.Axes, lines: Sequence[dict[str, Any]]) -> None:
    rivals = {"ours": "microseconds", "flash": "flash_microseconds", "flex": "flex_microseconds"}
    for place, (name, key) in enumerate(rivals.items()):
        # TFLOP/s of a rival from its time, since all do the same work
        rates = [
            line["teraflops"] * line["microseconds"] / line[key] if isinstance(line.get(key), float) else 0.0 for line in lines
        ]
        axis.bar([i + 0.27 * (place - 1) for i in range(len(lines))], rates, 0.25, label=name)
    axis.set_xticks(range(len(lines)), [f"{line['batch']} x {line['queries']}\nof {line['context']}" for line in lines], fontsize=7)
    axis.set(ylabel="TFLOP/s")
    axis.legend(fontsize=7)


def _curves(axis: plt.Axes, curves: dict[str, list[tuple[float, float]]], title: str, ylabel: str) -> None:
    for name, points in curves.items():
        axis.plot(*zip(*sorted(points), strict=True), marker="o", label=name)
    axis.set_title(title, fontsize=9)
    axis.set(xlabel="batch", ylabel=ylabel)
    axis.set_xscale("log", base=2)
    axis.grid(True, alpha=0.3)
    axis.legend(fontsize=7)


PLOTS = {"sampler": plot_sampler, "steps": plot_steps, "attention": plot_attention}


def write_plots(path: Path) -> list[Path]:
    """One file for each part that was measured."""
    results, written = json.loads(path.read_text(encoding="utf-8")), []
    for name, plot in PLOTS.items():
        figure = plot(results)
        if figure is not None:
            written.append(path.with_name(f"{path.stem}-{name}.svg"))
            figure.savefig(written[-1], metadata={"Date": None})
            plt.close(figure)
    return written


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("results", type=Path, help="what `run.py` kept")
    for written in write_plots(parser.parse_args().results):
        print(written)
