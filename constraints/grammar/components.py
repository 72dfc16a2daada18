"""The recursive members of a call graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence


def components(calls: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """The strongly connected components of the graph `caller -> callees`, callees before their callers.

    Source: R. Tarjan, "Depth-first search and linear graph algorithms" (1972), with a stack of its own, so that the depth
    of the graph does not matter.
    """
    order: dict[str, int] = {}  # when a member was first seen
    lowest: dict[str, int] = {}  # the earliest open member it can reach
    open_members: dict[str, None] = {}  # in the order seen; those not yet in a component
    found: list[list[str]] = []
    for origin in calls:
        path: list[tuple[str, Iterator[str]]] = []
        fresh = origin if origin not in order else None
        while path or fresh is not None:
            if fresh is not None:
                order[fresh] = lowest[fresh] = len(order)
                open_members[fresh] = None
                path.append((fresh, iter(calls[fresh])))
                fresh = None
            member, callees = path[-1]
            callee = next(callees, None)
            if callee is None:
                path.pop()
                for caller, _ in path[-1:]:
                    lowest[caller] = min(lowest[caller], lowest[member])
                if lowest[member] == order[member]:
                    found.append(_closed(open_members, member))
            elif callee not in order:
                fresh = callee
            elif callee in open_members:
                lowest[member] = min(lowest[member], order[callee])
    return found


def _closed(open_members: dict[str, None], first: str) -> list[str]:
    """Take `first` and all members opened after it out of `open_members`: a finished component."""
    members: list[str] = []
    while not members or members[-1] != first:
        members.append(open_members.popitem()[0])
    return members[::-1]


def is_recursive(component: Sequence[str], calls: Mapping[str, Sequence[str]]) -> bool:
    """Whether its members call each other, or its only member itself."""
    return len(component) > 1 or component[0] in calls[component[0]]
