"""Strongly connected components against reachability, pair by pair."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from maskwright.constraints.grammar.components import components, is_recursive

NAMES = "abcdef"
graphs = st.fixed_dictionaries({name: st.lists(st.sampled_from(NAMES), max_size=3, unique=True) for name in NAMES})


def reached_from(name: str, calls: dict[str, list[str]]) -> set[str]:
    """What one or more calls lead to."""
    found: set[str] = set()
    work = list(calls[name])
    while work:
        callee = work.pop()
        if callee not in found:
            found.add(callee)
            work.extend(calls[callee])
    return found


@given(graphs)
def test_agrees_with_reachability(calls):
    reached = {name: reached_from(name, calls) for name in NAMES}
    found = components(calls)
    assert sorted(name for component in found for name in component) == sorted(NAMES)
    for component in found:
        first = component[0]
        together = {name for name in NAMES if name == first or (name in reached[first] and first in reached[name])}
        assert set(component) == together
        assert is_recursive(component, calls) == (first in reached[first])


@given(graphs)
def test_callees_come_before_callers(calls):
    found = components(calls)
    place = {name: i for i, component in enumerate(found) for name in component}
    assert all(place[callee] <= place[caller] for caller, callees in calls.items() for callee in callees)


def test_a_long_chain_needs_no_recursion():
    calls = {str(i): [str(i + 1)] for i in range(20_000)} | {"20000": []}
    assert len(components(calls)) == 20_001
