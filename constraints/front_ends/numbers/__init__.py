"""Numbers as canonical texts: intervals of decimals, multiples of a step, and their digits.

In: exact bounds and steps. Out: grammar nodes for the texts of the numbers that satisfy them.
"""
