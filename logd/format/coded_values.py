"""Variables that come again and again, as codes: what differs among them stands in a dictionary of
the chunk.

A dictionary is of one class of slots, of words, or of four classes, of the numbers of IPv4
addresses (`slot_order.py`, `templates.py`). Dictionaries of a chunk:

    1    dictionaries: d
    then of each
    1    its class, the first of four where it has addresses
    1    0 words, 1 addresses
    1    bytes an item: w, of words the longest, of addresses 4
    1    reserved, 0
    4    items: n
    w n  the items, ascending, as planes: their first bytes, then their second ones, ...; behind the
         end of a word zeros

Codes of a block:

    of each class whose variables are coded (`variable_lengths.py` says which; addresses are four),
    ascending, the codes of the variables, in slot order: planes, as wide as the largest code of the
    dictionary takes

Such variables stand neither among the block's lengths nor in its data. The first block that has
enough variables of a class decides whether they are coded; blocks that have such that do not fit
into a dictionary keep them.
"""

import struct
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from logd.format.ascending import distinct_by_digits
from logd.format.block_variables import ClassSizes, CodedVariables, Values, Variables
from logd.format.columns import byte_width, from_planes, narrowest, to_planes

OCTETS: Final = 4
"""Of an address; so many classes, one behind the other, have them."""
OCTET_DIGITS: Final = 3
"""Of an octet, at most."""
FIRST_OCTET: Final = 0x30
"""The class of the first ones."""

_LONGEST_WORD: Final = 16
_MOST_BYTES: Final = 1 << 21  # of a column, that wait for the chunk's end
_MOST_DISTINCT: Final = 7 / 8  # of a block; more, and the dictionary takes what the codes save
_FEWEST: Final = 256  # variables of a block
_NUMBER_BYTES: Final = 8
_SHORTEST: Final = 5  # bytes: what is shorter takes hardly more than its code
_OTHER: Final = 2  # words that are no numbers, see `templates.py`
_WORDS, _ADDRESSES = 0, 1
_HEAD: Final = struct.Struct("<BBBxI")

Bytes = npt.NDArray[np.uint8]
Bools = npt.NDArray[np.bool_]
Int64s = npt.NDArray[np.int64]
UInts = npt.NDArray[np.unsignedinteger[Any]]

_OCTET_TEXTS: Final = np.zeros((256, OCTET_DIGITS), np.uint8)
for _octet in range(256):
    _OCTET_TEXTS[_octet, : len(str(_octet))] = list(str(_octet).encode())
_OCTET_VALUES: Final = Values(_OCTET_TEXTS.T)


def is_worth_coding(kind: int) -> bool:
    """Whether variables of a class may come again so often that a dictionary pays."""
    return kind == FIRST_OCTET or (kind >> 4 == _OTHER and kind & 15 >= _SHORTEST)


# ---------------------------------------------------------------- encoding


class _Values:
    """The variables of a class that are to be coded. `blocks`: of each block uint8[n, width],
    zeros behind the end of each; of addresses the four octets."""

    def __init__(self) -> None:
        self.blocks: dict[int, Bytes] = {}

    def encode(self) -> tuple[Bytes, dict[int, Int64s]]:
        """(uint8[items, width], what differs, ascending; of each block int64[n], the codes)."""
        width = max(block.shape[1] for block in self.blocks.values())
        items, codes = _distinct(np.concatenate([_keys(b, width) for b in self.blocks.values()]))
        edges = np.cumsum([len(block) for block in self.blocks.values()])[:-1]
        by_block = dict(zip(self.blocks, np.split(codes, edges), strict=True))
        texts = np.frombuffer(items.tobytes(), np.uint8).reshape(len(items), -1)
        return texts[:, :width], by_block


def _distinct(keys: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], Int64s]:
    """(those that differ, ascending, as their bytes stand; int64[keys], which of these each is)."""
    if keys.dtype.kind != "u":
        return np.unique(keys, return_inverse=True)
    items, codes = distinct_by_digits(keys, 8 * _NUMBER_BYTES)
    return items.astype(">u8"), codes


def _keys(items: Bytes, width: int) -> npt.NDArray[Any]:
    """They sort as the items do, widened to `width` with zeros; numbers, where eight bytes do."""
    wide = max(width, _NUMBER_BYTES)
    padded = np.zeros((len(items), wide), np.uint8)
    padded[:, : items.shape[1]] = items
    if wide == _NUMBER_BYTES:
        return padded.view(">u8").reshape(-1).astype(np.uint64)
    return padded[:, :width].copy().view(f"S{width}").reshape(-1)


