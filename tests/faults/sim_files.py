"""A simulated disk behind the store's file layer: what was not synced may be gone after a crash.

- A file's data and size are safe once the file was synced. Of what was written since, each 512-byte
  sector may be there, be zeros, or be missing with all that follows it; a truncation may be undone.
- A name is safe once its directory was synced. Each name that was made, moved or removed since may
  be in any state that it had.
- A sync that fails has lost what it was to write: the data can still be read until the power goes,
  and no later sync of the file saves them.

The disk counts what changes it. At a chosen operation it kills the process (`Died`), before it or,
where it writes, in the midst of it; or it lets the operation fail.

Directories exist in reality too, because the index in one of them is a real LMDB file: it syncs by
itself and is as its last transaction left it. `index.drop` decides whether it is lost.
"""

import errno
import itertools
import os
import random
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from logd.store.files import File

SECTOR = 512
INDEX = "index"
UNLIMITED = 1 << 40


class Died(BaseException):
    """The process was killed here: no handler of it runs on."""


class _Data:
    """A file. `seen`: what processes read; `safe`: what is on the device; `changes` since then: a
    truncation to a size, or bytes at an offset."""

    def __init__(self) -> None:
        self.seen = bytearray()
        self.safe = bytearray()
        self.changes: list[int | tuple[int, bytes]] = []

    def change(self, change: int | tuple[int, bytes]) -> None:
        _apply(self.seen, change)
        self.changes.append(change)

    def sync(self) -> None:
        for change in self.changes:
            _apply(self.safe, change)
        self.changes = []

    def lose_power(self, random_: random.Random) -> None:
        for change in self.changes:
            if isinstance(change, int):
                if random_.random() < 0.5:
                    _apply(self.safe, change)
            else:
                for offset, sector in _sectors(*change):
                    fate = random_.random()
                    if fate < 0.7:
                        _apply(self.safe, (offset, sector))
                    elif fate < 0.85:
                        _apply(self.safe, (offset, bytes(len(sector))))
        self.changes = []
        self.seen = bytearray(self.safe)


def _apply(data: bytearray, change: int | tuple[int, bytes]) -> None:
    if isinstance(change, int):
        del data[change:]
        return
    offset, content = change
    data.extend(bytes(max(0, offset - len(data))))
    data[offset : offset + len(content)] = content


def _sectors(offset: int, content: bytes) -> Iterator[tuple[int, bytes]]:
    start = 0
    while start < len(content):
        stop = min(len(content), start + SECTOR - (offset + start) % SECTOR)
        yield offset + start, content[start:stop]
        start = stop


class _Directory:
    """`seen` and `safe` as of a file; `changes`: the states that each name had since."""

    def __init__(self) -> None:
        self.seen: dict[str, _Node] = {}
        self.safe: dict[str, _Node] = {}
        self.changes: dict[str, list[_Node | None]] = {}

    def put(self, name: str, node: "_Node | None") -> None:
        if node is None:
            del self.seen[name]
        else:
            self.seen[name] = node
        self.changes.setdefault(name, []).append(node)

    def sync(self) -> None:
        self.safe = dict(self.seen)
        self.changes = {}

    def lose_power(self, random_: random.Random) -> None:
        for name, states in self.changes.items():
            node = random_.choice([self.safe.get(name), *states])
            if node is None:
                self.safe.pop(name, None)
            else:
                self.safe[name] = node
        self.changes = {}
        self.seen = dict(self.safe)
        for node in self.seen.values():
            node.lose_power(random_)


_Node = _Data | _Directory


class SimFile:
    """An open file of a process; nothing of it works after the death of that."""

    def __init__(self, disk: "SimDisk", path: Path, data: _Data) -> None:
        self.path = path
        self._disk = disk
        self._data = data
        self._life = disk.life

    def append(self, buffers: Sequence[bytes]) -> None:
        content = b"".join(buffers)
        end = len(self._data.seen)

        def write(part: float) -> None:
            self._data.change((end, content[: int(part * len(content))]))

        self._disk.work("append", self._life, write, room=len(content))

    def write(self, offset: int, buffers: Sequence[bytes]) -> None:
        content = b"".join(buffers)
        assert offset <= len(self._data.seen)
        longer = max(0, offset + len(content) - len(self._data.seen))

        def write(part: float) -> None:
            self._data.change((offset, content[: int(part * len(content))]))

        self._disk.work("append", self._life, write, room=longer)

    def sync(self) -> None:
        def lose() -> None:
            self._data.changes = []

        self._disk.work("sync", self._life, lambda _: self._data.sync(), failing=lose)

    def read(self, offset: int, size: int) -> bytes:
        return bytes(self._data.seen[offset : offset + size])

    def truncate(self, size: int) -> None:
        self._disk.work("truncate", self._life, lambda _: self._data.change(size))

    def size(self) -> int:
        return len(self._data.seen)

    def descriptor(self) -> int | None:
        return None

    def close(self) -> None:
        """Closing saves nothing."""


