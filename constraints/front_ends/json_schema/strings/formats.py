"""The formats of JSON Schema as regular expressions (ECMA-262, matched in full), with the RFC that each is taken from.

Every text of a format's language is valid for its RFC. Where the language is smaller than the RFC's, `narrower` says how, and
`wider` is a pattern that every valid text matches: what does not match it certainly violates the format, which is its negation.
Names that are not in the table ("password", "binary", "path", ...) are annotations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from string import ascii_lowercase, ascii_uppercase, digits

from ....base.utf8 import Ranges
from ....grammar.expression import Grammar, Node
from ....grammar.source import Limits
from ...regex.regex import lower_tree, parse_pattern, tree_length
from ...regex.tree import CharSet, Tree, Unit, shared
from .addresses import Addresses

Builder = Callable[[Addresses, Node], Node]


@dataclass(frozen=True, slots=True)
class Format:
    """One format: the texts that it accepts, where they are defined, and what is left out.

    Where limits on the whole and on its parts would make `pattern` slow, `build` makes the node from `Addresses` and
    the node of `literal`, a part of the pattern; `length` are the least and greatest number of characters then.
    """

    name: str
    source: str
    pattern: str
    narrower: str = ""
    build: Builder | None = None
    literal: str = ""
    length: tuple[int, int | None] | None = None
    wider: str = ""


def format_node(grammar: Grammar, name: str, unit: Unit, limits: Limits) -> Node | None:
    """The texts of a format; None when the format is unknown. `unit` gives the node for one character of a set.

    A format narrower than its RFC leaves a remark in `grammar.notes`.
    """
    known = FORMATS.get(name)
    if known is None:
        return None
    note_narrower(grammar, name)
    if known.build is None:
        return lower_tree(grammar, _tree(known.pattern), full=True, unit=unit, limits=limits)
    literal = lower_tree(grammar, _tree(known.literal), full=True, unit=unit, limits=limits)
    return known.build(Addresses(grammar, unit), literal)


def note_narrower(grammar: Grammar, name: str) -> None:
    """Leave a remark where a known format is narrower than its RFC."""
    known = FORMATS[name]
    note = f"format {name!r} is narrower than {known.source}: {known.narrower}"
    if known.narrower and note not in grammar.notes:
        grammar.notes.append(note)


def wider_node(grammar: Grammar, name: str, unit: Unit, limits: Limits) -> Node:
    """A set of texts that contains all texts of a known format which are valid for its RFC."""
    known = FORMATS[name]
    return lower_tree(grammar, _tree(known.wider or known.pattern), full=True, unit=unit, limits=limits)


@cache
def format_length(name: str) -> tuple[int, int | None]:
    """The least and the greatest number of characters of a known format's texts; None = no bound."""
    known = FORMATS[name]
    return known.length or tree_length(_tree(known.pattern))


@cache
def _tree(pattern: str) -> Tree:
    """The meaning of one of the patterns below, in which equal parts are one object."""
    return shared(parse_pattern(pattern, "ecma", Limits()))


def formats_page() -> str:
    """The content of `docs/formats.md`: the table and the patterns, as Markdown."""
    rows = [f"| `{one.name}` | {one.source} | {one.narrower or 'equal'} |" for one in FORMATS.values()]
    patterns = [f"- `{one.name}`\n\n      {one.pattern}\n" for one in FORMATS.values()]
    wider = [f"- `{one.name}`\n\n      {one.wider}\n" for one in FORMATS.values() if one.wider]
    return "\n".join([_PAGE_HEAD, *rows, "", "## Patterns", "", *patterns, _WIDER_HEAD, "", *wider])


_PAGE_HEAD = """# Formats

What `format` means under `formats="assert"`, the default: the string matches the regular expression below (ECMA-262, the whole
string, by code points), and lengths are as the table says. Every such string is valid for the document named. "equal" means
that every valid string matches as well; otherwise the third column says which valid strings do not, and `constraint.notes`
repeats it. A format that is not listed is an annotation, with a note; among them are `color`, `host-name`, `ip-address`, `phone`,
`style` and `utc-millisec`, which no draft from 4 on defines. This page is printed by
`maskwright.constraints.front_ends.json_schema.strings.formats.formats_page()`.

| format | defined in | compared with the definition |
|---|---|---|"""

_WIDER_HEAD = """## Negations

A string violates a format (under `not`, in the other branches of a `oneOf`, where an `if` does not hold) when it does not match the
format's pattern above; for formats that are narrower than their definition, when it does not match this one, which every valid
string does. What lies between the two patterns is taken for neither."""


