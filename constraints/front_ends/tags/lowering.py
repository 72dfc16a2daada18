"""A tree of parts as a grammar.

Parts are visited from the root to the leaves, each told what it stands in (`Context`), and lowered in the opposite order.
A part that is the content of a tag reads the end of the tag too: text has to look for it.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import replace
from typing import Any

from ...base.errors import ConstraintError, ConstraintLimit, UnsupportedKeyword
from ...grammar.excluded_strings import Outcome, text_until
from ...grammar.expression import EMPTY, FAIL, Grammar, Node
from ...grammar.merged_repetitions import untangled
from ...grammar.segments import MARKUP, TEXT, Segment
from ...grammar.source import Limits, Source, is_source
from ...grammar.stages import Budgets, refuse_budgets
from ...grammar.stopwatch import look
from ...grammar.tokens import one_of_tokens
from ...runtime.front_end import front_end_of
from ..cfg.budgeted_text import Budgeted
from .free_text import FreeText
from .markup import Context, Markup, spelled
from .tree import (
    AnyOf,
    Const,
    Joined,
    Labelled,
    Located,
    OtherToken,
    Part,
    Repeat,
    Separated,
    Sequence,
    Tag,
    Text,
    Token,
    Triggered,
)

_BEHIND_ALL = b"\xff" * 2  # no text that is spelled has it: what begins with a text comes before the text with it behind


def lower_tree(root: Part, grammar: Grammar, limits: Limits) -> Node:
    """The texts that a tree describes. Raises `ConstraintError` with the path of the part, and where it counts tokens."""
    node, budgets = lower_with_budgets(root, grammar, limits)
    refuse_budgets(budgets)
    return node


def lower_with_budgets(root: Part, grammar: Grammar, limits: Limits) -> tuple[Node, Budgets]:
    """(node, budgets): the texts that a tree describes, and the parts that count tokens. Raises `ConstraintError` with
    the path of the part."""
    lowering = _TreeLowering(grammar, limits)
    return lowering.lower(root), lowering.budgets


def counts_tokens(root: Part) -> bool:
    """Whether some part of a tree may count tokens."""
    work: list[Part] = [root]
    context = Context(TEXT, MARKUP, "#")
    while work:
        part = work.pop()
        may_count = isinstance(part, Budgeted) and part.may_have_budgets
        if may_count or isinstance(part, Token | OtherToken) or (isinstance(part, Text) and _wants_tokens(part)):
            return True
        work += (inner for inner, _ in _inner(part, context))
    return False


def _wants_tokens(part: Text) -> bool:
    return part.max_tokens is not None or bool(part.without_tokens)


class _TreeLowering:
    def __init__(self, grammar: Grammar, limits: Limits) -> None:
        self._grammar, self._limits = grammar, limits
        self.budgets: Budgets = {}
        self._markup = Markup(grammar)
        self._free_text = FreeText(grammar, limits, self._markup, self.budgets)
        self._sources: dict[Source, tuple[Node, list[str], list[str]]] = {}

    def lower(self, root: Part) -> Node:
        visits: list[tuple[Any, Context, range]] = [(root, Context(TEXT, MARKUP, "#"), range(0))]
        depth = {0: 0}
        for i, (part, context, _) in enumerate(visits):  # grows while it is gone through
            inner = _inner(part, context)
            visits[i] = part, context, range(len(visits), len(visits) + len(inner))
            visits += [(child, its, range(0)) for child, its in inner]
            look()
            depth.update(dict.fromkeys(visits[i][2], depth[i] + 1))
            if depth[i] > self._limits.nesting:
                raise ConstraintLimit(
                    "parts inside each other", limit="nesting", value=self._limits.nesting, path=context.path
                )
        nodes: list[Node] = [FAIL] * len(visits)
        for i in range(len(visits) - 1, -1, -1):
            look()
            part, context, inner_visits = visits[i]
            nodes[i] = self._node(part, context, [nodes[j] for j in inner_visits])
        return nodes[0]

    # -- parts --------------------------------------------------------------------------------------------------------

    def _node(self, part: Part, context: Context, inner: list[Node]) -> Node:
        """A part from what is inside it; `inner` is in the order of `_inner`."""
        match part:
            case Labelled() | Located():
                return inner[0]
            case Text():
                return self._free_text.text(part, context)
            case Const():
                return self._markup.then_end(self._const(part, context), context)
            case Token():
                token = one_of_tokens(self._grammar, [self._markup.token_id(part.token, context)], self.budgets)
                return self._markup.then_end(token if token == EMPTY else self._grammar.segment(token, context.marker), context)
            case OtherToken():
                return self._markup.then_end(self._free_text.other_token(part, context), context)
            case Sequence():
                return self._grammar.seq(*inner) if inner else self._markup.ends(context)
            case AnyOf():
                return self._grammar.alt(*inner)
            case Repeat():
                return self._markup.then_end(self._repeat(part, context, inner[0]), context)
            case Joined():
                return self._markup.then_end(self._joined(part, context, inner), context)
            case Tag():
                return self._markup.then_end(
                    self._grammar.seq(self._markup.marked(self._markup.spell(part.begin), context.marker), *inner), context
                )
            case Triggered():
                return self._triggered(part, context, inner)
            case Separated():
                return self._markup.then_end(self._separated(part, context, inner), context)
            case _:
                return self._markup.then_end(self._grammar.segment(self._source(part, context), context.segment), context)

    def _source(self, source: Source, context: Context) -> Node:
        if not is_source(source):
            reason = f"a part is a source or of the tree, not {type(source).__name__}"
            raise ConstraintError(reason, path=context.path)
        if front_end_of(source).stands_alone:
            keyword, instead = type(source).__name__, "it around the whole"
            raise UnsupportedKeyword(
                "cannot stand inside a structural tag", path=context.path, keyword=keyword, instead=instead
            )
        try:
            if source not in self._sources:
                self._sources[source] = self._lowered_apart(source)
        except ConstraintError as error:
            error.move_below(context.path)
            raise
        node, *told = self._sources[source]
        for all_told, remarks in zip((self._grammar.notes, self._grammar.residue), told, strict=True):
            moved = (context.path + each.removeprefix("#") if each.startswith("#") else each for each in remarks)
            all_told[:] = dict.fromkeys((*moved, *all_told))  # parts are lowered from the last one on
        return node

    def _lowered_apart(self, source: Source) -> tuple[Node, list[str], list[str]]:
        """A source as a node, with its notes and residue, which begin with a path in it: where it stands they are told of there."""
        grammar = self._grammar
        notes, residue = grammar.notes, grammar.residue
        grammar.notes, grammar.residue = [], []
        try:
            return self._lowered(source), grammar.notes, grammar.residue
        finally:
            grammar.notes, grammar.residue = notes, residue

    def _lowered(self, source: Source) -> Node:
        if not isinstance(source, Budgeted):
            return source.lower(self._grammar, self._limits)
        node, budgets = source.lower_with_budgets(self._grammar, self._limits)
        self.budgets |= budgets
        return node if budgets else untangled(self._grammar, node, self._limits)

    def _const(self, part: Const, context: Context) -> Node:
        """A constant. Special tokens in it are markup, whatever the rest is."""
        if context.segment == context.marker:
            return self._markup.marked(self._markup.spell(part.text), context.segment)
        pieces = enumerate(spelled(self._grammar, part.text))
        return self._grammar.seq(
            *(self._markup.marked(piece, context.marker if i % 2 else context.segment) for i, piece in pieces)
        )

    def _repeat(self, part: Repeat, context: Context, content: Node) -> Node:
        if max(part.low, part.high or 0) > self._limits.repetition:
            value = self._limits.repetition
            raise ConstraintLimit("repetitions", limit="repetition", value=value, path=context.path)
        if part.low < 0 or (part.high is not None and part.high < part.low):
            raise ConstraintError(f"{part.low} to {part.high} times is impossible", path=context.path)
        return self._grammar.repeat(content, part.low, part.high)

    def _joined(self, part: Joined, context: Context, inner: list[Node]) -> Node:
        """Parts with a separator between them. From the last part to the first: what may follow when something stands
        before, and when nothing does."""
        grammar, separator = self._grammar, self._markup.marked(self._markup.spell(part.separator), context.marker)
        behind = first = EMPTY
        for node, (_, is_required) in zip(reversed(inner), reversed(tuple(part.parts)), strict=True):
            with_it = grammar.seq(node, behind)
            first = with_it if is_required else grammar.alt(with_it, first)
            behind = grammar.alt(grammar.seq(separator, with_it), *([] if is_required else [behind]))
        return first

    def _triggered(self, part: Triggered, context: Context, inner: list[Node]) -> Node:
        """Text with tags in it. `inner` are the contents of the tags, with their ends."""
        grammar, rule = self._grammar, self._grammar.rule("text with tags")
        begins = {self._markup.spell(tag.begin): FAIL for tag in part.tags}
        for tag, content in zip(part.tags, inner, strict=True):
            begin = self._markup.spell(tag.begin)
            begins[begin] = grammar.alt(begins[begin], content)
        after = self._markup.ends(context) if part.stop_after_first else grammar.call(rule)
        if part.separator and not part.stop_after_first:
            after = self._after_tag(part, context, begins, after)
        outcomes = self._markup.passed_over(part.without_tokens, rule, context) | self._markup.exclusions(part.excludes, context)
        in_order, triggered = sorted(begins), set[bytes]()
        for trigger in (self._markup.sought(text, context) for text in part.triggers):
            look()
            matching = in_order[bisect_left(in_order, trigger) : bisect_left(in_order, trigger + _BEHIND_ALL)]
            if not matching:
                raise ConstraintError(
                    f"no tag begins with the trigger {trigger!r}", path=context.path, keyword="triggers"
                )
            triggered.update(matching)
            rests = (self._begun(begin[len(trigger) :], begins[begin], context) for begin in matching)
            outcomes[trigger] = Outcome(grammar.seq(grammar.alt(*rests), after), context.marker)
        for tag in part.tags:
            if self._markup.spell(tag.begin) not in triggered:
                raise ConstraintError(f"no trigger begins the tag {tag.begin!r}", path=context.path, keyword="tags")
        outcomes |= self._markup.endings(context)
        at_end = FAIL if context.ends else EMPTY
        text = text_until(grammar, rule, outcomes, at_end, context.segment, self._limits)
        if part.at_least_one:
            return grammar.seq(
                grammar.alt(*(self._begun(begin, content, context) for begin, content in begins.items())), after
            )
        return text

    def _after_tag(self, part: Triggered, context: Context, begins: dict[bytes, Node], after: Node) -> Node:
        """What follows a tag: text again, or a separator and another tag at once."""
        grammar, rule = self._grammar, self._grammar.rule("after a tag")
        separator = self._markup.spell(part.separator)
        again = (self._begun(separator + begin, content, context) for begin, content in begins.items())
        grammar.define(rule, grammar.alt(after, grammar.seq(grammar.alt(*again), grammar.call(rule))))
        return grammar.call(rule)

    def _separated(self, part: Separated, context: Context, inner: list[Node]) -> Node:
        grammar = self._grammar
        one = grammar.alt(*inner)
        if not part.stop_after_first:
            separator = self._markup.marked(self._markup.spell(part.separator), context.marker)
            one = grammar.seq(one, grammar.repeat(grammar.seq(separator, one)))
        return one if part.at_least_one else grammar.optional(one)

    def _begun(self, rest: bytes, content: Node, context: Context) -> Node:
        return self._grammar.seq(self._markup.marked(rest, context.marker), content)


def _inner(part: Part, context: Context) -> list[tuple[Part, Context]]:
    """The parts inside a part, each with the context that it stands in."""
    free = replace(context, ends=(), closing=MARKUP)
    path = context.path
    match part:
        case Labelled():
            return [(part.content, replace(context, segment=part.segment, marker=part.segment))]
        case Located():
            return [(part.content, replace(context, path=part.path))]
        case Sequence():
            parts = list(part.parts)
            return [
                (each, replace(context if i == len(parts) - 1 else free, path=path)) for i, each in enumerate(parts)
            ]
        case AnyOf():
            return [(each, context) for each in part.options]
        case Repeat():
            return [(part.content, free)]
        case Joined():
            return [(each, free) for each, _ in part.parts]
        case Tag():
            return [_content(part, context)]
        case Triggered():
            return [_content(tag, context) for tag in part.tags]
        case Separated():
            return [(each, free) for each in part.tags]
    return []


def _content(tag: Tag, context: Context) -> tuple[Part, Context]:
    """The content of a tag, with its context. A tag inside another one belongs to that one's content."""
    segment, closing = tag.segment, tag.closing
    if segment is None:
        is_outermost = context.segment == TEXT
        segment = Segment("tag", tag.begin) if is_outermost else context.segment
        closing = Segment("close tag", tag.begin) if is_outermost else context.marker
    marker = segment if tag.segment is None else MARKUP
    return tag.content, Context(segment, marker, context.path, tuple(tag.end), closing or MARKUP)
