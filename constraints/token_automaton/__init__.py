"""The automaton over tokens: states, masks and the number of tokens that suffices to finish, each found when first asked for.

In: a grammar and a vocabulary. Out: `TokenAutomaton` (state and token to state, state to mask row) and `Distances`.
"""