class Kept(NamedTuple):
    """Of a block. `spans`: (begin, end) of the variables that stay as they are, class by class;
    `are_coded`: bool[c], of which classes they do not."""

    spans: list[tuple[int, int]]
    are_coded: Bools


class ValueCoder:
    """Takes out of the blocks of a column what dictionaries have."""

    def __init__(self) -> None:
        self._values: dict[int, _Values | None] = {}  # None: not worth it
        self._blocks = self._bytes = 0

    def take(self, variables: Variables, of: ClassSizes) -> Kept:
        """What has to be stored of the next block."""
        spans: list[tuple[int, int]] = []
        coded: list[bool] = []
        at = taken = 0
        for kind, size in zip(of.classes.tolist(), of.sizes.tolist(), strict=True):
            if at >= taken and is_worth_coding(kind) and self._take(kind, variables, at, size):
                taken = at + size * (OCTETS if kind == FIRST_OCTET else 1)
            coded.append(at < taken)
            if at >= taken:
                spans.append((at, at + size))
            at += size
        spans.append((at, len(variables.lengths)))  # of plain templates
        self._blocks += 1
        return Kept(spans, np.array(coded, np.bool_))

    def _take(self, kind: int, variables: Variables, at: int, size: int) -> bool:
        is_known = kind in self._values
        values = self._values.get(kind)
        if size < _FEWEST or (is_known and values is None) or self._bytes > _MOST_BYTES:
            return False
        if kind == FIRST_OCTET:
            items = _addresses(*_section(variables, at, OCTETS * size))
        else:
            items = _padded(*_section(variables, at, size))
        if items is None:
            return False
        if values is None:
            distinct = len(_distinct(_keys(items, items.shape[1]))[0])
            values = _Values() if distinct <= _MOST_DISTINCT * size else None
            self._values[kind] = values
        if values is not None:
            values.blocks[self._blocks] = items
            self._bytes += items.nbytes
        return values is not None

    def encode(self) -> tuple[list[bytes], list[list[bytes]]]:
        """(the dictionaries, of each block the codes), as pieces that differ in their bytes;
        nothing at all where no block has codes."""
        coded = {kind: values.encode() for kind, values in sorted(self._values.items()) if values}
        if not coded:
            return [], []
        pieces = [bytes([len(coded)])]
        for kind, (items, _) in coded.items():
            which = _ADDRESSES if kind == FIRST_OCTET else _WORDS
            pieces.append(_HEAD.pack(kind, which, items.shape[1], len(items)))
            pieces += [plane.tobytes() for plane in items.T]
        return pieces, [_codes_of(block, list(coded.values())) for block in range(self._blocks)]


def _codes_of(block: int, coded: Sequence[tuple[Bytes, dict[int, Int64s]]]) -> list[bytes]:
    planes = []
    for items, by_block in coded:
        codes = by_block.get(block)
        if codes is not None:
            mine = to_planes(codes.astype(np.uint32))
            mine += [bytes(len(codes))] * (byte_width(len(items) - 1) - len(mine))
            planes += mine
    return planes


def _section(variables: Variables, at: int, count: int) -> tuple[Bytes, Int64s]:
    """(the bytes of so many variables, int64[count] their lengths)."""
    lengths = variables.lengths[at : at + count].astype(np.int64)
    begin = int(np.add.reduce(variables.lengths[:at], dtype=np.int64))
    end = begin + int(np.add.reduce(lengths))
    return np.frombuffer(variables.data, np.uint8)[begin:end], lengths


def _padded(data: Bytes, lengths: Int64s) -> Bytes | None:
    """uint8[n, width]: the variables, zeros behind the end of each; None where one is long."""
    count, width = len(lengths), int(lengths.max())
    if width > _LONGEST_WORD:
        return None
    if len(data) == width * count:
        return data.reshape(count, width)
    out = np.zeros((count, width), np.uint8)
    out[np.arange(width) < lengths[:, np.newaxis]] = data
    return out


