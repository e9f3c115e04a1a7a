"""Does a heavy question hurt those who write? Single entries, alone and beside a loop of queries,
each for a prefix that was not asked for before."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import cycle
from multiprocessing.connection import Connection as Pipe
from typing import Final

from bench.children import received, start_child
from bench.http import Address, Connection
from bench.load import LoadResult
from bench.new_questions import prefix_questions
from bench.peers.base import HttpPeer, PeerError, Question
from bench.results import MixedFigures
from bench.stats import median, percentile
from bench.workloads.setting import Setting, single_portion

_QUERY: Final = "new_prefix"
_CONNECTIONS: Final = 8
_LIMIT_S: Final = 150.0
_CHILD: Final = "the query loop"


@dataclass
class _Looped:
    """What the looping process has to say: the time of each round."""

    seconds: list[float] = field(default_factory=list)
    failure: str = ""


def run(setting: Setting, peer: HttpPeer) -> MixedFigures:
    """On a filled store; adds entries to it, so that no question can be checked afterwards.

    Alone, beside, beside, alone, several times: a disk that gets slower meanwhile, or quicker,
    counts for both. What is slow for a second does not decide: the p99 is the median of the loads'.
    """
    rounds = max(1, setting.scope.loads // 2)
    questions = [peer.question(query) for query in prefix_questions()]
    alone, beside = [], []
    seconds: list[float] = []
    for number in range(rounds):
        alone.append(_load(setting))
        with _questions(peer.address, questions[number::rounds], seconds):
            beside += [_load(setting), _load(setting)]
        alone.append(_load(setting))
    return MixedFigures(
        query=_QUERY,
        connections=_CONNECTIONS,
        alone_per_s=_per_s(alone),
        alone_p50_ms=_percentile_ms(alone, 50),
        alone_p99_ms=_percentile_ms(alone, 99),
        beside_per_s=_per_s(beside),
        beside_p50_ms=_percentile_ms(beside, 50),
        beside_p99_ms=_percentile_ms(beside, 99),
        query_ms=median(seconds) * 1e3,
    )


@contextmanager
def _questions(
    address: Address, questions: Sequence[Question], seconds: list[float]
) -> Iterator[None]:
    """Meanwhile a process asks one question after the other; the times go into `seconds`."""
    process, pipe = start_child(_loop, address, questions)
    try:
        if not pipe.poll(_LIMIT_S):
            raise TimeoutError("the query loop did not start")
        received(pipe, _CHILD)
        yield
        if not pipe.poll():  # else it has ended
            pipe.send("stop")
        if not pipe.poll(_LIMIT_S):
            raise TimeoutError("the query loop did not end")
        looped = received(pipe, _CHILD)
    finally:
        process.kill()
        process.join()
    assert isinstance(looped, _Looped)
    if looped.failure:
        raise PeerError(looped.failure)
    seconds += looped.seconds


def _per_s(loads: Sequence[LoadResult]) -> float:
    return sum(len(load.acknowledged) for load in loads) / sum(load.seconds for load in loads)


def _percentile_ms(loads: Sequence[LoadResult], percent: float) -> float:
    return median([percentile(load.latencies_s, percent) for load in loads]) * 1e3


def _load(setting: Setting) -> LoadResult:
    stored = setting.ingest(single_portion(setting, _CONNECTIONS))
    setting.note_failures("mixed", stored)
    return stored.load


def _loop(address: Address, questions: Sequence[Question], pipe: Pipe) -> None:
    """The body of the process: question after question, until told to stop. There are more than
    are asked in that time; if not, it begins anew."""
    looped, connection = _Looped(), Connection(address)
    coming = cycle(questions)
    while not looped.seconds or not pipe.poll():
        requests = [request for request in next(coming) if request is not None]
        responses = [connection.exchange(request) for request in requests]
        for response in responses:
            if response.status != 200:
                looped.failure = f"the looping query was answered {response.status}"
        looped.seconds.append(sum(response.seconds for response in responses))
        if len(looped.seconds) == 1:
            pipe.send("started")
    pipe.recv()
    connection.close()
    pipe.send(looped)
