"""Request bodies: the JSON that callers send, and that the WAL stores as it came.

    JSON    one entry object, or an array of them
    NDJSON  one entry object a line; blank lines are skipped

Decoding is strict and ends all validation. It goes two ways: a fast one, in which typed msgspec
decoding and a few checks over whole columns accept what is beyond doubt, and a careful one, entry
by entry, that decides everything else and names each fault by index and field.
"""

import functools
import re
from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal, cast

import msgspec
import numpy as np
from msgspec import UNSET, Meta, Raw, UnsetType

from logd import entry as limits
from logd.entry import LEVEL_CODE, LEVELS, LevelName, ProjectId
from logd.errors import LogdError
from logd.format.separated import (
    SEPARATOR,
    Int64s,
    concatenate,
    edges,
    join_ascii,
    join_texts,
    longest,
)
from logd.format.shape import shape_of
from logd.timestamps import BadTimestamp, parse_timestamp, parse_timestamps

MAX_ERRORS_LISTED: Final = 100
MAX_NESTING: Final = 500
"""Levels of arrays and objects in an entry, itself the first. Far fewer than the stack holds: what
was acknowledged by one thread must be readable to every other, the recovery's above all."""

_BRACE: Final = ord("{")
_FLAT_BYTES: Final = 2 * (MAX_NESTING - 1)  # a shorter meta has not the brackets to nest too deeply
_LEAST_ENTRY_BYTES: Final = 90  # the shortest valid entry has 93 with its comma
_WORTH_COUNTING: Final = 10_000  # fewer values than this are looked at whatever they are
_MOST_MEMBERS: Final = 100  # an entry has seven; keys may repeat

_FAST_TAG_LISTS: Final = 4096
_LEVEL_BYTES: Final = {name: bytes([code]) for name, code in LEVEL_CODE.items()}
_FAST_TAG_LIST_BYTES: Final = 1024
_MAX_TAGS_BYTES: Final = 131_072  # 64 tags of 128 characters, all escaped, are 98,689


class EntryError(msgspec.Struct, frozen=True):
    """What is wrong with one field of one entry. `index`: position in the request;
    `pointer`: JSON pointer within the entry, empty for the entry itself."""

    index: int
    pointer: str
    code: str
    detail: str


class InvalidBody(LogdError):
    """The body is not JSON of the announced form; no entry of it can be looked at."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


class InvalidEntries(LogdError):
    """At least one entry breaks a rule. `errors`: the first 100; `total`: how many there are."""

    def __init__(self, errors: tuple[EntryError, ...], total: int) -> None:
        super().__init__(f"{total} faults, the first: {errors[0].detail}")
        self.errors = errors
        self.total = total


class ForeignProject(LogdError):
    """At least one entry, itself valid, names another project than the key's."""

    def __init__(self, errors: tuple[EntryError, ...]) -> None:
        super().__init__("an entry names a project that the key does not belong to")
        self.errors = errors


class Batch(msgspec.Struct, frozen=True, gc=False):
    """The validated entries of a request, in request order, as columns.

    `ts`: int64[count], ns since the epoch. `levels`: one level code a byte. `messages`, `sources`,
    `tags` (JSON arrays) and `metas` (JSON objects): separated text, see `separated.py`.
    """

    count: int
    ts: Int64s
    levels: bytes
    messages: bytes
    sources: bytes
    tags: bytes
    metas: bytes

    @property
    def size_bytes(self) -> int:
        """Bytes of memory that the columns take."""
        return (
            9 * self.count
            + len(self.messages)
            + len(self.sources)
            + len(self.tags)
            + len(self.metas)
        )


class Partial(msgspec.Struct, frozen=True):
    """A body of which only the good entries are kept.

    `body`: the good ones as a JSON array, for the WAL; `kept`: their indexes in the request;
    `errors`: the first 100 faults of the others; `batch` is None if none is good.
    """

    batch: Batch | None
    body: bytes
    kept: tuple[int, ...]
    count: int
    errors: tuple[EntryError, ...]


def concatenate_batches(batches: Sequence[Batch]) -> Batch:
    """One batch of all entries of at least one batch, in order."""
    if len(batches) == 1:
        return batches[0]
    return Batch(
        count=sum(batch.count for batch in batches),
        ts=np.concatenate([batch.ts for batch in batches]),
        levels=b"".join([batch.levels for batch in batches]),
        messages=concatenate([batch.messages for batch in batches]),
        sources=concatenate([batch.sources for batch in batches]),
        tags=concatenate([batch.tags for batch in batches]),
        metas=concatenate([batch.metas for batch in batches]),
    )


