"""What a user of the core holds: `Compiler` makes and caches, `Constraint` answers masks, advances, distances and explanations.

In: a source (a front end's value) and a vocabulary. Out: the public contract over opaque, hashable states.
"""
