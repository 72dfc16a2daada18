"""The lazy byte automaton: states are sets of grammar positions with their stacks, made when a byte first leads to them.

In: a grammar and its root. Out: tables in one int32 arena (`tables.py`) and compiled functions over them: the next state for a
byte, whether a state accepts, and how short its shortest completion is.
"""
