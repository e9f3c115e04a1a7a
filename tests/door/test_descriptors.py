"""A process with few file descriptors, and more clients than it can hold."""

import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import trio
from raw_http import PATIENCE_SECONDS, get, read_answer

PROGRAM = """
import os, resource, sys
from logd.config import load
from logd.run import run
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
flags = {"data": sys.argv[1], "listen": "127.0.0.1:0", "request_timeout_seconds": "5"}
sys.exit(run(load(flags, {}), os.environ))
"""


@asynccontextmanager
async def daemon_with_64_descriptors(data: Path) -> AsyncIterator[tuple[int, trio.Process]]:
    """(its port, the process)."""
    process = await trio.lowlevel.open_process(
        [sys.executable, "-c", PROGRAM, str(data)],
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    try:
        yield await _port(process), process
    finally:
        process.terminate()
        with trio.fail_after(PATIENCE_SECONDS):
            assert await process.wait() == 0


async def _port(process: trio.Process) -> int:
    assert process.stderr is not None
    said = b""
    with trio.fail_after(PATIENCE_SECONDS):
        while not (b"serving" in said and said.endswith(b"\n")):
            piece = await process.stderr.receive_some()
            assert piece, said
            said += piece
    return int(said.strip().rpartition(b":")[2])


async def test_150_connections_do_not_end_it_and_it_recovers(tmp_path: Path) -> None:
    async with daemon_with_64_descriptors(tmp_path / "data") as (port, process):
        async with AsyncExitStack() as connections:
            for _ in range(150):
                stream = await trio.open_tcp_stream("127.0.0.1", port)
                await connections.enter_async_context(stream)
                await stream.send_all(b"GET /livez HTTP/1.1\r\n")
            assert process.returncode is None
        async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
            await stream.send_all(get("/livez"))
            assert (await read_answer(stream)).status == 200
        await _said_little(process)


async def _said_little(process: trio.Process) -> None:
    """Its log was not flooded."""
    assert process.stderr is not None
    with trio.move_on_after(0.1):
        assert len(await process.stderr.receive_some(65_536)) < 10_000