EMPTY: Final = Batch(0, np.zeros(0, np.int64), b"", b"", b"", b"", b"")


def decode_body(body: bytes, project: ProjectId, received_ns: int, *, ndjson: bool) -> Batch:
    """All entries of a body, or none.

    `received_ns` dates the entries that carry no timestamp. Raises InvalidBody, InvalidEntries
    or ForeignProject.
    """
    batch = decode_fast(body, project, received_ns, ndjson)
    if batch is None:
        batch = _decode_carefully(body, project, received_ns, ndjson)
    return batch


def decode_good_entries(
    body: bytes, project: ProjectId, received_ns: int, *, ndjson: bool
) -> Partial:
    """The good entries of a body, and what is wrong with the others. Raises InvalidBody."""
    raws = _split(body, ndjson)
    found = _examine(raws, project, received_ns)
    kept = tuple(found.good)
    errors = sorted((*found.faults, *found.foreign), key=lambda error: error.index)
    return Partial(
        batch=_to_batch(list(found.good.values())) if kept else None,
        body=b"[" + b",".join([raws[index] for index in kept]) + b"]",
        kept=kept,
        count=len(raws),
        errors=tuple(errors[:MAX_ERRORS_LISTED]),
    )


# ---------------------------------------------------------------- the fast way


@functools.lru_cache(maxsize=256)
def _fast_decoder(project: ProjectId) -> tuple[Any, Any]:
    """(decoder of one entry, decoder of an array of them) that know the project's id.

    Enumerated strings decode to shared objects, without an allocation: that, Raw and gc=False
    are most of the speed.
    """
    struct: Any = msgspec.defstruct(
        "FastEntry",
        [
            ("projectId", Literal[project]),
            ("level", LevelName),
            ("message", Annotated[str, Meta(max_length=limits.MAX_MESSAGE_BYTES)]),
            ("source", Annotated[str, Meta(min_length=1, max_length=limits.MAX_SOURCE_CHARS)]),
            ("timestamp", str | UnsetType, UNSET),
            ("tags", Raw, Raw(b"[]")),
            ("meta", Raw, Raw(b"{}")),
        ],
        gc=False,
        forbid_unknown_fields=True,
    )
    return msgspec.json.Decoder(struct), msgspec.json.Decoder(list[struct])


def decode_fast(
    body: bytes, project: ProjectId, received_ns: int | Int64s, ndjson: bool
) -> Batch | None:
    """The batch, or None where only the careful way can tell. `received_ns`: of all entries, or
    int64[n], of each."""
    one, many = _fast_decoder(project)
    try:
        if ndjson:
            entries = one.decode_lines(body)
        elif body[:1] == b"{":
            entries = [one.decode(body)]
        else:
            entries = many.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if not entries:
        return EMPTY
    count = len(entries)
    if count == 1 and isinstance(received_ns, int):
        return _one(entries[0], received_ns)
    if not isinstance(received_ns, int) and len(received_ns) != count:
        return None
    try:
        ts = _timestamps([e.timestamp for e in entries], received_ns)
    except BadTimestamp:
        return None
    is_ascii = body.isascii()
    join = join_ascii if is_ascii and b"\\u" not in body else join_texts
    messages = join([e.message for e in entries])
    sources = join([e.source for e in entries])
    tags = SEPARATOR.join([e.tags for e in entries])
    metas = SEPARATOR.join([e.meta for e in entries])
    if (
        not (is_ascii or (_is_utf8(tags, count) and _is_utf8(metas, count)))
        or not (join is join_ascii or _are_messages_in_bounds(messages, count))
        or not all(map(_is_tag_list, set(tags.split(SEPARATOR))))
        or not _are_metas_good(metas, count)
    ):
        return None
    levels = bytes([LEVEL_CODE[e.level] for e in entries])
    return Batch(count, ts, levels, messages, sources, tags, metas)


