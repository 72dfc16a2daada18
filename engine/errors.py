"""The errors of the engine.

EngineError
├── ConfigError            the engine cannot start with these settings or this model folder
│   ├── ModelFolderError   a file of the model folder is missing or unreadable
│   ├── UnsupportedModel   the folder is sound, but describes something this engine does not run
│   ├── WeightError        the checkpoint does not fit the model that config.json describes
│   └── AdapterError       an adapter cannot be read, does not fit the model, or cannot be loaded or unloaded now
│       └── AdapterInUse   requests that run with it are not finished
├── RequestError           one request cannot be admitted as it was asked
│   ├── PromptTooLong
│   ├── BudgetTooSmall
│   └── SessionError       a saved session cannot be resumed here; `keyword` is what differs
└── InternalError          a failure while running; ends the request it belongs to, whose `error` begins with the name
    ├── ModelFailure       the forward pass raises, also when this sequence is computed alone
    ├── InvalidLogits      the forward pass gives no numbers, also then
    ├── SamplerFailure     drawing a token raises
    ├── RankLost           one of the processes that compute the model together has ended; ends all requests
    ├── StageFailure       a logits processor raises, or gives something else than logits
    ├── StoppingFailure    a stopping criterion raises
    └── EngineFailure      planning a step raises whenever this sequence is there
"""

from __future__ import annotations

from typing import Self

from ..foundation.errors import MaskwrightError


class EngineError(MaskwrightError):
    """Base of every error the engine raises on purpose. The message is one line."""


class ConfigError(EngineError):
    """The engine cannot start: a setting or the model folder is wrong."""


class ModelFolderError(ConfigError):
    """A file of the model folder is missing or cannot be read."""


class UnsupportedModel(ConfigError):
    """The model folder asks for something this engine does not run; the message names it and what is supported."""


class WeightError(ConfigError):
    """A tensor of the checkpoint is missing, unknown, misshaped or unreadable."""


class AdapterError(ConfigError):
    """An adapter cannot be used: its files, its kind, its shapes, its name, or because there is no room for it."""


class AdapterInUse(AdapterError):
    """Requests that run with an adapter are not finished, so that it cannot be unloaded."""

    def __init__(self, name: str, num_requests: int) -> None:
        many = f"{num_requests} requests run or wait" if num_requests > 1 else "a request runs or waits"
        super().__init__(f'adapter "{name}" is in use: {many} with it; unload it when that has ended, or with wait=True')
        self.name, self.num_requests = name, num_requests


class RequestError(EngineError, ValueError):
    """One request cannot be admitted as asked; nothing else is affected. `part` is what of it is wrong, where that is one thing."""

    part: str | None = None

    def about(self, part: str) -> Self:
        """This error, which from now on names what of the request is wrong."""
        self.part = part
        return self


class PromptTooLong(RequestError):
    """The prompt leaves no room for a single new token."""

    def __init__(self, num_tokens: int, limit: int, option: str = "max_model_len", *, is_counted: bool = True) -> None:
        """option: the setting of the engine that gives the limit. is_counted: else it has at least so many tokens."""
        count = f"{num_tokens}" if is_counted else f"more than {num_tokens}"
        super().__init__(
            f"the prompt has {count} tokens, but at most {limit} fit (one place is kept for the output); "
            f"shorten it or raise {option}"
        )
        self.num_tokens, self.limit = num_tokens, limit


class BudgetTooSmall(RequestError):
    """The constraint needs more tokens than the request may generate."""

    def __init__(self, max_tokens: int, min_tokens: int, option: str | None = None) -> None:
        """option: the setting of the engine that leaves no more; None where the request asked for no more."""
        advice = f"set max_tokens to at least {min_tokens}" if option is None else f"shorten the prompt or raise {option}"
        super().__init__(
            f"the constraint needs up to {min_tokens} tokens to finish, but only {max_tokens} may be generated; {advice}"
        )
        self.max_tokens, self.min_tokens = max_tokens, min_tokens


class SessionError(RequestError):
    """A session that cannot be saved or resumed here.

    `keyword` is why: "file" (none of ours, cut short or changed), "format" (of another version), "content" (well written, but no
    session), "model", "tokenizer", "constraint", "adapter", "logits_processors", "stopping_criteria", "cache" (what is kept of a
    token, its dtype or the draft model's), "max_model_len" (what differs from where it was saved), or "request" (it is not one
    that can be saved).
    """

    def __init__(self, keyword: str, reason: str) -> None:
        super().__init__(f"session ({keyword}): {reason}")
        self.keyword = keyword


class InternalError(EngineError):
    """A failure that is not the caller's fault; the request it belongs to ends with finish_reason="error"."""


class ModelFailure(InternalError):
    """The forward pass raises with this sequence, alone as with others."""


class InvalidLogits(InternalError):
    """The forward pass gives NaN for the next token of this sequence, alone as with others."""


class SamplerFailure(InternalError):
    """Drawing this sequence's next token raises."""


class StageFailure(InternalError):
    """A logits processor raises with this sequence, alone as with others, or gives NaN or another shape; the message names it."""


class StoppingFailure(InternalError):
    """A stopping criterion raises; the message names it."""


class EngineFailure(InternalError):
    """Planning a step, or moving blocks for it, raises whenever this sequence takes part."""


class RankLost(InternalError):
    """One of the processes that compute a model together (`tensor_parallel`) has ended, and with it all of them."""
