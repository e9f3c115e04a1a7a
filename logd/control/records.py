"""Control records <-> keys and values: the one place that knows how they are stored.

A key is `<kind>/<row key>`; the row key is an id, or two ids with a slash between. A value is the
record as a msgpack map, so that a later version may add fields that have a default. The tables of
`docs/format/control.md` list the kinds.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from logd.control.model import (
    ApiKey,
    Assignment,
    Membership,
    Org,
    Project,
    Token,
    User,
)
from logd.entry import ProjectId

MAX_RETIRED: Final = 8  # secrets of one key that work at a time, beside the newest


class Retired(msgspec.Struct, frozen=True):
    """A secret that was rotated out and still works until an instant."""

    digest: bytes
    until_ns: int


class TokenRecord(msgspec.Struct, frozen=True):
    """A token and the SHA-256 of its secret. The token's last use is a record of its own."""

    token: Token
    digest: bytes

    def accepts(self, now_ns: int) -> bool:
        return self.token.expires_at_ns is None or now_ns < self.token.expires_at_ns


class KeyRecord(msgspec.Struct, frozen=True):
    """An API key and the SHA-256 of each of its secrets."""

    key: ApiKey
    digest: bytes
    retired: tuple[Retired, ...] = ()

    def accepts(self, digest: bytes, now_ns: int) -> bool:
        """Whether the secret of this digest, which is one of the key's, still works."""
        if self.key.expires_at_ns is not None and now_ns >= self.key.expires_at_ns:
            return False
        if digest == self.digest:
            return True
        return any(old.digest == digest and now_ns < old.until_ns for old in self.retired)


class LastUse(msgspec.Struct, frozen=True):
    """When a token or key was last used; apart from it because it changes every minute."""

    credential_id: str
    at_ns: int


class Doomed(msgspec.Struct, frozen=True):
    """A deleted project whose logs are still to be removed."""

    project_id: ProjectId


Record = User | TokenRecord | Org | Membership | Project | Assignment | KeyRecord | LastUse | Doomed

_TYPES: Final[Mapping[str, type[Record]]] = {
    "user": User,
    "token": TokenRecord,
    "org": Org,
    "member": Membership,
    "project": Project,
    "assignment": Assignment,
    "key": KeyRecord,
    "use": LastUse,
    "doomed": Doomed,
}
_KINDS: Final = {record: kind for kind, record in _TYPES.items()}
_DECODERS: Final = {kind: msgspec.msgpack.Decoder(record) for kind, record in _TYPES.items()}
_ENCODER: Final = msgspec.msgpack.Encoder()


def pair_key(first: str, second: str) -> str:
    """The row key of what two ids identify."""
    return f"{first}/{second}"


def row_key(record: Record) -> str:
    """What identifies the record among those of its kind."""
    match record:
        case TokenRecord():
            return record.token.id
        case KeyRecord():
            return record.key.id
        case Membership():
            return pair_key(record.org_id, record.user_id)
        case Assignment():
            return pair_key(record.project_id, record.user_id)
        case LastUse():
            return record.credential_id
        case Doomed():
            return record.project_id
        case _:
            return record.id


def key_of(record: Record) -> str:
    return f"{_KINDS[type(record)]}/{row_key(record)}"


def split_key(key: str) -> tuple[str, str]:
    """Kind and row key."""
    kind, _, row = key.partition("/")
    return kind, row


def encode(record: Record) -> bytes:
    return _ENCODER.encode(record)


def decode(key: str, value: bytes) -> Record | None:
    """The record, or None where a later version of the program put a kind unknown to this one.

    Raises msgspec.MsgspecError where the value is not such a record, ValueError where it is
    another one's.
    """
    decoder = _DECODERS.get(split_key(key)[0])
    if decoder is None:
        return None
    record = decoder.decode(value)
    if key_of(record) != key:
        raise ValueError(f"the record of another key, {key_of(record)!r}")
    return record
