"""Stages that are more than a temperature and the plain filters in their usual order: programs, one for each row that asks for one.

A program is a list of steps, each with the code of a stage and up to three numbers. `STAGES` is the list of all stages in their
default order, that of text-generation-webui's `sampler_priority`. To add a stage: an entry here, its options in
`StageParameters`, a function in `shaping.py` and a branch in `gpu/programs.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from types import MappingProxyType
from typing import Annotated, NamedTuple

from torch import Tensor

from .parameters import DEFAULTS, FINITE, FRACTION, SHARE, Range, RowParameters

NOT_NEGATIVE = Range(0)
NUM_VALUES = 3  # of a step
LARGEST_COUNT = 1 << 24  # of tokens, that float32 holds exactly; more than any vocabulary has


@dataclass(frozen=True, slots=True, kw_only=True)
class StageParameters(RowParameters):
    """The numbers of stages that are run by programs. All are off at their defaults."""

    dynatemp_range: Annotated[float, NOT_NEGATIVE] = 0.0  # >= 0; the temperature follows the entropy, so far from `temperature`
    dynatemp_exponent: Annotated[float, NOT_NEGATIVE] = 1.0  # >= 0; of the entropy, 1 being the highest that there can be
    smoothing_factor: Annotated[float, NOT_NEGATIVE] = 0.0  # >= 0; logits become a parabola below the best; 0 = off
    smoothing_curve: Annotated[float, Range(1, 3)] = 1.0  # [1, 3]; above 1 the parabola becomes a cubic, flatter at the top
    top_n_sigma: Annotated[float, FINITE] = 0.0  # keep logits so many standard deviations below the best; <= 0 = off
    typical_p: Annotated[float, SHARE] = 1.0  # (0, 1]; keep the tokens nearest to the expected surprise that hold this probability
    top_a: Annotated[float, FRACTION] = 0.0  # [0, 1]; keep tokens of at least this times the squared best probability
    xtc_probability: Annotated[float, FRACTION] = 0.0  # [0, 1]; how often all top choices but the last are excluded; 0 = off
    xtc_threshold: Annotated[float, FRACTION] = 0.1  # [0, 1]; how probable a top choice is at least
    mirostat: Annotated[int, Range(0, 2)] = 0  # 1, 2: keep what steers the surprise of tokens towards mirostat_tau; 0 = off
    mirostat_tau: Annotated[float, NOT_NEGATIVE] = 5.0  # >= 0; the surprise that is aimed at, in bits a token
    mirostat_eta: Annotated[float, FRACTION] = 0.1  # [0, 1]; how fast mirostat follows


class Code(IntEnum):
    """What a step does; END stands behind the last one."""

    END = 0
    TEMPERATURE = 1
    SMOOTHING = 2
    TOP_N_SIGMA = 3
    TOP_K = 4
    TOP_P = 5
    TYPICAL_P = 6
    TOP_A = 7
    MIN_P = 8
    XTC = 9
    MIROSTAT_1 = 10
    MIROSTAT_2 = 11


class Step(NamedTuple):
    """A stage with its numbers."""

    code: Code
    values: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage: how it is called, and the step that it is for some parameters; None where these leave it off."""

    name: str
    step: Callable[[StageParameters], Step | None]


def _temperature(asked: StageParameters) -> Step | None:
    values = asked.temperature, asked.dynatemp_range, asked.dynatemp_exponent
    return Step(Code.TEMPERATURE, values) if values[:2] != (1, 0) else None


def _smoothing(asked: StageParameters) -> Step | None:
    return Step(Code.SMOOTHING, (asked.smoothing_factor, asked.smoothing_curve)) if asked.smoothing_factor else None


def _top_k(asked: StageParameters) -> Step | None:
    return Step(Code.TOP_K, (min(asked.top_k, LARGEST_COUNT),)) if asked.top_k else None


def _xtc(asked: StageParameters) -> Step | None:
    return Step(Code.XTC, (asked.xtc_probability, asked.xtc_threshold)) if asked.xtc_probability else None


def _mirostat(asked: StageParameters) -> Step | None:
    code = (None, Code.MIROSTAT_1, Code.MIROSTAT_2)[asked.mirostat]
    return None if code is None else Step(code, (2 * asked.mirostat_tau,))  # as it begins; `Mirostat` follows it


def _number(name: str, code: Code, is_on: Callable[[float], bool]) -> Stage:
    """A stage that is told one number, its option of the same name."""

    def step(asked: StageParameters) -> Step | None:
        value: float = getattr(asked, name)
        return Step(code, (value,)) if is_on(value) else None

    return Stage(name, step)


STAGES = (
    Stage("temperature", _temperature),
    Stage("smoothing", _smoothing),
    _number("top_n_sigma", Code.TOP_N_SIGMA, lambda number: number > 0),
    Stage("top_k", _top_k),
    _number("top_p", Code.TOP_P, lambda share: share < 1),
    _number("typical_p", Code.TYPICAL_P, lambda share: share < 1),
    _number("top_a", Code.TOP_A, lambda factor: factor > 0),
    _number("min_p", Code.MIN_P, lambda fraction: fraction > 0),
    Stage("xtc", _xtc),
    Stage("mirostat", _mirostat),
)
BY_NAME = MappingProxyType({stage.name: stage for stage in STAGES})
PLAIN = (Code.TEMPERATURE, Code.TOP_K, Code.TOP_P, Code.MIN_P)  # what rows without a program may do, in this order


def steps_of(asked: StageParameters, names: Sequence[str] | None = None) -> tuple[Step, ...]:
    """What is on, in the order of `names`; without them in the default order. A stage that is not named is off."""
    stages = STAGES if names is None else [BY_NAME[name] for name in names]
    return tuple(step for step in (stage.step(asked) for stage in stages) if step is not None)


def is_plain(steps: Sequence[Step]) -> bool:
    """Whether the numbers of rows suffice for these steps, and no program is needed."""
    places = [PLAIN.index(step.code) for step in steps if step.code in PLAIN]
    has_range = any(step.code == Code.TEMPERATURE and step.values[1] > 0 for step in steps)
    return len(places) == len(steps) and places == sorted(places) and not has_range


def plain_values(steps: Sequence[Step]) -> dict[str, float]:
    """The numbers of a row that does what plain steps say, and else nothing."""
    off = {name: DEFAULTS[name] for name in ("temperature", "top_k", "top_p", "min_p")}
    return off | {step.code.name.lower(): step.values[0] for step in steps}


class Programs(NamedTuple):
    """The programs of a batch, as samplers read them. A row that begins with END has none."""

    codes: Tensor  # int32 [rows, steps]
    values: Tensor  # float32 [rows, steps, NUM_VALUES]
