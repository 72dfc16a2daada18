"""A model, loaded: `generate` for prompts, `stream` for typed events, `chat` for conversations."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any, Literal, Self, Unpack

from .chat import Reply, Turn, reply_of
from .constraint_choice import ConstraintOptions
from .constraints import Compiler, ToolStyle, Vocabulary
from .constraints import Limits as ConstraintLimits
from .conversation import Message
from .driver import Driver
from .engine import EngineConfig, EngineFeatures, EngineStatistics, RequestOutput, load
from .engine import Event as EngineEvent
from .engine.adapters.loaded import LoadedAdapter
from .engine.device.profiling import profiled
from .engine.engine import Engine
from .engine.errors import AdapterError, AdapterInUse, BudgetTooSmall
from .engine.models.fingerprints import model_fingerprint
from .engine.search.beams import BeamSearch
from .engine.search.particles import Particles
from .engine.search.searches import Search
from .engine.sessions.session_file import load_snapshot
from .engine.sessions.sessions import CacheUse, Sessions
from .engine.steps.scorer import Scorer
from .errors import UsageError
from .events import Delta, Done, Event
from .model_folder import EMBEDDED, find_model
from .outputs import GenerationOutput
from .pieces import PieceReader, TokenPiece
from .planning import Plan, Planner, PromptStyle
from .plugins import Plugin, load_installed, load_plugins
from .sampling import SamplingParams
from .sampling.logits_stages import stages_of
from .sampling.params import OPTIONS
from .sampling.stopping import criteria_of
from .session import Session
from .stream_events import StreamEvents
from .tool_loop import (
    MAX_CALLS,
    MAX_ROUNDS,
    OnError,
    Replied,
    RoundStarted,
    ToolEnded,
    ToolEvent,
    ToolLimits,
    ToolLoop,
    ToolRun,
    ToolsDone,
    ToolStarted,
    run_call,
    tool_loop,
)
from .tools import ToolLike

_OWN_OPTIONS = (  # of LLM itself
    "prompt_style", "constraint_limits", "constraint_cache_bytes", "revision", "download", "adapters", "logits_processors",
    "stopping_criteria", "plugins",
)  # fmt: skip
POLL_SECONDS = 0.02  # between two looks whether requests that another thread steps have ended
Progress = Callable[[int, int], None]  # (prompts finished, prompts)


class LLM:
    """A model ready to answer.

    Args:
        model: a folder in Hugging Face layout, a GGUF file, the name of a repository in the local Hugging Face cache, or
            "embedded".
        revision: of a repository: a branch, tag or commit.
        adapters: LoRA adapters by name, each a folder of peft or a GGUF file; more with `load_adapter`.
        download: fetch a repository that is not in the cache, with a progress bar.
        logits_processors: stages of one's own that take part in every request, before those that it brings itself
            (`SamplingParams(logits_processors=...)`): objects, registered names, transformers' processors or functions.
        stopping_criteria: of one's own, in every request without a constraint (docs/extending.md).
        plugins: what registers things of one's own first: functions, or "module:function" and "file.py:function".
        device: "auto" (a GPU when there is one), "cpu", "cuda", "cuda:1", ...
        dtype: "auto", "float32", "bfloat16" or "float16".
        prompt_style: "plain" takes prompts as they are, "chat" puts them into the model's chat template, "task" also tells
            the constraint in a system message as the embedded model learned it; "auto" is "task" for models that
            learned it, else "plain".
        constraint_limits: how much work one constraint may make.
        constraint_cache_bytes: memory for compiled constraints that are kept for the next time; the least recently used go first.
        engine_options: any other field of `EngineConfig`, such as max_model_len=4096, and of `EngineFeatures`, such as
            speculation="lookup".

    Attributes:
        tokenizer: encodes and decodes as the model's does.
        vocabulary: its tokens as bytes; what constraints are compiled for.
        compiler: compiles constraints for this model, and keeps them.
        config: the `EngineConfig` in force, with everything decided.
        features: the `EngineFeatures` in force.

    Raises:
        ModelNotFound: there is no such model. ConfigError: it cannot be run like this, or is in a format that is not read.

    May be used from several threads: their requests share one batch, and each waits for at most one step of every other one.
    """

    def __init__(
        self,
        model: str | os.PathLike[str] = EMBEDDED,
        *,
        device: str = "auto",
        dtype: str = "auto",
        prompt_style: PromptStyle = "auto",
        constraint_limits: ConstraintLimits | None = None,
        constraint_cache_bytes: int = 1 << 30,
        revision: str | None = None,
        download: bool = False,
        adapters: Mapping[str, str | os.PathLike[str]] | None = None,
        logits_processors: Iterable[Any] = (),
        stopping_criteria: Iterable[Any] = (),
        plugins: Iterable[Plugin] = (),
        **engine_options: Any,
    ) -> None:
        if not isinstance(constraint_limits, ConstraintLimits | None):
            raise UsageError(f"constraint_limits= is maskwright.constraints.Limits(...), not {type(constraint_limits).__name__}")
        if type(constraint_cache_bytes) is not int or constraint_cache_bytes < 0:
            raise UsageError(f"constraint_cache_bytes= is a number of bytes, not {constraint_cache_bytes!r}")
        if not isinstance(adapters, Mapping | None):
            raise UsageError(f"adapters= is a mapping from names to folders, not {type(adapters).__name__}")
        load_installed()
        load_plugins(plugins)
        stages = stages_of("logits_processors", logits_processors)
        criteria = criteria_of("stopping_criteria", stopping_criteria)
        folder = find_model(model, revision=revision, download=download)
        misplaced = next((option.name for option in OPTIONS if option.name in engine_options), None)
        if misplaced is not None:
            raise UsageError(f"{misplaced}= is a sampling option: it goes to a call, as sampling=SamplingParams({misplaced}=...)")
        self.features, settings = EngineFeatures.split(engine_options)
        others = [*(feature.name for feature in fields(EngineFeatures)), *_OWN_OPTIONS]
        config = EngineConfig.from_options({"model": folder, "device": device, "dtype": dtype, **settings}, others)
        engine, self.tokenizer, _, self.config = load(config, self.features, adapters, stages, criteria)
        self.vocabulary: Vocabulary = self.tokenizer.vocabulary
        self.compiler = Compiler(self.vocabulary, constraint_limits, constraint_cache_bytes)
        self.driver = Driver(engine, _sessions(engine, folder, self.features, _variant(self.config)))
        self.canonical = engine.canonical  # which tokens follow one another as the tokenizer writes texts
        self.planner = Planner(folder, self.tokenizer, self.compiler, prompt_style, engine.limits)

    def close(self) -> None:
        """End the processes of `tensor_parallel`, as the end of this program does; without them there is nothing to end.

        Requests that run, and those that come later, end with the error RankLost.
        """
        self.driver.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def default_sampling(self) -> SamplingParams:
        """What is used without `sampling`: what the model's generation_config.json recommends, greedy without one."""
        return self.planner.default_sampling

    @property
    def statistics(self) -> EngineStatistics:
        """What the engine has done for all callers: steps, prompt tokens from the cache, drafts accepted, blocks in
        use."""
        return self.driver.statistics

    @property
    def adapters(self) -> Mapping[str, LoadedAdapter]:
        """The adapters that are loaded, by name."""
        return self.driver.adapters

    def load_adapter(self, name: str, path: str | os.PathLike[str], *, replace: bool = False) -> LoadedAdapter:
        """Load a LoRA adapter for requests that name it. Requests may run meanwhile.

        Args:
            name: what requests call it, as adapter=name.
            path: a folder of peft, or a GGUF file.
            replace: the adapter of that name, if there is one. The name stands for one of the two all the time.

        Raises AdapterError: it cannot be read or does not fit, the name is taken, or max_adapters are loaded. AdapterInUse:
        requests run with the one that is to be replaced.
        """
        return self.driver.load_adapter(name, self.driver.read_adapter(path), replace=replace)

    def unload_adapter(self, name: str, *, wait: bool = False) -> None:
        """Forget an adapter. Raises AdapterInUse while requests run with it, and AdapterError where there is none of that name.

        Args:
            name: what requests call it.
            wait: take no more requests for it, and return when those that run have ended.
        """
        if not wait:
            self.driver.unload_adapter(name)
            return
        self.driver.retire_adapter(name)
        try:
            while True:
                try:
                    return self.driver.unload_adapter(name)
                except AdapterInUse:
                    if not self.driver.step_for_all():
                        time.sleep(POLL_SECONDS)
        except BaseException:
            with suppress(AdapterError):
                self.driver.retire_adapter(name, is_leaving=False)
            raise

    def profile(self, folder: str | os.PathLike[str]) -> AbstractContextManager[None]:
        """A block in which everything is traced: `trace.json` in the folder, for ui.perfetto.dev, and operators by their time.

        Args:
            folder: made where it is not there.
        """
        return profiled(Path(folder))

    def scorer(self, max_contexts: int = 8) -> Scorer:
        """The model for texts beside those in the batch, for stages that compare two texts, with a KV cache of its own.

        Args:
            max_contexts: texts whose keys and values are kept; the cache holds so many texts of max_model_len tokens.

        Raises UnsupportedModel for a model that keeps a state instead of keys and values, or that several processes compute.
        """
        return self.driver.scorer(max_contexts)

    def generate(
        self,
        prompts: str | Sequence[str],
        *,
        sampling: SamplingParams | Sequence[SamplingParams] | None = None,
        priority: int = 0,
        user: str = "",
        progress: Progress | None = None,
        adapter: str | Sequence[str | None] | None = None,
        **constraint: Unpack[ConstraintOptions],
    ) -> list[GenerationOutput]:
        """One output for each prompt, in their order; all prompts share the batch. More of a prompt are its `alternatives`.

        Args:
            prompts: one or several.
            sampling: for all prompts, or one for each; None: `default_sampling`.
            priority: smaller is more urgent, with policy="priority".
            user: who shares the engine with others, with policy="fair".
            progress: called with (finished, all) whenever a prompt is finished.
            adapter: the name of a loaded adapter for all prompts, or a list with one or None for each.
            constraint: schema=, json_schema=, regex=, grammar=, choice= or constraint=, for all prompts or as a list with
                one for each (see `constraint_choice.py`).

        Raises:
            ConstraintError: a constraint does not compile. UsageError: arguments contradict each other.
            RequestError: a prompt is too long, or max_tokens too small for its constraint.
        """
        plans = self.planner.plan_all(prompts, sampling, constraint, adapter)
        return self._run([plan.ranked(priority, user) for plan in plans], progress)

    def beam_search(
        self,
        prompts: str | Sequence[str],
        *,
        width: int = 4,
        n: int = 1,
        length_penalty: float = 1.0,
        early_stopping: bool | Literal["never"] = False,
        sampling: SamplingParams | None = None,
        adapter: str | Sequence[str | None] | None = None,
        **constraint: Unpack[ConstraintOptions],
    ) -> list[GenerationOutput]:
        """The outputs that the model finds most probable, as far as `width` beams find them; the best one, others as
        `alternatives`.

        The beams of a prompt share their blocks of the cache. Without a constraint these are the beams of transformers'
        `generate(num_beams=width)`; under one, all of them satisfy it. `output.score` says how they compare.

        Args:
            n: outputs for each prompt, at most `width`; fewer come where the constraint has fewer.
            length_penalty: outputs are compared by their log-probability over length to this power.
            early_stopping: True: `width` finished outputs are enough; "never": until none can get better.
            sampling: max_tokens, min_tokens, bans, bias and stop tokens; what is about drawing is refused.

        Errors are those of `generate`.
        """
        search = BeamSearch(width=width, num_wanted=n, length_penalty=length_penalty, early_stopping=early_stopping)
        return self._search(self.planner.plan_all(prompts, sampling or SamplingParams(), constraint, adapter), search)

    def particles(
        self,
        prompts: str | Sequence[str],
        *,
        count: int = 8,
        resample_below: float = 0.5,
        sampling: SamplingParams | None = None,
        adapter: str | Sequence[str | None] | None = None,
        **constraint: Unpack[ConstraintOptions],
    ) -> list[GenerationOutput]:
        """Weighted outputs from the model's own distribution given that the output satisfies the constraint.

        Masked sampling, which `generate` does, draws every token from what is allowed there; that is another distribution over
        texts. Here `count` outputs are drawn together, weighted by how probable the model finds what the masks leave, and resampled
        on the way (sequential Monte Carlo steering, arXiv:2306.03081). The heaviest output comes first, the others are its
        `alternatives`; `output.score.weight` sums to 1 over them, `output.score.log_evidence` estimates the probability that the
        model alone would have satisfied the constraint.

        Args:
            resample_below: share of effective particles below which they are resampled; 0 = never.
            sampling: temperature, seed, max_tokens and stop tokens; filters and penalties are refused.

        Errors are those of `generate`.
        """
        search = Particles(count=count, resample_below=resample_below)
        return self._search(self.planner.plan_all(prompts, sampling or SamplingParams(), constraint, adapter), search)

    def stream(
        self,
        prompt: str,
        *,
        sampling: SamplingParams | None = None,
        adapter: str | None = None,
        **constraint: Unpack[ConstraintOptions],
    ) -> Iterator[Event]:
        """Typed events of one prompt while it runs: FieldOpened, Delta, FieldClosed, and Done with the output.

        Arguments and errors are those of `generate`. Closing the iterator early cancels the request.
        """
        (plan,) = self.planner.plan_all(prompt, sampling, constraint, adapter)
        return self._stream(plan)

    def stream_text(
        self,
        prompt: str,
        *,
        sampling: SamplingParams | None = None,
        adapter: str | None = None,
        **constraint: Unpack[ConstraintOptions],
    ) -> Iterator[Delta | Done]:
        """The raw text of the output while it is made, whatever its constraint, then Done. Arguments are those of `generate`."""
        (plan,) = self.planner.plan_all(prompt, sampling, constraint, adapter)
        for event in self._engine_events(plan):
            if event.text:
                yield Delta((), event.text)
            if event.output is not None:
                yield Done(plan.output(event.output))

    def stream_tokens(
        self,
        prompt: str,
        *,
        sampling: SamplingParams | None = None,
        adapter: str | None = None,
        **constraint: Unpack[ConstraintOptions],
    ) -> Iterator[TokenPiece | Done]:
        """Every token while it is made, with what the constraint left free, then Done. Arguments are those of `generate`."""
        (plan,) = self.planner.plan_all(prompt, sampling, constraint, adapter)
        reader = PieceReader(self.vocabulary, plan.constraint)
        for event in self._engine_events(plan):
            yield from reader.read_all(record.token_id for record in event.tokens)
            if event.output is not None:
                yield Done(plan.output(event.output))

    def open(
        self,
        prompt: str | Sequence[Message],
        *,
        sampling: SamplingParams | None = None,
        adapter: str | None = None,
        **constraint: Unpack[ConstraintOptions],
    ) -> Session:
        """One request as an object that gives its typed events, can be saved between two of them, and resumed (see `session.py`).

        Args:
            prompt: as for `generate`, or a conversation as for `chat`. The other arguments and errors are those of `generate`.
        """
        if isinstance(prompt, str):
            (plan,) = self.planner.plan_all(prompt, sampling, constraint, adapter)
        else:
            plan = self.planner.plan_turn(self.planner.turn(prompt, (), "auto", None, constraint), sampling).adapted(adapter)
        (request_id,) = self.driver.submit([plan.request])
        return Session(self.driver, plan, request_id)

    def resume(
        self,
        path: str | os.PathLike[str],
        *,
        cache: CacheUse = "private",
        adapter: str | None = None,
        **constraint: Unpack[ConstraintOptions],
    ) -> Session:
        """Go on with a session that was saved: exactly the tokens that would have come anyway.

        Args:
            path: a file that `Session.save` wrote. It is checked in full, and nothing in it is executed.
            cache: what becomes of the keys and values in it. "private": only this session uses them; "shared": so do prompts
                that begin alike, for files that only you can write; "recompute": nobody, they are computed again.
            adapter: the name under which the adapter that it was opened with is loaded.
            constraint: the one it was opened with.

        Raises:
            SessionError: it was changed, or does not fit; `keyword` is what differs, such as "model" or "constraint".
        """
        snapshot = load_snapshot(path)
        plan = self.planner.plan_resumed(snapshot, constraint, adapter)
        return Session(self.driver, plan, self.driver.resume(snapshot, plan.constraint, cache, adapter))

    def chat(
        self,
        messages: str | Sequence[Message],
        *,
        tools: Sequence[ToolLike] = (),
        tool_choice: str | Mapping[str, Any] = "auto",
        tool_style: str | ToolStyle | None = "auto",
        sampling: SamplingParams | None = None,
        adapter: str | None = None,
        **constraint: Unpack[ConstraintOptions],
    ) -> Reply:
        """The model's next message in a conversation: text, or calls of `tools`.

        Args:
            messages: {"role", "content"} mappings as in OpenAI's interface, calls and results too, or what the user says.
            tools: Python functions with annotated parameters, or definitions in OpenAI's form.
            tool_choice: "auto" (text or a call), "none", "required", a tool's name, or OpenAI's object for that.
            tool_style: how the model writes calls, such as "hermes" or "llama3-json"; "auto" knows it by the chat template; None
                is one JSON object and nothing else, as the embedded model learned it.
            sampling: None: `default_sampling`.
            adapter: the name of a loaded adapter.
            constraint: beside tools, what a reply without calls satisfies: `reply.parsed` is a call or the object then.
        """
        turn = self.planner.turn(messages, tools, tool_choice, tool_style, constraint)
        plan = self.planner.plan_turn(turn, sampling).adapted(adapter)
        (output,) = self._run([plan], None)
        return reply_of(output, turn, plan.constraint)

    def stream_chat(
        self,
        messages: str | Sequence[Message],
        *,
        tools: Sequence[ToolLike] = (),
        tool_choice: str | Mapping[str, Any] = "auto",
        tool_style: str | ToolStyle | None = "auto",
        sampling: SamplingParams | None = None,
        adapter: str | None = None,
        **constraint: Unpack[ConstraintOptions],
    ) -> Iterator[Event]:
        """`chat` as typed events while the model writes: those of `stream`, and in a tool style text, reasoning and calls.
        Arguments are those of `chat`."""
        turn = self.planner.turn(messages, tools, tool_choice, tool_style, constraint)
        return self._stream(self.planner.plan_turn(turn, sampling).adapted(adapter))

    def run_tools(
        self,
        messages: str | Sequence[Message],
        *,
        tools: Sequence[ToolLike],
        tool_choice: str | Mapping[str, Any] = "auto",
        tool_style: str | ToolStyle | None = "auto",
        sampling: SamplingParams | None = None,
        adapter: str | None = None,
        max_rounds: int = MAX_ROUNDS,
        max_calls: int = MAX_CALLS,
        max_tokens: int | None = None,
        on_error: OnError = "tell",
        **constraint: Unpack[ConstraintOptions],
    ) -> ToolRun:
        """`chat` in a loop: calls are run, and the model reads their results, until it answers. Returns the last of the events.

        Args:
            messages: as for `chat`, and so are tool_choice (of the first reply), tool_style, sampling, adapter and constraint.
            tools: Python functions; a definition without one ends the loop, with its calls `pending`.
            max_rounds: replies that may call tools; then the model is asked once more and has to answer.
            max_calls: calls in all.
            max_tokens: of all replies together; None: no limit but that of each.
            on_error: "tell" the model what a function raised, or "raise" it as `ToolFailed`.

        Errors are those of `chat`. How errors and limits are told: `tool_loop.py`.
        """
        events = self.stream_tools(
            messages, tools=tools, tool_choice=tool_choice, tool_style=tool_style, sampling=sampling, adapter=adapter,
            max_rounds=max_rounds, max_calls=max_calls, max_tokens=max_tokens, on_error=on_error, **constraint,
        )  # fmt: skip
        return next(event.run for event in events if isinstance(event, ToolsDone))

    def stream_tools(
        self,
        messages: str | Sequence[Message],
        *,
        tools: Sequence[ToolLike],
        tool_choice: str | Mapping[str, Any] = "auto",
        tool_style: str | ToolStyle | None = "auto",
        sampling: SamplingParams | None = None,
        adapter: str | None = None,
        max_rounds: int = MAX_ROUNDS,
        max_calls: int = MAX_CALLS,
        max_tokens: int | None = None,
        on_error: OnError = "tell",
        **constraint: Unpack[ConstraintOptions],
    ) -> Iterator[ToolEvent]:
        """`run_tools` as typed events: those of `stream_chat` for each reply, and of `tool_loop.py` around them. Functions run
        in the thread that reads the events. Arguments and errors are those of `run_tools`."""
        limits = ToolLimits(max_rounds=max_rounds, max_calls=max_calls, max_tokens=max_tokens, on_error=on_error)
        loop = tool_loop(messages, tools, tool_choice, limits, awaits=False)

        def planned() -> tuple[Turn, Plan]:
            turn = self.planner.turn(loop.messages, loop.tools, loop.tool_choice, tool_style, constraint)
            return turn, self.planner.plan_turn(turn, loop.sampling(sampling or self.default_sampling)).adapted(adapter)

        return self._tool_events(loop, planned)

    def _tool_events(self, loop: ToolLoop, planned: Callable[[], tuple[Turn, Plan]]) -> Iterator[ToolEvent]:
        """planned: makes the plan for the next reply."""
        while loop.goes_on:
            yield RoundStarted(loop.round)
            turn, plan = planned()
            try:
                reply = yield from self._replied(plan, turn)
            except BudgetTooSmall:
                if not loop.is_short_of_tokens:
                    raise
                loop.end_for_lack_of_tokens()
                break
            calls = loop.take(reply)
            yield Replied(loop.round - 1, reply)
            for call_id, call in calls:
                yield ToolStarted(call_id, call)
                result = run_call(call_id, call, loop.limits.on_error)
                loop.give(result)
                yield ToolEnded(result)
        yield ToolsDone(loop.run())

    def _replied(self, plan: Plan, turn: Turn) -> Generator[Event, None, Reply]:
        """The events of a reply, and the reply."""
        for event in self._stream(plan):
            yield event
            if isinstance(event, Done):
                return reply_of(event.output, turn, plan.constraint)
        raise AssertionError("a stream ends with Done")

    def _run(self, plans: list[Plan], progress: Progress | None) -> list[GenerationOutput]:
        request_ids = self.driver.submit([request for plan in plans for request in plan.requests])
        outputs, waiting = list[GenerationOutput](), iter(request_ids)
        try:
            for plan in plans:
                outputs.append(plan.output(*[self._final(next(waiting)) for _ in plan.requests]))
                if progress is not None:
                    progress(len(outputs), len(plans))
        finally:
            for request_id in request_ids:
                self.driver.cancel(request_id)
        return outputs

    def _search(self, plans: list[Plan], search: Search) -> list[GenerationOutput]:
        request_ids = self.driver.submit([plan.request for plan in plans], search=search)
        try:
            return [plan.found(self._final(request_id)) for plan, request_id in zip(plans, request_ids, strict=True)]
        finally:
            for request_id in request_ids:
                self.driver.cancel(request_id)

    def _final(self, request_id: int) -> RequestOutput:
        while (final := self.driver.next_event(request_id)).output is None:
            pass
        return final.output

    def _stream(self, plan: Plan) -> Iterator[Event]:
        events = StreamEvents(plan)
        for event in self._engine_events(plan):
            yield from events.feed(event)

    def _engine_events(self, plan: Plan) -> Iterator[EngineEvent]:
        """All events of one request, which is cancelled when nobody reads on."""
        (request_id,) = self.driver.submit([plan.request])
        try:
            while True:
                event = self.driver.next_event(request_id)
                yield event
                if event.is_final:
                    return
        finally:
            self.driver.cancel(request_id)


def _variant(config: EngineConfig) -> str:
    """What makes a model's numbers others than those of its folder."""
    return f"{config.quantization or ''}{'' if config.quantized_activations else ', inputs as they are'}"


def _sessions(engine: Engine, folder: Path, features: EngineFeatures, variant: str) -> Sessions:
    draft = features.draft_model
    draft_fingerprint = None if draft is None else partial(model_fingerprint, draft)
    return Sessions(engine, partial(model_fingerprint, folder, variant), draft_fingerprint)
