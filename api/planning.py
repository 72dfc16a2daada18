"""From what a user passes to what the engine runs: the constraint is compiled, the prompt rendered and tokenised,
sampling settled."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import takewhile
from pathlib import Path
from typing import Any, Literal, get_args

from . import prompts as task_prompts
from .chat import Turn, plan_turn
from .constraint_choice import FREE, ConstraintChoice, ConstraintOptions, choose, choose_for_each
from .constraints import Compiler, Constraint, Source, ToolStyle, Vocabulary
from .constraints.front_ends.tags.styles import style_of, style_of_template
from .constraints.runtime.healed import HealedConstraint
from .conversation import Message
from .engine import Request, RequestError, RequestOutput
from .engine.errors import ModelFolderError
from .engine.kv_cache.prefix_tree import common_length
from .engine.limits import Limits
from .engine.models.tokenizer import Tokenizer
from .engine.requests.prompt_tokens import prompt_tokens
from .engine.search.searches import Search
from .engine.sessions.snapshot import Snapshot
from .errors import MaskwrightError, UsageError
from .field_details import strain_text
from .kernels.sampler.parameters import FILTERS
from .outputs import GenerationOutput, Usage
from .sampling import SamplingParams, spelled
from .tools import ToolLike

logger = logging.getLogger(__name__)

MAX_BEGINNINGS = 64  # kept
MAX_HEALED = 64  # constraints behind a token that is written anew, kept
PromptStyle = Literal["auto", "plain", "chat", "task"]


def check_prompt_style(style: str) -> None:
    """Raises UsageError for a style that there is not."""
    if style not in get_args(PromptStyle):
        raise UsageError(f'prompt_style="{style}" is not one of {", ".join(get_args(PromptStyle))}')


@dataclass(frozen=True, slots=True)
class Plan:
    """One prompt, ready to run."""

    prompt: str  # as given
    choice: ConstraintChoice
    requests: tuple[Request, ...]  # one for each output that is generated
    num_wanted: int = 1  # outputs that are given
    compile_seconds: float | None = None  # how long its constraint was waited for, where that was measured
    search: Search | None = None  # by which the outputs are found, the requests being as many as outputs; None: they are drawn

    @property
    def request(self) -> Request:
        """The one request. Raises UsageError when there are more: a stream is of one output."""
        if len(self.requests) > 1:
            raise UsageError("n and best_of give several outputs, and a stream is of one; use generate()")
        return self.requests[0]

    def ranked(self, priority: int, user: str) -> Plan:
        """This plan, with the priority and the user that the engine's policy asks for."""
        if isinstance(priority, bool) or not isinstance(priority, int):
            raise UsageError(f"priority= is an integer, not {priority!r}")
        if not isinstance(user, str):
            raise UsageError(f"user= is a str, not {user!r}")
        if not priority and not user:
            return self
        return replace(self, requests=tuple(replace(each, priority=priority, user=user) for each in self.requests))

    def adapted(self, adapter: str | None) -> Plan:
        """This plan, run with the adapter of that name, None for none."""
        if adapter is None:
            return self
        if not isinstance(adapter, str):
            raise UsageError(f"adapter= is the name of a loaded adapter, not {adapter!r:.80}")
        return replace(self, requests=tuple(replace(each, adapter=adapter) for each in self.requests))

    @property
    def constraint(self) -> Any:
        """The compiled constraint, None for free text."""
        return self.requests[0].constraint

    def output(self, *ended: RequestOutput) -> GenerationOutput:
        """The engine's outputs as the user gets them: the first, or most probable, one leads the others."""
        first, *others = [self._one(each) for each in self.chosen(ended)]
        return replace(first, alternatives=tuple(others))

    def found(self, ended: RequestOutput) -> GenerationOutput:
        """The outputs of a search as the user gets them: the best one leads the others."""
        return replace(self._one(ended), alternatives=tuple(map(self._one, ended.alternatives)))

    def chosen(self, ended: Sequence[RequestOutput]) -> list[RequestOutput]:
        """The outputs that the user gets: all of them, or the most probable ones where there are more than are wanted."""
        is_choice = len(ended) > self.num_wanted
        return sorted(ended, key=_likelihood, reverse=True)[: self.num_wanted] if is_choice else list(ended)

    def _one(self, ended: RequestOutput) -> GenerationOutput:
        output = self._given(ended)
        if output.records is not None:
            for details in output.fields.strained:
                logger.warning("request %d: %s", ended.request_id, strain_text(details))
        return output

    def _given(self, ended: RequestOutput) -> GenerationOutput:
        request = self.requests[0]
        return GenerationOutput(
            prompt=self.prompt,
            text=ended.text,
            token_ids=ended.token_ids,
            finish_reason=ended.finish_reason,
            closed_by_budget=ended.closed_by_budget,
            loops=ended.loops,
            bans_overridden=ended.bans_overridden,
            logprobs=ended.logprobs,
            records=ended.records if request.sampling.field_details else None,
            begun=request.begun,
            error=ended.error,
            choice=self.choice,
            constraint=self.constraint,
            score=ended.score,
            usage=Usage(
                prompt_tokens=ended.num_prompt_tokens,
                cached_tokens=ended.num_cached_tokens,
                output_tokens=len(ended.token_ids),
                jumped_tokens=ended.num_jumped_tokens,
                drafted_tokens=ended.num_drafted_tokens,
                accepted_tokens=ended.num_accepted_tokens,
            ),
        )


