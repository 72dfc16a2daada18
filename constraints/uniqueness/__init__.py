"""Keys of open objects and items of unique arrays, so that none comes twice.

What a text has used so far is kept beside the automaton's state. In: a state and the values seen. Out: the tokens that would repeat
one of them, which are cleared in the row of the state.
"""
