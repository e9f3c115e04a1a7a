"""Variables out of a block into dictionaries, and back among those that stayed."""

from collections.abc import Iterable
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logd.format.block_variables import BlockVariables, ClassSizes, Kept, Variables
from logd.format.coded_values import (
    FIRST_OCTET,
    OCTETS,
    ValueCoder,
    coded_classes,
    decode_codes,
    decode_dictionaries,
)

FEWEST = 256
WORDS = 0x27
Block = dict[int, list[bytes]]
"""The variables of each class; -1 stands for those of plain templates."""


def variables_of(block: Block) -> Variables:
    words = [word for kind in by_order(block) for word in block[kind]]
    return Variables(b"".join(words), np.array([len(word) for word in words], np.int32))


def classes_of(block: Block) -> ClassSizes:
    kinds = [kind for kind in by_order(block) if kind >= 0]
    sizes = np.array([len(block[kind]) for kind in kinds], np.int64)
    return ClassSizes(np.array(kinds, np.uint8), sizes)


def by_order(block: Block) -> list[int]:
    return sorted(block, key=lambda kind: kind % 256)


def addresses(texts: Iterable[str]) -> Block:
    octets = zip(*[text.encode().split(b".") for text in texts], strict=True)
    return {FIRST_OCTET + place: list(words) for place, words in enumerate(octets)}


class Coded:
    """Blocks, taken apart."""

    def __init__(self, blocks: list[Block]) -> None:
        coder = ValueCoder()
        self.blocks = blocks
        self.kept = [coder.take(variables_of(block), classes_of(block)) for block in blocks]
        pieces, codes = coder.encode()
        self.dictionaries = b"".join(pieces)
        self.codes = [b"".join(of_block) for of_block in codes]

    def stored(self, index: int) -> Variables:
        """What of a block is not in dictionaries."""
        data, lengths = variables_of(self.blocks[index])
        ends = [0, *np.cumsum(lengths).tolist()]
        kept = self.kept[index].spans
        return Variables(
            b"".join([data[ends[begin] : ends[end]] for begin, end in kept]),
            np.concatenate([lengths[begin:end] for begin, end in kept]).astype(np.uint8),
        )

    def joined(self, index: int) -> Variables:
        """A block as it is read."""
        if not self.dictionaries:
            assert self.codes == []
            return self.stored(index)
        dictionaries = decode_dictionaries(self.dictionaries)
        of = classes_of(self.blocks[index])
        classes = coded_classes(of, self.kept[index].are_coded, dictionaries)
        coded = [some for each in classes for some in each.variables()]
        load = partial(decode_codes, self.codes[index], classes)
        return BlockVariables(Kept(*self.stored(index)), coded, load).joined()

    def assert_whole(self) -> None:
        for index, block in enumerate(self.blocks):
            expected, found = variables_of(block), self.joined(index)
            assert found.data == expected.data
            assert found.lengths.tolist() == expected.lengths.tolist()

    def taken(self, index: int) -> int:
        """How many variables of a block are in dictionaries."""
        return len(variables_of(self.blocks[index]).lengths) - len(self.stored(index).lengths)


words = st.from_regex(rb"[a-zA-Z_]{1,3}[0-9]{1,14}", fullmatch=True)
octets = st.one_of(st.integers(0, 255).map(str), st.sampled_from(["256", "999", "01", "000", "0"]))


@st.composite
def blocks(draw: st.DrawFn) -> Block:
    block: Block = {}
    for kind in draw(st.sets(st.sampled_from([0x03, 0x18, 0x25, WORDS, 0x2F, -1]))):
        pool = draw(st.lists(words, min_size=1, max_size=6))
        count = draw(st.sampled_from([1, FEWEST - 1, FEWEST, 3 * FEWEST]))
        block[kind] = [pool[index % len(pool)] for index in range(count)]
    if draw(st.booleans()):
        pool_ = draw(st.lists(st.tuples(octets, octets, octets, octets), min_size=1, max_size=4))
        count = draw(st.sampled_from([1, FEWEST, 2 * FEWEST]))
        block |= addresses(".".join(pool_[index % len(pool_)]) for index in range(count))
    return block


@given(st.lists(blocks(), min_size=1, max_size=3))
def test_what_was_taken_comes_back_in_its_place(some: list[Block]) -> None:
    Coded(some).assert_whole()


