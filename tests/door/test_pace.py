"""Clients that are slow, but do not stand still. Time is the tests' own."""

import socket

import pytest
import trio
import trio.testing

from logd.door.limits import MIN_ANSWER_BYTES_PER_SECOND
from logd.door.pace import Pace
from logd.door.stream import GuardedStream

STALL_SECONDS = 30.0
ANSWER = bytes(4_000_000)


async def test_a_steady_rate_is_enough(mock_clock: trio.testing.MockClock) -> None:
    assert not any(_verdicts(mock_clock, [1000] * 100))


async def test_a_quick_beginning_buys_no_time(mock_clock: trio.testing.MockClock) -> None:
    verdicts = _verdicts(mock_clock, [10_000_000] + [1] * 30)
    assert verdicts.index(True) < 20


async def test_pauses_within_the_window_are_forgiven(mock_clock: trio.testing.MockClock) -> None:
    assert not any(_verdicts(mock_clock, ([10_000] + [0] * 8) * 10))


def _verdicts(clock: trio.testing.MockClock, counts: list[int]) -> list[bool]:
    """Of bytes that come once a second, where 1,000 are asked for over 10 seconds."""
    pace = Pace(10, 1000)
    verdicts = []
    for count in counts:
        clock.jump(1)
        verdicts.append(pace.is_too_slow(count))
    return verdicts


@pytest.mark.parametrize(("share", "is_cut"), [(1.5, False), (0.5, True)])
async def test_an_answer_that_is_read_too_slowly_is_cut(
    autojump_clock: trio.testing.MockClock, share: float, is_cut: bool
) -> None:
    """`share`: of the least rate. The slow one, too, takes more than a piece in a stall timeout."""
    ours, theirs = socket.socketpair()
    with theirs:
        theirs.setblocking(False)
        stream = GuardedStream(
            trio.SocketStream(trio.socket.from_stdlib_socket(ours)), STALL_SECONDS
        )
        read = 0

        async def reader() -> None:
            nonlocal read
            client = trio.socket.from_stdlib_socket(theirs)
            while True:
                await trio.sleep(1)
                left = int(share * MIN_ANSWER_BYTES_PER_SECOND)
                while left and (piece := await client.recv(left)):
                    left -= len(piece)
                    read += len(piece)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(reader)
            if is_cut:
                with pytest.raises(trio.BrokenResourceError):
                    await stream.send_all(ANSWER)
            else:
                await stream.send_all(ANSWER)
                stream.abort()
            nursery.cancel_scope.cancel()
        assert stream.closed
        assert (read < len(ANSWER) // 2) == is_cut
