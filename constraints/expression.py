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
automaton derives its states from these nodes one byte at a time, when a byte is first crossed. A front end is a frozen
dataclass with `lower(grammar, context) -> Node`.

Objects of JSON must not repeat a key, arrays with `uniqueItems` no item. Where a grammar cannot say so by itself, the bytes that
matter are marked with an `Event`, and the automaton keeps what every open object and array has so far (see `memory.py`):

    key(body)                                          a key that its object must not have yet
    mark("{", OBJECT_OPEN) ... mark("}", OBJECT_CLOSE)  the object around such keys
    mark("[", ARRAY_OPEN) item mark(",", ITEM_CLOSE, item) ... mark("]", ARRAY_CLOSE)   items that all differ

Behind every comma, and the brace of an object that needs a member, a key must be left that the object does not have. Between two
such keys of an object there are at least KEYS_APART bytes.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import lru_cache

from .divisors import COUNTS
from .emptiness import shows_empty, without_empty
from .errors import ConstraintError
from .kinds import NO_BOUND, NO_TOTAL, UNBOUNDED, Event, Kind, Supply
from .store import EMPTY, FAIL, Edges, Node, NodeStore, Rule
from .utf8 import LAST_ASCII, Ranges, normalize
from .vocabulary import token_spelling

__all__ = ["EMPTY", "FAIL", "LONGEST_LITERAL", "UNBOUNDED", "Edges", "Event", "Grammar", "Kind", "Node", "Rule", "Supply"]

_MOST_COPIES = 1 << 30  # that a repetition of a repetition is written with
LONGEST_LITERAL = 1 << 16  # bytes; neighbouring literals are joined up to this

_ALT, _BAG, _LITERAL = map(int, (Kind.ALT, Kind.BAG, Kind.LITERAL))  # reading a member is slow
_REPEAT, _SEQ, _TALLY = map(int, (Kind.REPEAT, Kind.SEQ, Kind.TALLY))


