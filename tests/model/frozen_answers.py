"""What a frozen chunk answers, against what its entries say."""

from collections.abc import Iterable, Sequence

from store_world import World, ask

from logd.query.match import matches
from logd.query.syntax import parse_search


def assert_finds(world: World, text: str, expected: Sequence[int]) -> None:
    """Twice: then what matched is remembered. `expected`: sequence numbers, ascending."""
    for _ in range(2):
        found = ask(world.project.snapshot(), text)
        assert not found.damage
        assert sorted(hit.seq for hit in found.entries) == expected
        assert found.total == len(expected)


def assert_finds_what_is_said(world: World, text: str, messages: Iterable[str]) -> None:
    """`messages`: of entries of the source "test", by sequence number."""
    node = parse_search(text)
    assert node is not None
    assert_finds(
        world,
        text,
        [n for n, said in enumerate(messages) if matches(node, said, "test", (), b"{}")],
    )


def assert_worth_asking(world: World, searches: Sequence[str], count: int) -> None:
    """Most searches find some of the `count` entries, and not all."""
    totals = [ask(world.project.snapshot(), text).total for text in searches]
    assert sum(total is not None and 0 < total < count for total in totals) > len(searches) * 2 // 3
