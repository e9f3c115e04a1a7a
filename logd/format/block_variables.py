"""The variables of a block as they are stored, by their places in slot order (`slot_order.py`).

Most stand in the block's data, one behind the other. Those of some classes are codes of values that
the chunk has once (`coded_values.py`): a search looks for its word among the values, and then only
for their codes.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from logd.format.running_sums import STRETCH, sums_before

_WIDTHS: Final = (4, 8)  # bytes: rows that are numbers are taken many times as quickly
_FEW: Final = 256
_UPPER: Final = 32  # what a letter in upper case lacks

Bools = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]
Int64s = npt.NDArray[np.int64]
Codes = npt.NDArray[np.integer[Any]]
UInts = npt.NDArray[np.unsignedinteger[Any]]


class Variables(NamedTuple):
    """Variables in slot order: their bytes, and int[variables] the length of each."""

    data: bytes
    lengths: Codes


class ClassSizes(NamedTuple):
    """Of a block, uint8[c] and int64[c]: its classes, ascending, and the variables of each."""

    classes: Bytes
    sizes: Int64s


class Values:
    """Texts by code. `planes`: uint8[width, n], the first byte of each, then the second ones, and
    so on; zeros behind the end of a text."""

    def __init__(self, planes: Bytes) -> None:
        self._planes = planes

    def __len__(self) -> int:
        return int(self._planes.shape[1])

    def text(self, code: int) -> bytes:
        return self._planes[:, code].tobytes().rstrip(b"\0")

    def texts(self) -> Iterator[bytes]:
        return map(self.text, range(len(self)))

    @cached_property
    def lengths(self) -> Bytes:
        """uint8[n]: of each text."""
        lengths: Bytes = np.count_nonzero(self._planes, axis=0).astype(np.uint8)
        return lengths

    @cached_property
    def _items(self) -> npt.NDArray[Any]:
        """The texts side by side, a row or a number each."""
        width, count = self._planes.shape
        wide = self._wide
        rows = np.zeros((count, wide), np.uint8)
        rows[:, :width] = self._planes.T
        return rows.view(f"u{wide}").reshape(-1) if wide in _WIDTHS else rows

    @property
    def _wide(self) -> int:
        """Bytes of an item."""
        width = len(self._planes)
        return next((wide for wide in _WIDTHS if width <= wide), width)

    def expanded(self, codes: UInts) -> Variables:
        """The texts of these codes, one behind the other."""
        padded = self._items.take(codes, axis=0).tobytes()
        return Variables(padded.translate(None, b"\0"), self.lengths.take(codes))

    def beginning_with(self, word: bytes, *, whole: bool) -> Bools:
        """bool[n]: which are the word, or begin with it; in ASCII, its letters in lower case."""
        width, count = self._planes.shape
        if len(word) > width:
            return np.zeros(count, np.bool_)
        ends_there = whole and len(word) < width
        fits: Bools = self._planes[len(word)] == 0 if ends_there else np.ones(count, np.bool_)
        for plane, byte in zip(self._planes, word, strict=False):
            equal = plane == byte
            if chr(byte).isalpha():
                equal |= plane == byte - _UPPER
            fits &= equal
        return fits

    @property
    def size_bytes(self) -> int:
        """Memory that it takes, about, when all of it is known."""
        return 500 + self._planes.nbytes + (self._wide + 1) * len(self)


class CodedVariables(NamedTuple):
    """Variables of a class that are codes, so many from a place on."""

    begin: int
    size: int
    values: Values


class Kinds(NamedTuple):
    """Of a block the classes of which some variables are kept, and the class of each of those
    coded."""

    kept: frozenset[int]
    coded: list[int]


class Kept:
    """Variables that stand in a block's data. `before`: what their lengths add up to before each
    stretch of them, and in the end, so that where one begins takes the sum of one stretch. Raises
    ValueError where the lengths do not add up to the data."""

    __slots__ = ("before", "data", "lengths")

    def __init__(self, data: bytes, lengths: Codes) -> None:
        self.data = data
        self.lengths = lengths
        self.before = sums_before(lengths)
        if self.before[-1] != len(data):
            raise ValueError("the lengths do not add up to the data")


def _no_codes() -> Sequence[UInts]:
    return ()


class BlockVariables:
    """`kept`: those that stand in the data, or what gives them when they are asked for; `coded`:
    all others, by place, and `load_codes()`: the same of the uint[size] of each of these; `of`: the
    classes of all, where they are known."""

    def __init__(
        self,
        kept: Kept | Callable[[], Kept],
        coded: Sequence[CodedVariables] = (),
        load_codes: Callable[[], Sequence[UInts]] = _no_codes,
        of: ClassSizes | None = None,
    ) -> None:
        self._kept = kept
        self.coded = coded
        self.of = of
        self._codes: Sequence[UInts] | None = None if coded else ()
        self._load_codes = load_codes if coded else _no_codes
        # stretches of places, by turns kept and coded; of the kept how many coded come before each
        self._edges = [edge for some in coded for edge in (some.begin, some.begin + some.size)]
        self._coded_before = list(accumulate([some.size for some in coded], initial=0))

    @property
    def kept(self) -> Kept:
        """Those that stand in the data. Raises what loading them raises."""
        if not isinstance(self._kept, Kept):
            self._kept = self._kept()
        return self._kept

    def kinds(self) -> Kinds | None:
        """None where they are not known."""
        if self.of is None:
            return None
        ends = np.cumsum(self.of.sizes)
        at = ends.searchsorted([some.begin for some in self.coded], side="right")
        coded = self.of.classes.take(at).tolist()
        return Kinds(frozenset(self.of.classes.tolist()).difference(coded), coded)

    @property
    def codes(self) -> Sequence[UInts]:
        """Of each of those coded. Raises what loading them raises."""
        if self._codes is None:
            self._codes, self._load_codes = self._load_codes(), _no_codes
        return self._codes

    def texts(self, places: Sequence[int]) -> list[bytes]:
        """Of a few places. Raises IndexError where there is no such."""
        return [self._text(place) for place in places]

    def _text(self, place: int) -> bytes:
        at = bisect_right(self._edges, place)
        if at % 2:
            some = self.coded[at // 2]
            return some.values.text(self.codes[at // 2].item(place - some.begin))
        kept, index = self.kept, place - self._coded_before[at // 2]
        lengths, stretch = kept.lengths, index // STRETCH
        begin = kept.before[stretch]
        begin += int(np.add.reduce(lengths[stretch * STRETCH : index], dtype=np.uint32))
        return kept.data[begin : begin + lengths.item(index)]

    def kept_at(self, offset: int) -> tuple[int, int, int]:
        """(which of those kept, where it begins, its length) of the one that holds this byte of the
        data."""
        before = self.kept.before
        stretch = bisect_right(before, offset) - 1
        begin = stretch * STRETCH
        some = self.kept.lengths[begin : begin + STRETCH]
        ends = np.cumsum(some, dtype=np.int64)
        at = int(ends.searchsorted(offset - before[stretch], side="right"))
        length = some.item(at)
        return begin + at, before[stretch] + ends.item(at) - length, length

    def starts_of_kept(self, indexes: Int64s) -> Int64s:
        """Where some of those that are kept begin in the data."""
        lengths = self.kept.lengths
        if len(indexes) > _FEW:
            return self.all_starts_of_kept().take(indexes).astype(np.int64)
        order = np.argsort(indexes)
        starts = np.empty(len(indexes), np.int64)
        starts[order] = _starts(lengths, indexes.take(order))
        return starts

    def all_starts_of_kept(self) -> Codes:
        """int32[kept]: where each of those that are kept begins in the data."""
        ends = np.cumsum(self.kept.lengths, dtype=np.int32)
        return ends - self.kept.lengths

    def places_of_kept(self, indexes: Int64s) -> Int64s:
        """The places of some that are kept, numbered as they stand in the data."""
        if not self.coded:
            return indexes
        starts = np.array(self._edges[::2]) - self._coded_before[:-1]
        before = np.array(self._coded_before)
        places: Int64s = indexes + before.take(starts.searchsorted(indexes, side="right"))
        return places

    def parted(self, places: Int64s) -> Iterator[tuple[int | None, Int64s, Int64s]]:
        """(which of those coded they are, None for those kept; which of `places`; their indexes
        there), int64[k] each, for all that have some."""
        if not self.coded:
            yield None, np.arange(len(places)), places
            return
        stretches = np.searchsorted(self._edges, places, side="right")
        for at in np.flatnonzero(np.bincount(stretches)).tolist():
            which = np.flatnonzero(stretches == at)
            if at % 2:
                yield at // 2, which, places[which] - self._edges[at - 1]
            else:
                yield None, which, places[which] - self._coded_before[at // 2]

    def joined(self) -> Variables:
        """All variables, one behind the other."""
        if not self.coded:
            return Variables(self.kept.data, self.kept.lengths)
        data, lengths = [], []
        begin = offset = 0
        for some, codes, before in zip(self.coded, self.codes, self._coded_before, strict=False):
            end = some.begin - before
            kept = self.kept.lengths[begin:end]
            stop = offset + int(np.add.reduce(kept, dtype=np.int64))
            expanded = some.values.expanded(codes)
            data += [self.kept.data[offset:stop], expanded.data]
            lengths += [kept, expanded.lengths]
            begin, offset = end, stop
        data.append(self.kept.data[offset:])
        lengths.append(self.kept.lengths[begin:])
        return Variables(b"".join(data), np.concatenate(lengths))

    @property
    def size_bytes(self) -> int:
        """Memory that it takes, about."""
        data, lengths = self.kept.data, self.kept.lengths
        codes = sum(200 + 2 * some.size for some in self.coded)
        return 500 + len(data) + lengths.nbytes + 40 * (len(lengths) // STRETCH) + codes


def _starts(lengths: Codes, indexes: Int64s) -> Int64s:
    """Where the variables of ascending numbers, each once, begin in the data."""
    if not len(indexes) or not indexes[-1]:
        return np.zeros(len(indexes), np.int64)
    begins = np.zeros(len(indexes), np.int64)
    begins[1:] = indexes[:-1]
    sums = np.add.reduceat(lengths[: int(indexes[-1])], begins, dtype=np.uint32).astype(np.int64)
    if not indexes[0]:
        sums[0] = 0  # nothing lies before it; `reduceat` gives an item
    return np.cumsum(sums)