def _likelihood(ended: RequestOutput) -> tuple[bool, float]:
    return ended.finish_reason in ("stop", "length"), ended.mean_logprob


class Planner:
    """Makes plans for one model, whose tokenizer, prompt style and defaults it knows."""

    def __init__(self, folder: Path, tokenizer: Tokenizer, compiler: Compiler, style: PromptStyle, limits: Limits) -> None:
        """limits: of the engine, which say how long a prompt may be."""
        check_prompt_style(style)
        self._tokenizer, self._compiler, self._limits = tokenizer, compiler, limits
        self._beginnings: dict[str, tuple[int, ...]] = {}
        self._heal = lru_cache(MAX_HEALED)(HealedConstraint)
        self.style = style if style != "auto" else _style_of(folder)
        self.tool_style = None if self.style == "task" else style_of_template(tokenizer.chat_template)
        self.has_tool_role = self.style != "task"  # whether templates know calls and their results; the embedded model does not
        self.default_sampling = _recommended(folder / "generation_config.json")

    def plan_all(
        self,
        prompts: str | Sequence[str],
        sampling: SamplingParams | Sequence[SamplingParams] | None,
        options: ConstraintOptions,
        adapter: str | Sequence[str | None] | None = None,
    ) -> list[Plan]:
        """One plan for each prompt. adapter: the name of one for all, or one or None for each."""
        if isinstance(prompts, Mapping | bytes | bytearray) or not isinstance(prompts, Iterable):
            raise UsageError(f"a prompt is a str, not {type(prompts).__name__}; conversations go to chat()")
        each = [prompts] if isinstance(prompts, str) else list(prompts)
        wrong = next((prompt for prompt in each if not isinstance(prompt, str)), None)
        if wrong is not None:
            raise UsageError(f"a prompt is a str, not {type(wrong).__name__}; conversations go to chat()")
        samplings = self._samplings(sampling, len(each))
        choices = choose_for_each(len(each), options)
        adapters = _one_for_each(adapter, len(each))
        plans = [self._plan(*row) for row in zip(each, choices, samplings, strict=True)]
        return [plan.adapted(name) for plan, name in zip(plans, adapters, strict=True)]

    def turn(
        self,
        messages: str | Sequence[Message],
        tools: Sequence[ToolLike],
        tool_choice: str | Mapping[str, Any],
        tool_style: str | ToolStyle | None,
        options: ConstraintOptions,
    ) -> Turn:
        """A checked request for the next message of a conversation."""
        return plan_turn(messages, tools, tool_choice, options, self.style_for(tool_style), self.has_tool_role)

    def plan_turn(self, turn: Turn, sampling: SamplingParams | None) -> Plan:
        """The plan for the next message of a conversation."""
        (sampling,) = self._samplings(sampling, 1)
        if sampling.n > 1:
            raise UsageError(f"a conversation goes on with one reply, and n={sampling.n} asks for several; use generate()")
        return self.plan_replies(turn, sampling)

    def plan_replies(self, turn: Turn, sampling: SamplingParams) -> Plan:
        """The plan for as many replies as `sampling` asks for, one of which the caller takes."""
        if not turn.is_begun:
            _check_template(sampling)
        constraint = self._compile(turn.choice)
        token_ids = self.encode(self.rendered(turn), add_special_tokens=False)
        shared = self._num_shared(token_ids, self._told(turn.messages, turn.choice), self._definitions(turn))
        begun = _spelled(turn.begun, self._tokenizer.vocabulary)
        if constraint is not None:
            _check_beginning(begun, constraint)
        requests = self._begun_anew(token_ids, sampling, constraint, shared, begun)
        return Plan(turn.messages[-1]["content"], turn.choice, requests, sampling.n)

    def rendered(self, turn: Turn) -> str:
        """The text that the model is shown of a conversation."""
        messages, tools = self._told(turn.messages, turn.choice), self._definitions(turn)
        return self._tokenizer.render_chat(messages, tools=tools, is_begun=turn.is_begun, **turn.variables)

    def _definitions(self, turn: Turn) -> list[dict[str, Any]] | None:
        """The tools that the chat template is shown."""
        return [tool.definition() for tool in turn.tools] if turn.tools and self.style != "task" else None

    def plan_tokens(self, token_ids: Sequence[int], sampling: SamplingParams, choice: ConstraintChoice = FREE) -> Plan:
        """The plan for a prompt that is given in tokens."""
        return Plan("", choice, self._healed(tuple(token_ids), sampling, self._compile(choice)), sampling.n)

    def plan_resumed(self, snapshot: Snapshot, options: ConstraintOptions, adapter: str | None = None) -> Plan:
        """The plan of a session that was saved, which reads what the session gives."""
        choice = choose(options)
        request = Request(
            prompt_token_ids=snapshot.prompt_token_ids,
            sampling=snapshot.sampling,
            constraint=self._compile(choice),
            priority=snapshot.priority,
            adapter=adapter,
            user=snapshot.user,
            cache_salt=snapshot.cache_salt,
        )
        return Plan(snapshot.label, choice, (request,))

    def style_for(self, asked: str | ToolStyle | None) -> str | ToolStyle | None:
        """The way in which calls are written: as asked for, or as the model's chat template does it. Raises ConstraintError for
        a name that is not known, also where no call can be written."""
        if asked == "auto":
            return self.tool_style
        if asked is not None:
            style_of(asked)
        return asked

    def _plan(self, prompt: str, choice: ConstraintChoice, sampling: SamplingParams) -> Plan:
        constraint = self._compile(choice)  # first: a constraint that does not compile is reported before anything else
        if self.style == "plain":
            return Plan(prompt, choice, self._healed(self.encode(prompt), sampling, constraint), sampling.n)
        _check_template(sampling)
        messages = self._told([{"role": "user", "content": prompt}], choice)
        token_ids = self._encode_chat(messages)
        requests = self._requests(token_ids, sampling, constraint, self._num_shared(token_ids, messages, None))
        return Plan(prompt, choice, requests, sampling.n)

    def _encode_chat(self, messages: Sequence[Message], **variables: Any) -> tuple[int, ...]:
        return self.encode(self._tokenizer.render_chat(messages, **variables), add_special_tokens=False)

    def encode(self, text: str, add_special_tokens: bool = True) -> tuple[int, ...]:
        """The tokens of a prompt. Raises PromptTooLong for a text that is far too long, before all of it is read."""
        encode = partial(self._tokenizer.encode, add_special_tokens=add_special_tokens)
        return tuple(prompt_tokens(text, encode, self._limits))

    def _num_shared(self, token_ids: tuple[int, ...], messages: Sequence[Message], tools: Any) -> int:
        """How many leading tokens hold instructions, schema and tools, with which other prompts begin, too."""
        leading = list(takewhile(lambda message: message["role"] == "system", messages))
        if not leading and not tools:
            return 0
        key = json.dumps([leading, tools], default=str)
        if key not in self._beginnings:
            if len(self._beginnings) >= MAX_BEGINNINGS:
                self._beginnings.clear()
            self._beginnings[key] = self._beginning([*leading, {"role": "user", "content": ""}], tools)
        return common_length(self._beginnings[key], token_ids)

    def _beginning(self, messages: list[Message], tools: Any) -> tuple[int, ...]:
        try:
            return self._tokenizer.encode_chat(messages, tools=tools)
        except RequestError:  # a template that wants other messages
            return ()

    def _compile(self, choice: ConstraintChoice) -> Constraint | None:
        if isinstance(choice.source, Source):
            return self._compiler.compile(choice.source)
        if choice.source is not None and choice.source.vocabulary != self._compiler.vocabulary:
            raise UsageError("constraint= was compiled for another vocabulary; compile it with this model's llm.compiler")
        return choice.source

    def _told(self, messages: Sequence[Message], choice: ConstraintChoice) -> list[Message]:
        """The messages, led by one that tells the constraint, if the model has learned to read that."""
        system = task_prompts.system_text(**choice.told) if self.style == "task" else None
        return list(messages) if system is None else [{"role": "system", "content": system}, *messages]

    def _samplings(self, sampling: SamplingParams | Sequence[SamplingParams] | None, count: int) -> list[SamplingParams]:
        if sampling is None or isinstance(sampling, SamplingParams):
            return [sampling or self.default_sampling] * count
        if not isinstance(sampling, list | tuple) or not all(isinstance(each, SamplingParams) for each in sampling):
            raise UsageError("sampling= is SamplingParams(...), or a list with one for each prompt")
        if len(sampling) != count:
            raise UsageError(f"sampling= has {len(sampling)} values for {count} prompts")
        return list(sampling)

    def _healed(self, token_ids: tuple[int, ...], sampling: SamplingParams, constraint: Constraint | None) -> tuple[Request, ...]:
        """The requests of a plain prompt. If asked for, its last token is taken back where a longer one could stand there."""
        if sampling.heal_prompt and constraint is not None and (last := self._last_text(token_ids)):
            healed = self._heal(constraint, last)
            if healed.can_merge:
                return self._requests(token_ids[:-1], sampling, healed, healed=last)
        return self._requests(token_ids, sampling, constraint)

    def _begun_anew(
        self, token_ids: tuple[int, ...], sampling: SamplingParams, constraint: Constraint | None, num_shared: int, begun: bytes
    ) -> tuple[Request, ...]:
        """The requests of a reply. If asked for, the last token of its beginning is taken back where a longer one could stand."""
        last = self._last_text(token_ids) if sampling.heal_prompt and constraint is not None else b""
        if last and begun.endswith(last) and constraint is not None:
            healed = self._heal(constraint, last, begun)
            if healed.can_merge:
                shared = min(num_shared, len(token_ids) - 1)
                return self._requests(token_ids[:-1], sampling, healed, shared, begun.removesuffix(last), last)
        return self._requests(token_ids, sampling, constraint, num_shared, begun)

    def _last_text(self, token_ids: tuple[int, ...]) -> bytes:
        """The last token of a prompt that has others, if it is text. What is no token is refused later."""
        tokens = self._tokenizer.vocabulary.text_tokens
        is_token = len(token_ids) > 1 and 0 <= token_ids[-1] < len(tokens)
        return (tokens[token_ids[-1]] or b"") if is_token else b""

    def _requests(
        self,
        token_ids: tuple[int, ...],
        sampling: SamplingParams,
        constraint: Constraint | None,
        num_shared: int = 0,
        begun: bytes = b"",
        healed: bytes = b"",
    ) -> tuple[Request, ...]:
        """The requests of a prompt, one for each output. Texts in `sampling` become tokens."""
        sampling = spelled(sampling, partial(self._tokenizer.encode, add_special_tokens=False))
        return tuple(
            Request(
                prompt_token_ids=token_ids,
                sampling=copy,
                constraint=constraint,
                num_shared_tokens=num_shared,
                begun=begun,
                healed=healed,
                is_measured=sampling.num_copies > sampling.n,  # the most probable ones are chosen
            )
            for copy in sampling.copies()
        )


