"""Texts as template + variables.

A word that contains an ASCII digit is a *variable*; all else is the *template*, in which the byte
0xFF (never part of UTF-8) stands for each variable. After Rodrigues, Luo, Yuan: "CLP: Efficient
and Scalable Search on Compressed Text Logs", OSDI 2021; everything per entry is done on whole
blocks with numpy.

    "Accepted password for user12 from 10.0.0.1"
        template  "Accepted password for FF from FF.FF.FF.FF"
        variables "user12" "10" "0" "0" "1"

The variables of a block are stored in *slot order*, see `slot_order.py`.
"""

import itertools
import re
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from logd.format.block_variables import ClassSizes
from logd.format.coded_values import FIRST_OCTET, OCTET_DIGITS, OCTETS
from logd.format.separated import SEPARATOR, Numbering
from logd.format.slot_layout import SlotLayout
from logd.format.slot_order import MOST_CLASSED, SlotOrder

PLACEHOLDER: Final = b"\xff"
_LONG: Final = 15
_ADDRESS: Final = re.compile(rb"\xff\.\xff\.\xff\.\xff")
_KINDS: Final = np.full(256, 2, np.uint8)  # of bytes: decimal digits, hexadecimal ones, all others
_KINDS[list(b"abcdefABCDEF")] = 1
_KINDS[list(b"0123456789")] = 0

Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]


class Spans(NamedTuple):
    """Of texts in an array, int32[k]: where each begins, and how long it is."""

    starts: Int32s
    lengths: Int32s


class TemplateCodes:
    """The templates of a chunk, numbered in order of appearance, and what is known of their slots:
    see `SlotOrder`."""

    def __init__(self) -> None:
        self._codes = Numbering()
        self._slots = np.zeros(0, np.int64)
        self._classes = np.zeros(0, np.uint8)
        self._has_plain = False
        self._order: SlotOrder | None = None

    def __len__(self) -> int:
        return len(self._codes)

    def encode(self, separated_templates: bytes) -> Int32s:
        """int32[n]: the number of each. Of those that are new, `learn` is called next."""
        known = len(self._codes)
        codes = self._codes.encode(separated_templates).astype(np.int32)
        new = self.latest(len(self._codes) - known)
        counts = np.array([text.count(PLACEHOLDER) for text in new], np.int64)
        self._slots = np.concatenate([self._slots, counts])
        return codes

    def texts(self) -> list[bytes]:
        return list(self._codes)

    def latest(self, count: int) -> list[bytes]:
        """The last so many templates."""
        return list(itertools.islice(reversed(self._codes), count))[::-1]

    @property
    def slots(self) -> Int64s:
        """int64[templates]: the variables of each."""
        return self._slots

    def classes(self) -> Bytes:
        """uint8[k]: of the slots of the first templates."""
        return self._classes

    def order(self) -> SlotOrder:
        if self._order is None:
            self._order = SlotOrder(self._slots, self._classes)
        return self._order

    def learn(self, classes: Bytes) -> None:
        """Of the templates that are new the class of each slot."""
        self._order = None
        self._has_plain |= len(self._classes) + len(classes) > MOST_CLASSED
        if not self._has_plain:
            self._classes = np.concatenate([self._classes, classes])


class VariableBlock(msgspec.Struct, frozen=True):
    """A block of texts, split. `codes`: int32[entries]; `lengths`: int32[variables] and `data`:
    the variables' bytes one behind the other, both in slot order; `rows`: int32[variables], the
    entry within the block that each variable belongs to; `of`: how many there are of each class."""

    codes: Int32s
    lengths: Int32s
    data: bytes
    rows: Int32s
    of: ClassSizes


def is_word_byte(array: Bytes) -> tuple[Bools, Bools]:
    """(byte belongs to a word, byte is a digit). The words of `words.py`, on UTF-8 bytes."""
    digit = (array - np.uint8(48)) < 10
    word = ((array | np.uint8(32)) - np.uint8(97)) < 26
    word |= digit
    word |= array == 95
    word |= (array - np.uint8(128)) < 120
    return word, digit


def split_block(blob: bytes, templates: TemplateCodes) -> VariableBlock:
    """Split the separated texts of a block (at least one)."""
    array = np.frombuffer(blob, np.uint8)
    starts, lengths, keep = _find_variables(array)
    known = len(templates)
    codes = templates.encode(_template_bytes(array, starts, keep))
    del keep
    per_entry = templates.slots.take(codes)
    if len(templates) > known:
        _learn(templates, known, array, Spans(starts, lengths), codes, per_entry)
    order = templates.order()
    layout = SlotLayout(codes, order)
    places = layout.places(per_entry)
    rows = _scattered(np.repeat(np.arange(len(codes), dtype=np.int32), per_entry), places)
    starts, lengths = _scattered(starts, places), _scattered(lengths, places)
    del places
    data = _gather(array, Spans(starts, lengths)).tobytes()
    sizes = layout.class_sizes()
    of = ClassSizes(order.class_codes[sizes > 0], sizes[sizes > 0])
    return VariableBlock(codes, lengths, data, rows, of)


