"""A conformance suite for engines of constrained decoding: cases with verdicts, and what a backend makes of them.

protocol      what a backend is: compile, and a matcher of one text
vocabularies  the tokens that all backends are asked about
cases         data: sources with texts that they accept and reject, finite languages, walks
checks        what is asked of a matcher in a case
running       all cases, in processes that may die
report        a table, and JSON
backends      adapters, one a file

docs/conformance.md says what the columns mean and how to bring a backend.
"""
