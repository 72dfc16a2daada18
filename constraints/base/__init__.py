"""What the whole constraint core speaks of: its errors, characters as bytes (UTF-8), and the kinds of nodes by number.

In: nothing. Out: `ConstraintError` and its kinds, `Kind`, sets of characters as byte sequences.
"""
