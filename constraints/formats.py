"""The formats of JSON Schema as regular expressions (ECMA-262, matched in full), with the RFC that each is taken from.

Every text of a format's language is valid for its RFC. Where the language is smaller than the RFC's, `narrower` says how.
Names that are not in the table ("password", "binary", "path", ...) are annotations.
"""

from __future__ import annotations

from dataclasses import dataclass

from .expression import Grammar, Node
from .regex import lower_pattern
from .regex_context import Unit
from .source import Limits


@dataclass(frozen=True, slots=True)
class Format:
    """One format: what it accepts, where that is defined, and what it leaves out."""

    name: str
    source: str
    pattern: str
    narrower: str = ""


def format_node(grammar: Grammar, name: str, unit: Unit, limits: Limits) -> Node | None:
    """The texts of a format, `unit` giving the node for one character of a set; None when the format is unknown.

    A format narrower than its RFC leaves a remark in `grammar.notes`.
    """
    known = FORMATS.get(name)
    if known is None:
        return None
    note = f"format {name!r} is narrower than {known.source}: {known.narrower}"
    if known.narrower and note not in grammar.notes:
        grammar.notes.append(note)
    return lower_pattern(grammar, known.pattern, dialect="ecma", full=True, unit=unit, limits=limits)


def formats_page() -> str:
    """What `docs/formats.md` says: the table and the patterns, as Markdown."""
    rows = [f"| `{one.name}` | {one.source} | {one.narrower or 'equal'} |" for one in FORMATS.values()]
    patterns = [f"- `{one.name}`\n\n      {one.pattern}\n" for one in FORMATS.values()]
    return "\n".join([_PAGE_HEAD, *rows, "", "## Patterns", "", *patterns])


_PAGE_HEAD = """# Formats

What `format` means under `formats="assert"`, the default: the string matches the regular expression below (ECMA-262, the whole
string, by code points). Every such string is valid for the document named. "equal" means that every valid string matches as
well; otherwise the third column says which valid strings do not, and `constraint.notes` repeats it. A format that is not listed
is an annotation, with a note. This page is printed by `maskwright.constraints.formats.formats_page()`.

| format | defined in | compared with the definition |
|---|---|---|"""


# -- dates and times: RFC 3339 --------------------------------------------------------------------------------------

_YEAR = r"(?:\d{3}[1-9]|\d{2}[1-9]\d|\d[1-9]\d{2}|[1-9]\d{3})"  # 0001 to 9999
_LEAP_YEAR = r"(?:\d\d(?:0[48]|[2468][048]|[13579][26])|(?:0[48]|[2468][048]|[13579][26])00)"
_MONTH_AND_DAY = (
    r"(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)|02-(?:0[1-9]|1\d|2[0-8]))"
)
_DATE = rf"(?:{_YEAR}-{_MONTH_AND_DAY}|{_LEAP_YEAR}-02-29)"
_HOUR_AND_MINUTE = r"(?:[01]\d|2[0-3]):[0-5]\d"
_TIME = rf"{_HOUR_AND_MINUTE}:[0-5]\d(?:\.\d+)?(?:[Zz]|[+-]{_HOUR_AND_MINUTE})"
_DURATION_TIME = r"T(?:\d+H(?:\d+M(?:\d+S)?)?|\d+M(?:\d+S)?|\d+S)"
_DURATION_DATE = r"(?:\d+D|\d+M(?:\d+D)?|\d+Y(?:\d+M(?:\d+D)?)?)"
_DURATION = rf"P(?:{_DURATION_DATE}(?:{_DURATION_TIME})?|{_DURATION_TIME}|\d+W)"
_TIME_NOTE = "no leap second (:60)"
_YEAR_NOTE = "no year 0000"

# -- names of hosts: RFC 1123, RFC 5891 -----------------------------------------------------------------------------

_LETTER_OR_DIGIT = "[A-Za-z0-9]"
_LDH = "[A-Za-z0-9-]"


def _label(first: str) -> str:
    """Up to 63 letters, digits and hyphens, no hyphen first or last, no two of them third and fourth (RFC 5891, 4.2.3.1)."""
    x, h = _LETTER_OR_DIGIT, _LDH
    return f"{first}(?:{x}|{h}{x}|{h}{h}{x}|{h}(?:{x}{h}|-{x}){h}{{0,58}}{x})?"


_LABEL = _label(_LETTER_OR_DIGIT)
_HOSTNAME = rf"^(?=.{{1,253}}$)(?:{_LABEL})(?:\.(?:{_LABEL}))*$"
_DOMAIN = rf"(?:(?:{_LABEL})\.)+[A-Za-z]{{2,63}}"
# Letters that RFC 5892 calls PVALID, of scripts written from left to right, without marks: Latin-1, Greek, Cyrillic,
# Hiragana, Katakana, Han, Hangul
_IDN_LETTER = (
    r"\u00E0-\u00F6\u00F8-\u00FF\u03AC-\u03AF\u03B1-\u03C1\u03C3-\u03C9\u03CC-\u03CE\u0430-\u045F"
    r"\u3041-\u3093\u30A1-\u30F6\u4E00-\u9FA5\uAC00-\uD7A3"
)
_IDN_LABEL = (
    rf"(?:{_LABEL}|[a-z0-9{_IDN_LETTER}]{{1,11}})"  # in Punycode a letter takes at most 5 characters, 59 are there
)
_IDN_HOSTNAME = rf"(?:{_IDN_LABEL}(?:\.{_IDN_LABEL}){{0,2}})"
_HOSTNAME_NOTE = "no A-labels (xn--)"
_IDN_NOTE = (
    "besides ASCII names: at most 3 labels, of at most 11 characters each where not ASCII: digits and lower-case letters of "
    "Latin-1, Greek, Cyrillic, Hiragana, Katakana, Han, Hangul"
)

