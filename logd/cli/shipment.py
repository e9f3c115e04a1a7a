"""What `logd send` has on the way: batches, counts, and the lines that were refused."""

from collections.abc import Callable
from typing import Final

import msgspec

from logd.client.client import LogdClient

MAX_BATCH_BYTES: Final = 4 * 1024 * 1024
MAX_COMPLAINTS: Final = 20
"""Refused lines that are told one by one; all are counted."""

Complain = Callable[[str], None]


class Waiting(msgspec.Struct, frozen=True, gc=False):
    """An entry not sent yet. `place`: where it came from, `file:line`."""

    place: str
    entry: bytes


class Shipment:
    """Entries in batches of at most `max_entries`, of which none waits for others longer than
    `max_wait_seconds` (None: as long as it takes). `now` is a clock in seconds."""

    def __init__(
        self,
        client: LogdClient,
        *,
        max_entries: int,
        max_wait_seconds: float | None,
        complain: Complain,
        now: Callable[[], float],
    ) -> None:
        self._client = client
        self._max_entries = max_entries
        self._max_wait_seconds = max_wait_seconds
        self._complain = complain
        self._now = now
        self._waiting: list[Waiting] = []
        self._waiting_bytes = 0
        self._oldest_at = 0.0
        self.stored = 0
        self.refused = 0

    def summary(self) -> str:
        """Of entries that wait still, the daemon may have stored some: it did not say."""
        counts = [f"{self.stored:,} stored"]
        if self.refused:
            counts.append(f"{self.refused:,} refused")
        if self._waiting:
            counts.append(f"{len(self._waiting):,} read but not stored")
        return "logd: " + ", ".join(counts)

    def add(self, place: str, entry: bytes) -> None:
        """May send a batch. Raises ClientError where no batch is taken."""
        if not self._waiting:
            self._oldest_at = self._now()
        self._waiting.append(Waiting(place, entry))
        self._waiting_bytes += len(entry)
        if len(self._waiting) >= self._max_entries or self._waiting_bytes >= MAX_BATCH_BYTES:
            self.send()

    def refuse(self, place: str, reason: str) -> None:
        self.refused += 1
        if self.refused <= MAX_COMPLAINTS:
            self._complain(f"{place}: not stored: {reason}")
        if self.refused == MAX_COMPLAINTS:
            self._complain("further lines that are not stored are only counted")

    def send_if_due(self) -> None:
        """The same, where the wait is over."""
        if self._max_wait_seconds is None or not self._waiting:
            return
        if self._now() - self._oldest_at >= self._max_wait_seconds:
            self.send()

    def send(self) -> None:
        """What waits, now. Raises ClientError; then it waits on."""
        result = self._client.ingest_encoded([one.entry for one in self._waiting])
        sent, self._waiting, self._waiting_bytes = self._waiting, [], 0
        self.stored += result.stored
        for rejection in result.rejected:
            self.refuse(sent[rejection.index].place, rejection.reason)