def _one_for_each(adapter: str | Sequence[str | None] | None, count: int) -> list[str | None]:
    """The names of adapters, one or None for each prompt."""
    if adapter is None or isinstance(adapter, str):
        return [adapter] * count
    if not isinstance(adapter, list | tuple):
        raise UsageError(f"adapter= is a name, or a list with one or None for each prompt, not {adapter!r:.80}")
    if len(adapter) != count:
        raise UsageError(f"adapter= has {len(adapter)} values for {count} prompts")
    return list(adapter)


def _spelled(text: str, vocabulary: Vocabulary) -> bytes:
    """A text as automata read it: names of special tokens are the tokens, as a tokenizer reads them."""
    names = sorted(filter(None, vocabulary.special_tokens), key=len, reverse=True)
    pieces = re.split(f"({'|'.join(map(re.escape, names))})", text) if names else [text]
    spelled = [piece.encode() for piece in pieces]
    spelled[1::2] = [vocabulary.spellings[vocabulary.special_tokens[name]] or b"" for name in pieces[1::2]]
    return b"".join(spelled)


def _check_template(sampling: SamplingParams) -> None:
    """Refuse what is for prompts without a template around them."""
    if sampling.heal_prompt:
        reason = "a template ends with a mark of its own, which models know as it is: plain prompts and begun replies are healed"
        raise RequestError(f"heal_prompt: {reason}").about("heal_prompt")


