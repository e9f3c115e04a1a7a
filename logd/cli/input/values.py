"""Levels and times as other programs write them."""

import decimal
from collections.abc import Mapping
from typing import Final

from logd.entry import LevelName
from logd.timestamps import MAX_TS_NS, format_timestamp, parse_timestamp

_WORDS: Final[Mapping[LevelName, str]] = {
    "DEBUG": "debug trace verbose fine finer finest",
    "INFO": "info information informational notice",
    "WARN": "warn warning",
    "ERROR": "error err severe failure critical crit fatal alert emerg emergency panic",
}
_LEVEL_OF_WORD: Final[Mapping[str, LevelName]] = {
    word: level for level, words in _WORDS.items() for word in words.split()
}

_FIRST_EPOCH: Final = decimal.Decimal(10) ** 8
"""1973 in seconds: smaller numbers are up-times, or dates such as 20261231."""

_UNITS: Final = ((10**11, 10**9), (10**14, 10**6), (10**17, 10**3))
"""(below this number, ns of one) of seconds, milliseconds and microseconds; the rest are ns."""


def level_of(text: str) -> LevelName | None:
    """Of a word, or of a number: 0-7 as syslog has it, from 10 on as bunyan and pino have it."""
    word = text.strip().lower()
    if word.isascii() and word.isdigit() and len(word) < 4:
        return syslog_level(int(word)) if int(word) < 8 else _pino_level(int(word))
    return _LEVEL_OF_WORD.get(word)


def syslog_level(severity: int) -> LevelName:
    if severity < 4:
        return "ERROR"
    return "WARN" if severity == 4 else "INFO" if severity < 7 else "DEBUG"


def _pino_level(number: int) -> LevelName | None:
    if number < 10:
        return None
    return "DEBUG" if number < 30 else "INFO" if number < 40 else "WARN" if number < 50 else "ERROR"


def time_of(text: str) -> str | None:
    """The time in RFC 3339, or None where it is no time. A number is an epoch in seconds, ms, us
    or ns, by its size; a comma before the fraction is as good as a point."""
    text = text.strip()
    pointed = text.replace(",", ".")
    try:
        parse_timestamp(pointed)
    except ValueError:
        return _epoch_time(text)
    return pointed


def _epoch_time(text: str) -> str | None:
    try:
        number = decimal.Decimal(text)
    except decimal.InvalidOperation:
        return None
    # No ns is later than MAX_TS_NS, and 1e999999 as a whole number would take minutes.
    if not number.is_finite() or not _FIRST_EPOCH <= number <= MAX_TS_NS:
        return None
    unit_ns = next((unit for below, unit in _UNITS if number < below), 1)
    ts_ns = int(number * unit_ns)
    return format_timestamp(ts_ns) if ts_ns <= MAX_TS_NS else None