def _addresses(data: Bytes, lengths: Int64s) -> Bytes | None:
    """uint8[n, 4], of variables that are all first octets, all second ones, and so on; None where
    they are not all written as usual."""
    digits = data.astype(np.int16) - ord("0")
    if lengths.max() > OCTET_DIGITS or digits.min() < 0 or digits.max() > 9:
        return None
    last = np.cumsum(lengths) - 1
    numbers = digits.take(last)
    for place in range(1, OCTET_DIGITS):
        more = digits.take(last - place, mode="clip") * np.int16(10**place)
        numbers += more * (lengths > place)
    octets = numbers.clip(max=255)
    if not np.array_equal(octets, numbers) or np.any(_OCTET_VALUES.lengths.take(octets) != lengths):
        return None
    return octets.astype(np.uint8).reshape(OCTETS, -1).T


# ---------------------------------------------------------------- decoding


class ValueDictionary(NamedTuple):
    """`values`: the words; of addresses the texts of all octets, and `octets`: uint8[4, items]."""

    kind: int
    values: Values
    octets: Bytes | None

    def __len__(self) -> int:
        return len(self.values) if self.octets is None else self.octets.shape[1]

    @property
    def classes(self) -> int:
        """How many, one behind the other, have its variables."""
        return 1 if self.octets is None else OCTETS

    @property
    def size_bytes(self) -> int:
        """Memory that it takes, about."""
        return self.values.size_bytes if self.octets is None else 500 + self.octets.nbytes


def decode_dictionaries(raw: bytes) -> list[ValueDictionary]:
    """Raises ValueError where they do not hold."""
    out: list[ValueDictionary] = []
    at = 1
    try:
        for _ in range(raw[0]):
            kind, which, width, count = _HEAD.unpack_from(raw, at)
            at += _HEAD.size
            planes = np.frombuffer(raw, np.uint8, width * count, at).reshape(width, count)
            at += width * count
            has_addresses = which == _ADDRESSES
            if has_addresses and width != OCTETS:
                raise ValueError("addresses of another width")
            values = _OCTET_VALUES if has_addresses else Values(planes)
            out.append(ValueDictionary(kind, values, planes if has_addresses else None))
    except (IndexError, struct.error):
        raise ValueError("dictionaries: cut short") from None
    if at != len(raw):
        raise ValueError("dictionaries: more bytes than items")
    return out


class CodedClass(NamedTuple):
    """Variables of a block that a dictionary has: so many of each of its classes, from a place
    on."""

    dictionary: ValueDictionary
    begin: int
    size: int

    def variables(self) -> list[CodedVariables]:
        begins = range(self.begin, self.begin + self.dictionary.classes * self.size, self.size)
        return [CodedVariables(begin, self.size, self.dictionary.values) for begin in begins]


def coded_classes(
    of: ClassSizes, are_coded: Bools, dictionaries: Sequence[ValueDictionary]
) -> list[CodedClass]:
    """By place. `are_coded`: bool[c], which classes are. Raises ValueError where one has no
    dictionary."""
    if not are_coded.any():
        return []
    by_class = {dictionary.kind: dictionary for dictionary in dictionaries}
    found: list[CodedClass] = []
    missing: list[int] = []  # octets of the last addresses
    end = 0
    for kind, size, is_coded in zip(
        of.classes.tolist(), of.sizes.tolist(), are_coded.tolist(), strict=True
    ):
        end += size
        if not is_coded:
            continue
        if missing and (kind, size) == (missing[0], found[-1].size):
            missing = missing[1:]
            continue
        if missing or kind not in by_class:
            raise ValueError("a class without a dictionary is coded")
        dictionary = by_class[kind]
        found.append(CodedClass(dictionary, end - size, size))
        missing = list(range(kind + 1, kind + dictionary.classes))
    if missing:
        raise ValueError("octets of addresses are missing")
    return found


def decode_codes(raw: bytes, classes: Sequence[CodedClass]) -> list[UInts]:
    """The codes of all variables of these, as `CodedClass.variables` has them. Raises ValueError or
    IndexError where they do not hold."""
    found: list[UInts] = []
    at = 0
    for dictionary, _, count in classes:
        width = byte_width(max(len(dictionary) - 1, 0))
        planes = raw[at : at + width * count]
        if len(planes) != width * count:
            raise ValueError("codes: cut short")
        codes: UInts = from_planes(planes, count, narrowest(width))
        if count and int(codes.max()) >= len(dictionary):
            raise IndexError("codes: one has no item")
        octets = dictionary.octets
        found += [codes] if octets is None else [one.take(codes) for one in octets]
        at += width * count
    if at != len(raw):
        raise ValueError("codes: more bytes than variables")
    return found
