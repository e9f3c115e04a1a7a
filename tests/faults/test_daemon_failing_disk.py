"""A daemon whose disk fails system calls, as strace injects them: 503 for the project that is hit,
nothing acknowledged in error, the others go on, and it heals by itself."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from daemon_process import PATIENCE_SECONDS, SMALL, DaemonProcess, ProjectAccess, strace_injecting

WAL = "wal/0000000000000000.wal"
SEGMENT = "segments/0000000000000000-0001.seg"
INDEX = "index/data.mdb"


class FailingWorld:
    """A daemon under strace, with two projects; a call on a file of the first is to fail."""

    def __init__(self, daemon: DaemonProcess, hit: ProjectAccess, other: ProjectAccess) -> None:
        self.daemon = daemon
        self.hit = hit
        self.other = other
        self.acknowledged: list[str] = []
        self.refused: list[str] = []
        self.codes: set[tuple[int, str]] = set()

    def send(self, *messages: str) -> bool:
        """Whether the project that is hit acknowledged them, as one batch."""
        answer = self.daemon.ingest(self.hit, messages)
        if answer.status == 200:
            self.acknowledged += messages
        else:
            self.refused += messages
            self.codes.add((answer.status, answer.body["code"]))
        return answer.status == 200

    def send_until_refused(self, most: int = 2000) -> None:
        for number in range(most):
            if not self.send(f"before {number}"):
                return
        raise AssertionError("no request was refused")

    def send_until_acknowledged(self, most: int = 2000) -> None:
        for number in range(most):
            if self.send(f"after {number}"):
                return
        raise AssertionError("every request was refused")

    def verify_after_a_kill(self) -> None:
        self.daemon.kill()
        self.daemon.start()
        found = [message for _, message in self.daemon.listed(self.hit)]
        assert len(set(found)) == len(found)
        assert set(self.acknowledged) <= set(found) <= {*self.acknowledged, *self.refused}


@contextmanager
def failing(data: Path, file: str, injection: str) -> Iterator[FailingWorld]:
    """`file`: of the first project; `injection`: as strace's inject= takes it."""
    daemon = DaemonProcess(data, *SMALL)
    try:
        daemon.start()
        hit, other = daemon.quickstart(2)
        daemon.kill()
        call, _, fault = injection.partition(":")
        path = data / "projects" / hit.project / file
        log = data.parent / "strace.log"
        daemon.start(*strace_injecting(log, call, fault, "-P", str(path)))
        yield FailingWorld(daemon, hit, other)
    finally:
        daemon.stop()


def test_a_wal_that_cannot_be_synced_stops_its_project_only_and_heals(tmp_path: Path) -> None:
    with failing(tmp_path / "data", WAL, "fdatasync:error=EIO:when=4+") as world:
        assert world.daemon.ingest(world.other, ["other 0"]).status == 200
        world.send_until_refused()
        assert world.codes == {(503, "storage_failed")}
        assert world.daemon.ingest(world.other, ["other 1"]).status == 200
        world.send_until_acknowledged()
        assert world.daemon.ingest(world.other, ["other 2"]).status == 200
        world.verify_after_a_kill()
        others = [message for _, message in world.daemon.listed(world.other)]
        assert sorted(others) == ["other 0", "other 1", "other 2"]


def test_a_wal_that_cannot_be_begun_is_tried_again(tmp_path: Path) -> None:
    with failing(tmp_path / "data", WAL, "fdatasync:error=EIO:when=1") as world:
        world.send_until_refused()
        assert world.codes == {(503, "storage_failed")}
        world.send_until_acknowledged()
        world.verify_after_a_kill()


def test_a_full_disk_refuses_entries_and_goes_on_when_it_has_room(tmp_path: Path) -> None:
    with failing(tmp_path / "data", WAL, "writev:error=ENOSPC:when=4..9") as world:
        world.send_until_refused()
        assert world.codes == {(503, "storage_full")}
        listed = [message for _, message in world.daemon.listed(world.hit)]
        assert sorted(listed) == sorted(world.acknowledged)
        world.send_until_acknowledged()
        assert not [line for line in world.daemon.said if "reopened" in line]
        world.verify_after_a_kill()


@pytest.mark.parametrize(
    ("file", "injection"),
    [
        (SEGMENT, "fdatasync:error=EIO:when=2"),
        (SEGMENT, "writev:error=ENOSPC:when=2..3"),
        (INDEX, "fdatasync:error=EIO:when=2"),
        (INDEX, "pwrite64:error=ENOSPC:when=3"),
        (INDEX, "pwrite64:error=EIO:when=4"),
        (INDEX, "writev:error=EIO:when=1"),
    ],
)
def test_a_freeze_that_fails_loses_nothing_and_is_done_later(
    tmp_path: Path, file: str, injection: str
) -> None:
    with failing(tmp_path / "data", file, injection) as world:
        for number in range(200):
            world.send(f"entry {number}")
        until_frozen(world)
        world.send_until_acknowledged()
        assert {status for status, _ in world.codes} <= {503}
        world.verify_after_a_kill()


def until_frozen(world: FailingWorld) -> None:
    """The freezer tries again by itself; entries go on coming meanwhile."""
    number, give_up_at = 0, time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < give_up_at:
        segments = world.daemon.data / "projects" / world.hit.project / "segments"
        if sum(path.stat().st_size > 100 for path in segments.iterdir()) >= 2:
            return
        world.send(*(f"meanwhile {number}-{n}" for n in range(20)))
        number += 1
    raise AssertionError(world.daemon.said[-20:])
