"""Several ranks, each with a share of one model: who holds what, what of a stored tensor that is, and how they add up.

It knows tensors and processes, never models: which tensor is cut how is told by `engine/parallel/plan.py`.
"""
