"""Where the records of requests that carried an Idempotency-Key are, for as long as a retry may
come.

The records are in the WAL, in the tail and in chunks. What is kept here of each leads to it: three
bytes of the key's digest, and five of the sequence number of the request's first entry. Another key
may have the same three bytes, so what is found are candidates, and the record decides.

    part of a key     the first 10 bits of its digest; a part is made when it is needed
    fingerprint       bytes 2 to 4 of the digest
    number            the sequence number modulo 2^40: the last such number there is, is meant

With a million records, one look-up in 17,000 for a new key finds a candidate, whose record is read
in vain. A number that is 2^40 entries old, and was not let go yet, is taken for a later one: that
is a candidate like any other.
"""

from collections.abc import Iterable
from typing import Final

import numpy as np
import numpy.typing as npt

from logd.entry import Seq
from logd.format.chunk import IdempotencyRecord, RecordColumns
from logd.store.record_ages import RecordAges

Int64s = npt.NDArray[np.int64]

_PARTS: Final = 1024
_FINGERPRINT: Final = slice(2, 5)
_FINGERPRINT_BYTES: Final = 3
_NUMBER_BYTES: Final = 5
_NUMBERS: Final = 1 << 8 * _NUMBER_BYTES
_FEW: Final = 16
_SHARE: Final = 8
"""An eighth of a part has to be too old before the rest is moved: so it is moved seldom, and a part
is at most so much larger than it need be."""


class Part:
    """Fingerprints and numbers, in order of arrival. `room`: records; with more, it is looked
    whether some are too old."""

    __slots__ = ("fingerprints", "numbers", "room")

    def __init__(self) -> None:
        self.fingerprints = bytearray()
        self.numbers = bytearray()
        self.room = _FEW

    def __len__(self) -> int:
        return len(self.fingerprints) // _FINGERPRINT_BYTES

    def number(self, at: int) -> int:
        begin = at * _NUMBER_BYTES
        return int.from_bytes(self.numbers[begin : begin + _NUMBER_BYTES], "little")

    def find(self, fingerprint: bytes) -> list[int]:
        """The numbers with this fingerprint."""
        found = []
        at = self.fingerprints.find(fingerprint)
        while at >= 0:
            record, within = divmod(at, _FINGERPRINT_BYTES)
            if not within:  # otherwise it is the end of one and the beginning of another
                found.append(self.number(record))
            at = self.fingerprints.find(fingerprint, at + 1)
        return found

    def all_numbers(self) -> Int64s:
        wide = np.zeros((len(self), 8), np.uint8)
        wide[:, :_NUMBER_BYTES] = _rows(self.numbers, _NUMBER_BYTES)
        return wide.view("<i8")[:, 0]

    def keep(self, chosen: npt.NDArray[np.bool_]) -> None:
        """Of the records only those."""
        kept = _rows(self.fingerprints, _FINGERPRINT_BYTES)[chosen].tobytes()
        self.fingerprints = bytearray(kept)
        self.numbers = bytearray(_rows(self.numbers, _NUMBER_BYTES)[chosen].tobytes())


class IdempotencyTable:
    """In parts, as to look through all of a million records, or to move them, would hold up the
    event loop. Records are added in order of sequence."""

    def __init__(self, keep_seconds: int, ages: RecordAges | None = None) -> None:
        """`ages`: for tests, with other stretches."""
        self._keep_ns = keep_seconds * 1_000_000_000
        self._ages = RecordAges(self._keep_ns) if ages is None else ages
        self._parts: dict[int, Part] = {}
        self._newest = 0

    def __len__(self) -> int:
        """Records, some of them too old."""
        return sum(map(len, self._parts.values()))

    def too_old_ns(self, now_ns: int) -> int:
        """What was received then, or before, is forgotten."""
        return now_ns - self._keep_ns

    def is_live(self, received_ns: int, now_ns: int) -> bool:
        return received_ns > self.too_old_ns(now_ns)

    def add(self, records: Iterable[IdempotencyRecord]) -> None:
        for record in records:
            digest, seq = record.idempotency.key_digest, record.first_seq
            self._newest = max(self._newest, seq)
            self._ages.note(seq, record.received_ns, record.received_ns)
            part = self._part(_part_of(digest))
            part.fingerprints += digest[_FINGERPRINT]
            part.numbers += (seq % _NUMBERS).to_bytes(_NUMBER_BYTES, "little")
            self._tidy(part)

    def add_many(self, records: RecordColumns) -> None:
        """The same, quicker."""
        if not len(records.first_seqs):
            return
        self._newest = max(self._newest, int(records.first_seqs.max()))
        self._ages.note_many(records.first_seqs, records.received_ns)
        digests = records.key_digests
        parts = digests[:, 0].astype(np.intp) << 2 | digests[:, 1] >> 6
        order = np.argsort(parts, kind="stable")
        fingerprints = digests[order, _FINGERPRINT].tobytes()
        numbers = records.first_seqs[order].astype("<i8").view(np.uint8).reshape(-1, 8)
        of_numbers = numbers[:, :_NUMBER_BYTES].tobytes()
        begin = 0
        for number, count in enumerate(np.bincount(parts, minlength=_PARTS).tolist()):
            if count:
                end = begin + count
                part = self._part(number)
                part.fingerprints += _slice(fingerprints, begin, end, _FINGERPRINT_BYTES)
                part.numbers += _slice(of_numbers, begin, end, _NUMBER_BYTES)
                self._tidy(part)
                begin = end

    def _part(self, number: int) -> Part:
        part = self._parts.get(number)
        if part is None:
            part = self._parts[number] = Part()
        return part

    def _tidy(self, part: Part) -> None:
        """After something was added. Most records are in order of age, so one of the first tells
        whether a sweep is worth its while."""
        if len(part) <= part.room:
            return
        now_ns = self._ages.surely_past_ns
        if not self._ages.may_be_live(self._meant(part.number(len(part) // _SHARE)), now_ns):
            self.sweep(part, now_ns)
        part.room = len(part) + max(len(part) // _SHARE, _FEW)

    def sweep(self, part: Part, now_ns: int) -> None:
        """Let go of what is too old."""
        first_seqs = self._newest - (self._newest - part.all_numbers()) % _NUMBERS
        part.keep(self._ages.each_may_be_live(first_seqs, now_ns))

    def _meant(self, number: int) -> Seq:
        """The sequence number, of what is kept of it."""
        return Seq(self._newest - (self._newest - number) % _NUMBERS)

    def candidates(self, key_digest: bytes, now_ns: int) -> list[Seq]:
        """The first sequence numbers of what a request with this key may have stored lately, the
        latest first; as a rule one, and none if there was no such request."""
        part = self._parts.get(_part_of(key_digest))
        if part is None:
            return []
        found = part.find(key_digest[_FINGERPRINT])
        if not found:
            return []
        seqs = sorted({self._meant(number) for number in found}, reverse=True)
        return [seq for seq in seqs if self._ages.may_be_live(seq, now_ns)]


def _part_of(key_digest: bytes) -> int:
    return key_digest[0] << 2 | key_digest[1] >> 6


def _rows(data: bytearray, width: int) -> npt.NDArray[np.uint8]:
    return np.frombuffer(data, np.uint8).reshape(-1, width)


def _slice(data: bytes, begin: int, end: int, width: int) -> bytes:
    return data[begin * width : end * width]
