"""The text of a grammar in lark's notation as a tree: tokens found here, parsed with lark's own LALR(1) tables, no recursion.

Sources: lark's grammar of grammars (lark/grammars/lark.lark, docs/grammar.md) and llguidance's variant of it (docs/syntax.md,
docs/parametric.md): `-` in names, `#` comments, `{2,4}`, `&` and `~` in terminals, attributes in brackets, `%json`, `%regex`,
`%lark`, special tokens, parameters. A definition ends where its line ends, except inside parentheses and before a line that
begins with `|`, `&` or `->`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NoReturn

from lark import Lark
from lark.exceptions import UnexpectedToken
from lark.lexer import Lexer

from ...base.errors import GrammarSyntaxError
from ...grammar.stopwatch import look
from ..regex.parser import syntax_error
from .syntax_tree import Token, Tree

NOTATION = r"""
start: (_statement (_NL _statement)*)?
_statement: rule | terminal | ignore | import | import_many | declare | override | extend | options

rule: _modifiers? RULE [PARAMETER] [template] [PRIORITY] [attributes] ":" alternatives
terminal: TERMINAL [PARAMETER] [template] [PRIORITY] [attributes] ":" alternatives
template: "{" _name ("," _name)* "}"
attributes: "[" (attribute ("," attribute)*)? "]"
attribute: RULE ["=" (STRING | REGEXP | RULE | TERMINAL | NUMBER)]
_modifiers: ("?" | "!")+
ignore: _IGNORE alternatives
import: _IMPORT path [_ARROW _name]
import_many: _IMPORT path "(" _name ("," _name)* ")"
path: [DOT] _name (DOT _name)*
declare: _DECLARE _name+
override: _OVERRIDE (rule | terminal)
extend: _EXTEND (rule | terminal)
options: _OPTIONS JSON
_name: RULE | TERMINAL

alternatives: alternative ("|" alternative)*
alternative: conjunction [_ARROW _name] [CONDITION]
conjunction: sequence ("&" sequence)*
sequence: _expression*
_expression: _atom | star | plus | optional | counted
star: _atom "*"
plus: _atom "+"
optional: _atom "?"
counted: _atom COUNT
_atom: value | group | maybe | negation
group: "(" alternatives ")"
maybe: "[" alternatives "]"
negation: "~" _atom
?value: STRING -> literal
      | STRING _DOTS STRING -> range
      | REGEXP -> regexp
      | _name -> reference
      | _name PARAMETER -> parametric
      | _name "{" alternatives ("," alternatives)* "}" -> use
      | TOKEN -> token
      | GRAMMAR -> subgrammar
      | _JSON JSON -> json
      | _REGEX JSON -> structured
      | BLOCK -> block

