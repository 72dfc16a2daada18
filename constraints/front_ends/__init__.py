"""What constraints are written in, a room for each language; every one lowers itself to the form of `grammar/`.

To add one, see CONTRIBUTING.md. In: a text, a type or a document. Out: calls of `Grammar`.
"""
