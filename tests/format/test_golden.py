"""Files as they were written when their format's version was made. See `tests/golden/README.md`."""

import itertools
import re
import struct
from pathlib import Path

import golden_values as golden
import pytest
from chunk_rows import DecodedChunk
from format_samples import PROJECT, rows_of
from golden_values import GOLDEN
from paged_values import PagedValue

from logd.format import pages, postings, segment, vocabulary, wal
from logd.format.body import decode_body
from logd.format.chunk import BY_TEMPLATE
from logd.format.chunk import VERSION as CHUNK_VERSION
from logd.format.directory import decode_row
from logd.format.part_table import Part
from logd.format.postings import CandidateBlocks, PostingList, PostingsIndex
from logd.format.time_steps import ZIGZAG
from logd.format.vocabulary import SOURCE, TAG_LIST, TEMPLATE, VocabularyIndex
from logd.format.wal_columns import decode_columns


def stored(kind: str) -> list[Path]:
    """The files of a kind, of all versions."""
    return sorted(GOLDEN.glob(f"{kind}.v*"))


def index_values(kind: str) -> list[Path]:
    """Those of the version that is read: one of another counts as missing."""
    return [path for path in stored(kind) if path.name == f"{kind}.v{pages.VERSION}"]


def newest(name: str) -> bytes:
    return (GOLDEN / name).read_bytes()


def chunks_of(data: bytes) -> list[DecodedChunk]:
    """The chunks of a segment file."""
    chunks, offset = [], segment.HEADER_BYTES
    while offset < len(data):
        chunks.append(DecodedChunk(data[offset:]))
        offset += chunks[-1].head.chunk_bytes
    return chunks


def encodings(chunk: DecodedChunk) -> dict[tuple[int, int], int]:
    return {key: part.encoding for key, part in chunk.head.parts.items()}


def test_each_format_has_a_golden_file_of_its_version() -> None:
    missing = [name for name in golden.FILES if not (GOLDEN / name).exists()]
    assert missing == [], "a new version: run tests/format/golden_values.py"


def test_each_golden_file_is_of_a_known_kind() -> None:
    kinds = {name.split(".")[0] for name in golden.FILES} | {"README"}
    assert {path.name.split(".")[0] for path in GOLDEN.iterdir()} == kinds


def test_a_segment_version_stands_for_one_chunk_version() -> None:
    """A program refuses a newer segment whole; a newer chunk in it would pass for damage."""
    pairs = [
        re.fullmatch(r"segment\.v(\d+)-chunk\.v(\d+)", path.name) for path in stored("segment")
    ]
    versions = sorted((int(pair[1]), int(pair[2])) for pair in pairs if pair)
    assert versions[-1] == (segment.VERSION, CHUNK_VERSION)
    assert len({of_segment for of_segment, _ in versions}) == len(versions) == len(pairs)


# ---------------------------------------------------------------- all versions are read


@pytest.mark.parametrize("path", stored("wal"), ids=lambda path: path.name)
def test_a_stored_wal_is_read(path: Path) -> None:
    data = path.read_bytes()
    project, first_seq, version = wal.decode_header(data)
    assert (project, first_seq) == (PROJECT, golden.FIRST_SEQ)
    frames = [frame for _, frame in wal.decode_frames(data, wal.HEADER_BYTES)]
    assert tuple(frames) == (golden.FRAMES_V1 if version == 1 else golden.FRAMES)


def test_the_bodies_of_the_first_wal_still_say_the_same() -> None:
    for frame, rows in zip(golden.FRAMES_V1, golden.FRAME_ROWS_V1, strict=True):
        ndjson = frame.form is wal.Form.NDJSON
        batch = decode_body(bytes(frame.body), PROJECT, frame.received_ns, ndjson=ndjson)
        assert rows_of(batch) == rows


def test_the_columns_of_a_stored_wal_still_say_the_same() -> None:
    for frame, rows in zip(golden.FRAMES, golden.FRAME_ROWS, strict=True):
        assert rows_of(decode_columns(frame.body, frame.count)) == rows


