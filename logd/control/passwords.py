"""Passwords: argon2id with 19 MiB, two passes, one lane (OWASP's first choice of parameters).

Each call takes about 30 ms of CPU and 19 MiB: call it in a worker thread, two at a time.
"""

import unicodedata
from typing import Final

from argon2 import PasswordHasher
from argon2.exceptions import VerifyMismatchError

from logd.control.errors import InvalidField
from logd.entry import RandomBytes

MEMORY_KIB: Final = 19_456
PASSES: Final = 2
LANES: Final = 1
SALT_BYTES: Final = 16
MIN_CHARS: Final = 8
MAX_CHARS: Final = 256

_HASHER: Final = PasswordHasher(time_cost=PASSES, memory_cost=MEMORY_KIB, parallelism=LANES)

NOBODYS_HASH: Final = f"$argon2id$v=19$m={MEMORY_KIB},t={PASSES},p={LANES}${'A' * 22}${'A' * 43}"
"""A hash that no known password has: verified where there is no user, so that it takes as long."""


def hash_password(password: str, random_bytes: RandomBytes) -> str:
    """The hash to keep, in argon2's text form. Raises InvalidField."""
    if len(password) < MIN_CHARS:
        raise InvalidField("password", "too_short", f"at least {MIN_CHARS} characters")
    if len(password) > MAX_CHARS:
        raise InvalidField("password", "too_long", f"at most {MAX_CHARS} characters")
    secret = _secret(password)
    if secret is None:
        raise InvalidField("password", "bad_format", "not valid Unicode text")
    return _HASHER.hash(secret, salt=random_bytes(SALT_BYTES))


def matches(password_hash: str | None, password: str) -> bool:
    """Whether the hash is this password's. None (no hash): False, after the same work."""
    secret = _secret(password) if len(password) <= MAX_CHARS else None
    try:
        _HASHER.verify(password_hash or NOBODYS_HASH, secret or b"")
    except VerifyMismatchError:
        return False
    return password_hash is not None and secret is not None


def _secret(password: str) -> bytes | None:
    """What is hashed: one form for what looks the same on every keyboard. None: not text."""
    try:
        return unicodedata.normalize("NFKC", password).encode()
    except UnicodeEncodeError:  # lone surrogates
        return None
