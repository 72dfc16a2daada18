"""What is made of a grammar before any text is read: its nodes in the arena, and how far each of them is from an end.

In: a grammar and a vocabulary. Out: a machine with intersections as tables, sizes and costs of all static nodes, and what keys
and items that must be new may cost.
"""