def _check_beginning(begun: bytes, constraint: Constraint) -> None:
    """Refuse a beginning with which nothing that satisfies the constraint begins."""
    read, expected = constraint.survives(constraint.start(), begun)
    if read == len(begun):
        return
    before, wrong = begun[:read].decode(errors="ignore"), begun[read:].decode(errors="replace")
    reason = f"behind {before!r} comes {expected or 'nothing'}, not {wrong!r:.40}"
    raise RequestError(f"the last message cannot begin a reply that satisfies the constraint: {reason}").about("messages")


def recommended_sampling(generation: Mapping[str, Any]) -> SamplingParams:
    """The sampling that a generation_config.json asks for; greedy unless it says do_sample."""
    given = {name: value for name, value in generation.items() if value is not None}
    penalty = {name: given[name] for name in ("repetition_penalty",) if name in given}
    if not given.get("do_sample"):
        return SamplingParams(temperature=0.0, **penalty)
    filters = {name: given[name] for name in ("temperature", *FILTERS, "typical_p") if name in given}
    return SamplingParams(**filters, **penalty)


def _recommended(path: Path) -> SamplingParams:
    try:
        return recommended_sampling(_read_json(path))
    except MaskwrightError as error:
        raise ModelFolderError(f"{path}: {error}") from None


def _style_of(folder: Path) -> Literal["task", "plain"]:
    """The prompt style that the model's config.json says it was trained on."""
    return "task" if _read_json(folder / "config.json").get("maskwright_prompt_style") == "task" else "plain"


def _read_json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    read: dict[str, Any] = json.loads(path.read_text(encoding="utf-8-sig"))
    return read
