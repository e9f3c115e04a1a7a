"""Markdown tables, and numbers in their cells."""

from collections.abc import Iterable, Sequence

from bench.stats import median, spread

Row = Sequence[str]


def grid(head: Row, rows: Iterable[Row]) -> str:
    """A Markdown table whose columns are padded; all but the first are set to the right."""
    cells = [head, *rows]
    widths = [max(len(row[n]) for row in cells) for n in range(len(head))]

    def line(row: Row) -> str:
        padded = [row[0].ljust(widths[0])]
        padded += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        return "| " + " | ".join(padded) + " |"

    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    return "\n".join([line(head), line(rule), *(line(row) for row in cells[1:])]) + "\n"


def number(value: float) -> str:
    """About three significant digits, thousands separated; one for very small ones."""
    if value >= 100:
        return f"{value:,.0f}"
    if value >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}" if value >= 0.1 or not value else f"{value:.1g}"


def ranged(values: Sequence[float]) -> str:
    """The median, and the range over the runs where there are several."""
    if not values:
        return "-"
    low, high = spread(values)
    if len(values) == 1:
        return number(values[0])
    return f"{number(median(values))} ({number(low)}..{number(high)})"


def times(advantage: tuple[float, float, float] | None) -> str:
    if advantage is None:
        return "-"
    middle, worst, best = advantage
    if worst == best:
        return f"{number(middle)}x"
    return f"{number(middle)}x ({number(worst)}..{number(best)})"
