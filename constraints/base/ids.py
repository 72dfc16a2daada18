"""Ids: numbers that say which one of many. Each kind is a type of its own to the type checker, and a plain number otherwise, in
loops too; so the id of a node is never taken for that of a state.
"""

from __future__ import annotations

from typing import NewType

StateId = NewType("StateId", int)  # of the automaton; 0 is DEAD
NodeId = NewType("NodeId", int)  # an expression of the arena: a continuation, an item of a state, a word of a register
RegisterId = NewType("RegisterId", NodeId)  # what keys and items a text has had (seen_values.py)
BodyId = NewType("BodyId", int)  # a class of characters that something repeats
RowId = NewType("RowId", int)  # of a mask; 0 is none
TokenId = NewType("TokenId", int)
Place = NewType("Place", int)  # of a trie, or of the tables of a body class: its offset in the packed vocabulary
