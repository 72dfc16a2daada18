"""EBNF as constraints, in the notations of XGrammar, of the W3C and of ISO 14977."""

from __future__ import annotations

from dataclasses import dataclass, field

from lark import Token, Tree

from .budgeted_text import BudgetedText
from .ebnf_syntax import NOTATIONS, EbnfRule, notation_of, parse
from .errors import ConstraintError, GrammarSyntaxError, UnsupportedKeyword
from .expression import EMPTY, Grammar, Kind, Node
from .gbnf import RuleLowering, calls_of, check_defined, lower_rules, undefined
from .gbnf_syntax import RuleText, fail_at
from .recursion import reachable
from .regex import lower_tree
from .regex_lark import FLAGS, parse_lark_regex
from .regex_parser import line_and_column, syntax_error
from .regex_tree import Tree as Pattern
from .source import Limits
from .stages import Budgets, budgeted_root
from .substrings import runs_of
from .utf8 import ALL, MAX_CODE_POINT, SURROGATES, Ranges, invert, normalize

_ESCAPES = {
    "n": 0x0A, "r": 0x0D, "t": 0x09, "f": 0x0C, "v": 0x0B, "a": 0x07, "b": 0x08, "0": 0x00, "e": 0x1B,
    **{char: ord(char) for char in "\\\"'?-[]^/"},
}  # fmt: skip
_HEX_DIGITS = {"x": 2, "u": 4, "U": 8}


@dataclass(frozen=True, slots=True)
class Ebnf(BudgetedText):
    """Texts that the rule `root` of a grammar describes; without `root`, the rule named so, or else the first one.

    >>> Ebnf("root = 'on' | 'off' ;"), Ebnf("root ::= 'on' | [0-9]+ '%'")

    notation: "xgrammar" (GBNF, where `{2,-1}` has no bound, a rule ends where the next one begins, and `Regex("...")` and
    `Substring("...", ...)` are expressions), "w3c" (`#x20`, `[#x0-#x1F]`, strings without escapes, `A - B`, `/* */`) or "iso"
    (ISO 14977: `,` `;` `[ ]` `{ }` `3 * x` `x - y` `(* *)`); None: "iso" without `::=`, else "w3c" if it has what only that has.
    """

    text: str
    root: str | None = None
    notation: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.text, str) or not isinstance(self.root, str | None):
            raise ConstraintError("the text and the root of a grammar are strings")
        if self.notation not in (None, *NOTATIONS):
            raise ConstraintError(f"no notation {self.notation!r} of EBNF", instead=" or ".join(map(repr, NOTATIONS)))

    def _written(self, grammar: Grammar, limits: Limits) -> tuple[Node, Budgets]:
        notation = self.notation or notation_of(self.text)
        written = parse(self.text, notation)
        rules = {str(rule.name): RuleText(rule.name, rule.tree) for rule in written}
        _check_once(self.text, written)
        start = self.root or ("root" if "root" in rules or not written else str(written[0].name))
        if start not in rules:
            raise undefined(start, f"the grammar has no rule {start!r} to begin with", rules)
        calls = {name: _calls(rule.tree) for name, rule in rules.items()}
        check_defined(self.text, rules, calls)
        wants = any(rule.attributes or any(rule.tree.find_data("exception")) for rule in written)
        attributes = {str(rule.name): rule.attributes for rule in written if rule.attributes}
        lowering = EbnfLowering(
            self.text, grammar, limits, notation=notation, attributes=attributes, wants_repetitions=wants
        )
        root = lower_rules(rules, calls, lowering)[start]
        return budgeted_root(grammar, root, lowering.budgets, limits), lowering.budgets


def _check_once(text: str, rules: list[EbnfRule]) -> None:
    seen: set[str] = set()
    for rule in rules:
        if rule.name in seen:
            fail_at(text, rule.name, f"rule {str(rule.name)!r} is defined already; its alternatives belong together")
        seen.add(str(rule.name))


def _calls(tree: Tree[Token]) -> dict[str, Token]:
    return {" ".join(name.split()): token for name, token in calls_of(tree).items()}


