"""Does a heavy question hurt those who write? Single entries, alone and beside a loop of queries,
each for a prefix that was not asked for before."""

import multiprocessing
from collections.abc import Sequence
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
_LIMIT_S: Final = 150.0


@dataclass
class _Looped:
    """What the looping process has to say: the time of each round."""

    seconds: list[float] = field(default_factory=list)
    failure: str = ""


def run(setting: Setting, peer: HttpPeer) -> MixedFigures:
    """On a filled store; adds entries to it, so that no question can be checked afterwards.

    Alone, beside, beside, alone: a disk that gets slower meanwhile, or quicker, counts for both.
    """
    alone = [_load(setting, peer)]
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    questions = [peer.question(query) for query in prefix_questions()]
    process = context.Process(target=_loop, args=(peer.address, questions, theirs), daemon=True)
    process.start()
    theirs.close()
    try:
        if not ours.poll(_LIMIT_S):
            raise TimeoutError("the query loop did not start")
        ours.recv()
        beside = [_load(setting, peer), _load(setting, peer)]
        ours.send("stop")
        if not ours.poll(_LIMIT_S):
            raise TimeoutError("the query loop did not end")
        looped = ours.recv()
    finally:
        process.kill()
        process.join()
    alone.append(_load(setting, peer))
    assert isinstance(looped, _Looped)
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
    """The body of the process: question after question, until told to stop. There are more than
    are asked in that time; if not, it begins anew."""
    looped, connection = _Looped(), Connection(address)
    coming = cycle(questions)
    while not looped.seconds or not pipe.poll():
        requests = [request for request in next(coming) if request is not None]
        responses = [connection.exchange(request) for request in requests]
        if any(response.status != 200 for response in responses):
            looped.failure = f"the looping query was answered {responses[0].status}"
        looped.seconds.append(sum(response.seconds for response in responses))
        if len(looped.seconds) == 1:
            pipe.send("started")
    pipe.recv()
    connection.close()
    pipe.send(looped)