def _one(entry: Any, received_ns: int) -> Batch | None:
    """The batch of a single entry: arrays and sets would cost more than all they check."""
    try:
        ts_ns = received_ns if entry.timestamp is UNSET else parse_timestamp(entry.timestamp)
    except ValueError:
        return None
    message, tags, meta = entry.message.encode(), bytes(entry.tags), bytes(entry.meta)
    if (
        not (_is_utf8(tags, 1) and _is_utf8(meta, 1))
        or not _are_messages_in_bounds(message, 1)
        or not _is_tag_list(tags)
        or not _are_metas_good(meta, 1)
    ):
        return None
    levels = _LEVEL_BYTES[entry.level]
    return Batch(1, np.array([ts_ns], np.int64), levels, message, entry.source.encode(), tags, meta)


def _is_utf8(blob: bytes, count: int) -> bool:
    """Whether so many separated texts are UTF-8. msgspec sees to that in the strings that it
    makes, not in what it leaves raw."""
    if count > 1:
        if blob.count(SEPARATOR) != count - 1:
            return False
        blob = blob.replace(SEPARATOR, b" ")
    if blob.isascii():
        return True
    try:
        blob.decode()
    except UnicodeDecodeError:
        return False
    return True


def _are_messages_in_bounds(messages: bytes, count: int) -> bool:
    """In bytes: msgspec has counted characters."""
    return (
        len(messages) <= limits.MAX_MESSAGE_BYTES
        or longest(messages, count) <= limits.MAX_MESSAGE_BYTES
    )


def _timestamps(texts: list[str | UnsetType], received_ns: int | Int64s) -> Int64s:
    """int64[n]. Raises BadTimestamp."""
    if UNSET not in texts:
        return parse_timestamps(cast(list[str], texts))
    out = np.full(len(texts), received_ns, np.int64)
    given = [index for index, text in enumerate(texts) if text is not UNSET]
    if given:
        out[given] = parse_timestamps([cast(str, texts[index]) for index in given])
    return out


def _are_metas_good(metas: bytes, count: int) -> bool:
    """Whether all are objects, none is too long and none could nest too deeply."""
    if count == 1:
        if metas[:1] != b"{":
            return False
        most = len(metas)
    else:
        at = edges(metas, count)
        if np.any(np.frombuffer(metas, np.uint8).take(at[:-1]) != _BRACE):
            return False
        most = int(np.diff(at).max()) - 1
    if most <= _FLAT_BYTES:
        return True
    return most <= limits.MAX_META_BYTES and not any(map(_opens_too_often, metas.split(SEPARATOR)))


def _opens_too_often(meta: bytes) -> bool:
    """Brackets in strings count too: the careful way tells them apart."""
    return len(meta) > _FLAT_BYTES and meta.count(b"{") + meta.count(b"[") >= MAX_NESTING


_tags_decoder: Final = msgspec.json.Decoder(list[str])


def _is_tag_list(text: bytes) -> bool:
    """A distinct tag list is looked at once, not once an entry."""
    if len(text) <= _FAST_TAG_LIST_BYTES:
        return _is_short_tag_list(text)
    return len(text) <= _MAX_TAGS_BYTES and _holds_tags(text)


def _holds_tags(text: bytes) -> bool:
    try:
        tags = _tags_decoder.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return len(tags) <= limits.MAX_TAGS and all(0 < len(t) <= limits.MAX_TAG_CHARS for t in tags)


_is_short_tag_list: Final = functools.lru_cache(maxsize=_FAST_TAG_LISTS)(_holds_tags)


# ---------------------------------------------------------------- the careful way


class _Parsed(msgspec.Struct, frozen=True, gc=False):
    ts_ns: int
    level: LevelName
    message: str
    source: str
    tags: bytes
    meta: bytes


_FIELDS: Final = ("projectId", "level", "message", "source", "timestamp", "tags", "meta")
_REQUIRED: Final = _FIELDS[:4]
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_FIRST_BYTE: Final = re.compile(rb"[ \t\r\n]*(.)", re.DOTALL)
_array_decoder: Final = msgspec.json.Decoder(list[Raw])
_raw_decoder: Final = msgspec.json.Decoder(Raw)
_object_decoder: Final = msgspec.json.Decoder(dict[str, Raw])
_text_decoder: Final = msgspec.json.Decoder(str)
_list_decoder: Final = msgspec.json.Decoder(list[Raw])


def _decode_carefully(body: bytes, project: ProjectId, received_ns: int, ndjson: bool) -> Batch:
    found = _examine(_split(body, ndjson), project, received_ns)
    if found.faults:
        raise InvalidEntries(tuple(found.faults), found.total_faults)
    if found.foreign:
        raise ForeignProject(tuple(found.foreign))
    return _to_batch(list(found.good.values())) if found.good else EMPTY


