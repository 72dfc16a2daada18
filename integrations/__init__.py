"""Maskwright inside other engines, one module each; each imports its engine only when it is used."""
