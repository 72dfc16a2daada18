"""JSON strings: their spellings, and the formats.

In: what is claimed of a string. Out: grammar nodes over the characters as JSON writes them.
"""
