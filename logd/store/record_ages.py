"""How old idempotency records are, told by their sequence number.

Records are added in order of sequence. Of each stretch of them the latest receipt time is kept, so
none is taken for older than it is, whatever the clock did. One odd time in the future keeps its own
stretch, and no other; one in the past keeps the others a little longer.
"""

from array import array
from bisect import bisect_right
from typing import Final

import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]

_STRETCH_RECORDS: Final = 1024
_MOST_NS: Final = (1 << 63) - 1


class RecordAges:
    def __init__(self, keep_ns: int, stretch_records: int = _STRETCH_RECORDS) -> None:
        """`keep_ns`: how old a record may become."""
        self._keep_ns = keep_ns
        self._stretch_records = stretch_records
        self._begins = array("q")
        self._latest_ns = array("q")
        self._left = 0  # how many more the last stretch takes
        self._earliest_ns = _MOST_NS  # of the last stretch
        self._earliest_before_ns = _MOST_NS  # of the one before
        self._room = 2

    def __len__(self) -> int:
        """Stretches."""
        return len(self._begins)

    @property
    def surely_past_ns(self) -> int:
        """A time that has come, even if the clock is ahead as the latest records come: the earliest
        of the last two stretches."""
        return min(self._earliest_ns, self._earliest_before_ns)

    def note(self, first_seq: int, earliest_ns: int, latest_ns: int, records: int = 1) -> None:
        """Records from `first_seq` on, received within these times; at most what a stretch
        takes."""
        if self._left <= 0:
            self._begin(first_seq)
        self._left -= records
        self._earliest_ns = min(self._earliest_ns, earliest_ns)
        if latest_ns > self._latest_ns[-1]:
            self._latest_ns[-1] = latest_ns

    def note_many(self, first_seqs: Int64s, received_ns: Int64s) -> None:
        """The same, of any number of records."""
        begin = 0
        while begin < len(first_seqs):
            end = begin + (self._left if self._left > 0 else self._stretch_records)
            times = received_ns[begin:end]
            first = first_seqs.item(begin)
            self.note(first, int(times.min()), int(times.max()), len(times))
            begin = end

    def _begin(self, first_seq: int) -> None:
        if len(self._begins) >= self._room:
            self._join_old()
            self._room = 2 * len(self._begins)
        self._begins.append(first_seq)
        self._latest_ns.append(-_MOST_NS)
        self._left = self._stretch_records
        self._earliest_before_ns, self._earliest_ns = self._earliest_ns, _MOST_NS

    def _join_old(self) -> None:
        """Stretches that are too old, one behind the other, become one: they do not grow in number,
        even where one before them is to be kept for years."""
        latest_ns = np.array(self._latest_ns)
        live = latest_ns > self.surely_past_ns - self._keep_ns
        live[1:] |= live[:-1]
        live[0] = True
        first = np.flatnonzero(live)
        self._begins = array("q", np.array(self._begins)[first].tobytes())
        self._latest_ns = array("q", np.maximum.reduceat(latest_ns, first).tobytes())

    def may_be_live(self, first_seq: int, now_ns: int) -> bool:
        """False: the record is too old. True: it may be, by less than its stretch took."""
        if not self._begins:
            return False
        at = bisect_right(self._begins, first_seq) - 1
        return now_ns - self._latest_ns[max(at, 0)] < self._keep_ns

    def each_may_be_live(self, first_seqs: Int64s, now_ns: int) -> npt.NDArray[np.bool_]:
        """The same of each."""
        at = np.searchsorted(np.array(self._begins), first_seqs, "right") - 1
        return np.array(self._latest_ns)[np.maximum(at, 0)] > now_ns - self._keep_ns
