"""Guesses ahead and how they are checked: from the text so far, by a small model, from what the constraint forces.

In: a sequence. Out: proposed tokens; how many of them were right.
"""