def _split(body: bytes, ndjson: bool) -> list[Raw]:
    """The JSON values of a body, one an entry. Raises InvalidBody."""
    try:
        body.decode()
    except UnicodeDecodeError as error:
        raise InvalidBody("not_utf8", f"the body is not UTF-8: byte {error.start}") from None
    first = _FIRST_BYTE.match(body)
    kind = b"" if first is None or ndjson else first[1]
    if len(body) > 2 * MAX_NESTING:
        _check_shape(body, in_array=kind == b"[")
    try:
        if ndjson:
            return _raw_decoder.decode_lines(body)
        if kind == b"[":
            return _array_decoder.decode(body)
        if kind == b"{":
            return [_raw_decoder.decode(body)]
        _raw_decoder.decode(body)
    except RecursionError:
        raise InvalidBody("too_deep", "the body is nested too deeply") from None
    except msgspec.DecodeError as error:
        raise InvalidBody("malformed_json", str(error)) from None
    raise InvalidBody("wrong_type", "the body must be an entry object or an array of them")


def _check_shape(body: bytes, *, in_array: bool) -> None:
    """Raises InvalidBody where decoding would take depth or memory out of all proportion."""
    shape = shape_of(body, in_array=in_array)
    if shape.depth > MAX_NESTING:
        detail = f"an entry is nested {shape.depth} levels deep, at most {MAX_NESTING}"
        raise InvalidBody("too_deep", detail)
    if shape.values > _WORTH_COUNTING and shape.values * _LEAST_ENTRY_BYTES > len(body):
        detail = f"{shape.values} values in {len(body)} bytes cannot all be entries"
        raise InvalidBody("too_many_values", detail)
    if shape.commas > _WORTH_COUNTING and shape.commas > _MOST_MEMBERS * shape.values:
        detail = f"{shape.commas} members in {shape.values} values are not those of entries"
        raise InvalidBody("too_many_members", detail)


class _Findings:
    """What the examination of a body has found: the good entries by index, in order, and of the
    others, whose faults may outweigh the body, the first few faults."""

    def __init__(self) -> None:
        self.good: dict[int, _Parsed] = {}
        self.faults: list[EntryError] = []
        self.total_faults = 0
        self.foreign: list[EntryError] = []

    def add_faults(self, errors: Sequence[EntryError]) -> None:
        self.total_faults += len(errors)
        self.faults += errors[: MAX_ERRORS_LISTED - len(self.faults)]

    def add_foreign(self, index: int) -> None:
        if len(self.foreign) < MAX_ERRORS_LISTED:
            detail = "projectId is not the project that the key belongs to"
            self.foreign.append(EntryError(index, "/projectId", "foreign_project", detail))


def _examine(raws: Sequence[Raw], project: ProjectId, received_ns: int) -> _Findings:
    found = _Findings()
    for index, raw in enumerate(raws):
        checked = _Checked(index)
        parsed = checked.entry(raw, received_ns)
        if checked.errors:
            found.add_faults(checked.errors)
        elif checked.project != project:
            found.add_foreign(index)
        else:
            found.good[index] = parsed
    return found


