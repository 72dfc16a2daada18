"""Sessions: a request is put aside and resumed, in this process or another, and gives exactly the tokens that it would have given.

A session fits where model, tokenizer and constraint are the same, and its keys and values where the cache keeps the same of a
token; everything else is refused by name. How long the cache's blocks are does not matter.

Who wrote a file could have written any keys and values into it, and nobody could tell without computing them. So only that request
sees them ("private"), unless the file is trusted ("shared"): then other prompts that begin alike use them too. "recompute" leaves
them where they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, get_args

from ...constraints.base.errors import ConstraintLimit
from ..adapters.loaded import LoadedAdapter
from ..engine import Engine
from ..errors import InternalError, RequestError, SessionError
from ..kv_cache.kept_blocks import BlockContent, KeptLayout, cut_into_blocks, layout_of, take_out
from ..kv_cache.kv_space import Brought
from ..requests.guide import MaskViews
from ..requests.output import RequestOutput
from ..requests.request import Constraint, Request, cache_key
from ..requests.sequence import Sequence
from .saved_parts import REGISTRIES, described, saved_parts
from .snapshot import Belonging, KeptCache, Snapshot, snapshot_of, snapshot_of_ended

CacheUse = Literal["private", "shared", "recompute"]


class Sessions:
    """Snapshots of one engine's requests. Called between its steps, by the thread that steps it.

    `model` and `draft_model` give the fingerprints of their folders when they are first needed (`fingerprints.py`).
    """

    def __init__(self, engine: Engine, model: Callable[[], str], draft_model: Callable[[], str] | None = None) -> None:
        self._engine, self._model, self._draft_model = engine, model, draft_model

    def snapshot(self, request_id: int, *, keeps_cache: bool = True) -> Snapshot:
        """A request that is waiting or running, which goes on as if nothing had happened. Raises RequestError for any other.

        keeps_cache: with keys and values of what is computed; else that is computed again where the session is resumed.
        """
        self._engine.settle()
        if (ended := self._engine.ended(request_id)) is not None:
            return self.snapshot_of_ended(ended.request, ended.output(), keeps_cache=keeps_cache)
        sequence = self._engine.sequence(request_id)
        if sequence.request.ending is not None:
            raise RequestError(f"request {request_id} ends where its owner decides, which a snapshot cannot keep")
        if sequence.request.begun or sequence.request.healed:
            raise RequestError(f"request {request_id} goes on with a text of its prompt, which a snapshot cannot keep")
        for option in REGISTRIES:  # refused before anything is written
            saved_parts(option, getattr(sequence.request.sampling, option))
        kept = self._kept(sequence.block_table, sequence.num_computed) if keeps_cache else None
        return snapshot_of(sequence, self._belonging(sequence.request.constraint, sequence.adapter_fingerprint), kept)

    def snapshot_of_ended(self, request: Request, output: RequestOutput, *, keeps_cache: bool = True) -> Snapshot:
        """A request that has ended, with what is still known of its keys and values: the beginning of a conversation."""
        self._engine.settle()
        visitor = _Visitor((*request.prompt_token_ids, *output.token_ids), cache_key(output.adapter, request.cache_salt))
        kept = None
        if keeps_cache and self._engine.space.num_needed(visitor) <= self._engine.space.pool.num_free:
            self._engine.space.admit(visitor)
            self._engine.move_blocks()  # some of it may be in host memory
            kept = self._kept(visitor.block_table, visitor.num_computed)
            self._engine.space.release(visitor)
        return snapshot_of_ended(request, output, self._belonging(request.constraint, output.adapter), kept)

    def resume(
        self,
        snapshot: Snapshot,
        constraint: Constraint | None = None,
        cache: CacheUse = "private",
        adapter: str | None = None,
    ) -> int:
        """Queue the request anew and return its id; its events begin with the tokens it has.

        `constraint` is the one it was made with, compiled again; `adapter` the name of that which it ran with.
        Of a session that had ended, the next step gives the final event, and with cache="shared" prompts that begin with it find
        its keys and values. Raises SessionError.
        """
        if cache not in get_args(CacheUse):
            raise SessionError("request", f'cache must be one of {", ".join(get_args(CacheUse))}, got {cache!r}')
        self._check_belonging(snapshot.belongs_to, constraint, self._adapter(adapter))
        sequence = self._replayed(snapshot, constraint, adapter)
        brought = None if cache == "recompute" else self._brought(snapshot.cache, is_trusted=cache == "shared")
        if not sequence.is_finished:
            self._engine.adopt(sequence, brought)
            return sequence.request_id
        self._engine.adopt(sequence)
        if brought is not None and brought.is_trusted:
            self._teach(sequence, brought)
        return sequence.request_id

    # ---- what is kept

    def _kept(self, block_table: list[int], num_computed: int) -> KeptCache | None:
        if not num_computed:
            return None
        runner, drafting = self._engine.runner, self._engine.drafter.runner
        if not runner.keeps_whole_cache:
            return None
        layout, draft_layout = self._layouts()
        content = BlockContent(
            take_out(runner.cache, block_table, num_computed),
            () if drafting is None else take_out(drafting.cache, block_table, num_computed),
        )
        return KeptCache(num_computed, content, layout, self._draft_fingerprint(), draft_layout)

    def _brought(self, kept: KeptCache | None, *, is_trusted: bool) -> Brought | None:
        if kept is None:
            return None
        if not self._engine.runner.keeps_whole_cache:
            raise SessionError("cache", f"it keeps keys and values, of which each rank of this engine has a part; {_INSTEAD}")
        layout, draft_layout = self._layouts()
        if kept.layout != layout:
            raise SessionError("cache", f"it keeps {_told(kept.layout)}, this engine {_told(layout)}; {_INSTEAD}")
        if draft_layout is not None and (kept.draft_model, kept.draft_layout) != (self._draft_fingerprint(), draft_layout):
            raise SessionError("cache", f"it keeps nothing of this engine's draft model; {_INSTEAD}")
        size, count = self._engine.limits.block_size, kept.num_tokens
        of_model = cut_into_blocks(kept.content.model, count, size, layout.is_state)
        of_draft = cut_into_blocks(kept.content.draft, count, size, False) if draft_layout else [()] * len(of_model)
        blocks = map(BlockContent, of_model, of_draft)
        return Brought(tuple(blocks), count, is_trusted)

    def _teach(self, sequence: Sequence, brought: Brought) -> None:
        """Let the prefix cache know what an ended session brings, if there is room for it."""
        self._engine.settle()
        space, visitor = self._engine.space, _Visitor(tuple(sequence.token_ids), sequence.cache_key)
        if space.reuses and space.num_needed(visitor) <= space.pool.num_free:
            space.bring(visitor, brought)
            space.admit(visitor)
            self._engine.move_blocks()
            space.release(visitor)

    def _layouts(self) -> tuple[KeptLayout, KeptLayout | None]:
        drafting = self._engine.drafter.runner
        return layout_of(self._engine.runner.cache), None if drafting is None else layout_of(drafting.cache)

    # ---- what it belongs to

    def _belonging(self, constraint: Constraint | None, adapter: str | None) -> Belonging:
        parts = [described(option, getattr(self._engine, option)) for option in REGISTRIES]
        return Belonging(self._model(), self._engine.vocabulary.fingerprint, _fingerprint(constraint), adapter, *parts)

    def _adapter(self, name: str | None) -> LoadedAdapter | None:
        if name is None:
            return None
        if self._engine.adapters is None:
            raise SessionError("adapter", "this engine was made without adapters")
        try:
            return self._engine.adapters.find(name)
        except RequestError as error:
            raise SessionError("adapter", str(error)) from error

    def _draft_fingerprint(self) -> str | None:
        return None if self._draft_model is None else self._draft_model()

    def _check_belonging(self, found: Belonging, constraint: Constraint | None, adapter: LoadedAdapter | None) -> None:
        own = self._belonging(constraint, None if adapter is None else adapter.fingerprint)
        if found.model != own.model:
            raise SessionError("model", "it was made by another model, or by other weights of it")
        if found.tokenizer != own.tokenizer:
            raise SessionError("tokenizer", "its tokens are those of another tokenizer")
        if found.adapter != own.adapter:
            raise SessionError("adapter", _other_adapter(found.adapter, adapter))
        for option in REGISTRIES:
            theirs, ours = (", ".join(getattr(each, option)) or "none" for each in (found, own))
            if theirs != ours:
                raise SessionError(option, f"the engine that it was made by has {theirs}, this one {ours}")
        if found.constraint == own.constraint:
            return
        if found.constraint is None:
            raise SessionError("constraint", "it was made without a constraint; give none")
        given = "none was given" if constraint is None else "another one was given"
        raise SessionError("constraint", f"it was made under a constraint, and {given}; give the same one")

    # ---- replaying

    def _replayed(self, snapshot: Snapshot, constraint: Constraint | None, adapter: str | None) -> Sequence:
        sequence = self._admitted(snapshot, constraint, adapter)
        try:
            for place, record in enumerate(snapshot.records):
                if not sequence.is_finished and sequence.takes(record.token_id):
                    sequence.accept(record)
                if len(sequence.records) == place:
                    raise SessionError("content", f"token {record.token_id} cannot stand at place {place} of its output")
        except ConstraintLimit as error:
            raise SessionError("constraint", str(error)) from error
        except InternalError as error:
            raise SessionError("content", str(error)) from error
        progress = snapshot.progress
        if progress.finish_reason is not None and not sequence.is_finished:
            sequence.finish(progress.finish_reason, progress.error)
        elif sequence.finish_reason != progress.finish_reason:
            raise SessionError("content", "its tokens end it, and it says that it goes on")
        self._set_progress(sequence, snapshot)
        return sequence

    def _admitted(self, snapshot: Snapshot, constraint: Constraint | None, adapter: str | None) -> Sequence:
        try:
            request = Request(
                prompt_token_ids=snapshot.prompt_token_ids,
                sampling=snapshot.sampling,
                constraint=constraint,
                priority=snapshot.priority,
                adapter=adapter,
                user=snapshot.user,
                num_shared_tokens=snapshot.num_shared_tokens,
                cache_salt=snapshot.cache_salt,
            )
            sequence = self._engine.admit(request)
        except SessionError:
            raise
        except RequestError as error:
            raise SessionError("content", str(error)) from error
        if sequence.max_tokens < snapshot.sampling.max_tokens and not snapshot.is_ended:
            raise SessionError(
                "max_model_len",
                f"it may grow to {len(snapshot.prompt_token_ids) + snapshot.sampling.max_tokens} tokens, and sequences of this "
                f"engine to {self._engine.limits.max_model_len}",
            )
        return sequence

    def _set_progress(self, sequence: Sequence, snapshot: Snapshot) -> None:
        progress, guide = snapshot.progress, sequence.guide
        sequence.num_cached, sequence.num_jumped = progress.num_cached, progress.num_jumped
        sequence.num_drafted, sequence.num_accepted = progress.num_drafted, progress.num_accepted
        sequence.bans_overridden = progress.bans_overridden
        sequence.sampling.refuse(progress.num_refused)
        if guide is None:
            return
        guide.closed_by_budget |= progress.closed_by_budget
        if sequence.is_finished:
            return
        if progress.is_tight:
            guide.is_tight = True
        MaskViews().fill([guide])
        if guide.failure is not None:
            raise SessionError("constraint", str(guide.failure))


_INSTEAD = 'resume it with cache="recompute"'


class _Visitor:
    """Occupies blocks for a moment, to read what is known of some tokens or to make it known."""

    num_pinned = 0
    reads_all = False

    def __init__(self, token_ids: tuple[int, ...], cache_key: str | None) -> None:
        self.token_ids, self.cache_key = list(token_ids), cache_key
        self.block_table: list[int] = []
        self.num_computed = 0
        self.num_cached: int | None = 0  # it takes no part in statistics

    @property
    def num_tokens(self) -> int:
        return len(self.token_ids)


def _other_adapter(found: str | None, given: LoadedAdapter | None) -> str:
    if found is None:
        return "it was made without an adapter; give none"
    what = "none was given" if given is None else f'"{given.name}" has other weights'
    return f"it was made with an adapter, and {what}; give the name that the same one is loaded under"


def _fingerprint(constraint: Any) -> str | None:
    if constraint is None:
        return None
    if not isinstance(found := getattr(constraint, "fingerprint", None), str):
        raise SessionError("constraint", f"a {type(constraint).__name__} has no fingerprint by which it could be recognised")
    return found


def _told(layout: KeptLayout) -> str:
    of_what = "a state" if layout.is_state else "a token"
    first = "".join(f", the first {dtype} {list(shape)}" for dtype, shape in layout.parts[:1])
    return f"{len(layout.parts)} tensors of {of_what}{first}"