@dataclass
class EbnfLowering(RuleLowering):
    """Lowers the expressions of one grammar."""

    notation: str = "xgrammar"
    attributes: dict[str, tuple[tuple[Token, Token | None], ...]] = field(default_factory=dict)
    budgets: Budgets = field(default_factory=dict)

    def finished(self, name: str, body: Node) -> Node:
        """A rule's body under its attributes."""
        for attribute, value in self.attributes.get(name, ()):
            if attribute == "lazy" and value is None:
                self._check_regular(body, attribute, "lazy")
                some = self.grammar.repeat(self.grammar.chars(ALL), 1)
                body = self.grammar.without(body, self.grammar.seq(body, some))
            elif attribute == "max_tokens":
                body = self._with_budget(name, body, attribute, value)
            elif attribute != "capture":
                self._refuse(attribute, str(attribute), "not an attribute that is enforced", "the rule without it")
        return body

    def _with_budget(self, name: str, body: Node, attribute: Token, value: Token | None) -> Node:
        if value is None or value.type != "INT" or not int(value[:9]) > 0:
            fail_at(self.text, attribute, "max_tokens is a whole number of tokens, at least 1")
        rule = self.grammar.rule(name)
        self.grammar.define(rule, body)
        self.budgets[self.grammar.call(rule)] = int(value[:9])
        return self.grammar.call(rule)

    def _node(self, tree: Tree[Token], parts: list[Node]) -> Node:
        kind = str(tree.data)
        token = next((child for child in tree.children if isinstance(child, Token)), None)
        match kind:
            case "sequence":
                return self.grammar.seq(*parts)
            case "exception":
                return self._exception(parts, tree)
            case "lookahead":
                self.grammar.notes.append(
                    "lookahead assertions (=...) tell XGrammar what follows; they do not restrict the text"
                )
                return EMPTY
            case "times":
                assert token is not None
                count = self._count(token)
                return self.grammar.repeat(parts[0], count, count)
            case "maybe" | "again":
                return self.grammar.repeat(parts[0], 0, 1 if kind == "maybe" else None)
            case "nothing":
                return EMPTY
            case "pair" | "tuple":
                return EMPTY  # arguments of a macro, which reads them itself
        if token is not None and kind == "reference":
            return self.rules[" ".join(token.split())]
        if token is not None and kind == "code":
            return self.grammar.literal(chr(self._code_point(token, token[2:])))
        if token is not None and kind == "macro":
            return self._macro(tree, token)
        if token is not None and kind == "special":
            self._refuse(token, "special sequence", "what stands between ? has no meaning of its own", "a rule")
        return super()._node(tree, parts)

    def _counts(self, tree: Tree[Token]) -> tuple[int, int | None]:
        last = tree.children[-1]
        if tree.data == "between" and isinstance(last, Token) and last == "-1":
            return self._count(tree.children[-2]), None  # type: ignore[arg-type]
        for token in tree.children:
            if isinstance(token, Token) and token.startswith("-"):
                fail_at(self.text, token, "a number of copies is not negative; -1 as the greatest means any number")
        return super()._counts(tree)

    def _exception(self, parts: list[Node], tree: Tree[Token]) -> Node:
        token = next(tree.scan_values(lambda value: isinstance(value, Token)), Token("", "", start_pos=0))
        for part in parts:
            self._check_regular(part, token, "-")
        return self.grammar.without(*parts)

    def _check_regular(self, node: Node, token: Token, keyword: str) -> None:
        if any(self.grammar.kind(part) is Kind.CALL for part in reachable(self.grammar, node)):
            reason = "it is enforced for parts that do not call themselves only"
            self._refuse(token, keyword, reason, "the same with repetitions instead of recursion")

    # -- characters -------------------------------------------------------------------------------------------------

    def string_text(self, token: Token) -> str:
        if self.notation != "xgrammar":
            return str(token[1:-1])
        return "".join(chr(code) for code, _ in self._characters(token, 1))

    def class_ranges(self, token: Token) -> Ranges:
        inner = token[1:-1]
        negated = inner.startswith("^")
        items = self._w3c_members(token) if self.notation == "w3c" else self._characters(token, 1 + negated)
        ranges, index = [], 0
        while index < len(items):
            low, _ = items[index]
            high = low
            if index + 2 < len(items) and items[index + 1] == (ord("-"), False):
                high, index = items[index + 2][0], index + 2
            if high < low:
                fail_at(self.text, token, f"a range of the character class {token} ends before it begins")
            ranges.append((low, high))
            index += 1
        if not ranges and not negated:
            fail_at(self.text, token, f"the character class {token} is empty")
        return invert(normalize(ranges)) if negated else normalize(ranges)

    def _w3c_members(self, token: Token) -> list[tuple[int, bool]]:
        """The members of a class: characters, or `#xN`."""
        inner = token[1:-1].removeprefix("^")
        members, index = [], 0
        while index < len(inner):
            digits = ""
            if inner.startswith("#x", index):
                rest = inner[index + 2 :]
                digits = rest[: len(rest) - len(rest.lstrip("0123456789abcdefABCDEF"))]
            members.append((self._code_point(token, digits), True) if digits else (ord(inner[index]), False))
            index += len(digits) + 2 if digits else 1
        return members

    def _code_point(self, token: Token, digits: str) -> int:
        code = int(digits[:16], 16)
        if code > MAX_CODE_POINT or SURROGATES[0] <= code <= SURROGATES[1] or len(digits) > 16:
            fail_at(self.text, token, f"#x{digits[:16]} is no character")
        return code

    def _characters(self, token: Token, skipped: int) -> list[tuple[int, bool]]:
        """The code points between delimiters, and whether each was escaped."""
        start = token.start_pos or 0
        index, end, text = start + skipped, start + len(token) - 1, self.text
        found = []
        while index < end:
            if text[index] != "\\":
                found.append((ord(text[index]), False))
                index += 1
                continue
            letter, count = text[index + 1], _HEX_DIGITS.get(text[index + 1], 0)
            digits = text[index + 2 : min(index + 2 + count, end)]
            if letter == "u" and text[index + 2] == "{":
                digits = text[index + 3 : max(text.find("}", index, end), index + 3)]
                count = len(digits) + 2
            if count == 0 and letter not in _ESCAPES:
                known = " ".join(f"\\{one}" for one in [*_ESCAPES, *_HEX_DIGITS])
                raise syntax_error(text, f"unknown escape \\{letter}, expected one of {known}", index)
            if count and (
                not digits
                or not set(digits) <= set("0123456789abcdefABCDEF")
                or (count in (2, 4, 8) and len(digits) not in (count, count - 2))
            ):
                raise syntax_error(text, f"\\{letter} must be followed by {_HEX_DIGITS[letter]} hex digits", index)
            code = int(digits, 16) if count else _ESCAPES[letter]
            if code > MAX_CODE_POINT or (token.type == "STRING" and SURROGATES[0] <= code <= SURROGATES[1]):
                raise syntax_error(text, f"\\{letter}{digits} is no character", index)
            found.append((code, True))
            index += 2 + count
        return found

    # -- macros -----------------------------------------------------------------------------------------------------

    def _macro(self, tree: Tree[Token], name: Token) -> Node:
        arguments = [child for child in tree.children[1:] if child is not None]
        if name == "Substring":
            if not all(isinstance(one, Token) and one.type == "STRING" for one in arguments):
                fail_at(self.text, name, "Substring takes strings")
            return self._lowered(
                runs_of([self.string_text(one) for one in arguments if isinstance(one, Token)], self.limits)
            )
        if name == "Regex":
            return self._regex(name, arguments)
        self._refuse(name, str(name), "not a part of EBNF that is enforced", "the rules written out, or StructuralTag")
        return EMPTY

    def _regex(self, name: Token, arguments: list[Token | Tree[Token]]) -> Node:
        pattern, *options = arguments
        if not isinstance(pattern, Token) or pattern.type != "STRING":
            fail_at(self.text, name, "Regex takes a string first")
        flags = ""
        for option in options:
            if not isinstance(option, Tree):
                fail_at(self.text, name, 'behind its pattern Regex takes options such as flags="i"')
            key, *_, value = option.children
            if key == "flags" and isinstance(value, Token) and value.type == "STRING" and set(value[1:-1]) <= FLAGS:
                flags = value[1:-1]
            elif not (key == "json_string" and value == "false"):
                self._refuse(name, f"Regex({key})", "not an option that is enforced", "a pattern without it")
        try:
            return self._lowered(parse_lark_regex(self.string_text(pattern), flags, self.limits))
        except GrammarSyntaxError as error:
            fail_at(self.text, pattern, error.reason.split("\n")[0])

    def _lowered(self, pattern: Pattern) -> Node:
        def character(ranges: Ranges) -> Node:
            is_one = len(ranges) == 1 and ranges[0][0] == ranges[0][1]
            return self.grammar.literal(chr(ranges[0][0])) if is_one else self.grammar.chars(ranges)

        return lower_tree(self.grammar, pattern, full=True, unit=character)

    def _refuse(self, token: Token, keyword: str, reason: str, instead: str) -> None:
        line, column = line_and_column(self.text, token.start_pos or 0)
        raise UnsupportedKeyword(reason, keyword=keyword, instead=instead, line=line, column=column)
