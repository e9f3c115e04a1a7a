"""What the tests of the control data share: a directory with a clock and randomness of its own,
and file layers that fail."""

import os
import random
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from logd.control.mirror import MirrorReader, read_contents
from logd.control.model import ApiKey, Org, Project, Role, User
from logd.control.store import Control
from logd.store.files import File, FileLayer, OsFiles

SECOND_NS = 1_000_000_000
START_NS = 1_800_000_000 * SECOND_NS


def memory_directory() -> Path:
    """A new directory on a file system without a disk, where there is one: for tests of hundreds
    of stops, to which syncing matters only as a call."""
    shared_memory = Path("/dev/shm")
    parent = shared_memory if os.access(shared_memory, os.W_OK) else None
    return Path(tempfile.mkdtemp(prefix="control-test-", dir=parent))


class World:
    """A control directory and everything that is passed in with it."""

    def __init__(self, root: Path, seed: int = 7) -> None:
        self.root = root
        self.directory = root / "control"
        self.now_ns = START_NS
        self.random_bytes = random.Random(seed).randbytes
        self._crashes = 0

    def clock(self) -> int:
        return self.now_ns

    def pass_seconds(self, seconds: int) -> None:
        self.now_ns += seconds * SECOND_NS

    def open(
        self, files: FileLayer | None = None, read_mirror: MirrorReader = read_contents
    ) -> Control:
        """By default a mirror that nobody vouches for is read in this process: for tests that
        know it to be sound."""
        return Control.open(
            self.directory,
            clock=self.clock,
            random_bytes=self.random_bytes,
            files=files or OsFiles(),
            read_mirror=read_mirror,
        )

    def crash(self, control: Control) -> None:
        """What kill -9 leaves: the files as they are while the store is open."""
        self._crashes += 1
        image = self.root / f"control-{self._crashes}"
        shutil.copytree(self.directory, image)
        control.close()
        self.directory = image

    @property
    def journal(self) -> Path:
        return self.directory / "journal.log"

    @property
    def mirror(self) -> Path:
        return self.directory / "control.mdb"

    def files_set_aside(self) -> list[str]:
        return sorted(
            path.name.split(".damaged-")[0] for path in self.directory.glob("*.damaged-*")
        )


class Office:
    """A server admin, who has the first account; an organisation with its admin, a member, a
    project the member is assigned to and one he is not; and a stranger."""

    def __init__(self, control: Control) -> None:
        self.root: User = control.ensure_user("root@example.org")
        self.admin: User = control.ensure_user("admin@example.org")
        self.member: User = control.ensure_user("member@example.org")
        self.stranger: User = control.ensure_user("stranger@example.org")
        self.org: Org = control.create_org(self.admin.id, "Acme", "acme")
        from_admin = (self.admin.id, self.org.id)
        control.add_member(*from_admin, "member@example.org", Role.MEMBER)
        self.project: Project = control.create_project(*from_admin, "web")
        self.other: Project = control.create_project(*from_admin, "billing")
        control.assign(self.admin.id, self.project.id, self.member.id)

    def key(self, control: Control, name: str = "shipper") -> tuple[ApiKey, str]:
        return control.create_key(self.admin.id, self.project.id, name)


class FailingFiles(OsFiles):
    """The real file layer, in which the operations that `failing` names raise an error."""

    def __init__(self) -> None:
        self.failing: dict[str, OSError] = {}

    def create(self, path: Path) -> File:
        self.check("create")
        return FailingFile(super().create(path), self)

    def open(self, path: Path) -> File:
        return FailingFile(super().open(path), self)

    def rename(self, source: Path, target: Path) -> None:
        self.check("rename")
        super().rename(source, target)

    def unlink(self, path: Path) -> None:
        self.check("unlink")
        super().unlink(path)

    def sync_directory(self, path: Path) -> None:
        self.check("sync_directory")
        super().sync_directory(path)

    def check(self, operation: str) -> None:
        if operation in self.failing:
            raise self.failing[operation]


