"""Text for people: made harmless, and coloured where it goes to a terminal."""

import unicodedata
from typing import Final, TextIO

_HARMFUL: Final = frozenset({"Cc", "Zl", "Zp", "Cs"})
"""Unicode categories: control characters, line and paragraph separators, lone surrogates."""

_BIDI: Final = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""They make a text read otherwise than it is."""

RESET: Final = "\x1b[0m"
DIM: Final = "\x1b[2m"
LEVEL_COLOURS: Final = {
    "DEBUG": "\x1b[2m",
    "INFO": "\x1b[32m",
    "WARN": "\x1b[33m",
    "ERROR": "\x1b[31m",
}


def escaped(text: str) -> str:
    """The text in which whatever could steer a terminal stands as `\\n`, `\\x1b`, `\\u202e`."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_escape(character) for character in text)


def escaped_json(text: str) -> str:
    """The same JSON value, in which whatever could steer a terminal is a JSON escape."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        f"\\u{ord(character):04x}" if _is_harmful(character) else character for character in text
    )


def coloured(text: str, colour: str, on: bool) -> str:
    return f"{colour}{text}{RESET}" if on else text


def wants_colour(stream: TextIO, no_color: str | None) -> bool:
    """`no_color`: the variable NO_COLOR, which turns colours off whatever its text."""
    return stream.isatty() and not no_color


def _escape(character: str) -> str:
    if not _is_harmful(character):
        return character
    return character.encode("unicode_escape").decode("ascii")


def _is_harmful(character: str) -> bool:
    return unicodedata.category(character) in _HARMFUL or character in _BIDI
