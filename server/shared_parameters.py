"""Parameters that users of vLLM, SGLang and others send, each with its one declaration: honoured, ignored or refused.

Values that ask for nothing are never refused: null, false, an empty text or list, and what stands in `neutral`.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Annotated, Any

from pydantic import Field

from .body import Body, Ignored

_OPERATOR = "it is the operator's choice"


REQUEST_ID = r"^[\w.:/-]{1,128}$"


class SharedParameters(Body):
    """Part of every request body that generates text."""

    refused = MappingProxyType(
        {
            "chat_template": _OPERATOR,
            "extra_body": "what stands in it stands in the body itself",
            "extra_headers": "headers are sent as such",
            "extra_query": "nothing is asked for in the address",
            "detokenize": "output is text; return_token_ids tells its tokens beside it",
            "kv_transfer_params": "one server computes prompts and outputs",
            "logprob_token_ids": "top_logprobs tells the most probable tokens",
            "lora_path": "there is one model; name a loaded adapter as the model",
            "lora_request": "there is one model; name a loaded adapter as the model",
            "prompt_embeds": "a prompt is text or token ids",
            "prompt_logprobs": "/v1/completions and /v1/chat/completions tell them",
            "post_sampling_probs": "log-probabilities are those of the model, before it is sampled",
            "reasoning_budget": "thinking_token_budget bounds the tokens of reasoning",
            "repetition_detection": "loop_bound ends values in which the model repeats itself",
            "response_fields": "answers have all members that OpenAI's have",
            "return_hidden_states": "only text and log-probabilities are told",
            "samplers": "stages says which are in force, in which order",
            "session_params": "send the whole conversation; its beginning is not computed again",
            "t_max_predict_ms": "the server's --request-seconds holds for all; close the connection to end a request",
            "tokenization_kwargs": "a prompt of token ids is taken as it is",
            "use_beam_search": "ask /v1/chat/completions or /v1/completions, sample n outputs, or search with LLM.beam_search",
        }
    )
    neutral = MappingProxyType(
        {"best_of": (1,), "n_probs": (0,), "detokenize": (True,), "n_predict": (-1,), "reasoning_budget": (-1,)}
        | {"t_max_predict_ms": (0, -1)}
        | dict.fromkeys(("extra_body", "extra_headers", "extra_query", "session_params", "tokenization_kwargs"), ({},))
    )
    renamed = MappingProxyType({"n_predict": "max_tokens", "repeat_penalty": "repetition_penalty", "typ_p": "typical_p"})

    truncate_prompt_tokens: int | None = Field(None, ge=-1, description="The prompt's last tokens that are kept; -1: what fits.")
    return_token_ids: bool | None = Field(None, description="Whether choices have token_ids, and the answer prompt_token_ids.")
    return_tokens_as_token_ids: bool | None = Field(None, description="Log-probabilities name tokens as token_id:17.")
    request_id: str | None = Field(None, pattern=REQUEST_ID, description="What the id of the answer ends with.")
    cache_salt: str | None = Field(
        None, max_length=256, description="Keys and values of the prompt are shared with requests of the same salt alone."
    )
    rid: str | None = Field(None, pattern=REQUEST_ID, description="As request_id, as SGLang calls it.")
    length_penalty: Annotated[float | None, Ignored("Nothing is searched.", (1.0,))] = None
    early_stopping: Annotated[bool | str | None, Ignored("Nothing is searched.")] = None
    skip_special_tokens: Annotated[bool | None, Ignored("Special tokens are never text.", (True,), is_empty_neutral=False)] = None
    spaces_between_special_tokens: Annotated[
        bool | None, Ignored("Special tokens are never text.", (True,), is_empty_neutral=False)
    ] = None
    guided_decoding_backend: Annotated[str | None, Ignored("There is one engine of constraints.", ("auto",))] = None
    mm_processor_kwargs: Annotated[dict[str, Any] | None, Ignored("This model reads text.")] = None
    vllm_xargs: Annotated[dict[str, Any] | None, Ignored("They are of another server.")] = None
    custom_params: Annotated[dict[str, Any] | None, Ignored("They are of another server.")] = None
    separate_reasoning: Annotated[bool | None, Ignored("Reasoning is told apart.", (True,), is_empty_neutral=False)] = None
    stream_reasoning: Annotated[bool | None, Ignored("It is streamed as it comes.", (True,), is_empty_neutral=False)] = None
    reasoning_format: Annotated[str | None, Ignored("Reasoning is told apart.", ("auto", "deepseek", "deepseek-legacy"))] = None
    parse_tool_calls: Annotated[bool | None, Ignored("Calls are always read.", (True,), is_empty_neutral=False)] = None
    thinking_forced_open: Annotated[bool | None, Ignored("The chat template says how a reply begins.")] = None
    timings_per_token: Annotated[bool | None, Ignored("/completion tells timings.")] = None
    return_progress: Annotated[bool | None, Ignored("Progress of the prompt is not told.")] = None
    id_slot: Annotated[int | None, Ignored("Requests have no fixed places.", (-1,))] = None
    n_keep: Annotated[int | None, Ignored("What is too long is refused, not shifted.", (0,))] = None
    n_discard: Annotated[int | None, Ignored("What is too long is refused, not shifted.", (0,))] = None
    cache_prompt: Annotated[bool | None, Ignored("Beginnings are always shared.", (True,), is_empty_neutral=False)] = None
    no_stop_trim: Annotated[bool | None, Ignored("See include_stop_str_in_output.")] = None
    chat_template_content_format: Annotated[str | None, Ignored("Content is text here.", ("auto", "string"))] = None

    @property
    def reply_id(self) -> str | None:
        """What the id of the answer ends with, where the client says so."""
        return self.request_id or self.rid

    @property
    def names(self) -> list[str]:
        """What the client calls this request."""
        return [name for name in (self.request_id, self.rid) if name is not None]


class HostedParameters(Body):
    """What OpenAI's newer endpoints take for a service of many customers."""

    store: Annotated[bool | None, Ignored("Nothing is stored.")] = None
    service_tier: Annotated[str | None, Ignored("There is one tier here.", ("auto", "default", "standard_only"))] = None
    safety_identifier: Annotated[str | None, Ignored("It is the operator who knows the users.")] = None
    prompt_cache_key: Annotated[str | None, Ignored("Equal beginnings of prompts are always shared.")] = None
    prompt_cache_retention: Annotated[str | None, Ignored("What is shared is kept while there is room.")] = None
    prompt_cache_options: Annotated[dict[str, Any] | None, Ignored("Equal beginnings of prompts are always shared.")] = None
