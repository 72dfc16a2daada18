"""Constraints as tables on the device, filled by the host when a sequence gets somewhere new.

In: states and masks of `constraints/`. Out: arrays that kernels of `kernels/automaton/` read.
"""
