"""What the user asked for, turned into the arrays that the sampler reads; log-probabilities; stop rules."""

from .batch import BatchPacker
from .checks import SamplingError
from .logprobs import TokenLogprob
from .params import MAX_LOGPROBS, SamplingParams
from .sequence import SequenceSampling, resolve_seed
from .spelling import spelled
from .stop import StopMatcher, StopStrings

__all__ = [
    "MAX_LOGPROBS",
    "BatchPacker",
    "SamplingError",
    "SamplingParams",
    "SequenceSampling",
    "StopMatcher",
    "StopStrings",
    "TokenLogprob",
    "resolve_seed",
    "spelled",
]
