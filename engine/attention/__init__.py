"""Attention over the paged cache, by name: naive, streaming, fused; and what each query of a batch sees.

In: queries, and the blocks of their sequences. Out: attended values; a decode step's input at fixed addresses.
"""
