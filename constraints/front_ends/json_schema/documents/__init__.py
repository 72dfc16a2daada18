"""Schema documents as they are written: drafts, addresses and references, keywords and their values, what is enforced.

In: JSON. Out: sites (a schema with its place and draft) whose keywords have been checked.
"""
