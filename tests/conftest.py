"""The daemon for tests."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from live_daemon import Daemon, DaemonFactory, running_daemon


@pytest.fixture
def make_daemon(tmp_path: Path) -> DaemonFactory:
    """`async with make_daemon(stall_timeout_seconds=1) as daemon`: with options of the config, and
    with `environ`, the variables of its process."""

    def make(data: Path | None = None, **options: Any) -> AbstractAsyncContextManager[Daemon]:
        return running_daemon(data or tmp_path / "data", **options)

    return make


@pytest.fixture
async def daemon(make_daemon: DaemonFactory) -> AsyncIterator[Daemon]:
    async with make_daemon() as running:
        yield running