def _learn(
    templates: TemplateCodes,
    known: int,
    array: Bytes,
    variables: Spans,
    codes: Int32s,
    per_entry: Int64s,
) -> None:
    """What these variables, in the order of the entries, tell of the templates of which so many
    were known before."""
    is_new = codes >= known
    if not is_new.all():
        some = np.flatnonzero(np.repeat(is_new, per_entry))
        variables = Spans(variables.starts[some], variables.lengths[some])
        codes, per_entry = codes[is_new], per_entry[is_new]
    slots = templates.slots[known:]
    first = np.cumsum(slots) - slots
    before = np.cumsum(per_entry) - per_entry
    slot_of = np.repeat((first.take(codes - known) - before).astype(np.int32), per_entry)
    slot_of += np.arange(len(slot_of), dtype=np.int32)
    classes = _classes(array, variables, slot_of, int(slots.sum()))
    _mark_addresses(classes, SEPARATOR.join(templates.latest(len(slots))))
    templates.learn(classes)


def _classes(array: Bytes, variables: Spans, slot_of: Int32s, slots: int) -> Bytes:
    """uint8[slots]: by what kinds of bytes the variables there have, and the longest of them.
    `slot_of`: int32[variables], the slot of each."""
    longest = np.zeros(slots, np.uint8)
    np.maximum.at(longest, slot_of, np.minimum(variables.lengths, _LONG).astype(np.uint8))
    kinds = np.zeros(slots, np.uint8)
    if slots:
        of_bytes = _KINDS.take(_gather(array, variables))
        begins = np.cumsum(variables.lengths, dtype=np.int32)
        begins -= variables.lengths
        np.maximum.at(kinds, slot_of, np.maximum.reduceat(of_bytes, begins))
    return longest | (kinds << np.uint8(4))


def _mark_addresses(classes: Bytes, templates: bytes) -> None:
    """Give their own classes to the slots that, in these separated templates, look like the four
    numbers of an IPv4 address."""
    starts = np.array([found.start() for found in _ADDRESS.finditer(templates)], np.int64)
    if not len(starts):
        return
    slots = np.flatnonzero(np.frombuffer(templates, np.uint8) == PLACEHOLDER[0])
    first = np.searchsorted(slots, starts)
    octets = first[:, np.newaxis] + np.arange(OCTETS)
    are_short = (classes.take(octets) <= OCTET_DIGITS).all(axis=1)
    classes[octets[are_short]] = FIRST_OCTET + np.arange(OCTETS)


def _scattered(values: Int32s, places: Int32s) -> Int32s:
    out = np.empty(len(values), np.int32)
    out[places] = values
    return out


def _find_variables(array: Bytes) -> tuple[Int32s, Int32s, Bools]:
    """(starts, lengths) of the words that contain a digit, and bool[bytes]: the bytes that stay in
    the templates, the first of each variable's among them.

    A byte of the text is a bit of one large integer, so that a carry runs through a word: adding
    is the cheapest loop over bytes that there is here.
    """
    word, digit = is_word_byte(array)
    size = len(array)
    backwards = _marked_run_ends(_to_bits(word, "big"), _to_bits(digit, "big"))
    # Backwards, a run ends one before its first byte; eight more bits stand in front here.
    starts = _to_bits(_from_bits(backwards, (size + 7) // 8 + 1, "big")[7 : 7 + size], "little")
    ends = _marked_run_ends(_to_bits(word, "little"), _to_bits(digit, "little"))
    keep = (((1 << size) - 1) ^ (ends - starts)) | starts
    edges = np.flatnonzero(_from_bits(starts | ends, size // 8 + 1, "little")).astype(np.int32)
    first = edges[0::2].copy()
    lengths = edges[1::2] - first
    return first, lengths, _from_bits(keep, (size + 7) // 8, "little")[:size]


def _marked_run_ends(runs: int, marks: int) -> int:
    """The bits behind those runs of ones that hold at least one of `marks`, a subset of `runs`."""
    starts = runs ^ (runs & (runs << 1))
    ends = runs + starts
    unmarked = (runs ^ marks) + starts  # the carry gets to the end of a run if nothing is marked
    return ends ^ (ends & unmarked)


_BitOrder = Literal["little", "big"]


def _to_bits(flags: Bools, order: _BitOrder) -> int:
    return int.from_bytes(np.packbits(flags, bitorder=order).tobytes(), order)


def _from_bits(bits: int, size: int, order: _BitOrder) -> Bools:
    """bool[8 * size]."""
    raw = np.frombuffer(bits.to_bytes(size, order), np.uint8)
    return np.unpackbits(raw, bitorder=order).view(np.bool_)


def _template_bytes(array: Bytes, starts: Int32s, keep: Bools) -> bytes:
    texts = array.copy()
    texts[starts] = PLACEHOLDER[0]
    return texts.compress(keep).tobytes()


def _gather(array: Bytes, spans: Spans) -> Bytes:
    """The bytes of many spans, one behind the other."""
    before = np.cumsum(spans.lengths, dtype=np.int32) - spans.lengths
    index = np.repeat(spans.starts - before, spans.lengths)
    index += np.arange(len(index), dtype=np.int32)
    return array.take(index)


def joined_texts(
    templates: Sequence[bytes], counts: Sequence[int], variables: Sequence[bytes]
) -> list[bytes]:
    """Of each text its template, and how many of the variables are its own, text by text."""
    out = []
    at = 0
    for template, count in zip(templates, counts, strict=True):
        pieces = [b""] * (2 * count + 1)
        pieces[::2] = template.split(PLACEHOLDER)
        pieces[1::2] = variables[at : at + count]
        at += count
        out.append(b"".join(pieces))
    return out
