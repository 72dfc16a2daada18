"""Texts sorted by which of some languages they belong to: one minimal automaton for all, and the grammar of it.

The keys of an object are sorted so, where several patterns say what their values must be. As one expression for each class, a state
inside a key would be a state of every class at a time; here it is one state, which knows what may still matter of the text so far:

    any text, with a, with b         classes: neither, a, b, both        states: nothing yet, a found, b found, both found

A class is a set of languages: the texts that belong to these and to no others. Sets are bits of numbers of any length, and in an
automaton classes are numbered, as there may be many languages and never are many classes. The automata of halves of the languages
are multiplied, whose product is minimal as they are: what leads to different pairs of classes must stay apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....automaton.automaton_loops import TOO_MANY_STATES, merge_letters, multiply
from ....automaton.equivalent_states import find_blocks
from ....automaton.finite_automata import (
    FiniteAutomaton,
    TooManyStates,
    complement,
    live,
    minimized,
    only,
    product,
    trimmed,
)
from ....automaton.tables import DEAD
from ....grammar.expression import FAIL, Grammar, Node
from ....grammar.matcher import Steps

UNCLASSED = -1  # the class of a state where no text ends
_FIRST_STATES = 512  # for which room is made at first
_LONGEST_CHARACTER = 4  # bytes
_MOST_ROUNDS = 16  # to find the states from which any characters may come
_CONTINUED = np.arange(256) >> 6 == 2  # the bytes of a character behind its first one (RFC 3629)


class TextClasses(NamedTuple):
    """Texts, and the class of each."""

    letters: NDArray[np.int32]  # [256] the letter of a byte
    next: NDArray[np.int32]  # [states, letters]
    classes: NDArray[np.int64]  # [states] the class of the texts that end there, UNCLASSED where none does
    start: int

    @property
    def num_states(self) -> int:
        return len(self.next)

    @property
    def numbers(self) -> list[int]:
        """The classes that have texts."""
        found: list[int] = np.unique(self.classes).tolist()
        return [each for each in found if each != UNCLASSED]


def automaton_of(steps: Steps, node: Node, limit: int) -> FiniteAutomaton:
    """The minimal automaton of an expression, found before there is a machine. Raises `TooManyStates` beyond `limit` states."""
    positions = [steps.before(node)]
    number = {positions[0]: 1}
    rows: list[list[tuple[int, int, int]]] = []
    for position in positions:  # it grows
        rows.append(row := [])
        for low, high, after in steps.intervals(position):
            if after not in number:
                number[after] = len(number) + 1
                positions.append(after)
            row.append((low, high, number[after]))
        if len(positions) > limit:
            raise TooManyStates
    bounds = sorted({0}.union(*({low, high + 1} for row in rows for low, high, _ in row)) - {256})
    letters = np.searchsorted(bounds, np.arange(256), side="right").astype(np.int32) - 1
    next_ = np.zeros((len(rows) + 1, len(bounds)), np.int32)
    for state, row in enumerate(rows, 1):
        for low, high, target in row:
            next_[state, letters[low] : letters[high] + 1] = target
    accepts = np.array([False, *map(steps.is_accepting, positions)], np.uint8)
    return minimized(trimmed(FiniteAutomaton(letters.astype(np.int32), next_, accepts, 1)))


def classified(
    whole: FiniteAutomaton, languages: Iterable[FiniteAutomaton], limit: int, alike: Callable[[list[int]], Mapping[int, int]],
) -> tuple[TextClasses, list[int]]:
    """The texts of `whole` by which of the languages they belong to, and for each class these as bits; the first language is bit 0.
    From every state some text is completed. Raises `TooManyStates` beyond `limit` states.

    Languages are asked for one by one, and no more of them where the first ones are too many.

    alike: for sets of some of the languages the set of which each may stay a part, whatever the others are.
    """
    parts: list[tuple[TextClasses, list[int]]] = []
    counts: list[int] = []  # of languages
    for bit, language in enumerate(languages):  # neighbours are joined, since their texts often begin alike; and at once
        parts.append(_halved(whole, language, bit, limit))
        counts.append(1)
        while len(parts) > 1 and counts[-1] == counts[-2]:
            _join_last(parts, counts, limit, alike)
    while len(parts) > 1:
        _join_last(parts, counts, limit, alike)
    if not parts:
        return TextClasses(whole.letters, whole.next, np.where(whole.accepts == 1, 0, UNCLASSED), whole.start), [0]
    texts, sets = parts[0]
    order = sorted(range(len(sets)), key=sets.__getitem__)
    number = np.append(np.argsort(order), UNCLASSED)  # at UNCLASSED, which is -1, too
    return texts._replace(classes=number[texts.classes]), [sets[each] for each in order]


def without(whole: FiniteAutomaton, excluded: FiniteAutomaton, limit: int) -> FiniteAutomaton:
    """The texts of one automaton that are none of another's. Raises `TooManyStates` beyond `limit` states."""
    return minimized(product(whole, complement(excluded), limit)[0])