# -- dates and times: RFC 3339 --------------------------------------------------------------------------------------

_YEAR = r"(?:\d{3}[1-9]|\d{2}[1-9]\d|\d[1-9]\d{2}|[1-9]\d{3})"  # 0001 to 9999
_LEAP_YEAR = r"(?:\d\d(?:0[48]|[2468][048]|[13579][26])|(?:0[48]|[2468][048]|[13579][26])00)"
_MONTH_AND_DAY = (
    r"(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)|02-(?:0[1-9]|1\d|2[0-8]))"
)
_DATE = rf"(?:{_YEAR}-{_MONTH_AND_DAY}|{_LEAP_YEAR}-02-29)"
_HOUR_AND_MINUTE = r"(?:[01]\d|2[0-3]):[0-5]\d"
_SECONDS = r"[0-5]\d(?:\.\d+)?"
_OFFSET = rf"(?:[Zz]|[+-]{_HOUR_AND_MINUTE})"
_TIME = rf"{_HOUR_AND_MINUTE}:{_SECONDS}{_OFFSET}"
_DURATION_TIME = r"T(?:\d+H(?:\d+M(?:\d+S)?)?|\d+M(?:\d+S)?|\d+S)"
_DURATION_DATE = r"(?:\d+D|\d+M(?:\d+D)?|\d+Y(?:\d+M(?:\d+D)?)?)"
_DURATION = rf"P(?:{_DURATION_DATE}(?:{_DURATION_TIME})?|{_DURATION_TIME}|\d+W)"
_YEAR_NOTE = "no year 0000"


