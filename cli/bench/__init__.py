"""Measurements of a model on this machine: `maskwright bench`. Comparisons with other engines are in `benchmarks/`."""
