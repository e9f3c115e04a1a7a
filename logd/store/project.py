"""One project's log: append, make visible, freeze, merge, snapshot.

Who may call what: `append` from one thread at a time (the project's writer); `run_freeze` and
`run_merge` from one thread at a time (the freezer), also while an append runs; everything that says
so from the thread that owns the project's visible state (the event loop), or from one for which
that thread stands still, so that no other changes it meanwhile. Nothing mutable is handed from one
to another: a snapshot is immutable.

    append (writer) -> publish (owner)            an entry is durable, then visible
    prepare_freeze (owner) -> run_freeze (freezer) -> install (owner) -> discard (freezer)
    prepare_merge  (owner) -> run_merge  (freezer) -> install (owner) -> discard (freezer)
"""

import itertools
from collections import deque
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import Final

import msgspec

from logd.entry import Clock, LevelCounts, ProjectId, Seq
from logd.errors import Corruption, StorageFailed, StorageFull
from logd.format import wal as wal_codec
from logd.format.body import Batch
from logd.format.chunk import BuiltChunk, IdempotencyRecord
from logd.format.directory import ChunkRow
from logd.format.wal import Idempotency
from logd.format.wal_columns import encode_columns
from logd.store.cache import PartCache
from logd.store.chunk_reader import ChunkReader
from logd.store.files import FileLayer
from logd.store.freeze import ChunkBuilder, build_chunks
from logd.store.idempotency import IdempotencyTable
from logd.store.index import IndexChange
from logd.store.layout import ProjectLayout
from logd.store.limits import StoreLimits
from logd.store.merge import entries_of, is_small, plan_merge
from logd.store.recall import Sought, Unread, add_chunks, recall
from logd.store.recovery import recover
from logd.store.search import Snapshot
from logd.store.segments import SegmentName, view_of
from logd.store.tail import TailRun
from logd.store.wal import WalWriter

_numbers: Final = itertools.count()


class Request(msgspec.Struct, frozen=True, gc=False):
    """A validated request."""

    batch: Batch
    received_ns: int
    idempotency: Idempotency | None = None


class FreezeJob(msgspec.Struct, frozen=True):
    """A run that is to become chunks, and the WAL file that goes then."""

    run: TailRun
    wal_path: Path | None


class MergeJob(msgspec.Struct, frozen=True):
    """Neighbouring chunks that are to become one."""

    chunks: tuple[ChunkReader, ...]


class Installation(msgspec.Struct, frozen=True):
    """What changed on disk and is to change in what is visible."""

    added: tuple[ChunkReader, ...]
    removed: tuple[Seq, ...]
    run: TailRun | None
    wal_path: Path | None
    emptied: tuple[SegmentName, ...]


