"""What a chunk gives the index, against a loop over its rows."""

import json
import re

import numpy as np
import pytest
from chunk_rows import DecodedChunk
from format_samples import Row, batch_of, costly, rows
from hypothesis import given
from hypothesis import strategies as st

from logd.entry import Seq
from logd.format.chunk import build_chunk
from logd.format.postings import RARE, CandidateBlocks, PostingsIndex
from logd.format.vocabulary import SOURCE, TAG_LIST, TEMPLATE, VocabularyIndex
from logd.words import fold, split_words

ROWS = st.lists(rows, min_size=1, max_size=12)


def words_of(*texts: str) -> set[str]:
    return {fold(word) for text in texts for word in split_words(text)}


def words_by_field(row: Row) -> tuple[set[str], set[str], set[str]]:
    return words_of(row.message), words_of(row.source), words_of(*json.loads(row.tags))


class IndexedChunk:
    """A chunk and the two index values that were built with it."""

    def __init__(self, some: list[Row], block_entries: int) -> None:
        built = build_chunk(batch_of(some), Seq(0), block_entries=block_entries)
        chunk = DecodedChunk(built.data)
        self.rows = some
        self.block_entries = built.head.block_entries
        self.template_codes = chunk.template_codes.tolist()
        self.source_codes = codes_in_order([row.source.encode() for row in some])
        self.tag_codes = codes_in_order([row.tags for row in some])
        self.vocabulary = VocabularyIndex(built.vocabulary)
        self.postings = PostingsIndex(built.postings)

    def holding(self, word: str) -> tuple[set[int], set[int], set[int]]:
        """The rows whose message, source and tags hold the folded word, by the index."""
        found = self.vocabulary.find(word.encode())
        templates, sources, tag_lists = (
            (set(), set(), set())
            if found is None
            else (set(found.templates), set(found.sources), set(found.tag_lists))
        )
        return (
            rows_with(self.template_codes, templates) | self._variable(word),
            rows_with(self.source_codes, sources),
            rows_with(self.tag_codes, tag_lists),
        )

    def _variable(self, word: str) -> set[int]:
        postings = self.postings.find(word.encode()) if re.search("[0-9]", word) else None
        if postings is None:
            return set()
        if isinstance(postings, CandidateBlocks):
            return self._rare(word, postings.blocks.tolist())
        listed = postings.rows.tolist()
        if postings.certain and word not in words_of(self.rows[listed[0]].message):
            return set()
        if postings.certain and postings.is_whole:
            return set(listed)
        rows = listed if postings.is_whole else range(len(self.rows))
        holding = {row for row in rows if word in words_of(self.rows[row].message)}
        assert len(holding) == postings.count or not postings.certain
        return holding

    def _rare(self, word: str, blocks: list[int]) -> set[int]:
        """The blocks are looked through."""
        near = [row for row in range(len(self.rows)) if row // self.block_entries in blocks]
        holding = {row for row in near if word in words_of(self.rows[row].message)}
        assert len(holding) <= RARE
        return holding


def codes_in_order(texts: list[bytes]) -> list[int]:
    numbers: dict[bytes, int] = {}
    return [numbers.setdefault(text, len(numbers)) for text in texts]


def rows_with(codes: list[int], wanted: set[int]) -> set[int]:
    return {row for row, code in enumerate(codes) if code in wanted}


@costly
@given(ROWS, st.sampled_from([1, 4, 4096]))
def test_the_index_finds_each_word_in_exactly_the_rows_that_hold_it(
    some: list[Row], block_entries: int
) -> None:
    chunk = IndexedChunk(some, block_entries)
    fields = [words_by_field(row) for row in some]
    every = set().union(*(words for row in fields for words in row))
    for word in {*every, "absent", "absent7"}:
        message, source, tags = chunk.holding(word)
        assert message == {row for row, words in enumerate(fields) if word in words[0]}
        assert source == {row for row, words in enumerate(fields) if word in words[1]}
        assert tags == {row for row, words in enumerate(fields) if word in words[2]}


@costly
@given(ROWS)
def test_counts_are_those_of_the_levels_of_each_text(some: list[Row]) -> None:
    chunk = IndexedChunk(some, 4096)
    kinds = {
        TEMPLATE: chunk.template_codes,
        SOURCE: chunk.source_codes,
        TAG_LIST: chunk.tag_codes,
    }
    for kind, codes in kinds.items():
        expected = np.zeros((4, max(codes) + 1), np.int64)
        for row, code in zip(some, codes, strict=True):
            expected[row.level, code] += 1
        assert chunk.vocabulary.counts(kind).tolist() == expected.tolist()


@pytest.mark.parametrize("block_entries", [64, 256, 4096])
def test_numbers_are_found_however_often_they_come(block_entries: int) -> None:
    some = [
        Row(message=f"status {200 if row % 3 else 404} of {row} by w{row % 30} on h{row % 60}")
        for row in range(900)
    ]
    chunk = IndexedChunk(some, block_entries)
    assert chunk.holding("200")[0] == {row for row in range(900) if row % 3} | {200}
    assert chunk.holding("404")[0] == {row for row in range(900) if not row % 3} | {404}
    assert chunk.holding("w7")[0] == set(range(7, 900, 30))
    assert chunk.holding("h7")[0] == set(range(7, 900, 60))
    assert chunk.holding("7")[0] == {7}
    assert chunk.holding("7000")[0] == set()


@pytest.mark.parametrize(("block_bytes", "block_entries"), [(1 << 20, 4096), (1 << 15, 512)])
def test_the_blocks_of_the_index_are_those_of_the_chunk(
    block_bytes: int, block_entries: int
) -> None:
    """Also where blocks have fewer entries than were asked for."""
    some = [Row(message=f"{'x' * 40} once{row}") for row in range(5000)]
    built = build_chunk(batch_of(some), Seq(0), block_bytes=block_bytes)
    assert built.head.block_entries == block_entries
    index = PostingsIndex(built.postings)
    for row in range(0, 5000, 7):
        postings = index.find(b"once%d" % row)
        assert isinstance(postings, CandidateBlocks)
        assert row // block_entries in postings.blocks.tolist()


def test_words_of_two_tags_do_not_touch() -> None:
    chunk = IndexedChunk([Row(tags=b'["a","b"]'), Row(tags=b'["ab"]')], 4096)
    assert chunk.holding("ab")[2] == {1}
    assert chunk.holding("a")[2] == {0}


def test_tags_are_indexed_as_they_read_not_as_they_are_written() -> None:
    chunk = IndexedChunk([Row(tags=b'["\\u0041\\u0062"]'), Row(tags=b'["a\\nb"]')], 4096)
    assert chunk.holding("ab")[2] == {0}
    assert chunk.holding("b")[2] == {1}


def test_words_are_found_in_any_case() -> None:
    chunk = IndexedChunk([Row(message="ERROR User12 ÉTÉ3", source="API")], 4096)
    for word in ("error", "user12", "été3"):
        assert chunk.holding(word)[0] == {0}
    assert chunk.holding("api")[1] == {0}
