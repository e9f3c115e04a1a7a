"""Opening a project's directory: what the last process left, made whole again.

1. The index is opened; one that cannot be trusted is set aside and rebuilt from the segments.
2. What segments hold behind their last chunk in the index is a half-finished freeze or merge: cut
   off where the WAL or another chunk still has the entries, taken into the index where not.
3. WAL frames above the watermark become the tail again. A torn end is cut off. The last file may
   hold frames that were never synced, or whose sync failed: its frames are written to a new file
   and synced before any of them is shown.

Nothing here gives up because of damage: it is set aside under `damaged/`, counted and reported.
"""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from logd.entry import ProjectId, Seq
from logd.errors import Corruption, LogdError
from logd.format import wal as wal_codec
from logd.format.body import Batch, decode_body
from logd.format.chunk import BuiltChunk, ChunkHead, IdempotencyRecord
from logd.format.directory import ChunkRow, row_of
from logd.store.cache import PartCache
from logd.store.chunk_search import rebuild_postings, rebuild_vocabulary
from logd.store.files import FileLayer
from logd.store.freeze import slice_batch
from logd.store.index import IndexChange, IndexContent, ProjectIndex
from logd.store.layout import ProjectLayout, parse_wal_name
from logd.store.segments import SegmentName, Segments
from logd.store.tail import TailRun
from logd.store.wal import WalContent, read_wal


class RecoveredRun(msgspec.Struct, frozen=True):
    """A WAL file's entries; `path` goes once they are in chunks."""

    path: Path
    run: TailRun


class Recovered(msgspec.Struct, frozen=True):
    index: ProjectIndex
    segments: Segments
    rows: tuple[ChunkRow, ...]
    runs: tuple[RecoveredRun, ...]
    next_seq: Seq
    damage: tuple[Corruption, ...]


def recover(
    files: FileLayer, layout: ProjectLayout, project: ProjectId, cache: PartCache
) -> Recovered:
    """Raises UnsupportedFormat if a newer program wrote a file, OSError if the disk fails."""
    for directory in (layout.wal, layout.segments, layout.index):
        files.make_directory(directory)
    work = _Recovery(files, layout, project, Segments(files, layout, project, cache), cache)
    return work.run()


