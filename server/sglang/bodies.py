"""What /generate takes, and the completions in OpenAI's words that it asks for, one for each prompt."""

from __future__ import annotations

import json
from collections.abc import Sequence
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import Field

from ..body import Body, Ignored
from ..errors import ApiError
from ..requested_constraint import ConstraintNames
from ..sampling_options import SamplingExtras
from ..shared_parameters import REQUEST_ID

T = TypeVar("T")
RequestName = Annotated[str, Field(pattern=REQUEST_ID)]
USUAL_TOKENS = 128  # of an output, where nothing is said
_ONE_SERVER = "one server computes prompts and outputs"


class SglangSampling(SamplingExtras, ConstraintNames):
    """How a prompt is gone on with."""

    place: ClassVar[str] = "sampling_params."
    refused = MappingProxyType({"stop_regex": "say where an output ends with a regex for all of it"})
    max_new_tokens: int | None = Field(None, ge=0, description="Tokens of an output at most; unless given, 128 as SGLang has it.")
    min_new_tokens: int | None = Field(None, ge=0, description="min_tokens, as SGLang calls it.")
    n: int | None = Field(None, ge=1, description="Outputs for a prompt.")
    stop: str | list[str] | None = Field(None, description="Strings that end the output.")
    sampling_seed: int | None = Field(None, description="seed, as SGLang calls it.")
    structural_tag: dict[str, Any] | str | None = Field(None, description="A structural tag, or its JSON text.")
    no_stop_trim: bool | None = Field(None, description="include_stop_str_in_output, as SGLang calls it.")
    stream_interval: Annotated[int | None, Ignored("Every token is told at once.", (1,))] = None


class GenerateBody(Body):
    """Prompts to be gone on with, as they are: no template is put around them."""

    refused = MappingProxyType(
        {
            "input_embeds": "a prompt is text or token ids",
            "image_data": "this model reads text",
            "audio_data": "this model reads text",
            "video_data": "this model reads text",
            "token_ids_logprob": "top_logprobs_num tells the most probable tokens",
            "return_hidden_states": "only text and log-probabilities are told",
            "session_params": "send the whole text; its beginning is not computed again",
            "lora_path": "there is one model",
            "custom_logit_processor": "say what may come with a constraint",
            "bootstrap_host": _ONE_SERVER,
            "bootstrap_port": _ONE_SERVER,
            "bootstrap_room": _ONE_SERVER,
        }
    )
    text: str | list[str] | None = Field(None, description="A prompt, or several.")
    input_ids: list[int] | list[list[int]] | None = Field(None, description="The same as token ids.")
    sampling_params: SglangSampling | list[SglangSampling] | None = Field(None, description="For all prompts, or one for each.")
    rid: RequestName | list[RequestName] | None = Field(None, description="What requests are called, to abort them by.")
    return_logprob: bool | list[bool] | None = Field(None, description="Whether log-probabilities are told.")
    logprob_start_len: int | list[int] | None = Field(
        None, description="With return_logprob: the token of the prompt from which on it is scored; -1: it is not."
    )
    top_logprobs_num: int | list[int] | None = Field(None, description="Alternatives of each token.")
    return_text_in_logprobs: bool | None = Field(None, description="Whether log-probabilities name the text of their token.")
    stream: bool | None = None
    model: str | None = None
    priority: int | None = Field(None, description="Smaller is more urgent, with --policy priority.")
    extra_key: str | list[str] | None = Field(None, description="cache_salt, as SGLang calls it.")
    log_metrics: Annotated[bool | None, Ignored("All requests are counted.", (True,), is_empty_neutral=False)] = None
    modalities: Annotated[list[str] | None, Ignored("This model reads text.", (["text"],))] = None
    data_parallel_rank: Annotated[int | None, Ignored("There is one engine.")] = None

    @property
    def all_ignored(self) -> list[str]:
        """What has no effect, inside of the sampling parameters too."""
        params = self.sampling_params if isinstance(self.sampling_params, list) else [self.sampling_params]
        return [*self.ignored, *(f"sampling_params.{name}" for each in params if each is not None for name in each.ignored)]


