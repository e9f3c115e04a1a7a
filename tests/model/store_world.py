"""A store for tests: a directory, tiny limits, a clock that stands still, and ways to stop."""

import contextlib
import functools
import json
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Self

import msgspec
from reference import NewEntry

from logd.entry import LEVELS, Entry, ProjectId, Seq
from logd.format.body import decode_body
from logd.format.wal import Idempotency
from logd.query.ast import Filter
from logd.query.syntax import parse_search
from logd.store.chunk_scans import ScanHere
from logd.store.files import DirectoryLock, FileLayer, OsFiles
from logd.store.layout import DataLayout, ProjectLayout
from logd.store.limits import StoreLimits
from logd.store.project import Project, Request
from logd.store.search import Found, Position, Snapshot, search, search_at_hand
from logd.store.store import Store, lock_directory

PROJECT = ProjectId("0b7e8f0a-52c1-4c0e-9d0a-7f4f3c2b1a00")
OTHER = ProjectId("c3b9a5d2-0000-4000-8000-00000000beef")
START_NS = 1_790_000_000_000_000_000
SECOND = 1_000_000_000

TINY = StoreLimits(
    chunk_entries=8,
    chunk_bytes=1 << 20,
    min_freeze_entries=1,
    block_entries=4,
    segment_bytes=4096,
    segment_seconds=3600,
    merge_chunks=2,
    cache_bytes=1 << 16,
    min_free_disk_bytes=0,
)
"""Limits with which a few entries take every path."""


