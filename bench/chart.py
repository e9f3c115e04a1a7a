"""A chart of the results, with matplotlib (an optional extra)."""

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from bench.figures import FOOTPRINT, LOADS, OURS, QUESTIONS, advantage
from bench.results import Results, ScaleFigures

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_CURVES = ("newest", "two_words", "phrase", "minute", "rare_id")
_STYLES = ("-", "--", ":", "-.")


def require_matplotlib() -> None:
    """SystemExit where it is not installed."""
    if find_spec("matplotlib") is None:
        raise SystemExit("--chart needs matplotlib: pip install matplotlib")


def draw(results: Results, path: Path) -> None:
    """How many times better logd is than each peer, a bar for each figure, on a log scale; and
    below it the scale curve, where it was taken. The suffix of `path` decides the format."""
    require_matplotlib()
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    compared = {run.peer for run in results.runs if run.ingest or run.queries} > {OURS}
    grown = {run.peer: run.scale for run in results.runs if run.scale and run.run == 1}
    rows = compared + bool(grown)
    if not rows:
        raise SystemExit("nothing to draw: neither a second peer nor a scale curve")
    figure, axes = pyplot.subplots(rows, 1, figsize=(10, 8 * rows), squeeze=False)
    if compared:
        _bars(axes[0][0], results)
    if grown:
        _curves(axes[-1][0], grown)
    figure.tight_layout()
    figure.savefig(path)
    pyplot.close(figure)


def _bars(axes: "Axes", results: Results) -> None:
    """Bars to the right of 1 are figures in which logd is better."""
    others = [info.name for info in results.peers if info.name != OURS]
    figures = [*LOADS, *QUESTIONS, *FOOTPRINT]
    shown = [f for f in figures if any(advantage(f, results, name) for name in others)]
    height = 0.8 / max(len(others), 1)
    for at, name in enumerate(others):
        found = [advantage(figure, results, name) for figure in shown]
        bars = [(row, ratio[0]) for row, ratio in enumerate(found) if ratio]
        axes.barh(
            [row + at * height for row, _ in bars],
            [value - 1 for _, value in bars],
            height,
            left=1,
            label=f"than {name}",
        )
    axes.set_xscale("log")
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_yticks([row + 0.4 - height / 2 for row in range(len(shown))])
    axes.set_yticklabels([figure.title for figure in shown], fontsize=8)
    axes.invert_yaxis()
    axes.set_title(f"{OURS}: how many times better (right of 1) or worse (left)")
    axes.legend()


def _curves(axes: "Axes", grown: dict[str, list[ScaleFigures]]) -> None:
    """Warm latency over the number of entries stored; both axes logarithmic."""
    for color, name in enumerate(_CURVES):
        for style, (peer, points) in zip(_STYLES, grown.items(), strict=False):
            pairs = [(p.entries, q.both_ms) for p in points for q in p.queries if q.name == name]
            axes.plot(
                [entries for entries, _ in pairs],
                [ms for _, ms in pairs],
                style,
                color=f"C{color}",
                marker=".",
                label=f"{peer}: {name.replace('_', ' ')}",
            )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("entries stored")
    axes.set_ylabel("page and total, ms (warm median)")
    axes.legend(fontsize=7)
