"""What /completion takes, and the completion in OpenAI's words that it asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Any

from pydantic import Field

from ...llm import LLM
from ..body import Ignored
from ..errors import ApiError
from ..requested_constraint import ConstraintNames
from ..sampling_options import SamplingExtras

_STAGES = {  # samplers by their names there, and the stages here
    "top_k": "top_k", "top_p": "top_p", "min_p": "min_p", "temperature": "temperature", "top_n_sigma": "top_n_sigma",
    "typ_p": "typical_p", "typical_p": "typical_p", "xtc": "xtc",
}  # fmt: skip
_EDITS = {  # samplers that come before all stages, and what switches them off
    "penalties": {"repetition_penalty": 1.0, "presence_penalty": 0.0, "frequency_penalty": 0.0},
    "dry": {"dry_multiplier": 0.0},
}
_LETTERS = {"e": "penalties", "d": "dry", "k": "top_k", "p": "top_p", "m": "min_p", "t": "temperature"} | {
    "s": "top_n_sigma", "y": "typ_p", "x": "xtc", "i": "infill",
}  # fmt: skip
_ABSENT = ("infill", "adaptive_p")
_OF_MIROSTAT = ("temperature", "mirostat")  # with it llama.cpp has no other stages
_UNDER_MIROSTAT = (
    "samplers", "top_k", "top_p", "min_p", "typical_p", "top_n_sigma", "xtc_probability", "repeat_penalty", "dry_multiplier",
)  # fmt: skip
_NEUTRAL: Mapping[str, tuple[str, float]] = MappingProxyType(  # of a stage that is left out: what its option is then
    {
        "temperature": ("temperature", 1.0), "top_k": ("top_k", 0), "top_p": ("top_p", 1.0), "min_p": ("min_p", 0.0),
        "top_n_sigma": ("top_n_sigma", 0.0), "typical_p": ("typical_p", 1.0), "xtc": ("xtc_probability", 0.0),
    }
)  # fmt: skip
_AHEAD = "guesses ahead are the operator's choice (--speculation)"
LOWEST = -3e38  # a bias that no logit makes up for
# How a completion's parameters are called here.
NAMES = {"max_tokens": "n_predict", "logprobs": "n_probs", "repetition_penalty": "repeat_penalty", "n": "n_cmpl"} | {
    "messages": "prompt",
}
SAME = (
    "model", "stream", "stop", "temperature", "top_k", "top_p", "min_p", "presence_penalty", "frequency_penalty", "ignore_eos",
)  # fmt: skip


class LlamaCompletionBody(SamplingExtras, ConstraintNames):
    """A prompt to be gone on with, as it is: no template is put around it."""

    refused = MappingProxyType(
        {
            "grammar_lazy": "a structural tag begins a grammar where a text stands",
            "image_data": "this model reads text",
            "lora": "there is one model",
            "min_keep": "filters keep what they say",
            "n_indent": "say what the lines are like with a regex or grammar",
            "speculative.n_max": _AHEAD,
            "speculative.n_min": _AHEAD,
            "speculative.p_min": _AHEAD,
            "system_prompt": "put it before the prompt, or send messages to /v1/chat/completions",
        }
    )
    neutral = MappingProxyType(
        {
            "min_keep": (0, 1), "n_indent": (0,), "lora": ([],),
        }
    )  # fmt: skip
    prompt: str | list[Any] | dict[str, Any] = Field(
        description="A text, token ids, both in one list, or a list of prompts; or an object with prompt_string."
    )
    model: str | None = Field(None, description="The name of the model, as /v1/models lists it.")
    n_predict: int | None = Field(None, ge=-1, description="Tokens of the output at most; -1: as many as there is room for.")
    max_tokens: int | None = Field(None, ge=-1, description="As n_predict.")
    stop: str | list[str] | None = Field(None, description="Strings that end the output.")
    stream: bool | None = None
    n_probs: int | None = Field(None, ge=0, description="Alternatives of each token whose log-probabilities are told.")
    n_cmpl: int | None = Field(None, ge=1, description="Outputs for each prompt.")
    seed: int | None = Field(None, description="The same seed gives the same tokens; -1: another one each time.")
    repeat_penalty: float | None = Field(None, gt=0, description="repetition_penalty, over the whole text.")
    logit_bias: dict[str, float | bool] | list[list[Any]] | None = Field(  # type: ignore[assignment]  # a form of its own
        None, description="Pairs of a token id, or a text, and what is added to its logits; false: it never comes."
    )
    samplers: str | list[str] | None = Field(
        None, description="Those that are in force, in this order; penalties and dry come first. Else the order of `stages`."
    )
    return_tokens: bool | None = Field(None, description="Whether answers have the token ids; streams always do.")
    timings_per_token: bool | None = Field(None, description="Whether every piece of a stream has timings.")
    response_fields: list[str] | None = Field(None, description="Members that are told; a slash leads into an object.")
    return_token_ids: Annotated[bool | None, Ignored("See return_tokens.")] = None
    return_tokens_as_token_ids: Annotated[bool | None, Ignored("See n_probs, which tells ids.")] = None

    @property
    def num_wanted(self) -> int | None:
        """Tokens of the output at most; None: as many as there is room for."""
        asked = self.n_predict if self.n_predict is not None else self.max_tokens
        return None if asked is None or asked < 0 else asked


def as_completion(body: LlamaCompletionBody, llm: LLM) -> dict[str, Any]:
    """The body as a completion. Raises ApiError."""
    made = {**body.sampling_extras, **body.named_constraints}
    made |= {name: getattr(body, name) for name in SAME if getattr(body, name) is not None}
    made |= _samplers(body)
    if body.repeat_penalty is not None and "repetition_penalty" not in made:
        made["repetition_penalty"] = body.repeat_penalty
    if body.num_wanted is not None:
        made["max_tokens"] = body.num_wanted
    if body.seed is not None and body.seed < 0:
        made.pop("seed", None)
    if body.logit_bias is not None:
        made["logit_bias"] = _biases(body.logit_bias, llm)
    return made | {"n": body.n_cmpl, "logprobs": body.n_probs or None}


def token_prompts(prompt: Any, llm: LLM, most: int) -> list[list[int]]:
    """The prompts as tokens, with what the tokenizer puts around a text where they begin with one. most: prompts that may be.
    Raises ApiError."""
    is_one = not isinstance(prompt, list) or not prompt or any(_is_id(part) for part in prompt)
    if is_one:
        return [_tokens(prompt, llm, "prompt")]
    if len(prompt) > most:
        message = f"prompt: {len(prompt)} prompts, and this server takes 1 to {most}"
        raise ApiError(400, message, param="prompt", code="limit_exceeded")
    return [_tokens(each, llm, f"prompt[{index}]") for index, each in enumerate(prompt)]


def _tokens(prompt: Any, llm: LLM, place: str) -> list[int]:
    if isinstance(prompt, dict):
        if prompt.get("multimodal_data"):
            raise ApiError(400, f"{place}.multimodal_data: this model reads text", param=place, code="unsupported_content")
        prompt = prompt.get("prompt_string")
    parts = prompt if isinstance(prompt, list) else [prompt]
    if not all(isinstance(part, str) or _is_id(part) for part in parts):
        message = f"{place} is a text, token ids, both in one list, or an object with prompt_string"
        raise ApiError(400, message, param=place, code="invalid_value")
    tokens: list[int] = []
    for index, part in enumerate(parts):
        tokens += [part] if _is_id(part) else llm.planner.encode(part, add_special_tokens=index == 0)
    return tokens


def _is_id(part: Any) -> bool:
    return isinstance(part, int) and not isinstance(part, bool)


def _biases(given: Any, llm: LLM) -> dict[str, float]:
    """What is added to the logits of token ids. A text stands for all of its tokens."""
    pairs = list(given.items()) if isinstance(given, dict) else given
    made: dict[str, float] = {}
    for index, pair in enumerate(pairs):
        place = f"logit_bias[{index}]"
        is_pair = len(pair) == 2 and (isinstance(pair[0], str) or _is_id(pair[0])) and isinstance(pair[1], int | float)
        if not is_pair:
            raise ApiError(400, f"{place} is a token id or a text, and a number or false", param=place, code="invalid_value")
        key, bias = pair
        if bias is True:
            raise ApiError(400, f"{place}: true is no bias; false is one", param=place, code="invalid_value")
        is_id = isinstance(key, int) or (isinstance(given, dict) and key.isascii() and key.isdigit())
        ids = [int(key)] if is_id else llm.tokenizer.encode(key, add_special_tokens=False)
        made |= {str(token_id): LOWEST if bias is False else float(bias) for token_id in ids}
    return made


def _samplers(body: LlamaCompletionBody) -> dict[str, Any]:
    """The stages that are asked for, and what is off because its sampler is not among them. Mirostat leaves no other stages."""
    asked, off_everything = body.sampling_extras, {name: value for off in _EDITS.values() for name, value in off.items()}
    if asked.get("mirostat") and not asked.get("stages"):
        body.ignored.extend(name for name in _UNDER_MIROSTAT if getattr(body, name) is not None)
        return {"stages": list(_OF_MIROSTAT), **off_everything}
    if body.samplers is None:
        return {}
    names = body.samplers if isinstance(body.samplers, list) else [_LETTERS.get(each, each) for each in body.samplers]
    unknown = next((name for name in names if name not in {**_STAGES, **_EDITS} and name not in _ABSENT), None)
    if unknown is not None:
        message = f"samplers: there is no sampler {unknown!r}; known are {', '.join((*_EDITS, *_STAGES, *_ABSENT))}"
        raise ApiError(400, message, param="samplers", code="invalid_value")
    edits = [name for name in names if name in _EDITS]
    if edits != [name for name in _EDITS if name in names[: len(edits)]]:
        body.ignored.append("samplers (their order)")
    body.ignored.extend(f"samplers ({name})" for name in names if name in _ABSENT)
    stages = list(dict.fromkeys(_STAGES[name] for name in names if name in _STAGES))
    off = {name: value for edit in _EDITS if edit not in edits for name, value in _EDITS[edit].items()}
    return off | _off(stages) | {"stages": stages}


def _off(stages: Sequence[str]) -> dict[str, Any]:
    """The options of stages that are left out, as they are told; with none at all they are what switches those off."""
    return {option: value for stage, (option, value) in _NEUTRAL.items() if stage not in stages}
