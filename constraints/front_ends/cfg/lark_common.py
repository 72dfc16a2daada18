"""The terminals of lark's libraries, as `%import common.NAME` brings them, with the same names (lark/grammars/*.lark).

Strings and block comments are written as what lark's own patterns match first, because a terminal here is a set of texts: lark's
`/.*?/` ends at the first quote, so the characters before it are no quotes. Assertions about what follows a terminal are left out,
they say nothing about its text.
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

_PYTHON = r'''
NAME: /[^\W\d]\w*/
COMMENT: /#[^\n]*/
ASYNC: "async"
AWAIT: "await"
_NEWLINE: (/\r?\n[\t ]*/ | COMMENT)+

_PREFIX: /[ubf]?r?|r[ubf]/i
STRING: _PREFIX (/"([^"\\\n]|\\.)*"/ | /'([^'\\\n]|\\.)*'/)
LONG_STRING: _PREFIX (/"{3}("{0,2}([^"\\]|\\.))*"{3}/s | /'{3}('{0,2}([^'\\]|\\.))*'{3}/s)

_SPECIAL_DEC: "0".."9" ("_"? "0".."9")*
DEC_NUMBER: "1".."9" ("_"? "0".."9")* | "0" ("_"? "0")*
HEX_NUMBER: "0" ("x" | "X") ("_"? ("0".."9" | "a".."f" | "A".."F"))+
OCT_NUMBER: "0" ("o" | "O") ("_"? "0".."7")+
BIN_NUMBER: "0" ("b" | "B") ("_"? "0".."1")+
_EXP: ("e" | "E") ["+" | "-"] _SPECIAL_DEC
DECIMAL: "." _SPECIAL_DEC | _SPECIAL_DEC "." _SPECIAL_DEC?
FLOAT_NUMBER: _SPECIAL_DEC _EXP | DECIMAL _EXP?
IMAG_NUMBER: (_SPECIAL_DEC | FLOAT_NUMBER) ("J" | "j")
'''

_UNICODE = r"""
WS_INLINE: /[ \t\xa0]/+
WS: /[ \t\xa0\f\r\n]/+
"""

LIBRARIES = {"common": COMMON, "python": _PYTHON, "unicode": _UNICODE}