class _Checked:
    """One entry under examination: collects every fault of it instead of stopping at the first."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.errors: list[EntryError] = []
        self.project: str | None = None

    def fault(self, field: str, code: str, detail: str) -> None:
        pointer = f"/{field}" if field else ""
        self.errors.append(EntryError(self.index, pointer, code, detail))

    def entry(self, raw: Raw, received_ns: int) -> _Parsed:
        try:
            fields = _object_decoder.decode(raw)
        except msgspec.DecodeError:
            self.fault("", "wrong_type", "an entry must be a JSON object")
            fields = None
        if fields is not None:
            for name in _REQUIRED:
                if name not in fields:
                    self.fault(name, "required", f"{name} is required")
            for name in fields:
                if name not in _FIELDS:
                    shown = name if len(name) <= 64 else name[:64] + "..."
                    detail = f"unknown field {shown!r}: put it in meta"
                    path = name.replace("~", "~0").replace("/", "~1")
                    self._fault_at(path, "unknown_field", detail)
        return self._values(fields or {}, received_ns)

    def _values(self, fields: dict[str, Raw], received_ns: int) -> _Parsed:
        self.project = self._project(self._text(fields, "projectId"))
        ts_text = self._text(fields, "timestamp")
        return _Parsed(
            ts_ns=received_ns if ts_text is None else self._timestamp(ts_text),
            level=self._level(self._text(fields, "level")),
            message=self._message(self._text(fields, "message")),
            source=self._source(self._text(fields, "source")),
            tags=self._tags(fields),
            meta=self._meta(fields),
        )

    def _text(self, fields: dict[str, Raw], name: str) -> str | None:
        if name not in fields:
            return None
        try:
            return _text_decoder.decode(fields[name])
        except msgspec.DecodeError:
            self.fault(name, "wrong_type", f"{name} must be a string")
            return None

    def _project(self, text: str | None) -> str | None:
        if text is not None and not _UUID.fullmatch(text):
            self.fault("projectId", "invalid_uuid", "projectId must be a UUID")
        return text.lower() if text is not None else None

    def _timestamp(self, text: str) -> int:
        try:
            return parse_timestamp(text)
        except ValueError as error:
            self.fault("timestamp", "invalid_timestamp", f"timestamp: {error}")
            return 0

    def _level(self, text: str | None) -> LevelName:
        if text in LEVEL_CODE:
            return LEVELS[LEVEL_CODE[text]]
        if text is not None:
            self.fault("level", "invalid_level", f"level must be one of {', '.join(LEVELS)}")
        return "INFO"

    def _message(self, text: str | None) -> str:
        if text is None:
            return ""
        size = len(text.encode())
        if size > limits.MAX_MESSAGE_BYTES:
            detail = f"message is {size} bytes of UTF-8, at most {limits.MAX_MESSAGE_BYTES}"
            self.fault("message", "too_long", detail)
        return text

    def _source(self, text: str | None) -> str:
        if text is None:
            return ""
        if not text:
            self.fault("source", "too_short", "source must not be empty")
        elif len(text) > limits.MAX_SOURCE_CHARS:
            detail = f"source is {len(text)} characters, at most {limits.MAX_SOURCE_CHARS}"
            self.fault("source", "too_long", detail)
        return text

    def _tags(self, fields: dict[str, Raw]) -> bytes:
        if "tags" not in fields:
            return b"[]"
        raw = fields["tags"]
        if len(bytes(raw)) > _MAX_TAGS_BYTES:
            self.fault("tags", "too_long", f"tags take more than {_MAX_TAGS_BYTES} bytes of JSON")
            return b"[]"
        try:
            tags = _list_decoder.decode(raw)
        except msgspec.DecodeError:
            self.fault("tags", "wrong_type", "tags must be an array of strings")
            return b"[]"
        if len(tags) > limits.MAX_TAGS:
            self.fault("tags", "too_many", f"{len(tags)} tags, at most {limits.MAX_TAGS}")
        for position, tag in enumerate(tags[: limits.MAX_TAGS]):
            self._tag(f"tags/{position}", tag)
        return bytes(raw)

    def _tag(self, field: str, raw: Raw) -> None:
        try:
            tag = _text_decoder.decode(raw)
        except msgspec.DecodeError:
            return self._fault_at(field, "wrong_type", "a tag must be a string")
        if not tag:
            self._fault_at(field, "too_short", "a tag must not be empty")
        elif len(tag) > limits.MAX_TAG_CHARS:
            detail = f"a tag is {len(tag)} characters, at most {limits.MAX_TAG_CHARS}"
            self._fault_at(field, "too_long", detail)
        return None

    def _fault_at(self, path: str, code: str, detail: str) -> None:
        self.errors.append(EntryError(self.index, "/" + path, code, detail))

    def _meta(self, fields: dict[str, Raw]) -> bytes:
        if "meta" not in fields:
            return b"{}"
        raw = bytes(fields["meta"])
        if raw[:1] != b"{":
            self.fault("meta", "wrong_type", "meta must be an object")
        elif len(raw) > limits.MAX_META_BYTES:
            detail = f"meta is {len(raw)} bytes of JSON, at most {limits.MAX_META_BYTES}"
            self.fault("meta", "too_long", detail)
        return raw


def _to_batch(entries: Sequence[_Parsed]) -> Batch:
    return Batch(
        count=len(entries),
        ts=np.array([e.ts_ns for e in entries], np.int64),
        levels=bytes([LEVEL_CODE[e.level] for e in entries]),
        messages=join_texts([e.message for e in entries]),
        sources=join_texts([e.source for e in entries]),
        tags=SEPARATOR.join([e.tags for e in entries]),
        metas=SEPARATOR.join([e.meta for e in entries]),
    )
