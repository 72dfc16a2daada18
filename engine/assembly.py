"""An engine put together from its parts, with the features that were asked for."""

from __future__ import annotations

from functools import cache

from ..sampling.logits_stages import LogitsStage
from ..sampling.stopping import StoppingCriterion
from .adapters.registry import AdapterRegistry
from .drafts.choice import DraftParts, make_drafter
from .drafts.forced_text import ForcedText
from .engine import Engine
from .features import EngineFeatures
from .limits import Limits
from .models.tokenizer import Tokenizer
from .requests.canonical import CanonicalPairs
from .steps.runner import ModelRunner


def assemble(
    runner: ModelRunner,
    tokenizer: Tokenizer,
    limits: Limits,
    features: EngineFeatures,
    *,
    threads: int | None = None,
    draft: ModelRunner | None = None,
    adapters: AdapterRegistry | None = None,
    logits_processors: tuple[LogitsStage, ...] = (),
    stopping_criteria: tuple[StoppingCriterion, ...] = (),
) -> Engine:
    """An engine around `runner`, in whose slots `adapters` are.

    `draft` runs the model of speculation="draft"; its cache has as many blocks as `runner`'s.
    """
    if runner.decoder.spec.is_recurrent:
        features = features.for_recurrent()
    forced_text = ForcedText(tokenizer.vocabulary, lambda text: tokenizer.encode(text, add_special_tokens=False))
    pairs = cache(lambda: CanonicalPairs(tokenizer.vocabulary, tokenizer.specification(), tokenizer.word_starts))
    parts = DraftParts(
        tokenizer.vocabulary, forced_text, draft, features.draft_acceptance == "tokens", features.num_draft_tokens
    )
    drafter = make_drafter(features.speculation, parts)
    return Engine(
        runner,
        tokenizer.vocabulary,
        limits,
        features,
        forced_text=forced_text,
        canonical=pairs,
        drafter=drafter,
        threads=threads,
        adapters=adapters,
        logits_processors=logits_processors,
        stopping_criteria=stopping_criteria,
    )
