"""An engine put together from its parts, with the features that were asked for."""

from __future__ import annotations

from functools import cache

from ..sampling.logits_stages import LogitsStage
from .adapters.registry import AdapterRegistry
from .drafts.draft_model import DraftModel
from .drafts.drafter import Drafter, ForcedDrafts, Lookup, NoDrafts
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
) -> Engine:
    """An engine around `runner`, in whose slots `adapters` are.

    `draft` runs the model of speculation="draft"; its cache has as many blocks as `runner`'s.
    """
    if runner.decoder.spec.is_recurrent:
        features = features.for_recurrent()
    forced_text = ForcedText(tokenizer.vocabulary, lambda text: tokenizer.encode(text, add_special_tokens=False))
    pairs = cache(lambda: CanonicalPairs(tokenizer.vocabulary, tokenizer.specification(), tokenizer.word_starts))
    drafter = _drafter(features, forced_text, draft, tokenizer.vocabulary.size)
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
    )


def _drafter(
    features: EngineFeatures, forced_text: ForcedText, draft: ModelRunner | None, vocab_size: int
) -> Drafter:
    if features.speculation == "lookup":
        return Lookup()
    if features.speculation == "forced":
        return ForcedDrafts(forced_text)
    if features.speculation == "draft":
        assert draft is not None, "EngineFeatures has checked that there is a draft model"
        return DraftModel(draft, vocab_size, keeps_tokens=features.draft_acceptance == "tokens")
    return NoDrafts()
