"""Several sequences for one output: beam search and sequential Monte Carlo over shared prefixes.

In: a request with a search. Out: its best sequences.
"""
