"""The daemon for tests."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from live_daemon import Daemon, DaemonFactory, running_daemon


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """What is marked `both_doors` and talks to a daemon does so twice."""
    marked = metafunc.definition.get_closest_marker("both_doors")
    if marked is not None and "lane" in metafunc.fixturenames:
        metafunc.parametrize("lane", [True, False], ids=["lane", "server"])


@pytest.fixture
def lane() -> bool:
    """Whether the daemon's door has a fast lane, or the HTTP server has every request."""
    return True


@pytest.fixture
def make_daemon(tmp_path: Path, lane: bool) -> DaemonFactory:
    """`async with make_daemon(stall_timeout_seconds=1) as daemon`: with options of the config, and
    with `environ`, the variables of its process."""

    def make(data: Path | None = None, **options: Any) -> AbstractAsyncContextManager[Daemon]:
        return running_daemon(data or tmp_path / "data", lane=lane, **options)

    return make


@pytest.fixture
async def daemon(make_daemon: DaemonFactory) -> AsyncIterator[Daemon]:
    async with make_daemon() as running:
        yield running
