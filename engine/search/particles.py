"""Particles: sequential Monte Carlo over outputs, so that a constraint chooses among texts and not among tokens.

Masked sampling draws each token from what the constraint allows there. That favours beginnings which the model likes and which
leave it, later, only continuations it finds improbable. Particles correct this: each draws under the masks and carries as its
weight the product of the kept masses, the model's probabilities of what was allowed at each place. When weights have become uneven,
particles are resampled: improbable ones give their place to copies of probable ones, which share their blocks and go on with other
random numbers.

The weighted outputs approximate the model's own distribution given that its output satisfies the constraint, and is complete within
max_tokens; exactly so as their number grows. The mean weight estimates, without bias, the probability that the model alone would
have satisfied it (`log_evidence`).

Source: Lew, Zhi-Xuan, Grand, Mansinghka, "Sequential Monte Carlo Steering of Large Language Models using Probabilistic Programs",
arXiv:2306.03081; with locally constrained proposals and resampling below a share of effective particles as in Loula et al.,
"Syntactic and Semantic Control of Large Language Models via Sequential Monte Carlo", arXiv:2504.13139. Resampling is systematic
(Carpenter, Clifford, Fearnhead 1999).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate

import torch
from torch import Tensor

from ...kernels.sampler.reference import NEVER, draw
from ...kernels.sampler.uniform import uniform
from ...sampling import BatchPacker
from ...sampling.params import SEED_STRIDE
from ..errors import RequestError
from ..requests.output import SearchScore, TokenRecord
from ..requests.sequence import Sequence
from .search_group import SearchGroup, Seen, Surroundings

UNDERSTOOD = ("temperature", "max_tokens", "stop_token_ids", "seed", "canonical", "heal_prompt")
RESAMPLE_STREAM = 0x6A09E667F3BCC908  # random numbers apart from those of the draws


@dataclass(frozen=True, slots=True, kw_only=True)
class Particles:
    """Raises RequestError for values that mean nothing."""

    count: int = 8
    resample_below: float = 0.5  # [0, 1]: share of effective particles (1 / sum of squared weights) that is too few; 0 = never

    def __post_init__(self) -> None:
        if type(self.count) is not int or self.count < 1:
            raise RequestError(f"count must be an integer of at least 1, got {self.count!r}")
        share = self.resample_below
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
            raise RequestError(f"resample_below must be a number from 0 to 1, got {share!r}")


class _Particle:
    """A place in the population; who is in it may change, its random numbers do not."""

    __slots__ = ("log_weight", "logprob", "seed", "sequence")

    def __init__(self, sequence: Sequence, seed: int) -> None:
        self.sequence, self.seed, self.log_weight, self.logprob = sequence, seed, 0.0, 0.0


class Swarm(SearchGroup):
    """Particles under way, whose members are the particles."""

    def __init__(self, facade: Sequence, options: Particles, around: Surroundings) -> None:
        super().__init__(facade, around)
        self.options, self.log_evidence = options, 0.0
        self.num_resampled = 0
        self._packer_of_draws = BatchPacker(around.device)
        self.begin(options.count)
        seeds = [(facade.sampling.seed + number * SEED_STRIDE) % 2**64 for number in range(options.count)]
        self._particles = [_Particle(*pair) for pair in zip(self.members, seeds, strict=True)]

    def advance(self, seen: Mapping[Sequence, Seen]) -> None:
        going = [particle for particle in self._particles if particle.sequence in seen]
        for particle, record, log_mass in self._drawn(going, seen):
            particle.log_weight += log_mass
            particle.logprob += record.logprob or 0.0
            self._take(particle.sequence, record)
        if self.members and self._effective_share() < self.options.resample_below:
            self._resample()

    def results(self) -> list[Sequence]:
        evidence = self.log_evidence + _log_mean([particle.log_weight for particle in self._particles])
        best_first = sorted(zip(self._weights(), self._particles, strict=True), key=lambda pair: -pair[0])
        return [
            self.named(particle.sequence, SearchScore(weight, particle.logprob, weight, evidence))
            for weight, particle in best_first
        ]

    # ---- drawing

    def _drawn(self, particles: list[_Particle], seen: Mapping[Sequence, Seen]) -> list[tuple[_Particle, TokenRecord, float]]:
        """The next token of each, and the logarithm of the mass that was allowed."""
        sequences = [particle.sequence for particle in particles]
        for particle in particles:
            particle.sequence.sampling.seed = particle.seed
        looked = [seen[sequence] for sequence in sequences]
        scores = torch.stack([each.score for each in looked])
        rows = self._packer_of_draws.pack([sequence.sampling for sequence in sequences])
        tokens = draw(scores, scores > NEVER, rows)[0].tolist()
        temperature = self.facade.request.sampling.temperature
        mass = _log_mass(scores, temperature) - _log_mass(torch.stack([each.unmasked for each in looked]), temperature)
        return [
            (particle, TokenRecord(token, float(each.score[token]) - each.log_total, each.kept_mass, each.num_allowed), log_mass)
            for particle, token, each, log_mass in zip(particles, tokens, looked, mass.tolist(), strict=True)
        ]

    def _take(self, sequence: Sequence, record: TokenRecord) -> None:
        sequence.accept(record)
        if sequence.is_finished:
            self.drop(sequence)

    # ---- resampling

    def _weights(self) -> list[float]:
        """The weights of all particles, normalised to a sum of 1."""
        highest = max(particle.log_weight for particle in self._particles)
        raw = [math.exp(particle.log_weight - highest) for particle in self._particles]
        return [weight / sum(raw) for weight in raw]

    def _effective_share(self) -> float:
        return 1 / sum(weight**2 for weight in self._weights()) / len(self._particles)

    def _resample(self) -> None:
        count = len(self._particles)
        copies = systematic(self._weights(), self._uniform())
        self.log_evidence += _log_mean([particle.log_weight for particle in self._particles])
        for particle, number in zip(self._particles, copies, strict=True):
            if not number and not particle.sequence.is_finished:
                self.drop(particle.sequence)
        places = iter([particle for particle, number in zip(self._particles, copies, strict=True) if not number])
        for particle, number in zip(list(self._particles), copies, strict=True):
            for _ in range(number - 1):
                place = next(places)
                place.sequence, place.logprob = self._copy(particle.sequence), particle.logprob
        for particle in self._particles:
            particle.log_weight = 0.0
        self.num_resampled += 1
        assert len(self._particles) == count

    def _copy(self, sequence: Sequence) -> Sequence:
        return self.fork_apart(sequence) if sequence.is_finished else self.fork_running(sequence)

    def _uniform(self) -> float:
        seed = self.facade.sampling.seed ^ RESAMPLE_STREAM
        signed = seed - (1 << 64) if seed >= 1 << 63 else seed
        return float(uniform(torch.tensor([signed]), torch.tensor([self.num_resampled]))[0])


def systematic(weights: list[float], start: float) -> list[int]:
    """How many copies each gets: as many as of the points (start + k) / n fall into its share of [0, 1). n = len(weights)."""
    count = len(weights)
    ends = [min(max(math.ceil(total * count - start), 0), count) for total in accumulate(weights)]
    ends[-1] = count  # whatever rounding says
    return [end - begin for begin, end in zip([0, *ends], ends, strict=False)]


def _log_mass(scores: Tensor, temperature: float) -> Tensor:
    """[rows] float64 logarithm of the sum of exp(score / temperature)."""
    return torch.logsumexp(scores.double() / temperature, -1)


def _log_mean(logarithms: list[float]) -> float:
    highest = max(logarithms)
    return highest + math.log(sum(math.exp(each - highest) for each in logarithms) / len(logarithms))
