"""Compiled constraints in files: arrays with a checksum, a grammar as arrays, and the check that a grammar read is well-formed.

In: the grammar and tables of an automaton. Out: a file, and what was in it.
"""