class Project:
    """An open project. Opening recovers it (`recovery.py`). `number`: no other has it. Opened anew
    after a failure, what was not synced may be gone, and its sequence numbers are given again."""

    def __init__(
        self,
        files: FileLayer,
        layout: ProjectLayout,
        project: ProjectId,
        limits: StoreLimits,
        cache: PartCache,
        clock: Clock,
        build: ChunkBuilder = build_chunks,
    ) -> None:
        """Raises UnsupportedFormat, or OSError where the disk fails."""
        self.project = project
        self.number = next(_numbers)
        self._files = files
        self._layout = layout
        self._limits = limits
        self._clock = clock
        self._build = build
        recovered = recover(files, layout, project, cache)
        self.damage = recovered.damage
        self._index = recovered.index
        self._segments = recovered.segments
        self._view = view_of([self._segments.reader(row) for row in recovered.rows])
        self._waiting = deque(FreezeJob(r.run, r.path) for r in recovered.runs)
        self._run = TailRun(recovered.next_seq)
        self._next_seq = recovered.next_seq
        self._visible_seq = recovered.visible_seq
        self._wal: WalWriter | None = None
        self._main: SegmentName | None = self._last_main_segment()
        self._unmergeable: set[Seq] = set()
        self._idempotency = IdempotencyTable(limits.idempotency_seconds)
        self.damage += add_chunks(self._idempotency, self._view.chunks, clock())
        for job in self._waiting:
            self._idempotency.add(job.run.records)
        self.failed = False

    # ------------------------------------------------------------ writing

    def append(self, requests: Sequence[Request], *, sync: bool = True) -> list[Seq]:
        """Make requests durable together, with one sync; the first sequence number of each.

        Without `sync` they are only durable after `self.sync()`. They are not
        visible until `publish`. Raises StorageFull (nothing was stored) or StorageFailed (the
        project takes nothing more until it is opened anew).
        """
        if self.failed:
            raise StorageFailed("the project's storage failed; it is being reopened")
        self._refuse_nearly_full()
        seqs = self.next_seqs(requests)
        buffers: list[bytes] = []
        for request, seq in zip(requests, seqs, strict=True):
            buffers += wal_codec.encode_frame(
                wal_codec.Frame(
                    seq,
                    request.batch.count,
                    request.received_ns,
                    wal_codec.Form.COLUMNS,
                    encode_columns(request.batch),
                    request.idempotency,
                )
            )
        try:
            if self._wal is None:
                path = self._layout.wal_file(self._next_seq)
                self._wal = WalWriter(self._files, path, self.project, self._next_seq)
            self._wal.append(buffers, sync=sync)
        except StorageFailed:
            self.failed = True
            raise
        self._next_seq = Seq(self._next_seq + sum(request.batch.count for request in requests))
        return seqs

    def next_seqs(self, requests: Sequence[Request]) -> list[Seq]:
        """The first sequence number of each, if they are appended next."""
        ends = accumulate([r.batch.count for r in requests], initial=self._next_seq)
        return [Seq(end) for end in ends][:-1]

    def _refuse_nearly_full(self) -> None:
        try:
            free = self._files.free_bytes(self._layout.root)
        except OSError as error:
            self.failed = True
            raise StorageFailed(f"the disk does not answer: {error.strerror}") from error
        if free < self._limits.min_free_disk_bytes:
            raise StorageFull("the free disk space is below min_free_disk_bytes")

    def sync(self) -> None:
        """Make durable what was appended without a sync. Raises StorageFailed."""
        try:
            if self._wal is not None:
                self._wal.sync()
        except StorageFailed:
            self.failed = True
            raise

    def publish(self, requests: Sequence[Request], seqs: Sequence[Seq]) -> None:
        """Owner: show what an append made durable."""
        for request, seq in zip(requests, seqs, strict=True):
            self._run.extend(seq, request.batch)
            if request.idempotency is not None:
                record = IdempotencyRecord(
                    request.idempotency, seq, request.batch.count, request.received_ns
                )
                self._run.records.append(record)
                self._idempotency.add([record])
            self._visible_seq = Seq(seq + request.batch.count)

    def recall_at_hand(self, key_digest: bytes) -> IdempotencyRecord | Unread | None:
        """Owner: what a request with this Idempotency-Key stored, if it was lately; `Unread` where
        only chunks can tell."""
        now = self._clock()
        candidates = self._idempotency.candidates(key_digest, now)
        if not candidates:
            return None
        sought = Sought(key_digest, self._idempotency.too_old_ns(now))
        return recall(sought, candidates, self._runs(), self._view.chunks)

    def recall(self, key_digest: bytes) -> IdempotencyRecord | None:
        """All of it at once, for a caller that owns every role."""
        found = self.recall_at_hand(key_digest)
        if not isinstance(found, Unread):
            return found
        recalled = found.read()
        self.damage += recalled.damage
        return recalled.record

    # ------------------------------------------------------------ reading

    def snapshot(self) -> Snapshot:
        """Owner: the log as it is visible now."""
        blocks = tuple(block for run in self._runs() for block in run.blocks())
        view = self._view
        return Snapshot(
            view.number,
            view.chunks,
            view.latest_first,
            blocks,
            self._visible_seq,
            self._index,
            self.level_counts(),
        )

    def let_go_of_index(self) -> None:
        """From any thread, while the project stays open: see `ProjectIndex.let_go`. Raises
        StorageFailed, after which nothing may be read until the project is opened anew."""
        try:
            self._index.let_go()
        except StorageFailed:
            self.failed = True
            raise

    def level_counts(self) -> LevelCounts:
        """Owner: visible entries of each level."""
        counts = list(self._view.level_counts)
        for run in self._runs():
            for code in range(4):
                counts[code] += run.level_counts[code]
        debug, info, warn, error = counts
        return debug, info, warn, error

    def _runs(self) -> list[TailRun]:
        """The tail, in order of sequence."""
        return [*(job.run for job in self._waiting), self._run]

    @property
    def run_bytes(self) -> int:
        """Owner: memory that the run that grows takes."""
        return self._run.size_bytes

    @property
    def waiting_bytes(self) -> int:
        """Owner: memory that the runs take that wait to be frozen."""
        return sum(job.run.size_bytes for job in self._waiting)

    @property
    def run_entries(self) -> int:
        """Owner: entries in the run that grows."""
        return self._run.count

    @property
    def waiting_freezes(self) -> int:
        """Owner: runs that wait to be frozen."""
        return len(self._waiting)

    @property
    def is_tail_full(self) -> bool:
        """Owner: the run that grows is due to be frozen."""
        run, limits = self._run, self._limits
        # The next batch would go over: what a chunk cannot hold would be one more, to look at in
        # every search.
        margin = limits.chunk_entries // 16
        return run.count >= limits.chunk_entries - margin or run.size_bytes >= limits.chunk_bytes

    # ------------------------------------------------------------ freezing and merging

    def end_wal(self) -> None:
        """Before a rotation, while no append runs: close the file of the run that grows, which may
        wait for the disk; not where that is empty, and stays. Raises StorageFailed."""
        try:
            if self._wal is not None and self._run.count:
                self._wal.close()
        except OSError as error:
            self.failed = True
            raise StorageFailed(f"the WAL could not be closed: {error.strerror}") from error

    def rotate(self) -> None:
        """Owner, while no append runs: the run that grew waits to be frozen, a new one grows."""
        if not self._run.count:
            return
        path = None
        if self._wal is not None:
            path = self._wal.path
            self._wal.close()
            self._wal = None
        self._run.seal()
        self._waiting.append(FreezeJob(self._run, path))
        self._run = TailRun(self._next_seq)

    def prepare_freeze(self) -> FreezeJob | None:
        """Owner: the run that waits longest."""
        return self._waiting[0] if self._waiting else None

    def run_freeze(self, job: FreezeJob) -> Installation:
        """Freezer: the run as chunks, on disk and in the index. Raises StorageFull or
        StorageFailed, after which it may be tried again."""
        built = self._build(job.run.pieces(), job.run.records, self._limits)
        _check_entries(built, job.run.count)
        rows = self._append_chunks(built)
        added = list(zip(rows, built, strict=True))
        self._apply(IndexChange(added=added, watermark=job.run.next_seq))
        readers = tuple(self._segments.reader(row) for row in rows)
        return Installation(readers, (), job.run, job.wal_path, ())

    def prepare_merge(self) -> MergeJob | None:
        """Owner: neighbours that are worth merging."""
        chunks = [chunk.row for chunk in self._view.chunks]
        rows = plan_merge(chunks, self._limits, self._unmergeable)
        if rows is None:
            return None
        wanted = {row.first_seq for row in rows}
        return MergeJob(tuple(c for c in self._view.chunks if c.first_seq in wanted))

    def run_merge(self, job: MergeJob) -> Installation:
        """Freezer: the chunks as one. Raises StorageFull, StorageFailed or Corruption."""
        now = self._clock()
        records: list[IdempotencyRecord] = []
        pieces = []
        for chunk in job.chunks:
            try:
                records += chunk.idempotency_records()
                pieces.append(entries_of(chunk))
            except Corruption:  # it would be in the way of every merge to come
                self._unmergeable.add(chunk.first_seq)
                raise
        live = [r for r in records if self._idempotency.is_live(r.received_ns, now)]
        built = self._build(pieces, live, self._limits)
        _check_entries(built, sum(chunk.count for chunk in job.chunks))
        rows = self._append_chunks(built)
        removed = tuple(chunk.first_seq for chunk in job.chunks)
        self._apply(IndexChange(added=list(zip(rows, built, strict=True)), removed=removed))
        emptied = self._emptied_by(removed, rows[0])
        return Installation((self._segments.reader(rows[0]),), removed, None, None, emptied)

    def _apply(self, change: IndexChange) -> None:
        """Put just appended chunks into the index."""
        try:
            self._index.apply(change)
        except StorageFull:  # nothing of it is in the index: the chunks must not fill the disk
            first = change.added[0][0]
            self._segments.take_back((first.segment_seq, first.segment_number), first.offset)
            self._main = None
            raise
        except StorageFailed:  # whether it is in the index, its next opening will tell
            self.failed = True
            raise

    def _emptied_by(self, removed: Sequence[Seq], added: ChunkRow) -> tuple[SegmentName, ...]:
        """Segment files that hold nothing but chunks that a merge removes."""
        gone = set(removed)
        rows = [chunk.row for chunk in self._view.chunks]
        before = {(row.segment_seq, row.segment_number) for row in rows if row.first_seq in gone}
        kept = [added, *(row for row in rows if row.first_seq not in gone)]
        after = {(row.segment_seq, row.segment_number) for row in kept}
        return tuple(sorted(before - after))

    def install(self, installation: Installation) -> None:
        """Owner: swap in one step, so that no reader sees an entry twice or never."""
        if installation.run is not None and self._waiting[0].run is not installation.run:
            raise ValueError("runs are frozen in the order in which they wait")
        gone = set(installation.removed)
        kept = [chunk for chunk in self._view.chunks if chunk.first_seq not in gone]
        self._view = view_of([*kept, *installation.added])
        if installation.run is not None:
            self._waiting.popleft()

    def discard(self, installation: Installation) -> None:
        """Freezer: remove the files that nothing visible needs any more."""
        if installation.wal_path is not None:
            self._files.unlink(installation.wal_path)
            self._files.sync_directory(self._layout.wal)
        for name in installation.emptied:
            if name == self._main:
                self._main = None
            self._segments.remove(name)

    def freeze(self) -> None:
        """All of freezing at once, for a caller that owns every role."""
        self.rotate()
        while (job := self.prepare_freeze()) is not None:
            installation = self.run_freeze(job)
            self.install(installation)
            self.discard(installation)

    def merge(self) -> bool:
        """All of one merge at once; whether there was one."""
        job = self.prepare_merge()
        if job is None:
            return False
        installation = self.run_merge(job)
        self.install(installation)
        self.discard(installation)
        return True

    # ------------------------------------------------------------ segments

    def _append_chunks(self, built: Sequence[BuiltChunk]) -> list[ChunkRow]:
        name = self._segment_for(built)
        try:
            return self._segments.append(name, built)
        except (StorageFull, StorageFailed):
            self._main = None  # it may not end as it should
            raise

    def _segment_for(self, built: Sequence[BuiltChunk]) -> SegmentName:
        """Small chunks go into a file of their own, which their merge removes."""
        first = built[0].head
        now = self._clock()
        if len(built) == 1 and is_small(first.count, first.source_bytes, self._limits):
            return self._segments.create(first.first_seq, now)
        if self._main is None or not self._takes_more(self._main, now):
            self._main = self._segments.create(first.first_seq, now)
        return self._main

    def _takes_more(self, name: SegmentName, now_ns: int) -> bool:
        created_ns = self._segments.created_ns(name)
        return (
            created_ns is not None
            and self._segments.size(name) < self._limits.segment_bytes
            and (now_ns - created_ns) / 1e9 < self._limits.segment_seconds
        )

    def _last_main_segment(self) -> SegmentName | None:
        for chunk in reversed(self._view.chunks):
            row = chunk.row
            if not is_small(row.count, row.source_bytes, self._limits):
                name = (row.segment_seq, row.segment_number)
                ends = self._segments.size(name) == max(
                    c.row.end
                    for c in self._view.chunks
                    if c.row.segment_seq == name[0] and c.row.segment_number == name[1]
                )
                return name if ends else None
        return None

    def close(self) -> None:
        """Owner, while nothing runs: entries not yet frozen stay in the WAL."""
        if self._wal is not None:
            self._wal.close()
            self._wal = None
        self._index.close()
        self._segments.close()


def _check_entries(built: Sequence[BuiltChunk], count: int) -> None:
    """What they were built of is removed when they are stored. Raises ValueError."""
    if sum(chunk.head.count for chunk in built) != count:
        raise ValueError("chunks were built of fewer or more entries than they were given")