def _halved(whole: FiniteAutomaton, language: FiniteAutomaton, bit: int, limit: int) -> tuple[TextClasses, list[int]]:
    """The texts of an automaton, those that belong to a language in a class of their own."""
    nowhere = language.num_states  # behind what no text of the language begins with
    rows = np.where(language.next == DEAD, nowhere, language.next)
    rows[DEAD] = DEAD
    rows = np.vstack([rows, np.full((1, rows.shape[1]), nowhere)]).astype(np.int32)
    start = language.start if language.start != DEAD else nowhere
    texts = TextClasses(whole.letters, whole.next, np.where(whole.accepts == 1, 0, UNCLASSED), whole.start)
    others = TextClasses(language.letters, rows, np.append(language.accepts, 0).astype(np.int64), start)
    pairs, found = _multiplied(texts, others, limit)
    texts, sets = _numbered(found, texts.classes[pairs[:, 0]] != UNCLASSED, others.classes[pairs[:, 1]], [0, 1 << bit])
    return minimal(texts), sets


def _join_last(
    parts: list[tuple[TextClasses, list[int]]], counts: list[int], limit: int, alike: Callable[[list[int]], Mapping[int, int]]
) -> None:
    """Put what the last two parts come to in their place."""
    second, more = parts.pop(), counts.pop()
    parts[-1] = _joined(parts[-1], second, limit, alike)
    counts[-1] += more


