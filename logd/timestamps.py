"""RFC 3339 timestamps <-> int64 nanoseconds since the Unix epoch, one at a time and vectorised.

Accepted: `YYYY-MM-DD`, then optionally `T`, `t` or a space with `HH:MM:SS`, then optionally a
fraction of 1-9 digits, then optionally `Z`, `z`, `±HH:MM` or `±HHMM`. Without a zone it is UTC,
without a time it is midnight. Digits are ASCII digits only.

A leap second (`:60`, with any fraction) becomes the last nanosecond before it, `:59.999999999`:
the Unix time scale has no place for it, and so it stays behind the second that it follows.
"""

import contextlib
import datetime
import functools
import re
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]

MIN_TS_NS: Final = -9_214_560_000_000_000_000
"""1678-01-01T00:00:00Z, the first instant of the first whole year that int64 holds."""

MAX_TS_NS: Final = 2**63 - 1
"""2262-04-11T23:47:16.854775807Z."""

_S: Final = 1_000_000_000
_DAY_S: Final = 86_400
_EPOCH_DAY: Final = datetime.date(1970, 1, 1).toordinal()
_LAST_DIGIT_NS: Final = tuple(int("1".ljust(9 - index, "0")) for index in range(9))
"""By the number of fraction digits less 1: what a 1 in the last of them is worth."""

_FORM: Final = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:[Tt ](\d\d:\d\d:\d\d)(?:\.(\d+))?(?:[Zz]|([+-]\d\d:?\d\d))?)?",
    re.ASCII,
)

_SECOND_CHARS: Final = len("YYYY-MM-DDTHH:MM:SS")
_MILLISECONDS_NS: Final = {f".{number:03}Z": number * 1_000_000 for number in range(1000)}
"""How most timestamps end."""


class BadTimestamp(ValueError):
    """One of many timestamps cannot be read. `index`: the first such one; `reason`: why."""

    def __init__(self, index: int, reason: str) -> None:
        super().__init__(reason)
        self.index = index
        self.reason = reason


class TooManyForms(ValueError):
    """Of many timestamps too many would have to be read one by one."""


# ---------------------------------------------------------------- one
# Entries that arrive or are listed together share their date and most of their seconds: hence the
# caches.


def parse_timestamp(text: str) -> int:
    """Nanoseconds since the epoch. Raises ValueError with the reason."""
    milliseconds_ns = _MILLISECONDS_NS.get(text[_SECOND_CHARS:])
    if milliseconds_ns is not None:
        second_ns = _plain_second_ns(text[:_SECOND_CHARS])
        if second_ns is not None:
            return second_ns + milliseconds_ns
    return _parse_form(text)


@functools.lru_cache(maxsize=4096)
def _plain_second_ns(second: str) -> int | None:
    """Of `YYYY-MM-DDTHH:MM:SS`; None for a leap second, and where a fraction could be out of
    bounds. Raises ValueError."""
    if second.endswith(":60"):
        return None
    start_ns = _parse_form(f"{second}Z")
    return start_ns if start_ns <= MAX_TS_NS - _S else None


def _parse_form(text: str) -> int:
    match = _FORM.fullmatch(text)
    if match is None:
        raise ValueError("not an RFC 3339 timestamp such as 2026-01-31T23:59:59.999Z")
    date, clock, fraction, offset = match.groups()
    seconds = _midnight_s(date)
    if clock is not None:
        seconds += _clock_s(clock)
    if offset is not None:
        seconds -= _offset_s(offset)
    ts_ns = seconds * _S
    if fraction is not None:
        ts_ns += _fraction_ns(fraction)
    if clock is not None and clock.endswith(":60"):
        ts_ns = seconds * _S - 1
    if not MIN_TS_NS <= ts_ns <= MAX_TS_NS:
        raise ValueError("outside 1678-01-01T00:00:00Z to 2262-04-11T23:47:16.854775807Z")
    return ts_ns


@functools.lru_cache(maxsize=1024)
def _midnight_s(date: str) -> int:
    try:
        day = datetime.date.fromisoformat(date).toordinal()
    except ValueError:
        raise ValueError(f"{date} is not a day of the calendar") from None
    return (day - _EPOCH_DAY) * _DAY_S


@functools.lru_cache(maxsize=4096)
def _clock_s(clock: str) -> int:
    """Seconds since midnight of `HH:MM:SS`."""
    hour, minute, second = int(clock[:2]), int(clock[3:5]), int(clock[6:])
    if hour > 23:
        raise ValueError(f"hour {hour} is over 23")
    if minute > 59:
        raise ValueError(f"minute {minute} is over 59")
    if second > 60:
        raise ValueError(f"second {second} is over 60")
    return hour * 3600 + minute * 60 + second


@functools.lru_cache(maxsize=256)
def _offset_s(offset: str) -> int:
    """Seconds east of UTC of `±HH:MM` or `±HHMM`."""
    hour, minute = int(offset[1:3]), int(offset[-2:])
    if hour > 23:
        raise ValueError(f"offset hour {hour} is over 23")
    if minute > 59:
        raise ValueError(f"offset minute {minute} is over 59")
    seconds = hour * 3600 + minute * 60
    return -seconds if offset[0] == "-" else seconds


