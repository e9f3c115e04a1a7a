"""The golden files: what each format's bytes were when its version was made.

Run as a program it writes the files that are missing in `tests/golden/`, and never touches one
that is there. See `tests/golden/README.md`.
"""

import sys
from collections.abc import Callable
from pathlib import Path

from format_samples import PROJECT, Row, batch_of

from logd.entry import Seq
from logd.format import chunk, directory, pages, segment, wal
from logd.format.chunk import BuiltChunk, IdempotencyRecord
from logd.format.directory import ChunkRow
from logd.format.wal import Form, Frame, Idempotency
from logd.format.wal_columns import encode_columns

GOLDEN = Path(__file__).parents[1] / "golden"
FIRST_SEQ = Seq(4096)
CREATED_NS = 1_700_000_000_987_654_321

_RETRY = Idempotency(bytes(range(16)), bytes(range(16, 32)))

_START = b'{"projectId":"%s","level":' % PROJECT.encode()

FRAMES_V1 = (
    Frame(FIRST_SEQ, 1, 1_700_000_000_000_000_001, Form.JSON,
          _START + b'"INFO","message":"one","source":"api"}'),
    Frame(Seq(4097), 2, 1_700_000_000_000_000_002, Form.NDJSON,
          _START + '"WARN","message":"用户","source":"api","tags":["a", "b"]}\n'.encode()
          + _START + b'"ERROR","message":"","source":"s","timestamp":"2023-11-14 22:13:20.5"}\r\n'),
    Frame(Seq(4099), 1, -1, Form.JSON,
          b"[" + _START + b'"DEBUG","message":"\\u0000","source":"s","meta":{"n": 1e400}}]',
          _RETRY),
)  # fmt: skip

FRAME_ROWS_V1 = (
    [Row(1_700_000_000_000_000_001, 1, "one", "api")],
    [
        Row(1_700_000_000_000_000_002, 2, "用户", "api", b'["a", "b"]'),
        Row(1_700_000_000_500_000_000, 3, "", "s"),
    ],
    [Row(-1, 0, "\0", "s", b"[]", b'{"n": 1e400}')],
)
"""What the bodies of the frames say."""

FRAME_ROWS = (
    *FRAME_ROWS_V1,
    [
        Row(int.from_bytes(wal.MARKER, "little"), 1, "a time that would be a marker", "s"),
        Row(1_700_000_000_000_000_003, 0, "another", "s"),
    ],
)

FRAMES = tuple(
    Frame(
        Seq(FIRST_SEQ + sum(map(len, FRAME_ROWS[:index]))),
        len(rows),
        1_700_000_000_000_000_000 + index,
        Form.COLUMNS,
        encode_columns(batch_of(rows)),
        _RETRY if index == 2 else None,
    )
    for index, rows in enumerate(FRAME_ROWS)
)

ROWS = tuple(
    Row(
        ts_ns=1_700_000_000_000_000_000 + 1_000_000 * (7 * index % 11),
        level=index % 4,
        message=message,
        source=f"api-{index % 2}",
        tags=(b"[]", b'["prod","Zone 7"]', b'["\\u7528"]')[index % 3],
        meta=b'{"id": %d}' % index,
    )
    for index, message in enumerate([
        "Accepted password for user12 from 10.0.0.1",
        "Accepted password for USER7 from 10.0.0.254",
        "",
        "no digit, no variable",
        "用户7 logged in\0 at\n09:30",
        "w24 collides with nothing here",
        "id 0123456789abcdef0123456789abcdef seen 2 times",
    ])
)  # fmt: skip
"""Seven entries: two blocks of four, times that fall, texts of all kinds, metas as they came."""

MORE_ROWS = tuple(
    Row(
        ts_ns=1_700_000_001_000_000_000 + 5_000 * index,
        level=3 if failed else 1,
        message=f"query {index} {'failed' if failed else 'took 7ms'}",
        source="db",
        meta=b'{"id": %d, "user":"u%d", "ms":[%d]}' % (index, index % 7, index * index % 100),
    )
    for index in range(500)
    for failed in [index * index * 7919 % 1009 % 3 == 0]
)
"""Times that rise, levels that follow the template, metas of one shape."""

REPEATED_ROWS = tuple(
    Row(
        ts_ns=1_700_000_002_000_000_000 + 1_000 * index,
        level=1,
        message=f"user{index % 11:04d} from {index % 3}.{index % 256}.0.{255 - index % 5}",
        source="auth",
        meta=b'{"session":"s%06d","ms":%d}' % (index * index * 7919 % 1009 % 250, index),
    )
    for index in range(700)
)
"""Words and addresses that come again and again."""

