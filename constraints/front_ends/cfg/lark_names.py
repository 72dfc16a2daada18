"""The definitions of a grammar in lark's notation: rules, terminals, what is ignored, options. Names are checked."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from ...base.errors import ConstraintError, UnsupportedKeyword
from ...grammar.source import Limits
from ...grammar.stopwatch import look
from ..regex.parser import line_and_column, syntax_error
from ..regex.tree import Tree as Pattern
from .lark_attributes import Attributes, read_attributes
from .lark_common import LIBRARIES
from .lark_parameters import Condition, Parameter
from .lark_syntax import fail_at, parse
from .lark_terminals import Terminals, json_value, library_terminals
from .syntax_tree import Token, Tree

Found = TypeVar("Found")


class Definition(NamedTuple):
    """One rule as written. `template`: the names of its arguments; `has_parameter`: it is written `name::_`."""

    name: Token
    body: Tree[Token]
    template: tuple[str, ...]
    has_parameter: bool
    attributes: Attributes


@dataclass
class Options:
    """`%llguidance {...}`, which XGrammar calls `%grammar_options`."""

    allow_initial_skip: bool = False
    ignore_once: bool = False


@dataclass
class Names:
    """The definitions of one grammar text."""

    text: str
    limits: Limits
    rules: dict[str, Definition] = field(default_factory=dict)
    terminals: dict[str, Tree[Token]] = field(default_factory=dict)
    imported: dict[str, Pattern] = field(default_factory=dict)
    declared: dict[str, Token] = field(default_factory=dict)
    ignored: list[Tree[Token]] = field(default_factory=list)
    options: Options = field(default_factory=Options)
    parameters: dict[int, Parameter] = field(default_factory=dict)  # by position in the text
    conditions: dict[int, Condition] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)  # remarks for the user

    def __post_init__(self) -> None:
        for statement in parse(self.text):
            getattr(self, f"_{statement.data}")(statement)
        for name, definition in self.rules.items():
            look()
            self._check_rule(name, definition)
        for body in [*self.terminals.values(), *self.ignored]:
            look()
            self._check_names(body, ())

    # -- statements -------------------------------------------------------------------------------------------------

    def _rule(self, tree: Tree[Token], replaces: bool = False) -> None:
        definition = self._definition(tree)
        self._check_new(definition.name, replaces)
        self.rules[str(definition.name)] = definition

    def _terminal(self, tree: Tree[Token], replaces: bool = False) -> None:
        definition = self._definition(tree)
        name = definition.name
        if definition.has_parameter:
            fail_at(self.text, name, "a terminal has no parameter")
        if definition.template:
            self._refuse(
                name, "template", "templates of terminals are not built", "a template of a rule, in lower case"
            )
        if definition.attributes.written:
            fail_at(
                self.text, name, f"a terminal has no attributes such as {definition.attributes.written[0]}; a rule has"
            )
        self._check_new(name, replaces)
        self.imported.pop(str(name), None)
        self.terminals[str(name)] = definition.body

    def _definition(self, tree: Tree[Token]) -> Definition:
        name, parameter, template, priority, attributes, body = tree.children
        assert isinstance(name, Token) and isinstance(body, Tree)
        if isinstance(priority, Token):
            self.notes.append(f"the priority of {name} chooses between readings of a text; the texts are the same")
        if isinstance(parameter, Token) and parameter.removeprefix("::").strip() != "_":
            fail_at(self.text, parameter, "the parameter of a definition is written ::_")
        names = tuple(map(str, template.children)) if isinstance(template, Tree) else ()
        if len(set(names)) < len(names):
            fail_at(self.text, name, "two arguments of a template have the same name")
        found = read_attributes(self.text, attributes if isinstance(attributes, Tree) else None)
        if found.written and isinstance(parameter, Token):
            fail_at(self.text, parameter, "a rule with a parameter has no attributes")
        return Definition(name, body, names, isinstance(parameter, Token), found)

    def _check_new(self, name: Token, replaces: bool) -> None:
        known = name in self.rules or name in self.terminals or name in self.imported or name in self.declared
        if known and not replaces:
            fail_at(
                self.text, name, f"{str(name)!r} is defined already; its alternatives belong together, or use %extend"
            )
        if replaces and not known:
            fail_at(self.text, name, f"there is no {str(name)!r} before this that it could replace")

    def _override(self, tree: Tree[Token]) -> None:
        (definition,) = tree.children
        assert isinstance(definition, Tree)
        getattr(self, f"_{definition.data}")(definition, replaces=True)

    def _extend(self, tree: Tree[Token]) -> None:
        (written,) = tree.children
        assert isinstance(written, Tree)
        definition = self._definition(written)
        name = str(definition.name)
        self._check_new(definition.name, replaces=True)
        if name in self.rules:
            before = self.rules[name]
            self.rules[name] = before._replace(body=_either(before.body, definition.body))
        elif name in self.terminals:
            self.terminals[name] = _either(self.terminals[name], definition.body)
        elif name in self.imported:
            original = f"{name}_BEFORE_EXTEND"
            self.imported[original] = self.imported.pop(name)
            self.terminals[name] = _either(_alternatives_of(Token("TERMINAL", original, start_pos=0)), definition.body)
        else:
            self._refuse(definition.name, "%extend", "what is declared only has no alternatives", "a definition")

    def _ignore(self, tree: Tree[Token]) -> None:
        for child in tree.children:
            assert isinstance(child, Tree)
            if next(child.scan_values(lambda value: isinstance(value, Token)), None) is None:
                raise ConstraintError("%ignore names nothing", keyword="%ignore", instead="a terminal, such as %ignore / +/")
            self.ignored.append(child)

    def _import(self, tree: Tree[Token]) -> None:
        path, *alias = tree.children
        assert isinstance(path, Tree)
        *module, name = [part for part in path.children if isinstance(part, Token)]
        self._take_import(module, name, next((one for one in alias if isinstance(one, Token)), name))

    def _import_many(self, tree: Tree[Token]) -> None:
        path, *names = tree.children
        assert isinstance(path, Tree)
        for name in names:
            assert isinstance(name, Token)
            self._take_import([part for part in path.children if isinstance(part, Token)], name, name)

    def _take_import(self, module: list[Token], name: Token, alias: Token) -> None:
        where = "".join(module).strip(".")
        if where not in LIBRARIES or module[0] == ".":
            reason, instead = f"there is no library {where!r}", f"the definitions, or one of {', '.join(LIBRARIES)}"
            self._refuse(module[0] if module else name, "%import", reason, instead)
        terminals = library_terminals(where)
        if name not in terminals:
            similar = difflib.get_close_matches(name, terminals, n=1)
            but = f", but {similar[0]!r}" if similar else ""
            fail_at(self.text, name, f"the library {where} has no terminal {str(name)!r}{but}")
        self._check_new(alias, replaces=False)
        if alias.type == "TERMINAL":
            self.imported[str(alias)] = terminals[str(name)]
            return
        hidden = f"{where}.{name}"  # a rule of that name
        self.imported[hidden] = terminals[str(name)]
        body = _alternatives_of(Token("TERMINAL", hidden, start_pos=name.start_pos))
        self.rules[str(alias)] = Definition(alias, body, (), False, Attributes())

    def _declare(self, tree: Tree[Token]) -> None:
        self.declared.update((str(name), name) for name in tree.children if isinstance(name, Token))

    def _options(self, tree: Tree[Token]) -> None:
        token = tree.children[-1]
        assert isinstance(token, Token)
        options = json_value(self.text, token)
        assert isinstance(options, dict)
        for key, value in options.items():
            if key == "skip_repetition" and value in ("once", "many"):
                self.options.ignore_once = value == "once"
            elif key in ("allow_initial_skip", "ignore_once") and isinstance(value, bool):
                setattr(self.options, key, value)
            elif key not in ("no_forcing", "allow_invalid_utf8") or value is not False:
                self._refuse(
                    token, key, "not an option that is enforced, or not with this value", "the options without it"
                )

    # -- checks -----------------------------------------------------------------------------------------------------

    def _check_rule(self, name: str, rule: Definition) -> None:
        self._check_names(rule.body, rule.template)
        for part in rule.body.iter_subtrees():
            if part.data == "alternative" and isinstance(part.children[-1], Token):
                condition = part.children[-1]
                if not rule.has_parameter:
                    fail_at(self.text, condition, f"the rule {name!r} has no parameter that a condition could ask for")
                self.conditions[condition.start_pos or 0] = self._read(Condition, condition, "%if")
            if part.data == "parametric":
                parameter = part.children[1]
                assert isinstance(parameter, Token)
                found = self.parameters[parameter.start_pos or 0] = self._read(Parameter, parameter, "::")
                if found.needs_value and not rule.has_parameter:
                    fail_at(self.text, parameter, f"the rule {name!r} has no parameter to hand on")

    def _read(self, kind: Callable[[str], Found], token: Token, mark: str) -> Found:
        try:
            return kind(token.removeprefix(mark).strip())
        except ConstraintError as error:
            instead = f"; instead: {error.instead}" if error.instead else ""
            raise syntax_error(self.text, error.reason + instead, token.start_pos or 0) from None

    def _check_names(self, body: Tree[Token], arguments: Iterable[str]) -> None:
        for token, kind in _uses(body):
            if token in arguments:
                continue
            rule = self.rules.get(str(token))
            if rule is None and token not in self.terminals and token not in self.imported:
                self._undefined(token)
            if rule is not None and kind != "parametric" and rule.has_parameter:
                fail_at(self.text, token, f"the rule {str(token)!r} has a parameter, which is missing here")
            if kind == "parametric" and (rule is None or not rule.has_parameter):
                fail_at(self.text, token, f"{str(token)!r} has no parameter")
            if (kind == "use") != bool(rule and rule.template):
                what = "is no template" if kind == "use" else "is a template, its arguments are missing here"
                fail_at(self.text, token, f"{str(token)!r} {what}")

    def _undefined(self, token: Token) -> None:
        if token in self.declared:
            reason = "it is declared, and only a lexer written in Python could say what it is"
            self._refuse(token, "%declare", reason, "a definition")
        similar = difflib.get_close_matches(str(token), [*self.rules, *self.terminals, *self.imported], n=1)
        line, column = line_and_column(self.text, token.start_pos or 0)
        raise ConstraintError(
            f"{str(token)!r} is not defined", path=str(token), line=line, column=column,
            instead=f"{similar[0]!r}?" if similar else f"define it: {token}: ...",
        )  # fmt: skip

    def _refuse(self, token: Token, keyword: str, reason: str, instead: str) -> None:
        line, column = line_and_column(self.text, token.start_pos or 0)
        raise UnsupportedKeyword(reason, keyword=keyword, instead=instead, line=line, column=column)

    def all_terminals(self) -> Terminals:
        """The terminals, built."""
        return Terminals(self.text, self.terminals, self.limits, self.imported)


def _uses(body: Tree[Token]) -> Iterator[tuple[Token, str]]:
    """The names in an expression, each with the kind of its use."""
    for part in body.iter_subtrees():
        if part.data in ("reference", "parametric", "use"):
            token = part.children[0]
            assert isinstance(token, Token)
            yield token, str(part.data)


def _either(first: Tree[Token], second: Tree[Token]) -> Tree[Token]:
    return Tree("alternatives", [*first.children, *second.children])


def _alternatives_of(name: Token) -> Tree[Token]:
    sequence: Tree[Token] = Tree("sequence", [Tree("reference", [name])])
    return Tree("alternatives", [Tree("alternative", [Tree("conjunction", [sequence]), None, None])])
