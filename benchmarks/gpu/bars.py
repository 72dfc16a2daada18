"""What the kernels have to reach, and whether they did."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Bar:
    """worst: over everything that was measured of it; None if nothing was."""

    name: str
    limit: float
    worst: float | None
    is_floor: bool = False  # of the figure: it must not fall below the limit

    @property
    def verdict(self) -> str:
        if self.worst is None:
            return "not measured"
        return "met" if (self.worst >= self.limit if self.is_floor else self.worst <= self.limit) else "missed"

    def described(self) -> dict[str, Any]:
        return {**asdict(self), "verdict": self.verdict}

    def __str__(self) -> str:
        worst = "" if self.worst is None else f"worst {self.worst:.3f}, "
        return f"{self.verdict:12} {self.name}: {worst}{'at least' if self.is_floor else 'at most'} {self.limit}"


def bars(results: dict[str, Any]) -> list[Bar]:
    samplers = [line for line in results["lines"] if line["what"] == "sampler" and line["batch"] >= 64]
    ours = [line for line in samplers if line["by"] == "maskwright"]
    filtered = [line["times_floor"] for line in ours if line["filters"]]
    plain = [line["times_floor"] for line in ours if not line["filters"] and not line["edits"]]
    steps = [
        line["share_of_floor"]
        for line in results["lines"]
        if line["what"] == "decode" and line["by"] == "triton" and line["batch"] <= 64
    ]
    shares = [
        line["share_of_copy_bandwidth"]
        for line in results["lines"]
        if line["what"] == "decode attention" and line["context"] == 8192 and line["batch"] >= 32 and not line["model"]["window"]
    ]
    flash = [
        line["times_flash"]
        for line in results["lines"]
        if line["what"] == "prefill attention" and line["times_flash"] and line["context"] >= 512
    ]
    products = [
        line["share_of_copy_bandwidth"]
        for line in results["lines"]
        if line["what"] == "product" and line["rows"] <= 16 and line["weights"] in ("Q4_0", "Q8_0", "Q4_K", "uint4 1x128")
    ]
    return [
        Bar("sampler over one read of the logits, greedy and temperature, batch >= 64", 1.25, most(plain)),
        Bar("sampler over one read of the logits, top-k and top-p, batch >= 64", 2.0, most(filtered)),
        Bar("sampler with masks and automaton over the sampler alone", 1.05, most(overheads(results["lines"], forward=False))),
        Bar("constrained step over an unconstrained one", 1.05, most(overheads(results["lines"], forward=True))),
        Bar("decode attention, share of copy bandwidth, context 8192, batch >= 32", 0.7, least(shares), is_floor=True),
        Bar("decode step, share of the speed of its floor, batch 1 to 64", 0.75, least(steps), is_floor=True),
        Bar("products of at most 16 rows with 4- and 8-bit weights, share of copy bandwidth", 0.5, least(products), is_floor=True),
        Bar("prefill attention over torch's flash kernel", 1.5, most(flash)),
    ]


def overheads(lines: Iterable[dict[str, Any]], *, forward: bool) -> list[float]:
    """Constrained over free, of all sizes that were measured."""
    steps = {
        (line["batch"], line["vocabulary"], line["dtype"], line["masks"]): line["us"]
        for line in lines
        if line["what"] == "step" and line["forward"] == forward
    }
    return [
        us / steps[*sizes, "none"] for (*sizes, masks), us in steps.items() if masks != "none" and (*sizes, "none") in steps
    ]


def most(figures: list[float]) -> float | None:
    return max(figures, default=None)


def least(figures: list[float]) -> float | None:
    return min(figures, default=None)
