"""Texts as template + variables.

A word that contains an ASCII digit is a *variable*; all else is the *template*, in which the byte
0xFF (never part of UTF-8) stands for each variable. After Rodrigues, Luo, Yuan: "CLP: Efficient
and Scalable Search on Compressed Text Logs", OSDI 2021; everything per entry is done on whole
blocks with numpy.

    "Accepted password for user12 from 10.0.0.1"
        template  "Accepted password for FF from FF.FF.FF.FF"
        variables "user12" "10" "0" "0" "1"

The variables of a block are stored in *slot order*: by template code, then by slot (which of the
template's variables), then by entry. Where variable s of entry e lies is computed, not stored:

    begin[code of e] + s * entries[code of e] + rank of e among the entries of its code
"""

from typing import Any, Final, Literal

import msgspec
import numpy as np
import numpy.typing as npt

from logd.format.separated import Numbering

PLACEHOLDER: Final = b"\xff"

Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]
Codes = npt.NDArray[np.integer[Any]]
Bools = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]


class TemplateCodes:
    """The templates of a chunk, numbered in order of appearance."""

    def __init__(self) -> None:
        self._codes = Numbering()

    def __len__(self) -> int:
        return len(self._codes)

    def encode(self, separated_templates: bytes) -> Int32s:
        return self._codes.encode(separated_templates).astype(np.int32)

    def texts(self) -> list[bytes]:
        return list(self._codes)


class VariableBlock(msgspec.Struct, frozen=True):
    """A block of texts, split. `codes`: int32[entries]; `lengths`: int32[variables] and `data`:
    the variables' bytes one behind the other, both in slot order; `rows`: int32[variables], the
    entry within the block that each variable belongs to; `per_slot`: int32[slots of the block's
    templates], how many variables each has."""

    codes: Int32s
    lengths: Int32s
    data: bytes
    rows: Int32s
    per_slot: Int32s


def is_word_byte(array: Bytes) -> tuple[Bools, Bools]:
    """(byte belongs to a word, byte is a digit). The words of `words.py`, on UTF-8 bytes."""
    digit = (array - np.uint8(48)) < 10
    word = ((array | np.uint8(32)) - np.uint8(97)) < 26
    word |= digit
    word |= array == 95
    word |= (array - np.uint8(128)) < 120
    return word, digit


def split_block(blob: bytes, separators: Codes, templates: TemplateCodes) -> VariableBlock:
    """Split the separated texts of a block (at least one). `separators`: where they are."""
    array = np.frombuffer(blob, np.uint8)
    starts, lengths, keep = _find_variables(array)
    codes = templates.encode(_template_bytes(array, starts, keep))
    del keep
    per_entry = np.diff(np.searchsorted(starts, separators), prepend=0, append=len(starts))
    slots = np.zeros(len(templates), np.int64)
    slots[codes] = per_entry
    layout = SlotLayout(codes, slots)
    places = layout.places(per_entry)
    rows = _scattered(np.repeat(np.arange(len(codes), dtype=np.int32), per_entry), places)
    starts, lengths = _scattered(starts, places), _scattered(lengths, places)
    del places
    data = _gather(array, starts, lengths)
    return VariableBlock(codes, lengths, data, rows, layout.per_slot())


def _scattered(values: Int32s, places: Int64s) -> Int32s:
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


class SlotLayout:
    """Where the variables of a block lie. `codes`: the block's template codes; `slots`:
    int64[templates], variables per template."""

    def __init__(self, codes: Codes, slots: Int64s) -> None:
        self.codes = codes
        self._slots = slots
        entries = np.bincount(codes, minlength=len(slots))
        sizes = entries * slots
        self._begin = (np.cumsum(sizes) - sizes).astype(np.int32)
        self.variables = int(sizes.sum())
        self._entries = entries.astype(np.int32)
        by_code = np.argsort(codes.astype(np.uint16), kind="stable")
        first = np.cumsum(entries) - entries
        self._rank = np.empty(len(codes), np.int32)
        self._rank[by_code] = np.arange(len(codes)) - first[codes[by_code]]

    def per_slot(self) -> Int32s:
        """int32[slots of the block's templates]: the variables of each, in slot order."""
        return np.repeat(self._entries, self._slots)

    def places(self, per_entry: Int64s) -> Int64s:
        """int64[variables]: position in slot order of each variable in entry order;
        `per_entry`: int64[entries], the variables of each."""
        first = (np.cumsum(per_entry) - per_entry).astype(np.int32)
        out = np.arange(self.variables, dtype=np.int32)
        out -= np.repeat(first, per_entry)
        out *= np.repeat(self._entries[self.codes], per_entry)
        out += np.repeat(self._begin[self.codes] + self._rank, per_entry)
        return out.astype(np.int64)

    def rows(self) -> Int32s:
        """int32[variables]: the entry that each variable, in slot order, belongs to."""
        per_entry = self._slots[self.codes]
        rows = np.repeat(np.arange(len(self.codes), dtype=np.int32), per_entry)
        return _scattered(rows, self.places(per_entry))

    def positions(self, rows: Int64s, slots: Int64s) -> Int64s:
        """Positions in slot order of the variables `slots` of the entries `rows`."""
        codes = self.codes[rows]
        out: Int64s = self._begin[codes] + slots * self._entries[codes] + self._rank[rows]
        return out


def _gather(array: Bytes, starts: Int32s, lengths: Int32s) -> bytes:
    """The bytes of many spans, one behind the other."""
    before = np.cumsum(lengths, dtype=np.int32) - lengths
    index = np.repeat(starts - before, lengths)
    index += np.arange(len(index), dtype=np.int32)
    return array.take(index).tobytes()


def join_texts_at(
    rows: Int64s,
    layout: SlotLayout,
    templates: list[bytes],
    slots: Int64s,
    data: bytes,
    ends: Codes,
) -> list[bytes]:
    """The texts of the entries `rows` of a block.

    `templates[i]`: the template of entry rows[i]; `slots`: as in SlotLayout; `data` and `ends`
    (int[variables]): the block's variables in slot order and where each ends.
    """
    wanted = slots[layout.codes[rows]]
    entry = np.repeat(np.arange(len(rows)), wanted)
    first = np.cumsum(wanted) - wanted
    slot = np.arange(len(entry)) - first[entry]
    positions = layout.positions(rows[entry], slot)
    stops = ends[positions].tolist()
    begins = np.where(positions > 0, ends[positions - 1], 0).tolist() if len(ends) else []
    variables = [data[begin:stop] for begin, stop in zip(begins, stops, strict=True)]
    out = []
    cursor = 0
    for template, count in zip(templates, wanted.tolist(), strict=True):
        if not count:
            out.append(template)
            continue
        pieces = [b""] * (2 * count + 1)
        pieces[::2] = template.split(PLACEHOLDER)
        pieces[1::2] = variables[cursor : cursor + count]
        cursor += count
        out.append(b"".join(pieces))
    return out
