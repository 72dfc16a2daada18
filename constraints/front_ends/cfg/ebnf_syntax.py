"""The text of a grammar in EBNF as a tree: XGrammar's notation, the W3C's, and ISO 14977, each with tokens of its own.

Sources: XGrammar, cpp/grammar_parser.cc (GBNF with `{2,-1}`, attributes and macros); W3C, XML 1.0, section 6; ISO/IEC 14977:1996.
With `::=` a rule ends where the next one begins, with `=` at its semicolon, so line ends mean nothing. The trees are those of
`gbnf_syntax.py`, and what is more here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from lark import Lark
from lark.exceptions import UnexpectedToken
from lark.lexer import Lexer

from ...base.errors import GrammarSyntaxError
from ...grammar.stopwatch import look
from ..regex.parser import syntax_error
from .syntax_tree import Token, Tree

NOTATIONS = ("xgrammar", "w3c", "iso")

_RULES = r"""
start: rule*
rule: DEFINED [attributes] "::=" alternatives
attributes: "[" _attribute ("," _attribute)* "]"
_attribute: ATTRIBUTE [EQUAL (STRING | INT | FLOAT | NAME)]
alternatives: sequence ("|" sequence)*
sequence: _item* [lookahead]
lookahead: "(" EQUAL alternatives ")"
_item: _operand | exception
exception: _operand "-" _operand
_operand: _primary | star | plus | optional | exactly | between
star: _primary "*"
plus: _primary "+"
optional: _primary "?"
exactly: _primary "{" INT "}"
between: _primary "{" INT "," [INT] "}"
_primary: value | group
group: "(" alternatives ")"
?value: STRING -> literal
      | CLASS -> char_class
      | CODE -> code
      | "." -> any
      | TOKEN -> token
      | NAME -> reference
      | macro
macro: MACRO "(" [_argument ("," _argument)*] ")"
_argument: pair | tuple | STRING | INT | NAME
pair: NAME EQUAL (STRING | INT | NAME | tuple)
tuple: "(" [_argument ("," _argument)* [","]] ")"
EQUAL: "="
%declare DEFINED ATTRIBUTE STRING CLASS CODE TOKEN NAME MACRO INT FLOAT
"""
_ISO_RULES = r"""
start: rule*
rule: NAME "=" alternatives _END
alternatives: sequence (_OR sequence)*
sequence: _term ("," _term)*
_term: _factor | exception
exception: _factor "-" _factor
_factor: _primary | times
times: INT "*" _primary
_primary: value | group | maybe | again | nothing
nothing:
group: "(" alternatives ")"
maybe: "[" alternatives "]"
again: "{" alternatives "}"
?value: STRING -> literal
      | NAME -> reference
      | SPECIAL -> special
%declare NAME STRING INT SPECIAL _END _OR
"""
_NAME = r"[A-Za-z_][A-Za-z0-9_.-]*"
_PUNCTUATION = r"""
  | (?P<DEFINES> ::= ) | (?P<EQUAL> = ) | (?P<LSQB> \[ ) | (?P<RSQB> \] ) | (?P<COMMA> , ) | (?P<VBAR> \| ) | (?P<LPAR> \( )
  | (?P<RPAR> \) ) | (?P<MINUS> - ) | (?P<STAR> \* ) | (?P<PLUS> \+ ) | (?P<QMARK> \? ) | (?P<LBRACE> \{ ) | (?P<RBRACE> \} )
  | (?P<DOT> \. )
