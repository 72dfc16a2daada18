"""Tensor parallel: one model computed by several ranks, each with a share of every layer.

Rank 0 is the process that has the engine: it plans, masks and draws. The others follow it: each is a process of its own that is
told what a step computes, and computes its share. `plan.py` says which share that is, of any native family.
"""
