"""Request text -> values: credentials, query strings, ids, JSON bodies. Strict, and says where."""

import re
import urllib.parse
from collections.abc import Mapping
from functools import lru_cache
from typing import Final, TypeVar

import msgspec

from logd.api.errors import Fault, InvalidRequest, MalformedBody, Unauthenticated
from logd.api.exchange import Head
from logd.timestamps import parse_timestamp

T = TypeVar("T")

_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_VISIBLE: Final = re.compile(r"[!-~]{1,128}")
_MAX_PARAMETERS: Final = 64
_USUAL_QUERY_CHARS: Final = 512


def bearer_secret(head: Head) -> str:
    """The secret of `Authorization: Bearer`. Raises Unauthenticated, InvalidRequest."""
    _once(head, "authorization")
    value = head.headers.get("authorization")
    if value is None:
        raise Unauthenticated("credential_missing", "send Authorization: Bearer <key or token>")
    scheme, _, secret = value.partition(" ")
    if scheme.lower() != "bearer" or not secret.strip():
        raise Unauthenticated("credential_missing", "only Authorization: Bearer is understood")
    return secret.strip()


def idempotency_key(head: Head) -> str | None:
    """Raises InvalidRequest where it is not 1-128 visible ASCII characters."""
    _once(head, "idempotency-key")
    key = head.headers.get("idempotency-key")
    if key is not None and not _VISIBLE.fullmatch(key):
        detail = "Idempotency-Key must be 1-128 visible ASCII characters"
        raise InvalidRequest(Fault("bad_format", detail, parameter="Idempotency-Key"))
    return key


def _once(head: Head, name: str) -> None:
    if name in head.repeated:
        detail = f"the header {name} may be sent once"
        raise InvalidRequest(Fault("repeated", detail, parameter=name))


def query_parameters(query: str, known: frozenset[str]) -> Mapping[str, str]:
    """Each parameter once. Raises InvalidRequest that names the unknown and the repeated ones."""
    if len(query) <= _USUAL_QUERY_CHARS:
        return _usual_parameters(query, known)
    return _parameters(query, known)


def _parameters(query: str, known: frozenset[str]) -> Mapping[str, str]:
    try:
        pairs = urllib.parse.parse_qsl(
            query, keep_blank_values=True, errors="strict", max_num_fields=_MAX_PARAMETERS
        )
    except UnicodeDecodeError:
        raise InvalidRequest(Fault("not_utf8", "the query string is not UTF-8")) from None
    except ValueError:
        detail = f"the query string has more than {_MAX_PARAMETERS} parameters"
        raise InvalidRequest(Fault("too_many", detail)) from None
    faults = []
    values: dict[str, str] = {}
    for name, value in pairs:
        if name not in known:
            detail = f"unknown parameter {name[:64]!r}"
            faults.append(Fault("unknown_parameter", detail, parameter=name[:64]))
        elif name in values:
            faults.append(Fault("repeated", f"{name} may be given once", parameter=name))
        values[name] = value
    if faults:
        raise InvalidRequest(*faults)
    return values


_usual_parameters: Final = lru_cache(maxsize=256)(_parameters)  # the same are asked again and again


def canonical_uuid(text: str) -> str | None:
    """36 characters in lower case, or None where the text is no UUID."""
    return text.lower() if _UUID.fullmatch(text) else None


def read_json(body: bytes, kind: type[T]) -> T:
    """A body as a struct of `schema.py`. Raises MalformedBody, InvalidRequest."""
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        raise InvalidRequest(_fault(str(error))) from None
    except msgspec.DecodeError as error:
        raise MalformedBody("malformed_json", str(error)) from None
    except UnicodeDecodeError:
        raise MalformedBody("not_utf8", "the body is not UTF-8") from None
    except RecursionError:
        raise MalformedBody("too_deep", "the body is nested too deeply") from None


_MISSING: Final = re.compile(r"Object missing required field `(.*?)`")
_UNKNOWN: Final = re.compile(r"Object contains unknown field `(.*)`", re.DOTALL)
_WHERE: Final = re.compile(r" - at `\$(.*)`$", re.DOTALL)
_STEP: Final = re.compile(r"\.([^.\[]+)|\[(\d+|\.\.\.)\]")


def _fault(message: str) -> Fault:
    """msgspec's message `<what> - at `$.a[0]`` as a fault with a JSON pointer."""
    where = _WHERE.search(message)
    what = message[: where.start()] if where else message
    pointer = ""
    if where:
        pointer = "".join("/" + (key or index) for key, index in _STEP.findall(where[1]))
    if missing := _MISSING.search(what):
        return Fault("required", f"{missing[1]} is required", pointer=f"{pointer}/{missing[1]}")
    if unknown := _UNKNOWN.search(what):
        name = unknown[1][:64]
        escaped = name.replace("~", "~0").replace("/", "~1")
        return Fault("unknown_field", f"unknown field {name!r}", pointer=f"{pointer}/{escaped}")
    return Fault("invalid_value", what.replace("`", ""), pointer=pointer)


def read_instant(text: str | None, pointer: str) -> int | None:
    """ns since the epoch of an optional timestamp in a body. Raises InvalidRequest."""
    if text is None:
        return None
    try:
        return parse_timestamp(text)
    except ValueError as error:
        raise InvalidRequest(Fault("invalid_timestamp", str(error), pointer=pointer)) from None
