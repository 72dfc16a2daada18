"""Loops: functions in Python that run as machine code, made when a wheel is built, or else when they are first called.

A part of the package marks its loops with the decorators of a `Loops` (declarations.py): `inner` for those that only loops call,
and `entry` for those that Python calls. In: Python functions over numbers, addresses and arrays. Out: machine code, one module an
entry point (linking.py). `emission.py` makes a library of all of them for several kinds of processors; `library.py` finds it again,
and takes it only where it was made of these very sources. Where there is none, Numba compiles each loop at its first call.
"""