class World:
    """A data directory and what is open of it. `now_ns` is the time; nothing else advances it."""

    def __init__(
        self,
        root: Path,
        limits: StoreLimits = TINY,
        files: FileLayer | None = None,
        project: ProjectId = PROJECT,
    ) -> None:
        self.root = root
        self.limits = limits
        self.files: FileLayer = OsFiles() if files is None else files
        self.project_id = project
        self.now_ns = START_NS
        self._lock: DirectoryLock | None = None
        self.open()

    @property
    def layout(self) -> ProjectLayout:
        return DataLayout(self.root).project(self.project_id)

    def clock(self) -> int:
        return self.now_ns

    def close(self) -> None:
        """An orderly stop; nothing where it is stopped."""
        if self._lock is not None:
            self.store.close()
            self.abandon()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def open(self) -> Project:
        layout = DataLayout(self.root)
        self._lock = lock_directory(self.files, layout)
        try:
            self.store = Store(self.files, layout, self.limits, self.clock)
            self.project = self.store.project(self.project_id)
        except BaseException:
            self.abandon()
            raise
        return self.project

    def abandon(self) -> None:
        """As a process that was killed leaves it."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def reopen(self) -> Project:
        self.close()
        return self.open()

    def crash(self) -> None:
        """As after kill -9: what was written is there, nothing was closed."""
        left = Path(tempfile.mkdtemp(prefix="crashed-", dir=self.root.parent))
        shutil.copytree(self.root, left, dirs_exist_ok=True)
        self.close()
        shutil.rmtree(self.root)
        left.rename(self.root)

    # ------------------------------------------------------------ entries

    def store_entries(self, *groups: Sequence[NewEntry]) -> list[Seq]:
        """Each group is a request; all are appended at once. Their first sequence numbers."""
        return self.commit([self.request(group) for group in groups])

    def commit(self, requests: Sequence[Request]) -> list[Seq]:
        seqs = self.project.append(requests)
        self.project.publish(requests, seqs)
        return seqs

    def request(
        self, entries: Sequence[NewEntry], key: str | None = None, *, ndjson: bool = False
    ) -> Request:
        body = body_of(entries, self.project_id, ndjson=ndjson)
        batch = decode_body(body, self.project_id, self.now_ns, ndjson=ndjson)
        idempotency = None if key is None else idempotency_of(key)
        return Request(batch, self.now_ns, idempotency)

    # ------------------------------------------------------------ questions

    def seqs(self) -> list[int]:
        return sorted(entry.seq for entry in self.entries())

    def messages(self) -> list[str]:
        """In order of sequence."""
        return [e.message for e in sorted(self.entries(), key=lambda entry: entry.seq)]

    def entries(self) -> list[Entry]:
        """All, newest first. Fails on damage."""
        found = ask(self.project.snapshot())
        assert not found.damage
        assert found.total == len(found.entries)
        return list(found.entries)


def ask(
    snapshot: Snapshot,
    filter_: Filter | str = "",
    limit: int = 1_000_000,
    after: Position | None = None,
) -> Found:
    """A page with its total. `filter_`: a filter, or just the text of a search. What memory alone
    answers, before and after, has to be the same."""
    before = ask_memory(snapshot, filter_, limit, after)
    found = search(
        snapshot,
        _as_filter(filter_),
        limit,
        after,
        with_total=True,
        scanner=ScanHere(),
        check=lambda: None,
    )
    assert before is None or before == found
    again = ask_memory(snapshot, filter_, limit, after)
    assert again is None or again == found
    return found


def ask_memory(
    snapshot: Snapshot,
    filter_: Filter | str = "",
    limit: int = 1_000_000,
    after: Position | None = None,
    seconds: float = 60,
) -> Found | None:
    """The same, of what needs no look into files; None where that does not suffice."""
    filter_ = _as_filter(filter_)
    return search_at_hand(snapshot, filter_, limit, after, with_total=True, seconds=seconds)


def _as_filter(filter_: Filter | str) -> Filter:
    return Filter(search=parse_search(filter_)) if isinstance(filter_, str) else filter_


def entry(message: str, at_s: int = 0, level: int = 1, **fields: Any) -> NewEntry:
    """An entry `at_s` seconds after START_NS."""
    return NewEntry(START_NS + at_s * SECOND, LEVELS[level], message, **{"source": "test"} | fields)


def entries(prefix: str, count: int, at_s: int = 0) -> list[NewEntry]:
    return [entry(f"{prefix} {n}", at_s + n, n % 4) for n in range(count)]


def idempotency_of(key: str) -> Idempotency:
    digest = key.encode().ljust(16, b"\0")[:16]
    return Idempotency(digest, digest[::-1])


def body_of(new: Sequence[NewEntry], project: ProjectId, *, ndjson: bool = False) -> bytes:
    """The request that stores them: one entry as an object where it is alone."""
    objects = [json_of(one, project) for one in new]
    if ndjson:
        return b"\n".join(objects) + b"\n"
    return objects[0] if len(objects) == 1 else b"[" + b",".join(objects) + b"]"


def json_of(new: NewEntry, project: ProjectId) -> bytes:
    seconds, nanos = divmod(new.ts_ns, SECOND)
    fields = {
        "projectId": project,
        "level": new.level,
        "message": new.message,
        "source": new.source,
        "timestamp": f"{_whole_second(seconds)}.{nanos:09d}Z",
        "tags": list(new.tags),
        "meta": msgspec.Raw(new.meta),
    }
    return msgspec.json.encode(fields)


@functools.lru_cache
def _whole_second(seconds: int) -> str:
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
    return moment.strftime("%Y-%m-%dT%H:%M:%S")


def same(found: Entry, seq: int, expected: NewEntry) -> bool:
    """Whether a stored entry is what was sent."""
    return (
        found.seq == seq
        and found.ts_ns == expected.ts_ns
        and found.level == expected.level
        and found.message == expected.message
        and found.source == expected.source
        and json.loads(found.tags) == list(expected.tags)
        and found.meta == expected.meta
    )


@contextlib.contextmanager
def memory_directory() -> Iterator[Path]:
    """A directory for a while, in memory where the system has such: syncs cost nothing there."""
    shm = Path("/dev/shm")
    path = Path(tempfile.mkdtemp(prefix="logd-test-", dir=shm if shm.is_dir() else None))
    try:
        yield path
    finally:
        shutil.rmtree(path)


@contextlib.contextmanager
def new_world(limits: StoreLimits = TINY) -> Iterator[World]:
    """A world of its own, which goes in the end."""
    with memory_directory() as directory, World(directory / "data", limits) as world:
        yield world
