"""An equal grammar in which what says the same is there once.

Rules that call each other, with parts that may be empty, have many words behind a text of which one says all that the others do.
They would be kept apart, or found to be the same again and again, behind each text, and some only by looking down to the bottom.
What `inclusions` knows tells it once and for all:

    nonterminals that contain each other are one
    A B is A          if A contains it and B may be empty; and B, if B contains it and A may be empty
    a word is left out beside one that contains it
    A A? A? ... is A*     if A contains A A and may be empty

Behind many an ambiguous grammar nothing ambiguous is left: `S = "a" S? S?` is `"a"+`.
"""

from __future__ import annotations

from ..base.utf8 import LAST_ASCII
from ..grammar.components import components, is_recursive
from ..grammar.expression import Grammar, Kind, Node, Rule
from ..grammar.merged_repetitions import untangled
from ..grammar.recursion import reachable
from ..grammar.source import Limits
from ..grammar.tail_recursion import as_repetition
from .finite_form import FiniteForm, finite_form
from .greibach import Greibach, Word, greibach
from .inclusions import MOST_IN_PAIRS, Inclusions
from .rule_automata import TooLarge, rule_automata

_KEPT = ("notes", "residue", "only_json", "has_json_values", "special_tokens", "end_tokens", "vocabulary")  # of `Grammar`


def reduced(grammar: Grammar, root: Node, limits: Limits) -> tuple[Grammar, Node] | None:
    """An equal grammar and its root; None where nothing says the same, or finding it takes more than it is worth. grammar: without
    left recursion, of classes, literals, sequences, alternatives, repetitions and calls."""
    try:
        whole = greibach(rule_automata(grammar, root))
        form, known = _settled(whole)
    except (TooLarge, RecursionError):  # or it is nested deeper than calls may be
        return None
    if _size(form) == _size(whole):
        return None
    made = _empty(grammar)
    node = untangled(made, _Writing(made, form, known).root(), limits)
    if any(made.kind(part) is Kind.CALL for part in reachable(made, node)) and (regular := finite_form(form)) is not None:
        made = _empty(grammar)
        node = untangled(made, _written(made, regular), limits)
    return made, node


def finite(grammar: Grammar, root: Node, limits: Limits) -> tuple[Grammar, Node] | None:
    """An equal grammar of rules that call each other at their ends alone, so that nothing is kept of a text, and its root; None
    where none is found. grammar: as of `reduced`."""
    try:
        form = finite_form(greibach(rule_automata(grammar, root)))
    except (TooLarge, RecursionError):
        return None
    if form is None:
        return None
    made = _empty(grammar)
    return made, untangled(made, _written(made, form), limits)


def _empty(like: Grammar) -> Grammar:
    made = Grammar()
    for name in _KEPT:
        setattr(made, name, getattr(like, name))
    return made


def _written(grammar: Grammar, form: FiniteForm) -> Node:
    """A rule for each state."""
    alive = form.states_with_texts()
    rules = {state: grammar.rule(f"state {state}") for state, has_text in enumerate(alive) if has_text}
    for state, rule in rules.items():
        ranges: dict[int, list[tuple[int, int]]] = {}
        for after, byte_class in zip(form.after[state], form.byte_classes, strict=True):
            if alive[after]:
                ranges.setdefault(after, []).extend(byte_class)
        options = [grammar.seq(_bytes(grammar, read), grammar.call(rules[after])) for after, read in ranges.items()]
        body = grammar.alt(*options, *([grammar.seq()] if form.accepting[state] else []))
        repetition = as_repetition(grammar, rule, body)
        grammar.define(rule, body if repetition is None else repetition)
    return grammar.call(rules[0])


def _settled(form: Greibach) -> tuple[Greibach, Inclusions]:
    """The smallest form that is found, and what is known of it. Words of two are compared where single ones tell no more."""
    known = Inclusions(form, with_pairs=False)
    with_pairs = False
    while True:
        smaller = simplified(form, known)
        if _size(smaller) == _size(form) and (with_pairs or len(form.nullable) > MOST_IN_PAIRS):
            return form, known
        with_pairs = with_pairs or len(smaller.nullable) == len(form.nullable)
        form, known = smaller, Inclusions(smaller, with_pairs=with_pairs)


