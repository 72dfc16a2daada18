"""Schemas of addresses in networks: URLs, connection strings, IP addresses, networks and interfaces."""

from __future__ import annotations

from ..strings.formats import FORMATS
from .scalars import any_of
from .walk import CoreNode, Schema, Walk

_IPV4, _IPV6 = FORMATS["ipv4"].pattern, FORMATS["ipv6"].pattern
_LABEL = "[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*"
_LAST_LABEL = "[A-Za-z][A-Za-z0-9]*(?:-[A-Za-z0-9]+)*"  # not to be read as a number
_HOST = rf"(?:(?:{_LABEL}\.)*{_LAST_LABEL}|{_IPV4}|\[(?:{_IPV6})\])"
_PORT = r":(?:[1-9]\d{0,3}|[1-5]\d{4}|6[0-4]\d{3}|65[0-4]\d\d|655[0-2]\d|6553[0-5])"
_PERCENT = "%[0-9A-Fa-f]{2}"
_UNRESERVED = r"A-Za-z0-9\-._~!$&'()*+,;="
_USER = rf"(?:(?:[{_UNRESERVED}]|{_PERCENT})*(?::(?:[{_UNRESERVED}]|{_PERCENT})*)?@)?"
_CHARACTER = rf"(?:[{_UNRESERVED}:@]|{_PERCENT})"
_PATH = rf"(?:/{_CHARACTER}*)*"
_TAIL = rf"(?:\?(?:{_CHARACTER}|[/?])*)?(?:#(?:{_CHARACTER}|[/?])*)?"
_SPECIAL = "(?:[Hh][Tt][Tt][Pp][Ss]?|[Ww][Ss][Ss]?|[Ff][Tt][Pp]|[Ff][Ii][Ll][Ee])"  # schemes with rules of their own
_OTHER_SCHEME = rf"(?!{_SPECIAL}:)[A-Za-z][A-Za-z0-9+\-.]*"


def url(walk: Walk, node: CoreNode) -> Schema:
    schemes = node.get("allowed_schemes")
    options = [] if schemes == ["file"] else [f"(?:{_schemes(schemes)})://{_USER}{_HOST}(?:{_PORT})?{_PATH}{_TAIL}"]
    if schemes is None and not node.get("host_required"):
        options.append(rf"{_OTHER_SCHEME}:(?:/{_CHARACTER}+)?{_CHARACTER}+{_PATH}{_TAIL}")
    if schemes is None or "file" in schemes:
        options.append(f"file://{_HOST if node.get('host_required') else f'(?:{_HOST})?'}{_PATH}{_TAIL}")
    return {"format": "uri"} | _address(node, options)


def multi_host_url(walk: Walk, node: CoreNode) -> Schema:
    host, user = f"{_HOST}(?:{_PORT})?", _USER.replace(",", "")  # between hosts
    return _address(node, [f"(?:{_schemes(node.get('allowed_schemes'))})://{user}{host}(?:,{host})*{_PATH}{_TAIL}"])


def _schemes(allowed: list[str] | None) -> str:
    if allowed is None:
        return f"https?|wss?|ftp|{_OTHER_SCHEME}"
    return "|".join(scheme.replace("+", r"\+").replace(".", r"\.") for scheme in allowed if scheme != "file")


def _address(node: CoreNode, options: list[str]) -> Schema:
    longest = node.get("max_length")
    return _texts(options) | ({} if longest is None else {"maxLength": longest})


def ip_address(version: int | None) -> Schema:
    """Addresses of one version, or of both."""
    return any_of([{"type": "string", "format": f"ipv{each}"} for each in _versions(version)])


def ip_interface(version: int | None) -> Schema:
    """Addresses, each with the length of its network or without one."""
    prefixes = {4: rf"(?:{_IPV4})(?:/(?:[12]?\d|3[0-2]))?", 6: rf"(?:{_IPV6})(?:/(?:[1-9]?\d|1[01]\d|12[0-8]))?"}
    return _texts([prefixes[each] for each in _versions(version)])


def ip_network(version: int | None) -> Schema:
    """Networks: addresses in which all bits behind the prefix are zero; in version 6 prefixes of whole hexadecimal digits."""
    networks = {4: _IPV4_NETWORKS, 6: _IPV6_NETWORKS}
    return _texts([networks[each] for each in _versions(version)])


def _versions(version: int | None) -> tuple[int, ...]:
    return (4, 6) if version is None else (version,)


def _texts(options: list[str]) -> Schema:
    return {"type": "string", "pattern": f"^(?:{'|'.join(options)})$"}


def _ipv4_networks() -> str:
    octet = r"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
    options = [rf"{_IPV4}(?:/32)?"]
    for prefix in range(32):
        whole, rest = divmod(prefix, 8)
        last = "|".join(map(str, range(0, 256, 2 ** (8 - rest))))
        octets = [octet] * whole + [f"(?:{last})" if rest else "0"] + ["0"] * (3 - whole)
        options.append(rf"{chr(92)}.".join(octets) + f"/{prefix}")
    return f"(?:{'|'.join(options)})"


def _ipv6_networks() -> str:
    group = "[0-9A-Fa-f]{1,4}"
    options = [rf"(?:{_IPV6})(?:/128)?", "::/0"]
    for prefix in range(4, 128, 4):
        whole, rest = divmod(prefix, 16)
        groups = [group] * whole + ([f"[0-9A-Fa-f]{{1,{rest // 4}}}{'0' * (4 - rest // 4)}"] if rest else [])
        options.append(":".join(groups) + (f"::/{prefix}" if len(groups) < 8 else f"/{prefix}"))
    return f"(?:{'|'.join(options)})"


_IPV4_NETWORKS, _IPV6_NETWORKS = _ipv4_networks(), _ipv6_networks()
