"""The one intermediate form: every front end lowers to a `Grammar`.

A grammar is an arena of hash-consed expressions over bytes, named by small integers (`Node`), plus rules that may call each
other. An expression denotes a set of byte strings:

    FAIL                       nothing
    EMPTY                      the empty string
    literal(b"abc")            one string
    chars(ranges)              the UTF-8 encoding of one character of a set of code points
    bytes_in(ranges)           one byte of a set
    seq(x, y, ...)             concatenation
    alt(x, y, ...)             union
    repeat(x, low, high)       low to high copies (high None = no bound); the bound is a counter, never unrolled
    multiple(...), fraction(...)   digits that make a number divisible; remainders are carried along, see multiples.py
    bag(parts, low, high)      members in any order: each part so many times, all together low to high; counters too
    both(x, y)                 intersection     | regular operands only: no `call` inside
    without(x, y)              difference       |
    negate(x)                  complement within all byte strings
    unlisted(x, words)         x without some words, for an x that reads every byte in one way only
    call(rule)                 what the rule is defined as; recursion of any kind except left recursion

Children are made before parents, so node ids are in topological order except through calls. Nothing is expanded here: the
automaton derives its states from these nodes one byte at a time, when a byte is first crossed. What a front end is says
`source.py`.

Objects of JSON must not repeat a key, arrays with `uniqueItems` no item. Where a grammar cannot say so by itself, the bytes that
matter are marked with an `Event`, and the automaton keeps what every open object and array has so far (see `seen_values.py`):

    key(body)                                          a key that its object must not have yet
    mark("{", OBJECT_OPEN) ... mark("}", OBJECT_CLOSE)  the object around such keys
    mark("[", ARRAY_OPEN) item mark(",", ITEM_CLOSE, item) ... mark("]", ARRAY_CLOSE)   items that all differ

Behind every comma, and the brace of an object that needs a member, a key must be left that the object does not have. Between two
such keys of an object there are at least KEYS_APART bytes.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, Self

from ..base.errors import ConstraintError
from ..base.kinds import UNBOUNDED, Event, Kind, Supply
from ..base.utf8 import LAST_ASCII, Ranges, normalize
from ..numba_support.divisors import COUNTS
from ..vocabulary.vocabulary import Vocabulary, token_spelling
from .copies import repeated
from .emptiness import parts_without_empty, shows_empty
from .stopwatch import look
from .store import EMPTY, FAIL, Edges, Node, NodeStore, Rule
from .unordered_members import bag

__all__ = ["EMPTY", "FAIL", "LONGEST_LITERAL", "UNBOUNDED", "Edges", "Event", "Grammar", "Kind", "Node", "Rule", "Step", "Supply"]

LONGEST_LITERAL: Final = 1 << 16  # bytes; neighbouring literals are joined up to this

_LITERAL: Final = int(Kind.LITERAL)  # reading a member is slow
_SEQ: Final = int(Kind.SEQ)
_ALT: Final = int(Kind.ALT)
_BOTH: Final = int(Kind.BOTH)
_NEGATE: Final = int(Kind.NEGATE)
_REPEAT: Final = int(Kind.REPEAT)
_CLASS: Final = int(Kind.CLASS)
_FAIL: Final = int(Kind.FAIL)

# One node of an expression that is kept to be made again. Its parts are steps before it, by their number: its kind; for SEQ and
# BOTH both parts, for NEGATE and REPEAT the one, and its low; for REPEAT its high, else what there is more to say: of ALT the
# options, of LITERAL the bytes, of CLASS its edges (b = 1) or the characters that it stands for (b = 0).
Step = tuple[int, int, int, Any]


class Grammar(NodeStore):
    """Expressions and rules; see the module's documentation for what each builder method denotes."""

    def __init__(self) -> None:
        super().__init__()
        self.labels: dict[Node, str] = {}  # where a node came from, for `explain`
        self.claims: dict[Node, tuple[str, tuple[str, ...]]] = {}  # (path, keywords) that an intersection stands for
        self.notes: list[str] = []  # remarks for the user: ignored annotations, narrower formats
        self.residue: list[str] = []  # relaxations the user opted in to
        self.search_share = 1.0  # of limits.search_nodes, for finding the fewest tokens exactly
        self.units: dict[Node, Ranges] = {}  # the characters that `chars` nodes stand for
        self.segments: dict[Rule, Hashable] = {}  # by the empty rule that stands behind each, see `segment`
        self.only_json = False  # whether all texts are JSON, with white space as JSON has it
        self.has_json_values = False  # the same for those who follow texts: a file may claim it, and no mask relies on it
        self.mixed_arrays = False  # whether arrays whose items must differ may stand in the same place as other arrays
        self.most_different = 0  # keys, or items, that some object or array has at least and that must differ from each other
        self.stacks_as_graph = False  # whether the automaton keeps stacks as a graph, see automaton/fronts.py
        self.special_tokens: Mapping[str, int] = {}  # of the vocabulary: names that markup may spell by a token
        self.end_tokens: frozenset[int] = frozenset()  # of the vocabulary: EOS ids
        self.vocabulary: Vocabulary | None = None
        self.memo: dict[tuple[object, ...], Node] = {}  # for builders: what was asked for and what it became
        self.loops: dict[tuple[Node, Node, Node, Node], tuple[Node, Node]] = {}  # see `chains.loop`
        # by gap, separator and end, see `separated_lists.chain`
        self.chain_ends: dict[tuple[Node, Node, Node], dict[tuple[int, bool, int, int], tuple[int, int, bool]]] = {}
        self._literals: dict[bytes, Node] = {}
        self._unions: dict[tuple[Node, ...], Node] = {}
        self._by_supply: dict[tuple[tuple[Node, ...], Supply], Node] = {}
        self._steps: dict[tuple[int, ...], int] = {}
        self._characters: dict[tuple[tuple[int, int], ...], Node] = {}

    def take(self, other: Self) -> None:
        super().take(other)
        self.labels, self.claims, self.notes = other.labels.copy(), other.claims.copy(), other.notes.copy()
        self.residue, self.search_share, self.units = other.residue.copy(), other.search_share, other.units.copy()
        self.segments, self.only_json, self.has_json_values = other.segments.copy(), other.only_json, other.has_json_values
        self.mixed_arrays, self.stacks_as_graph = other.mixed_arrays, other.stacks_as_graph
        self.most_different = other.most_different
        self.special_tokens, self.end_tokens, self.vocabulary = other.special_tokens, other.end_tokens, other.vocabulary
        self.memo, self.loops = other.memo.copy(), other.loops.copy()
        self.chain_ends = {place: ends.copy() for place, ends in other.chain_ends.items()}
        self._literals, self._unions, self._by_supply = other._literals.copy(), other._unions.copy(), other._by_supply.copy()
        self._steps, self._characters = other._steps.copy(), other._characters.copy()

    def complete(self) -> None:
        super().complete()
        self.memo, self.loops, self.chain_ends = {}, {}, {}
        self._literals, self._unions, self._by_supply, self._steps, self._characters = {}, {}, {}, {}, {}

    # -- leaves -----------------------------------------------------------------------------------------------------

    def literal(self, text: bytes | str) -> Node:
        """Exactly these bytes."""
        data = text.encode() if isinstance(text, str) else bytes(text)
        if not data:
            return EMPTY
        node = self._literals.get(data)
        if node is None:
            node = self._literals[data] = self._new((_LITERAL, len(self.pool), len(data), 0))
            self.pool += data
        return node

    def chars(self, ranges: Iterable[tuple[int, int]]) -> Node:
        """One character out of inclusive code point ranges (surrogates have no UTF-8 form and are left out)."""
        wanted = tuple(ranges)
        node = self._characters.get(wanted)
        if node is None:
            normal, edges, wide = _split_ascii(wanted)
            node = self._characters[wanted] = self._class((*edges, *self._wide_edges(wide)), Event.NONE)
            if normal:
                self.units.setdefault(node, normal)
        return node

    def bytes_in(self, ranges: Iterable[tuple[int, int]], event: Event = Event.NONE) -> Node:
        """One byte out of inclusive ranges; `event` marks it for the memory of keys and items."""
        return self._class(tuple((low, high, EMPTY) for low, high in sorted(ranges)), event)

    def mark(self, byte: bytes, event: Event, then: Node = EMPTY) -> Node:
        """One given byte that carries an event, and what follows it.

        With the key or item in `then`, the promise of `min_tokens` covers the worst that it may cost once others are used up.
        """
        return FAIL if then == FAIL else self._class(((byte[0], byte[0], then),), event)

    def key(self, body: Node) -> Node:
        """A key in quotes that its object must not have yet."""
        return self.mark(b'"', Event.KEY_OPEN, self.seq(body, self.mark(b'"', Event.KEY_CLOSE)))

    # -- combinators ------------------------------------------------------------------------------------------------

    def seq(self, *parts: Node) -> Node:
        """Concatenation; neighbouring literals become one."""
        if FAIL in parts:
            return FAIL
        rows, interned = self.rows, self._interned
        out, is_behind_literal = EMPTY, False
        for part in reversed(parts):
            if part == EMPTY:
                continue
            is_literal = rows[4 * part] == _LITERAL
            if is_literal and is_behind_literal:
                return self._joined_seq(parts)
            is_behind_literal = is_literal
            if out == EMPTY:
                out = part
            else:
                row = _SEQ, part, out, 0
                out = interned.get(row) or self.intern(row)
        return out

    def _joined_seq(self, parts: Sequence[Node]) -> Node:
        """`seq` of parts among which literals are neighbours. They are joined at once; one by one that would cost the
        square of their number."""
        out = EMPTY
        run: list[Node] = []  # last one first
        for part in reversed(parts):
            if self.rows[4 * part] == _LITERAL:
                run.append(part)
            elif part != EMPTY:
                out, run = self.pair(part, self._spelled(run, out)), []
        return self._spelled(run, out)

    def pair(self, head: Node, tail: Node) -> Node:
        """`seq` of two nodes that are not FAIL, where no literal would meet a literal."""
        return head if tail == EMPTY else self.intern((_SEQ, head, tail, 0))

    def alt(self, *parts: Node) -> Node:
        """Union; duplicates and FAIL drop out."""
        known = self._unions.get(parts)
        if known is not None:
            return known
        options = tuple(dict.fromkeys(parts if FAIL not in parts else filter(None, parts)))
        if len(options) < 2:
            return options[0] if options else FAIL
        node = self._unions.get(options) if len(options) < len(parts) else None
        if node is None:
            node = self._unions[options] = self._union(options)
        return node

    def scarce(self, *parts: Node) -> Node:
        """Union of members that may not come twice, of which one is left for certain; it may be the dearest one
        (`Supply.SCARCE`)."""
        return self._told(tuple(dict.fromkeys(filter(None, parts))), Supply.SCARCE)

    def spare(self, part: Node) -> Node:
        """`part`, which may have been used up, beside something that is there for certain (`Supply.SPARE`)."""
        return self._told((part,) if part != FAIL else (), Supply.SPARE)

    def spared(self, key: Node) -> Node:
        """A key, made by `key`, that may have been used up: the quote that opens it is charged for that."""
        ((_, _, then),) = self.class_edges(key)
        return self.mark(b'"', Event.KEY_OPEN, self.spare(Node(then)))

    def _told(self, options: tuple[Node, ...], supply: Supply) -> Node:
        if len(options) < (1 if supply is Supply.SPARE else 2):
            return self.alt(*options)
        node = self._by_supply.get((options, supply))
        if node is None:
            node = self._by_supply[options, supply] = self._union(options, supply)
        return node

    def optional(self, part: Node) -> Node:
        return self.repeat(part, 0, 1)

    def repeat(self, body: Node, low: int = 0, high: int | None = None) -> Node:
        """`low` to `high` copies of `body`; the empty alternative of a repeated body is dropped, the language stays the same."""
        if low < 0 or (high is not None and high < low):
            raise ConstraintError(f"a repetition of {low} to {high} copies is impossible")
        if high == 0 or body in (EMPTY, FAIL):
            return EMPTY if low == 0 or body == EMPTY else FAIL
        if shows_empty(self, body) and (filled := self.without_empty(body)) != body:
            return self.repeat(filled, 0, high)
        return repeated(self, body, low, high)

    def without_empty(self, node: Node) -> Node:
        """An expression for the strings of a node except the empty one, where that is visible without expanding rules."""
        made: dict[Node, Node] = {}
        work = [node]
        while work:
            part = work[-1]
            missing = [below for below in parts_without_empty(self, part) if below not in made]
            if missing:
                work.extend(missing)
                continue
            work.pop()
            made[part] = self._filled(part, made)
        return made[node]

    def bag(self, parts: Iterable[tuple[Node, int, int | None]], low: int = 0, high: int | None = None) -> Node:
        """Members in any order, `low` to `high` in total. parts: (body, low, high) each, how many members a part may
        have. None = no bound.

        FAIL when the bounds exclude each other. Raises ConstraintError when a body shows that it may be empty: how many
        members there are would not be defined.
        """
        return bag(self, parts, low, high)

    def multiple(self, modulus: int, remainder: int, places: int, low: int, high: int) -> Node:
        """`low` to `high` digits, then perhaps a point and 1 to `places` digits, the last of them not 0.

        These are the texts behind digits with this remainder that make the whole number divisible by `modulus`, counted
        in units of the last of the `places`.
        """
        if modulus == 1:
            return self.seq(self._digits(low, high), self.alt(EMPTY, self.seq(self.literal("."), self.fraction(1, 0, places))))
        lengths = range(low + places, min(high, low + len(str(modulus))) + places + 1)
        if all(-remainder * 10**length % modulus >= 10**length for length in lengths):
            return FAIL
        self.search_share = min(self.search_share, 10 / modulus)  # every remainder is a state
        return self.intern((Kind.MULTIPLE, self._step(modulus, places), remainder % modulus, low * COUNTS + high))

    def fraction(self, modulus: int, remainder: int, places: int) -> Node:
        """1 to `places` digits, the last of them not 0, that make a number divisible as `multiple` does."""
        if places == 0 or (-remainder * 10**places % modulus or modulus) >= 10**places:
            return FAIL
        if modulus == 1:
            return self.seq(self._digits(0, places - 1), self.chars([(0x31, 0x39)]))
        return self.intern((Kind.FRACTION, self._step(modulus, places), remainder % modulus, places))

    def both(self, *parts: Node) -> Node:
        """Intersection of regular expressions."""
        options = list(dict.fromkeys(parts))
        if FAIL in options or not options:
            return FAIL
        out = options[0]
        for part in options[1:]:
            out = self.intern((Kind.BOTH, min(out, part), max(out, part), 0))
        return out

    def negate(self, part: Node) -> Node:
        """Every byte string that `part` does not contain."""
        return self.intern((Kind.NEGATE, part, 0, 0))

    def without(self, whole: Node, part: Node) -> Node:
        """What is in `whole` and not in `part`."""
        return whole if part == FAIL else self.both(whole, self.negate(part))

    def words(self, texts: Iterable[bytes]) -> Node:
        """Union of given strings as a prefix tree, so that a large enumeration costs its distinct prefixes only."""
        words = sorted(set(texts))
        key = ("words", *words)
        known = self.memo.get(key)
        if known is None:
            known = self.memo[key] = self._word_tree(words, dict.fromkeys(words, EMPTY))
        return known

    def branches(self, tails: Mapping[bytes, Node]) -> Node:
        """One of some strings, each with what follows it, as a prefix tree."""
        return self._word_tree(sorted(tails), tails)

    def unlisted(self, body: Node, words: Iterable[bytes], read: int = 0) -> Node:
        """`body` without some words. read: how many bytes have been read of the words; all of them begin alike up to
        there.

        The body has to read every byte in one way only, contain the rests of all words, and go on: where its shortest
        texts are used up, as many longer ones are expected as there are printable characters, as in a key.
        """
        spelled = sorted(words)
        if not spelled:
            return body
        start, rows, literals = len(self.lists), self.rows, self._literals
        for word in spelled:
            row = 4 * (literals.get(word) or self.literal(word))
            self.lists.extend(rows[row + 1 : row + 3])
        return self.intern((Kind.UNLISTED, self.intern((Kind.WORDS, start, len(spelled), read)), body, 0))

    # -- rules ------------------------------------------------------------------------------------------------------

    def rule(self, name: str) -> Rule:
        """A new rule, to be given its body by `define`."""
        self.rule_names.append(name)
        self.rule_bodies.append(None)
        return Rule(len(self.rule_names) - 1)

    def define(self, rule: Rule, body: Node) -> None:
        self.rule_bodies[rule] = body

    def call(self, rule: Rule, free: Node = FAIL) -> Node:
        """What a rule stands for. free: characters of `chars`; every string of them begins some string of the rule."""
        return self.intern((Kind.CALL, rule, free, 0))

    def segment(self, body: Node, segment: Hashable) -> Node:
        """`body`, with its bytes marked as those of a segment, which parsers ask for.

        A call of an empty rule stands behind it, and so in every continuation from inside it, as a return address
        would.
        """
        key = ("segment", segment)
        end = self.memo.get(key)
        if end is None:
            rule = self.rule(f"end of {segment}")
            self.define(rule, EMPTY)
            self.segments[rule] = segment
            end = self.memo[key] = self.call(rule)
        return self.seq(body, end)

    @property
    def spellings(self) -> Sequence[bytes | None]:
        """Of the vocabulary what is read for each token; empty where none is known."""
        return () if self.vocabulary is None else self.vocabulary.spellings

    def token(self, name: str) -> bytes | None:
        """The bytes that spell a special token of the vocabulary; b"" when it ends the output, None when there is none."""
        token_id = self.special_tokens.get(name)
        if token_id is None:
            return None
        return b"" if token_id in self.end_tokens else token_spelling(token_id)

    def label(self, node: Node, path: str) -> Node:
        """Remember where `node` came from (a schema path, a rule name); the first label stays."""
        self.labels.setdefault(node, path)
        return node

    def claim(self, node: Node, path: str, keywords: Iterable[str]) -> Node:
        """Remember which keywords at a path an intersection stands for; the first claim stays."""
        self.claims.setdefault(node, (path, tuple(keywords)))
        return node

    # -- inside -----------------------------------------------------------------------------------------------------

    def again(self, kind: Kind, a: int, b: int = 0, c: int = 0) -> Node:
        """A node as it was made in another grammar, of parts made in this one."""
        return self.intern((int(kind), a, b, c))

    def made_by(self, steps: Iterable[Step]) -> Node:
        """The last node that some steps make, which were those of an expression of another grammar. New rows are written many at a
        time."""
        made: list[int] = []
        written: list[int] = []  # rows that are not in `rows` yet
        interned, unions, lists = self._interned, self._unions, self.lists
        new = len(self)
        for kind, a, b, more in steps:
            if kind == _ALT:
                options = tuple([made[option] for option in more])
                known = unions.get(options)
                row = (_ALT, len(lists), len(options), 0)
                if known is None:
                    unions[options] = new  # type: ignore[assignment]
                    lists.extend(options)
            elif kind in (_SEQ, _BOTH, _REPEAT, _NEGATE):
                first = made[a]
                if kind == _SEQ:
                    row = (_SEQ, first, made[b], 0)
                elif kind == _BOTH:
                    row = (_BOTH, min(first, made[b]), max(first, made[b]), 0)
                elif kind == _REPEAT:
                    row = (_REPEAT, first, b, more)
                else:
                    row = (_NEGATE, first, 0, 0)
                known = interned.get(row)
                if known is None:
                    interned[row] = new  # type: ignore[assignment]
            else:
                if written:
                    self.rows.fromlist(written)
                    written = []
                made.append(self._leaf(kind, b, more, made))
                new = len(self)
                continue
            if known is None:
                written += row
                made.append(new)
                new += 1
            else:
                made.append(known)
        self.rows.fromlist(written)
        look()
        return Node(made[-1])

    def _leaf(self, kind: int, is_edges: int, more: Any, made: list[int]) -> Node:
        if kind == _LITERAL:
            return self.literal(more)
        if kind == _CLASS:
            if not is_edges:
                return self.chars(more)
            return self._class(tuple([(low, high, Node(made[end])) for low, high, end in more]), Event.NONE)
        return FAIL if kind == _FAIL else EMPTY

    def edges_to(self, edges: Iterable[tuple[int, int, Node]]) -> Node:
        """One byte out of several ranges, each with what follows it, in ascending order."""
        return self._class(tuple(edges), Event.NONE)

    def _filled(self, node: Node, made: Mapping[Node, Node]) -> Node:
        """A node without the empty string, from its parts without it."""
        kind, (a, b, c) = self.kind(node), self.operands(node)
        if not shows_empty(self, node):
            return node
        if kind is Kind.EMPTY:
            return FAIL
        if kind is Kind.ALT:
            return self.alt(*(made[option] for option in self.alternatives(node)))
        if kind is Kind.SEQ:
            return self.alt(self.seq(made[Node(a)], Node(b)), made[Node(b)])
        if kind is Kind.REPEAT and b == 0:
            return self.repeat(Node(a), 1, None if c == UNBOUNDED else c)
        if kind is Kind.BAG:
            parts = [(body, low, None if high == UNBOUNDED else high) for body, low, high in self.bag_parts(node)]
            return self.bag(parts, 1, None if c == UNBOUNDED else c)
        return node

    def _digits(self, low: int, high: int) -> Node:
        return self.repeat(self.chars([(0x30, 0x39)]), low, high)

    def _step(self, modulus: int, places: int) -> int:
        """The offset in the list pool where steps of `modulus` units of the last of `places` digits are described."""
        row = (modulus, places, self.literal("."), *(self.literal(digit) for digit in "0123456789"))
        start = self._steps.get(row)
        if start is None:
            start = self._steps[row] = len(self.lists)
            self.lists.extend(row)
        return start

    def _spelled(self, literals: Sequence[Node], tail: Node) -> Node:
        """Literals in a row (last one first) before a tail. They are joined up to LONGEST_LITERAL, beyond which
        doubling would cost memory."""
        run: list[Node] = []
        length = 0
        for literal in literals:
            own = self.rows[4 * literal + 2]
            if run and length + own > LONGEST_LITERAL:
                tail, run, length = self.pair(self._joined(run), tail), [], 0
            run.append(literal)
            length += own
        return self.pair(self._joined(run), tail) if run else tail

    def _joined(self, literals: Sequence[Node]) -> Node:
        """Literals in a row, last one first, as one."""
        return self.literal(b"".join(map(self.literal_bytes, reversed(literals)))) if len(literals) > 1 else literals[0]

    def _word_tree(self, words: list[bytes], tails: Mapping[bytes, Node]) -> Node:
        """Union of sorted distinct words, each with its tail. The stack holds prefixes of the last word: (length, what follows)."""
        stack: list[tuple[int, list[Node]]] = [(0, [tails[b""]] if b"" in words[:1] else [])]
        words = [word for word in words if word]
        for last, word in zip([b"", *words], [*words, b""], strict=True):
            shared = _common_prefix_length(last, word)
            while stack[-1][0] > shared:
                length, options = stack.pop()
                if stack[-1][0] < shared:
                    stack.append((shared, []))
                above, siblings = stack[-1]
                letters = self.literal(last[above:length])
                siblings.append(letters if options == [EMPTY] else self.seq(letters, self.alt(*options)))
            stack.append((len(word), [tails[word]] if word else [EMPTY]))
        return self.alt(*stack[0][1])


@lru_cache(maxsize=4096)
def _split_ascii(ranges: Ranges) -> tuple[Ranges, Edges, Ranges]:
    """(set of characters in normal form, edges of its ASCII part, the rest of the set)."""
    normal = normalize(ranges)
    edges = tuple((low, min(high, LAST_ASCII), EMPTY) for low, high in normal if low <= LAST_ASCII)
    return normal, edges, tuple((max(low, LAST_ASCII + 1), high) for low, high in normal if high > LAST_ASCII)


def _common_prefix_length(left: bytes, right: bytes) -> int:
    length = 0
    for a, b in zip(left, right, strict=False):
        if a != b:
            break
        length += 1
    return length
