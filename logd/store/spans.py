"""Stretches of sequence numbers. Pure."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence

Span = tuple[int, int]
"""First sequence number, and the one behind the last."""


def joined(spans: Iterable[Span]) -> list[Span]:
    """Sorted, those that touch or overlap as one."""
    out: list[Span] = []
    for start, stop in sorted(spans):
        if out and start <= out[-1][1]:
            out[-1] = (out[-1][0], max(out[-1][1], stop))
        else:
            out.append((start, stop))
    return out


def outside(span: Span, spans: Sequence[Span]) -> list[Span]:
    """What of a span lies in none of the joined spans."""
    out: list[Span] = []
    start, stop = span
    at = max(0, bisect_right(spans, (start, start)) - 1)
    while start < stop and at < len(spans) and spans[at][0] < stop:
        if start < spans[at][0]:
            out.append((start, spans[at][0]))
        start = max(start, spans[at][1])
        at += 1
    if start < stop:
        out.append((start, stop))
    return out
