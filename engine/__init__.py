"""Runs models: requests in, tokens out, one batched step at a time. Start reading at `engine.py`."""

from .config import EngineConfig
from .engine import Engine
from .errors import (
    BudgetTooSmall,
    ConfigError,
    EngineError,
    InternalError,
    ModelFolderError,
    PromptTooLong,
    RequestError,
    UnsupportedModel,
    WeightError,
)
from .features import EngineFeatures
from .loader import Loaded, load
from .models.tokenizer import Tokenizer
from .requests.output import Event, FinishReason, RequestOutput, TokenRecord
from .requests.request import Constraint, Request
from .scheduling.statistics import EngineStatistics

__all__ = [
    "BudgetTooSmall",
    "ConfigError",
    "Constraint",
    "Engine",
    "EngineConfig",
    "EngineError",
    "EngineFeatures",
    "EngineStatistics",
    "Event",
    "FinishReason",
    "InternalError",
    "Loaded",
    "ModelFolderError",
    "PromptTooLong",
    "Request",
    "RequestError",
    "RequestOutput",
    "TokenRecord",
    "Tokenizer",
    "UnsupportedModel",
    "WeightError",
    "load",
]