def _fraction_ns(digits: str) -> int:
    if len(digits) > 9:
        raise ValueError(f"{len(digits)} fraction digits, at most 9")
    return int(digits) * _LAST_DIGIT_NS[len(digits) - 1]


def format_timestamp(ts_ns: int) -> str:
    """UTC with `Z` and 3, 6 or 9 fraction digits, as few as hold the value."""
    seconds, fraction_ns = divmod(ts_ns, _S)
    if not fraction_ns % 1_000_000:  # as most have it
        return f"{_to_second(seconds)}.{fraction_ns // 1_000_000:03}Z"
    if not fraction_ns % 1000:
        return f"{_to_second(seconds)}.{fraction_ns // 1000:06}Z"
    return f"{_to_second(seconds)}.{fraction_ns:09}Z"


@functools.lru_cache(maxsize=4096)
def _to_second(seconds: int) -> str:
    """`YYYY-MM-DDTHH:MM:SS` of seconds since the epoch."""
    days, seconds = divmod(seconds, _DAY_S)
    minutes, second = divmod(seconds, 60)
    date = datetime.date.fromordinal(_EPOCH_DAY + days).isoformat()
    return f"{date}T{minutes // 60:02}:{minutes % 60:02}:{second:02}"


# ---------------------------------------------------------------- many at once

_FEWEST_VECTORISED: Final = 96
"""Below it the fixed cost of the numpy calls exceeds what they save."""


def parse_timestamps(texts: list[str], most_singly: int | None = None) -> Int64s:
    """int64[n], nanoseconds since the epoch, in the order of `texts`.

    Texts of one length that are laid out as the first of that length (same separators, same
    zone) are read by numpy, all others one by one. Raises BadTimestamp for the first bad one, and
    TooManyForms, and soon, where there are more than `most_singly` others.
    """
    if len(texts) >= _FEWEST_VECTORISED:
        values, good = _parse_columns(texts)
        if good.all():
            return values
    else:
        with contextlib.suppress(ValueError):  # which one it is, is found below
            return np.array([*map(parse_timestamp, texts)], np.int64)
    out = np.zeros(len(texts), np.int64)
    singly = _parse_groups(texts, out)
    if most_singly is not None and len(singly) > most_singly:
        raise TooManyForms(f"{len(singly)} timestamps differ in form from the others")
    for index in singly:
        try:
            out[index] = parse_timestamp(texts[index])
        except ValueError as error:
            raise BadTimestamp(index, str(error)) from None
    return out


def _parse_groups(texts: list[str], out: Int64s) -> list[int]:
    """Fill what numpy can read into `out`; the indexes of the rest, ascending."""
    groups: dict[int, list[int]] = {}
    for index, text in enumerate(texts):
        groups.setdefault(len(text), []).append(index)
    rest: list[int] = []
    for group in groups.values():
        if len(group) < _FEWEST_VECTORISED:
            rest += group
            continue
        values, good = _parse_columns([texts[index] for index in group])
        indexes = np.array(group)
        out[indexes[good]] = values[good]
        rest += indexes[~good].tolist()
    return sorted(rest)


def _parse_columns(texts: list[str]) -> tuple[Int64s, Bools]:
    """(int64[n] values, bool[n] whether each holds) of at least one text.

    If all are good, all have one length: every row ends in a newline and has no other, and there
    are just as many newlines as texts. If some are not, the others hold only where the lengths
    are known to be equal.
    """
    layout = _layout_of(texts[0])
    # "replace" keeps the width, one byte a character, and "?" is good nowhere
    blob = ("\n".join(texts) + "\n").encode("ascii", "replace")
    if layout is None or len(blob) != len(texts) * len(layout.base):
        return np.zeros(len(texts), np.int64), np.zeros(len(texts), np.bool_)
    rows = np.frombuffer(blob, np.uint8).reshape(len(texts), -1)
    values = _of_one_minute(texts[0][:_MINUTE_END], rows, layout)
    if values is not None:
        return values, np.ones(len(texts), np.bool_)
    cells = np.subtract(rows.T, layout.base, order="C")
    good = (cells <= layout.span).all(axis=0)
    seconds, in_bounds = _seconds_of(cells)
    good &= in_bounds
    seconds -= layout.offset_s
    seconds *= _S
    if layout.fraction_digits:
        seconds += _fractions_ns(cells[_FRACTION_START:][: layout.fraction_digits])
    return seconds, good


_MINUTE_END: Final = len("YYYY-MM-DDTHH:MM")
_FRACTION_START: Final = len("YYYY-MM-DDTHH:MM:SS.")


