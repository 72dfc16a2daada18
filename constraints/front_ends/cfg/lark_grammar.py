"""Grammars in lark's notation as constraints, in lark's own dialect and in llguidance's.

What texts a grammar describes is written down in docs/grammars.md: terminals are sets of texts, rules say in which order they
stand, what `%ignore` names may stand behind each of them. Terminals are not cut out of the text first (a scanner would take the
longest), with one exception: lazy ones, see `lark_lexemes.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...base.errors import ConstraintError, ConstraintLimit, UnsupportedKeyword
from ...base.utf8 import Ranges
from ...grammar.capture_marks import Mark, Marks, refused_captures
from ...grammar.emptiness import shows_empty
from ...grammar.expression import EMPTY, FAIL, Grammar, Node, Rule
from ...grammar.source import Limits
from ...grammar.stages import Budget, Budgets, budgeted_root, refuse_budgets
from ...grammar.stopwatch import LOOK_EVERY, Stopwatch, look
from ...grammar.tokens import token_terminal
from ..regex.parser import line_and_column
from ..regex.regex import lower_tree
from ..regex.tree import Alternate, CharSet, Concat
from ..regex.tree import Tree as Pattern
from .budgeted_text import BudgetedText
from .lark_edges import check_edges
from .lark_json import inline_json
from .lark_lexemes import Lexemes
from .lark_names import Definition, Names
from .lark_syntax import fail_at
from .lark_terminals import Terminals, count_of, literal_pattern, regexp_pattern
from .syntax_tree import Token, Tree

_REPEATS: dict[str, tuple[int, int | None]] = {
    "star": (0, None),
    "plus": (1, None),
    "optional": (0, 1),
    "maybe": (0, 1),
}
_BLOCKS = 16  # inline grammars inside each other

Instance = tuple[str, int | tuple[Node, ...] | None]  # a rule with its parameter, or with the arguments of a template


@dataclass(frozen=True, slots=True)
class Lark(BudgetedText):
    """Texts that the rule `start` of a grammar describes.

    >>> Lark('start: "on" | NUMBER "%"\\n%import common.NUMBER')

    The notation is lark's, with the additions of llguidance: rules and terminals, templates, `%import common`, `%ignore`,
    `%override`, `%extend`, inline `%json {...}` and `%regex {...}`, `&` and `~` between terminals, `[lazy]`, `stop=`, `suffix=`,
    parameters, `max_tokens=`, special tokens (`<name>`, `<[id]>`). What is not enforced is refused by name, as `temperature` is.
    """

    text: str
    start: str = "start"

    def __post_init__(self) -> None:
        BudgetedText.__post_init__(self)  # dataclasses with slots know no bare super()
        if not isinstance(self.start, str):
            raise ConstraintError(f"the start of a grammar is a string, not {type(self.start).__name__}")

    def _written(self, grammar: Grammar, limits: Limits) -> tuple[Node, Budgets]:
        lowering = LarkLowering(self.text, grammar, limits)
        return budgeted_root(grammar, lowering.whole(self.start), lowering.budgets, limits), lowering.budgets

    @property
    def may_have_captures(self) -> bool:
        return "capture" in self.text  # the grammar is not parsed again to find none

    def lower_marked(self, grammar: Grammar, limits: Limits) -> tuple[Node, Budgets, Marks]:
        """The expression as it is written, with its left recursion, for `captures`."""
        marks = Marks()
        lowering = LarkLowering(self.text, grammar, limits, marks=marks)
        return lowering.whole(self.start), lowering.budgets, marks


class LarkLowering:
    """Lowers one grammar text: its rules by a list of work, expressions children first, nothing by recursion."""

    def __init__(
        self,
        text: str,
        grammar: Grammar,
        limits: Limits,
        depth: int = 0,
        budgets: Budgets | None = None,
        marks: Marks | None = None,
    ) -> None:
        """marks: where to write down captures; without it the language alone counts."""
        self.text, self.grammar, self.limits, self.depth, self.marks = text, grammar, limits, depth, marks
        self.names = Names(text, limits)
        grammar.notes += self.names.notes
        self.terminals: Terminals = self.names.all_terminals()
        self.rules: dict[Instance, Rule] = {}
        self.budgets: Budgets = {} if budgets is None else budgets  # of this grammar and of those inside
        self._todo: list[Instance] = []
        ignored = [self.terminals.pattern(tree) for tree in self.names.ignored]
        for tree, pattern in zip(self.names.ignored, ignored, strict=True):
            check_edges(text, next(tree.scan_values(lambda value: isinstance(value, Token))), pattern)
        once = self.names.options.ignore_once
        skipped = self._language(Alternate(tuple(ignored))) if ignored else EMPTY
        self.skip = grammar.optional(skipped) if once else grammar.repeat(skipped)
        if marks is not None:
            self.skip = marks.ignored(grammar, self.skip)
        lazy = any(rule.attributes.lazy or rule.attributes.end for rule in self.names.rules.values())
        self.lexemes = Lexemes(grammar, limits, self.skip) if lazy else None

    def whole(self, start: str) -> Node:
        """The texts of a rule, or of a terminal."""
        if start in self.names.rules:
            definition = self.names.rules[start]
            if definition.has_parameter or definition.template:
                fail_at(self.text, definition.name, f"the grammar begins with {start!r}, which has a parameter")
            root = self._call((start, None))
        elif start in self.terminals.patterns:
            root = self._lexeme(self.terminals.patterns[start])
        else:
            raise ConstraintError(
                f"the grammar has no rule {start!r} to begin with", path=start, instead=f"define it: {start}: ..."
            )
        stopwatch = Stopwatch(self.limits, "lowering the grammar")
        while self._todo:
            stopwatch.check()
            instance = self._todo.pop()
            self.grammar.define(self.rules[instance], self._body(instance))
        if self.lexemes is not None and self.marks is not None:
            states = self.lexemes.states_beside(root)
            if states is not None and self.depth > 0:
                if any(rule.attributes.captures for rule in self.names.rules.values()):
                    raise refused_captures("in a grammar inside of another one, with lazy terminals that end others")
                root = self.lexemes.separated(root)
            else:
                self.marks.lexeme_states, self.marks.lexemes, self.marks.skip = states, self.lexemes.of_rule, self.skip
        elif self.lexemes is not None:
            separated = self.lexemes.separated(root)
            if separated != root:
                refuse_budgets(self.budgets, "beside lazy terminals that end others")
            root = separated
        return self.grammar.seq(self.skip, root) if self.names.options.allow_initial_skip else root

    # -- rules ------------------------------------------------------------------------------------------------------

    def _call(self, instance: Instance) -> Node:
        if instance not in self.rules:
            if len(self.rules) >= self.limits.nodes // 8:
                raise ConstraintLimit("rules, with their parameters", limit="nodes", value=self.limits.nodes)
            if len(self.grammar.pool) > self.limits.source_bytes:
                value = self.limits.source_bytes
                raise ConstraintLimit("strings, put together by templates", limit="source_bytes", value=value)
            self.rules[instance] = self.grammar.rule(instance[0])
            self._todo.append(instance)
            if (max_tokens := self.names.rules[instance[0]].attributes.max_tokens) is not None:
                self.budgets[self.grammar.call(self.rules[instance])] = Budget(max_tokens)
        return self.grammar.label(self.grammar.call(self.rules[instance]), instance[0])

    def _body(self, instance: Instance) -> Node:
        name, given = instance
        definition = self.names.rules[name]
        if self.marks is not None and definition.attributes.captures:
            self.marks.of_rule[self.rules[instance]] = self._mark(name, definition)
        if definition.attributes.is_lexeme:
            return self._one_lexeme(definition)
        arguments = dict(zip(definition.template, given, strict=True)) if isinstance(given, tuple) else {}
        return self._expression(definition.body, arguments, given if isinstance(given, int) else None)

    def _one_lexeme(self, rule: Definition) -> Node:
        """A rule whose body is a terminal: lazy, or up to a stop."""
        pattern = self.terminals.pattern(rule.body)
        end = rule.attributes.end
        if end is not None and not rule.attributes.stops_at_end:
            pattern = Concat((pattern, self._end_pattern(end)))
        check_edges(self.text, rule.name, pattern)
        if rule.attributes.stops_at_end:
            return self._lexeme(pattern)
        return self._lexeme(pattern, lazy=True)

    def _mark(self, name: str, rule: Definition) -> Mark:
        """The names under which a rule is captured, and which part of its text is not."""
        attributes = rule.attributes
        captured = name if attributes.capture == "" else attributes.capture or ""
        if attributes.end is None:
            return Mark(captured, attributes.stop_capture)
        end = self._language(self._end_pattern(attributes.end))
        return Mark(captured, attributes.stop_capture, self._language(self.terminals.pattern(rule.body)), end)

    def _end_pattern(self, token: Token) -> Pattern:
        if token.type == "STRING":
            return literal_pattern(self.text, token)
        if token.type == "REGEXP":
            return regexp_pattern(self.text, token, self.limits)
        if token not in self.terminals.patterns:
            fail_at(self.text, token, f"there is no terminal {str(token)!r}")
        return self.terminals.patterns[str(token)]

    # -- expressions ------------------------------------------------------------------------------------------------

    def _expression(self, tree: Tree[Token], arguments: Mapping[str, Node], value: int | None) -> Node:
        nodes: dict[int, Node] = {}
        nesting: dict[int, int] = {}
        for part in self._parts(tree, value):
            below = [child for child in part.children if isinstance(child, Tree) and id(child) in nodes]
            adds = part.data not in ("alternatives", "alternative", "conjunction", "sequence")
            nesting[id(part)] = depth = max((nesting[id(child)] for child in below), default=0) + adds
            if depth > self.limits.nesting:
                raise ConstraintLimit(
                    "parentheses and repetitions too deep", limit="nesting", value=self.limits.nesting
                )
            nodes[id(part)] = self._node(part, [nodes[id(child)] for child in below], arguments, value)
        return nodes[id(tree)]

    def _node(self, tree: Tree[Token], parts: list[Node], arguments: Mapping[str, Node], value: int | None) -> Node:
        grammar, kind = self.grammar, str(tree.data)
        match kind:
            case "alternatives":
                return grammar.alt(*parts)
            case "sequence" | "group":
                return grammar.seq(*parts)
            case "star" | "plus" | "optional" | "maybe":
                return grammar.repeat(parts[0], *_REPEATS[kind])
            case "alternative":
                return parts[0] if parts else FAIL  # none: its condition does not hold
            case "conjunction" if len(parts) == 1:
                return parts[0]
            case "negation" if not parts:
                pattern = self.terminals.pattern(tree)
                check_edges(self.text, _first_token(tree), pattern)
                return self._lexeme(pattern)
        token = next((child for child in reversed(tree.children) if isinstance(child, Token)), None)
        if token is None:
            keyword = "~" if kind == "negation" else "&"
            reason, instead = "it is for terminals, not for rules", "the same in a terminal, a name in upper case"
            line, column = line_and_column(self.text, _first_token(tree).start_pos or 0)
            raise UnsupportedKeyword(reason, keyword=keyword, instead=instead, line=line, column=column)
        match kind:
            case "counted":
                return grammar.repeat(parts[0], *count_of(self.text, token, self.limits))
            case "reference" if token in arguments:
                return arguments[str(token)]
            case "reference" if token.type == "RULE":
                return self._call((str(token), None))
            case "parametric":
                name = tree.children[0]
                parameter = self.names.parameters[token.start_pos or 0]
                return self._call((str(name), parameter.of(value or 0)))
            case "use":
                return self._template(token, parts)
            case "token" | "json" | "block" | "subgrammar":
                return self._inline(kind, token)
        pattern = self.terminals.value(tree, token)
        check_edges(self.text, token, pattern)
        return self._lexeme(pattern)

    def _parts(self, tree: Tree[Token], value: int | None) -> list[Tree[Token]]:
        """The parts of an expression, children first, without those whose condition does not hold."""
        found: dict[int, Tree[Token]] = {}
        work = [tree]
        while work:
            part = work.pop()
            found.pop(id(part), None)
            found[id(part)] = part
            if part.data == "negation" and _is_terminal(part):
                continue
            condition = part.children[-1] if part.data == "alternative" else None
            if value is None or not isinstance(condition, Token) or self._holds(condition, value):
                work.extend(child for child in part.children if isinstance(child, Tree))
        return list(found.values())[::-1]

    def _holds(self, condition: Token, value: int) -> bool:
        return self.names.conditions[condition.start_pos or 0].holds(value)

    def _template(self, name: Token, arguments: list[Node]) -> Node:
        wanted = len(self.names.rules[str(name)].template)
        if len(arguments) != wanted:
            fail_at(self.text, name, f"the template {str(name)!r} takes {wanted} arguments, not {len(arguments)}")
        return self._call((str(name), tuple(arguments)))

    def _inline(self, kind: str, token: Token) -> Node:
        line, column = line_and_column(self.text, token.start_pos or 0)
        if kind == "token":
            return self._opaque(token_terminal(self.grammar, str(token), self.budgets, line=line, column=column))
        if kind == "subgrammar":
            reason, instead = "there are no other grammars beside this one", "%lark {...} or %json {...} in its place"
            raise UnsupportedKeyword(reason, keyword=str(token), instead=instead, line=line, column=column)
        if kind == "block":
            return self._block(token)
        try:
            return self._opaque(inline_json(str(token)).lower(self.grammar, self.limits))
        except ConstraintLimit:
            raise
        except ConstraintError as error:
            where = {
                "path": error.path,
                "keyword": error.keyword,
                "instead": error.instead,
                "line": line,
                "column": column,
            }
            raise type(error)(error.reason.split("\n")[0], **where) from None  # type: ignore[arg-type]

    def _block(self, token: Token) -> Node:
        if self.depth >= _BLOCKS:
            raise ConstraintLimit("grammars inside grammars", limit="nesting", value=_BLOCKS)
        begin = (token.start_pos or 0) + token.index("{") + 1
        end = (token.start_pos or 0) + len(token) - 1
        blank = "".join(
            char if char in "\r\n" else " " for char in self.text[:begin]
        )  # so that errors tell the right place
        inner = LarkLowering(blank + self.text[begin:end], self.grammar, self.limits, self.depth + 1, self.budgets, self.marks)
        return self._opaque(inner.whole("start"))

    # -- lexemes ----------------------------------------------------------------------------------------------------

    def _lexeme(self, pattern: Pattern, lazy: bool = False) -> Node:
        """The texts of a terminal, and what is ignored behind them."""
        node = self._language(pattern)
        if self.lexemes is not None:
            return self.lexemes.add(node, lazy)
        return self._followed(node)

    def _opaque(self, node: Node) -> Node:
        """A part with lexemes of its own, and what is ignored behind it."""
        return self._followed(node) if self.lexemes is None else self.lexemes.add(node, lazy=False, opaque=True)

    def _followed(self, node: Node) -> Node:
        """A node and what is ignored behind it; nothing is ignored behind an empty text."""
        if self.skip == EMPTY or node == EMPTY:
            return node
        if not shows_empty(self.grammar, node):
            return self.grammar.seq(node, self.skip)
        filled = self.grammar.both(node, self.grammar.repeat(self.grammar.bytes_in([(0, 255)]), 1))
        return self.grammar.alt(self.grammar.seq(filled, self.skip), EMPTY)

    def _language(self, pattern: Pattern) -> Node:
        text = _plain_text(pattern)
        if text is not None:
            return self.grammar.literal(text)
        return lower_tree(self.grammar, pattern, full=True, unit=self._character, limits=self.limits)

    def _character(self, ranges: Ranges) -> Node:
        is_one = len(ranges) == 1 and ranges[0][0] == ranges[0][1]
        return self.grammar.literal(chr(ranges[0][0])) if is_one else self.grammar.chars(ranges)


_ABOUT_RULES = frozenset(["json", "block", "token", "subgrammar", "parametric", "use"])


def _is_terminal(tree: Tree[Token]) -> bool:
    """Whether an expression is made of terminals only."""
    return not any(
        part.data in _ABOUT_RULES or (part.data == "reference" and getattr(part.children[0], "type", "") == "RULE")
        for part in tree.iter_subtrees()
    )


def _first_token(tree: Tree[Token]) -> Token:
    return next(tree.scan_values(lambda value: isinstance(value, Token)), Token("", "", start_pos=0))


def _plain_text(pattern: Pattern) -> str | None:
    """The one text of a string without flags, which needs no more thought."""
    if not isinstance(pattern, Concat):
        return None
    characters = []
    for count, part in enumerate(pattern.parts):
        if count % LOOK_EVERY == LOOK_EVERY - 1:
            look()
        if not isinstance(part, CharSet) or len(part.ranges) != 1 or part.ranges[0][0] != part.ranges[0][1]:
            return None
        characters.append(chr(part.ranges[0][0]))
    return "".join(characters)
