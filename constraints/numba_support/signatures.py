"""For which types of arguments functions of loops are compiled."""

from __future__ import annotations

from typing import Any

from numba.core.types import unliteral


def take_numbers(dispatcher: Any) -> None:
    """Compile a function for numbers where it is called with constants, which are types of their own to Numba: once for all of
    them. Optimisation of the whole entry point sees the constants all the same."""
    resolve = dispatcher.get_call_template

    def of_numbers(arguments: Any, keywords: Any) -> Any:
        return resolve(tuple(map(unliteral, arguments)), {name: unliteral(one) for name, one in keywords.items()})

    dispatcher.get_call_template = of_numbers