class _Recovery:
    def __init__(
        self,
        files: FileLayer,
        layout: ProjectLayout,
        project: ProjectId,
        segments: Segments,
        cache: PartCache,
    ) -> None:
        self._files = files
        self._layout = layout
        self._project = project
        self._segments = segments
        self._cache = cache
        self._damage: list[Corruption] = []

    def run(self) -> Recovered:
        contents = self._read_wals()
        index, content = self._open_index()
        rows = self._reconcile(index, content, contents)
        watermark = max([content.watermark, *(row.next_seq for row in rows)])
        runs, next_seq = self._replay(contents, Seq(watermark))
        return Recovered(
            index, self._segments, tuple(rows), tuple(runs), next_seq, tuple(self._damage)
        )

    # ------------------------------------------------------------ the index

    def _open_index(self) -> tuple[ProjectIndex, IndexContent]:
        index: ProjectIndex | None = None
        try:
            index = ProjectIndex(self._layout.index)
            return index, index.content()
        except Corruption as error:
            self._damage.append(error)
            if index is not None:
                index.close()
        self.set_aside(self._layout.index)
        self._files.make_directory(self._layout.index)
        index = ProjectIndex(self._layout.index)
        return index, index.content()

    def set_aside(self, path: Path) -> None:
        """Keep what is damaged where nothing reads it."""
        self._files.make_directory(self._layout.damaged)
        taken = set(self._files.list_directory(self._layout.damaged))
        number = next(n for n in range(len(taken) + 1) if f"{path.name}.{n}" not in taken)
        self._files.rename(path, self._layout.damaged / f"{path.name}.{number}")
        self._files.sync_directory(self._layout.damaged)
        self._files.sync_directory(path.parent)

    # ------------------------------------------------------------ the segments

    def _reconcile(
        self, index: ProjectIndex, content: IndexContent, wals: Sequence[WalContent]
    ) -> list[ChunkRow]:
        """The rows of all chunks there are; the index and the files agree when this returns."""
        names = set(self._segments.names())
        rows = [r for r in content.rows if (r.segment_seq, r.segment_number) in names]
        for row in content.rows:
            if (row.segment_seq, row.segment_number) not in names:
                path = self._layout.segment_file(row.segment_seq, row.segment_number)
                self._damage.append(Corruption(path, row.offset, "the segment file is missing"))
        in_wal = _wal_ranges(wals)
        for name in sorted(names):
            rows += self._leftovers(index, name, rows, in_wal)
        return sorted(rows, key=lambda row: row.first_seq)

    def _leftovers(
        self,
        index: ProjectIndex,
        name: SegmentName,
        rows: Sequence[ChunkRow],
        in_wal: Sequence[tuple[int, int]],
    ) -> list[ChunkRow]:
        """What a segment file holds that the index does not know: adopted, or cut off."""
        known = [row for row in rows if (row.segment_seq, row.segment_number) == name]
        end = max((row.end for row in known), default=0)
        if known and self._segments.size(name) <= end:
            return []
        adopted: list[ChunkRow] = []
        for found in self._segments.scan(name):
            if isinstance(found, Corruption):
                if found.offset >= end:
                    self._damage.append(found)
                continue
            offset, head = found
            if offset < end:
                continue
            if _covered(head, [*rows, *adopted], in_wal):
                continue
            row = self._adopt(index, name, offset, head)
            if row is not None:
                adopted.append(row)
        if not known and not adopted:
            self._segments.remove(name)
        elif not adopted:
            self._segments.truncate(name, end)
        return adopted

    def _adopt(
        self, index: ProjectIndex, name: SegmentName, offset: int, head: ChunkHead
    ) -> ChunkRow | None:
        """Index a chunk from its columns; None where they are damaged."""
        reader = self._segments.reader(row_of(head, (), *name, offset))
        try:
            records = reader.idempotency_records()
            built = BuiltChunk(
                head,
                tuple(records),
                b"",
                rebuild_vocabulary(reader),
                rebuild_postings(reader),
            )
        except Corruption as error:
            self._damage.append(error)
            return None
        row = row_of(head, records, *name, offset)
        index.apply(IndexChange(added=[(row, built)], watermark=row.next_seq))
        return row

    # ------------------------------------------------------------ the WAL

    def _read_wals(self) -> list[WalContent]:
        """WAL files in order of sequence."""
        names = self._files.list_directory(self._layout.wal)
        contents = []
        for name in names:
            if parse_wal_name(name) is None:
                self._files.unlink(self._layout.wal / name)  # a rewrite that was not finished
                continue
            file = self._files.open(self._layout.wal / name)
            contents.append(read_wal(file, self._project))
            file.close()
            self._damage += contents[-1].damage
        return contents

    def _replay(
        self, contents: Sequence[WalContent], watermark: Seq
    ) -> tuple[list[RecoveredRun], Seq]:
        """(the runs above the watermark, the next sequence number)."""
        runs = []
        next_seq = watermark
        for position, content in enumerate(contents):
            if content.damage:
                self._keep_copy(content)
            run = self._to_run(content, watermark)
            if run is None:
                if content.torn_bytes and not content.damage:
                    self._keep_torn(content)
                self._files.unlink(content.path)
                self._files.sync_directory(self._layout.wal)
            else:
                if position == len(contents) - 1 or content.torn_bytes or content.damage:
                    self._rewrite(content)
                runs.append(RecoveredRun(content.path, run))
                next_seq = max(next_seq, run.next_seq)
            if content.torn_bytes:
                # Numbers that torn or damaged frames may have had are not given out again.
                next_seq = Seq(next_seq + content.torn_bytes)
        return runs, next_seq

    def _to_run(self, content: WalContent, watermark: Seq) -> TailRun | None:
        run: TailRun | None = None
        for frame in content.frames:
            if frame.first_seq + frame.count <= watermark:
                continue
            batch = self._decode(content.path, frame)
            if batch is None:
                continue
            first_seq = frame.first_seq
            if first_seq < watermark:
                batch = slice_batch(batch, watermark - first_seq, batch.count)
                first_seq = watermark
            if run is None:
                run = TailRun(first_seq)
            run.extend(first_seq, batch)
            if frame.idempotency is not None:
                run.records.append(
                    IdempotencyRecord(
                        frame.idempotency, frame.first_seq, frame.count, frame.received_ns
                    )
                )
        if run is not None:
            run.seal()
        return run

    def _decode(self, path: Path, frame: wal_codec.Frame) -> Batch | None:
        """Frames were validated before they were written: one that no longer decodes is damage."""
        try:
            batch = decode_body(frame.body, self._project, frame.received_ns, ndjson=frame.ndjson)
        except LogdError as error:
            self._damage.append(Corruption(path, 0, f"frame {frame.first_seq}: {error}"))
            return None
        if batch.count != frame.count:
            reason = f"frame {frame.first_seq} holds {batch.count} entries, not {frame.count}"
            self._damage.append(Corruption(path, 0, reason))
            return None
        return batch

    def _keep_copy(self, content: WalContent) -> None:
        file = self._files.open(content.path)
        data = file.read(0, file.size())
        file.close()
        self._write_aside(content.path.name, data)

    def _keep_torn(self, content: WalContent) -> None:
        file = self._files.open(content.path)
        data = file.read(content.end, content.torn_bytes)
        file.close()
        if data.strip(b"\0"):
            self._write_aside(content.path.name + ".torn", data)

    def _write_aside(self, name: str, data: bytes) -> None:
        self._files.make_directory(self._layout.damaged)
        taken = set(self._files.list_directory(self._layout.damaged))
        number = next(n for n in range(len(taken) + 1) if f"{name}.{n}" not in taken)
        file = self._files.create(self._layout.damaged / f"{name}.{number}")
        file.append([data])
        file.sync()
        file.close()
        self._files.sync_directory(self._layout.damaged)

    def _rewrite(self, content: WalContent) -> None:
        """The file's valid frames in a new, synced file of the same name."""
        if content.torn_bytes and not content.damage:
            self._keep_torn(content)
        fresh = content.path.with_name(content.path.name + ".new")
        file = self._files.create(fresh)
        buffers = [wal_codec.encode_header(self._project, content.frames[0].first_seq)]
        for frame in content.frames:
            buffers += wal_codec.encode_frame(frame)
        file.append(buffers)
        file.sync()
        file.close()
        self._files.rename(fresh, content.path)
        self._files.sync_directory(self._layout.wal)


def _wal_ranges(contents: Sequence[WalContent]) -> list[tuple[int, int]]:
    """Stretches of sequence numbers that the WAL holds, joined and sorted."""
    spans = sorted(
        (frame.first_seq, frame.first_seq + frame.count)
        for content in contents
        for frame in content.frames
    )
    out: list[tuple[int, int]] = []
    for start, stop in spans:
        if out and start <= out[-1][1]:
            out[-1] = (out[-1][0], max(out[-1][1], stop))
        else:
            out.append((start, stop))
    return out


def _covered(head: ChunkHead, rows: Sequence[ChunkRow], in_wal: Sequence[tuple[int, int]]) -> bool:
    """Whether other chunks or the WAL have entries of the chunk."""
    return any(
        start < head.next_seq and head.first_seq < stop
        for start, stop in [*((row.first_seq, row.next_seq) for row in rows), *in_wal]
    )
