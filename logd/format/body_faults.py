"""What is wrong with a request body: its entries one by one, each fault named by index and field.

This is the careful way of `body.py`, whose callers need not know this module: slow, and right about
everything that the fast way leaves open.
"""

import re
from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import Raw

from logd import entry as limits
from logd.entry import LEVEL_CODE, LEVELS, LevelName, ProjectId
from logd.errors import LogdError
from logd.format.shape import shape_of
from logd.timestamps import parse_timestamp

MAX_ERRORS_LISTED: Final = 100
MAX_NESTING: Final = 500
"""Levels of arrays and objects in an entry, itself the first. Far fewer than the stack holds: what
was acknowledged by one thread must be readable to every other: to those that search metas, and to
the recovery of a WAL of the first version."""
MAX_TAGS_BYTES: Final = 131_072
"""Of an entry's tags in JSON: 64 tags of 128 characters, all escaped, are 98,689."""

_LEAST_ENTRY_BYTES: Final = 90  # the shortest valid entry has 93 with its comma
_WORTH_COUNTING: Final = 10_000  # fewer values than this are looked at whatever they are
_MOST_POINTER_CHARS: Final = 256  # a name may be as long as the body, and so would the answer be
_MOST_MEMBERS: Final = 100  # an entry has seven; keys may repeat

_FIELDS: Final = ("projectId", "level", "message", "source", "timestamp", "tags", "meta")
_REQUIRED: Final = _FIELDS[:4]
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_FIRST_BYTE: Final = re.compile(rb"[ \t\r\n]*(.)", re.DOTALL)
_array_decoder: Final = msgspec.json.Decoder(list[Raw])
_raw_decoder: Final = msgspec.json.Decoder(Raw)
_object_decoder: Final = msgspec.json.Decoder(dict[str, Raw])
_text_decoder: Final = msgspec.json.Decoder(str)
_list_decoder: Final = msgspec.json.Decoder(list[Raw])


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


class Parsed(msgspec.Struct, frozen=True, gc=False):
    """An entry: the values of its texts, `tags` and `meta` as the JSON that came."""

    ts_ns: int
    level: LevelName
    message: str
    source: str
    tags: bytes
    meta: bytes


def split(body: bytes, ndjson: bool) -> list[Raw]:
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


def split_lines(body: bytes) -> list[Raw | InvalidBody]:
    """The JSON values of an NDJSON body line by line, or what is wrong with a line: one that was
    cut off does not spoil the others. Blank lines are skipped. Raises InvalidBody where none of
    them is JSON, or so many lines cannot be entries."""
    try:
        return list(split(body, ndjson=True))
    except InvalidBody:
        lines = body.count(b"\n")
        if lines > _WORTH_COUNTING and lines * _LEAST_ENTRY_BYTES > len(body):
            raise
        found = [part for line in body.split(b"\n") for part in _of_line(line)]
        if not any(isinstance(part, Raw) for part in found):
            raise
        return found


def _of_line(line: bytes) -> Sequence[Raw | InvalidBody]:
    """The values of a line, none of a blank one."""
    try:
        return split(line, ndjson=True)
    except InvalidBody as error:
        return [error]


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


def _shortened(name: str, chars: int) -> str:
    return name if len(name) <= chars else name[:chars] + "..."


class Findings:
    """What the examination of a body has found: the good entries by index, in order, and of the
    others, whose faults may outweigh the body, the first few faults."""

    def __init__(self) -> None:
        self.good: dict[int, Parsed] = {}
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


def examine(raws: Sequence[Raw | InvalidBody], project: ProjectId, received_ns: int) -> Findings:
    """Looks at every entry. `received_ns` dates those that carry no timestamp."""
    found = Findings()
    for index, raw in enumerate(raws):
        if isinstance(raw, InvalidBody):
            found.add_faults([EntryError(index, "", raw.code, raw.detail)])
            continue
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

    def entry(self, raw: Raw, received_ns: int) -> Parsed:
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
                    detail = f"unknown field {_shortened(name, 64)!r}: put it in meta"
                    path = _shortened(name, _MOST_POINTER_CHARS)
                    path = path.replace("~", "~0").replace("/", "~1")
                    self._fault_at(path, "unknown_field", detail)
        return self._values(fields or {}, received_ns)

    def _values(self, fields: dict[str, Raw], received_ns: int) -> Parsed:
        self.project = self._project(self._text(fields, "projectId"))
        ts_text = self._text(fields, "timestamp")
        return Parsed(
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
        if len(bytes(raw)) > MAX_TAGS_BYTES:
            self.fault("tags", "too_long", f"tags take more than {MAX_TAGS_BYTES} bytes of JSON")
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
