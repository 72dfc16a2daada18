"""Parts that are made as texts are read: whether they stay small, settled while compiling.

What one keyword says by itself and takes too many states for a table stays a product, whose states are made as texts are read
(intersections.py). Mostly each token adds a few: to a number that is no multiple of another one, to a length beside the
labels of a host. Where it adds thousands, as nearly all texts differ in what may follow, `Limits.states` would be met in the middle
of one. So a text of such a part is drawn, with its masks, and what is made for them is counted. A part that takes four thousandths
of `Limits.states` for each token is refused, with its path and keyword: 250 tokens of it would be too many. So is one in which a
mask allows what leads nowhere, because its end was not found: a mask may be made of that of another state, which differs in counts.

Where the limit is met all the same, a text is brought to its end (near_limits.py). What has no text that could be ended so, because
the shortest one has more bytes than there may be states, is refused too.
"""

from __future__ import annotations

import random

from ..automaton.machine import ENDS_BEYOND, with_more
from ..automaton.tables import DEAD
from ..base.errors import ConstraintLimit
from ..base.kinds import Kind
from ..grammar.expression import Node
from ..grammar.stopwatch import look
from ..token_automaton.token_automaton import TokenAutomaton
from .constraint import token_ids

_TOKENS = 32  # that are drawn
SHARE = 0.004  # of the states of a constraint: what a token of one part may add


def settle(automaton: TokenAutomaton) -> None:
    """Raises `ConstraintLimit` for a part that would meet one inside of a text. What is made for other parts is kept."""
    _refuse_endless(automaton)
    for node, (path, keywords) in automaton.kept_lazily.items():
        most = automaton.num_states + max(_TOKENS * SHARE * automaton.limits.states, 1)
        start = state = automaton.start_of(node)
        draw = random.Random(node)
        for _ in range(_TOKENS if start != DEAD else 0):
            allowed = token_ids(automaton.row(state))
            look()
            if automaton.num_states > most:
                raise _too_hard(path, keywords, automaton.limits.states)
            token = int(allowed[draw.randrange(allowed.size)]) if allowed.size else None
            after = automaton.advance_one(state, token) if token is not None else DEAD
            if after == DEAD and token is not None and token not in automaton.shared_vocabulary.eos_ids:
                raise _too_far(path, keywords, automaton.limits.search_states)
            state = after if after != DEAD else start  # behind the end of a text another one begins


def _refuse_endless(automaton: TokenAutomaton) -> None:
    limit = automaton.limits.states
    if automaton.is_shorter(limit):  # mostly, and found out quickly
        return
    least = automaton.size(automaton.start)
    if least > with_more(limit, ENDS_BEYOND):
        raise ConstraintLimit(
            f"the shortest text has {least} bytes, and each may take a state of its own", limit="states", value=limit,
            path=_heaviest(automaton, least // 2), instead="smaller lower bounds of lengths and counts; or raise limits.states",
        )  # fmt: skip


def _heaviest(automaton: TokenAutomaton, share: int) -> str:
    """Where the innermost part of the shortest text is that alone has more bytes than `share`: a schema path, or a rule's
    name. Equal parts are one, and told by the first."""
    grammar, node, path = automaton.grammar, automaton.root, "#"
    seen: set[Node] = set()
    while node not in seen:
        seen.add(node)
        path = grammar.labels.get(node, path)
        node = max(_parts(automaton, node), key=automaton.size_of, default=node)
        if automaton.size_of(node) <= share:
            break
    return path


def _parts(automaton: TokenAutomaton, node: Node) -> list[Node]:
    """The parts of a node of which its shortest text is made, each once. Of a repetition none: it is told as a whole."""
    grammar = automaton.grammar
    kind, (a, b, _) = grammar.kind(node), grammar.operands(node)
    if kind is Kind.SEQ:
        return [Node(a), Node(b)]
    if kind is Kind.CALL:
        body = grammar.rule_bodies[a]
        return [body] if body is not None else []
    return [min(grammar.alternatives(node), key=automaton.size_of)] if kind is Kind.ALT else []


def _too_far(path: str, keywords: tuple[str, ...], states: int) -> ConstraintLimit:
    return ConstraintLimit(
        "ends of many texts lie too far away to be found, so what may follow is not known", limit="search_states", value=states,
        path=path, keyword=", ".join(keywords),
        instead="a pattern without long counted repetitions such as .{14} behind what may begin anywhere; or raise "
        "limits.search_states",
    )  # fmt: skip


def _too_hard(path: str, keywords: tuple[str, ...], states: int) -> ConstraintLimit:
    return ConstraintLimit(
        "nearly every text takes states of its own, so one could meet this limit before it is finished",
        limit="states", value=states, path=path, keyword=", ".join(keywords),
        instead="a pattern without long counted repetitions such as .{200} behind what may begin anywhere; where the text "
        "between tells its end apart, x[^x]{200}x takes a state for each character",
    )  # fmt: skip
