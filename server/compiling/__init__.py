"""Constraints are compiled in processes of their own, where they hold neither the interpreter nor the cores that tokens need.

In: a source, and who asks for it. Out: the compiled constraint, or why it is refused.
"""
