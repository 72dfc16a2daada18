"""Maskwright inside the engines that people already run: one module an engine, which is imported only where the engine is.

sources    what a request to such an engine says, as a constraint
"""