class Grammar(NodeStore):
    """Expressions and rules; see the module's documentation for what each builder method denotes."""

    def __init__(self) -> None:
        super().__init__()
        self.labels: dict[Node, str] = {}  # where a node came from, for `explain`
        self.notes: list[str] = []  # remarks for the user: ignored annotations, narrower formats
        self.residue: list[str] = []  # relaxations the user opted in to
        self.search_share = 1.0  # of limits.search_nodes, for finding the fewest tokens exactly
        self.units: dict[Node, Ranges] = {}  # the characters that `chars` nodes stand for
        self.segments: dict[Rule, Hashable] = {}  # by the empty rule that stands behind each, see `segment`
        self.only_json = False  # whether all texts are JSON, with white space as JSON has it
        self.special_tokens: Mapping[str, int] = {}  # of the vocabulary: names that markup may spell by a token
        self.end_tokens: frozenset[int] = frozenset()  # of the vocabulary: EOS ids
        self.spellings: Sequence[bytes | None] = ()  # of the vocabulary: what is read for each token; empty where none is known
        self.memo: dict[tuple[object, ...], Node] = {}  # for builders: what was asked for and what it became
        self._literals: dict[bytes, Node] = {}
        self._unions: dict[tuple[Node, ...], Node] = {}
        self._by_supply: dict[tuple[tuple[Node, ...], Supply], Node] = {}
        self._loops: dict[tuple[Node, Node, Node, Node], tuple[Node, Node]] = {}
        self._ends: dict[tuple[int, bool, int, int, int, int, int], tuple[int, int, bool]] = {}  # of chains
        self._steps: dict[tuple[int, ...], int] = {}
        self._characters: dict[tuple[tuple[int, int], ...], Node] = {}

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
                out = interned.get(row) or self._intern(row)
        return out

    def _joined_seq(self, parts: Sequence[Node]) -> Node:
        """The same where literals are neighbours: joined at once, or they would cost the square of their number."""
        out = EMPTY
        run: list[Node] = []  # last one first
        for part in reversed(parts):
            if self.rows[4 * part] == _LITERAL:
                run.append(part)
            elif part != EMPTY:
                out, run = self.pair(part, self._spelled(run, out)), []
        return self._spelled(run, out)

    def pair(self, head: Node, tail: Node) -> Node:
        """`seq` of two that are not FAIL, of which not both begin and end with a literal."""
        return head if tail == EMPTY else self._intern((_SEQ, head, tail, 0))

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
        """Union of members that may not come twice, of which one is left for certain: it may be the dearest one."""
        return self._told(tuple(dict.fromkeys(filter(None, parts))), Supply.SCARCE)

    def spare(self, part: Node) -> Node:
        """The same as `part`, beside something that is there for certain: it may have been used up."""
        return self._told((part,) if part != FAIL else (), Supply.SPARE)

    def spared(self, key: Node) -> Node:
        """The same as a key, made by `key`, of which perhaps none is left; the quote that opens it is charged for that."""
        ((_, _, then),) = self.class_edges(key)
        return self.mark(b'"', Event.KEY_OPEN, self.spare(Node(then)))

    def _told(self, options: tuple[Node, ...], supply: Supply) -> Node:
        if len(options) < (1 if supply is Supply.SPARE else 2):
            return self.alt(*options)
        node = self._by_supply.get((options, supply))
        if node is None:
            node = self._by_supply[options, supply] = self._union(options, supply)
        return node

    def loop(self, part: Node, gap: Node, separator: Node, end: Node) -> tuple[Node, Node]:
        """Any number of one part, with a gap behind each, a separator between two, and `end` behind the last.

        What may follow one of them, and one with all that may follow. The part is neither empty nor FAIL.
        """
        known = self._loops.get((part, gap, separator, end))
        if known is None:
            if _LITERAL in (self.rows[4 * part], self.rows[4 * gap]):  # neighbouring literals become one
                rest = self.seq(self.repeat(self.seq(separator, part, gap)), end)
                known = rest, self.seq(part, gap, rest)
            else:
                new = self._intern
                further = new((_SEQ, separator, part if gap == EMPTY else new((_SEQ, part, gap, 0)), 0))
                rest = new((_SEQ, new((_REPEAT, further, 0, UNBOUNDED)), end, 0))
                known = rest, new((_SEQ, part, rest if gap == EMPTY else new((_SEQ, gap, rest, 0)), 0))
            self._loops[part, gap, separator, end] = known
        return known

    def chain(
        self, links: Iterable[tuple[Node, bool]], gap: Node, separator: Node, end: Node, later: Node, following: Node
    ) -> Node:
        """Parts in order, with a gap behind each, a separator between two, and `end` behind the last.

        links: the parts, last one first, each with whether it is needed; the others may be left out. later: what follows all of
        them, `end` included; following: what may stand there behind a separator, FAIL for nothing.
        """
        parts = [link for link in links if link[0] != FAIL or link[1]]
        rows = self.rows
        if later == FAIL or (FAIL, True) in parts or _LITERAL in [rows[4 * node] for node in (gap, *dict(parts))]:
            return self._joined_chain(parts, gap, separator, end, later, following)
        return self._spaced_chain(parts, gap, separator, end, later, following)

    def _joined_chain(
        self, parts: list[tuple[Node, bool]], gap: Node, separator: Node, end: Node, later: Node, following: Node
    ) -> Node:
        """A chain of which neighbouring literals are joined, and parts may be FAIL."""
        may_end = True
        for part, is_needed in parts:
            first = self.seq(part, gap, later)
            following = first if is_needed else self.alt(first, following)
            may_end = may_end and not is_needed
            later = self.alt(end if may_end else FAIL, self.seq(separator, following))
        return self.alt(end if may_end else FAIL, following)

    def _spaced_chain(
        self, parts: list[tuple[Node, bool]], gap: Node, separator: Node, end: Node, later: int, following: int
    ) -> Node:
        """The same where nothing is to be joined and no part is FAIL.

        Objects of many members are made of little else, so rows are written without looking for equal ones. What is remembered is
        how chains end.
        """
        ends, lists = self._ends, self.lists
        rows: list[int] = []
        new, may_end = len(self), True
        for part, is_needed in parts:
            place = part, is_needed, later, following, gap, separator, end
            known = None if rows else ends.get(place)  # what follows a new node is new
            if known is not None:
                later, following, may_end = known
                continue
            if gap != EMPTY:
                rows += _SEQ, gap, later, 0
                later = new
                new += 1
            rows += _SEQ, part, later, 0
            new += 1
            if is_needed or following == FAIL:
                following = new - 1
            else:
                rows += _ALT, len(lists), 2, 0
                lists.extend((new - 1, following))
                following = new
                new += 1
            may_end = may_end and not is_needed
            rows += _SEQ, separator, following, 0
            later = new
            new += 1
            if may_end:
                rows += _ALT, len(lists), 2, 0
                lists.extend((end, later))
                later = new
                new += 1
            ends[place] = later, following, may_end
        self.rows.extend(rows)
        return self.alt(end if may_end else FAIL, Node(following))

    def optional(self, part: Node) -> Node:
        return self.repeat(part, 0, 1)

    def repeat(self, body: Node, low: int = 0, high: int | None = None) -> Node:
        """`low` to `high` copies of `body`; the empty alternative of a repeated body is dropped, the language stays the same."""
        if low < 0 or (high is not None and high < low):
            raise ConstraintError(f"a repetition of {low} to {high} copies is impossible")
        if high == 0 or body in (EMPTY, FAIL):
            return EMPTY if low == 0 or body == EMPTY else FAIL
        if shows_empty(self, body) and (filled := without_empty(self, body)) != body:
            return self.repeat(filled, 0, high)
        if (low, high) == (1, 1):
            return body
        if self.rows[4 * body] == _REPEAT:
            part, least, most = self.operands(body)
            if (bounds := _copies_of_copies((least, None if most == UNBOUNDED else most), (low, high))) is not None:
                return self.repeat(Node(part), *bounds)
        return self._intern((_REPEAT, body, low, UNBOUNDED if high is None else high))

    def bag(self, parts: Iterable[tuple[Node, int, int | None]], low: int = 0, high: int | None = None) -> Node:
        """Members in any order, `low` to `high` in total; of every part (body, low, high) so many. None = no bound.

        FAIL when the bounds exclude each other. Raises ConstraintError when a body shows that it may be empty: how many members
        there are would not be defined.
        """
        counts: dict[Node, tuple[int, int]] = {}  # parts with the same body are one
        for body, least, most in parts:
            if shows_empty(self, body):
                raise ConstraintError("a member of a bag may not be empty")
            ceiling = 0 if body == FAIL else NO_BOUND if most is None else most
            if least > ceiling:
                return FAIL
            before = counts.get(body, (0, 0))
            counts[body] = before[0] + max(least, 0), min(before[1] + ceiling, NO_BOUND)
        return self._tight_bag(sorted((body, *bounds) for body, bounds in counts.items()), low, NO_TOTAL if high is None else high)

    def bags_less(self, parts: Sequence[tuple[Node, int, int | None]]) -> list[Node]:
        """For each part of a bag without bounds on the total: the bag of what is left when one copy of it has been taken.

        No body is empty. Takes the square of the number of parts, by a small factor.
        """
        fewer = [(body, max(low - 1, 0), None if high is None else high - 1) for body, low, high in parts]
        if len({body for body, _, _ in parts}) < len(parts):
            return [FAIL if less[2] == -1 else self.bag([*parts[:i], less, *parts[i + 1 :]]) for i, less in enumerate(fewer)]
        order = sorted(range(len(parts)), key=lambda i: parts[i][0])
        repeated = [self._part_of_bag(*part) for part in parts]
        tails = [FAIL]  # lists of the last parts, the shortest one first
        for i in reversed(order):
            tails.append(self._tally(repeated[i], tails[-1]))
        bags = [FAIL] * len(parts)
        for place, i in enumerate(order):
            if fewer[i][2] == -1:
                continue
            tally = self._tally(self._part_of_bag(*fewer[i]), tails[len(order) - 1 - place])
            for j in reversed(order[:place]):
                tally = self._tally(repeated[j], tally)
            bags[i] = self._bag_of(tally, 0, UNBOUNDED)
        return bags

    def _part_of_bag(self, body: Node, low: int, high: int | None) -> Node:
        """A part with its bounds; FAIL for one of which none is left."""
        return FAIL if high == 0 else self._intern((_REPEAT, body, low, UNBOUNDED if high is None else high))

    def _tally(self, part: Node, tally: Node) -> Node:
        return tally if part == FAIL else self._intern((_TALLY, part, tally, 0))

    def _bag_of(self, tally: Node, low: int, high: int) -> Node:
        """The bag of a list of parts; of fewer than two it is a repetition."""
        if tally == FAIL:
            return EMPTY
        part, others, _ = self.operands(tally)
        if others == FAIL:
            body, least, most = self.operands(Node(part))
            return self.repeat(Node(body), least, None if most == UNBOUNDED else most)
        return self._intern((_BAG, tally, low, high))

    def _tight_bag(self, parts: list[tuple[Node, int, int]], low: int, high: int) -> Node:
        """The bag whose bounds are all reached, and whose totals are left out where they follow from the parts.

        So equal bags are one node. `nodes.less` does the same for the bags that the automaton makes.
        """
        least, most = sum(part[1] for part in parts), sum(part[2] for part in parts)
        low, high = max(low, least), min(high, most)
        if low > high:
            return FAIL
        slack = (high if high < NO_BOUND else NO_TOTAL) - least
        bounds = [(body, max(a, low - (most - b)), min(b, a + slack)) for body, a, b in parts]
        tight = [(body, a, b) for body, a, b in bounds if b > 0]
        tally = FAIL
        for body, a, b in reversed(tight):
            tally = self._tally(self._part_of_bag(body, a, b if b < NO_BOUND else None), tally)
        low = 0 if low <= sum(part[1] for part in tight) else low
        high = UNBOUNDED if high >= sum(part[2] for part in tight) else high
        return self._bag_of(tally, low, high)

    def multiple(self, modulus: int, remainder: int, places: int, low: int, high: int) -> Node:
        """`low` to `high` digits, then perhaps a point and 1 to `places` digits, the last of them not 0.

        All that make a number which begins with digits of this remainder divisible by `modulus`, counted in units of the last of
        the `places`.
        """
        if modulus == 1:
            return self.seq(self._digits(low, high), self.alt(EMPTY, self.seq(self.literal("."), self.fraction(1, 0, places))))
        lengths = range(low + places, min(high, low + len(str(modulus))) + places + 1)
        if all(-remainder * 10**length % modulus >= 10**length for length in lengths):
            return FAIL
        self.search_share = min(self.search_share, 10 / modulus)  # every remainder is a state
        return self._intern((Kind.MULTIPLE, self._step(modulus, places), remainder % modulus, low * COUNTS + high))

    def fraction(self, modulus: int, remainder: int, places: int) -> Node:
        """1 to `places` digits, the last of them not 0, that make a number divisible as in `multiple`."""
        if places == 0 or (-remainder * 10**places % modulus or modulus) >= 10**places:
            return FAIL
        if modulus == 1:
            return self.seq(self._digits(0, places - 1), self.chars([(0x31, 0x39)]))
        return self._intern((Kind.MULTIPLE, self._step(modulus, places), remainder % modulus, -places))

    def both(self, *parts: Node) -> Node:
        """Intersection of regular expressions."""
        options = list(dict.fromkeys(parts))
        if FAIL in options or not options:
            return FAIL
        out = options[0]
        for part in options[1:]:
            out = self._intern((Kind.BOTH, min(out, part), max(out, part), 0))
        return out

    def negate(self, part: Node) -> Node:
        """Every byte string that `part` does not contain."""
        return self._intern((Kind.NEGATE, part, 0, 0))

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
        """`body` without the rests of some distinct words, behind so many bytes that all of them begin with.

        The body has to read every byte in one way only, contain all these rests, and go on: where its shortest texts are used up,
        as many longer ones are expected as there are printable characters, as in a key.
        """
        spelled = sorted(words)
        if not spelled:
            return body
        start, rows, literals = len(self.lists), self.rows, self._literals
        for word in spelled:
            row = 4 * (literals.get(word) or self.literal(word))
            self.lists.extend(rows[row + 1 : row + 3])
        return self._intern((Kind.UNLISTED, self._intern((Kind.WORDS, start, len(spelled), read)), body, 0))

    # -- rules ------------------------------------------------------------------------------------------------------

    def rule(self, name: str) -> Rule:
        """A new rule, to be given its body by `define`."""
        self.rule_names.append(name)
        self.rule_bodies.append(None)
        return Rule(len(self.rule_names) - 1)

    def define(self, rule: Rule, body: Node) -> None:
        self.rule_bodies[rule] = body

    def call(self, rule: Rule) -> Node:
        return self._intern((Kind.CALL, rule, 0, 0))

    def segment(self, body: Node, segment: Hashable) -> Node:
        """`body`, whose bytes belong to a segment: what parsers ask for.

        A call of an empty rule stands behind it, and so in every continuation from inside it, as a return address would.
        """
        key = ("segment", segment)
        end = self.memo.get(key)
        if end is None:
            rule = self.rule(f"end of {segment}")
            self.define(rule, EMPTY)
            self.segments[rule] = segment
            end = self.memo[key] = self.call(rule)
        return self.seq(body, end)

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

    # -- inside -----------------------------------------------------------------------------------------------------

    def again(self, kind: Kind, a: int, b: int = 0, c: int = 0) -> Node:
        """A node as it was made in another grammar, of parts made in this one."""
        return self._intern((int(kind), a, b, c))

    def edges_to(self, edges: Iterable[tuple[int, int, Node]]) -> Node:
        """One byte out of several ranges, each with what follows it, in ascending order."""
        return self._class(tuple(edges), Event.NONE)

    def _digits(self, low: int, high: int) -> Node:
        return self.repeat(self.chars([(0x30, 0x39)]), low, high)

    def _step(self, modulus: int, places: int) -> int:
        """Where the list pool describes steps of `modulus` units of the last of `places` digits."""
        row = (modulus, places, self.literal("."), *(self.literal(digit) for digit in "0123456789"))
        start = self._steps.get(row)
        if start is None:
            start = self._steps[row] = len(self.lists)
            self.lists.extend(row)
        return start


    def _spelled(self, literals: Sequence[Node], tail: Node) -> Node:
        """Literals in a row, last one first, before a tail: joined up to LONGEST_LITERAL, or doubling would cost memory."""
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
    """A set of characters in normal form, and of it the edges of ASCII, and the rest."""
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


def _copies_of_copies(inner: tuple[int, int | None], outer: tuple[int, int | None]) -> tuple[int, int | None] | None:
    """How many copies `outer` copies of `inner` copies are, when every number between two bounds can be had; else None.

    Counted apart, every way to split the copies among the two would be another continuation.
    """
    (least, most), (low, high) = inner, outer
    has_no_gap = low == high or (least <= 1 if low == 0 else most is None or (low + 1) * least <= low * most + 1)
    bounds = low * least, None if most is None or high is None else high * most
    return bounds if has_no_gap and max(bounds[0], bounds[1] or 0) <= _MOST_COPIES else None
