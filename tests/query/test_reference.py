"""The reference itself, against expectations written by hand."""

from reference import NewEntry, Position, ReferenceLog, Row

from logd.entry import LevelName
from logd.query.ast import Filter
from logd.query.syntax import parse_search


def entry(ts_ns: int, message: str = "", level: LevelName = "INFO") -> NewEntry:
    return NewEntry(ts_ns, level, message, "api", ("prod",), b'{"user": {"id": 7}}')


def log_of(*entries: NewEntry) -> ReferenceLog:
    log = ReferenceLog()
    log.append(entries)
    return log


def seqs(rows: list[Row]) -> list[int]:
    return [row.seq for row in rows]


def test_sequence_numbers_go_on_from_append_to_append() -> None:
    log = ReferenceLog()
    assert log.append([entry(1), entry(2)]) == [0, 1]
    assert log.append([]) == []
    assert log.append([entry(3)]) == [2]


def test_entries_are_listed_by_time_and_then_by_sequence_newest_first() -> None:
    log = log_of(entry(5), entry(9), entry(5), entry(1))
    rows, total = log.list()
    assert seqs(rows) == [1, 2, 0, 3]
    assert total == 4


def test_from_is_inclusive_and_to_exclusive() -> None:
    log = log_of(entry(1), entry(2), entry(3))
    assert seqs(log.list(Filter(from_ns=2))[0]) == [2, 1]
    assert seqs(log.list(Filter(to_ns=2))[0]) == [0]
    assert log.list(Filter(from_ns=2, to_ns=2)) == ([], 0)


def test_a_level_and_a_search_both_have_to_hold() -> None:
    log = log_of(entry(1, "disk full", "ERROR"), entry(2, "disk full"), entry(3, "ok", "ERROR"))
    assert seqs(log.list(Filter(level=3, search=parse_search("disk")))[0]) == [0]
    assert seqs(log.list("disk full")[0]) == [1, 0]
    assert seqs(log.list("api -disk")[0]) == [2]
    assert seqs(log.list("tag:prod meta.user.id:7 ok")[0]) == [2]
    assert log.list("meta.user:7") == ([], 0)


def test_pages_join_to_the_listing_of_the_first_one_and_keep_its_total() -> None:
    log = log_of(*(entry(ts_ns) for ts_ns in (4, 4, 1, 7, 4)))
    whole, _ = log.list()
    page, total = log.list(limit=2)
    listed = list(page)
    end: Position | None = None
    while page:
        end = log.position(page, end)
        log.append([entry(0), entry(5), entry(9)])
        page, later_total = log.list(limit=2, after=end)
        assert later_total == total == 5
        listed += page
    assert listed == whole


def test_an_entry_is_found_by_its_sequence_number() -> None:
    log = log_of(entry(5, "first"), entry(1, "second"))
    assert log.get(1) == Row(1, entry(1, "second"))
    assert log.get(2) is None


def test_stats_count_every_level() -> None:
    log = log_of(entry(1, level="WARN"), entry(2, level="ERROR"), entry(3, level="ERROR"))
    assert log.stats() == {"DEBUG": 0, "INFO": 0, "WARN": 1, "ERROR": 2}
