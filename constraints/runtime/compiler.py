"""From a source to a compiled constraint, with a cache bounded in bytes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from os import PathLike
from weakref import WeakValueDictionary

from ..base.errors import ConstraintError, ConstraintLimit
from ..grammar.source import Limits, Source, is_source
from ..grammar.stopwatch import accounted, held_for_a_while, look
from ..grammar.tokens import tell_vocabulary
from ..token_automaton.token_automaton import TokenAutomaton
from ..vocabulary.shared_vocabulary import SharedVocabulary
from ..vocabulary.vocabulary import Vocabulary
from .constraint import Constraint
from .front_end import front_end_of
from .garbage import collection_paused, let_go_of_refused
from .growth import steadied
from .loading import Handover, load, take_over
from .settling import settle

PAGE_BYTES = 108 << 10  # of the pages that every constraint touches first, measured as growth of the process
RECOUNT = 4  # all are counted again when a quarter of the cache is new since: counting takes 5 us a constraint


class _Compile:
    """A compile that is under way or over. Whoever asks meanwhile waits for it."""

    __slots__ = ("_error", "_under_way", "constraint")

    def __init__(self) -> None:
        self.constraint: Constraint | None = None  # once it has succeeded
        self._error: BaseException | None = None
        self._under_way = threading.Lock()
        self._under_way.acquire()

    def succeed(self, constraint: Constraint) -> None:
        self.constraint = constraint
        self._under_way.release()

    def fail(self, error: BaseException) -> None:
        self._error = error
        self._under_way.release()

    def result(self) -> Constraint:
        """The constraint, when the compile is over. Raises what it raised."""
        if self.constraint is None:
            with self._under_way:
                pass
            if self._error is not None:
                raise self._error
        assert self.constraint is not None
        return self.constraint


class _Hashed:
    """A source as the cache looks it up: one of many parts takes long to hash, and is hashed once."""

    __slots__ = ("_hash", "source")

    def __init__(self, source: Source) -> None:
        self.source, self._hash = source, hash(source)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Hashed):
            return NotImplemented
        return self._hash == other._hash and self.source == other.source


class _Counted:
    """A constraint of the cache, and the bytes that the process held for it when it was last counted."""

    __slots__ = ("constraint", "num_bytes")

    def __init__(self, constraint: Constraint) -> None:
        self.constraint = constraint
        self.count()

    def count(self) -> int:
        """More than are in use, because some pages are used in part."""
        self.num_bytes = PAGE_BYTES + self.constraint.nbytes * 4 // 3
        return self.num_bytes


class Compiler:
    """Compiles sources for one vocabulary. Equal sources give the same `Constraint`, compiled once even when asked for by several
    threads at the same time. Thread-safe.

    limits: how much one constraint may be; None: the defaults of `Limits`.
    cache_bytes: least recently used constraints are dropped from the cache beyond this, as the process holds them, give or take a
        tenth, and what those have grown by since a quarter of the cache was new; constraints in use stay valid, and are found again
        as long as they are. 0: none is kept that is not in use, so each is given back by whoever lets go of it.
    """

    def __init__(self, vocabulary: Vocabulary, limits: Limits | None = None, cache_bytes: int = 1 << 30) -> None:
        if not isinstance(vocabulary, Vocabulary):
            given = type(vocabulary).__name__
            raise TypeError(f"a Compiler takes a Vocabulary, such as Vocabulary.from_tokenizer(...), not {given}")
        self.vocabulary, self.limits, self.cache_bytes = vocabulary, limits or Limits(), cache_bytes
        self._lexicon = SharedVocabulary(vocabulary)
        self._lock = threading.Lock()
        self._cache: OrderedDict[_Hashed, _Compile] = OrderedDict()
        self._in_use: WeakValueDictionary[_Hashed, Constraint] = WeakValueDictionary()  # that the cache has no room for
        self._counted: dict[_Hashed, _Counted] = {}  # those of the cache that are compiled
        self._num_bytes = 0  # of all these together
        self._num_uncounted = 0  # constraints that came since all were counted

    @property
    def num_mask_misses(self) -> int:
        """How often a mask had to be computed, over all constraints that `compile` has given."""
        return self._lexicon.num_mask_misses

    def compile(self, source: Source) -> Constraint:
        """The constraint that `source` describes.

        Raises ConstraintError: the source is malformed, unsatisfiable, or needs bytes the vocabulary cannot spell;
        UnsupportedKeyword: it uses something that is not enforced exactly; ConstraintLimit: a named limit was reached.
        """
        if not is_source(source):
            written = ', as in Regex("...") or Gbnf("...")' if isinstance(source, str) else ""
            raise TypeError(f"compile takes a source such as JsonSchema(...), not {type(source).__name__}: say what it is{written}")
        hashed = _Hashed(source)
        with self._lock:
            found = self._cache.get(hashed)
            known = self._in_use.get(hashed) if found is None else found.constraint
            if known is not None and known.is_half_full:
                self._forget(hashed)
                found = known = None
            if found is None and known is not None:
                return known
            is_mine = found is None
            if found is None:
                found = self._cache[hashed] = _Compile()
            self._cache.move_to_end(hashed)
        if is_mine:
            self._carry_out(found, hashed)
        return found.result()

    def knows(self, source: Source) -> bool:
        """Whether `compile` would return this source's constraint without compiling."""
        hashed = _Hashed(source)
        with self._lock:
            found = self._cache.get(hashed)
            known = self._in_use.get(hashed) if found is None else found.constraint
        return known is not None and not known.is_half_full

    def clear(self) -> None:
        """Drop all constraints of the cache. Those in use stay valid."""
        with self._lock:
            compiled = [source for source, found in self._cache.items() if found.constraint is not None]
            for source in compiled:
                self._forget(source)
                del self._cache[source]
            self._in_use.clear()

    def load(self, path: str | PathLike[str], source: Source | None = None, *, trusted: bool = False) -> Constraint:
        """The constraint in a file that `Constraint.save` wrote, with the same vocabulary, limits and version of this package.

        source: what the file must have been compiled from. It need not be compiled any more: `compile` gives the loaded one.
        trusted: take over the states, transitions and masks in the file as they are. They are used by compiled code, which does not
            check them: only for files that nobody else can write. Else they are left out and found again when they are needed,
            and of the grammar everything is checked, so that a file can at worst describe another constraint.

        Raises `SavedConstraintError`, which names what differs; `ConstraintError` where the grammar does not compile; OSError.
        """
        constraint = load(path, self._lexicon, self.limits, source, trusted)
        if source is not None:
            self._keep(source, constraint)
        return constraint

    def take_over(self, source: Source, handover: Handover) -> Constraint:
        """The constraint that another process with the same vocabulary and limits has compiled of a source: `compile` gives it
        from now on.

        handover: what that process has made of it.
        """
        constraint = take_over(handover, self._lexicon, self.limits, source)
        self._keep(source, constraint)
        return constraint

    def _keep(self, source: Source, constraint: Constraint) -> None:
        compiled, hashed = _Compile(), _Hashed(source)
        compiled.succeed(constraint)
        with self._lock:
            self._forget(hashed)
            self._cache[hashed] = compiled
            self._cache.move_to_end(hashed)
        self._evict(keep=hashed)

    def _carry_out(self, compile_: _Compile, hashed: _Hashed) -> None:
        try:
            with collection_paused(), accounted(self.limits):
                try:
                    constraint = self._compiled(hashed.source)
                except ConstraintError as error:
                    let_go_of_refused(error)
                    raise
            compile_.succeed(constraint)
        except BaseException as error:  # whoever waits for this compile must hear of it, whatever it was
            with self._lock:
                self._cache.pop(hashed, None)
            compile_.fail(error)
        else:
            self._evict(keep=hashed)

    def _compiled(self, source: Source) -> Constraint:
        front_end = front_end_of(source)
        grammar = front_end.new_grammar(self.limits)
        is_plain_json = front_end.is_plain_json
        grammar.only_json = grammar.has_json_values = is_plain_json
        tell_vocabulary(grammar, self.vocabulary)
        try:
            root = front_end.lower_whole(grammar, self.limits)
        except ConstraintError as error:
            error.show_in(front_end.source_text)
            raise
        if len(grammar) > self.limits.nodes:
            raise ConstraintLimit(f"the grammar has {len(grammar)} expressions", limit="nodes", value=self.limits.nodes)
        look()
        automaton = TokenAutomaton(grammar, root, self._lexicon, self.limits)
        automaton.check_spelling()
        settle(automaton)
        if not is_plain_json and automaton.may_grow:
            with held_for_a_while():
                automaton = steadied(automaton)
        automaton.grammar.complete()
        return front_end.finish(Constraint(automaton, source), self._compiled)

    def _evict(self, keep: _Hashed) -> None:
        """Count the constraint that has come, and drop others for which there is no room; of a cache without any room itself."""
        with self._lock:
            dropped = [keep]
            if self.cache_bytes > 0:
                self._count(keep)
                dropped = self._without_room(keep)
            for source in dropped:
                found = self._cache.pop(source, None)
                if found is not None and found.constraint is not None:
                    self._in_use[source] = found.constraint

    def _without_room(self, keep: _Hashed) -> list[_Hashed]:
        """The constraints for which there is no room, least recently used first, which are not counted any more."""
        dropped: list[_Hashed] = []
        for source in self._cache:
            if self._num_bytes <= self.cache_bytes:
                break
            if source != keep and self._forget(source):
                dropped.append(source)
        return dropped

    def _count(self, source: _Hashed) -> None:
        """Count a constraint that is new in the cache, and all others where many are new."""
        found = self._cache.get(source)
        if found is None or found.constraint is None or source in self._counted:  # another thread was faster
            return
        self._num_uncounted += 1
        if self._num_uncounted > (len(self._counted) + 1) // RECOUNT:
            self._num_uncounted, self._num_bytes = 0, sum(each.count() for each in self._counted.values())
        counted = self._counted[source] = _Counted(found.constraint)
        self._num_bytes += counted.num_bytes

    def _forget(self, source: _Hashed) -> bool:
        """Count a constraint no more; whether it was."""
        counted = self._counted.pop(source, None)
        if counted is None:
            return False
        self._num_bytes -= counted.num_bytes
        return True
