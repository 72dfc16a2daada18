"""What is asked and given back: a request, its progress as a sequence, its way through its constraint, its output.

In: a prompt, a constraint, sampling parameters. Out: events with tokens, and a finish reason.
"""
