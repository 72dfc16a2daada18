"""One switch for each thing that makes the engine fast. With all of them off, the plain loop gives the same tokens, or with
`draft_acceptance="distribution"` tokens of the same distribution."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, ClassVar

from ..foundation.option_names import NamedOptions, not_one_of
from .drafts.choice import DRAFTERS
from .errors import ConfigError
from .scheduling.policy import POLICIES


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineFeatures(NamedOptions):
    """What makes the engine fast: fields are arguments of `LLM` and options of the command line.

    EngineFeatures()                                        shared prefixes, forced tokens taken at once
    EngineFeatures(speculation="lookup")                    what the prompt says again is guessed, and checked by the model
    EngineFeatures(speculation="draft", draft_model=folder)    a small model guesses for a large one
    EngineFeatures(overlap=True, automaton="device", steps_per_visit=4, cuda_graphs=True)    on a GPU the host keeps out of its way
    EngineFeatures(policy="priority", num_host_blocks=4096)    urgent requests first; what they displace waits in host memory
    """

    KIND: ClassVar[str] = "engine option"
    CHANGES_TOKENS: ClassVar[frozenset[str]] = frozenset({"draft_acceptance"})  # all others leave every token what it is

    prefix_cache: bool = True  # what several prompts begin with is computed once
    num_host_blocks: int = 0  # KV blocks in host memory, for what the cache has no room for; 0 = it is computed again
    skips_forced: bool = True  # a token that is the only legal one is not sampled
    policy: str = "fcfs"  # who goes first: "fcfs", "priority" (Request.priority) or "fair" (among Request.user)
    speculation: str = "off"  # who guesses ahead: "off", "lookup" (text so far), "forced" (the constraint) or "draft" (a model)
    num_draft_tokens: int = 4  # tokens guessed ahead in a step at most
    draft_acceptance: str = "tokens"  # what guessing keeps: "tokens" of plain decoding, or its "distribution", accepting more
    overlap: bool = False  # a step is launched before the tokens of the one before are read (engine/loops/pipeline.py)
    automaton: str = "host"  # where states and masks are: "host" or "device"
    steps_per_visit: int = (
        1  # decode steps before the host looks at the tokens, for automaton="device" (engine/loops/multi_step.py)
    )
    cuda_graphs: bool = False  # decode steps are captured and replayed, for automaton="device" on a GPU (engine/device/graphs.py)
    draft_model: Path | None = None  # folder of a small model with the same vocabulary, for speculation="draft"

    def __post_init__(self) -> None:
        for name in ("prefix_cache", "skips_forced", "overlap", "cuda_graphs"):
            if not isinstance(getattr(self, name), bool):
                raise ConfigError(f"{name} must be True or False, got {getattr(self, name)!r}")
        _require_integer("num_host_blocks", self.num_host_blocks, at_least=0)
        _require_integer("steps_per_visit", self.steps_per_visit, at_least=1)
        _require_integer("num_draft_tokens", self.num_draft_tokens, at_least=1)
        _require_name("automaton", self.automaton, ("host", "device"))
        _require_name("policy", self.policy, POLICIES)
        _require_name("speculation", self.speculation, DRAFTERS)
        _require_name("draft_acceptance", self.draft_acceptance, ("tokens", "distribution"))
        if self.draft_acceptance == "distribution" and self.speculation != "draft":
            raise ConfigError('draft_acceptance="distribution" is for drafts that are drawn; it needs speculation="draft"')
        if self.num_host_blocks and not self.prefix_cache:
            raise ConfigError("num_host_blocks keeps what the prefix cache has no room for; it needs prefix_cache=True")
        if (self.speculation == "draft") != (self.draft_model is not None):
            raise ConfigError('speculation="draft" and draft_model go together: the first says how, the second by which model')
        if self.overlap and self.speculation != "off":
            raise ConfigError(
                f'overlap=True launches a step before the tokens are read from which speculation="{self.speculation}" guesses; '
                "choose one of the two"
            )
        if self.automaton == "device" and self.speculation != "off":
            raise ConfigError(
                f'automaton="device" takes one token a step, speculation="{self.speculation}" several, checked on the host; '
                "choose one of the two"
            )
        if (self.steps_per_visit > 1 or self.cuda_graphs) and self.automaton == "host":
            raise ConfigError('steps_per_visit and cuda_graphs need constraint states on the device; set automaton="device"')
        if self.draft_model is not None:
            object.__setattr__(self, "draft_model", Path(self.draft_model))

    def for_recurrent(self) -> EngineFeatures:
        """For a model that keeps one state for each sequence, of which no beginning can be shared and nothing taken back.

        Raises ConfigError for guesses ahead and for steps launched ahead, which would have to be.
        """
        if self.overlap:
            raise ConfigError("overlap=True takes back a token that turns out too long for its budget; a state-space model cannot")
        if self.speculation != "off":
            raise ConfigError(f'speculation="{self.speculation}" takes back what was guessed wrong; a state-space model cannot')
        return replace(self, prefix_cache=False, num_host_blocks=0)

    @property
    def max_drafts(self) -> int:
        """Tokens guessed ahead in a step at most; 0 without speculation."""
        return 0 if self.speculation == "off" else self.num_draft_tokens

    @classmethod
    def split(cls, options: Mapping[str, Any]) -> tuple[EngineFeatures, dict[str, Any]]:
        """The features among loose options, and what is left of these."""
        names = {field.name for field in fields(cls)}
        chosen = {name: value for name, value in options.items() if name in names}
        return cls(**chosen), {name: value for name, value in options.items() if name not in names}


def _require_integer(name: str, value: object, at_least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < at_least:
        raise ConfigError(f"{name} must be an integer of at least {at_least}, got {value!r}")


def _require_name(name: str, value: str, known: Any) -> None:
    if value not in known:
        raise ConfigError(not_one_of(name, value, known))
