import bisect
import functools
import itertools
import struct

import numpy as np
import pytest
from format_samples import flipped, rice_coded, truncated, unhurried
from hypothesis import given
from hypothesis import strategies as st
from paged_values import PagedValue

from logd.format.columns import from_planes
from logd.format.postings import (
    FREQUENT,
    MAGIC,
    RARE,
    SPARE_BITS,
    CandidateBlocks,
    PostingList,
    PostingsBuilder,
    PostingsIndex,
    encode_postings,
)
from logd.format.word_hashes import HASH_BITS, hash_word, hash_words

Occurrences = list[tuple[bytes, int]]
"""(word, row) of each variable, in any order."""
Kept = tuple[list[int], int] | list[int] | None
"""What the index says about a word: (rows, count) where its hash is listed, else blocks."""

BLOCK_ENTRIES = [1, 3, 64, 2048, 4096]
COUNTS = [1, 2, RARE - 1, RARE, RARE + 1, 100, FREQUENT - 1, FREQUENT, FREQUENT + 1]
"""Lengths of lists, of all kinds and at the edges between them."""

WORDS = st.one_of(
    st.sampled_from([b"1", b"2", b"user12", b"12345678", b"123456789", "用户7".encode()]),
    st.builds(
        lambda letter, length, end: letter * length + end,
        st.sampled_from([b"a", b"0"]),
        st.sampled_from([1, 7, 8, 9, 15, 16, 17, 24, 255, 256, 257, 8191]),
        st.sampled_from([b"", b"1", b"2"]),
    ),
)
SINGLES = st.lists(st.tuples(WORDS, st.integers(0, 65_535)), max_size=40)


def spread(word: bytes, count: int, first: int, step: int = 211) -> Occurrences:
    """A word in `count` rows, a prime number apart, and in the last of them twice."""
    rows = [(first + step * number) % 65_536 for number in range(count)]
    return [(word, row) for row in [*rows, rows[-1]]]


REPEATED = st.lists(
    st.builds(
        spread,
        WORDS,
        st.sampled_from(COUNTS),
        st.integers(0, 65_535),
        st.sampled_from([1, 31, 211, 65_521]),
    ),
    max_size=4,
)
OCCURRENCES = st.builds(lambda some, more: sum(more, some), SINGLES, REPEATED)


def value_of(occurrences: Occurrences, block_entries: int = 4096) -> bytes:
    lengths = np.array([len(word) for word, _ in occurrences], np.int64)
    rows = np.array([row for _, row in occurrences], np.int64)
    data = b"".join([word for word, _ in occurrences])
    return encode_postings(data, lengths, rows, block_entries)


def rows_of(occurrences: Occurrences, hashed: int) -> list[int]:
    """The rows that hold any word of the hash, by brute force."""
    return sorted({row for word, row in occurrences if hash_of(word) == hashed})


def rows_by_hash(occurrences: Occurrences) -> dict[int, list[int]]:
    """The same of all hashes."""
    out: dict[int, set[int]] = {}
    for word, row in occurrences:
        out.setdefault(hash_of(word), set()).add(row)
    return {hashed: sorted(rows) for hashed, rows in sorted(out.items())}


@functools.cache
def hash_of(word: bytes) -> int:
    """`docs/format/index.md`, one step after the other."""
    a, b, whole = 0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93, 2**64 - 1
    h = int.from_bytes(word[:8], "little") * a & whole
    h ^= h >> 32
    for start in range(8, len(word), 8):
        h = (h ^ int.from_bytes(word[start : start + 8], "little")) * b & whole
        h ^= h >> 29
    h = h * b & whole
    h ^= h >> 32
    return (h * a & whole) >> 40


@functools.cache
def page_hashes() -> int:
    """How many hashes a page has that is not the last."""
    occurrences = [(b"id%d" % number, 1) for number in range(20_000)]
    hashes = list(rows_by_hash(occurrences))
    keys = PagedValue(MAGIC, value_of(occurrences)).keys.tolist()
    (count,) = {
        hashes.index(key) - hashes.index(before) for before, key in itertools.pairwise(keys)
    }
    return count


