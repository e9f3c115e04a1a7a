"""The rules of the fields that people fill in. Each function returns what is to be stored."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Final

from logd.control.errors import InvalidField
from logd.control.model import Scope

MAX_NAME_CHARS: Final = 200
MAX_SLUG_CHARS: Final = 63  # a DNS label
MAX_EMAIL_CHARS: Final = 254  # RFC 5321: what fits in a forward path
MAX_INSTANT_NS: Final = 2**63 - 1
MAX_OVERLAP_SECONDS: Final = 30 * 86_400

_SLUG: Final = re.compile(r"[a-z0-9-]+")
_COLOR: Final = re.compile(r"#[0-9A-Fa-f]{6}")
_EMAIL: Final = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*")
_CONTROL: Final = frozenset({"Cc", "Zl", "Zp"})  # control characters, line and paragraph separators

PALETTE: Final = (
    "#4E79A7", "#F28E2B", "#59A14F", "#E15759", "#76B7B2", "#B07AA1",
    "#EDC948", "#9C755F", "#FF9DA7", "#1F77B4", "#2CA02C", "#D62728",
    "#9467BD", "#17BECF", "#BCBD22", "#7F7F7F",
)  # fmt: skip
"""Colours told apart on a light and on a dark ground."""


def name(text: str) -> str:
    text = text.strip()
    if not text:
        raise InvalidField("name", "too_short", "at least 1 character that is not a space")
    if len(text) > MAX_NAME_CHARS:
        raise InvalidField("name", "too_long", f"at most {MAX_NAME_CHARS} characters")
    categories = {unicodedata.category(character) for character in text}
    if categories & _CONTROL:
        raise InvalidField("name", "control_character", "control characters are not allowed")
    if "Cs" in categories:
        raise InvalidField("name", "bad_format", "not valid Unicode text")
    return text


def slug(text: str) -> str:
    if not text:
        raise InvalidField("slug", "too_short", "at least 1 character")
    if len(text) > MAX_SLUG_CHARS:
        raise InvalidField("slug", "too_long", f"at most {MAX_SLUG_CHARS} characters")
    if _SLUG.fullmatch(text) is None:
        raise InvalidField("slug", "bad_format", "only lower-case a-z, 0-9 and hyphens")
    return text


def email(text: str) -> str:
    text = text.strip()
    if len(text) > MAX_EMAIL_CHARS:
        raise InvalidField("email", "too_long", f"at most {MAX_EMAIL_CHARS} characters")
    if _EMAIL.fullmatch(text) is None:
        raise InvalidField("email", "bad_format", "not an email address (ASCII, one @)")
    return text


def email_key(text: str) -> str:
    """The form in which addresses are compared."""
    return text.strip().lower()


def color(text: str) -> str:
    if _COLOR.fullmatch(text) is None:
        raise InvalidField("color", "bad_format", "#RRGGBB, six hexadecimal digits")
    return text


def next_color(used: Iterable[str]) -> str:
    """The colour of the palette that is used least, the earlier one where several are."""
    counts = dict.fromkeys(PALETTE, 0)
    for taken in used:
        if taken.upper() in counts:
            counts[taken.upper()] += 1
    return min(PALETTE, key=counts.__getitem__)


def scopes(values: Sequence[Scope]) -> tuple[Scope, ...]:
    """Without repetition, in the order of `Scope`."""
    if not values:
        raise InvalidField("scopes", "empty", "at least one of ingest, read")
    return tuple(scope for scope in Scope if scope in values)


def expiry(expires_at_ns: int | None, now_ns: int) -> int | None:
    if expires_at_ns is None:
        return None
    if expires_at_ns <= now_ns:
        raise InvalidField("expires_at", "in_past", "must be in the future")
    if expires_at_ns > MAX_INSTANT_NS:
        raise InvalidField("expires_at", "out_of_range", "later than the year 2262")
    return expires_at_ns


def overlap_seconds(seconds: int) -> int:
    if not 0 <= seconds <= MAX_OVERLAP_SECONDS:
        raise InvalidField("overlap_seconds", "out_of_range", f"0 to {MAX_OVERLAP_SECONDS}")
    return seconds
