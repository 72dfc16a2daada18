"""References and combinations resolved: a conjunction of claims as a list of alternatives.

`$ref`, `allOf`, `anyOf`, `oneOf`, `not`, `if` and the `dependent...` keywords are followed until only literals are left. A term
lists its sites in the order of a depth-first reading (own keywords, `allOf`, `$ref`, the chosen branches), which is the order of an
object's declared names. Negation is pushed inwards (De Morgan) down to single violated keywords, see negation.py.

`oneOf` means one branch and none of the others. What excludes the others is kept as one literal, `Exclusive`, until the term is
wanted: most often the branches exclude each other anyway, and finding that out may need the terms of members, which may lead
back to the schema in question. The same literal stands for many branches of which none holds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import product
from typing import Any

from ..errors import ConstraintLimit, UnsupportedKeyword
from .claims import (
    Among,
    Claim,
    Conj,
    Count,
    Equals,
    Exclusive,
    Literal,
    Not,
    Term,
    Unevaluated,
    has_key,
    lacks_key,
    literal_atoms,
)
from .document import Document, Site, shown
from .drafts import SINCE, UNTIL
from .keywords import (
    APPLICATORS,
    GENERAL,
    NUMERIC,
    OWN,
    REFERENCES,
    TYPES,
    UNEVALUATED,
    ignored,
    in_force,
    is_anything,
    value_of,
    without_annotations,
)
from .negation import differing, violations
from .policy import Policy
from .values import dump_json

FEW = 16  # alternatives not worth a search for superfluous ones
MAX_ABSORBED = 1_000  # alternatives compared with one another
MAX_TERMS = 5_000  # alternatives of one conjunction: each anyOf beside another multiplies them
Cases = tuple[str, list[tuple[Term, list[int]]]]  # a member; cases of its value, and which of some schemas may hold in each
Annotated = tuple[Term, tuple[Site, ...]]  # a term, and the sites in it whose keywords evaluate items and members


class Branches:
    """Terms of conjunctions, computed once each.

    `are_apart` proves that no value satisfies two terms; `is_void` that none satisfies one; `cases` tells schemas apart (tags.py).
    """

    def __init__(
        self, policy: Policy, are_apart: Callable[[list[list[Term]]], bool], is_void: Callable[[Term], bool],
        cases: Callable[[list[list[Term]], frozenset[str]], Cases | None],
    ) -> None:  # fmt: skip
        self._policy, self._are_apart, self._is_void, self._cases = policy, are_apart, is_void, cases
        self._of_conj: dict[Conj, list[Term]] = {}
        self._pending: dict[Conj, list[Term]] = {}
        self._of_claim: dict[tuple[Claim, bool], list[Term]] = {}
        self._annotated: dict[Site, list[Annotated]] = {}
        self._simple: dict[Site, tuple[Claim, ...]] = {}
        self._plain: dict[tuple[object, Document], Site] = {}
        self._open: set[tuple[Site, str]] = set()  # on the way down: a reference to one of them has no meaning
        self._exclude_each_other: dict[Site, bool] = {}
        self._texts: dict[Site, str] = {}
        self._by_text: dict[tuple[str, object, object], Site] = {}

    # -- conjunctions -----------------------------------------------------------------------------------------------

    def conj(self, claims: Iterable[Claim]) -> Conj:
        """Claims without repetition, without those that hold of everything, and with plain references replaced by their target."""
        found = [self._simplified(claim) for claim in claims]
        return found[0] if len(found) == 1 else tuple(dict.fromkeys(claim for each in found for claim in each))

    def terms(self, conj: Conj) -> list[Term]:
        """The alternatives of a conjunction; none when nothing satisfies it."""
        known = self._of_conj.get(conj)
        if known is None:
            pending = self.pending_terms(conj)
            if any(isinstance(literal, Exclusive) for term in pending for literal in term):
                pending = list(dict.fromkeys(term for each in pending for term in self._settled(each)))
            known = self._of_conj[conj] = pending
        return known

    def pending_terms(self, conj: Conj) -> list[Term]:
        """The alternatives with `Exclusive` literals not yet expanded; without them they are a superset."""
        known = self._pending.get(conj)
        if known is None:
            void = self.is_contradiction(conj)
            known = self._pending[conj] = [] if void else self._joined([self._claim(claim, True) for claim in conj], conj)
        return known

    def is_contradiction(self, conj: Conj) -> bool:
        """Whether a conjunction has a schema, and that it does not hold."""
        wrong = [claim.claim for claim in conj if isinstance(claim, Not)]
        if not wrong:
            return False
        said = set(map(self._alike_claim, conj))
        return any(self._alike_claim(claim) in said for claim in wrong)

    def _simplified(self, claim: Claim) -> tuple[Claim, ...]:
        if isinstance(claim, Site):
            known = self._simple.get(claim)
            if known is None:
                target = self._target(claim)
                known = self._simple[claim] = () if is_anything(target.schema) else (self._first_like(target),)
            return known
        if isinstance(claim, Not) and isinstance(claim.claim, Site):
            target = self._target(claim.claim)
            return () if target.schema is False else (Not(target),)
        return (claim,)

    def _first_like(self, site: Site) -> Site:
        """The first site that says the same about plain values, so that these are lowered once."""
        key = plain_key(site.schema)
        return site if key is None else self._plain.setdefault((key, site.document), site)

    def _claim(self, claim: Claim, holds: bool) -> list[Term]:
        """The alternatives of a claim, or of its negation."""
        if isinstance(claim, Not):
            return self._claim(claim.claim, not holds)
        key = (claim, holds)
        known = self._of_claim.get(key)
        if known is None:
            self._policy.check_time(claim.path)
            if isinstance(claim, Site):
                with _Entered(self._open, claim, "holds" if holds else "fails"):
                    known = self._expanded(claim) if holds else self._refuted(claim)
            elif isinstance(claim, Equals):
                known = [(Among((claim.key,), (claim.value,)),)] if holds else differing(claim.value)
            elif holds:
                known = _union(self.pending_terms(conj) for conj in claim.options)
            else:
                known = self._joined([_union(self._claim(each, False) for each in conj) for conj in claim.options], (claim,))
            self._of_claim[key] = known
        return known

    def holds(self, site: Site) -> list[Term]:
        return self._claim(self._target(site), True)

    def fails(self, site: Site) -> list[Term]:
        return self._claim(self._target(site), False)

    # -- a schema that holds ----------------------------------------------------------------------------------------

    def _expanded(self, site: Site) -> list[Term]:
        if isinstance(site.schema, bool):
            return [()] if site.schema else []
        self._note_ignored(site)
        if _APPLICATORS.isdisjoint(site.active):
            return [_own(site)]
        if wanted := _unevaluated_of(site):
            branches = self._annotated_parts(site)
            terms = [term + tuple(Unevaluated(site, each, seen) for each in wanted) for term, seen in branches]
            return self._joined([terms], (site,))
        groups: list[list[Term]] = [[_own(site)], *(self.holds(part) for part in self._subschemas(site, "allOf"))]
        groups += [self.holds(target) for target in self._references(site)]
        if in_force(site, "anyOf"):
            groups.append(_union(self.holds(part) for part in self._subschemas(site, "anyOf")))
        if in_force(site, "oneOf"):
            groups.append(self._one_of(site))
        if in_force(site, "not"):
            groups.append(self.fails(site.child("not")))
        groups += self._conditions(site)
        return self._joined(groups, (site,))

    def _one_of(self, site: Site) -> list[Term]:
        parts = [self.holds(part) for part in self._subschemas(site, "oneOf")]
        if sum(map(bool, parts)) < 2:
            return _union(parts)
        return [(*term, Exclusive(site, index)) for index, part in enumerate(parts) for term in part]

    def _conditions(self, site: Site) -> list[list[Term]]:
        """`if` and what depends on the presence of a key, each as its cases."""
        groups = []
        if condition := _condition(site):
            when, then, otherwise = condition
            groups.append(
                self._joined([self.holds(when), self._optional(then, True)], (site,))
                + self._joined([self.fails(when), self._optional(otherwise, True)], (site,))
            )
        for name, dependent in self._dependencies(site):
            needed = _all_keys(dependent) if isinstance(dependent, list) else self.holds(dependent)
            absent: Term = (lacks_key(name, strict=False),)
            groups.append([absent, *needed])
        return groups

    def _optional(self, site: Site | None, holds: bool) -> list[Term]:
        """A schema that may be missing, and then admits everything."""
        if site is None:
            return [()] if holds else []
        return self.holds(site) if holds else self.fails(site)

    # -- a schema that fails ----------------------------------------------------------------------------------------

    def _refuted(self, site: Site) -> list[Term]:
        if isinstance(site.schema, bool):
            return [] if site.schema else [()]
        groups = [[tuple(map(self._resolved, term)) for term in violations(site)]]
        groups += [self.fails(part) for part in (*self._subschemas(site, "allOf"), *self._references(site))]
        if in_force(site, "anyOf"):
            groups.append(self._none_of(site, "anyOf"))
        if in_force(site, "oneOf"):
            groups.append(self._not_one_of(site))
        if in_force(site, "not"):
            groups.append(self.holds(site.child("not")))
        if condition := _condition(site):
            when, then, otherwise = condition
            groups.append(self._joined([self.holds(when), self._optional(then, False)], (site,)))
            groups.append(self._joined([self.fails(when), self._optional(otherwise, False)], (site,)))
        for name, dependent in self._dependencies(site):
            present: Term = (has_key(name),)
            missing: list[Term] = (
                [(lacks_key(each),) for each in dependent] if isinstance(dependent, list) else self.fails(dependent)
            )
            groups.append(self._joined([[present], missing], (site,)))
        for keyword in _unevaluated_of(site):
            branches = self._annotated_parts(site)
            groups.append([(*term, Unevaluated(site, keyword, seen, holds=False)) for term, seen in branches])
        return _union(groups)

    def _resolved(self, literal: Literal) -> Literal:
        """The same literal with references resolved, so that violations of one schema in several places are equal."""
        if not isinstance(literal, Count):
            return literal
        return replace(literal, conj=tuple(map(self._alike_claim, self.conj(literal.conj))))

    def _none_of(self, site: Site, keyword: str) -> list[Term]:
        groups = [self.fails(part) for part in self._subschemas(site, keyword)]
        if math.prod(map(len, groups)) > FEW:
            return [(Exclusive(site, None, keyword),)]
        return self._joined(groups, (site,))

    def _not_one_of(self, site: Site) -> list[Term]:
        """None of the branches, or two of them."""
        parts = self._subschemas(site, "oneOf")
        pairs = ((a, b) for i, a in enumerate(parts) for b in parts[:i])
        two = (self._joined([self.holds(a), self.holds(b)], (site,)) for a, b in pairs)
        return _union([self._none_of(site, "oneOf"), *two])

    # -- oneOf, settled ---------------------------------------------------------------------------------------------

    def _settled(self, term: Term) -> list[Term]:
        """The term without `Exclusive` literals: dropped where the branches exclude each other, else spelled out."""
        open_terms, done = [term], []
        while open_terms:
            current = open_terms.pop()
            self._policy.check_time(None)
            exclusive = next((each for each in current if isinstance(each, Exclusive)), None)
            if exclusive is None:
                done.append(current)
                continue
            rest = tuple(each for each in current if each is not exclusive)
            open_terms += self._alone(rest, exclusive)
            if len(open_terms) + len(done) > MAX_TERMS:
                raise _too_many(len(open_terms) + len(done), (exclusive.site,))
        return done[::-1]

    def _alone(self, rest: Term, exclusive: Exclusive) -> list[Term]:
        site = exclusive.site
        parts = self._subschemas(site, exclusive.keyword)
        if exclusive.index is not None:
            if site not in self._exclude_each_other:
                self._exclude_each_other[site] = self._are_apart([self.holds(part) for part in parts])
            if self._exclude_each_other[site]:
                return [rest]
        return self._without(rest, [part for index, part in enumerate(parts) if index != exclusive.index])

    def _without(self, term: Term, parts: list[Site], decided: frozenset[str] = frozenset()) -> list[Term]:
        """The term where none of some schemas holds; those first that the value of a member, not `decided` yet, tells apart."""
        near = [part for part in parts if not self._is_apart(term, part)]
        found = self._cases([self.holds(part) for part in near], decided) if len(near) > 1 else None
        if found is None:
            return self._without_any(term, near)
        name, cases = found
        out: list[Term] = []
        for condition, left in cases:
            for case in self._joined([[term], [condition]], (near[0],)):
                out += self._without(case, [near[i] for i in left], decided | {name})
        return list(dict.fromkeys(out))

    def _without_any(self, term: Term, parts: list[Site]) -> list[Term]:
        terms = [term]
        for part in sorted(parts, key=lambda part: len(self.fails(part))):
            apart = {each: self._is_apart(each, part) for each in terms}
            others = [each for each in terms if not apart[each]]
            terms = [each for each in terms if apart[each]] + self._joined([others, self.fails(part)], (part,))
        return terms

    def _is_apart(self, term: Term, part: Site) -> bool:
        self._policy.check_time(part.path)
        return self._are_apart([[term], self.holds(part)])

    # -- annotations ------------------------------------------------------------------------------------------------

    def _annotated_parts(self, site: Site) -> list[Annotated]:
        """The branches of a site apart from its own `unevaluated...`, each with the sites whose annotations it collects.

        A branch that holds annotates whether or not it was needed, so branches are told apart by which of them hold.
        """
        known = self._annotated.get(site)
        if known is not None:
            return known
        groups: list[list[Annotated]] = [[(_own(site), (site,))]]
        for part in (*self._subschemas(site, "allOf"), *self._references(site)):
            groups.append(self._annotations(part))
        if in_force(site, "anyOf"):
            groups.append(self._chosen(self._subschemas(site, "anyOf"), lambda count: count > 0))
        if in_force(site, "oneOf"):
            groups.append(self._chosen(self._subschemas(site, "oneOf"), lambda count: count == 1))
        if in_force(site, "not"):
            groups.append([(term, ()) for term in self.fails(site.child("not"))])
        if in_force(site, "if"):
            when, then, otherwise = _condition(site) or (site.child("if"), None, None)
            groups.append(self._both([self._annotations(when), self._annotated_optional(then)], site)
                          + self._both([_bare(self.fails(when)), self._annotated_optional(otherwise)], site))
        for name, dependent in self._dependencies(site):
            if isinstance(dependent, list):
                needed = _bare(_all_keys(dependent))
            else:
                needed = self._both([_bare([(has_key(name),)]), self._annotations(dependent)], site)
            groups.append([((lacks_key(name, strict=False),), ()), *needed])
        out = self._annotated[site] = self._both(groups, site)
        return out

    def _annotations(self, site: Site) -> list[Annotated]:
        target = self._target(site)
        if isinstance(target.schema, bool):
            return [((), ())] if target.schema else []
        with _Entered(self._open, target, "annotates"):
            branches = self._annotated_parts(target)
        if wanted := _unevaluated_of(target):
            return [(term + tuple(Unevaluated(target, each, seen) for each in wanted), seen) for term, seen in branches]
        return branches

    def _annotated_optional(self, site: Site | None) -> list[Annotated]:
        return [((), ())] if site is None else self._annotations(site)

    def _chosen(self, parts: list[Site], is_right: Callable[[int], bool]) -> list[Annotated]:
        """The cases in which a right number of schemas hold: which do is told apart."""
        if 2 ** len(parts) > MAX_TERMS:
            raise _too_many(2 ** len(parts), tuple(parts))
        out: list[Annotated] = []
        for signs in product((True, False), repeat=len(parts)):
            if is_right(sum(signs)):
                chosen = [
                    self._annotations(part) if holds else _bare(self.fails(part))
                    for part, holds in zip(parts, signs, strict=True)
                ]
                out += self._both(chosen, parts[0])
        return out

    def _both(self, groups: Sequence[list[Annotated]], where: Site) -> list[Annotated]:
        """One branch of each group, in all combinations that are not void."""
        out: list[Annotated] = [((), ())]
        for group in groups:
            _check_count(len(out) * len(group), (where,))
            joined = ((merged(a, b), tuple(dict.fromkeys(x + y))) for a, x in out for b, y in group)
            out = list(dict.fromkeys(each for each in joined if not self._is_empty(each[0])))
        return out

    # -- parts of a schema ------------------------------------------------------------------------------------------

    def _target(self, site: Site) -> Site:
        """The end of a chain of schemas that are nothing but a reference."""
        passed = {site}
        while (keyword := _only_reference(site)) is not None:
            target = self._resolve(site, keyword)
            if target is None:
                return site
            if target in passed:
                raise site.error("$ref", "the schema refers to itself without a value in between")
            passed.add(target)
            site = target
        return site

    def _references(self, site: Site) -> list[Site]:
        found = (self._resolve(site, keyword) for keyword in REFERENCES if in_force(site, keyword))
        return [target for target in found if target is not None]

    def _resolve(self, site: Site, keyword: str) -> Site | None:
        try:
            return site.document.resolve(site, keyword)
        except UnsupportedKeyword as error:
            self._policy.refuse(error)
            return None

    def _subschemas(self, site: Site, keyword: str) -> list[Site]:
        branches = value_of(site, keyword)
        if branches is None:
            return []
        if not isinstance(branches, list) or not branches:
            raise site.error(keyword, f"a list of at least one schema is expected, not {shown(branches)}")
        return [site.child(keyword, i) for i in range(len(branches))]

    def _dependencies(self, site: Site) -> list[tuple[str, list[str] | Site]]:
        """Per name whose presence asks for more: the names that have to be there too, or the schema that has to hold."""
        out: list[tuple[str, list[str] | Site]] = []
        for keyword in ("dependentRequired", "dependentSchemas", "dependencies"):
            listed = value_of(site, keyword)
            if listed is not None and not isinstance(listed, dict):
                raise site.error(keyword, f"an object is expected, not {shown(listed)}")
            for name, dependent in (listed or {}).items():
                names = [dependent] if isinstance(dependent, str) and keyword == "dependencies" else dependent
                if isinstance(names, list) and keyword != "dependentSchemas":
                    if not all(isinstance(each, str) for each in names):
                        raise site.error(keyword, f"a list of names is expected, not {shown(names)}")
                    out += [(name, names)] if names else []
                elif keyword == "dependentRequired":
                    raise site.error(keyword, f"a list of names is expected, not {shown(names)}")
                elif not is_anything(dependent):
                    out.append((name, site.child(keyword, name)))
        return out

    def _note_ignored(self, site: Site) -> None:
        for keyword in ignored(site):
            if "$ref" in site.keywords and site.document.draft <= 7:
                self._policy.note(f"{site.path}: {keyword!r} means nothing beside $ref up to draft 7")
            else:
                self._policy.note(f"{site.path}: {keyword!r} is not a keyword of the schema's draft")

    # -- products ---------------------------------------------------------------------------------------------------

    def _joined(self, groups: Sequence[list[Term]], where: Conj) -> list[Term]:
        """One term of each group, in all combinations that are not void."""
        out: list[Term] = [()]
        for group in groups:
            if out == [()] and len(group) == 1 and len(group[0]) < 2:
                out = group
                continue
            if len(out) * len(group) > FEW:
                out = self._product(out, group, where)
                continue
            out = list(dict.fromkeys(merged(term, more) for term in out for more in group))
            if len(group) > 1 or any(not isinstance(literal, Site) for literal in (group[0] if group else ())):
                out = [term for term in out if not self._is_empty(term)]
        return out

    def _product(self, terms: list[Term], group: list[Term], where: Conj) -> list[Term]:
        """The same for two groups, of many terms. A term that says already what one of the group says stays as it is."""
        terms, group = (list(dict.fromkeys(map(self._shared, each))) for each in (terms, group))
        said = [frozenset(more) for more in group]
        out: dict[Term, None] = {}
        for term in terms:
            self._policy.check_time(where[0].path if where else None)
            literals = frozenset(term)
            if any(more <= literals for more in said):
                out[term] = None
                continue
            out |= {each: None for more in group if not self._is_empty(each := merged(term, more))}
            _check_count(len(out), where)
        return _absorbed(list(out)) if FEW < len(out) <= MAX_ABSORBED else list(out)

    def _shared(self, term: Term) -> Term:
        """The same term with one site for all that say the same."""
        return tuple(dict.fromkeys(self._alike(literal) if isinstance(literal, Site) else literal for literal in term))

    def _alike(self, site: Site) -> Site:
        """The first site of which the same is said, from where references lead to the same schemas."""
        text = self._texts.get(site)
        if text is None:
            text = self._texts[site] = dump_json(without_annotations(site.schema))
        return self._by_text.setdefault((text, site.document, site.scope), site)

    def _alike_claim(self, claim: Claim) -> Claim:
        if isinstance(claim, Not):
            return Not(self._alike(claim.claim)) if isinstance(claim.claim, Site) else claim
        return self._alike(claim) if isinstance(claim, Site) else claim

    def _is_empty(self, term: Term) -> bool:
        if len(term) < 2:
            return False
        atoms = literal_atoms(term[0])
        for literal in term[1:]:
            atoms &= literal_atoms(literal)
        return not atoms or (any(not isinstance(literal, Site) for literal in term) and self._is_void(term))


_PLAIN = frozenset({*GENERAL, *NUMERIC, "minLength", "maxLength", "minItems", "maxItems"})
_NOT_STRINGS = [name for name in TYPES if name != "string"]
_SCALARS = (str, int, Decimal, type(None))
_APPLICATORS = frozenset(APPLICATORS)
_MEANINGFUL = OWN | _APPLICATORS
_KNOWN = _MEANINGFUL | SINCE.keys() | UNTIL.keys()  # all others are annotations


class _Entered:
    """Marks a site as being expanded; entering it again on the way down is an error."""

    def __init__(self, entered: set[tuple[Site, str]], site: Site, how: str) -> None:
        self._entered, self._key = entered, (site, how)

    def __enter__(self) -> None:
        if self._key in self._entered:
            raise self._key[0].error("$ref", "the schema refers to itself without a value in between")
        self._entered.add(self._key)

    def __exit__(self, *unused: Any) -> None:
        self._entered.discard(self._key)


def plain_key(schema: Any) -> object:
    """Equal for schemas that say the same with a few keywords of which none is ever refused or remarked; else None."""
    if not isinstance(schema, dict):
        return None
    key: list[object] = []
    for keyword, value in schema.items():
        if keyword not in _KNOWN:
            continue
        if keyword in _PLAIN:
            part = value if type(value) is str else _plain_part(value)
        elif keyword == "items":
            part = plain_key(value)
        elif keyword == "format" and schema.get("type") in _NOT_STRINGS:
            continue
        else:
            return None
        if part is None:
            return None
        key += (keyword, part)
    return tuple(key)


def _plain_part(value: Any) -> object:
    """Equal for equal scalars and lists of scalars, of the same types; None for other values."""
    if isinstance(value, list):
        return tuple((type(each), each) for each in value) if all(isinstance(each, _SCALARS) for each in value) else None
    return None if isinstance(value, dict) else (type(value), value)


def merged(first: Term, second: Term) -> Term:
    """Both terms as one, each literal once."""
    return tuple(dict.fromkeys(first + second)) if first and second else first or second


def _absorbed(terms: list[Term]) -> list[Term]:
    """Terms of which none says all that another says and more."""
    out: list[tuple[frozenset[Literal], Term]] = []
    for term in sorted(terms, key=len):
        literals = frozenset(term)
        if not any(weaker <= literals for weaker, _ in out):
            out.append((literals, term))
    return [term for _, term in out]


def _union(groups: Iterable[list[Any]]) -> list[Any]:
    return list(dict.fromkeys(each for group in groups for each in group))


def _bare(terms: list[Term]) -> list[Annotated]:
    """Branches that annotate nothing."""
    return [(term, ()) for term in terms]


def _all_keys(names: list[str]) -> list[Term]:
    """The value has members of these names, if it is an object."""
    return [tuple(has_key(name, strict=False) for name in names)]


def _own(site: Site) -> Term:
    return () if OWN.isdisjoint(site.active) else (site,)


def _only_reference(site: Site) -> str | None:
    """The keyword of a schema that is nothing but one reference."""
    found = [key for key in REFERENCES if key in site.active]
    return found[0] if len(found) == 1 and len(_MEANINGFUL.intersection(site.active)) == 1 else None


def _condition(site: Site) -> tuple[Site, Site | None, Site | None] | None:
    """`if`, `then`, `else`; None when they ask for nothing."""
    if not in_force(site, "if") or not any(in_force(site, key) for key in ("then", "else")):
        return None
    then, otherwise = (site.child(key) if in_force(site, key) else None for key in ("then", "else"))
    return site.child("if"), then, otherwise


def _unevaluated_of(site: Site) -> list[str]:
    return [key for key in UNEVALUATED if in_force(site, key) and not is_anything(site.keywords[key])]


def _check_count(count: int, where: Conj) -> None:
    if count > MAX_TERMS:
        raise _too_many(count, where)


def _too_many(count: int, where: Conj) -> ConstraintLimit:
    return ConstraintLimit(
        f"{count} combinations of alternatives", limit="alternatives", value=MAX_TERMS,
        path=where[0].path if where else None, instead="fewer anyOf, oneOf or not that hold at the same time",
    )  # fmt: skip

