"""Keys and values that outlive anything: the journal, the LMDB copy, and a map of both in memory.

A transaction is durable when its frame in the journal is; LMDB follows. At the opening the two
are compared; whatever is damaged is set aside and written anew from what is sound.
"""

import errno
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import lmdb

from logd.control import disk, frames, seal
from logd.control.journal import Journal
from logd.control.layout import Layout
from logd.control.mirror import Contents, Mirror, MirrorReader
from logd.control.recovery import Recovered, recover
from logd.errors import Corruption, LogdError, StorageFailed, StorageFull
from logd.store.files import FileLayer

REWRITE_BYTES: Final = 1024 * 1024
REWRITE_RATIO: Final = 4
"""The journal is rewritten when it is larger than both REWRITE_BYTES and this many times the live
data: at most 3 bytes in 4 are history, and a small server rewrites about once in 5,000 changes."""


class Vault:
    """The control records as bytes. Not thread-safe: its owner has the lock."""

    def __init__(self, directory: Path, files: FileLayer) -> None:
        self._layout = Layout(directory)
        self._files = files
        self._journal = Journal(self._layout, files, 0)
        self._mirror: Mirror | None = None
        self._records: dict[str, bytes] = {}
        self._live_bytes = 0
        self._rewrite_above = REWRITE_BYTES
        self._keep_journal_as: Path | None = None
        self.damage: list[str] = []

    @property
    def records(self) -> Mapping[str, bytes]:
        return self._records

    def open(self, now_ns: int, read_mirror: MirrorReader) -> None:
        """Read what is there, repairing it. Raises UnsupportedFormat, StorageFull, StorageFailed.

        A version this program doesn't know is refused before a byte is written. `now_ns` goes
        into the names of files that are set aside.
        """
        try:
            self._open(now_ns, read_mirror)
        except OSError as error:
            raise _storage_error(error, str(error.filename or "")) from error

    def commit(self, changes: frames.Changes) -> None:
        """One transaction, durable on return. Raises StorageFull or StorageFailed: then it was
        not applied here; after a crash it may turn out to have reached the disk all the same."""
        try:
            if self._journal.broken:
                self._rewrite_journal()
            self._journal.append(changes)
        except OSError as error:
            raise _storage_error(error) from error
        for key, value in changes.items():
            self._set(key, value)
        self._follow(changes)
        self._rewrite_if_large()

    def close(self) -> bool:
        """Close, and seal the LMDB copy. False: the disk did not allow that, and the next opening
        will be that after a crash."""
        sound = self._mirror is not None and not self._journal.broken
        self._journal.close()
        if self._mirror is not None:
            self._mirror.close()
            self._mirror = None
        if not sound:
            return False
        try:
            seal.write(self._layout, self._files, self._journal.last_sequence)
        except OSError:
            return False
        return True

    # ---- opening

    def _open(self, now_ns: int, read_mirror: MirrorReader) -> None:
        data = disk.read_whole(self._files, self._layout.journal)
        journal = frames.scan(data) if data is not None else None
        self._files.make_directory(self._layout.directory)
        found = seal.read(self._layout, self._files)
        seal.remove(self._layout, self._files)
        if journal is not None and _vouched_for(journal, found):
            self._take(recover(journal, None), keep_journal_as=None)
            self._mirror = self._reopen_mirror()
            return
        copy, problem = self._read_copy(read_mirror)
        if problem is None and found is not None and not found.matches:
            problem = "it was changed or removed after a clean stop"
        if problem is not None:
            self._note(f"the LMDB copy is built anew: {problem}")
        recovered = recover(journal, copy)
        for sentence in recovered.damage:
            self._note(sentence)
        self._repair(journal is not None, recovered, problem is not None, now_ns)

    def _repair(
        self, have_journal: bool, recovered: Recovered, bad_mirror: bool, now_ns: int
    ) -> None:
        """Write anew what must be, the journal first: until it is sound the mirror stays."""
        keep_journal = have_journal and bool(recovered.damage)
        name = self._layout.set_aside(self._layout.journal, now_ns)
        self._take(recovered, keep_journal_as=name if keep_journal else None)
        if self._journal.broken:
            return
        if bad_mirror and disk.present(self._files, self._layout.mirror):
            aside = self._layout.set_aside(self._layout.mirror, now_ns)
            disk.put_in_place(self._files, self._layout.mirror, aside)
        self._follow({})

    def _take(self, recovered: Recovered, keep_journal_as: Path | None) -> None:
        """Serve these records. On a full disk the journal stays broken until the next commit."""
        self._records = recovered.records
        self._live_bytes = sum(len(key) + len(value) for key, value in self._records.items())
        self._journal = Journal(self._layout, self._files, recovered.sequence)
        self._keep_journal_as = keep_journal_as
        if not recovered.rewrite:
            self._journal.continue_file()
            return
        try:
            self._rewrite_journal()
        except OSError as error:
            if not _is_full(error):
                raise
            self._note("the disk is full: the journal will be repaired with the next change")

    def _read_copy(self, read_mirror: MirrorReader) -> tuple[Contents | None, str | None]:
        """The LMDB copy's contents if it can be read; the reason if it can't."""
        if not disk.present(self._files, self._layout.mirror):
            return None, None
        try:
            return read_mirror(self._layout.mirror), None
        except Corruption as corruption:
            return None, corruption.reason

    def _reopen_mirror(self) -> Mirror | None:
        try:
            return Mirror(self._layout.mirror)
        except lmdb.Error as error:
            self._note(f"the LMDB copy cannot be opened: {error}")
            return None

    # ---- keeping the files in step

    def _set(self, key: str, value: bytes | None) -> None:
        old = self._records.pop(key, None)
        if old is not None:
            self._live_bytes -= len(key) + len(old)
        if value is not None:
            self._records[key] = value
            self._live_bytes += len(key) + len(value)

    def _follow(self, changes: frames.Changes) -> None:
        """Bring the LMDB copy up to the journal, or build it anew.

        The transaction is durable already: a failure here is noted, and mended by the next one.
        """
        sequence, count = self._journal.last_sequence, len(self._records)
        if self._mirror is not None:
            try:
                self._mirror.commit(changes, sequence, count)
                return
            except lmdb.Error as error:
                self._note(f"the LMDB copy is built anew: {error}")
                self._mirror.close()
                self._mirror = None
        try:
            self._mirror = Mirror.build(self._layout, self._files, self._records, sequence)
        except (lmdb.Error, OSError) as error:
            self._note(f"the LMDB copy cannot be written: {error}")

    def _rewrite_if_large(self) -> None:
        if self._journal.size <= max(self._rewrite_above, REWRITE_RATIO * self._live_bytes):
            return
        try:
            self._rewrite_journal()
        except OSError:  # the old one goes on, or the next commit begins with another attempt
            self._rewrite_above = self._journal.size + REWRITE_BYTES
            return
        self._rewrite_above = REWRITE_BYTES
        self._follow({})

    def _rewrite_journal(self) -> None:
        """Raises OSError. A journal that is evidence of damage is copied first."""
        if self._keep_journal_as is not None:
            data = disk.read_whole(self._files, self._layout.journal) or b""
            disk.write_new(self._files, self._keep_journal_as, data).close()
            self._keep_journal_as = None
        self._journal.rewrite(self._records)

    def _note(self, sentence: str) -> None:
        if sentence not in self.damage:  # a fault that lasts is one fault
            self.damage.append(sentence)


def _vouched_for(journal: frames.Scan, found: seal.Seal | None) -> bool:
    """Whether nothing has changed since a clean stop."""
    return (
        journal.whole
        and found is not None
        and found.matches
        and found.sequence == journal.last_sequence
    )


def _is_full(error: OSError) -> bool:
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


def _storage_error(error: OSError, file: str = "") -> LogdError:
    """`file`: for the operator only; what a change raises may reach a client."""
    kind = StorageFull if _is_full(error) else StorageFailed
    return kind(": ".join(filter(None, ["control data", file, error.strerror])))
