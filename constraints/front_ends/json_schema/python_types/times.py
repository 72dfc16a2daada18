"""Schemas of dates, times and durations, with their bounds as patterns.

A bound is compared as Pydantic compares it: by the clock on the wall where the value or the bound has no offset, else in UTC. Of
values with an offset that are compared in UTC, those are left out that are near a bound and not written in UTC (Z).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from typing import Any

from ..strings.formats import FORMATS
from .walk import CoreNode, Schema, Walk, noted

_DATE = FORMATS["date"].pattern
_TIME = r"(?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d{1,6})?)?"
_OFFSET = r"[+-](?:[01]\d|2[0-3]):[0-5]\d"
_UTC = "[Zz]"
_SECONDS = r"\d{1,7}(?:\.\d{1,6})?S"  # hours, minutes and seconds together stay below 2^32 seconds
_MINUTES = rf"\d{{1,7}}M(?:{_SECONDS})?"
_HOURS = rf"\d{{1,6}}H(?:(?:{_MINUTES}|{_SECONDS}))?"
_CLOCK = rf"T(?:{_HOURS}|{_MINUTES}|{_SECONDS})"
_DURATION = rf"-?P(?:(?:\d{{1,6}}Y(?:\d{{1,8}}D)?|\d{{1,8}}D)(?:{_CLOCK})?|{_CLOCK})"  # what timedelta can hold
_MICROSECONDS = 10**6
_SOME_DAY = date(2000, 1, 2)
Fields = tuple[int, ...]  # year, month, day, hour, ...: what is compared, from the largest unit to the smallest
Box = tuple[tuple[int, int], ...]  # the least and the greatest number of each field


@dataclass(frozen=True)
class Bounds:
    """The values from `low` to `high`, both included, as numbers of their smallest unit; None: no bound."""

    low: Any = None
    high: Any = None


def bounds_of(node: CoreNode, smallest: timedelta) -> Bounds:
    """The bounds of a node. smallest: the least difference of two values."""
    given = {name: node[name] for name in ("ge", "gt", "le", "lt") if node.get(name) is not None}
    try:
        moved = {name: _moved(bound, {"gt": smallest, "lt": -smallest}.get(name)) for name, bound in given.items()}
    except OverflowError:  # beyond the last value, or before the first one
        kind: Any = type(given.get("gt", given.get("lt")))
        return Bounds(kind.max, kind.min)
    lows, highs = ([moved[name] for name in names if name in moved] for names in (("ge", "gt"), ("le", "lt")))
    return Bounds(max(lows, default=None), min(highs, default=None))


def _moved(value: Any, difference: timedelta | None) -> Any:
    if difference is None or not isinstance(value, time):
        return value if difference is None else value + difference
    moved = datetime.combine(_SOME_DAY, value) + difference
    if moved.date() != _SOME_DAY:
        raise OverflowError
    return moved.timetz()


# -- dates ----------------------------------------------------------------------------------------------------------------


def date_kind(walk: Walk, node: CoreNode) -> Schema:
    bounds = bounds_of(node, timedelta(days=1))
    out: Schema = {"type": "string", "format": "date"}
    if bounds != Bounds():
        out["pattern"] = f"^{_date_within(bounds)}$"
    return _with_now(out, node)


def _date_within(bounds: Bounds) -> str:
    low = _DAY_MIN if bounds.low is None else _day(bounds.low)
    high = _DAY_MAX if bounds.high is None else _day(bounds.high)
    return f"(?:{'|'.join(map(_day_text, boxes(low, high, _DAYS))) or '[]'})"


def _day_text(box: Box) -> str:
    return "-".join(_numbers(*each, width) for each, width in zip(box, (4, 2, 2), strict=True))


_DAYS: Box = ((1, 9999), (1, 12), (1, 31))
_CLOCKS: Box = ((0, 23), (0, 59), (0, 59), (0, _MICROSECONDS - 1))
_DAY_MIN, _DAY_MAX, _CLOCK_MIN, _CLOCK_MAX = (1, 1, 1), (9999, 12, 31), (0, 0, 0, 0), (23, 59, 59, _MICROSECONDS - 1)


def _day(value: date) -> Fields:
    return value.year, value.month, value.day


def _clock(value: time | datetime) -> Fields:
    return value.hour, value.minute, value.second, value.microsecond


def _with_now(schema: Schema, node: CoreNode) -> Schema:
    now = node.get("now_op")
    return schema if now is None else noted(schema, f"whether the value is in the {now}")


# -- times ----------------------------------------------------------------------------------------------------------------


def time_kind(walk: Walk, node: CoreNode) -> Schema:
    bounds = bounds_of(node, timedelta(microseconds=1))
    if (zone := _zone_of(node)) is not None:
        return _pattern(_in_zone(bounds, _time_within, zone), zone)
    if bounds == Bounds():
        return _texts([_TIME], [_TIME], node)
    wall = [_time_within(bounds)]
    return _texts(wall, [] if _has_offset(bounds) else wall, node, _in_utc(bounds, _time_within))


def datetime_kind(walk: Walk, node: CoreNode) -> Schema:
    bounds = bounds_of(node, timedelta(microseconds=1))
    if (zone := _zone_of(node)) is not None:
        return _with_now(_pattern(map(_with_valid_date, _in_zone(bounds, _datetime_within, zone)), zone), node)
    if bounds == Bounds():
        return _with_now(_texts([f"(?:{_DATE})T{_TIME}"], [f"(?:{_DATE})[Tt]{_TIME}"], node), node)
    wall = _with_valid_date(_datetime_within(bounds))
    if not _has_offset(bounds):
        return _with_now(_texts([wall], [wall], node), node)
    in_utc = [_with_valid_date(each) for each in _in_utc(bounds, _datetime_within) or ()]
    return _with_now(_texts([wall], _far_within(bounds), node, in_utc), node)


def _texts(naive: list[str], with_offset: list[str], node: CoreNode, in_utc: Sequence[str] | None = None) -> Schema:
    """The schema of texts without an offset, with any, or in UTC, as `tz_constraint` asks.

    in_utc: None where all offsets count alike.
    """
    wanted = node.get("tz_constraint")
    options = [] if wanted not in (None, "naive") else naive
    if wanted != "naive":
        options = [*options, *(each + (f"(?:{_UTC}|{_OFFSET})" if in_utc is None else _OFFSET) for each in with_offset)]
        options += [each + _UTC for each in in_utc or ()]
    return {"type": "string", "pattern": f"^(?:{'|'.join(options)})$"}


def _zone_of(node: CoreNode) -> timezone | None:
    """The one zone of all values, where `tz_constraint` is its offset in seconds."""
    offset = node.get("tz_constraint")
    return timezone(timedelta(seconds=offset)) if isinstance(offset, int) else None


def _pattern(texts: Iterable[str], zone: timezone) -> Schema:
    """The schema of texts in one zone."""
    minutes, seconds = divmod(int(zone.utcoffset(None).total_seconds()), 60)
    hours, rest = divmod(abs(minutes), 60)
    offset = f"[+-]00:00|{_UTC}" if minutes == 0 else rf"[{'-' if minutes < 0 else '+'}]{hours:02}:{rest:02}"
    options = "|".join(texts) if seconds == 0 else ""  # no text has an offset with seconds
    return {"type": "string", "pattern": f"^(?:{options or '[]'})(?:{offset})$"}


def _has_offset(bounds: Bounds) -> bool:
    return any(bound is not None and bound.tzinfo is not None for bound in (bounds.low, bounds.high))


def _in_utc(bounds: Bounds, within: Callable[[Bounds], str]) -> list[str] | None:
    """The texts in UTC, before their Z; None where values are compared by the clock on the wall."""
    return _in_zone(bounds, within, UTC) if _has_offset(bounds) else None


def _in_zone(bounds: Bounds, within: Callable[[Bounds], str], zone: tzinfo) -> list[str]:
    """The texts of a zone, before their offset."""
    try:
        return [within(Bounds(_moved_to(zone, bounds.low), _moved_to(zone, bounds.high)))]
    except OverflowError:
        return []


def _moved_to(zone: tzinfo, bound: Any) -> Any:
    """A bound in a zone. Raises OverflowError for a time that is then of another day."""
    if bound is None or bound.tzinfo is None:
        return bound
    if isinstance(bound, datetime):
        return bound.astimezone(zone)
    moved = datetime.combine(_SOME_DAY, bound).astimezone(zone)
    if moved.date() != _SOME_DAY:
        raise OverflowError
    return moved.timetz()


def _far_within(bounds: Bounds) -> list[str]:
    """The days that are in the bounds at any offset; none where a bound is next to the first or the last day."""
    try:
        low = None if bounds.low is None else bounds.low.date() + timedelta(days=2)
        high = None if bounds.high is None else bounds.high.date() - timedelta(days=2)
    except OverflowError:
        return []
    return [_with_valid_date(f"{_date_within(Bounds(low, high))}T{_TIME}")]


def _with_valid_date(texts: str) -> str:
    return f"(?={_DATE}T)(?:{texts})"


def _time_within(bounds: Bounds) -> str:
    low = _CLOCK_MIN if bounds.low is None else _clock(bounds.low)
    high = _CLOCK_MAX if bounds.high is None else _clock(bounds.high)
    return f"(?:{'|'.join(map(_clock_text, boxes(low, high, _CLOCKS))) or '[]'})"


def _datetime_within(bounds: Bounds) -> str:
    low = _DAY_MIN + _CLOCK_MIN if bounds.low is None else _day(bounds.low) + _clock(bounds.low)
    high = _DAY_MAX + _CLOCK_MAX if bounds.high is None else _day(bounds.high) + _clock(bounds.high)
    return "|".join(f"{_day_text(box[:3])}T{_clock_text(box[3:])}" for box in boxes(low, high, _DAYS + _CLOCKS)) or "[]"


def _clock_text(box: Box) -> str:
    hours, minutes, seconds, micro = box
    fraction = _fraction(*micro)
    behind = f":{_numbers(*seconds, 2)}{fraction}"
    if seconds[0] == 0 and micro[0] == 0:
        behind = f"(?:{behind})?"
    return f"{_numbers(*hours, 2)}:{_numbers(*minutes, 2)}{behind}"


def _fraction(low: int, high: int) -> str:
    """Fractions of a second, of up to six digits, between two numbers of microseconds; none is zero."""
    if (low, high) == (0, _MICROSECONDS - 1):
        return r"(?:\.\d{1,6})?"
    options = []
    for digits in range(1, 7):
        unit = 10 ** (6 - digits)
        least, most = -(-low // unit), high // unit
        options += [_numbers(least, most, digits)] if least <= most else []
    written = rf"\.(?:{'|'.join(options)})"
    return f"(?:{written})?" if low == 0 else written


# -- durations ------------------------------------------------------------------------------------------------------------


def timedelta_kind(walk: Walk, node: CoreNode) -> Schema:
    bounds = bounds_of(node, timedelta(microseconds=1))
    if bounds == Bounds():
        return {"type": "string", "pattern": f"^{_DURATION}$"}
    zero, most = timedelta(0), timedelta(days=_SPANS[0][1])
    low, high = max(-most, -most if bounds.low is None else bounds.low), min(most, most if bounds.high is None else bounds.high)
    options = []
    if high >= zero:
        options += [f"P{each}" for each in _durations(max(low, zero), high)]
    if low < zero:
        options += [f"-P{each}" for each in _durations(max(-high, timedelta(microseconds=1)), -low)]
    return {"type": "string", "pattern": f"^(?:{'|'.join(options) or '[]'})$"}


_CLOCK_SPANS: Box = ((0, 23), (0, 59), (0, 59), (0, _MICROSECONDS - 1))
_SPANS: Box = ((0, 999_999_998), *_CLOCK_SPANS)  # days, hours, ...
_YEAR = 365
_SPANS_WITH_YEARS: Box = ((1, 999_999_998 // _YEAR), (0, _YEAR - 1), *_CLOCK_SPANS)


def _durations(low: timedelta, high: timedelta) -> list[str]:
    """Durations with each unit below the next larger one, from `low` to `high`, with years of 365 days or without; units of which
    there are none are left out."""
    most = tuple(most for _, most in _SPANS)
    without = boxes(_span(low), min(_span(high), most), _SPANS)
    first, last = max(_span(low), (_YEAR, 0, 0, 0, 0)), min(_span(high), most)
    with_years = boxes(_in_years(first), _in_years(last), _SPANS_WITH_YEARS) if first <= last else []
    texts = [text for box in without for text in _duration_texts(box)]
    return texts + [f"{_numbers(*years)}Y{text}" for years, *box in with_years for text in _behind_years(tuple(box))]


def _span(value: timedelta) -> Fields:
    hours, rest = divmod(value.seconds, 3600)
    return value.days, hours, *divmod(rest, 60), value.microseconds


def _in_years(span: Fields) -> Fields:
    return *divmod(span[0], _YEAR), *span[1:]


def _behind_years(box: Box) -> list[str]:
    """What stands behind years: a duration as it is written alone, or nothing for none."""
    texts = _duration_texts(box)
    return [*texts[:-1], ""] if texts[-1] == _NOTHING else texts


_NOTHING = "(?:0D|T0S)"


def _duration_texts(box: Box) -> list[str]:
    """The durations of a box: with a part behind the T, and without one."""
    days, hours, minutes, seconds, micro = box
    clock = _unit(hours, "H") + _unit(minutes, "M") + _seconds(seconds, micro)
    if any(low for low, _ in box[1:]):
        return [f"{_unit(days, 'D')}T{clock}"]
    found = [rf"{_unit(days, 'D')}T(?=\d){clock}"] if clock else []
    if days[1] > 0:
        found.append(f"{_numbers(max(days[0], 1), days[1])}D")
    return found if days[0] > 0 else [*found, _NOTHING]


def _unit(numbers: tuple[int, int], unit: str) -> str:
    low, high = numbers
    if high == 0:
        return ""
    written = f"{_numbers(max(low, 1), high)}{unit}"
    return written if low > 0 else f"(?:{written})?"


def _seconds(seconds: tuple[int, int], micro: tuple[int, int]) -> str:
    fraction = _fraction(*micro)
    if micro[0] > 0 or seconds[0] > 0:
        return f"{_numbers(*seconds)}{fraction}S"
    if seconds[1] == 0 and micro[1] == 0:
        return ""
    return f"(?:{_numbers(*seconds)}{fraction}S)?"


# -- intervals of several fields --------------------------------------------------------------------------------------------


def boxes(low: Fields, high: Fields, limits: Box) -> list[Box]:
    """The fields between two, compared from the first one on, as boxes in which each field has an interval of its own."""
    if low > high:
        return []
    if not limits:
        return [()]
    first, last = low[0], high[0]
    if first == last:
        return [((first, first), *box) for box in boxes(low[1:], high[1:], limits[1:])]
    least, most = tuple(each for each, _ in limits[1:]), tuple(each for _, each in limits[1:])
    found: list[Box] = []
    if low[1:] > least:
        found += [((first, first), *box) for box in boxes(low[1:], most, limits[1:])]
        first += 1
    behind = [((last, last), *box) for box in boxes(least, high[1:], limits[1:])] if high[1:] < most else []
    last -= bool(behind)
    if first <= last:
        found.append(((first, last), *limits[1:]))
    return found + behind


def _numbers(low: int, high: int, width: int = 0) -> str:
    """A pattern of the whole numbers from `low` to `high`, with `width` digits; in as many as they have, if that is 0."""
    if not width:
        parts = []
        for digits in range(len(str(low)), len(str(high)) + 1):
            least, most = max(low, 10 ** (digits - 1) if digits > 1 else 0), min(high, 10**digits - 1)
            parts.append(_numbers(least, most, digits))
        return parts[0] if len(parts) == 1 else f"(?:{'|'.join(parts)})"
    options = _digit_ranges(f"{low:0{width}d}", f"{high:0{width}d}")
    return options[0] if len(options) == 1 else f"(?:{'|'.join(options)})"


def _digit_ranges(low: str, high: str) -> list[str]:
    """Patterns of the strings of digits between two of one length."""
    if not low:
        return [""]
    if set(low) == {"0"} and set(high) == {"9"}:
        return [r"\d" if len(low) == 1 else rf"\d{{{len(low)}}}"]
    if low[0] == high[0]:
        return [low[0] + rest for rest in _digit_ranges(low[1:], high[1:])]
    first, last, zeros, nines = int(low[0]), int(high[0]), "0" * (len(low) - 1), "9" * (len(low) - 1)
    found = []
    if low[1:] > zeros:
        found += [low[0] + rest for rest in _digit_ranges(low[1:], nines)]
        first += 1
    behind = [high[0] + rest for rest in _digit_ranges(zeros, high[1:])] if high[1:] < nines else []
    last -= bool(behind)
    if first <= last:
        lead = str(first) if first == last else f"[{first}-{last}]"
        found += [lead + rest for rest in _digit_ranges(zeros, nines)]
    return found + behind
