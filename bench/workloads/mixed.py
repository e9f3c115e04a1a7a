"""Does a heavy question hurt those who write? Single entries, alone and beside a loop of queries,
each for a prefix that was not asked for before."""

import enum
import multiprocessing
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import cycle
from multiprocessing.connection import Connection as Pipe
from typing import Final

from bench.http import Address, Connection
from bench.load import LoadResult
from bench.new_questions import prefix_questions
from bench.peers.base import HttpPeer, PeerError, Portion, Question
from bench.results import MixedFigures
from bench.stats import median, percentile
from bench.workloads.setting import Setting

_QUERY: Final = "new_prefix"
_CONNECTIONS: Final = 8
_TURNS: Final = 2
_LIMIT_S: Final = 150.0


class _Order(enum.Enum):
    """What the looping process is told. REST only comes after ASK."""

    ASK = "ask"
    REST = "rest"
    STOP = "stop"


@dataclass
class _Looped:
    """What the looping process has to say: the time of each round."""

    seconds: list[float] = field(default_factory=list)
    failure: str = ""


def run(setting: Setting, peer: HttpPeer) -> MixedFigures:
    """On a filled store; adds entries to it, so that no question can be checked afterwards.

    Alone, beside, beside, alone: a disk that gets slower meanwhile, or quicker, counts for both.
    """
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    questions = [peer.question(query) for query in prefix_questions()]
    process = context.Process(target=_loop, args=(peer.address, questions, theirs), daemon=True)
    process.start()
    theirs.close()
    try:
        alone = [_load(setting, peer)]
        beside = []
        for _ in range(_TURNS):
            with _asking(ours):
                beside.append(_load(setting, peer))
        alone.append(_load(setting, peer))
        looped = _told(ours, _Order.STOP)
    finally:
        process.kill()
        process.join()
    if looped.failure:
        raise PeerError(looped.failure)
    return MixedFigures(
        query=_QUERY,
        connections=_CONNECTIONS,
        alone_per_s=_per_s(alone),
        alone_p50_ms=median(_latencies(alone)) * 1e3,
        alone_p99_ms=percentile(_latencies(alone), 99) * 1e3,
        beside_per_s=_per_s(beside),
        beside_p50_ms=median(_latencies(beside)) * 1e3,
        beside_p99_ms=percentile(_latencies(beside), 99) * 1e3,
        query_ms=median(looped.seconds) * 1e3,
    )


@contextmanager
def _asking(pipe: Pipe) -> Iterator[None]:
    """While the loop asks: from its first answer on."""
    _told(pipe, _Order.ASK)
    yield
    _told(pipe, _Order.REST)


def _told(pipe: Pipe, order: _Order) -> _Looped:
    """What the loop says when it does so."""
    pipe.send(order)
    if not pipe.poll(_LIMIT_S):
        raise TimeoutError(f"the query loop does not {order.value}")
    looped = pipe.recv()
    assert isinstance(looped, _Looped)
    return looped


def _per_s(loads: Sequence[LoadResult]) -> float:
    return sum(len(load.acknowledged) for load in loads) / sum(load.seconds for load in loads)


def _latencies(loads: Sequence[LoadResult]) -> list[float]:
    return [seconds for load in loads for seconds in load.latencies_s]


def _load(setting: Setting, peer: HttpPeer) -> LoadResult:
    scope = setting.scope
    count = min(scope.entries, int(scope.single_s * 40_000) // 1_000 * 1_000)
    portion = Portion(setting.corpus, 0, count, 1, _CONNECTIONS, scope.single_s)
    return peer.ingest(portion, setting.work).load


def _loop(address: Address, questions: Sequence[Question], pipe: Pipe) -> None:
    """The body of the process: question after question while it is to ask. There are more than are
    asked in that time; if not, it begins anew."""
    looped, connection = _Looped(), Connection(address)
    coming = cycle(questions)
    while pipe.recv() is not _Order.STOP:
        _ask(next(coming), connection, looped)
        pipe.send(looped)
        while not pipe.poll():
            _ask(next(coming), connection, looped)
        pipe.recv()
        pipe.send(looped)
    pipe.send(looped)
    connection.close()


def _ask(question: Question, connection: Connection, looped: _Looped) -> None:
    responses = [connection.exchange(request) for request in question if request is not None]
    if any(response.status != 200 for response in responses):
        looped.failure = f"the looping query was answered {responses[0].status}"
    looped.seconds.append(sum(response.seconds for response in responses))
