"""Models: from a folder's config and weights to hidden states and logits, native families and those of transformers.

In: packed token ids and a plan of attention. Out: logits of the rows asked for.
"""
