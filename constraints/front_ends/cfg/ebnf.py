"""EBNF as constraints, in the notations of XGrammar, of the W3C and of ISO 14977."""

from __future__ import annotations

from dataclasses import dataclass, field

from ...base.errors import ConstraintError, UnsupportedKeyword
from ...base.utf8 import ALL, MAX_CODE_POINT, SURROGATES, Ranges, invert, normalize
from ...grammar.capture_marks import Mark, Marks
from ...grammar.expression import EMPTY, Grammar, Kind, Node
from ...grammar.recursion import reachable
from ...grammar.source import Limits
from ...grammar.stages import Budget, Budgets, budgeted_root
from ...grammar.stopwatch import LOOK_EVERY, look
from ..regex.parser import line_and_column, syntax_error
from .budgeted_text import BudgetedText
from .ebnf_macros import Macros, rules_called
from .ebnf_syntax import NOTATIONS, EbnfRule, notation_of, parse
from .gbnf import RuleLowering, calls_of, check_defined, lower_rules, undefined
from .gbnf_syntax import RuleText, fail_at
from .syntax_tree import Token, Tree

_ESCAPES = {
    "n": 0x0A, "r": 0x0D, "t": 0x09, "f": 0x0C, "v": 0x0B, "a": 0x07, "b": 0x08, "0": 0x00, "e": 0x1B,
    **{char: ord(char) for char in "\\\"'?-[]^/"},
}  # fmt: skip
_ESCAPES_IN_CLASSES = {char: ord(char) for char in "$.*+(){}|"}
_HEX_DIGITS = {"u": 4, "U": 8}
_HEXADECIMAL = "0123456789abcdefABCDEF"
_CAPTURES = frozenset(  # the texts are the same with them and without
    ["capture", "stop_capture", "capture_hidden_suffix_bytes", "capture_hidden_stop_bytes",
     "capture_hidden_body_rule_id", "capture_hidden_marker_rule_id"]
)  # fmt: skip

_COMPILED_CAPTURES = frozenset(["capture_hidden_stop_bytes", "capture_hidden_body_rule_id", "capture_hidden_marker_rule_id"])


@dataclass(frozen=True, slots=True)
class Ebnf(BudgetedText):
    """Texts that the rule `root` of the grammar `text` describes; without `root`, the rule named so, or else the first one.

    >>> Ebnf("root = 'on' | 'off' ;"), Ebnf("root ::= 'on' | [0-9]+ '%'")

    notation: "xgrammar" (GBNF, where `{2,-1}` has no bound, a rule ends where the next one begins, and the macros of
    `ebnf_macros.py` are expressions), "w3c" (`#x20`, `[#x0-#x1F]`, strings without escapes, `A - B`, `/* */`) or "iso"
    (ISO 14977: `,` `;` `[ ]` `{ }` `3 * x` `x - y` `(* *)`); None: "iso" without `::=`, else "w3c" if it has what only that has.
    """

    text: str
    root: str | None = None
    notation: str | None = None

    def __post_init__(self) -> None:
        BudgetedText.__post_init__(self)  # dataclasses with slots know no bare super()
        if not isinstance(self.root, str | None):
            raise ConstraintError(f"the root of a grammar is a string, not {type(self.root).__name__}")
        if self.notation not in (None, *NOTATIONS):
            raise ConstraintError(f"no notation {self.notation!r} of EBNF", instead=" or ".join(map(repr, NOTATIONS)))

    def _written(self, grammar: Grammar, limits: Limits) -> tuple[Node, Budgets]:
        root, lowering = self._rules(grammar, limits, None)
        return budgeted_root(grammar, root, lowering.budgets, limits), lowering.budgets

    @property
    def may_have_captures(self) -> bool:
        return "capture" in self.text  # the grammar is not parsed again to find none

    def lower_marked(self, grammar: Grammar, limits: Limits) -> tuple[Node, Budgets, Marks]:
        """The expression as it is written, with its left recursion, for `captures`."""
        marks = Marks()
        root, lowering = self._rules(grammar, limits, marks)
        return root, lowering.budgets, marks

    def _rules(self, grammar: Grammar, limits: Limits, marks: Marks | None) -> tuple[Node, EbnfLowering]:
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
            self.text, grammar, limits, notation=notation, attributes=attributes, wants_repetitions=wants, marks=marks
        )
        return lower_rules(rules, calls, lowering)[start], lowering


