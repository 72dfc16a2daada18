"""Compiled constraints in files."""
