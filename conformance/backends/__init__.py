"""Adapters of engines, one a file; each imports its engine only when it is asked for."""