class FailingFile:
    """A file of `FailingFiles`. A failing append leaves half of its bytes."""

    def __init__(self, file: File, files: FailingFiles) -> None:
        self.path = file.path
        self._file = file
        self._files = files

    def append(self, buffers: Sequence[bytes]) -> None:
        data = b"".join(buffers)
        try:
            self._files.check("append")
        except BaseException:
            self._file.append([data[: len(data) // 2]])
            raise
        self._file.append([data])

    def write(self, offset: int, buffers: Sequence[bytes]) -> None:
        self._file.write(offset, buffers)

    def sync(self) -> None:
        self._files.check("sync")
        self._file.sync()

    def read(self, offset: int, size: int) -> bytes:
        return self._file.read(offset, size)

    def truncate(self, size: int) -> None:
        self._file.truncate(size)

    def descriptor(self) -> int | None:
        return self._file.descriptor()

    def size(self) -> int:
        return self._file.size()

    def close(self) -> None:
        self._file.close()


class Killed(BaseException):
    """The process is dead: nothing catches this."""


class DyingFiles(FailingFiles):
    """Dies at the nth operation, before it is done (half done, for an append), and stays dead."""

    def __init__(self, operations: int) -> None:
        super().__init__()
        self._left = operations

    @property
    def died(self) -> bool:
        return self._left <= 0

    def check(self, operation: str) -> None:
        self._left -= 1
        if self._left <= 0:
            raise Killed


class PowerLossFiles(DyingFiles):
    """Dies at the nth operation; then `lose_power` takes back all that was not synced: bytes of
    files, and names of directories. What LMDB writes is outside: it syncs by itself."""

    def __init__(self, operations: int, graveyard: Path) -> None:
        super().__init__(operations)
        self._graveyard = graveyard
        self._graveyard.mkdir()
        self._kept = 0
        self._unsynced_names: list[Callable[[], object]] = []
        self._files: list[PowerLossFile] = []
        self.synced: dict[int, int] = {}
        """Of each file, by its inode: the bytes that are on the device."""

    def create(self, path: Path) -> File:
        self.check("create")
        file = PowerLossFile(OsFiles.create(self, path), self, 0)
        self._files.append(file)
        self._unsynced_names.append(lambda: path.unlink(missing_ok=True))
        return file

    def open(self, path: Path) -> File:
        file = PowerLossFile(OsFiles.open(self, path), self, path.stat().st_size)
        self._files.append(file)
        return file

    def rename(self, source: Path, target: Path) -> None:
        kept = self._keep(target) if target.exists() else None
        super().rename(source, target)
        if kept is not None:
            self._unsynced_names.append(lambda: kept.rename(target))
        self._unsynced_names.append(lambda: target.rename(source))

    def unlink(self, path: Path) -> None:
        kept = self._keep(path)
        super().unlink(path)
        self._unsynced_names.append(lambda: kept.rename(path))

    def sync_directory(self, path: Path) -> None:
        super().sync_directory(path)
        self._unsynced_names.clear()

    def lose_power(self) -> None:
        for file in self._files:
            file.lose_unsynced()
        for undo in reversed(self._unsynced_names):
            undo()

    def _keep(self, path: Path) -> Path:
        self._kept += 1
        kept = self._graveyard / f"{self._kept}"
        kept.hardlink_to(path)
        return kept


class PowerLossFile(FailingFile):
    """Tells how much of it is on the device."""

    def __init__(self, file: File, files: "PowerLossFiles", synced_bytes: int) -> None:
        super().__init__(file, files)
        self._synced = files.synced
        self._descriptor = os.open(file.path, os.O_RDWR)  # outlives close and rename
        self._inode = os.fstat(self._descriptor).st_ino
        self._synced.setdefault(self._inode, synced_bytes)

    def sync(self) -> None:
        super().sync()
        self._synced[self._inode] = os.fstat(self._descriptor).st_size

    def lose_unsynced(self) -> None:
        os.ftruncate(self._descriptor, self._synced[self._inode])
        os.close(self._descriptor)