def _check_once(text: str, rules: list[EbnfRule]) -> None:
    seen: set[str] = set()
    for rule in rules:
        if rule.name in seen:
            fail_at(text, rule.name, f"rule {str(rule.name)!r} is defined already; its alternatives belong together")
        seen.add(str(rule.name))


def _calls(tree: Tree[Token]) -> dict[str, Token]:
    called = {" ".join(name.split()): token for name, token in calls_of(tree).items()}
    return called | {str(token): token for token in rules_called(tree)}


@dataclass
class EbnfLowering(RuleLowering):
    """Lowers the expressions of one grammar."""

    notation: str = "xgrammar"
    attributes: dict[str, tuple[tuple[Token, Token | None], ...]] = field(default_factory=dict)
    marks: Marks | None = None  # where to write down captures

    def finished(self, name: str, body: Node) -> Node:
        """A rule's body under its attributes."""
        for attribute, value in self.attributes.get(name, ()):
            if attribute == "lazy" and value is None:
                self._check_regular(body, attribute, "lazy")
                some = self.grammar.repeat(self.grammar.chars(ALL), 1)
                body = self.grammar.without(body, self.grammar.seq(body, some))
            elif attribute == "max_tokens":
                body = self._with_budget(name, body, attribute, value)
            elif attribute == "max_chars":
                body = self._at_most(body, attribute, value)
            elif attribute not in _CAPTURES:
                self._refuse(attribute, str(attribute), "not an attribute that is enforced", "the rule without it")
        captures = {str(name): (name, value) for name, value in self.attributes.get(name, ()) if name in _CAPTURES}
        if self.marks is None or not captures:
            return body
        rule = self.grammar.rule(name)
        self.grammar.define(rule, body)
        self.marks.of_rule[rule] = self._mark(name, captures)
        return self.grammar.call(rule)

    def _mark(self, name: str, attributes: dict[str, tuple[Token, Token | None]]) -> Mark:
        """The names under which a rule is captured. Raises `UnsupportedKeyword` for what only XGrammar's own compiler
        writes."""
        for keyword in _COMPILED_CAPTURES & attributes.keys():
            reason = "it numbers rules that are made from others, or hides bytes inside of what is around it"
            self._refuse(attributes[keyword][0], keyword, reason, "capture_hidden_suffix_bytes=")
        hidden = attributes.get("capture_hidden_suffix_bytes", (None, None))[1]
        names = {
            keyword: name if value is None else self.string_text(value)
            for keyword, (_, value) in attributes.items() if keyword in ("capture", "stop_capture")
        }  # fmt: skip
        num_hidden = 0 if hidden is None else self._count(hidden)
        return Mark(names.get("capture", ""), names.get("stop_capture", ""), hidden_bytes=num_hidden)

    def _at_most(self, body: Node, attribute: Token, value: Token | None) -> Node:
        if value is None or value.type != "INT" or value.startswith("-"):
            fail_at(self.text, attribute, "max_chars is a number of characters")
        self._check_regular(body, attribute, "max_chars")
        return self.grammar.both(body, self.grammar.repeat(self.grammar.chars(ALL), 0, self._count(value)))

    def _with_budget(self, name: str, body: Node, attribute: Token, value: Token | None) -> Node:
        if value is None or value.type != "INT" or not int(value[:9]) > 0:
            fail_at(self.text, attribute, "max_tokens is a whole number of tokens, at least 1")
        rule = self.grammar.rule(name)
        self.grammar.define(rule, body)
        self.budgets[self.grammar.call(rule)] = Budget(int(value[:9]))
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
            macros = Macros(self.text, self.grammar, self.limits, self.budgets, self.string_text)
            return macros.lower(tree, self.rules, repeated=id(tree) in self._repeated)
        if token is not None and kind == "special":
            self._refuse(token, "special sequence", "what stands between ? has no meaning of its own", "a rule")
        return super()._node(tree, parts)

    def _counts(self, tree: Tree[Token]) -> tuple[int, int | None]:
        last = tree.children[-1]
        if tree.data == "between" and isinstance(last, Token) and last == "-1":
            return self._count(tree.children[-2]), None
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
        text = str(token[1:-1])
        return text if "\\" not in text else "".join(chr(code) for code, _ in self._characters(token, 1))

    def class_ranges(self, token: Token) -> Ranges:
        inner = token[1:-1]
        negated = inner.startswith("^")
        items = self._w3c_members(token) if self.notation == "w3c" else self._characters(token, 1 + negated)
        ranges: set[tuple[int, int]] = set()
        index, count = 0, 0
        while index < len(items):
            count += 1
            if count % LOOK_EVERY == 0:
                look()
            low, _ = items[index]
            high = low
            if index + 2 < len(items) and items[index + 1] == (ord("-"), False):
                high, index = items[index + 2][0], index + 2
            if high < low:
                fail_at(self.text, token, f"a range of the character class {token} ends before it begins")
            ranges.add((low, high))
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
                digits = rest[: len(rest) - len(rest.lstrip(_HEXADECIMAL))]
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
        index, end = start + skipped, start + len(token) - 1
        found: list[tuple[int, bool]] = []
        while index < end:
            if len(found) % LOOK_EVERY == LOOK_EVERY - 1:
                look()
            escaped = self.text[index] == "\\"
            code, after = self._escape(token, index, end) if escaped else (ord(self.text[index]), index + 1)
            found.append((code, escaped))
            index = after
        return found

    def _escape(self, token: Token, index: int, end: int) -> tuple[int, int]:
        """The code point of the escape at `index`, and the index behind it."""
        text, letter = self.text, self.text[index + 1]
        escapes = _ESCAPES | (_ESCAPES_IN_CLASSES if token.type == "CLASS" else {})
        if letter in escapes:
            return escapes[letter], index + 2
        begin = index + 2
        if letter == "x":  # as many digits as there are
            rest = text[begin:end]
            after = stop = begin + len(rest) - len(rest.lstrip(_HEXADECIMAL))
            expected = "hex digits"
        elif letter == "u" and text[begin] == "{":
            begin, stop = begin + 1, max(text.find("}", begin, end), begin + 1)
            after, expected = stop + 1, "hex digits and }"
        elif letter in _HEX_DIGITS:
            after = stop = min(begin + _HEX_DIGITS[letter], end)
            expected = f"{_HEX_DIGITS[letter]} hex digits"
        else:
            known = " ".join(f"\\{one}" for one in [*escapes, "x", *_HEX_DIGITS])
            raise syntax_error(text, f"unknown escape \\{letter}, expected one of {known}", index)
        digits = text[begin:stop]
        is_short = letter in _HEX_DIGITS and expected[0].isdigit() and len(digits) < _HEX_DIGITS[letter]
        if not digits or digits.strip(_HEXADECIMAL) or is_short:
            raise syntax_error(text, f"\\{letter} must be followed by {expected}", index)
        code = int(digits[:16], 16)
        if code > MAX_CODE_POINT or (token.type == "STRING" and SURROGATES[0] <= code <= SURROGATES[1]):
            raise syntax_error(text, f"\\{letter}{digits[:16]} is no character", index)
        return code, after

    def _refuse(self, token: Token, keyword: str, reason: str, instead: str) -> None:
        line, column = line_and_column(self.text, token.start_pos or 0)
        raise UnsupportedKeyword(reason, keyword=keyword, instead=instead, line=line, column=column)
