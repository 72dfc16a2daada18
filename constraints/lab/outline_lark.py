"""Outlines of grammars in lark's notation. Templates and parameters are written out, one rule for each use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..front_ends.cfg.lark_grammar import Lark
from ..front_ends.cfg.lark_json import inline_json
from ..front_ends.cfg.lark_names import Definition, Names
from ..front_ends.cfg.lark_terminals import Terminals, count_of, literal_text, one_character
from ..front_ends.cfg.syntax_tree import Token, Tree
from ..front_ends.regex.regex import lower_tree
from ..front_ends.regex.tree import Alternate
from ..front_ends.regex.tree import Repeat as RepeatTree
from ..front_ends.regex.tree import Tree as PatternTree
from ..grammar.expression import Grammar, Node
from ..grammar.source import Limits
from .outline import Call, Chars, Choice, Outline, OutlineRule, Part, Pattern, Repeat, Series, Text, spelled

_REPEATS: dict[str, tuple[int, int | None]] = {"star": (0, None), "plus": (1, None), "optional": (0, 1), "maybe": (0, 1)}
_MOST_RULES = 2000  # written out from templates and parameters

Arguments = Mapping[str, Part]


@dataclass(frozen=True, eq=False)
class Terminal:
    """A terminal as a source of its own."""

    pattern: PatternTree

    def lower(self, grammar: Grammar, limits: Limits) -> Node:
        return lower_tree(grammar, self.pattern, full=True, unit=grammar.chars, limits=limits)


def lark_outline(source: Lark, limits: Limits) -> Outline:
    """The rules and terminals of a grammar that compiles."""
    return _Reader(source, limits).outline()


class _Reader:
    def __init__(self, source: Lark, limits: Limits) -> None:
        self.source, self.text, self.limits = source, source.text, limits
        self.names = Names(source.text, limits)
        self.terminals: Terminals = self.names.all_terminals()
        self.rules: dict[str, OutlineRule] = {}
        self.unread: list[str] = []
        self._todo: list[tuple[str, Definition, Arguments, int | None]] = []

    def outline(self) -> Outline:
        for name, body in self.names.terminals.items():
            pattern = Pattern(Terminal(self.terminals.patterns[name]), name, _place(body))
            self.rules[name] = OutlineRule(name, self._body(body, {}, None), pattern.at, pattern)
        for name, definition in self.names.rules.items():
            if not definition.template and not definition.has_parameter:
                self.rules[name] = self._rule(name, definition, {}, None)
        while self._todo:
            name, definition, arguments, value = self._todo.pop()
            self.rules[name] = self._rule(name, definition, arguments, value)
        skipped = [str(part.children[0]) for tree in self.names.ignored for part in tree.find_data("reference")]
        unread = tuple(dict.fromkeys(self.unread))
        return Outline(self.text, self.source.start, self.rules, self._skip(), skipped, unread)

    def _skip(self) -> Pattern | None:
        if not self.names.ignored:
            return None
        ignored = Alternate(tuple(self.terminals.pattern(tree) for tree in self.names.ignored))
        most = 1 if self.names.options.ignore_once else None
        return Pattern(Terminal(RepeatTree(ignored, 0, most)), "what %ignore names", _place(self.names.ignored[0]))

    def _rule(self, name: str, definition: Definition, arguments: Arguments, value: int | None) -> OutlineRule:
        at = definition.name.start_pos or 0
        if definition.attributes.is_lexeme:
            self.unread.append(f"rule {definition.name} is lazy or ends at a stop")
        return OutlineRule(name, self._body(definition.body, arguments, value), at)

    def _body(self, tree: Tree[Token], arguments: Arguments, value: int | None) -> Part:
        parts: dict[int, Part] = {}
        for subtree in tree.iter_subtrees():
            below = [parts[id(child)] for child in subtree.children if isinstance(child, Tree)]
            parts[id(subtree)] = self._part(subtree, below, arguments, value)
        return parts[id(tree)]

    def _part(self, tree: Tree[Token], below: Sequence[Part], arguments: Arguments, value: int | None) -> Part:
        kind, at = str(tree.data), _place(tree)
        match kind:
            case "alternatives":
                holding = [option for option in below if not (isinstance(option, Choice) and not option.options)]
                return holding[0] if len(holding) == 1 else Choice(tuple(holding), at)
            case "sequence":
                return below[0] if len(below) == 1 else Series(tuple(below), at)
            case "group":
                return below[0]
            case "alternative":
                condition = tree.children[-1]
                holds = value is None or not isinstance(condition, Token) or self._holds(condition, value)
                return below[0] if holds else Choice((), at)
            case "conjunction" if len(below) == 1:
                return below[0]
            case "conjunction":
                return self._one_piece(tree, " & ".join(map(spelled, below)), at)
            case "negation":
                return self._one_piece(tree, f"~{spelled(below[0])}", at)
        if kind in _REPEATS:
            return Repeat(below[0], *_REPEATS[kind], at)
        tokens = [child for child in tree.children if isinstance(child, Token)]
        if kind == "counted":
            return Repeat(below[0], *count_of(self.text, tokens[-1], self.limits), at)
        if kind == "use":
            return self._use(str(tokens[0]), below, at)
        if kind == "parametric":
            parameter = self.names.parameters[tokens[1].start_pos or 0].of(value or 0)
            return self._instance(f"{tokens[0]}::{parameter}", str(tokens[0]), {}, parameter, at)
        return self._leaf(kind, tree, tokens, arguments, at)

    def _leaf(self, kind: str, tree: Tree[Token], tokens: list[Token], arguments: Arguments, at: int) -> Part:
        token = tokens[0]
        match kind:
            case "literal" if not token.endswith("i"):
                return Text(literal_text(self.text, token), at)
            case "range":
                low, high = (one_character(self.text, end) for end in tokens)
                return Chars(((ord(low), ord(high)),), f"{tokens[0]}..{tokens[1]}", at)
            case "reference" if token in arguments:
                return arguments[str(token)]
            case "reference" if token.type == "RULE" or token in self.names.terminals:
                return Call(str(token), at)
            case "reference" | "literal" | "regexp" | "structured":
                return Pattern(Terminal(self.terminals.value(tree, tokens[-1])), str(tokens[-1]), at)
            case "json":
                return Pattern(inline_json(str(tokens[-1])), "%json", at)
            case "block":
                return Pattern(Lark(tokens[-1][tokens[-1].index("{") + 1 : -1]), "%lark", at)
        return Pattern(None, str(token), at)

    def _one_piece(self, tree: Tree[Token], spelling: str, at: int) -> Part:
        uses = dict.fromkeys(str(part.children[0]) for part in tree.find_data("reference"))
        named = tuple(name for name in uses if name in self.names.terminals)
        return Pattern(Terminal(self.terminals.pattern(tree)), spelling, at, named)

    def _holds(self, condition: Token, value: int) -> bool:
        return self.names.conditions[condition.start_pos or 0].holds(value)

    def _use(self, template: str, below: Sequence[Part], at: int) -> Part:
        arguments = dict(zip(self.names.rules[template].template, below, strict=True))
        return self._instance(f"{template}{{{', '.join(map(spelled, below))}}}", template, arguments, None, at)

    def _instance(self, name: str, written: str, arguments: Arguments, value: int | None, at: int) -> Part:
        if name not in self.rules and len(self.rules) >= _MOST_RULES:
            self.unread.append(f"more than {_MOST_RULES} rules written out from templates and parameters")
            return Pattern(None, name, at)
        if name not in self.rules:
            definition = self.names.rules[written]
            self.rules[name] = OutlineRule(name, Series((), at), definition.name.start_pos or 0)  # replaced when its turn comes
            self._todo.append((name, definition, arguments, value))
        return Call(name, at)


def _place(tree: Tree[Token]) -> int:
    """The index in the text where a tree begins; 0 for an empty one."""
    token = next(iter(tree.scan_values(lambda value: isinstance(value, Token))), None)
    return 0 if token is None else token.start_pos or 0
