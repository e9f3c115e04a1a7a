import pytest

from logd.client.retry import FIRST_DELAY_SECONDS, LONGEST_DELAY_SECONDS, delay_seconds


def test_pauses_double_up_to_the_longest() -> None:
    pauses = [delay_seconds(attempt, None, 1.0) for attempt in range(12)]
    assert pauses[:3] == [FIRST_DELAY_SECONDS, FIRST_DELAY_SECONDS * 2, FIRST_DELAY_SECONDS * 4]
    assert pauses[-1] == LONGEST_DELAY_SECONDS
    assert delay_seconds(10**9, None, 1.0) == LONGEST_DELAY_SECONDS


def test_chance_spreads_a_pause_over_its_upper_half() -> None:
    assert delay_seconds(2, None, 0.0) == 0.5
    assert delay_seconds(2, None, 0.5) == 0.75


def test_what_the_daemon_asks_for_is_the_least() -> None:
    assert delay_seconds(0, "7", 0.0) == 7.0
    assert delay_seconds(20, "1", 0.0) == LONGEST_DELAY_SECONDS / 2


@pytest.mark.parametrize("header", ["", "soon", "-3", "1.5", "Wed, 21 Oct 2026 07:28:00 GMT", "²"])
def test_a_header_that_is_no_number_of_seconds_changes_nothing(header: str) -> None:
    assert delay_seconds(0, header, 1.0) == FIRST_DELAY_SECONDS