"""
_DEFINED = rf"(?P<DEFINED> {_NAME} (?=\s*(?:\[[^\]\r\n]*\]\s*)?::=) )"
_TOKENS = {
    "xgrammar": re.compile(
        rf"""(?P<blank> \s+ | \#[^\r\n]* ) | {_DEFINED}
        | (?P<MACRO> (?:Regex|Substring|TagDispatch|TokenTagDispatch|Token|ExcludeToken) (?=\s*\() )
        | (?P<STRING> "(?:[^"\\\r\n]++|\\[^\r\n])*+" ) | (?P<CLASS> \[(?:[^\]\\\r\n]++|\\[^\r\n])*+\] ) | (?P<TOKEN> !?<[^>\r\n]*> )
        | (?P<FLOAT> [0-9]+\.[0-9]+ ) | (?P<INT> -?[0-9]+ ) | (?P<NAME> {_NAME} ) {_PUNCTUATION}""", re.VERBOSE,
    ),
    "w3c": re.compile(
        rf"""(?P<blank> \s+ | /\*(?:[^*]++|\*(?!/))*+\*/ ) | {_DEFINED}
        | (?P<STRING> "[^"]*" | '[^']*' ) | (?P<CODE> \#x[0-9A-Fa-f]+ ) | (?P<CLASS> \[(?:[^\]\r\n])+\] )
        | (?P<INT> [0-9]+ ) | (?P<NAME> {_NAME} ) {_PUNCTUATION}""", re.VERBOSE,
    ),
    "iso": re.compile(
        r"""(?P<blank> \s+ | \(\*(?!\))(?:[^*]++|\*(?!\)))*+\*\) )
        | (?P<STRING> "[^"]+" | '[^']+' ) | (?P<SPECIAL> \?[^?]*\? ) | (?P<INT> [0-9]+ )
        | (?P<NAME> [A-Za-z][A-Za-z0-9_]*(?:[ \t]+[A-Za-z0-9_]+)* ) | (?P<_END> ; | \. )
        | (?P<LSQB> \[ | \(/ ) | (?P<RSQB> \] | /\) ) | (?P<LBRACE> \{ | \(: ) | (?P<RBRACE> \} | :\) ) | (?P<_OR> \| | / | ! )
        | (?P<EQUAL> = ) | (?P<COMMA> , ) | (?P<LPAR> \( ) | (?P<RPAR> \) ) | (?P<MINUS> - ) | (?P<STAR> \* )""", re.VERBOSE,
    ),
}  # fmt: skip


class EbnfRule(NamedTuple):
    """One rule as written."""

    name: Token
    tree: Tree[Token]
    attributes: tuple[tuple[Token, Token | None], ...] = ()


class Tokens(Lexer):
    """Tokens of one notation."""

    def __init__(self, notation: str, _: Any = None) -> None:
        self.notation = notation

    def lex(self, data: Any, _: Any = None) -> Iterator[Any]:
        text, pattern = str(data), _TOKENS[self.notation]
        index, before = 0, ""
        in_attributes = False
        while index < len(text):
            look()
            match = pattern.match(text, index)
            kind = (match.lastgroup or "") if match else ""
            if before == "DEFINED" and text[index] == "[":
                kind, end, in_attributes = "LSQB", index + 1, True
            elif match is None:
                raise syntax_error(text, _unreadable(text, index), index)
            else:
                end = match.end()
            if in_attributes and kind in ("NAME", "RSQB"):
                in_attributes = kind == "NAME"
                kind = "ATTRIBUTE" if kind == "NAME" and before != "EQUAL" else kind
            if kind != "blank":
                before = kind
                yield Token("__ANON_0" if kind == "DEFINES" else kind, text[index:end], start_pos=index)
            index = end


@lru_cache
def _parser(notation: str) -> Lark:
    rules = _ISO_RULES if notation == "iso" else _RULES
    return Lark(rules, parser="lalr", lexer=_lexer_class(notation), maybe_placeholders=True, tree_class=Tree)


def _lexer_class(notation: str) -> type[Lexer]:
    return type("NotationTokens", (Tokens,), {"__init__": lambda self, _=None: Tokens.__init__(self, notation)})


def notation_of(text: str) -> str:
    """The notation that a text is written in, judged by what only one of them has."""
    if "::=" not in text:
        return "iso"
    is_w3c = re.search(r"#x[0-9A-Fa-f]|/\*|(?:::=|[\s(|])'[^'\n]*'", text)
    return "w3c" if is_w3c and not re.search(r'\\["nrtxu]', text) else "xgrammar"


def parse(text: str, notation: str) -> list[EbnfRule]:
    """The rules of a grammar in the order written. Raises `GrammarSyntaxError`."""
    try:
        tree: Any = _parser(notation).parse(text)
    except UnexpectedToken as error:
        raise _unexpected(text, error) from None
    rules = [_rule(text, rule) for rule in tree.children if isinstance(rule, Tree)]
    if notation == "xgrammar":
        for rule in rules:
            _check_form(text, rule)
    return rules


def _check_form(text: str, rule: EbnfRule) -> None:
    """Check what the notation of XGrammar asks for beyond what its tokens tell. Raises `GrammarSyntaxError`."""
    at = rule.name.start_pos or 0
    line = text[text.rfind("\n", 0, at) + 1 : at]
    if line.strip():
        raise syntax_error(text, f"the rule {str(rule.name)!r} does not begin on a line of its own", at)
    for alternatives in rule.tree.find_data("alternatives"):
        for one in alternatives.children:
            may_be_empty = len(alternatives.children) == 1 and alternatives is not rule.tree  # as ( ) is
            if isinstance(one, Tree) and not any(one.children) and not may_be_empty:
                beside = next(alternatives.scan_values(lambda value: isinstance(value, Token)), rule.name)
                reason = 'an alternative is empty, expected "" or an expression'
                raise syntax_error(text, reason, beside.start_pos or 0)


def _rule(text: str, tree: Tree[Token]) -> EbnfRule:
    name, body = tree.children[0], tree.children[-1]
    assert isinstance(name, Token) and isinstance(body, Tree)
    name = Token("NAME", " ".join(name.split()), start_pos=name.start_pos)
    found: list[tuple[Token, Token | None]] = []
    attributes = tree.children[1]
    if isinstance(attributes, Tree) and attributes.data == "attributes":
        tokens = [token for token in attributes.children if isinstance(token, Token) and token.type != "EQUAL"]
        for token in tokens:
            if token.type == "ATTRIBUTE":
                if any(known == token for known, _ in found):
                    raise syntax_error(text, f"{str(token)!r} is said twice", token.start_pos or 0)
                found.append((token, None))
            else:
                found[-1] = (found[-1][0], token)
    return EbnfRule(name, body, tuple(found))


# -- errors -------------------------------------------------------------------------------------------------------------

_WORDS = {
    "DEFINED": "a rule name", "NAME": "a rule name", "__ANON_0": "::=", "EQUAL": "=", "VBAR": "|", "_OR": "|", "RPAR": ")",
    "RSQB": "]", "RBRACE": "}", "COMMA": ",", "INT": "a number", "FLOAT": "a number", "_END": ";", "MINUS": "-", "$END": "the end",
    "LPAR": "(", "LSQB": "[", "LBRACE": "{", "STRING": "a string", "ATTRIBUTE": "an attribute",
}  # fmt: skip
_BEGINS = {"STRING", "CLASS", "CODE", "DOT", "TOKEN", "MACRO", "LPAR", "SPECIAL", "NAME", "LSQB", "LBRACE", "INT"}
_REPETITIONS = {"STAR", "PLUS", "QMARK", "LBRACE"}


def _unexpected(text: str, error: UnexpectedToken) -> GrammarSyntaxError:
    token, expected = error.token, set(error.accepts or error.expected)
    if token.type == "$END":
        return syntax_error(text, f"the grammar ends early, expected {_listed(expected)}", len(text.rstrip()))
    if token.type == "LSQB" and "LSQB" not in expected:
        return syntax_error(text, _unreadable(text, token.start_pos or 0), token.start_pos or 0)
    found = repr(str(token)[:40])
    if token.type in _REPETITIONS and not _REPETITIONS & expected:
        reason = (
            f"there is nothing before {found} that it could repeat; for a repetition of a repetition use parentheses"
        )
        return syntax_error(text, reason, token.start_pos or 0)
    return syntax_error(text, f"unexpected {found}, expected {_listed(expected)}", token.start_pos or 0)


def _listed(expected: set[str]) -> str:
    words = []
    if {"STRING", "LPAR", "NAME"} <= expected:
        words.append("an expression")
        expected = expected - _BEGINS
    return " or ".join([*words, *sorted({_WORDS.get(name, name) for name in expected - _REPETITIONS})])


def _unreadable(text: str, index: int) -> str:
    closers = {'"': "a string", "'": "a string", "[": "a character class", "?": "a special sequence", "<": "a token"}
    char = text[index]
    if text.startswith("/*", index):
        return "a comment that is never closed"
    return f"{closers[char]} that is never closed" if char in closers else f"unexpected {char!r}"
