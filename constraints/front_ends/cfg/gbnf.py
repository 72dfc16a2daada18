"""GBNF, the grammars of llama.cpp, as constraints.

Rules that do not call themselves, directly or through others, are replaced by what they are defined as, so a grammar without
recursion becomes one regular expression. Only rules that are recursive become rules of the `Grammar`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ...base.errors import ConstraintError, ConstraintLimit
from ...base.utf8 import ALL, Ranges
from ...grammar.components import components, is_recursive
from ...grammar.expression import Grammar, Node
from ...grammar.source import Limits
from ...grammar.stages import Budgets, budgeted_root
from ...grammar.stopwatch import look
from ...grammar.tail_recursion import as_repetition
from ...grammar.tokens import token_of, token_terminal, tokens_but
from ..regex.parser import line_and_column
from .budgeted_text import BudgetedText
from .gbnf_syntax import RuleText, class_ranges, fail_at, parse, string_text
from .syntax_tree import Token, Tree

_BETWEEN_LOOKS = 1023  # expressions, a few milliseconds


@dataclass(frozen=True, slots=True)
class Gbnf(BudgetedText):
    """Texts that the rule `root` of a grammar describes.

    >>> Gbnf('root ::= "on" | "off"')

    The syntax is llama.cpp's: `"text"`, `[a-z]`, `[^a-z]`, `.` (any character), rule names, `( )`, `|`, `* + ? {2} {2,} {2,4}`,
    `# comments`; escapes `\\n \\r \\t \\\\ \\" \\[ \\] \\- \\xNN \\uNNNN \\UNNNNNNNN`. All of it counts characters, not bytes.
    `<name>` and `<[id]>` are one token, `!<name>` is one token but that. Rules may begin with themselves. Of two definitions of a
    rule the last counts.
    """

    text: str
    root: str = "root"

    def __post_init__(self) -> None:
        BudgetedText.__post_init__(self)  # dataclasses with slots know no bare super()
        if not isinstance(self.root, str):
            raise ConstraintError(f"the root of a grammar is a string, not {type(self.root).__name__}")

    def _written(self, grammar: Grammar, limits: Limits) -> tuple[Node, Budgets]:
        rules = _last_definitions(parse(self.text), grammar, self.text)
        if self.root not in rules:
            raise undefined(self.root, f"the grammar has no rule {self.root!r} to begin with", rules)
        calls = {name: calls_of(rule.tree) for name, rule in rules.items()}
        check_defined(self.text, rules, calls)
        lowering = RuleLowering(self.text, grammar, limits)
        root = lower_rules(rules, calls, lowering)[self.root]
        return budgeted_root(grammar, root, lowering.budgets, limits), lowering.budgets


def _last_definitions(rules: list[RuleText], grammar: Grammar, text: str) -> dict[str, RuleText]:
    by_name: dict[str, RuleText] = {}
    for rule in rules:
        name = str(rule.name)
        if name in by_name:
            line, _ = line_and_column(text, rule.name.start_pos or 0)
            grammar.notes.append(f"rule {name!r} is defined again at line {line}; the last definition counts")
        by_name[name] = rule
    return by_name


def calls_of(tree: Tree[Token]) -> dict[str, Token]:
    """The rules that an expression calls, each with one place where it does."""
    references = (subtree.children[0] for subtree in tree.iter_subtrees() if subtree.data == "reference")
    return {str(token): token for token in references if isinstance(token, Token)}


def check_defined(text: str, rules: Mapping[str, RuleText], calls: Mapping[str, Mapping[str, Token]]) -> None:
    for name, callees in calls.items():
        for callee, token in callees.items():
            if callee not in rules:
                at = line_and_column(text, token.start_pos or 0)
                raise undefined(callee, f"rule {name!r} calls {callee!r}, which is not defined", rules, at)


def undefined(
    name: str, reason: str, rules: Mapping[str, RuleText], at: tuple[int | None, int | None] = (None, None)
) -> ConstraintError:
    similar = difflib.get_close_matches(name, rules, n=1)
    instead = f"{similar[0]!r}?" if similar else f"define it: {name} ::= ..."
    return ConstraintError(reason, path=name, instead=instead, line=at[0], column=at[1])


def lower_rules(
    rules: Mapping[str, RuleText], calls: Mapping[str, Mapping[str, Token]], lowering: RuleLowering
) -> dict[str, Node]:
    """The node of every rule: what it is defined as, or a call where it is recursive."""
    grammar = lowering.grammar
    nodes = lowering.rules
    names = {name: list(callees) for name, callees in calls.items()}
    for component in components(names):
        recursive = {name: grammar.rule(name) for name in component if is_recursive(component, names)}
        nodes.update({name: grammar.call(rule) for name, rule in recursive.items()})
        for name in component:
            body = lowering.finished(name, lowering.expression(rules[name].tree))
            may_loop = lowering.wants_repetitions and len(component) == 1 and recursive
            repetition = as_repetition(grammar, recursive[name], body) if may_loop else None
            if name in recursive:
                grammar.define(recursive[name], body if repetition is None else repetition)
            if repetition is not None or name not in recursive:
                nodes[name] = grammar.label(body if repetition is None else repetition, name)
    return nodes


@dataclass
class RuleLowering:
    """Lowers the expressions of one grammar, children first, without recursion."""

    text: str
    grammar: Grammar
    limits: Limits
    rules: dict[str, Node] = field(default_factory=dict)
    budgets: Budgets = field(default_factory=dict)
    wants_repetitions: bool = False  # instead of rules that end with themselves, for operations on regular parts
    _nesting: dict[int, int] = field(default_factory=dict)
    _repeated: set[int] = field(default_factory=set)  # by id: what a repetition without bounds is directly about

    def expression(self, tree: Tree[Token]) -> Node:
        nodes: dict[int, Node] = {}
        self._repeated = set(_directly_repeated(tree))
        for subtree in tree.iter_subtrees():
            self._check_nesting(subtree)
            parts = [nodes[id(child)] for child in subtree.children if isinstance(child, Tree)]
            nodes[id(subtree)] = self._node(subtree, parts)
        return nodes[id(tree)]

    def finished(self, name: str, body: Node) -> Node:
        """The body of a rule as other rules use it; notations with attributes apply them here."""
        return body

    def _node(self, tree: Tree[Token], parts: list[Node]) -> Node:
        match tree.data:
            case "alternatives":
                return self.grammar.alt(*parts)
            case "sequence" | "group":
                return self.grammar.seq(*parts)
            case "star" | "plus" | "optional" | "exactly" | "between":
                return self.grammar.repeat(parts[0], *self._counts(tree))
            case "any":
                return self.grammar.chars(ALL)
        token = tree.children[0]
        assert isinstance(token, Token)
        match tree.data:
            case "literal":
                return self.grammar.literal(self.string_text(token))
            case "char_class":
                return self._char_class(token)
            case "reference":
                return self.rules[str(token)]
        return self._token(tree, token)

    def _token(self, tree: Tree[Token], token: Token) -> Node:
        line, column = line_and_column(self.text, token.start_pos or 0)
        if not token.startswith("!"):
            return token_terminal(self.grammar, str(token), self.budgets, line=line, column=column)
        without = {token_of(self.grammar, token[1:], line, column)}
        return tokens_but(self.grammar, without, self.budgets, repeated=id(tree) in self._repeated)

    def string_text(self, token: Token) -> str:
        """What a string means."""
        return string_text(self.text, token)

    def class_ranges(self, token: Token) -> Ranges:
        """What a character class means."""
        return class_ranges(self.text, token)

    def _char_class(self, token: Token) -> Node:
        ranges = self.class_ranges(token)
        if not ranges:
            fail_at(self.text, token, f"the character class {token} contains no character that has a UTF-8 form")
        is_one = len(ranges) == 1 and ranges[0][0] == ranges[0][1]
        return self.grammar.literal(chr(ranges[0][0])) if is_one else self.grammar.chars(ranges)

    def _counts(self, tree: Tree[Token]) -> tuple[int, int | None]:
        """The least and greatest number of copies."""
        fixed: dict[str, tuple[int, int | None]] = {"star": (0, None), "plus": (1, None), "optional": (0, 1)}
        if tree.data in fixed:
            return fixed[tree.data]
        low_token, high_token = tree.children[1], tree.children[-1]  # the same token in {n}
        assert isinstance(low_token, Token)
        low = self._count(low_token)
        high = self._count(high_token) if isinstance(high_token, Token) else None
        if high is not None and high < low:
            fail_at(self.text, low_token, f"at least {low} but at most {high} copies is impossible")
        return low, high

    def _count(self, token: Token) -> int:
        limit = self.limits.repetition
        if len(token.lstrip("0")) > len(str(limit)) or int(token) > limit:
            line, _ = line_and_column(self.text, token.start_pos or 0)
            raise ConstraintLimit(f"line {line}: {token[:20]} repetitions", limit="repetition", value=limit)
        return int(token)

    def _check_nesting(self, tree: Tree[Token]) -> None:
        """Check how deep parentheses and repetitions stand inside each other. Raises `ConstraintLimit`."""
        adds = tree.data not in ("alternatives", "sequence")
        below = max((self._nesting[id(child)] for child in tree.children if isinstance(child, Tree)), default=0)
        self._nesting[id(tree)] = depth = below + adds
        if not len(self._nesting) & _BETWEEN_LOOKS:
            look()
        if depth > self.limits.nesting:
            raise ConstraintLimit("parentheses and repetitions too deep", limit="nesting", value=self.limits.nesting)


def _directly_repeated(tree: Tree[Token]) -> Iterator[int]:
    """The identities of expressions that stand under `*` or `+` by themselves, apart from parentheses."""
    for subtree in tree.iter_subtrees():
        inner: Tree[Token] | Token | None = subtree if subtree.data in ("star", "plus") else None
        while isinstance(inner, Tree):
            parts = [child for child in inner.children if child is not None]
            inner = parts[0] if len(parts) == 1 or inner is subtree else None
            yield id(inner)
