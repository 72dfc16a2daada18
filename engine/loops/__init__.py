"""The loops that run steps: plain, overlapped, several steps a visit; and what each does when something fails.

In: an engine's sequences. Out: events.
"""