class PromptWishes:
    """What is asked for one prompt of a request."""

    def __init__(self, body: GenerateBody, number: int, count: int) -> None:
        """number: of the prompt among `count`. Raises ApiError where a list has another length."""
        self.sampling = _one(body.sampling_params, number, count, "sampling_params") or SglangSampling.model_validate({})
        self.has_logprobs = bool(_one(body.return_logprob, number, count, "return_logprob"))
        start = _one(body.logprob_start_len, number, count, "logprob_start_len")
        self.start = -1 if start is None else start
        self.num_top = _one(body.top_logprobs_num, number, count, "top_logprobs_num") or 0
        self.rid = _one(body.rid, number, count, "rid")
        self.extra_key = _one(body.extra_key, number, count, "extra_key")
        if self.start < -1:
            message = f"logprob_start_len is -1, or a place in the prompt, not {self.start}"
            raise ApiError(400, message, param="logprob_start_len", code="invalid_value")
        if self.num_top < 0:
            message = f"top_logprobs_num is a number of tokens, not {self.num_top}"
            raise ApiError(400, message, param="top_logprobs_num", code="invalid_value")

    def completion(self, body: GenerateBody, prompt: Sequence[int], max_tokens: int | None) -> dict[str, Any]:
        """The prompt as a completion. max_tokens: of one output, as the operator allows them."""
        usual = USUAL_TOKENS if max_tokens is None else min(USUAL_TOKENS, max_tokens)
        asked = self.sampling
        made = {**asked.sampling_extras, **asked.named_constraints, "model": body.model, "stream": False, "prompt": [list(prompt)]}
        made |= {"max_tokens": usual if asked.max_new_tokens is None else asked.max_new_tokens, "n": asked.n, "stop": asked.stop}
        ours = {"min_tokens": asked.min_new_tokens, "seed": asked.sampling_seed, "include_stop_str_in_output": asked.no_stop_trim}
        made |= {name: value for name, value in ours.items() if value is not None}
        made |= {} if body.priority is None else {"priority": body.priority}
        made |= {"cache_salt": self.extra_key} if self.extra_key else {}
        made.pop("no_stop_trim", None)
        if asked.structural_tag is not None:
            made["structured_outputs"] = {"structural_tag": _object(asked.structural_tag)}
        if self.has_logprobs:
            made["logprobs"] = self.num_top
            made["prompt_logprobs"] = self.num_top if self.start >= 0 else None
        return made


def num_prompts(body: GenerateBody) -> int:
    """How many prompts there are. Raises ApiError unless they are given one way."""
    if (body.text is None) == (body.input_ids is None):
        raise ApiError(400, "give one of text and input_ids", param="text", code="invalid_value")
    given: Any = body.text if body.text is not None else body.input_ids
    return len(given) if is_batch(body) else 1


def is_batch(body: GenerateBody) -> bool:
    """Whether prompts come in a list, so that the answer is one, too."""
    if body.text is not None:
        return isinstance(body.text, list)
    return bool(body.input_ids) and isinstance(body.input_ids[0], list)  # type: ignore[index]  # it is not empty


def _one(value: T | list[T] | None, number: int, count: int, param: str) -> T | None:
    if not isinstance(value, list):
        return value
    if len(value) != count:
        message = f"{param} has {len(value)} entries, and there {'is one prompt' if count == 1 else f'are {count} prompts'}"
        raise ApiError(400, message, param=param, code="invalid_value")
    return value[number]


def _object(given: dict[str, Any] | str) -> Any:
    """A structural tag that may come as JSON text."""
    if not isinstance(given, str):
        return given
    try:
        return json.loads(given)
    except (ValueError, RecursionError) as error:
        param = "sampling_params.structural_tag"
        raise ApiError(400, f"{param} is no JSON text: {error}", param=param, code="invalid_value") from None
