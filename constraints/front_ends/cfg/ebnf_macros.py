"""Macros of XGrammar's EBNF: patterns, runs of given texts, text that turns into rules at a tag, tokens.

Source: XGrammar's documentation, "EBNF Grammar" (0.2.6), sections Regex to TokenTagDispatch. A pattern in `Regex` is read as that
page says: classes and case are ASCII, and without `flags` a dot is any character, the end of a line included.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NoReturn

from ...base.errors import GrammarSyntaxError, UnsupportedKeyword
from ...base.utf8 import Ranges, invert, normalize
from ...grammar.excluded_strings import Outcome, text_until
from ...grammar.expression import EMPTY, FAIL, Grammar, Node
from ...grammar.source import Limits
from ...grammar.stages import Budgets
from ...grammar.tokens import one_of_tokens, token_of, tokens_but
from ...vocabulary.vocabulary import token_spelling
from ..regex.lark_dialect import parse_lark_regex
from ..regex.parser import line_and_column
from ..regex.regex import lower_tree
from ..regex.substrings import runs_of
from ..regex.tree import Tree as Pattern
from ..regex.tree import within
from .gbnf_syntax import fail_at
from .syntax_tree import Token, Tree

_DISPATCHES = ("TagDispatch", "TokenTagDispatch")
_FLAGS = frozenset("isu")
_IN_JSON_STRING = invert(normalize([(0x00, 0x1F), (ord('"'), ord('"')), (ord("\\"), ord("\\"))]))

Value = Token | Tree[Token]


@dataclass(frozen=True)
class Call:
    """A macro with its arguments as written."""

    name: Token
    values: list[Value] = field(default_factory=list)
    options: dict[str, Value] = field(default_factory=dict)

    @classmethod
    def of(cls, tree: Tree[Token]) -> Call:
        name = tree.children[0]
        assert isinstance(name, Token)
        call = cls(name)
        for one in tree.children[1:]:
            if isinstance(one, Tree) and one.data == "pair":
                key, value = one.children[0], one.children[-1]
                call.options[str(key)] = value
            elif one is not None:
                call.values.append(one)
        return call


def rules_called(tree: Tree[Token]) -> list[Token]:
    """The rules that the macros of an expression name."""
    calls = (Call.of(macro) for macro in tree.find_data("macro") if macro.children[0] in _DISPATCHES)
    pairs = (value for call in calls for value in call.values if isinstance(value, Tree))
    return [token for pair in pairs for token in pair.children if isinstance(token, Token) and token.type == "NAME"]


@dataclass
class Macros:
    """Lowers the macros of one grammar. `string_text`: what a string in it means."""

    text: str
    grammar: Grammar
    limits: Limits
    budgets: Budgets
    string_text: Callable[[Token], str]

    def lower(self, tree: Tree[Token], rules: Mapping[str, Node], repeated: bool) -> Node:
        """`repeated`: it stands under `*` or `+`. Raises `GrammarSyntaxError`, and `UnsupportedKeyword` for tokens."""
        call = Call.of(tree)
        match str(call.name):
            case "Regex":
                return self._regex(call)
            case "Substring":
                self._check_options(call)
                return self._lowered(runs_of([self._string(call, one) for one in call.values], self.limits))
            case "TagDispatch":
                return self._dispatch(call, rules, self._tag)
            case "TokenTagDispatch":
                return self._dispatch(call, rules, self._token)
            case "Token":
                self._check_options(call)
                return one_of_tokens(self.grammar, [self._token_id(call, one) for one in self._some(call)], self.budgets)
        self._check_options(call)
        without = [self._token_id(call, one) for one in call.values]
        return tokens_but(self.grammar, without, self.budgets, repeated=repeated)

    # -- patterns ---------------------------------------------------------------------------------------------------

    def _regex(self, call: Call) -> Node:
        self._check_options(call, "flags", "json_string")
        if len(call.values) != 1:
            self._fail(call, "Regex takes one pattern, a string")
        written, flags = self._string(call, call.values[0]), "s"
        if "flags" in call.options:
            flags = self._string(call, call.options["flags"])
            if not set(flags) <= _FLAGS:
                self._fail(call, f"flags are out of {' '.join(sorted(_FLAGS))}, not {flags!r}")
        try:
            pattern = parse_lark_regex(written, flags + "a", self.limits)
        except GrammarSyntaxError as error:
            fail_at(self.text, call.values[0], error.reason.split("\n")[0])  # type: ignore[arg-type]
        return self._lowered(within(pattern, _IN_JSON_STRING) if self._flag(call, "json_string", False) else pattern)

    def _lowered(self, pattern: Pattern) -> Node:
        def character(ranges: Ranges) -> Node:
            is_one = len(ranges) == 1 and ranges[0][0] == ranges[0][1]
            return self.grammar.literal(chr(ranges[0][0])) if is_one else self.grammar.chars(ranges)

        return lower_tree(self.grammar, pattern, full=True, unit=character, limits=self.limits)

    # -- text with tags ---------------------------------------------------------------------------------------------

    def _dispatch(self, call: Call, rules: Mapping[str, Node], spelled: Callable[[Call, Value], bytes]) -> Node:
        """Text up to the first of some tags, the rule of that tag, and text again. The whole may end wherever it is
        text."""
        self._check_options(call, "loop_after_dispatch", "excludes")
        grammar = self.grammar
        rule = grammar.rule(str(call.name))
        again = grammar.call(rule) if self._flag(call, "loop_after_dispatch", True) else EMPTY
        excluded = call.options.get("excludes")
        if excluded is not None and not (isinstance(excluded, Tree) and excluded.data == "tuple"):
            self._fail(call, "excludes is a tuple")
        texts = excluded.children if isinstance(excluded, Tree) else []
        without = tuple(spelled(call, one) for one in texts if one is not None)
        outcomes = {text: Outcome(FAIL, None) for text in without}
        others = self._special_tokens() if call.name == "TokenTagDispatch" else []
        outcomes = dict.fromkeys(others, Outcome(grammar.call(rule), None)) | outcomes
        found: dict[bytes, Node] = {}
        for value in call.values:
            tag, name = self._pair(call, value)
            begin = spelled(call, tag)
            if not begin:
                self._fail(call, f"the tag {tag!s} is empty, or a token that ends the output")
            if begin.startswith(without):
                self._fail(call, f"what is excluded begins the tag {tag!s}")
            after = grammar.seq(rules[str(name)], again)
            after = FAIL if begin.endswith(without) else after
            found[begin] = grammar.alt(found.get(begin, FAIL), after)
        sizes = sorted({len(begin) for begin in found})
        for longer in found:  # where a tag begins another one, either may be meant
            for size in sizes[: bisect_left(sizes, len(longer))]:
                begin = longer[:size]
                if begin in found:
                    found[begin] = grammar.alt(found[begin], grammar.seq(grammar.literal(longer[size:]), found[longer]))
        outcomes |= {begin: Outcome(after, None) for begin, after in found.items()}
        return text_until(grammar, rule, outcomes, EMPTY, None, self.limits)

    def _pair(self, call: Call, value: Value) -> tuple[Value, Token]:
        parts = [one for one in value.children if one is not None] if isinstance(value, Tree) else []
        if len(parts) != 2 or not isinstance(parts[1], Token) or parts[1].type != "NAME":
            self._fail(call, f"{call.name} takes pairs of a tag and a rule")
        return parts[0], parts[1]

    def _tag(self, call: Call, value: Value) -> bytes:
        text = self._string(call, value).encode()
        if not text:
            self._fail(call, "a tag is not empty")
        return text

    # -- tokens -----------------------------------------------------------------------------------------------------

    def _token(self, call: Call, value: Value) -> bytes:
        """The bytes that spell a special token; no bytes for a token that ends the output."""
        token = self._token_id(call, value)
        if token not in self.grammar.special_tokens.values() and token not in self.grammar.end_tokens:
            line, column = self._place(call)
            reason, instead = f"token {token} is text, which may be in other tokens too", "TagDispatch with its text"
            raise UnsupportedKeyword(reason, keyword=str(call.name), instead=instead, line=line, column=column)
        return b"" if token in self.grammar.end_tokens else token_spelling(token)

    def _special_tokens(self) -> list[bytes]:
        """The spellings of all special tokens that do not end the output, as automata read them."""
        names = self.grammar.special_tokens
        return [spelled for name in names if (spelled := self.grammar.token(name))]

    def _token_id(self, call: Call, value: Value) -> int:
        if not isinstance(value, Token) or value.type != "INT" or value.startswith("-") or len(value) > 9:
            self._fail(call, f"{call.name} takes ids of tokens")
        return token_of(self.grammar, f"<[{int(value)}]>", *self._place(call))

    # -- arguments --------------------------------------------------------------------------------------------------

    def _some(self, call: Call) -> list[Value]:
        if not call.values:
            self._fail(call, f"{call.name} takes at least one id of a token")
        return call.values

    def _string(self, call: Call, value: Value) -> str:
        if not isinstance(value, Token) or value.type != "STRING":
            self._fail(call, f"{call.name} takes strings here")
        return self.string_text(value)

    def _flag(self, call: Call, name: str, default: bool) -> bool:
        value = call.options.get(name)
        if value is not None and value not in ("true", "false"):
            self._fail(call, f"{name} is true or false")
        return default if value is None else value == "true"

    def _check_options(self, call: Call, *known: str) -> None:
        for name in call.options:
            if name not in known:
                expected = f", expected {' or '.join(known)}" if known else ""
                self._fail(call, f"{call.name} has no option {name!r}{expected}")

    def _place(self, call: Call) -> tuple[int, int]:
        return line_and_column(self.text, call.name.start_pos or 0)

    def _fail(self, call: Call, reason: str) -> NoReturn:
        fail_at(self.text, call.name, reason)
