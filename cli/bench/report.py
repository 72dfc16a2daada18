"""A run for readers: a table, beside a saved run if there is one, and a plot."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from ...errors import UsageError
from .runs import Case, Run, change

NOTABLE = 0.05  # a change that is coloured


def table_of(run: Run, before: Run | None = None) -> Table:
    """One line a case, one column a figure; behind each figure how it differs from that of the run before. Names break between
    their words, so that a narrow terminal shows them whole."""
    title = f"{run.benchmark}: {run.model}, {run.machine}"
    table = Table(title=title, title_justify="left")
    table.add_column("case", overflow="fold")
    for figure in run.figures():
        table.add_column(figure.replace("_", " "), justify="right", overflow="fold")
    known = {} if before is None else {case.name: case for case in before.cases}
    for case in run.cases:
        table.add_row(case.name, *(_cell(figure, case, known.get(case.name)) for figure in run.figures()))
    if before is not None:
        table.caption = f"in brackets: against the run of {before.date}" + (f" ({before.note})" if before.note else "")
    return table


def _cell(figure: str, case: Case, before: Case | None) -> Text:
    if figure not in case.figures:
        return Text("-")
    value = case.figures[figure]
    text = Text(f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}")
    if before is not None and figure in before.figures:
        relative, is_better = change(figure, value, before.figures[figure])
        style = "" if abs(relative) < NOTABLE or is_better is None else "green" if is_better else "red"
        text.append(f" ({relative:+.0%})", style=style)
    return text


def require_matplotlib() -> None:
    """Raises UsageError before anything is measured where there can be no plot."""
    try:
        import_module("matplotlib.pyplot")  # one that was built for another NumPy is found, and cannot be imported
    except ImportError:
        raise UsageError("--plot needs matplotlib, which is not installed; pip install matplotlib") from None


def plot(run: Run, path: Path, before: Run | None = None) -> None:
    """One picture a figure, bars for the cases, beside those of the run before. Raises UsageError where it cannot be written."""
    require_matplotlib()
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    names, figures = [case.name for case in run.cases], run.figures()
    columns = min(len(figures), 3)
    rows = -(-len(figures) // columns)
    size = (4.2 * columns, (0.35 * len(names) * (2 if before else 1) + 1.4) * rows)
    canvas, axes = plt.subplots(rows, columns, figsize=size, layout="constrained", squeeze=False)
    for number, figure in enumerate(figures):
        _bars(axes[number // columns][number % columns], figure, names, run, before)
    for number in range(len(figures), rows * columns):
        axes[number // columns][number % columns].set_axis_off()
    canvas.suptitle(f"{run.benchmark}: {run.model}", fontsize=10)
    try:
        canvas.savefig(path)
    except (OSError, ValueError) as error:
        raise UsageError(f"--plot {path}: {error}") from None
    finally:
        plt.close(canvas)


def _bars(axis: Any, figure: str, names: list[str], run: Run, before: Run | None) -> None:
    height = 0.8 if before is None else 0.4
    for place, (each, colour) in enumerate(((run, "#2c6e49"), (before, "#b9c8bf"))):
        if each is None:
            continue
        found = {case.name: case.figures.get(figure, 0.0) for case in each.cases}
        lines = [line + place * height for line in range(len(names))]
        axis.barh(lines, [found.get(name, 0.0) for name in names], height=height * 0.9, color=colour)
    axis.set_yticks([line + (0.0 if before is None else 0.2) for line in range(len(names))], names, fontsize=8)
    axis.invert_yaxis()
    axis.set_title(figure, fontsize=9)
    axis.grid(True, axis="x", alpha=0.3)
