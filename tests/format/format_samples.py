"""Entries to encode: rows, batches of them, hostile texts, and damage to bytes."""

import itertools
import json
from collections.abc import Iterator, Sequence

import msgspec
import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from logd.entry import ProjectId
from logd.format.body import Batch
from logd.format.separated import SEPARATOR, edges, join_texts

PROJECT = ProjectId("0b0e7c1e-8f0a-4c53-9d6b-0a3f6c1d2e4f")
OTHER_PROJECT = ProjectId("ffffffff-0000-4000-8000-000000000001")

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1

unhurried = settings(deadline=None)
costly = settings(deadline=None, max_examples=40)
"""For whole chunks and bodies: most of the time goes into making them up."""


class Row(msgspec.Struct, frozen=True):
    """One entry. `level`: its code; `tags` and `meta`: JSON as it came."""

    ts_ns: int = 0
    level: int = 1
    message: str = "message"
    source: str = "source"
    tags: bytes = b"[]"
    meta: bytes = b"{}"


def batch_of(rows: Sequence[Row]) -> Batch:
    """The batch of at least one row."""
    return Batch(
        count=len(rows),
        ts=np.array([row.ts_ns for row in rows], np.int64),
        levels=bytes([row.level for row in rows]),
        messages=join_texts([row.message for row in rows]),
        sources=join_texts([row.source for row in rows]),
        tags=SEPARATOR.join([row.tags for row in rows]),
        metas=SEPARATOR.join([row.meta for row in rows]),
    )


def rows_of(batch: Batch) -> list[Row]:
    texts = [
        _texts(blob, batch.count)
        for blob in (batch.messages, batch.sources, batch.tags, batch.metas)
    ]
    return [
        Row(ts_ns, level, message.decode(), source.decode(), tags, meta)
        for ts_ns, level, message, source, tags, meta in zip(
            batch.ts.tolist(), batch.levels, *texts, strict=True
        )
    ]


def _texts(blob: bytes, count: int) -> list[bytes]:
    at = edges(blob, count).tolist()
    return [blob[start : stop - 1] for start, stop in itertools.pairwise(at)]


# ---------------------------------------------------------------- hostile texts

unicode_texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)

_PIECES = [
    "\0", "\n", "\r\n", " ", "", ".", "-", "_", "/", "a", "Z", "0", "9", "user12", "10.0.0.1",
    "x" * 255, "9" * 256, "\u0080", "\u00ff", "é", "É", "ß", "İ", "用户", "用户7", "😀", "\ufeff",
    "\ufffe", "\U0010ffff", "_1", "1_", "a1b2", "0x7f", "\x7f", "\x1b[31m", "\\", '"', "{}",
]  # fmt: skip
"""What could be mistaken for something else: separators and placeholders (FE and FF occur in
UTF-16, never in UTF-8), word edges, digits in and beside words, escapes."""

pieced_texts = st.lists(st.sampled_from(_PIECES), max_size=12).map("".join)
long_words = st.builds(
    lambda start, letter, length: (start + letter * length)[:8192],
    st.sampled_from(["", "1", "a", "é"]),
    st.sampled_from(["a", "7", "_"]),
    st.sampled_from([1, 7, 8, 9, 15, 16, 17, 255, 256, 257, 8191, 8192]),
)
messages = st.one_of(pieced_texts, unicode_texts, long_words, st.just(""))
sources = st.one_of(st.sampled_from(["api", "Worker-7", "用户", "a b"]), unicode_texts).map(
    lambda text: text[:256] or "s"
)


# ---------------------------------------------------------------- JSON as callers write it

_blanks = st.sampled_from(["", "", "", " ", "\n", "\t", "\r\n  "])


def _written(text: str, style: int) -> str:
    """A JSON string: as short as may be, as ASCII, or with every character escaped."""
    if style == 2:
        units = text.encode("utf-16-be").hex()
        return '"' + "".join("\\u" + units[i : i + 4] for i in range(0, len(units), 4)) + '"'
    return json.dumps(text, ensure_ascii=style == 1)


json_strings = st.builds(_written, st.one_of(pieced_texts, unicode_texts), st.integers(0, 2))
json_numbers = st.sampled_from([
    "0", "-0", "0.0", "1e400", "-1.5E-10", "9007199254740993", "9" * 300,
    "0.1000000000000000055511151231257827", "1E+2",
])  # fmt: skip


def _spaced(pieces: Sequence[str], blank: str) -> str:
    return blank + blank.join(pieces) + blank


def _array(items: Sequence[str], blank: str) -> str:
    return "[" + _spaced([",".join(items)], blank) + "]"


def _object(members: Sequence[tuple[str, str]], blank: str) -> str:
    written = [_spaced([key, ":", value], blank) for key, value in members]
    return "{" + ",".join(written) + (blank if not written else "") + "}"


_keys = st.one_of(st.sampled_from(['"a"', '"a"', '"user"', '"\\u0061"', '""']), json_strings)
"""Keys repeat, also in another spelling."""


def json_objects(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.builds(_object, st.lists(st.tuples(_keys, values), max_size=4), _blanks)


json_values = st.recursive(
    st.one_of(json_strings, json_numbers, st.sampled_from(["true", "false", "null"])),
    lambda inner: st.one_of(
        st.builds(_array, st.lists(inner, max_size=3), _blanks), json_objects(inner)
    ),
    max_leaves=8,
)
metas = json_objects(json_values).map(str.encode)
tag_lists = st.builds(
    lambda tags, style, blank: _array([_written(tag, style) for tag in tags], blank).encode(),
    st.lists(sources.map(lambda text: text[:128]), max_size=4),
    st.integers(0, 2),
    _blanks,
)

rows = st.builds(
    Row,
    ts_ns=st.one_of(
        st.integers(INT64_MIN, INT64_MAX),
        st.sampled_from([INT64_MIN, INT64_MAX, 0, -1, 1_700_000_000_000_000_000]),
    ),
    level=st.integers(0, 3),
    message=messages,
    source=sources,
    tags=tag_lists,
    meta=metas,
)


# ---------------------------------------------------------------- damage


def flipped(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Every byte, once with its lowest bit and once with all its bits flipped."""
    for position, byte in enumerate(data):
        for mask in (0x01, 0xFF):
            yield position, data[:position] + bytes([byte ^ mask]) + data[position + 1 :]


def truncated(data: bytes) -> Iterator[bytes]:
    """Every proper beginning."""
    for size in range(len(data)):
        yield data[:size]


def rice_coded(numbers: Sequence[int], low_bits: int) -> bytes:
    """`docs/format/index.md`, one bit after the other."""
    low = [number >> bit & 1 for number in numbers for bit in range(low_bits)]
    rest = [bit for number in numbers for bit in [*[0] * (number >> low_bits), 1]]
    return _packed(low) + _packed(rest)


def _packed(bits: Sequence[int]) -> bytes:
    whole = sum(bit << at for at, bit in enumerate(bits))
    return whole.to_bytes((len(bits) + 7) // 8, "little")
