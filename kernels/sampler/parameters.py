"""The table of the numbers that each row is sampled with: what a number means, which values it may have, and who reads it.

What there is one of for each number follows from its entry: a field of `SamplingParams` and its check, an array of the batch, a
member of the kernels' argument `parameters`, an option of the command line and of the server.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_type_hints

import torch
from torch import Tensor


class Stage(Enum):
    """The stage of the sampler that reads a number."""

    PENALTY = "penalty"  # changes the scores of tokens that were seen before
    TEMPERATURE = "temperature"
    FILTER = "filter"  # says which tokens stay


@dataclass(frozen=True, slots=True)
class Range:
    """Which values a number may have. A bound that is a name is the value of that option."""

    least: float | str | None = None
    most: float | str | None = None
    above: float | None = None  # beside `least`: what forms say, where the least is only as small as float32 can be
    below: float | None = None
    said: str | None = None  # in place of what the bounds say

    def __str__(self) -> str:
        if self.said is not None:
            return self.said
        if self.most is not None:
            return f"in [{self.least}, {self.most}]" if self.above is None else f"in ({self.above}, {self.most}]"
        return "" if self.least is None else f">= {self.least}"


PENALTY, TEMPERATURE, FILTER = Stage
COUNT = Range(0, below=2**31, said=">= 0 (0 switches it off)")
SHARE = Range(above=0, most=1)
FACTOR = Range(1.2e-38, above=0)
FINITE = Range()
FRACTION = Range(0, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowParameters:
    """The numbers of one row. A filter or penalty is off at its default."""

    temperature: Annotated[float, Range(0), TEMPERATURE] = 1.0  # >= 0; 0 takes the most probable token
    top_k: Annotated[int, COUNT, FILTER] = 0  # >= 0; keep the k most probable tokens, and those tied with the last; 0 = off
    top_p: Annotated[float, SHARE, FILTER] = 1.0  # (0, 1]; keep the fewest most probable tokens that hold this probability; 1 = off
    min_p: Annotated[float, FRACTION, FILTER] = 0.0  # [0, 1]; keep tokens at least this fraction as probable as the best; 0 = off
    repetition_penalty: Annotated[float, FACTOR, PENALTY] = 1.0  # > 0; divides logits of tokens in prompt or output, multiplies < 0
    presence_penalty: Annotated[float, FINITE, PENALTY] = 0.0  # subtracted once from logits of tokens in the output
    frequency_penalty: Annotated[float, FINITE, PENALTY] = 0.0  # subtracted from logits once per occurrence in the output


DEFAULTS: Mapping[str, Any] = MappingProxyType({each.name: each.default for each in fields(RowParameters)})


def _defaults(stage: Stage) -> Mapping[str, float]:
    """Those read by a stage, in their order, with the values that switch them off."""
    hints = get_type_hints(RowParameters, include_extras=True)
    return MappingProxyType({name: off for name, off in DEFAULTS.items() if stage in get_args(hints[name])})


FILTERS, PENALTIES = _defaults(FILTER), _defaults(PENALTY)
DTYPES: Mapping[str, torch.dtype] = MappingProxyType(
    {name: torch.int32 if kind is int else torch.float32 for name, kind in get_type_hints(RowParameters).items()}
)

if TYPE_CHECKING:

    class ParameterArrays(tuple[Any, ...]):
        """What there is one of for each field of `RowParameters`, under its name: mostly an array [rows]."""

        def __new__(cls, *arrays: Any) -> ParameterArrays: ...
        def __getattr__(self, name: str) -> Tensor: ...
        def _asdict(self) -> dict[str, Tensor]: ...
else:
    ParameterArrays = namedtuple("ParameterArrays", DTYPES)


def filled(num_rows: int, device: torch.device | str = "cpu", **values: float) -> ParameterArrays:
    """Arrays whose rows are all alike: of the values given, and else of the defaults."""
    alike = {**DEFAULTS, **values}
    return ParameterArrays(*(torch.full((num_rows,), alike[name], dtype=dtype, device=device) for name, dtype in DTYPES.items()))