def _leap(sign: str, minutes: tuple[int, ...]) -> str:
    """Times of a leap second, 23:59:60 in UTC, at offsets of `minutes` beyond each hour."""
    by_hour: dict[int, list[str]] = {hour: [] for hour in range(24)}
    for offset in (60 * hours + some for hours in range(24) for some in minutes):
        local = (1439 + (offset if sign == "+" else -offset)) % 1440
        shown = f"{offset // 60:02d}:{offset % 60:02d}"
        by_hour[local // 60].append(rf"{local % 60:02d}:60(?:\.\d+)?[{sign}]{shown}")
    return "(?:" + "|".join(f"{hour:02d}:(?:{'|'.join(texts)})" for hour, texts in by_hour.items()) + ")"


_LEAP_UTC = r"23:59:60(?:\.\d+)?(?:[Zz]|[+-]00:00)"
_HALVES = (0, 30)
_LEAP_TIME = f"(?:{_LEAP_UTC}|{_leap('-', _HALVES)}|{_leap('+', _HALVES)})"
# The days that a leap second has ended (IERS Bulletin C). Only in UTC: other offsets would double what `date-time` costs.
_JUNE = "1972|198[1235]|199[2347]|201[25]"
_DECEMBER = "197[2-9]|1987|199[058]|1989|2005|2008|2016"
_LEAP_DATE_TIME = f"(?:(?:{_JUNE})-06-30|(?:{_DECEMBER})-12-31)[Tt]{_LEAP_UTC}"
_LEAP_TIME_NOTE = "a leap second (:60) only at offsets of whole and half hours"
_LEAP_DATE_NOTE = "leap seconds (:60) as there have been until 2016, in UTC"
_ANY_DATE = rf"(?:\d{{4}}-{_MONTH_AND_DAY}|(?:{_LEAP_YEAR}|0000)-02-29)"
_ANY_TIME = rf"{_HOUR_AND_MINUTE}:(?:[0-5]\d|60)(?:\.\d+)?{_OFFSET}"

# -- names of hosts and mail: RFC 1123, RFC 5891, RFC 5321, RFC 6531 --------------------------------------------------


def _alternate(first: int, last: int, but: str = "") -> str:
    """Every second character: the lower-case letters of blocks in which case alternates."""
    return "".join(chr(code) for code in range(first, last + 1, 2) if chr(code) not in but)


_LABEL = r"(?!..--)[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_HOSTNAME = rf"(?=.{{1,253}}$){_LABEL}(?:\.{_LABEL})*"
# Letters that RFC 5892 calls PVALID, of scripts written from left to right, without marks: Latin-1, Latin Extended-A, Greek,
# Cyrillic, Hiragana, Katakana, Han, Hangul
_IDN_LETTER = (
    r"\u00E0-\u00F6\u00F8-\u00FF"
    + _alternate(0x101, 0x137, but="\u0133")
    + _alternate(0x13A, 0x148, but="\u0140")
    + _alternate(0x14B, 0x177)
    + r"\u017A\u017C\u017E"
    + r"\u03AC-\u03AF\u03B1-\u03C1\u03C3-\u03C9\u03CC-\u03CE\u0430-\u045F"
    r"\u3041-\u3093\u30A1-\u30F6\u4E00-\u9FA5\uAC00-\uD7A3"
)
_IDN_LABEL = rf"(?:{_LABEL}|[a-z0-9{_IDN_LETTER}]{{1,11}})"
_IDN_HOSTNAME = rf"{_IDN_LABEL}(?:\.{_IDN_LABEL})*"
_ATEXT = r"A-Za-z0-9!#$%&'*+\-/=?^_`{|}~"
_WIDE = r"\u0080-\u{10FFFF}"
_OCTET = r"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
_IPV4 = rf"{_OCTET}(?:\.{_OCTET}){{3}}"
_H16 = "[0-9A-Fa-f]{1,4}"
_LS32 = rf"(?:{_H16}:{_H16}|{_IPV4})"
_IPV6 = "|".join(  # the nine lines of IPv6address in RFC 3986, 3.2.2
    [
        rf"(?:{_H16}:){{6}}{_LS32}",
        rf"::(?:{_H16}:){{5}}{_LS32}",
        *(rf"(?:(?:{_H16}:){{0,{before}}}{_H16})?::(?:{_H16}:){{{4 - before}}}{_LS32}" for before in range(5)),
        rf"(?:(?:{_H16}:){{0,5}}{_H16})?::{_H16}",
        rf"(?:(?:{_H16}:){{0,6}}{_H16})?::",
    ]
)
_ADDRESS_LITERAL = rf"\[(?:{_IPV4}|IPv6:(?:{_IPV6}))\]"


@cache
def _idn_letters() -> Ranges:
    tree = parse_pattern(f"[{_IDN_LETTER}]", "ecma", Limits())
    assert isinstance(tree, CharSet)
    return tree.ranges


def _mailbox(wide: str, domain: str) -> str:
    atom, quoted = f"[{_ATEXT}{wide}]+", rf'"(?:[ !#-\[\]-~{wide}]|\\[ -~]){{0,62}}"'
    return rf"(?=.{{1,64}}@)(?:{atom}(?:\.{atom})*|{quoted})@(?:{domain}|{_ADDRESS_LITERAL})"


_ANY_LABEL = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_ANY_WIDE_LABEL = rf"[A-Za-z0-9{_WIDE}](?:[A-Za-z0-9{_WIDE}-]*[A-Za-z0-9{_WIDE}])?"
_ANY_WIDE_DOMAIN = rf"{_ANY_WIDE_LABEL}(?:[.\u3002\uFF0E\uFF61]{_ANY_WIDE_LABEL})*"


def _any_mailbox(wide: str, domain: str) -> str:
    atom, quoted = f"[{_ATEXT}{wide}]+", rf'"(?:[ !#-\[\]-~{wide}]|\\[ -~])*"'
    return rf"(?:{atom}(?:\.{atom})*|{quoted})@(?:{domain}|\[[!-Z^-~]+\])"


_NO_A_LABELS = "no A-labels (xn--)"
_LENGTH = "a label counts as the next multiple of 8 characters, its dot included, and all labels as at most"
_HOSTNAME_NOTE = f"{_NO_A_LABELS}; {_LENGTH} 248"
_EMAIL_NOTE = f"domains as in hostname, with at most 184 characters; {_NO_A_LABELS}"
_IDN_NOTE = (
    "labels that are not ASCII have at most 11 characters: digits and lower-case letters of Latin-1, Latin Extended-A, Greek, "
    "Cyrillic, Hiragana, Katakana, Han, Hangul"
)

# -- identifiers of resources: RFC 3986, RFC 3987, RFC 6570, RFC 6901 -----------------------------------------------

_PERCENT = "%[0-9A-Fa-f]{2}"
_UNRESERVED = r"A-Za-z0-9\-._~"
_SUB_DELIMITERS = "!$&'()*+,;="
# ucschar of RFC 3987, 2.2, without the bidirectional formatting characters that 4.1 excludes
_UCSCHAR = r"\u00A0-\u200D\u2010-\u2029\u202F-\uD7FF\uF900-\uFDCF\uFDF0-\uFFEF" + "".join(
    rf"\u{{{plane:X}{'1000' if plane == 14 else '0000'}}}-\u{{{plane:X}FFFD}}" for plane in range(1, 15)
)
_IPRIVATE = r"\uE000-\uF8FF\u{F0000}-\u{FFFFD}\u{100000}-\u{10FFFD}"


@dataclass(frozen=True, slots=True)
class _Identifiers:
    """The grammar of URIs (RFC 3986, appendix A) or, with more characters, of IRIs (RFC 3987, 2.2)."""

    extra: str = ""
    private: str = ""

    def absolute(self) -> str:
        """A scheme, what it identifies, and a fragment."""
        hierarchy = self._hierarchy(self._segment(":@", "+"))
        return rf"[A-Za-z][A-Za-z0-9+\-.]*:{hierarchy}{self._query_and_fragment()}"

    def reference(self) -> str:
        """`absolute`, or relative to another one."""
        return f"(?:{self.absolute()}|{self._hierarchy(self._segment('@', '+'))}{self._query_and_fragment()})"

    def _segment(self, more: str, count: str) -> str:
        return f"(?:[{_UNRESERVED}{self.extra}{_SUB_DELIMITERS}{more}]|{_PERCENT}){count}"

    def _hierarchy(self, first_segment: str) -> str:
        segments = f"(?:/{self._segment(':@', '*')})*"
        rooted = f"/(?:{self._segment(':@', '+')}{segments})?"
        return f"(?://{self._authority()}{segments}|{rooted}|{first_segment}{segments}|)"

    def _authority(self) -> str:
        future = rf"[Vv][0-9A-Fa-f]+\.[{_UNRESERVED}{_SUB_DELIMITERS}:]+"
        return rf"(?:{self._segment(':', '*')}@)?(?:\[(?:{_IPV6}|{future})\]|{self._segment('', '*')})(?::\d*)?"

    def _query_and_fragment(self) -> str:
        return rf"(?:\?{self._segment(f'{self.private}:@/?', '*')})?(?:#{self._segment(':@/?', '*')})?"


_URIS, _IRIS = _Identifiers(), _Identifiers(_UCSCHAR, _IPRIVATE)
_VARIABLE = rf"(?:\w|{_PERCENT})(?:\.?(?:\w|{_PERCENT}))*(?::[1-9]\d{{0,3}}|\*)?"


def _template(operators: str) -> str:
    expression = rf"\{{[{operators}]?{_VARIABLE}(?:,{_VARIABLE})*\}}"
    return rf"(?:[!#$&-;=?-\[\]_a-z~{_UCSCHAR}{_IPRIVATE}]|{_PERCENT}|{expression})*"


_POINTER = "(?:/(?:[^~/]|~[01])*)*"

# -- regular expressions: ECMA-262 ----------------------------------------------------------------------------------


def _count() -> str:
    """`{n}`, `{n,}` and, up to two digits, `{n,m}` with n <= m."""
    one = [f"{n},(?:[{n}-9]|[1-9]\\d)" for n in range(10)]
    two = [f"{t}{u},{t}[{u}-9]" for t in range(1, 10) for u in range(10)]
    more = [f"{t}\\d,[{t + 1}-9]\\d" for t in range(1, 9)]
    return rf"\{{(?:\d{{1,3}},?|{'|'.join(one + two + more)})\}}"


_RANGES = "|".join(
    f"{low}-[{low}-{chars[-1]}]" for chars in (digits, ascii_uppercase, ascii_lowercase) for low in chars
)
_QUANTIFIER = rf"(?:(?:[*+?]|{_count()})\??)?"
_HEX = "[0-9A-Fa-f]"
_PATTERN_ESCAPE = (
    rf"\\(?:[dDwWsSfnrtv\^$\\.*+?()\[\]{{}}|/]|c[A-Za-z]|x{_HEX}{{2}}|u(?:[0-9A-CEFa-cef]{_HEX}|[Dd][0-7]){_HEX}{{2}})"
)
_MEMBER = rf"(?:[^\\\[\]\-\^&~|]|{_RANGES}|{_PATTERN_ESCAPE})"
_MEMBERS = rf"\[\^?(?:-?{_MEMBER}+)?-?\]"
_PLAIN = r"[^\^$\\.*+?()\[\]{}|]"


def _regex(depth: int) -> str:
    """Patterns whose groups nest at most `depth` deep."""
    inner = _regex(depth - 1) if depth else ""
    group, look = (rf"|\((?:\?:)?{inner}\)", rf"|\(\?<?[=!]{inner}\)") if depth else ("", "")
    return rf"(?:{_PLAIN}+|(?:{_PLAIN}|\.|{_PATTERN_ESCAPE}|{_MEMBERS}{group}){_QUANTIFIER}|[|\^$]|\\[bB]{look})*"


# -- the table ------------------------------------------------------------------------------------------------------


def _uuid(version: str, variant: str) -> str:
    h = "[0-9A-Fa-f]"
    return f"{h}{{8}}-{h}{{4}}-{version}{h}{{3}}-{variant}{h}{{3}}-{h}{{12}}"


_ANY_HEX = "[0-9A-Fa-f]"
FORMATS: dict[str, Format] = {
    one.name: one
    for one in (
        Format(
            "date-time",
            "RFC 3339, 5.6",
            f"(?:{_DATE}[Tt]{_TIME}|{_LEAP_DATE_TIME})",
            f"{_YEAR_NOTE}; {_LEAP_DATE_NOTE}",
            wider=f"{_ANY_DATE}[Tt]{_ANY_TIME}",
        ),
        Format("date", "RFC 3339, 5.6 (full-date)", _DATE, _YEAR_NOTE, wider=_ANY_DATE),
        Format("time", "RFC 3339, 5.6 (full-time)", f"(?:{_TIME}|{_LEAP_TIME})", _LEAP_TIME_NOTE, wider=_ANY_TIME),
        Format("duration", "RFC 3339, appendix A", _DURATION),
        Format(
            "email",
            "RFC 5321, 4.1.2",
            _mailbox("", _HOSTNAME),
            _EMAIL_NOTE,
            lambda addresses, literal: addresses.mailbox(literal),
            _ADDRESS_LITERAL,
            (3, 248),
            _any_mailbox("", rf"{_ANY_LABEL}(?:\.{_ANY_LABEL})*"),
        ),
        Format(
            "idn-email",
            "RFC 6531, 3.3",
            _mailbox(_WIDE, _IDN_HOSTNAME),
            f"{_EMAIL_NOTE}; {_IDN_NOTE}",
            lambda addresses, literal: addresses.mailbox(literal, _idn_letters()),
            _ADDRESS_LITERAL,
            (3, 248),
            _any_mailbox(_WIDE, _ANY_WIDE_DOMAIN),
        ),
        Format(
            "hostname",
            "RFC 1123, 2.1",
            _HOSTNAME,
            _HOSTNAME_NOTE,
            lambda addresses, _: addresses.host_name(),
            length=(1, 247),
            wider=rf"{_ANY_LABEL}(?:\.{_ANY_LABEL})*",
        ),
        Format(
            "idn-hostname",
            "RFC 5890, 2.3.2.3",
            _IDN_HOSTNAME,
            f"{_HOSTNAME_NOTE}; {_IDN_NOTE}",
            lambda addresses, _: addresses.host_name(_idn_letters()),
            length=(1, 247),
            wider=_ANY_WIDE_DOMAIN,
        ),
        Format("ipv4", "RFC 2673, 3.2", _IPV4),
        Format("ipv6", "RFC 4291, 2.2", _IPV6),
        Format("uri", "RFC 3986", _URIS.absolute()),
        Format("uri-reference", "RFC 3986, 4.1", _URIS.reference()),
        Format("iri", "RFC 3987", _IRIS.absolute()),
        Format("iri-reference", "RFC 3987, 2.2", _IRIS.reference()),
        Format(
            "uri-template",
            "RFC 6570, 2 (with erratum 6937)",
            _template("+#./;?&"),
            "none of the operators that are reserved for extensions",
            wider=_template("+#./;?&=,!@|"),
        ),
        Format("json-pointer", "RFC 6901, 3", _POINTER),
        Format(
            "relative-json-pointer",
            "draft-bhutton-relative-json-pointer-00, 3",
            rf"(?:0|[1-9]\d*)(?:#|{_POINTER})",
            "no index manipulation (+N, -N), which earlier drafts lack",
            wider=rf"(?:0|[1-9]\d*)(?:[+-]\d+)?(?:#|{_POINTER})",
        ),
        Format("uuid", "RFC 9562, 4", _uuid(_ANY_HEX, _ANY_HEX)),
        *(Format(f"uuid{version}", "RFC 9562, 5", _uuid(str(version), "[89ABab]")) for version in range(1, 9)),
        Format(
            "regex",
            "ECMA-262",
            _regex(3),
            "groups nest at most 3 deep, no names, backreferences, properties or \\u{...}; ranges in sets only of ASCII letters "
            "or digits; `{n,m}` up to 99",
            wider=r"(?:(?![*+?)])(?:[^\\]|\\[^]))(?:[^\\]|\\[^])*|",
        ),
    )
}
