"""The part of the token automaton that a text visits: one layer for each token, the states it could have gone to beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..constraints.lab.outline import quoted
from ..constraints.runtime.constraint import Constraint, State, as_token_ids
from .canvas import Drawing, box_at, path, text_at

_LAYER = 100  # height
_LEFT = 150  # room for edges that lead back
_STATE = (104, 30)  # width and height of a state's box
_ASIDE = _LEFT + 400  # where the other states stand
_MOST_ASIDE = 3
_MOST_TOKENS = 3000  # of one state, followed to find them
_LONGEST = 34  # characters


@dataclass(frozen=True)
class Layer:
    """A state that was visited, and the token that was read in it; no token in the last one. after: None where the
    token is masked."""

    state: State
    token: int | None
    after: State | None


def automaton_map(constraint: Constraint, token_ids: Sequence[int], text: str) -> Drawing:
    """The states from the start through `token_ids`, as far as those are allowed."""
    layers = _visited(constraint, token_ids)
    names: dict[State, int] = {}
    for layer in layers:
        names.setdefault(layer.state, len(names))
    body = [text_at(24, 30, f"The states that {_cut(quoted(text))} visits", "name")]
    top, width = 64.0, float(_ASIDE + 460)
    first_row: dict[State, int] = {}
    for row, layer in enumerate(layers):
        y = top + row * _LAYER
        first_row.setdefault(layer.state, row)
        body.append(_state_box(constraint, layer.state, names[layer.state], _LEFT, y))
        body.append(_facts(constraint, layer.state, _LEFT + _STATE[0] + 14, y))
        body += _edges(constraint, layer, y, row, first_row)
        others = _others(constraint, layer)
        body += _beside(constraint, others, names, y)
    return Drawing(width, top + len(layers) * _LAYER + 10, "".join(body))


def _visited(constraint: Constraint, token_ids: Sequence[int]) -> list[Layer]:
    layers: list[Layer] = []
    state = constraint.start()
    for token in token_ids:
        after = constraint.advance(state, token)
        layers.append(Layer(state, token, after))
        if after is None:
            return layers
        state = after
    return [*layers, Layer(state, None, None)]


def _state_box(constraint: Constraint, state: State, name: int, x: float, y: float) -> str:
    width, height = _STATE
    accepting = constraint.is_accepting(state)
    box = box_at(x, y, width, height, "accepting" if accepting else "state", 8)
    inner = box_at(x + 3, y + 3, width - 6, height - 6, "accepting", 6) if accepting else ""
    return box + inner + text_at(x + width / 2, y + 20, f"state {name}", anchor="middle")


def _facts(constraint: Constraint, state: State, x: float, y: float) -> str:
    allowed = len(list(as_token_ids(constraint.mask(state))))
    least = constraint.min_tokens(state)
    end = "may end here" if least == 0 else f"{least} token{'s' if least != 1 else ''} to the end"
    where = ", ".join(constraint.paths(state)[:3])
    facts = f"{allowed:,} token{'s' if allowed != 1 else ''} allowed, {end}"
    return text_at(x, y + 4, facts, "quiet") + (text_at(x, y + 17, f"in {_cut(where)}", "quiet") if where else "")


def _edges(constraint: Constraint, layer: Layer, y: float, row: int, first_row: dict[State, int]) -> list[str]:
    """The lines of a layer: for the token that was read, to the next layer; and back, where that state has been there
    before."""
    if layer.token is None:
        return []
    x, below = _LEFT + _STATE[0] / 2, y + _STATE[1]
    end = y + _LAYER - 3
    is_dead = layer.after is None
    label = f"{_token(constraint, layer.token)}{'  masked' if is_dead else ''}"
    found = [
        path(f"M{x} {below}V{end - 8:.1f}", "fail" if is_dead else ""),
        path(f"M{x} {end:.1f}l-4.5 -9h9z", "arrow"),
        text_at(x + 12, below + 34, label),
    ]
    if is_dead:
        found += [box_at(x - 30, end, 60, 4, "dead", 2)]
    elif (earlier := first_row.get(layer.after, row + 1)) <= row:  # type: ignore[arg-type]
        back = 18 + 14 * min(row + 1 - earlier, 7)
        target, source = y - (row - earlier) * _LAYER + _STATE[1] / 2, y + _LAYER + _STATE[1] / 2
        steps = f"M{_LEFT} {source:.1f}H{_LEFT - back + 10}q-10 0 -10 -10V{target + 10:.1f}q0 -10 10 -10H{_LEFT - 8}"
        found += [path(steps, "aside"), path(f"M{_LEFT} {target:.1f}l-9 -4.5v9z", "arrow")]
    return found


def _others(constraint: Constraint, layer: Layer) -> dict[State, list[int]]:
    """The states to which tokens that were not read would have led."""
    eos = constraint.vocabulary.eos_token_ids
    allowed = [token for token in as_token_ids(constraint.mask(layer.state)) if token not in eos and token != layer.token]
    found: dict[State, list[int]] = {}
    tokens = allowed[:_MOST_TOKENS]
    for token, after in zip(tokens, constraint.advance_batch([layer.state] * len(tokens), tokens), strict=True):
        if after is not None and after != layer.after:
            found.setdefault(after, []).append(token)
    return dict(sorted(found.items(), key=lambda item: (-len(item[1]), item[1][0])))


def _beside(constraint: Constraint, others: dict[State, list[int]], names: dict[State, int], y: float) -> list[str]:
    """The other states that most tokens lead to, small, at the right."""
    shown = list(others.items())[:_MOST_ASIDE]
    fork, lowest = _ASIDE - 16, y + 14 + 22 * (len(shown) - 1) + 9
    found = [path(f"M{_LEFT + _STATE[0]} {y + 23:.1f}H{fork}V{lowest:.1f}", "aside")] if shown else []
    for i, (state, tokens) in enumerate(shown):
        place = y + 14 + 22 * i
        kind = "accepting" if constraint.is_accepting(state) else "state"
        name = f"state {names[state]}" if state in names else "another"
        some = "  ".join(_token(constraint, token) for token in tokens[:3])
        label = f"{_cut(some)}{f'  ({len(tokens):,} tokens)' if len(tokens) > 1 else ''}"
        found += [
            path(f"M{fork} {place + 9:.1f}H{_ASIDE}", "aside"),
            box_at(_ASIDE, place, 76, 18, kind, 6), text_at(_ASIDE + 38, place + 13, name, "quiet", "middle"),
            text_at(_ASIDE + 86, place + 13, label, "quiet"),
        ]  # fmt: skip
    if len(others) > len(shown):
        found.append(text_at(_ASIDE, y + 14 + 22 * len(shown) + 8, f"and {len(others) - len(shown)} more states", "quiet"))
    return found


def _token(constraint: Constraint, token: int) -> str:
    spelling = constraint.vocabulary.spellings[token]
    return f"token {token}" if spelling is None else quoted(spelling.decode("utf-8", "replace"))


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


