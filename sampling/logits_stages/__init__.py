"""Stages of one's own: objects that change logits before masks, bans and all other stages of sampling."""

from .adapted import stages_of
from .batch import BatchStages, Staged, failure_text
from .context import StageContext, StageRequest, StageRow
from .stage import LOGITS_STAGES, SKIPPED, LogitsStage, RowStages, set_up

__all__ = [
    "LOGITS_STAGES",
    "SKIPPED",
    "BatchStages",
    "LogitsStage",
    "RowStages",
    "StageContext",
    "StageRequest",
    "StageRow",
    "Staged",
    "failure_text",
    "set_up",
    "stages_of",
]
