"""What the user asked for, turned into the arrays that the sampler reads; log-probabilities; stop rules."""

from .batch import BatchPacker
from .logprobs import StepLogprobs, TokenLogprob, step_logprobs
from .params import MAX_LOGPROBS, SamplingError, SamplingParams
from .sequence import SequenceSampling, resolve_seed
from .stop import StopMatcher, StopStrings

__all__ = [
    "MAX_LOGPROBS",
    "BatchPacker",
    "SamplingError",
    "SamplingParams",
    "SequenceSampling",
    "StepLogprobs",
    "StopMatcher",
    "StopStrings",
    "TokenLogprob",
    "resolve_seed",
    "step_logprobs",
]
