"""Alternatives of claims as grammar nodes: values by type, arrays and objects as series of parts.

In: alternatives of the algebra. Out: one grammar rule for each distinct schema.
"""