@pytest.mark.parametrize("path", stored("segment"), ids=lambda path: path.name)
def test_a_stored_segment_is_read(path: Path) -> None:
    data = path.read_bytes()
    header = segment.decode_header(data)
    assert (header.project, header.first_seq) == (PROJECT, golden.FIRST_SEQ)
    assert header.created_ns == golden.CREATED_NS
    first, second, *more = chunks_of(data)
    assert {chunk.head.version for chunk in (first, second, *more)} == {header.version}
    added = [golden.REPEATED_ROWS, golden.PAGED_ROWS, golden.CHOSEN_ROWS]
    added = added[: {1: 0, 2: 1}.get(header.version, len(added))]
    assert [tuple(chunk.rows) for chunk in more] == added
    for before, after in itertools.pairwise([second, *more]):
        assert after.head.first_seq == before.head.next_seq
    assert tuple(first.rows) == golden.ROWS
    assert tuple(first.records) == golden.RECORDS
    assert first.head.first_seq == golden.FIRST_SEQ
    assert first.head.level_counts == (2, 2, 2, 1)
    assert tuple(second.rows) == golden.MORE_ROWS
    assert second.records == []
    assert second.head.first_seq == first.head.next_seq


def parts_of(version: int) -> list[tuple[Part, int, int]]:
    """(kind, block, encoding) of all parts of the golden chunks of a version."""
    (path,) = (path for path in stored("segment") if path.name.endswith(f"-chunk.v{version}"))
    return [
        (Part(kind), block, part.encoding)
        for chunk in chunks_of(path.read_bytes())
        for (kind, block), part in chunk.head.parts.items()
    ]


def encodings_of(version: int, kind: Part) -> set[int]:
    return {encoding for known, _, encoding in parts_of(version) if known == kind}


def test_the_golden_chunks_use_every_part_and_every_encoding() -> None:
    parts = parts_of(CHUNK_VERSION)
    assert {kind for kind, _, _ in parts} == set(Part)
    assert encodings_of(CHUNK_VERSION, Part.TIMES) == {3, 6, 6 + ZIGZAG, 9, 9 + ZIGZAG}
    assert {encoding for kind, _, encoding in parts if kind != Part.TIMES} == {0}


def test_a_golden_chunk_has_templates_on_a_second_page() -> None:
    pages_of = [number for kind, number, _ in parts_of(CHUNK_VERSION) if kind == Part.TEMPLATES]
    assert max(pages_of) == 1


def test_a_golden_chunk_has_choices_and_a_column_beside_them() -> None:
    """Where all were 0, a reader that takes no notice of them would read the same."""
    (name,) = (name for name in golden.FILES if name.startswith("segment"))
    chunk = chunks_of(newest(name))[-1]
    assert {choice for block in chunk.stored_codes(Part.ROW_CHOICES) for choice in block} > {0, 1}
    assert (Part.SOURCE_CODES, 0) in chunk.raw
    assert (Part.LEVELS, 0) not in chunk.raw


def test_the_golden_chunks_of_version_2_use_every_encoding_of_theirs() -> None:
    """Nothing writes columns sorted by template any more: that they are read is seen here."""
    newer = {Part.CHOICES, Part.ROW_CHOICES, Part.SLOT_COUNTS, Part.META_SLOT_COUNTS}
    assert {kind for kind, _, _ in parts_of(2)} == set(Part) - newer
    assert encodings_of(2, Part.TIMES) == {3, 6 + ZIGZAG}
    assert encodings_of(2, Part.LEVELS) == {0, BY_TEMPLATE}


@pytest.mark.parametrize("path", index_values("vocabulary"), ids=lambda path: path.name)
def test_a_stored_vocabulary_is_searched(path: Path) -> None:
    index = VocabularyIndex(path.read_bytes())
    found = index.find(b"accepted")
    assert found is not None
    assert found.templates.tolist() == [0]
    assert index.find_prefix(b"pro").tag_lists.tolist() == [1]
    assert index.find_substring("户".encode()).templates.tolist() == []
    assert index.find_substring("用".encode()).tag_lists.tolist() == [2]
    assert index.counts(TEMPLATE).sum(axis=1).tolist() == [2, 2, 2, 1]
    assert index.counts(SOURCE).tolist() == [[2, 0], [0, 2], [2, 0], [0, 1]]
    assert index.counts(TAG_LIST).sum(axis=0).tolist() == [3, 2, 2]