def _size(form: Greibach) -> tuple[int, int]:
    """Nonterminals, and letters of words."""
    return len(form.nullable), sum(1 + len(word) for row in form.words for words in row for word in words)


def simplified(form: Greibach, known: Inclusions) -> Greibach:
    """The same language, without what is known to say no more."""
    size = len(form.nullable)
    same = [next(other for other in range(one + 1) if known.one(one, other) and known.one(other, one)) for one in range(size)]
    words = [[_largest({_joined(word, form, known, same) for word in words}, known) for words in row] for row in form.words]
    return Greibach(form.nullable, words, form.byte_classes).renumbered(same[0])


def _joined(word: Word, form: Greibach, known: Inclusions, same: list[int]) -> Word:
    """A word without those of its nonterminals that a neighbour takes in."""
    out: list[int] = []  # the first one last
    for nonterminal in reversed(word):
        out.append(same[nonterminal])
        while len(out) > 1:
            first, second = out[-1], out[-2]
            if form.nullable[second] and known.two(first, second, first):
                del out[-2]
            elif form.nullable[first] and known.two(first, second, second):
                del out[-1]
            else:
                break
    return tuple(reversed(out))


def _largest(words: set[Word], known: Inclusions) -> frozenset[Word]:
    """The words without those that others of them contain; of equal ones the shortest is left."""
    left = sorted(words, key=lambda word: (len(word), word))
    for word in reversed(tuple(left)):
        if any(other != word and known.contains(other, word) for other in left):
            left.remove(word)
    return frozenset(left)


class _Writing:
    """Writes a form as a grammar: a rule for each nonterminal that calls itself in the middle, without its empty text."""

    def __init__(self, grammar: Grammar, form: Greibach, known: Inclusions) -> None:
        self._grammar, self._form, self._known = grammar, form, known
        self._filled: dict[int, Node] = {}  # what stands for the texts of a nonterminal, but for the empty one

    def root(self) -> Node:
        called = [{other for words in row for word in words for other in word} for row in self._form.words]
        calls = {str(one): [str(other) for other in sorted(others)] for one, others in enumerate(called)}
        for component in components(calls):
            numbers = [int(name) for name in component]
            rules = {one: self._grammar.rule(f"part {one}") for one in numbers if is_recursive(component, calls)}
            self._filled.update({one: self._grammar.call(rule) for one, rule in rules.items()})
            for one in numbers:
                self._define(one, rules)
        return self._call(0)

    def _define(self, one: int, rules: dict[int, Rule]) -> None:
        body = self._body(one)
        if one not in rules:
            self._filled[one] = body
            return
        repetition = as_repetition(self._grammar, rules[one], body) if len(rules) == 1 else None
        self._grammar.define(rules[one], body if repetition is None else repetition)
        if repetition is not None:
            self._filled[one] = repetition

    def _body(self, one: int) -> Node:
        ranges: dict[Word, list[tuple[int, int]]] = {}
        for words, byte_class in zip(self._form.words[one], self._form.byte_classes, strict=True):
            for word in sorted(words):
                ranges.setdefault(word, []).extend(byte_class)
        options: list[Node] = []
        for word, bytes_read in ranges.items():
            first = _bytes(self._grammar, bytes_read)
            if word and word[-1] == one and self._form.nullable[one]:  # ends with itself: written so that a repetition is seen
                before = [self._call(other) for other in word[:-1]]
                options += (self._grammar.seq(first, *before, self._filled[one]), self._grammar.seq(first, *before))
            else:
                options.append(self._grammar.seq(first, *map(self._call, word)))
        return self._grammar.alt(*options)

    def _call(self, one: int) -> Node:
        filled = self._filled[one]
        if not self._form.nullable[one]:
            return filled
        return self._grammar.repeat(filled, 0, None if self._known.two(one, one, one) else 1)


def _bytes(grammar: Grammar, ranges: list[tuple[int, int]]) -> Node:
    """One byte of the ranges; as characters, where it is one."""
    ordered = sorted(ranges)
    if len(ordered) == 1 and ordered[0][0] == ordered[0][1]:
        return grammar.literal(bytes([ordered[0][0]]))
    return grammar.chars(ordered) if ordered[-1][1] <= LAST_ASCII else grammar.bytes_in(ordered)
