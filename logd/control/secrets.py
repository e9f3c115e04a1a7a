"""The secrets of API keys and personal access tokens: making, recognising, hashing.

    kind      4 characters   `ldk_` an API key, `ldu_` a personal access token
    body     43 characters   32 random bytes, big-endian, in base62 (0-9 A-Z a-z), zero-padded
    check     6 characters   CRC-32 of all before it, in base62, zero-padded

So a typo is seen without a look-up, and a scanner finds a leaked secret by its form. Only the
SHA-256 of the whole text is kept: the body has 256 bits of entropy, so no salt is needed.
"""

import hashlib
import zlib
from functools import lru_cache
from typing import Final, Literal

from logd.entry import RandomBytes

Kind = Literal["ldk_", "ldu_"]
KEY: Final[Kind] = "ldk_"
TOKEN: Final[Kind] = "ldu_"

BODY_BYTES: Final = 32
BODY_CHARS: Final = 43  # 62**43 > 2**256
CHECK_CHARS: Final = 6  # 62**6 > 2**32
SECRET_CHARS: Final = 4 + BODY_CHARS + CHECK_CHARS
PREFIX_CHARS: Final = 12  # 47 bits of the body are shown; 208 stay secret

_DIGITS: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_PAIRS: Final = [high + low for high in _DIGITS for low in _DIGITS]  # 62**2 = 3,844


def new_secret(kind: Kind, random_bytes: RandomBytes) -> str:
    body = kind + _base62(int.from_bytes(random_bytes(BODY_BYTES), "big"), BODY_CHARS)
    return body + _check(body)


def well_formed(text: str) -> bool:
    """Whether the text has the form and the check sum of a secret. Any text may be given."""
    return (
        len(text) == SECRET_CHARS
        and text.startswith((KEY, TOKEN))
        and text.isascii()
        and text[4:].isalnum()
        and text[-CHECK_CHARS:] == _check(text[:-CHECK_CHARS])
    )


def recognise(text: str) -> bytes | None:
    """The digest of a well-formed secret, None for any other text."""
    return _recognise(text) if len(text) == SECRET_CHARS else None


@lru_cache(maxsize=1024)
def _recognise(text: str) -> bytes | None:
    """What was seen lately is known: a busy client sends its secret thousands of times a second."""
    return digest(text) if well_formed(text) else None


def digest(secret: str) -> bytes:
    """What is kept of a well-formed secret: 32 bytes."""
    return hashlib.sha256(secret.encode("ascii")).digest()


def display_prefix(secret: str) -> str:
    return secret[:PREFIX_CHARS]


def _check(body: str) -> str:
    """On the path of every request: three look-ups instead of six divisions."""
    high, low = divmod(zlib.crc32(body.encode("ascii")), 3844)
    high, middle = divmod(high, 3844)
    return _PAIRS[high] + _PAIRS[middle] + _PAIRS[low]


def _base62(number: int, width: int) -> str:
    digits = []
    for _ in range(width):
        number, digit = divmod(number, 62)
        digits.append(_DIGITS[digit])
    return "".join(reversed(digits))
