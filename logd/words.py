"""The tokenizer, shared by the index and the query language.

A word is a maximal run of ASCII letters, ASCII digits, `_` and non-ASCII characters. Case is
folded one code point at a time, and only where the folded character has the same length in
UTF-8. So a text and its folded form have the same words at the same byte offsets, an ASCII
word folds to ASCII and a non-ASCII word to non-ASCII.
"""

import re
from functools import cache
from typing import Final

_LAST_CASED: Final = 0x1FFFF
"""No letter above this has a case, in any version of Unicode so far."""

_NOT_ASCII: Final = re.compile(r"[^\x00-\x7f]+")
_WORD: Final = re.compile(r"[^\x00-/:-@\[-^`{-\x7f]+")
"""By what is no part of a word: a set that names all of Unicode takes 3 ms to compile."""


@cache
def fold_table() -> dict[int, int]:
    """Of the code points that are not ASCII and fold to another, that one. To work it out takes
    some 20 ms: the first non-ASCII text pays them."""
    table = {}
    for code in range(0x80, _LAST_CASED + 1):
        if 0xD800 <= code <= 0xDFFF:
            continue
        lower = chr(code).lower()
        if (
            len(lower) == 1
            and ord(lower) != code
            and _utf8_length(ord(lower)) == _utf8_length(code)
        ):
            table[code] = ord(lower)
    return table


def _utf8_length(code: int) -> int:
    return 1 if code < 0x80 else 2 if code < 0x800 else 3 if code < 0x10000 else 4


def fold(text: str) -> str:
    """The form in which texts and words are compared."""
    if text.isascii():
        return text.lower()
    table = fold_table()
    ascii_folded = text.encode().lower().decode()  # bytes.lower knows ASCII letters only
    return _NOT_ASCII.sub(lambda run: run[0].translate(table), ascii_folded)


def split_words(text: str) -> list[str]:
    """The words of a text, in order, as they stand (not folded)."""
    return _WORD.findall(text)


WORD_BYTE: Final = bytes(
    1 if (chr(c).isalnum() and c < 0x80) or c == ord("_") or 0x80 <= c < 0xF8 else 0
    for c in range(256)
)
"""For `bytes.translate`: 1 where the byte belongs to a word. 0xF8-0xFF never occur in UTF-8 and
serve the formats as separators."""

DIGIT_BYTE: Final = bytes(1 if 48 <= c < 58 else 0 for c in range(256))
"""For `bytes.translate`: 1 where the byte is an ASCII digit."""
