"""Request bodies: the JSON that callers send.

    JSON    one entry object, or an array of them
    NDJSON  one entry object a line; blank lines are skipped

Decoding is strict and ends all validation. It goes two ways: a fast one, in which typed msgspec
decoding and a few checks over whole columns accept what is beyond doubt, and a careful one, entry
by entry (`body_faults.py`), that decides everything else.
"""

import functools
import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Final, Literal, cast

import msgspec
import numpy as np
from msgspec import UNSET, Meta, Raw, UnsetType

from logd import entry as limits
from logd.entry import LEVEL_CODE, LevelName, ProjectId
from logd.format.body_faults import (
    MAX_ERRORS_LISTED,
    MAX_NESTING,
    MAX_TAGS_BYTES,
    EntryError,
    ForeignProject,
    InvalidBody,
    InvalidEntries,
    Parsed,
    examine,
    split,
    split_lines,
)
from logd.format.separated import (
    SEPARATOR,
    Int64s,
    concatenate,
    edges,
    is_any_longer,
    join_ascii,
    join_names,
    join_texts,
)
from logd.format.utf8 import is_utf8
from logd.timestamps import BadTimestamp, TooManyForms, parse_timestamp, parse_timestamps

__all__ = [
    "EMPTY",
    "MAX_NESTING",
    "Batch",
    "EntryError",
    "ForeignProject",
    "InvalidBody",
    "InvalidEntries",
    "Partial",
    "concatenate_batches",
    "decode_body",
    "decode_carefully",
    "decode_fast",
    "decode_good_entries",
    "decode_singles",
]

_OPENING_BRACE: Final = ord("{")
_FLAT_BYTES: Final = 2 * (MAX_NESTING - 1)  # a shorter meta has not the brackets to nest too deeply

_LARGE_BYTES: Final = 512 << 10
_SLICE_BYTES: Final = 256 << 10  # a millisecond or two
_BETWEEN_ENTRIES: Final = re.compile(  # as a rule not where it is between objects of a meta
    rb"\}[ \t\r\n]*+,[ \t\r\n]*+\{"
    rb'(?=[ \t\r\n]*+"(?:projectId|level|message|source|timestamp|tags|meta)")'
)
_BETWEEN_LINES: Final = re.compile(rb"\}\r?\n\{")