@pytest.mark.parametrize("path", index_values("postings"), ids=lambda path: path.name)
def test_stored_postings_are_searched(path: Path) -> None:
    """The hash is part of the format: with another one these words would not be found."""
    index = PostingsIndex(path.read_bytes())
    words = {
        "user12": [0], "user7": [1], "10": [0, 1], "0": [0, 1], "1": [0], "254": [1], "2": [6],
        "用户7": [4], "09": [4], "30": [4], "w24": [5], "0123456789abcdef0123456789abcdef": [6],
    }  # fmt: skip
    for word, rows in words.items():
        found = index.find(word.encode())
        assert isinstance(found, CandidateBlocks)
        assert found.blocks.tolist() == sorted({row // 4 for row in rows})
    assert index.find(b"31") is None


@pytest.mark.parametrize("path", index_values("frequent-postings"), ids=lambda path: path.name)
def test_stored_postings_of_frequent_words_are_searched(path: Path) -> None:
    index = PostingsIndex(path.read_bytes())
    found = index.find(b"7ms")
    rows = [index for index, row in enumerate(golden.MORE_ROWS) if "7ms" in row.message]
    assert isinstance(found, PostingList)
    assert (found.count, found.rows.tolist(), found.certain) == (len(rows), rows[:1], True)
    assert not found.is_whole
    for row in range(len(golden.MORE_ROWS)):
        once = index.find(b"%d" % row)
        assert isinstance(once, CandidateBlocks)
        assert row // 64 in once.blocks.tolist()


OLD_INDEX_VALUES = [
    path
    for kind in ("vocabulary", "postings", "frequent-postings")
    for path in stored(kind)
    if path not in index_values(kind)
]


@pytest.mark.parametrize("path", OLD_INDEX_VALUES, ids=lambda path: path.name)
def test_a_stored_index_value_of_another_version_counts_as_missing(path: Path) -> None:
    """It is as it was written; that it is refused has its columns answer, until a reindex."""
    value = path.read_bytes()
    (version,) = struct.unpack_from("<H", value, 4)
    assert path.name.endswith(f".v{version}")
    assert version != pages.VERSION
    index = VocabularyIndex if path.name.startswith("vocabulary") else PostingsIndex
    with pytest.raises(ValueError, match="header"):
        index(value)


@pytest.mark.parametrize("path", stored("directory-row"), ids=lambda path: path.name)
def test_a_stored_directory_row_is_read(path: Path) -> None:
    assert decode_row(path.read_bytes()) == golden.DIRECTORY_ROW


# ---------------------------------------------------------------- the newest is still written


@pytest.mark.parametrize("name", ["wal.v2", "directory-row.v1"])
def test_what_is_not_compressed_is_written_to_the_byte(name: str) -> None:
    assert golden.FILES[name]() == newest(name)


def test_a_segment_is_written_with_the_same_bytes_in_its_frames() -> None:
    (name,) = (name for name in golden.FILES if name.startswith("segment"))
    old, new = newest(name), golden.FILES[name]()
    assert new[: segment.HEADER_BYTES] == old[: segment.HEADER_BYTES]
    for chunk, written in zip(chunks_of(old), chunks_of(new), strict=True):
        assert written.raw == chunk.raw
        assert list(written.raw) == list(chunk.raw)  # in the same order
        assert encodings(written) == encodings(chunk)


@pytest.mark.parametrize("kind", ["vocabulary", "postings", "frequent-postings"])
def test_index_values_are_written_with_the_same_bytes_in_their_pages(kind: str) -> None:
    magic = vocabulary.MAGIC if kind == "vocabulary" else postings.MAGIC
    (name,) = (name for name in golden.FILES if name.startswith(kind))
    old, new = PagedValue(magic, newest(name)), PagedValue(magic, golden.FILES[name]())
    assert new.keys.tolist() == old.keys.tolist()
    for index in range(len(old)):
        assert new.page(index) == old.page(index)
    if magic == postings.MAGIC:
        assert new.head == old.head
