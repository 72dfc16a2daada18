"""The two halves of a step: one packed forward pass, and the draw of the next tokens.

In: a batch. Out: logits; drawn tokens with their log-probabilities.
"""
