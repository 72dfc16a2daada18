"""Named parts of a finished text: all ways to read it as a grammar, and what each capture has read.

In: a source with captures and a text. Out: `Capture`s.
"""
