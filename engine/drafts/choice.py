"""Which drafter guesses ahead: `speculation` is its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ...constraints.vocabulary.vocabulary import Vocabulary
from ...foundation.registry import Registry
from ..errors import ConfigError
from ..steps.runner import ModelRunner
from .draft_model import DraftModel
from .drafter import Drafter, ForcedDrafts, Lookup, NoDrafts
from .forced_text import ForcedText


class DraftParts(NamedTuple):
    """What a drafter may be made of."""

    vocabulary: Vocabulary
    forced_text: ForcedText
    draft_model: ModelRunner | None  # of the option `draft_model`
    keeps_tokens: bool  # whether the output is to be that of plain decoding (`draft_acceptance`)
    num_draft_tokens: int  # in a step at most


def _draft_model(parts: DraftParts) -> Drafter:
    assert parts.draft_model is not None, "EngineFeatures has checked that there is a draft model"
    return DraftModel(parts.draft_model, parts.vocabulary.size, keeps_tokens=parts.keeps_tokens)


DRAFTERS: Registry[Callable[[DraftParts], Drafter]] = Registry(
    "drafter",
    {
        "off": lambda parts: NoDrafts(),
        "lookup": lambda parts: Lookup(),
        "forced": lambda parts: ForcedDrafts(parts.forced_text),
        "draft": _draft_model,
    },
    needs="a function from DraftParts to a Drafter",
)


def make_drafter(speculation: str, parts: DraftParts) -> Drafter:
    """The drafter of that name. Raises ConfigError where making it fails, or makes something else."""
    try:
        drafter = DRAFTERS[speculation](parts)
    except Exception as error:
        raise ConfigError(f'speculation="{speculation}": {type(error).__name__}: {error}') from error
    if not isinstance(drafter, Drafter):
        raise ConfigError(f'speculation="{speculation}" made {drafter!r:.80}, which is no Drafter')
    return drafter
