import functools

import numpy as np
import pytest
from format_samples import flipped, truncated, unhurried
from hypothesis import given
from hypothesis import strategies as st

from logd.format.postings import (
    FREQUENT,
    PostingsIndex,
    encode_postings,
)
from logd.format.word_hashes import HASH_BITS, hash_word, hash_words

Occurrences = list[tuple[bytes, int]]
"""(word, row) of each variable, in any order."""

WORDS = st.one_of(
    st.sampled_from([b"1", b"2", b"user12", b"12345678", b"123456789", "用户7".encode()]),
    st.builds(
        lambda letter, length, end: letter * length + end,
        st.sampled_from([b"a", b"0"]),
        st.sampled_from([1, 7, 8, 9, 15, 16, 17, 24, 255, 256, 257, 8191]),
        st.sampled_from([b"", b"1", b"2"]),
    ),
)
OCCURRENCES = st.lists(st.tuples(WORDS, st.integers(0, 65_535)), max_size=40)


def value_of(occurrences: Occurrences) -> bytes:
    lengths = np.array([len(word) for word, _ in occurrences], np.int64)
    rows = np.array([row for _, row in occurrences], np.int64)
    return encode_postings(b"".join([word for word, _ in occurrences]), lengths, rows)


def rows_of(occurrences: Occurrences, hashed: int) -> list[int]:
    """The rows that hold any word of the hash, by brute force."""
    return sorted({row for word, row in occurrences if hash_of(word) == hashed})


@functools.cache
def hash_of(word: bytes) -> int:
    return hash_word(word)


def found(index: PostingsIndex, word: bytes) -> list[int]:
    postings = index.find(word)
    return [] if postings is None else postings.rows.tolist()


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
@given(OCCURRENCES)
def test_look_ups_agree_with_brute_force(occurrences: Occurrences) -> None:
    index = PostingsIndex(value_of(occurrences))
    for word in {*(word for word, _ in occurrences), b"absent1", b"a" * 300}:
        assert found(index, word) == rows_of(occurrences, hash_of(word))


def test_a_chunk_without_variables_has_no_postings() -> None:
    index = PostingsIndex(value_of([]))
    assert index.find(b"1") is None


def test_the_hashes_of_many_words_are_those_of_each() -> None:
    words = [b"1", b"ab12", b"12345678", b"x" * 9, b"y" * 8192]
    lengths = np.array([len(word) for word in words], np.int64)
    hashes = hash_words(b"".join(words), np.cumsum(lengths) - lengths, lengths)
    assert [int(h) >> (64 - HASH_BITS) for h in hashes] == [hash_word(word) for word in words]


@given(st.binary(min_size=1, max_size=40))
def test_the_hash_is_that_of_the_document(word: bytes) -> None:
    """`docs/format/index.md`, one step after the other."""
    a, b, whole = 0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93, 2**64 - 1
    first, *further = (
        int.from_bytes(word[start : start + 8], "little") for start in range(0, len(word), 8)
    )
    h = first * a & whole
    h ^= h >> 32
    for x in further:
        h = (h ^ x) * b & whole
        h ^= h >> 29
    h = h * b & whole
    h ^= h >> 32
    h = h * a & whole
    assert hash_word(word) == h >> 40


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
        occurrences = [(one, 1), (b"between1", 2), (other, 3), (one, 4)]
        index = PostingsIndex(value_of(occurrences))
        for word in (one, other):
            postings = index.find(word)
            assert postings is not None
            assert not postings.certain
            assert postings.rows.tolist() == rows_of(occurrences, hashed) == [1, 3, 4]
        beside = index.find(b"between1")
        assert beside is not None
        assert beside.certain


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
        postings = PostingsIndex(value_of([(long, 1), (short, 2), (long, 3)])).find(long)
        assert postings is not None
        assert not postings.certain


def test_one_word_alone_leaves_its_hash_certain() -> None:
    for one, other, *_ in list(words_by_hash().values())[:20]:
        index = PostingsIndex(value_of([(one, 1), (one, 5), (one, 5)]))
        for word in (one, other):  # one look at row 1 tells which of them all rows hold
            postings = index.find(word)
            assert postings is not None
            assert postings.certain
            assert postings.rows.tolist() == [1, 5]


def test_exactly_the_shared_hashes_are_uncertain() -> None:
    groups = words_by_hash()
    words = [word for group in groups.values() for word in group]
    words += [b"w%d" % number for number in range(0, 30_000, 3)]
    occurrences = [(word, row % 65_536) for row, word in enumerate(words)]
    index = PostingsIndex(value_of(occurrences))
    for word in words[:1500]:
        postings = index.find(word)
        assert postings is not None
        assert postings.certain == (hash_word(word) not in groups)