class SimDisk:
    """A file layer. `die_at`: the operation, counted from 0, that the process dies at; `fail_at`:
    the one that fails with `fail_with`; `capacity`: bytes of file data that it holds."""

    def __init__(self, root: Path, seed: int = 0) -> None:
        self._root = root
        self._top = _Directory()
        self._random = random.Random(seed)
        self.capacity = UNLIMITED
        self.life = 0
        self.restart()

    def restart(self, die_at: int | None = None) -> None:
        """Another process begins, with nothing counted yet."""
        self.life += 1
        self.operations: list[str] = []
        self.die_at = die_at
        self.fail_at: int | None = None
        self.fail_with = errno.EIO
        self.failed_once = False

    # ------------------------------------------------------------ faults

    def work(
        self,
        kind: str,
        life: int,
        effect: Callable[[float], None],
        *,
        failing: Callable[[], None] = lambda: None,
        room: int = 0,
    ) -> None:
        """Do `effect(part)` of 0 to 1, unless something is to go wrong."""
        if life != self.life:
            raise Died
        number = len(self.operations)
        self.operations.append(kind)
        if number == self.die_at:
            if kind == "append":
                effect(self._random.random())
            self.life += 1
            raise Died
        if number == self.fail_at:
            self.failed_once = True
            if kind == "append":
                effect(self._random.random())
            failing()
            raise OSError(self.fail_with, os.strerror(self.fail_with))
        if room and room > self.free():
            effect(max(0, self.free()) / room)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        effect(1.0)

    def lose_power(self) -> None:
        """All that is not safe is in doubt; what comes of the doubt is the truth from now on."""
        self.life += 1
        self._top.lose_power(self._random)
        for path in sorted(self._real_directories(self._root), reverse=True):
            if self._find(path) is None:
                shutil.rmtree(path)

    def _real_directories(self, path: Path) -> Iterator[Path]:
        for one in path.iterdir() if path.is_dir() else ():
            if one.is_dir():
                yield one
                if one.name != INDEX:
                    yield from self._real_directories(one)

    # ------------------------------------------------------------ what is there

    def files(self) -> dict[str, bytes]:
        """Every file that a process sees."""
        return dict(_walk(self._top, ""))

    def free(self) -> int:
        if self.capacity == UNLIMITED:
            return UNLIMITED
        return self.capacity - sum(map(len, self.files().values()))

    def _find(self, path: Path) -> _Node | None:
        node: _Node | None = self._top
        for part in path.relative_to(self._root.parent).parts:
            if not isinstance(node, _Directory):
                return None
            node = node.seen.get(part)
        return node

    def _directory(self, path: Path) -> _Directory:
        node = self._find(path)
        if not isinstance(node, _Directory):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
        return node

    def _data(self, path: Path) -> _Data:
        node = self._find(path)
        if not isinstance(node, _Data):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
        return node

    # ------------------------------------------------------------ the file layer

    def create(self, path: Path) -> File:
        parent = self._directory(path.parent)
        if path.name in parent.seen:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
        self.work("create", self.life, lambda _: parent.put(path.name, _Data()))
        return self.open(path)

    def open(self, path: Path) -> File:
        return SimFile(self, path, self._data(path))

    def sync_directory(self, path: Path) -> None:
        directory = self._directory(path)
        self.work("sync_directory", self.life, lambda _: directory.sync())

    def rename(self, source: Path, target: Path) -> None:
        node = self._find(source)
        if node is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(source))
        before, after = self._directory(source.parent), self._directory(target.parent)

        def move(_: float) -> None:
            after.put(target.name, node)
            before.put(source.name, None)
            if source.is_dir():
                source.rename(target)

        self.work("rename", self.life, move)

    def unlink(self, path: Path) -> None:
        self._data(path)
        parent = self._directory(path.parent)
        self.work("unlink", self.life, lambda _: parent.put(path.name, None))

    def make_directory(self, path: Path) -> None:
        if self._find(path) is not None:
            return
        if self._find(path.parent) is None:
            self.make_directory(path.parent)
        parent = self._directory(path.parent)

        def make(_: float) -> None:
            parent.put(path.name, _Directory())
            path.mkdir(parents=True, exist_ok=True)

        self.work("make_directory", self.life, make)
        self.sync_directory(path.parent)

    def list_directory(self, path: Path) -> list[str]:
        node = self._find(path)
        return sorted(node.seen) if isinstance(node, _Directory) else []

    def remove_tree(self, path: Path) -> None:
        if self._find(path) is None:
            return
        self._remove(path)
        self.sync_directory(path.parent)

    def _remove(self, path: Path) -> None:
        node = self._find(path)
        if isinstance(node, _Directory):
            for name in list(node.seen):
                self._remove(path / name)
        parent = self._directory(path.parent)

        def remove(_: float) -> None:
            parent.put(path.name, None)
            if path.is_dir():
                shutil.rmtree(path)

        self.work("remove", self.life, remove)

    def free_bytes(self, path: Path) -> int:
        self._directory(path)
        return self.free()


def _walk(node: _Node, path: str) -> Iterator[tuple[str, bytes]]:
    if isinstance(node, _Data):
        yield path, bytes(node.seen)
        return
    found = (_walk(child, f"{path}/{name}") for name, child in sorted(node.seen.items()))
    yield from itertools.chain.from_iterable(found)