def _joined(
    first: tuple[TextClasses, list[int]], second: tuple[TextClasses, list[int]], limit: int,
    alike: Callable[[list[int]], Mapping[int, int]],
) -> tuple[TextClasses, list[int]]:  # fmt: skip
    """The same texts in both, by the languages of both."""
    if not second[1]:
        return second  # there are no texts, so there is no class of them
    pairs, found = _multiplied(first[0], second[0], limit)
    left, right = first[0].classes[pairs[:, 0]], second[0].classes[pairs[:, 1]]
    is_end, count = left != UNCLASSED, len(second[1])
    met, of_met = np.unique(np.where(is_end, left * count + right, 0), return_inverse=True)
    sets = [first[1][each // count] | second[1][each % count] for each in met.tolist()]
    ended = set(of_met[is_end].tolist())  # 0 stands for no end as well
    numbers = alike([each for number, each in enumerate(sets) if number in ended])
    texts, kept = _numbered(found, is_end, of_met, [numbers.get(each, each) for each in sets])
    return (texts if len(kept) == len(ended) else minimal(texts)), kept


def _numbered(
    texts: TextClasses, is_end: NDArray[np.bool_], kinds: NDArray[np.int64], sets: list[int]
) -> tuple[TextClasses, list[int]]:
    """Texts with classes, and the set of each: sets[kinds[state]] where texts end."""
    used = np.unique(kinds[is_end]).tolist()
    number = {each: index for index, each in enumerate(dict.fromkeys(sets[kind] for kind in used))}
    new = np.full(len(sets), UNCLASSED)
    new[used] = [number[sets[kind]] for kind in used]
    return texts._replace(classes=np.where(is_end, new[kinds], UNCLASSED)), list(number)


def _multiplied(first: TextClasses, second: TextClasses, limit: int) -> tuple[NDArray[np.int32], TextClasses]:
    """The pairs of states of two automata that texts lead to, and an automaton of these without classes."""
    codes, letters = np.unique(first.letters * 256 + second.letters, return_inverse=True)
    of_first, of_second = (codes // 256).astype(np.int32), (codes % 256).astype(np.int32)
    room = min(_FIRST_STATES, limit)
    while True:
        pairs, next_ = np.empty((room + 2, 2), np.int32), np.zeros((room + 2, codes.size), np.int32)
        count = multiply(first.next, second.next, of_first, of_second, first.start, second.start, pairs, next_)
        if count != TOO_MANY_STATES:
            break
        if room == limit:
            raise TooManyStates
        room = min(8 * room, limit)
    none = np.full(count + 1, UNCLASSED)
    return pairs[: count + 1], TextClasses(letters.astype(np.int32).ravel(), next_[: count + 1], none, min(1, count))


def minimal(texts: TextClasses) -> TextClasses:
    """The same texts and classes with the fewest states and letters. From every state some text is completed.

    Classes become letters: one for each bit of their numbers, which leads from the states of the classes that have it to a state of
    its own.
    """
    count = texts.num_states
    bits = [(texts.classes >= 0) & (texts.classes >> bit & 1 == 1) for bit in range(int(texts.classes.max(initial=0)).bit_length())]
    rows = np.hstack([texts.next, *(np.where(has, count, DEAD)[:, None] for has in bits)])
    rows = np.vstack([rows, np.full((1, rows.shape[1]), DEAD)]).astype(np.int32)
    accepts = np.append(texts.classes != UNCLASSED, True).astype(np.uint8)
    block = np.zeros(count + 1, np.int32)
    blocks = find_blocks(np.ascontiguousarray(rows), accepts, block)
    first = np.full(blocks + 1, count, np.int64)
    first[block[:count][::-1]] = np.arange(count)[::-1]
    kept_states = first < count  # all, but the state behind classes where nothing else is like it
    number = np.cumsum(kept_states) - 1
    next_ = number[block[texts.next[first[kept_states]]]].astype(np.int32)
    letter, kept = np.empty(next_.shape[1], np.int32), np.empty(next_.shape[1], np.int32)
    num_letters = merge_letters(next_, letter, kept)
    columns = np.ascontiguousarray(next_[:, kept[:num_letters]])
    start = int(number[block[texts.start]])
    return TextClasses(letter[texts.letters], columns, texts.classes[first[kept_states]], start)


def class_of(texts: TextClasses, text: bytes) -> int:
    """The class of a text; UNCLASSED where it is none of them."""
    state = texts.start
    for letter in texts.letters[np.frombuffer(text, np.uint8)].tolist():
        state = int(texts.next[state, letter])
    return int(texts.classes[state])


def renamed(texts: TextClasses, numbers: Mapping[int, int]) -> TextClasses:
    """The texts of some classes, with other numbers for these; what has the same number becomes one class."""
    classes = np.array([numbers.get(each, UNCLASSED) for each in texts.classes.tolist()], np.int64)
    flags = FiniteAutomaton(texts.letters, texts.next, (classes != UNCLASSED).astype(np.uint8), texts.start)
    kept = live(flags)
    whole = only(flags, kept)
    return minimal(TextClasses(whole.letters, whole.next, classes[kept], whole.start))


def number_of_texts(texts: TextClasses, most: int) -> dict[int, int | None]:
    """How many texts each class has; None for `most` or more."""
    sizes = np.bincount(texts.letters, minlength=texts.next.shape[1])  # bytes of each letter
    counts = np.broadcast_to(sizes, texts.next.shape).ravel()
    into = np.bincount(texts.next.ravel(), counts, texts.num_states).astype(np.int64).tolist()  # bytes that lead to each state
    rows, letters = texts.next.tolist(), list(enumerate(sizes.tolist()))
    ways = dict.fromkeys([texts.start], 1)
    work = [texts.start] if texts.start != DEAD and into[texts.start] == 0 else []
    while work:
        state = work.pop()
        for letter, size in letters:
            if (target := rows[state][letter]) != DEAD:
                ways[target] = min(ways.get(target, 0) + ways[state] * size, most)
                into[target] -= size
                if into[target] == 0:
                    work.append(target)
    totals = dict.fromkeys(texts.numbers, 0)
    for state in np.flatnonzero(texts.classes != UNCLASSED).tolist():  # behind a loop bytes are left that lead to it
        totals[int(texts.classes[state])] += most if into[state] > 0 else ways.get(state, 0)
    return {number: total if total < most else None for number, total in totals.items()}


def number_of_words(words: FiniteAutomaton, most: int) -> int:
    """How many words an automaton accepts from whose every state one is completed; `most` for that many or more."""
    texts = TextClasses(words.letters, words.next, np.where(words.accepts == 1, 0, UNCLASSED), words.start)
    count = number_of_texts(texts, most).get(0, 0)
    return most if count is None else count


def as_grammar(grammar: Grammar, texts: TextClasses, ends: Sequence[Node], free: Node, loop: FiniteAutomaton) -> Node:
    """The texts of an automaton as rules, one for each state between two characters, and behind them ends[the class of the text].

    From every state of the automaton some text is completed. free, loop: characters of `chars`, and all strings of them. Where any
    of these may come, the rule says so, and masks need not look at them one by one.
    """
    rows = texts.next[:, texts.letters]
    if texts.start == DEAD:
        return FAIL
    is_rule = (rows[:, ~_CONTINUED] != DEAD).any(axis=1) | (texts.classes != UNCLASSED)
    inside, known = [], is_rule | (np.arange(len(rows)) == DEAD)
    for _ in range(_LONGEST_CHARACTER - 1):  # states inside of a character, those before its last byte first
        inside.append(np.flatnonzero(~known & known[rows].all(axis=1)))
        known[inside[-1]] = True
    is_rule |= ~known
    nodes = np.full(len(rows), FAIL, np.int32)
    is_free = _read_all(texts, loop)
    rules = {state: grammar.rule("a key") for state in np.flatnonzero(is_rule).tolist()}
    for state, rule in rules.items():
        nodes[state] = grammar.call(rule, free if is_free[state] else FAIL)
    for states in inside:
        nodes[states] = _readers(grammar, nodes[rows[states]])
    for (state, rule), reader in zip(rules.items(), _readers(grammar, nodes[rows[list(rules)]]), strict=True):
        end = texts.classes[state]
        grammar.define(rule, reader if end == UNCLASSED else grammar.alt(reader, ends[end]))
    return Node(int(nodes[texts.start]))


def _read_all(texts: TextClasses, loop: FiniteAutomaton) -> NDArray[np.bool_]:
    """From which states every text of `loop` leads to one that is not dead, as far as that shows in a few rounds."""
    _, byte = np.unique(texts.letters * 256 + loop.letters, return_index=True)  # one for each letter of both
    behind, steps = texts.next[:, texts.letters[byte]], loop.next[:, loop.letters[byte]]
    can = np.full((texts.num_states, loop.num_states), True)  # reads all that a state of `loop` reads
    can[DEAD] = False
    for _ in range(_MOST_ROUNDS):
        before = can.copy()
        for state, letter in zip(*np.nonzero(steps), strict=True):
            can[:, state] &= can[behind[:, letter], steps[state, letter]]
        if (can == before).all():
            return can[:, loop.start]
    return np.full(texts.num_states, False)


def _readers(grammar: Grammar, follows: NDArray[np.int32]) -> list[Node]:
    """A node for each row of `follows`, [nodes, 256]: what follows each byte, FAIL where it is not read."""
    if len(follows) == 0:
        return []
    begins = np.hstack([np.full((len(follows), 1), True), follows[:, 1:] != follows[:, :-1]])
    which, low = np.nonzero(begins)
    high = np.append(low[1:] - 1, 255) % 256  # the next row begins at 0
    follow = follows[which, low]
    is_read = follow != FAIL
    edges = np.stack([low, high, follow], axis=1)[is_read].astype(np.int32)
    return grammar.readers(edges.tobytes(), np.bincount(which[is_read], minlength=len(follows)).tolist())
