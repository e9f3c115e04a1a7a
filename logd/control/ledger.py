"""What every chapter of the control data stands on: the state, and transactions over it."""

import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import msgspec

from logd.control import records
from logd.control.errors import Forbidden, NotFound
from logd.control.mirror import MirrorReader
from logd.control.model import Org, Project, User
from logd.control.records import Doomed, KeyRecord, LastUse, Record, TokenRecord
from logd.control.salvage import read_in_child
from logd.control.state import State
from logd.control.vault import Vault
from logd.entry import Clock, RandomBytes
from logd.errors import StorageFailed, StorageFull
from logd.store.files import FileLayer, OsFiles

OS_FILES: Final = OsFiles()
FLUSH_INTERVAL_NS: Final = 60_000_000_000


class Transaction:
    """Changes to one state, which stays as it was; they become the next one together."""

    def __init__(self, state: State, now_ns: int) -> None:
        self.state = state
        self.now_ns = now_ns
        self.changes: dict[str, Record | None] = {}

    def put(self, record: Record) -> None:
        self.changes[records.key_of(record)] = record

    def drop(self, record: Record) -> None:
        self.changes[records.key_of(record)] = None

    def drop_credential(self, record: TokenRecord | KeyRecord) -> None:
        """A token or key, and the note of its last use."""
        self.drop(record)
        use = self.state.uses.get(records.row_key(record))
        if use is not None:
            self.drop(use)

    def drop_project(self, project: Project) -> None:
        """A project with its keys and assignments; its logs are doomed."""
        for key in self.state.keys.where("project", project.id):
            self.drop_credential(key)
        for assignment in self.state.assignments.where("project", project.id):
            self.drop(assignment)
        self.drop(project)
        self.put(Doomed(project.id))

    def outcome(self) -> State:
        """The state that the changes so far lead to."""
        return self.state.changed(self.changes)


class Ledger:
    """The current state, for readers on any thread; one lock, for those who write.

    A reader takes `_state` once and so sees one moment.
    """

    def __init__(self, vault: Vault, clock: Clock, random_bytes: RandomBytes) -> None:
        self._vault = vault
        self._clock = clock
        self._random_bytes = random_bytes
        self._lock = threading.Lock()
        self._closed = False
        self._state = _load(vault)
        self._last_used = {use.credential_id: use.at_ns for use in self._state.uses}
        self._flushed_at_ns: int | None = None

    @classmethod
    def open(
        cls,
        directory: Path,
        *,
        clock: Clock,
        random_bytes: RandomBytes,
        files: FileLayer = OS_FILES,
        read_mirror: MirrorReader = read_in_child,
    ) -> Self:
        """Open the control data in this directory, created if there is none; repairs what it can.

        Raises UnsupportedFormat where a newer program wrote them; StorageFull or StorageFailed
        where the files can't be opened or created. What was found damaged is in `damage`.
        `read_mirror` reads an LMDB file that nobody vouches for, after an unclean stop.
        """
        vault = Vault(directory, files)
        vault.open(clock(), read_mirror)
        return cls(vault, clock, random_bytes)

    def close(self) -> bool:
        """Write the last uses and close. False: the disk refused something; nothing that was
        answered is lost, and the next opening checks everything."""
        with self._lock:
            if self._closed:
                return True
        flushed = True
        try:
            self._write_last_used()
        except (StorageFull, StorageFailed):
            flushed = False
        with self._lock:
            self._closed = True
            return self._vault.close() and flushed

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def damage(self) -> tuple[str, ...]:
        """What was found damaged since the opening, as sentences for the operator."""
        return tuple(self._vault.damage)

    def flush_last_used(self) -> bool:
        """[thread] Write when keys and tokens were last used: at most once a minute, else it does
        nothing. True if something was written."""
        now_ns, last_ns = self._clock(), self._flushed_at_ns
        if last_ns is not None and 0 <= now_ns - last_ns < FLUSH_INTERVAL_NS:
            return False
        self._flushed_at_ns = now_ns
        return self._write_last_used()

    def _write_last_used(self) -> bool:
        with self._transaction() as change:
            for credential_id, at_ns in self._last_used.copy().items():
                known = change.state.uses.get(credential_id)
                if known is not None and known.at_ns == at_ns:
                    continue
                if change.state.has_credential(credential_id):
                    change.put(LastUse(credential_id, at_ns))
                else:  # revoked while it was being used
                    self._last_used.pop(credential_id, None)
            return bool(change.changes)

    @contextmanager
    def _transaction(self) -> Iterator[Transaction]:
        """One transaction: durable, and visible to every reader, when the block is left.

        If the block raises nothing happens. Raises StorageFull or StorageFailed.
        """
        with self._lock:
            if self._closed:
                raise StorageFailed("the control data are closed")
            change = Transaction(self._state, self._clock())
            yield change
            if change.changes:
                state = self._state.changed(change.changes)
                self._vault.commit({
                    key: None if record is None else records.encode(record)
                    for key, record in change.changes.items()
                })  # fmt: skip
                self._state = state

    def _new_id(self) -> str:
        return str(uuid.UUID(bytes=self._random_bytes(16), version=4))


def caller_of(state: State, user_id: str) -> User:
    """The user who asks. His token was good a moment ago, but he may be disabled since."""
    user = state.users.get(user_id)
    if user is None or user.disabled:
        raise Forbidden("user_disabled", "this user is disabled")
    return user


def org_of(state: State, org_id: str) -> Org:
    org = state.orgs.get(org_id)
    if org is None:
        raise NotFound("organisation")
    return org


def project_of(state: State, project_id: str, org_id: str | None = None) -> Project:
    """`org_id`: the organisation in whose path the project was asked for."""
    project = state.projects.get(project_id)
    if project is None or org_id not in (None, project.org_id):
        raise NotFound("project")
    return project


def _load(vault: Vault) -> State:
    """The state that the stored records make. One that can't be read stays in the files."""
    readable: dict[str, Record | None] = {}
    for key, value in vault.records.items():
        try:
            record = records.decode(key, value)
        except (msgspec.MsgspecError, ValueError) as error:
            vault.damage.append(f"the record {key} cannot be read: {error}")
            continue
        if record is not None:
            readable[key] = record
    return State.empty().changed(readable)