def test_look_ups_that_trust_only_what_is_certain_are_exact() -> None:
    """As a search does it: one text decides for a certain list, each text for any other."""
    words = [word for group in words_by_hash().values() for word in group]
    present = words[::2] + words[1::4]
    occurrences = [(word, row) for row, word in enumerate(present * 2)]
    texts = [word for word, _ in occurrences]
    index = PostingsIndex(value_of(occurrences))
    for word in words:
        postings = index.find(word)
        rows = [] if postings is None else postings.rows.tolist()
        if postings is not None and postings.certain:
            rows = rows if texts[rows[0]] == word else []
        else:
            rows = [row for row in rows if texts[row] == word]
        assert rows == [row for row, text in enumerate(texts) if text == word]


@pytest.mark.parametrize("count", [1, 1023, 1024, 1025, 2500])
def test_every_word_of_many_pages_is_found(count: int) -> None:
    occurrences = [(b"id%d" % number, number % 65_536) for number in range(count)]
    index = PostingsIndex(value_of(occurrences))
    for word, row in occurrences:
        assert row in found(index, word)
    absent = [b"no%d" % number for number in range(200)]
    known = {hash_word(word) for word, _ in occurrences}
    for word in absent:
        assert bool(found(index, word)) == (hash_word(word) in known)


@pytest.mark.parametrize("count", [1, FREQUENT - 1, FREQUENT, FREQUENT + 1, 65_536])
def test_of_a_frequent_word_the_first_row_and_the_number_are_kept(count: int) -> None:
    rows = list(range(65_536 - count, 65_536))
    others = [(b"id%d" % number, number) for number in range(1500)]
    occurrences = [*others, *((b"x1", row) for row in reversed(rows)), (b"x1", rows[0])]
    index = PostingsIndex(value_of(occurrences))
    postings = index.find(b"x1")
    assert postings is not None
    assert postings.count == count
    assert postings.is_whole == (count < FREQUENT)
    assert postings.rows.tolist() == (rows if count < FREQUENT else rows[:1])
    assert postings.certain
    for word, row in others:
        assert row in found(index, word)


def test_frequent_words_leave_the_lists_beside_them_alone() -> None:
    words = [b"n%d" % number for number in range(1200)]
    counts = [1 + 97 * number % 300 for number in range(1200)]
    occurrences = [(w, row) for w, count in zip(words, counts, strict=True) for row in range(count)]
    index = PostingsIndex(value_of(occurrences))
    by_hash: dict[int, int] = {}
    for word, count in zip(words, counts, strict=True):
        by_hash[hash_word(word)] = max(by_hash.get(hash_word(word), 0), count)
    for word in words:
        postings = index.find(word)
        assert postings is not None
        assert postings.count == by_hash[hash_word(word)]
        whole = list(range(postings.count))
        assert postings.rows.tolist() == (whole if postings.is_whole else [0])


def test_a_frequent_hash_of_two_words_is_uncertain() -> None:
    one, other = next(iter(words_by_hash().values()))[:2]
    occurrences = [(one if row % 2 else other, row) for row in range(2 * FREQUENT)]
    postings = PostingsIndex(value_of(occurrences)).find(one)
    assert postings is not None
    assert (postings.count, postings.is_whole, postings.certain) == (2 * FREQUENT, False, False)


def small_value() -> bytes:
    one, other = next(iter(words_by_hash().values()))[:2]
    return value_of([(one, 1), (other, 2), (b"id7", 3), (b"id8", 300), (b"id7", 70)])


def look(value: bytes) -> object:
    index = PostingsIndex(value)
    one, other = next(iter(words_by_hash().values()))[:2]
    return [found(index, word) for word in (one, other, b"id7", b"id8")]


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
    occurrences = [(one, 5), (b"once1", 5), *between, (one, 6), (other, 9)]
    index = PostingsIndex(value_of(occurrences))
    for word in (one, other):
        assert found(index, word) == [5, 6, 9]
        postings = index.find(word)
        assert postings is not None
        assert not postings.certain
    assert found(index, b"once1") == [5]
    for digit in range(7):
        postings = index.find(b"%d" % digit)
        assert postings is not None
        assert (postings.count, postings.certain) == (4096, True)
        assert postings.rows.tolist() == [0]
