"""The store: a data directory, and the projects in it, opened when first needed."""

import contextlib
import logging
import threading
from collections.abc import Iterable

from logd.entry import Clock, ProjectId
from logd.errors import UnsupportedFormat
from logd.store.cache import PartCache
from logd.store.files import DirectoryLock, FileLayer, write_whole
from logd.store.freeze import ChunkBuilder, build_chunks
from logd.store.layout import (
    DELETED_PREFIX,
    FORMAT_LINE,
    DataLayout,
    format_version,
    parse_project_name,
)
from logd.store.limits import StoreLimits
from logd.store.project import Project

_log = logging.getLogger("logd.store")

FORMAT_VERSION = 1


def lock_directory(
    files: FileLayer, layout: DataLayout, *, read_only: bool = False
) -> DirectoryLock:
    """Take a data directory, creating it where there is none; `read_only`: one that is there, and
    nothing is written.

    Raises DirectoryLocked if another process has it, UnsupportedFormat if a newer program made it
    (nothing was written then).
    """
    if not read_only:
        files.make_directory(layout.root)
    lock = DirectoryLock(layout.lock, read_only=read_only)
    try:
        if read_only or layout.format_file.name in files.list_directory(layout.root):
            _check_format(files, layout)
        else:
            _write_format(files, layout)
    except BaseException:
        lock.release()
        raise
    return lock


def _write_format(files: FileLayer, layout: DataLayout) -> None:
    # A process may have died between making the directory and syncing its name. Where the parent
    # may not be read, somebody else made it.
    with contextlib.suppress(PermissionError):
        files.sync_directory(layout.root.parent)
    fresh = layout.format_file.with_name("FORMAT.new")
    if fresh.name in files.list_directory(layout.root):
        files.unlink(fresh)
    write_whole(files, fresh, [FORMAT_LINE.encode()])
    files.rename(fresh, layout.format_file)
    files.sync_directory(layout.root)


def _check_format(files: FileLayer, layout: DataLayout) -> None:
    file = files.open(layout.format_file)
    line = file.read(0, 200).decode(errors="replace")
    file.close()
    version = format_version(line)
    if version is None or version > FORMAT_VERSION:
        raise UnsupportedFormat(
            f"{layout.root} says {line.strip()!r}; this program writes format {FORMAT_VERSION}"
        )


class Store:
    """All projects of a locked data directory."""

    def __init__(
        self,
        files: FileLayer,
        layout: DataLayout,
        limits: StoreLimits,
        clock: Clock,
        build: ChunkBuilder = build_chunks,
    ) -> None:
        self.limits = limits
        self.layout = layout
        self._files = files
        self._clock = clock
        self._build = build
        self._cache = PartCache(limits.cache_bytes)
        self._projects: dict[ProjectId, Project] = {}
        self._opening = threading.Lock()
        files.make_directory(layout.projects)
        files.sync_directory(layout.root)  # an earlier process may have died before it
        self._finish_deletions()

    @property
    def cache_bytes(self) -> int:
        return self._cache.size_bytes

    def stored(self) -> list[ProjectId]:
        """Projects that have a directory."""
        names = self._files.list_directory(self.layout.projects)
        return [p for p in map(parse_project_name, names) if p is not None]

    def open_projects(self) -> list[Project]:
        return list(self._projects.values())

    def opened(self, project: ProjectId) -> Project | None:
        """The project if it is open already."""
        return self._projects.get(project)

    def project(self, project: ProjectId) -> Project:
        """The project, opened and recovered if need be. Raises as Project does."""
        found = self._projects.get(project)
        if found is not None:
            return found
        with self._opening:
            found = self._projects.get(project)
            if found is None:
                layout = self.layout.project(project)
                found = Project(
                    self._files,
                    layout,
                    project,
                    self.limits,
                    self._cache,
                    self._clock,
                    self._build,
                )
                self._projects[project] = found
            return found

    def reopen(self, project: ProjectId) -> Project:
        """After a failure, while nothing of the project runs: read it back from the disk."""
        with self._opening:
            failed = self._projects.pop(project, None)
            if failed is not None:
                failed.close()
        return self.project(project)

    def delete(self, project: ProjectId) -> None:
        """While nothing of the project runs: its files are gone when this returns."""
        with self._opening:
            found = self._projects.pop(project, None)
            if found is not None:
                found.close()
            if project in self.stored():
                self._files.rename(self.layout.project(project).root, self.layout.deleted(project))
                self._files.sync_directory(self.layout.projects)
            self._files.remove_tree(self.layout.deleted(project))

    def delete_unknown(self, known: Iterable[ProjectId]) -> list[ProjectId]:
        """Delete the projects that are not among `known`: their deletion was cut short."""
        unknown = sorted(set(self.stored()) - set(known))
        for project in unknown:
            self.delete(project)
        return unknown

    def _finish_deletions(self) -> None:
        """What cannot be removed is left for the next time: nothing else depends on it."""
        for name in self._files.list_directory(self.layout.projects):
            if name.startswith(DELETED_PREFIX):
                try:
                    self._files.remove_tree(self.layout.projects / name)
                except OSError as error:
                    _log.error("a deleted project stays for another try: %s", error)

    def close(self) -> None:
        """While nothing runs."""
        for project in self._projects.values():
            project.close()
        self._projects.clear()
