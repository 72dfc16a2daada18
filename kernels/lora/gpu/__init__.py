"""Grouped products in Triton."""
