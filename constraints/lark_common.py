"""The terminals that `%import common.NAME` brings: those of lark/grammars/common.lark, with the same names.

Strings and block comments are written as what lark's own patterns match first, because a terminal here is a set of texts: lark's
`/.*?/` ends at the first quote, so the characters before it are no quotes.
"""

COMMON = r"""
DIGIT: "0".."9"
HEXDIGIT: "a".."f" | "A".."F" | DIGIT

INT: DIGIT+
SIGNED_INT: ["+" | "-"] INT
DECIMAL: INT "." INT? | "." INT

_EXP: ("e" | "E") SIGNED_INT
FLOAT: INT _EXP | DECIMAL _EXP?
SIGNED_FLOAT: ["+" | "-"] FLOAT

NUMBER: FLOAT | INT
SIGNED_NUMBER: ["+" | "-"] NUMBER

_STRING_INNER: /.*?/
_STRING_ESC_INNER: /([^"\\\n]|\\.)*/
ESCAPED_STRING: "\"" _STRING_ESC_INNER "\""

LCASE_LETTER: "a".."z"
UCASE_LETTER: "A".."Z"
LETTER: UCASE_LETTER | LCASE_LETTER
WORD: LETTER+
CNAME: ("_" | LETTER) ("_" | LETTER | DIGIT)*

WS_INLINE: (" " | /\t/)+
WS: /[ \t\f\r\n]/+
CR: /\r/
LF: /\n/
NEWLINE: (CR? LF)+

SH_COMMENT: /#[^\n]*/
CPP_COMMENT: /\/\/[^\n]*/
C_COMMENT: /\/\*([^*]|\*+[^*\/])*\*+\//
SQL_COMMENT: /--[^\n]*/
"""
