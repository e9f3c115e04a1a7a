"""Passwords: argon2id with 19 MiB, two passes, one lane (OWASP's first choice of parameters).

Each call takes about 30 ms of CPU and 19 MiB: call it in a worker thread, two at a time.
"""

import unicodedata
from functools import cache
from typing import TYPE_CHECKING, Final

from logd.control.errors import InvalidField
from logd.entry import RandomBytes

if TYPE_CHECKING:
    from argon2 import PasswordHasher

MEMORY_KIB: Final = 19_456
PASSES: Final = 2
LANES: Final = 1
SALT_BYTES: Final = 16
MIN_CHARS: Final = 8
MAX_CHARS: Final = 256

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
    return _hasher().hash(secret, salt=random_bytes(SALT_BYTES))


def matches(password_hash: str | None, password: str) -> bool:
    """Whether the hash is this password's. None (no hash): False, after the same work."""
    from argon2.exceptions import VerifyMismatchError

    secret = _secret(password) if len(password) <= MAX_CHARS else None
    try:
        _hasher().verify(password_hash or NOBODYS_HASH, secret or b"")
    except VerifyMismatchError:
        return False
    return password_hash is not None and secret is not None


@cache
def _hasher() -> "PasswordHasher":
    """Loaded by the first password: few starts of the daemon see one."""
    from argon2 import PasswordHasher

    return PasswordHasher(time_cost=PASSES, memory_cost=MEMORY_KIB, parallelism=LANES)


def _secret(password: str) -> bytes | None:
    """What is hashed: one form for what looks the same on every keyboard. None: not text."""
    try:
        return unicodedata.normalize("NFKC", password).encode()
    except UnicodeEncodeError:  # lone surrogates
        return None
