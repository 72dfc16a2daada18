"""Context-free grammars as people write them: GBNF, EBNF in three notations, and lark's language with llguidance's extensions.

In: a text. Out: rules of `Grammar`, budgets and captures; errors with line, column and caret.
"""
