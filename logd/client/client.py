"""LogdClient: ingest, listing and counts of one project."""

import time
import urllib.parse
from collections.abc import Iterable, Iterator, Sequence
from types import TracebackType
from typing import Final, Self

import msgspec

from logd.client.channel import Channel, Sleep
from logd.client.delivery import Compression, Delivery, IngestResult
from logd.client.errors import BadAnswer, ClientError
from logd.client.wire import LogEntry, NewEntry, Page, RawPage, Stats
from logd.entry import LevelName

MAX_PAGE: Final = 1000

_ENCODER: Final = msgspec.json.Encoder()
_ENTRY: Final = msgspec.json.Decoder(LogEntry)


def encoded(entry: NewEntry) -> bytes:
    """The entry's JSON text. Raises ClientError where a value has none."""
    try:
        return _ENCODER.encode(entry)
    except (TypeError, ValueError, RecursionError) as error:
        raise ClientError(f"the entry cannot be written as JSON: {error}") from error


class LogdClient:
    """One project of one daemon, by an API key.

    `timeout_seconds`: for one answer. `retry_seconds`: how long a request is repeated while the
    daemon cannot be reached or says that it is overloaded; 0 tries once. Use one per thread.
    """

    def __init__(
        self,
        url: str,
        key: str,
        project_id: str,
        *,
        compression: Compression = "none",
        timeout_seconds: float = 60.0,
        retry_seconds: float = 60.0,
        sleep: Sleep = time.sleep,
    ) -> None:
        """Raises ClientError where `url` or `key` cannot be used."""
        self.project_id = project_id
        self._logs = f"/v1/projects/{urllib.parse.quote(project_id, safe='')}/logs"
        self._channel = Channel(
            url, key, timeout_seconds=timeout_seconds, retry_seconds=retry_seconds, sleep=sleep
        )
        self._delivery = Delivery(self._channel, compression)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._channel.close()

    def ingest(self, entries: Iterable[NewEntry]) -> IngestResult:
        """Stores the entries, all in one request. Once this returns they are on the disk."""
        return self.ingest_encoded([encoded(self._own(entry)) for entry in entries])

    def ingest_encoded(self, entries: Sequence[bytes]) -> IngestResult:
        """`ingest` of entries that are JSON texts already, each with its projectId."""
        return self._delivery.deliver(entries)

    def list(
        self,
        search: str | None = None,
        *,
        level: LevelName | None = None,
        from_: str | None = None,
        to: str | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> Page:
        """A page of at most `limit` (1-1000) entries, newest first; `from_` inclusive, `to` not."""
        page = self.list_raw(search, level=level, from_=from_, to=to, limit=limit, cursor=cursor)
        logs = tuple(decoded_entry(text) for text in page.logs)
        return Page(logs, page.next_cursor, page.total, page.partial)

    def list_raw(
        self,
        search: str | None = None,
        *,
        level: LevelName | None = None,
        from_: str | None = None,
        to: str | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> RawPage:
        """`list`, its entries left as JSON texts."""
        said = {
            "search": search,
            "level": level,
            "from": from_,
            "to": to,
            "limit": str(limit),
            "cursor": cursor,
        }
        params = {name: value for name, value in said.items() if value is not None}
        return self._channel.get(self._logs, params, RawPage)

    def pages(
        self,
        search: str | None = None,
        *,
        level: LevelName | None = None,
        from_: str | None = None,
        to: str | None = None,
        limit: int = MAX_PAGE,
    ) -> Iterator[RawPage]:
        """All pages, of the entries that were stored when the first was fetched."""
        cursor: str | None = None
        while True:
            page = self.list_raw(
                search, level=level, from_=from_, to=to, limit=limit, cursor=cursor
            )
            yield page
            cursor = page.next_cursor
            if cursor is None:
                return

    def iterate(
        self,
        search: str | None = None,
        *,
        level: LevelName | None = None,
        from_: str | None = None,
        to: str | None = None,
    ) -> Iterator[LogEntry]:
        """The entries of all pages, newest first."""
        for page in self.pages(search, level=level, from_=from_, to=to):
            yield from map(decoded_entry, page.logs)

    def stats(self) -> Stats:
        return self._channel.get(f"{self._logs}/stats", {}, Stats)

    def _own(self, entry: NewEntry) -> NewEntry:
        if entry.project_id is not None:
            return entry
        return msgspec.structs.replace(entry, project_id=self.project_id)


def decoded_entry(text: msgspec.Raw) -> LogEntry:
    try:
        return _ENTRY.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadAnswer(f"not a log entry: {error}") from error
