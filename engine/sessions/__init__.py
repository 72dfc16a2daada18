"""Requests put aside and resumed: all that this needs, as a value and as a file.

In: a sequence. Out: a snapshot; a sequence that goes on with the same tokens.
"""
