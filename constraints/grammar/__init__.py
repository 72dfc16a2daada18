"""The one form that every front end lowers to: hash-consed expressions over bytes, rules, counters, intersection and complement.

In: calls of a front end (`Grammar.seq`, `alt`, `repeat`, `call`, ...). Out: a `Grammar` and its root node, rewritten so that no
rule begins with itself and every rule has a text. `reference.py` is the slow twin that says what a grammar means.
"""
