"""Which tokens a state allows: the vocabulary's byte trie is walked against the automaton, and most masks are told by another one.

In: a state of the automaton and the packed vocabulary. Out: the description of a mask (a base row and edits), stored once as a row.
"""