%declare _NL RULE TERMINAL PARAMETER PRIORITY STRING REGEXP NUMBER TOKEN GRAMMAR JSON BLOCK COUNT CONDITION
_ARROW: "->"
_DOTS: ".."
DOT: "."
%declare _IGNORE _IMPORT _DECLARE _OVERRIDE _EXTEND _OPTIONS _JSON _REGEX
"""

_NAME = r"_*(?:[a-z](?:[a-z0-9_]|-(?!>))*|[A-Z](?:[A-Z0-9_]|-(?!>))*)"
_TOKENS = re.compile(
    rf"""
    (?P<blank> [ \t\f]+ | (?://|\#)[^\r\n]* )
  | (?P<_NL> \r?\n | \r )
  | (?P<PARAMETER> ::[ \t]* )
  | (?P<_ARROW> -> )
  | (?P<_DOTS> \.\. )
  | (?P<PRIORITY> \.-?[0-9]+ )
  | (?P<COUNT> \{{[ \t]*[0-9,][0-9,\ \t]*\}} | ~[ \t]*[0-9]+(?:[ \t]*\.\.[ \t]*[0-9]+)? )
  | (?P<NUMBER> [+-]?[0-9]+(?:\.[0-9]+)? )
  | (?P<NAME> {_NAME} (?![A-Za-z0-9_]) )
  | (?P<STRING> "(?:[^"\\\r\n]++|\\[^\r\n])*+"i? )
  | (?P<REGEXP> /(?!/) (?: (?:[^/\\\r\n]++|\\[^\r\n])*+/[a-z]* | (?:[^/\\]++|\\.)*+/[a-z]*x[a-z]* ) )
  | (?P<TOKEN> <[^>\s]*> )
  | (?P<GRAMMAR> @[A-Za-z0-9_-]+ )
  | (?P<WORD> %[a-z_]* )
  | (?P<COLON> : ) | (?P<COMMA> , ) | (?P<LBRACE> \{{ ) | (?P<RBRACE> \}} ) | (?P<LSQB> \[ ) | (?P<RSQB> \] ) | (?P<EQUAL> = )
  | (?P<QMARK> \? ) | (?P<BANG> ! ) | (?P<LPAR> \( ) | (?P<RPAR> \) ) | (?P<DOT> \. ) | (?P<VBAR> \| ) | (?P<AMPERSAND> & )
  | (?P<STAR> \* ) | (?P<PLUS> \+ ) | (?P<TILDE> ~ )
    """,
    re.VERBOSE | re.DOTALL,
)
_WORDS = {
    "%ignore": "_IGNORE", "%import": "_IMPORT", "%declare": "_DECLARE", "%override": "_OVERRIDE", "%extend": "_EXTEND",
    "%llguidance": "_OPTIONS", "%grammar_options": "_OPTIONS", "%json": "_JSON", "%regex": "_REGEX",
}  # fmt: skip
_BEFORE_JSON = {"_OPTIONS", "_JSON", "_REGEX"}
_UNFINISHED = {"", "VBAR", *_BEFORE_JSON}  # behind which the next line goes on
_CONTINUES = {"VBAR", "AMPERSAND", "_ARROW"}  # a line that begins so goes on with the definition before it
_EXPRESSION = re.compile(r"[A-Za-z0-9_]*")  # a parameter or a condition, up to its parentheses


class Tokens(Lexer):
    """Tokens of the notation. Line ends come out only where they end a statement."""

    def __init__(self, _: Any = None) -> None:
        pass

    def lex(self, data: Any, _: Any = None) -> Iterator[Any]:
        text = str(data)
        depth, newline, last = 0, None, ""
        for token in _tokens(text):
            look()
            if token.type == "_NL":
                newline = newline or token
                continue
            if newline is not None and depth == 0 and last not in _UNFINISHED and token.type not in _CONTINUES:
                yield newline
            newline, last = None, token.type
            depth += (token.type in ("LPAR", "LSQB", "LBRACE")) - (token.type in ("RPAR", "RSQB", "RBRACE"))
            yield token


def _tokens(text: str) -> Iterator[Token]:
    index, wants_json = 0, False
    while index < len(text):
        match = _TOKENS.match(text, index)
        if match is None:
            raise syntax_error(text, _unreadable(text, index), index)
        kind, end = match.lastgroup or "", match.end()
        if wants_json and kind != "blank" and kind != "_NL":
            if kind != "LBRACE":
                raise syntax_error(text, "a JSON object in braces is expected here", index)
            kind, end = "JSON", _end_of_json(text, index)
        if kind == "NAME":
            kind = "TERMINAL" if match[0].lstrip("_")[0].isupper() else "RULE"
        elif kind == "PARAMETER":
            end = _end_of_expression(text, match.end(), "a parameter")
        elif kind == "WORD":
            kind, end = _word(text, match)
        if kind != "blank":
            yield Token(kind, text[index:end], start_pos=index)
            wants_json = kind in _BEFORE_JSON or (wants_json and kind == "_NL")
        index = end


def _word(text: str, match: re.Match[str]) -> tuple[str, int]:
    """The kind and the end of a token that begins with %."""
    if match[0] == "%if":
        begin = match.end() + len(text[match.end() :]) - len(text[match.end() :].lstrip(" \t"))
        return "CONDITION", _end_of_expression(text, begin, "a condition")
    if match[0] == "%lark":
        opening = re.compile(r"\s*\{").match(text, match.end())
        if opening is None:
            raise syntax_error(text, "a grammar in braces is expected behind %lark", match.end())
        return "BLOCK", _end_of_block(text, opening.end(), match.start())
    if match[0] not in _WORDS:
        known = " ".join([*_WORDS, "%lark", "%if"])
        raise syntax_error(text, f"there is no {match[0]}, expected one of {known}", match.start())
    return _WORDS[match[0]], match.end()


def _end_of_json(text: str, start: int) -> int:
    """The index behind the JSON object that begins at `start`."""
    depth = 0
    for match in re.compile(r'"(?:[^"\\]++|\\.)*+"|[{}\[\]]', re.DOTALL).finditer(text, start):
        depth += (match[0] in "{[") - (match[0] in "}]")
        if depth == 0 and match[0] in "}]":
            return match.end()
    raise syntax_error(text, "a JSON object that is never closed", start)


def _end_of_block(text: str, start: int, begin: int) -> int:
    """The index behind the brace that closes the inline grammar whose text begins at `start`."""
    depth, index = 1, start
    while index < len(text):
        match = _TOKENS.match(text, index)
        if match is None:
            raise syntax_error(text, _unreadable(text, index), index)
        index = match.end()
        depth += (match.lastgroup == "LBRACE") - (match.lastgroup == "RBRACE")
        if depth == 0:
            return index
    raise syntax_error(text, "an inline grammar that is never closed", begin)


def _end_of_expression(text: str, start: int, name: str) -> int:
    """Where `_`, a number, a name, or a name with arguments in parentheses ends."""
    match = _EXPRESSION.match(text, start)
    if match is None or not match[0]:
        raise syntax_error(text, f"{name} is expected here", start)
    index, depth = match.end(), 0
    while index < len(text) and (depth > 0 or text[index] == "(") and text[index] not in "\r\n":
        depth += (text[index] == "(") - (text[index] == ")")
        index += 1
        if depth == 0:
            return index
    if depth:
        raise syntax_error(text, "a parenthesis that is never closed", match.end())
    return match.end()


@lru_cache
def _parser() -> Lark:
    return Lark(NOTATION, parser="lalr", lexer=Tokens, maybe_placeholders=True, tree_class=Tree)


def parse(text: str) -> list[Tree[Token]]:
    """The statements of a grammar in the order written. Raises `GrammarSyntaxError`."""
    try:
        return list(_parser().parse(text).children)  # type: ignore[arg-type]
    except UnexpectedToken as error:
        raise _unexpected(text, error) from None


# -- errors -------------------------------------------------------------------------------------------------------------

_STARTS = {"STRING", "REGEXP", "LPAR"}
_REPETITIONS = {"STAR", "PLUS", "QMARK", "COUNT"}
_NAMES = {
    "RULE": "a rule name", "TERMINAL": "a terminal name", "_NL": "a new line", "VBAR": "|", "RPAR": ")", "RSQB": "]",
    "RBRACE": "}", "COLON": ":", "COMMA": ",", "_ARROW": "->", "_DOTS": "..", "EQUAL": "=", "AMPERSAND": "&", "LSQB": "[",
    "LBRACE": "{", "$END": "the end", "STRING": "a string", "NUMBER": "a number", "JSON": "a JSON object", "TILDE": "~",
    "REGEXP": "a regular expression", "LPAR": "(", "_IGNORE": "%ignore", "_IMPORT": "%import", "_DECLARE": "%declare",
    "_OVERRIDE": "%override", "_EXTEND": "%extend", "_OPTIONS": "%llguidance", "PRIORITY": "a priority", "CONDITION": "%if",
    "PARAMETER": "a parameter ::", "DOT": ".", "BANG": "!", "QMARK": "?",
}  # fmt: skip
_STATEMENTS = {"_IGNORE", "_IMPORT", "_DECLARE"}


def _unexpected(text: str, error: UnexpectedToken) -> GrammarSyntaxError:
    token, expected = error.token, set(error.accepts or error.expected)
    if token.type == "$END":
        return syntax_error(text, f"the grammar ends early, expected {_listed(expected)}", len(text.rstrip()))
    found = "this new line" if token.type == "_NL" else repr(str(token)[:40])
    if token.type in _REPETITIONS and not _REPETITIONS & expected:
        return syntax_error(text, f"there is nothing before {found} that it could repeat", token.start_pos or 0)
    return syntax_error(text, f"unexpected {found}, expected {_listed(expected)}", token.start_pos or 0)


def _listed(expected: set[str]) -> str:
    """What may stand somewhere, in words; all that begins an expression, or a statement, as one."""
    words = []
    if expected >= _STARTS:
        words.append("an expression")
        expected = (
            expected - _STARTS - {"RULE", "TERMINAL", "LSQB", "TILDE", "_JSON", "_REGEX", "TOKEN", "GRAMMAR", "BLOCK"}
        )
    if expected >= _STATEMENTS:
        words.append("a definition such as name: ...")
        expected = expected - _STATEMENTS - {"RULE", "TERMINAL", "_OVERRIDE", "_EXTEND", "_OPTIONS", "QMARK", "BANG"}
    return " or ".join([*words, *sorted(_NAMES.get(name, name) for name in expected - _REPETITIONS)])


def _unreadable(text: str, index: int) -> str:
    known = {
        '"': "a string that is never closed", "/": "a regular expression that is never closed", "<": "a token that is never closed",
        "'": "unexpected '; strings are written in double quotes",
    }  # fmt: skip
    if text[index].isalpha():
        return "a name is all lower case (a rule) or all upper case (a terminal)"
    return known.get(text[index], f"unexpected {text[index]!r}")


def fail_at(text: str, token: Token, reason: str) -> NoReturn:
    raise syntax_error(text, reason, token.start_pos or 0)
