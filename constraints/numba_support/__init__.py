"""How the loops of the core are compiled by Numba, and what they use that knows nothing of grammars.

Functions are `inner` (called by compiled code alone) or an `entry` (called from Python): `jit.py`. In: Python functions over
addresses and integers. Out: machine code, one module an entry point, kept on disk.
"""
