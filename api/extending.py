"""What can be extended: a registry for each kind, and what its values are made of. Each has a page in docs/extending.md.

    from maskwright.extending import POLICIES

    def register():                                       # a plugin: `--plugin my_module:register`
        POLICIES.register("shortest", lambda arrival: (arrival.max_tokens,))
"""

from __future__ import annotations

from .constraints.front_ends.tags.styles import STYLES as TOOL_STYLES
from .constraints.front_ends.tags.styles import ToolStyle
from .constraints.lab.grammar_file import GRAMMAR_LANGUAGES, Language
from .constraints.runtime.front_end import FrontEnd
from .engine.attention.methods import METHODS as ATTENTION_METHODS
from .engine.attention.methods import Attend, Scoring, Visible
from .engine.drafts.choice import DRAFTERS, DraftParts
from .engine.drafts.drafter import Drafter
from .engine.kv_cache.layouts import KV_LAYOUTS, KVLayout, LayoutRequest
from .engine.models.families import FAMILIES as MODEL_FAMILIES
from .engine.models.families import Family
from .engine.scheduling.policy import POLICIES, Arrival, Policy
from .foundation.registry import Registry
from .sampling.logits_stages import LOGITS_STAGES, SKIPPED, LogitsStage, StageContext, StageRequest, StageRow
from .sampling.stopping import STOPPING, StoppingCriterion

__all__ = [
    "ATTENTION_METHODS",
    "DRAFTERS",
    "GRAMMAR_LANGUAGES",
    "KV_LAYOUTS",
    "LOGITS_STAGES",
    "MODEL_FAMILIES",
    "POLICIES",
    "SKIPPED",
    "STOPPING",
    "TOOL_STYLES",
    "Arrival",
    "Attend",
    "DraftParts",
    "Drafter",
    "Family",
    "FrontEnd",
    "KVLayout",
    "Language",
    "LayoutRequest",
    "LogitsStage",
    "Policy",
    "Registry",
    "Scoring",
    "StageContext",
    "StageRequest",
    "StageRow",
    "StoppingCriterion",
    "ToolStyle",
    "Visible",
]
