"""What a user may ask of sampling, checked when it is written down.

The fields are the table of options: the check of a value, the options of the command line and the parameters of the server follow
from them. Those that are one number for each row of a batch are written down in `kernels/sampler/parameters.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, ClassVar

from ..foundation.option_names import NamedOptions
from ..kernels.sampler.parameters import Range
from ..kernels.sampler.programs import StageParameters, Step, is_plain, steps_of
from .checks import checked_bias, checked_stages, checked_strings, checked_token_ids, checked_token_sequences
from .logits_stages.adapted import stages_of
from .logits_stages.stage import LogitsStage
from .options import options_of
from .stopping import StoppingCriterion, criteria_of

MAX_LOGPROBS = 20
COUNT = Range(1)
SEED = Range(0, below=2**64, said="in [0, 2**64)")
IN_PYTHON = {"in_python": True}  # metadata of options that only Python has
SEED_STRIDE = 0x9E3779B97F4A7C15  # odd: no two copies have the same seed


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingParams(NamedOptions, StageParameters):
    """How tokens are chosen and when generation stops.

    Stages run in this order: constraint mask, bans and bias, penalties, then temperature and filters in the order that `stages`
    says, draw; docs/sampling.md tells what each does. At temperature 0 the most probable token is taken, whatever the filters.
    Raises `SamplingError` for a value outside the range given beside each field, `UsageError` for an option that there is not.
    """

    KIND: ClassVar[str] = "sampling option"

    stages: Annotated[tuple[str, ...], checked_stages] = ()  # those in force, in this order; () = all, in the default order
    repeat_last_n: Annotated[int, Range(-1)] = -1  # >= -1; penalties see the last so many tokens of prompt and output; -1 = all
    dry_multiplier: Annotated[float, Range(0)] = 0.0  # >= 0; DRY: penalty of a token that goes on repeating; 0 = off
    dry_base: Annotated[float, Range(1)] = 1.75  # >= 1; by which the penalty grows with each further token of the repetition
    dry_allowed_length: Annotated[int, Range(1)] = 2  # >= 1; a repetition of fewer tokens costs nothing
    dry_penalty_last_n: Annotated[int, Range(-1)] = -1  # >= -1; DRY sees the last so many tokens of prompt and output; -1 = all
    dry_sequence_breakers: Annotated[tuple[str, ...], checked_strings] = ("\n", ":", '"', "*")  # no repetition goes on across them
    no_repeat_ngram_size: Annotated[int, Range(0)] = 0  # >= 0; so many tokens never come twice in prompt and output; 0 = off
    logit_bias: Annotated[Mapping[int | str, float], checked_bias] = field(
        default_factory=dict, hash=False
    )  # token id, or a text, which means all of its tokens -> added to its logit
    bad_words: Annotated[tuple[str, ...], checked_strings] = ()  # the tokens of these texts never come one after the other
    bad_words_ids: Annotated[tuple[tuple[int, ...], ...], checked_token_sequences] = field(
        default=(), metadata=IN_PYTHON
    )  # the same as token ids
    allowed_token_ids: Annotated[tuple[int, ...], checked_token_ids] = ()  # nothing else is drawn; () = anything
    banned_token_ids: Annotated[tuple[int, ...], checked_token_ids] = ()  # never drawn, unless the constraint leaves nothing else
    logits_processors: Annotated[tuple[LogitsStage, ...], stages_of] = field(
        default=(), hash=False, metadata=IN_PYTHON
    )  # stages of one's own, before all others: objects, registered names, transformers' processors or functions (docs/sampling.md)
    stopping_criteria: Annotated[tuple[StoppingCriterion, ...], criteria_of] = field(
        default=(), hash=False, metadata=IN_PYTHON
    )  # of one's own, for free text: objects, registered names, functions of the output's token ids (docs/extending.md)
    seed: Annotated[int | None, SEED] = None  # [0, 2**64); None = a fresh one; the same seed gives the same tokens in any batch
    max_tokens: Annotated[int, COUNT] = 256  # >= 1
    min_tokens: Annotated[int, Range(0, "max_tokens")] = (
        0  # [0, max_tokens]; end-of-text and stop tokens are banned before that many
    )
    stop: Annotated[tuple[str, ...], checked_strings] = (
        ()  # generation ends when the output contains one of these; a lone str is accepted
    )
    stop_token_ids: Annotated[tuple[int, ...], checked_token_ids] = ()  # that end the output, beside the model's own
    ignore_eos: bool = False  # end-of-text tokens are banned instead of ending generation
    include_stop_in_output: bool = False  # keep the stop string that ended generation in the text
    logprobs: Annotated[int | None, Range(0, MAX_LOGPROBS)] = (
        None  # [0, 20]; log-probability of each token, and of this many most probable ones
    )
    n: Annotated[int, COUNT] = 1  # >= 1; outputs for the prompt, which is computed once
    best_of: Annotated[int | None, Range("n")] = (
        None  # None or >= n; outputs generated, of which the n most probable ones are given
    )
    loop_bound: Annotated[int | None, Range(0)] = (
        None  # >= 0; tokens that a repetition in a value may cover, then it is ended; 0 = any; None = 32 under schemas and tools
    )
    field_details: bool = False  # what masks did to each value is told as `output.fields`; the model is asked for forced tokens too
    canonical: bool = False  # where a constraint leaves a choice, text is spelt in the tokens that the tokenizer would write it in
    heal_prompt: bool = False  # the last token of a plain prompt or a begun reply is written anew, where a longer one can hold more
    jump_forward: bool = False  # forced text enters as its usual tokens without asking the model for each

    def __post_init__(self) -> None:
        for option in OPTIONS:
            object.__setattr__(self, option.name, option.checked(self))

    @property
    def asks_for_forced(self) -> bool:
        """Whether the model is asked for tokens that are the only legal ones too."""
        return self.logprobs is not None or self.field_details

    @property
    def num_copies(self) -> int:
        """Outputs that are generated for one prompt."""
        return self.best_of or self.n

    def copies(self) -> list[SamplingParams]:
        """One for each output: the first with the seed given, the others with seeds made of it."""
        strides = [number * SEED_STRIDE for number in range(self.num_copies)]
        seeds = [None if self.seed is None else (self.seed + stride) % 2**64 for stride in strides]
        return [replace(self, n=1, best_of=None, seed=seed) for seed in seeds]

    @property
    def is_greedy(self) -> bool:
        """Whether the most probable token is taken each time."""
        return self.temperature == 0

    @property
    def steps(self) -> tuple[Step, ...]:
        """What is done between penalties and draw, in order."""
        return steps_of(self, self.stages or None)

    @property
    def has_program(self) -> bool:
        """Whether that is more than temperature, top-k, top-p and min-p, in this order."""
        return not self.is_greedy and not is_plain(self.steps)

    @property
    def texts(self) -> tuple[str, ...]:
        """Texts that stand for their tokens, which only a tokenizer knows (`spelling.py`)."""
        return (*self.bad_words, *(key for key in self.logit_bias if isinstance(key, str)))


OPTIONS = options_of(SamplingParams)
