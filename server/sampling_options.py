"""The parameters of a request that say how tokens are chosen: the table of sampling options, under the names that clients use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import GenericAlias, MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, create_model

from ..field_comments import field_comments
from ..kernels.sampler.parameters import Range
from ..sampling import SamplingParams
from ..sampling.options import Option
from ..sampling.params import OPTIONS
from .body import Body, Ignored
from .errors import PARAMETER_NAMES, ApiError
from .own_parts import parts_of
from .settings import ServerSettings
from .shared_parameters import SharedParameters

BY_ENDPOINT = frozenset({"max_tokens", "stop", "logprobs", "n", "best_of"})  # under different names, or in different forms
OWN = ("logits_processors", "stopping_criteria")  # of plugins: by names that the operator has listed
# From clients; details of fields are asked for as `maskwright`.
WITHHELD = frozenset({"banned_token_ids", "bad_words_ids", "field_details"})
MOST_TEXTS = 1000  # that are looked for at every token
ALIKE = {
    PARAMETER_NAMES.get(option.name, option.name): option
    for option in OPTIONS
    if option.name not in BY_ENDPOINT | WITHHELD | {*OWN}
}  # options that all endpoints take, under the names that clients use


def option_form(option: Option, comment: str) -> tuple[Any, Any]:
    """An option of the table as a parameter of a request body: its type, and what OpenAPI says of it."""
    kind = GenericAlias(list, get_args(option.kind)[:1]) if get_origin(option.kind) is tuple else option.kind
    return kind | None, Field(None, description=comment or None, **form_bounds(option.bounds))


def form_bounds(bounds: Range | None) -> dict[str, Any]:
    """The bounds that are numbers, as pydantic calls them."""
    if bounds is None:
        return {}
    said = {"ge": bounds.least if bounds.above is None else None, "gt": bounds.above, "le": bounds.most, "lt": bounds.below}
    return {name: value for name, value in said.items() if isinstance(value, int | float)}


def option_forms() -> dict[str, Any]:
    """The parameters that follow from the table."""
    comments = field_comments(SamplingParams)
    return {name: option_form(option, comments.get(option.name, "")) for name, option in ALIKE.items()}


if TYPE_CHECKING:
    OptionForms = Body
else:
    OptionForms = create_model("OptionForms", __base__=Body, __module__=__name__, **option_forms())


class SamplingExtras(SharedParameters, OptionForms):
    """Part of every request body that generates: the options of the table, some in another form, and a few words more."""

    top_k: int | None = Field(None, ge=-1, description="The k most probable tokens; 0 or -1 is off.")
    logit_bias: dict[str, float] | None = Field(
        None, description="Token id, or a text, which means all of its tokens, to what is added to its logit."
    )
    seed: int | None = Field(None, description="The same seed gives the same tokens, whatever else the server does.")
    stop_inside: bool | None = Field(
        None, description="Whether stop strings also end an output that does not satisfy its constraint yet; unless given, they do."
    )
    logits_processors: list[str | dict[str, Any]] | None = Field(
        None, description="Names, or name and parameters, of what the operator lets clients name: --client-logits-processors."
    )
    stopping_criteria: list[str | dict[str, Any]] | None = Field(
        None, description="Of free text, in the same form: --client-stopping-criteria."
    )
    priority: int | None = Field(None, description="Smaller is more urgent, with --policy priority.")

    @property
    def sampling_extras(self) -> dict[str, Any]:
        """The extras that are given."""
        return {name: getattr(self, name) for name in SamplingExtras.model_fields if getattr(self, name) is not None}


class SamplingBody(SamplingExtras):
    """Part of the request bodies of completions. A parameter that is not known is refused by name."""

    model: str | None = Field(None, description="The name of the model, as /v1/models lists it.")
    max_tokens: int | None = Field(None, ge=1, description="Tokens of one output at most; else as many as the model has room for.")
    stop: str | list[str] | None = Field(None, description="Strings that end the output; see also stop_inside.")
    n: int | None = Field(None, ge=1, description="Outputs for the prompt.")
    stream: bool | None = None
    user: str | None = Field(None, description="Who shares the engine with others, with --policy fair.")


class StreamOptions(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    include_usage: bool | None = None
    continuous_usage_stats: bool | None = Field(None, description="With include_usage: whether every chunk tells the usage so far.")
    include_obfuscation: Annotated[bool | None, Ignored("Nothing is padded.")] = None


def tells_usage(options: StreamOptions | None) -> bool:
    """Whether the last chunk of a stream tells the usage."""
    return options is not None and bool(options.include_usage)


def tells_usage_always(options: StreamOptions | None) -> bool:
    """Whether every chunk of a stream tells the usage so far."""
    return tells_usage(options) and options is not None and bool(options.continuous_usage_stats)


def check_stream_options(options: StreamOptions | None, is_streamed: bool | None) -> None:
    """Raises ApiError for options of a stream that ask for something where there is none."""
    if options is not None and any(dict(options).values()) and not is_streamed:
        raise ApiError(400, "stream_options needs stream=true", param="stream_options", code="invalid_value")


def sampling_of(
    body: SamplingBody,
    *,
    defaults: SamplingParams,
    settings: ServerSettings,
    model_len: int,
    max_tokens: int | None = None,
    logprobs: int | None = None,
    best_of: int | None = None,
) -> SamplingParams:
    """The sampling that the engine is asked for. Raises ApiError beyond the operator's limits, SamplingError for values
    that mean nothing.

    max_tokens: the limit, where the endpoint has another name for it than the body. logprobs: how many alternatives of
    each token are wanted, None for no log-probabilities.
    """
    given = {ALIKE[name].name: value for name, value in body.sampling_extras.items() if name in ALIKE}
    given |= {name: read(given[name]) for name, read in READ.items() if name in given}
    given |= {name: parts_of(settings, name, asked) for name in OWN if (asked := getattr(body, name))}
    stop = (body.stop,) if isinstance(body.stop, str) else tuple(body.stop or ())
    _check("stop", len(stop), settings.max_stop, "stop strings")
    for name in ("bad_words", "dry_sequence_breakers"):
        _check(name, len(given.get(name, ())), MOST_TEXTS, "texts")
    _check("logit_bias", sum(isinstance(key, str) for key in given.get("logit_bias", ())), MOST_TEXTS, "texts")
    _check("n", body.n or 1, settings.max_n, "outputs of one request")
    _check("logprobs", logprobs or 0, settings.max_logprobs, "alternatives of a token")
    asked = body.max_tokens if max_tokens is None else max_tokens
    _check("max_tokens", asked or 1, settings.max_tokens, "tokens of one output")
    given["max_tokens"] = max(asked or settings.max_tokens or model_len, given.get("min_tokens", 0) if asked is None else 1)
    return replace(defaults, **given, n=body.n or 1, stop=stop, logprobs=logprobs, best_of=best_of)


def _check(param: str, value: int, limit: int | None, what: str) -> None:
    if limit is not None and value > limit:
        message = f"{param} asks for {value} {what}, and this server allows {limit}"
        raise ApiError(400, message, param=param, code="limit_exceeded")


def _biases(bias: Mapping[str, float]) -> dict[int | str, float]:
    """Names made of digits are token ids, all others texts."""
    return {int(name) if name.isascii() and name.isdigit() else name: value for name, value in bias.items()}


# What the values of JSON become.
READ: Mapping[str, Callable[[Any], Any]] = MappingProxyType(
    {"top_k": lambda top_k: max(top_k, 0), "seed": lambda seed: seed % 2**64, "logit_bias": _biases}
)
