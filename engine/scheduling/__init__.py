"""Who computes what in the next step: policies, admission to the batch, preemption, and who is suspected when a step fails.

In: sequences that wait or run. Out: a batch of chunks.
"""