# -- mail: RFC 5321, RFC 6531 ---------------------------------------------------------------------------------------

_ATEXT = r"A-Za-z0-9!#$%&'*+\-/=?^_`{|}~"
_DOT_STRING = rf"[{_ATEXT}]+(?:\.[{_ATEXT}]+)*"
_QUOTED_STRING = r'"(?:[ !#-\[\]-~]|\\[ -~]){0,31}"'
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
_EMAIL = rf"^(?=.{{3,254}}$)(?:(?=[^@]{{1,64}}@){_DOT_STRING}|{_QUOTED_STRING})@(?:{_DOMAIN}|{_ADDRESS_LITERAL})$"
_IDN_LOCAL = rf"[{_ATEXT}{_IDN_LETTER}]{{1,21}}"  # a letter takes at most 3 of 64 octets
_IDN_EMAIL = rf"(?:{_EMAIL}|{_IDN_LOCAL}@{_IDN_HOSTNAME})"
_EMAIL_NOTE = "a domain has two labels or more, the last one alphabetic, none an A-label; a quoted local part at most 31 characters"

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
_TEMPLATE = rf"(?:[!#$&-;=?-\[\]_a-z~{_UCSCHAR}{_IPRIVATE}]|{_PERCENT}|\{{[+#./;?&]?{_VARIABLE}(?:,{_VARIABLE})*\}})*"
_POINTER = "(?:/(?:[^~/]|~[01])*)*"

# -- regular expressions: ECMA-262 ----------------------------------------------------------------------------------


def _regex(depth: int) -> str:
    """Patterns whose groups nest at most `depth` deep."""
    escape = r"\\[dDwWsSfnrtv\^$\\.*+?()\[\]{}|/]"
    members = rf"\[\^?(?:[A-Za-z0-9_ ]|a-z|A-Z|0-9|{escape})+\]"
    group = rf"|\((?:\?:)?{_regex(depth - 1)}\)" if depth else ""
    return rf"(?:(?:[^\^$\\.*+?()\[\]{{}}|/]|\.|{escape}|{members}{group})(?:(?:[*+?]|\{{\d{{1,3}},?\}})\??)?|[|\^$])*"


# -- the table ------------------------------------------------------------------------------------------------------


def _uuid(version: str, variant: str) -> str:
    h = "[0-9A-Fa-f]"
    return f"{h}{{8}}-{h}{{4}}-{version}{h}{{3}}-{variant}{h}{{3}}-{h}{{12}}"


_ANY_HEX = "[0-9A-Fa-f]"
FORMATS: dict[str, Format] = {
    one.name: one
    for one in (
        Format("date-time", "RFC 3339, 5.6", f"{_DATE}[Tt]{_TIME}", f"{_YEAR_NOTE}, {_TIME_NOTE}"),
        Format("date", "RFC 3339, 5.6 (full-date)", _DATE, _YEAR_NOTE),
        Format("time", "RFC 3339, 5.6 (full-time)", _TIME, _TIME_NOTE),
        Format("duration", "RFC 3339, appendix A", _DURATION),
        Format("email", "RFC 5321, 4.1.2", _EMAIL, _EMAIL_NOTE),
        Format("idn-email", "RFC 6531, 3.3", _IDN_EMAIL, f"{_EMAIL_NOTE}; {_IDN_NOTE}"),
        Format("hostname", "RFC 1123, 2.1", _HOSTNAME, _HOSTNAME_NOTE),
        Format(
            "idn-hostname", "RFC 5890, 2.3.2.3", f"(?:{_HOSTNAME}|{_IDN_HOSTNAME})", f"{_HOSTNAME_NOTE}; {_IDN_NOTE}"
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
            _TEMPLATE,
            "none of the operators that are reserved for extensions",
        ),
        Format("json-pointer", "RFC 6901, 3", _POINTER),
        Format(
            "relative-json-pointer",
            "draft-bhutton-relative-json-pointer-00, 3",
            rf"(?:0|[1-9]\d*)(?:#|{_POINTER})",
            "no index manipulation (+N, -N), which earlier drafts lack",
        ),
        Format("uuid", "RFC 9562, 4", _uuid(_ANY_HEX, _ANY_HEX)),
        *(Format(f"uuid{version}", "RFC 9562, 5", _uuid(str(version), "[89ABab]")) for version in range(1, 9)),
        Format(
            "regex",
            "ECMA-262",
            _regex(3),
            "groups nest at most 3 deep; no lookarounds, names, backreferences, and only plain members in sets",
        ),
    )
}
