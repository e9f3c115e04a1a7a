"""Small statistics over lists of figures."""

from collections.abc import Sequence
from math import ceil
from statistics import median

__all__ = ["median", "percentile", "ratio", "spread"]


def percentile(values: Sequence[float], percent: float) -> float:
    """The smallest value that at least `percent` of all values do not exceed (nearest rank).

    Raises ValueError for an empty list.
    """
    if not values:
        raise ValueError("no percentile of nothing")
    ordered = sorted(values)
    return ordered[max(1, ceil(len(ordered) * percent / 100)) - 1]


def spread(values: Sequence[float]) -> tuple[float, float]:
    """The smallest and the largest."""
    return min(values), max(values)


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, float, float]:
    """Ratio of the medians, and the ratios of the least and most favourable pair of runs."""
    return (
        median(ours) / median(theirs),
        min(ours) / max(theirs),
        max(ours) / min(theirs),
    )