def repeated(count: int, pool: int) -> list[bytes]:
    return [b"u%06d" % (index % pool) for index in range(count)]


@pytest.mark.parametrize(
    ("block", "taken"),
    [
        ({WORDS: repeated(FEWEST, 20)}, FEWEST),
        ({WORDS: repeated(FEWEST - 1, 20)}, 0),  # too few
        ({WORDS: repeated(800, 700)}, 800),
        ({WORDS: repeated(800, 701)}, 0),  # too many differ
        ({0x06: [b"123456"] * 300}, 0),  # numbers
        ({0x24: [b"u123"] * 300}, 0),  # short ones
        ({WORDS: [*repeated(400, 20), b"u" * 15 + b"7"]}, 401),
        ({WORDS: [*repeated(400, 20), b"u" * 16 + b"7"]}, 0),  # one is long
        (addresses(f"10.0.0.{index % 256}" for index in range(300)), 300 * OCTETS),
        (addresses(["255.255.255.255"] * 300), 300 * OCTETS),
        (addresses(["0.0.0.0"] * 300), 300 * OCTETS),
        (addresses([*["10.0.0.1"] * 300, "10.0.0.256"]), 0),
        (addresses([*["10.0.0.1"] * 300, "10.0.0.01"]), 0),
        (addresses([*["10.0.0.1"] * 300, "10.0.0.x1"]), 0),
        (addresses([*["10.0.0.1"] * 300, "1000.0.0.1"]), 0),
    ],
)  # fmt: skip
def test_what_is_coded(block: Block, taken: int) -> None:
    coded = Coded([block])
    assert coded.taken(0) == taken
    coded.assert_whole()


def test_a_block_that_does_not_fit_keeps_its_variables() -> None:
    fits = addresses(["10.0.0.1", "10.0.0.2"] * 200) | {WORDS: repeated(300, 9), -1: [b"plain1"]}
    odd = addresses(["10.0.0.1", "10.0.0.300"] * 200) | {WORDS: repeated(300, 9)}
    few = {WORDS: repeated(3, 9)}
    coded = Coded([fits, odd, few, {}, fits])
    assert [coded.taken(index) for index in range(5)] == [1900, 300, 0, 0, 1900]
    coded.assert_whole()


def test_only_so_much_waits_for_the_end_of_the_chunk() -> None:
    block = {WORDS: repeated(1 << 16, 20_000)}
    coded = Coded([block] * 8)
    taken = [coded.taken(index) for index in range(8)]
    assert taken[0] == 1 << 16
    assert taken[-1] == 0
    coded.assert_whole()


def test_damage_is_noticed() -> None:
    block = addresses(f"10.0.0.{index % 256}" for index in range(300)) | {WORDS: repeated(300, 9)}
    coded = Coded([block])
    for size in range(len(coded.dictionaries)):
        with pytest.raises(ValueError, match=r"dictionaries|buffer|size"):
            decode_dictionaries(coded.dictionaries[:size])
    with pytest.raises(ValueError, match="more bytes"):
        decode_dictionaries(coded.dictionaries + b"\0")
    dictionaries, (codes,) = decode_dictionaries(coded.dictionaries), coded.codes
    of, are_coded = classes_of(block), coded.kept[0].are_coded
    classes = coded_classes(of, are_coded, dictionaries)
    for size in range(len(codes)):
        with pytest.raises(ValueError, match="codes"):
            decode_codes(codes[:size], classes)
    with pytest.raises(ValueError, match="more bytes"):
        decode_codes(codes + b"\0", classes)
    with pytest.raises(IndexError):
        decode_codes(b"\xff" + codes[1:], classes)
    larger = coded_classes(ClassSizes(of.classes, of.sizes + 1), are_coded, dictionaries)
    with pytest.raises(ValueError, match="codes"):
        decode_codes(codes, larger)
    assert are_coded.tolist() == [True] * (1 + OCTETS)
    for lost in range(2):
        with pytest.raises(ValueError, match="without a dictionary"):
            coded_classes(of, are_coded, [dictionaries[lost]])
    for flags in ([True, True, False, True, True], [True, True, True, True, False]):
        with pytest.raises(ValueError, match=r"dictionary|missing"):
            coded_classes(of, np.array(flags), dictionaries)