_MOST_SINGLY: Final = 512  # timestamps: a millisecond or two
_FAST_TAG_LISTS: Final = 4096
_LEVEL_BYTES: Final = {name: bytes([code]) for name, code in LEVEL_CODE.items()}
_FAST_TAG_LIST_BYTES: Final = 1024


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

    `kept`: the indexes of the good ones in the request;
    `errors`: the first 100 faults of the others; `batch` is None if none is good.
    """

    batch: Batch | None
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
        batch = decode_carefully(body, project, received_ns, ndjson)
    return batch


def decode_good_entries(
    body: bytes, project: ProjectId, received_ns: int, *, ndjson: bool
) -> Partial:
    """The good entries of a body, and what is wrong with the others. Of NDJSON a line that is no
    JSON is one of these. Raises InvalidBody."""
    raws = split_lines(body) if ndjson else split(body, ndjson)
    found = examine(raws, project, received_ns)
    kept = tuple(found.good)
    errors = sorted((*found.faults, *found.foreign), key=lambda error: error.index)
    return Partial(
        batch=_to_batch(list(found.good.values())) if kept else None,
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
    body: bytes, project: ProjectId, received_ns: int, ndjson: bool, *, briefly: bool = False
) -> Batch | None:
    """The batch, or None where only the careful way can tell. Of a large body some entries at a
    time: meanwhile no other thread runs. `briefly`: None as well where a body that is not large
    would take as long as one."""
    if len(body) <= _LARGE_BYTES:
        return _decode(body, project, received_ns, ndjson, _MOST_SINGLY if briefly else None)
    batches = []
    for piece in _slices(body, ndjson):
        batch = _decode(piece, project, received_ns, ndjson)
        if batch is None:  # cut within an entry, or with something in it that is not beyond doubt
            return _decode(body, project, received_ns, ndjson)
        batches.append(batch)
    return concatenate_batches(batches)


def _slices(body: bytes, ndjson: bool) -> Iterator[bytes]:
    """Bodies of some of its entries each. An array is cut where one entry seems to end and another
    to begin: if that is within an entry, what is before is no array, and no slice of entries."""
    between = _BETWEEN_LINES if ndjson else _BETWEEN_ENTRIES
    opening, closing = (b"", b"") if ndjson else (b"[", b"]")
    begin, before = 0, b""
    while True:
        # An entry is not longer than this as a rule, and meanwhile no other thread runs either.
        start = begin + _SLICE_BYTES
        cut = between.search(body, start, start + _LARGE_BYTES)
        if cut is None:
            break
        yield b"".join([before, body[begin : cut.start() + 1], closing])
        begin, before = cut.end() - 1, opening
    yield before + body[begin:]


def _decode(
    body: bytes,
    project: ProjectId,
    received_ns: int,
    ndjson: bool,
    most_singly: int | None = None,
) -> Batch | None:
    """As `decode_fast`, all at once. `most_singly`: timestamps that are read one by one."""
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
    if len(entries) == 1:
        return _one(entries[0], body, received_ns)
    return _several(entries, body, received_ns, most_singly)


def decode_singles(bodies: Sequence[bytes], project: ProjectId, received_ns: int) -> Batch | None:
    """The batch of at least one body, each of one entry; None where one of them is not beyond
    doubt."""
    one, _ = _fast_decoder(project)
    try:
        entries = [*map(one.decode, bodies)]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if len(entries) == 1:
        return _one(entries[0], bodies[0], received_ns)
    return _several(entries, b",".join(bodies), received_ns)


def _several(
    entries: list[Any], text: bytes, received_ns: int, most_singly: int | None = None
) -> Batch | None:
    """The batch of entries that were decoded from this text."""
    count = len(entries)
    try:
        ts = _timestamps([e.timestamp for e in entries], received_ns, most_singly)
    except (BadTimestamp, TooManyForms):
        return None
    is_ascii = text.isascii()
    join = join_ascii if is_ascii and b"\\u" not in text else join_texts
    messages = join([e.message for e in entries])
    sources = join_names([e.source for e in entries])
    tags = SEPARATOR.join([e.tags for e in entries])
    metas = SEPARATOR.join([e.meta for e in entries])
    # msgspec sees to UTF-8 in the strings that it makes, not in what it leaves raw, and of a member
    # that comes twice it leaves only the last.
    if (
        not (is_ascii or is_utf8(text))
        # In bytes: msgspec has counted characters.
        or (join is join_texts and is_any_longer(messages, count, limits.MAX_MESSAGE_BYTES))
        or not all(map(_is_tag_list, set(tags.split(SEPARATOR))))
        or not _are_metas_good(metas, count)
    ):
        return None
    levels = bytes([LEVEL_CODE[e.level] for e in entries])
    return Batch(count, ts, levels, messages, sources, tags, metas)


def _one(entry: Any, body: bytes, received_ns: int) -> Batch | None:
    """The batch of a single entry, decoded from this body: arrays and sets would cost more than
    all they check."""
    try:
        ts_ns = received_ns if entry.timestamp is UNSET else parse_timestamp(entry.timestamp)
    except ValueError:
        return None
    message, tags, meta = entry.message.encode(), bytes(entry.tags), bytes(entry.meta)
    if (
        not (body.isascii() or is_utf8(body))
        or len(message) > limits.MAX_MESSAGE_BYTES
        or not _is_tag_list(tags)
        or not _is_meta_good(meta)
    ):
        return None
    levels = _LEVEL_BYTES[entry.level]
    return Batch(1, np.array([ts_ns], np.int64), levels, message, entry.source.encode(), tags, meta)


def _timestamps(texts: list[str | UnsetType], received_ns: int, most_singly: int | None) -> Int64s:
    """int64[n]. Raises as `parse_timestamps` does."""
    if UNSET not in texts:
        return parse_timestamps(cast(list[str], texts), most_singly)
    out = np.full(len(texts), received_ns, np.int64)
    given = [index for index, text in enumerate(texts) if text is not UNSET]
    if given:
        out[given] = parse_timestamps([cast(str, texts[index]) for index in given], most_singly)
    return out


def _are_metas_good(metas: bytes, count: int) -> bool:
    """Whether all of at least one are what `_is_meta_good` wants."""
    if len(metas) > _FLAT_BYTES:  # for less, arrays would cost more than a look at each
        at = edges(metas, count)
        are_objects = np.frombuffer(metas, np.uint8).take(at[:-1]) == _OPENING_BRACE
        if are_objects.all() and int((at[1:] - at[:-1]).max()) <= _FLAT_BYTES:
            return True
    return all(map(_is_meta_good, metas.split(SEPARATOR)))


def _is_meta_good(meta: bytes) -> bool:
    """Whether it is an object, not too long, and could not nest too deeply. Brackets in strings
    count too: the careful way tells them apart."""
    return meta.startswith(b"{") and (
        len(meta) <= _FLAT_BYTES
        or (
            len(meta) <= limits.MAX_META_BYTES and meta.count(b"{") + meta.count(b"[") < MAX_NESTING
        )
    )


_tags_decoder: Final = msgspec.json.Decoder(list[str])


def _is_tag_list(text: bytes) -> bool:
    """A distinct tag list is looked at once, not once an entry."""
    if len(text) <= _FAST_TAG_LIST_BYTES:
        return _is_short_tag_list(text)
    return len(text) <= MAX_TAGS_BYTES and _holds_tags(text)


def _holds_tags(text: bytes) -> bool:
    try:
        tags = _tags_decoder.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return len(tags) <= limits.MAX_TAGS and all(0 < len(t) <= limits.MAX_TAG_CHARS for t in tags)


_is_short_tag_list: Final = functools.lru_cache(maxsize=_FAST_TAG_LISTS)(_holds_tags)


# ---------------------------------------------------------------- the careful way


def decode_carefully(body: bytes, project: ProjectId, received_ns: int, ndjson: bool) -> Batch:
    """As `decode_body`, and decides alone. Raises as it does."""
    found = examine(split(body, ndjson), project, received_ns)
    if found.faults:
        raise InvalidEntries(tuple(found.faults), found.total_faults)
    if found.foreign:
        raise ForeignProject(tuple(found.foreign))
    return _to_batch(list(found.good.values())) if found.good else EMPTY


def _to_batch(entries: Sequence[Parsed]) -> Batch:
    return Batch(
        count=len(entries),
        ts=np.array([e.ts_ns for e in entries], np.int64),
        levels=bytes([LEVEL_CODE[e.level] for e in entries]),
        messages=join_texts([e.message for e in entries]),
        sources=join_texts([e.source for e in entries]),
        tags=SEPARATOR.join([e.tags for e in entries]),
        metas=SEPARATOR.join([e.meta for e in entries]),
    )
