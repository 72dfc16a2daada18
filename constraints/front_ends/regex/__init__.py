"""Regular expressions in the dialects of Python, ECMA-262 and lark; sets of strings: choices, combinations, substrings.

In: a pattern. Out: grammar nodes; what a regular language cannot say is refused by name.
"""
