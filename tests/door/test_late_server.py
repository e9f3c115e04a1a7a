"""The HTTP server behind the lane is made when a connection needs it."""

import subprocess
import sys
from email.utils import format_datetime, parsedate_to_datetime

import pytest
import trio
from live_daemon import DaemonFactory
from raw_http import connected, get, read_answer

from logd.door.heads import date_header

_LATE = ("quart", "quart_trio", "werkzeug", "hypercorn", "asyncio", "multiprocessing")


def test_a_daemon_starts_without_the_web_framework() -> None:
    program = f"import sys, logd.cli.main, logd.run; print({{*{_LATE}}} & {{*sys.modules}})"
    found = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    assert found.stdout.strip() == "set()"


async def test_many_first_connections_at_once_are_all_served(make_daemon: DaemonFactory) -> None:
    async with make_daemon() as daemon, trio.open_nursery() as nursery:

        async def ask() -> None:
            async with connected(daemon) as stream:
                await stream.send_all(get("/nowhere") * 2)
                first = await read_answer(stream)
                second = await read_answer(stream, first.rest)
                assert (first.status, second.status) == (404, 404)

        for _ in range(20):
            nursery.start_soon(ask)


@pytest.mark.parametrize("now_s", [0, 951_782_399, 1_767_225_599, 4_102_444_800])
def test_the_date_is_that_of_rfc_9110(now_s: int) -> None:
    name, value = date_header(now_s + 0.9)
    assert name == b"date"
    moment = parsedate_to_datetime(value.decode())
    assert moment.timestamp() == now_s
    assert format_datetime(moment, usegmt=True) == value.decode()
