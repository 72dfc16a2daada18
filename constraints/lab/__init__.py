"""Tools for people who write grammars: what is wrong with one, where a text fails, suites of strings.

They read a grammar as it is written, with its rule names and lines (`outline.py`), beside the constraint that it compiles to.
"""
