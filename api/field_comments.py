"""What the source of a dataclass says about its fields: help of the command line, descriptions of the server's parameters."""

from __future__ import annotations

import inspect
import io
import tokenize
from dataclasses import is_dataclass


def field_comments(cls: type) -> dict[str, str]:
    """Field name -> the comment at the end of the statement that declares it, in the class or a dataclass it extends."""
    comments: dict[str, str] = {}
    for each in reversed(cls.__mro__):
        if is_dataclass(each):
            comments |= _own_comments(each)
    return comments


def _own_comments(cls: type) -> dict[str, str]:
    comments, name = dict[str, str](), None
    for token in tokenize.generate_tokens(io.StringIO(inspect.getsource(cls)).readline):
        if token.type == tokenize.NAME and name is None and token.line.lstrip().startswith(f"{token.string}:"):
            name = token.string
        elif token.type == tokenize.COMMENT and name is not None:
            comments[name] = token.string.lstrip("# ")
        elif token.type == tokenize.NEWLINE:
            name = None
    return comments