def words_in_order(count: int) -> list[bytes]:
    """As many words, of different hashes, in the order of these."""
    words = {hash_of(b"id%d" % number): b"id%d" % number for number in range(count + count // 50)}
    return [words[hashed] for hashed in sorted(words)[:count]]


class Expected:
    """What the index is to keep of a chunk, by brute force."""

    def __init__(self, occurrences: Occurrences, block_entries: int = 4096) -> None:
        self.rows = rows_by_hash(occurrences)
        self.keys = list(self.rows)[:: page_hashes()]
        rare = {hashed: rows for hashed, rows in self.rows.items() if len(rows) <= RARE}
        self.shift = shift_of(len(rare))
        self._blocks: dict[tuple[int, int], set[int]] = {}
        for hashed, rows in rare.items():
            blocks = {row // block_entries for row in rows}
            self._blocks.setdefault(self._place(hashed), set()).update(blocks)

    def _place(self, hashed: int) -> tuple[int, int]:
        """(page, shortened hash)"""
        return bisect.bisect_right(self.keys, hashed), hashed >> self.shift

    def of(self, word: bytes) -> Kept:
        rows = self.rows.get(hash_of(word), [])
        if len(rows) > RARE:
            return rows if len(rows) < FREQUENT else rows[:1], len(rows)
        return sorted(self._blocks.get(self._place(hash_of(word)), ())) or None


def shift_of(rare: int) -> int:
    """How far the hashes are shortened where so many of a chunk are rare."""
    needed = next(bits for bits in range(HASH_BITS + 1) if 2**bits >= rare)
    return HASH_BITS - min(HASH_BITS, needed + SPARE_BITS)


def found(index: PostingsIndex, word: bytes) -> Kept:
    postings = index.find(word)
    if postings is None:
        return None
    if isinstance(postings, CandidateBlocks):
        return list(postings.blocks)
    assert postings.is_whole == (postings.count < FREQUENT)
    return postings.rows.tolist(), postings.count


def is_certain(index: PostingsIndex, word: bytes) -> bool:
    """Of a word whose hash is listed."""
    postings = index.find(word)
    assert isinstance(postings, PostingList)
    return postings.certain


@functools.cache
def words_by_hash() -> dict[int, list[bytes]]:
    """Of 60,000 words, those that share their hash with another: about a hundred pairs."""
    words = [b"w%d" % number for number in range(30_000)]
    words += [b"long-enough-to-be-hashed-in-steps-%d" % number for number in range(30_000)]
    lengths = np.array([len(word) for word in words], np.int64)
    hashes = hash_words(b"".join(words), np.cumsum(lengths) - lengths, lengths)
    short = (hashes >> np.uint64(64 - HASH_BITS)).tolist()
    groups: dict[int, list[bytes]] = {}
    for word, hashed in zip(words, short, strict=True):
        groups.setdefault(hashed, []).append(word)
    return {hashed: group for hashed, group in groups.items() if len(group) > 1}


@unhurried
@given(OCCURRENCES, st.sampled_from(BLOCK_ENTRIES))
def test_look_ups_agree_with_brute_force(occurrences: Occurrences, block_entries: int) -> None:
    index = PostingsIndex(value_of(occurrences, block_entries))
    expected = Expected(occurrences, block_entries)
    for word in {*(word for word, _ in occurrences), b"absent1", b"a" * 300}:
        assert found(index, word) == expected.of(word)


@unhurried
@given(OCCURRENCES, st.sampled_from(BLOCK_ENTRIES))
def test_no_entry_of_a_word_is_missed(occurrences: Occurrences, block_entries: int) -> None:
    index = PostingsIndex(value_of(occurrences, block_entries))
    by_hash = rows_by_hash(occurrences)
    rows_of_word: dict[bytes, set[int]] = {}
    for word, row in occurrences:
        rows_of_word.setdefault(word, set()).add(row)
    for word, rows in rows_of_word.items():
        postings = index.find(word)
        if isinstance(postings, CandidateBlocks):
            blocks = postings.blocks.tolist()
            assert {row // block_entries for row in rows} <= set(blocks)
            assert blocks == sorted(set(blocks))
        else:
            assert isinstance(postings, PostingList)
            assert postings.count == len(by_hash[hash_of(word)]) > RARE
            assert rows <= set(postings.rows.tolist()) or not postings.is_whole


def test_a_chunk_without_variables_has_no_postings() -> None:
    index = PostingsIndex(value_of([]))
    assert index.find(b"1") is None


@pytest.mark.parametrize("occurrences", [[], [(b"1", 70), (b"2", 5), (b"1", 130)]])
def test_how_the_words_came_makes_no_difference(occurrences: Occurrences) -> None:
    """A check of the index compares bytes: in blocks, some of which have none, or all at once."""
    builder = PostingsBuilder(64)
    nothing = np.zeros(0, np.int64)
    builder.add(b"", nothing, nothing)
    for word, row in occurrences:
        builder.add(word, np.array([len(word)]), np.array([row]))
        builder.add(b"", nothing, nothing)
    assert builder.encode() == value_of(occurrences, 64)


def test_the_hashes_of_many_words_are_those_of_each() -> None:
    words = [b"1", b"ab12", b"12345678", b"x" * 9, b"y" * 8192]
    lengths = np.array([len(word) for word in words], np.int64)
    hashes = hash_words(b"".join(words), np.cumsum(lengths) - lengths, lengths)
    assert [int(h) >> (64 - HASH_BITS) for h in hashes] == [hash_word(word) for word in words]


@given(st.binary(min_size=1, max_size=40))
def test_the_hash_is_that_of_the_document(word: bytes) -> None:
    assert hash_word(word) == hash_of(word)


def test_what_follows_a_word_does_not_change_its_hash() -> None:
    data = b"user12user12\xff\xff\xff\xff"
    starts, lengths = np.array([0, 6, 0]), np.array([6, 6, 12])
    hashes = hash_words(data, starts, lengths).tolist()
    assert hashes[0] == hashes[1]
    assert hashes[0] != hashes[2]


def test_hashes_collide() -> None:
    assert len(words_by_hash()) > 20


def test_two_words_of_one_hash_make_it_uncertain() -> None:
    for hashed, (one, other, *_) in list(words_by_hash().items())[:20]:
        occurrences = [(one, 1), (b"between1", 2), (other, 3), (one, 4), (other, 5), (one, 9)]
        occurrences += [(b"between1", row) for row in range(10, 17)]
        index = PostingsIndex(value_of(occurrences, 2))
        assert rows_of(occurrences, hashed) == [1, 3, 4, 5, 9]
        for word in (one, other):
            assert found(index, word) == ([1, 3, 4, 5, 9], 5)
            assert not is_certain(index, word)
        assert is_certain(index, b"between1")


def test_of_two_rare_words_of_one_hash_there_are_the_blocks_of_both() -> None:
    for one, other, *_ in list(words_by_hash().values())[:20]:
        occurrences = [(one, 1), (other, 30), (one, 4), (other, 5)]
        value = value_of(occurrences, 2)
        for word in (one, other):
            assert found(PostingsIndex(value), word) == [0, 2, 15]
        assert len(PagedValue(MAGIC, value).head) == 8  # where the text decides, nothing is shared


def colliding_beginnings() -> list[tuple[bytes, bytes]]:
    """Beginnings of one long word that share their hash."""
    word = np.random.default_rng(11).integers(48, 58, 8192, np.uint8).tobytes()
    lengths = np.arange(1, len(word) + 1)
    hashes = (hash_words(word, 0 * lengths, lengths) >> np.uint64(64 - HASH_BITS)).tolist()
    first: dict[int, int] = {}
    pairs = [
        (first.setdefault(h, size), size) for h, size in zip(hashes, range(1, 8193), strict=True)
    ]
    return [(word[:short], word[:long]) for short, long in pairs if short != long]


def test_a_word_and_its_beginning_may_share_a_hash() -> None:
    pairs = colliding_beginnings()
    assert pairs
    for short, long in pairs:
        index = PostingsIndex(value_of([(short, 20), *spread(long, RARE, 1)]))
        assert not is_certain(index, long)


@pytest.mark.parametrize("count", [RARE + 1, FREQUENT])
def test_one_word_alone_leaves_its_hash_certain(count: int) -> None:
    rows = list(range(1, 4 * count, 4))
    for one, other, *_ in list(words_by_hash().values())[:20]:
        occurrences = [(one, row) for row in [*rows, rows[1]]]
        index = PostingsIndex(value_of(occurrences, 4))
        for word in (one, other):  # one look at row 1 tells which of them all rows hold
            assert is_certain(index, word)
            assert found(index, word) == Expected(occurrences, 4).of(one)


def test_exactly_the_shared_hashes_are_uncertain() -> None:
    groups = words_by_hash()
    words = [word for group in groups.values() for word in group]
    words += [b"w%d" % number for number in range(0, 30_000, 3)]
    occurrences = [
        (word, (row + 997 * number) % 65_536)
        for row, word in enumerate(words)
        for number in range(RARE + 1)
    ]
    index = PostingsIndex(value_of(occurrences))
    for word in words[:1500]:
        assert is_certain(index, word) == (hash_of(word) not in groups)


def test_of_rare_hashes_it_does_not_matter_whether_they_are_shared() -> None:
    """Where all words of a hash are rare nothing is said of it, where it is listed it is."""
    groups = words_by_hash()
    often = set(list(groups)[::3])
    occurrences: Occurrences = []
    for hashed, (one, other, *_) in groups.items():
        occurrences += [(one, 7), *spread(other, RARE if hashed in often else 1, 1)]
    head = PagedValue(MAGIC, value_of(occurrences)).head
    listed = [hashed for hashed, rows in rows_by_hash(occurrences).items() if len(rows) > RARE]
    assert set(listed) == often
    assert np.frombuffer(head, "<u4", offset=8).tolist() == listed


def searched(
    index: PostingsIndex, texts: list[bytes], word: bytes, block_entries: int
) -> list[int]:
    """The rows of a word, as a search finds them: blocks are looked through; one text decides for
    a certain list, each text for any other."""
    postings = index.find(word)
    if postings is None:
        return []
    if isinstance(postings, CandidateBlocks):
        begins = [block_entries * block for block in postings.blocks.tolist()]
        rows = [begin + within for begin in begins for within in range(block_entries)]
        return [row for row in rows if texts[row : row + 1] == [word]]
    rows = list(postings.rows)
    if postings.certain and texts[rows[0]] != word:
        return []
    if postings.certain and postings.is_whole:
        return rows
    asked = rows if postings.is_whole else range(len(texts))
    return [row for row in asked if texts[row] == word]


@pytest.mark.parametrize("block_entries", BLOCK_ENTRIES)
def test_look_ups_that_trust_only_what_is_certain_are_exact(block_entries: int) -> None:
    words = [word for group in words_by_hash().values() for word in group]
    present = words[::2] + words[1::4]
    texts = [*present, *present, *(20 * words[::3]), *(290 * [*words[:3], words[6]]), *present]
    index = PostingsIndex(value_of(list(zip(texts, range(len(texts)), strict=True)), block_entries))
    expected: dict[bytes, list[int]] = {}
    for row, text in enumerate(texts):
        expected.setdefault(text, []).append(row)
    for word in words:
        assert searched(index, texts, word, block_entries) == expected.get(word, [])


@pytest.mark.parametrize(("pages", "more"), [(0, 1), (1, -1), (1, 0), (1, 1), (2, 0), (2, 700)])
def test_every_word_of_many_pages_is_found(pages: int, more: int) -> None:
    words = words_in_order(pages * page_hashes() + more)
    occurrences = [(word, 13 * number) for number, word in enumerate(words)]
    value = value_of(occurrences, 64)
    assert PagedValue(MAGIC, value).keys.tolist() == list(map(hash_of, words[:: page_hashes()]))
    expected = Expected(occurrences, 64)
    index = PostingsIndex(value)
    for word in [*words, *(b"no%d" % number for number in range(200))]:
        assert found(index, word) == expected.of(word)


def test_more_hashes_than_are_encoded_at_once() -> None:
    """At both ends of each page are lists of all kinds."""
    words = words_in_order(67_000)
    occurrences = [(word, 7919 * number % 65_536) for number, word in enumerate(words)]
    begins = range(page_hashes(), len(words) - 4, page_hashes())
    edges = [begin + shift for begin in begins for shift in range(-4, 4)]
    for place in edges:
        occurrences += spread(words[place], (RARE + 4, FREQUENT + 4, 1)[place % 3], place)
    expected = Expected(occurrences)
    index = PostingsIndex(value_of(occurrences))
    for place in [*edges, *range(0, len(words), 37), len(words) - 1]:
        assert found(index, words[place]) == expected.of(words[place])


@pytest.mark.parametrize("block_entries", BLOCK_ENTRIES)
@pytest.mark.parametrize("count", [*COUNTS, 65_536])
def test_how_often_a_word_comes_decides_what_is_kept(count: int, block_entries: int) -> None:
    rows = list(range(65_536 - count, 65_536))
    others = [(b"id%d" % number, number) for number in range(1500)]
    occurrences = [*others, *((b"x1", row) for row in reversed(rows)), (b"x1", rows[0])]
    index = PostingsIndex(value_of(occurrences, block_entries))
    if count > RARE:
        assert is_certain(index, b"x1")
        assert found(index, b"x1") == (rows if count < FREQUENT else rows[:1], count)
    expected = Expected(occurrences, block_entries)
    for word, _ in [*others, (b"x1", 0)]:
        assert found(index, word) == expected.of(word)


@pytest.mark.parametrize("block_entries", [64, 2048, 4096])
def test_the_blocks_of_a_rare_word_are_exactly_those_of_its_rows(block_entries: int) -> None:
    last = 65_536 // block_entries - 1
    edge = block_entries
    lists = [
        ([0], [0]),
        ([edge - 1], [0]),
        ([edge], [1]),
        ([65_535], [last]),
        ([edge - 1, edge], [0, 1]),
        ([0, 65_535], [0, last]),
        ([*range(edge, edge + RARE)], [1]),
        ([*range(edge - 2, edge + RARE - 2)], [0, 1]),
        ([edge * number for number in range(RARE)], list(range(RARE))),
        (
            [edge * (last - number) + 1 for number in range(RARE)],
            list(range(last - RARE + 1, last + 1)),
        ),
    ]
    occurrences = [(b"r%d" % number, row) for number, (rows, _) in enumerate(lists) for row in rows]
    assert len({hash_of(word) >> shift_of(len(lists)) for word, _ in occurrences}) == len(lists)
    index = PostingsIndex(value_of(occurrences, block_entries))
    for number, (_, blocks) in enumerate(lists):
        assert found(index, b"r%d" % number) == blocks


@pytest.mark.parametrize("block_entries", [64, 2048, 4096])
def test_lists_of_all_kinds_lie_beside_each_other(block_entries: int) -> None:
    """In many pages, in no order."""
    counts = [COUNTS[number * 7919 % 1009 % len(COUNTS)] for number in range(600)]
    counts += [1 + number % 3 for number in range(4400)]
    occurrences: Occurrences = []
    for number, count in enumerate(counts):
        occurrences += spread(b"n%d" % number, count, 97 * number)
    expected = Expected(occurrences, block_entries)
    value = value_of(occurrences, block_entries)
    assert len(PagedValue(MAGIC, value)) > 2
    index = PostingsIndex(value)
    for number in range(len(counts)):
        word = b"n%d" % number
        assert found(index, word) == expected.of(word)


@pytest.mark.parametrize(
    "counts",
    [
        (1, RARE + 1, FREQUENT),
        (RARE + 1, 1, FREQUENT),
        (RARE, 1, RARE + 1),
        (RARE + 1, RARE + 2, 1),
    ],
)
def test_each_page_may_have_lists_of_one_kind_only(counts: tuple[int, int, int]) -> None:
    words = words_in_order(2 * page_hashes() + 100)
    occurrences: Occurrences = []
    for number, word in enumerate(words):
        occurrences += spread(word, counts[number // page_hashes()], 11 * number)
    expected = Expected(occurrences)
    index = PostingsIndex(value_of(occurrences))
    for word in words:
        assert found(index, word) == expected.of(word)


@pytest.mark.parametrize("block_entries", [1, 64, 4096])
def test_words_that_are_absent_are_seldom_looked_for(block_entries: int) -> None:
    """Where a word that is there has the same shortened hash; of as many as a power of two it is
    one of eight."""
    words = words_in_order(8192)
    occurrences = [(word, 8 * number) for number, word in enumerate(words)]
    expected = Expected(occurrences, block_entries)
    index = PostingsIndex(value_of(occurrences, block_entries))
    absent = [b"no%d" % number for number in range(4000)]
    kept = [found(index, word) for word in absent]
    assert kept == [expected.of(word) for word in absent]
    candidates = sum(some is not None for some in kept)
    assert candidates == pytest.approx(len(absent) / 2**SPARE_BITS, rel=0.2)


@pytest.mark.parametrize("rare", [0, 1, 2, 3, 4, 5, 8, 9, 1024, 1025])
def test_the_head_says_how_far_hashes_are_shortened(rare: int) -> None:
    often = spread(b"often1", RARE + 1, 0, 100)
    words = [word for word in words_in_order(1100) if word != b"often1"][:rare]
    value = value_of([*often, *((word, 1) for word in words)], 64)
    blocks, shift = struct.unpack("<II", PagedValue(MAGIC, value).head)
    assert blocks == 400 // 64 + 1
    assert shift == shift_of(rare) == HASH_BITS - SPARE_BITS - (max(rare, 1) - 1).bit_length()


def test_no_hash_is_shortened_where_almost_all_are_there() -> None:
    assert shift_of(2**21 + 1) == shift_of(2**24) == 0


def test_a_page_is_what_the_document_says() -> None:
    """`docs/format/index.md`: the header, three columns of planes, and the numbers."""
    occurrences = [
        *spread(b"once1", 1, 65_535),
        *spread(b"rare1", RARE, 300),
        *spread(b"listed1", RARE + 1, 70),
        *spread(b"listed2", FREQUENT - 1, 5, 256),
        *spread(b"often1", FREQUENT, 40_000, 1),
    ]
    by_hash = rows_by_hash(occurrences)
    paged = PagedValue(MAGIC, value_of(occurrences, 64))
    (key,) = paged.keys.tolist()
    page = paged.page(0)
    n, k, m, *widths, low_bits = struct.unpack_from("<3I4B", page)
    columns, at = [], 16
    for count, width in zip((n, n, m), widths, strict=True):
        columns.append(from_planes(page[at : at + count * width], count, np.uint32).tolist())
        at += count * width
    gaps, less, rows = columns
    assert key == next(iter(by_hash))
    listed = {hashed: each for hashed, each in by_hash.items() if len(each) > RARE}
    assert gaps == steps_of([[hashed - key for hashed in listed]])
    assert less == [len(each) - 1 for each in listed.values()]
    blocks, shift = struct.unpack("<II", paged.head)
    assert (blocks, shift) == (1024, HASH_BITS - SPARE_BITS - 1)
    set_of_numbers = {
        ((hashed >> shift) - (key >> shift)) * blocks + row // 64
        for hashed, each in by_hash.items()
        for row in each
        if len(each) <= RARE
    }
    assert k == len(set_of_numbers)
    assert page[at:] == rice_coded(steps_of([sorted(set_of_numbers)]), low_bits)
    assert rows == steps_of(
        [each if len(each) < FREQUENT else each[:1] for each in listed.values()]
    )


def steps_of(lists: list[list[int]]) -> list[int]:
    """Of each the first item as it is, then differences."""
    return [step for each in lists for step in np.diff(each, prepend=0).tolist()]


def test_a_frequent_hash_of_two_words_is_uncertain() -> None:
    one, other = next(iter(words_by_hash().values()))[:2]
    occurrences = [(one if row % 2 else other, row) for row in range(2 * FREQUENT)]
    index = PostingsIndex(value_of(occurrences))
    assert found(index, one) == ([0], 2 * FREQUENT)
    assert not is_certain(index, one)


def small_value() -> bytes:
    one, other = next(iter(words_by_hash().values()))[:2]
    some = [(one, 1), (other, 2), (b"id7", 3), (b"id8", 300), (b"id7", 70)]
    return value_of([*some, *spread(b"id9", 20, 5), *spread(b"id10", 300, 7)], 64)


def look(value: bytes) -> object:
    index = PostingsIndex(value)
    one, other = next(iter(words_by_hash().values()))[:2]
    return [found(index, word) for word in (one, other, b"id7", b"id8", b"id9", b"id10")]


def test_the_small_value_has_lists_of_all_kinds() -> None:
    rare: list[Kept] = [[0], [0], [0, 1], [4]]
    assert look(small_value()) == [*rare, (list(range(5, 4200, 211)), 20), ([7], 300)]


def test_every_truncation_is_detected() -> None:
    for value in truncated(small_value()):
        with pytest.raises(ValueError, match="paged value"):
            look(value)


def test_every_flipped_byte_is_detected() -> None:
    for _, value in flipped(small_value()):
        with pytest.raises(ValueError, match="paged value"):
            look(value)


def test_words_far_from_each_other_share_a_hash_too() -> None:
    """More words than are looked at together: one of a pair comes first, the other last."""
    one, other = next(words for words in words_by_hash().values() if len(words) == 2)
    between = [(b"%d" % (row % 7), row % 4096) for row in range(600_000)]
    occurrences = [(one, 5), (b"once1", 5), *between, *((one, row) for row in range(6, 10))]
    occurrences.append((other, 11))
    index = PostingsIndex(value_of(occurrences, 4))
    for word in (one, other):
        assert found(index, word) == ([5, 6, 7, 8, 9, 11], 6)
        assert not is_certain(index, word)
    assert found(index, b"once1") == [1]
    for digit in range(7):
        assert found(index, b"%d" % digit) == ([0], 4096)
        assert is_certain(index, b"%d" % digit)