PAGED_ROWS = tuple(
    Row(
        ts_ns=(1_700_000_003 + (2 * index if index < 700 else 1_400 - index % 5)) * 1_000_000_000,
        level=(index // 1_100 + (index % 16 == 15)) % 4,
        message="".join("abcdefghijklmnop"[number >> shift & 15] for shift in (8, 4, 0)),
        source=f"host {index % 300}",
        meta=(b'{"id": %d, "user":"u%d"}' if index % 3 else b'{"id": %d, "by":%d}')
        % (index * index % 997, index % 7),
    )
    for index in range(1_400)
    for number in [index % 1_100]
)
"""More templates than a page has, most in one row and some in two, so that no column follows from
them; times that fall in one block and not in the other; codes of two bytes."""

CHOSEN_ROWS = tuple(
    Row(
        ts_ns=1_700_000_009_000_000_000 + 1_000_000 * index,
        level=3 if index % 10 == 7 else index % 3,
        message=("connect", "query", "close")[index % 3] + f" {index}",
        source=f"host {index}",
        tags=b'["slow"]' if index % 25 == 3 else b"[]",
    )
    for index in range(300)
)
"""Levels and tags that mostly follow from the template, and a source that never does."""

RECORDS = (IdempotencyRecord(_RETRY, Seq(4099), 3, -1),)


DIRECTORY_ROW = ChunkRow(
    segment_seq=FIRST_SEQ,
    segment_number=1,
    offset=56,
    head_bytes=320,
    chunk_bytes=1000,
    first_seq=FIRST_SEQ,
    count=7,
    min_ts_ns=1_700_000_000_000_000_000,
    max_ts_ns=1_700_000_000_010_000_000,
    level_counts=(2, 2, 2, 1),
    source_bytes=500,
    records=1,
    last_record_ns=-1,
)


def built_chunk() -> BuiltChunk:
    return chunk.build_chunk(batch_of(ROWS), FIRST_SEQ, RECORDS, block_entries=4)


def second_chunk() -> BuiltChunk:
    first_seq = Seq(FIRST_SEQ + len(ROWS))
    return chunk.build_chunk(batch_of(MORE_ROWS), first_seq, block_entries=64)


def third_chunk() -> BuiltChunk:
    first_seq = Seq(FIRST_SEQ + len(ROWS) + len(MORE_ROWS))
    return chunk.build_chunk(batch_of(REPEATED_ROWS), first_seq, block_entries=400)


def fourth_chunk() -> BuiltChunk:
    first_seq = Seq(FIRST_SEQ + len(ROWS) + len(MORE_ROWS) + len(REPEATED_ROWS))
    return chunk.build_chunk(batch_of(PAGED_ROWS), first_seq, block_entries=700)


def fifth_chunk() -> BuiltChunk:
    earlier = (ROWS, MORE_ROWS, REPEATED_ROWS, PAGED_ROWS)
    first_seq = Seq(FIRST_SEQ + sum(map(len, earlier)))
    return chunk.build_chunk(batch_of(CHOSEN_ROWS), first_seq, block_entries=128)


def _wal() -> bytes:
    frames = b"".join(buffer for frame in FRAMES for buffer in wal.encode_frame(frame))
    return wal.encode_header(PROJECT, FIRST_SEQ) + frames


def _segment() -> bytes:
    header = segment.encode_header(PROJECT, FIRST_SEQ, CREATED_NS)
    chunks = [built_chunk(), second_chunk(), third_chunk(), fourth_chunk(), fifth_chunk()]
    return header + b"".join([each.data for each in chunks])


FILES: dict[str, Callable[[], bytes]] = {
    f"wal.v{wal.VERSION}": _wal,
    f"segment.v{segment.VERSION}-chunk.v{chunk.VERSION}": _segment,
    f"vocabulary.v{pages.VERSION}": lambda: built_chunk().vocabulary,
    f"postings.v{pages.VERSION}": lambda: built_chunk().postings,
    f"frequent-postings.v{pages.VERSION}": lambda: second_chunk().postings,
    "directory-row.v1": lambda: directory.encode_row(DIRECTORY_ROW),
}


def write_missing() -> list[str]:
    """The names of the files written."""
    missing = [name for name in FILES if not (GOLDEN / name).exists()]
    for name in missing:
        (GOLDEN / name).write_bytes(FILES[name]())
    return missing


if __name__ == "__main__":
    sys.stdout.write("".join(f"written: {name}\n" for name in write_missing()))