def _of_one_minute(minute: str, rows: Bytes, layout: "_Layout") -> Int64s | None:
    """The values, where all rows begin with this minute, as those of a batch mostly do, and are
    good. Of uint8[n, width]."""
    words = (len(rows), _MINUTE_END // 8)
    heads = np.ndarray(words, np.uint64, rows.data, 0, (rows.shape[1], 8))
    if (heads != heads[0]).any():
        return None
    cells = np.subtract(rows[:, _MINUTE_END:].T, layout.base[_MINUTE_END:], order="C")
    tens, ones = cells[1:3]
    if (cells > layout.span[_MINUTE_END:]).any() or int(tens.max()) > 5:
        return None
    try:
        minute_ns = parse_timestamp(f"{minute}:00Z") - layout.offset_s * _S
    except ValueError:
        return None
    if not MIN_TS_NS <= minute_ns <= MAX_TS_NS - 60 * _S:
        return None
    fraction = cells[_FRACTION_START - _MINUTE_END :][: layout.fraction_digits]
    # Exact: whole numbers far below 2^53.
    times = _NS_OF_DIGITS[: 2 + len(fraction)] @ np.vstack((tens, ones, fraction))
    values: Int64s = times.astype(np.int64)
    values += minute_ns
    return values


_NS_OF_DIGITS: Final = 10.0 ** np.arange(10, -1, -1)
"""What a 1 is worth in SS.fffffffff."""


class _Layout(msgspec.Struct, frozen=True):
    """How a row of one length is laid out, its newline included.

    `base`, `span`: uint8[width, 1]. A byte is good if byte - base <= span, in uint8, where a byte
    below the base wraps around to a large one: a digit is 9 above "0" at most, any other byte is
    the same in all rows.
    """

    base: Bytes
    span: Bytes
    fraction_digits: int
    offset_s: int


def _layout_of(text: str) -> _Layout | None:
    """None where it is not for numpy: no clock time, or not a timestamp at all."""
    match = _FORM.fullmatch(text)
    if match is None or match[2] is None or len(match[3] or "") > 9:
        return None
    try:
        offset_s = 0 if match[4] is None else _offset_s(match[4])
    except ValueError:
        return None
    zone_start = match.end(2) if match[3] is None else match.end(3)
    row = np.frombuffer(f"{text}\n".encode(), np.uint8)[:, None]
    is_digit = (row >= ord("0")) & (row <= ord("9"))
    is_digit[zone_start:] = False
    base = np.where(is_digit, np.uint8(ord("0")), row)
    span = np.where(is_digit, np.uint8(9), np.uint8(0))
    return _Layout(base, span, len(match[3] or ""), offset_s)


# The two-digit numbers of YYYY-MM-DDTHH:MM:SS: where they start, and their bounds. The years are
# whole centuries well within int64, so that nothing here overflows; parse_timestamp does the rest.
_FIRST_CENTURY: Final = 17
_LAST_CENTURY: Final = 21
_PAIRS: Final = np.array([0, 2, 5, 8, 11, 14, 17])
_LEAST: Final = np.array([[_FIRST_CENTURY, 0, 1, 1, 0, 0, 0]], np.uint8).T
_MOST: Final = np.array([[_LAST_CENTURY, 99, 12, 31, 23, 59, 59]], np.uint8).T

# By the number of months since January of the first century: the day before the month begins, as
# days since the epoch, and the days that the month has.
_MONTH_STARTS: Final = np.arange(
    f"{_FIRST_CENTURY}00-01", f"{_LAST_CENTURY + 1}00-02", dtype="datetime64[M]"
).astype("datetime64[D]")
_DAYS_BEFORE: Final = _MONTH_STARTS.astype(np.int64) - 1
_MONTH_DAYS: Final = np.diff(_MONTH_STARTS).astype(np.uint8)


def _seconds_of(cells: Bytes) -> tuple[Int64s, Bools]:
    """(int64[n] seconds since the epoch, bool[n] whether all numbers are within their bounds) of
    uint8[width, n], digits as numbers."""
    pairs = cells[_PAIRS] * np.uint8(10) + cells[_PAIRS + 1]
    good = ((pairs - _LEAST) <= (_MOST - _LEAST)).all(axis=0)
    century, year, month, day, hour, minute, second = pairs
    months = century.astype(np.int64)
    months *= 100
    months += year
    months *= 12
    months += month
    months -= _FIRST_CENTURY * 1200 + 1
    good &= day <= _MONTH_DAYS.take(months, mode="clip")  # clip: out of bounds is not good anyway
    seconds = _DAYS_BEFORE.take(months, mode="clip")
    seconds += day
    for number, factor in ((hour, 24), (minute, 60), (second, 60)):
        seconds *= factor
        seconds += number
    return seconds, good


def _fractions_ns(digits: Bytes) -> Int64s:
    """int64[n] nanoseconds of uint8[1-9, n], the fraction's digits as numbers."""
    fractions: Int64s = digits[0].astype(np.int64)
    for digit in digits[1:]:
        fractions *= 10
        fractions += digit
    fractions *= _LAST_DIGIT_NS[len(digits) - 1]
    return fractions
