"""Maskwright inside the engines that people already run: one module an engine, which is imported only where the engine is.

columns    tables, a piece at a time, for Ray Data
sources    what a request to such an engine says, as a constraint
"""
