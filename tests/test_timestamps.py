import datetime
import random
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logd.timestamps import (
    MAX_TS_NS,
    MIN_TS_NS,
    BadTimestamp,
    format_timestamp,
    parse_timestamp,
    parse_timestamps,
)

S = 1_000_000_000
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
INSTANTS = st.integers(MIN_TS_NS, MAX_TS_NS)
MICROSECOND_INSTANTS = st.datetimes(
    datetime.datetime(1678, 1, 1), datetime.datetime(2262, 4, 11), timezones=st.just(datetime.UTC)
)
OFFSETS_MINUTES = st.integers(-23 * 60 - 59, 23 * 60 + 59)

BAD_FORMS = [
    "",
    " ",
    "2026",
    "2026-11",
    "20261121",
    "2026-11-21T",
    "2026-11-21Z",
    "2026-11-21T08",
    "2026-11-21T08:17",
    "2026-11-21T08:17Z",
    "2026-11-21T08:17:0Z",
    "2026-11-21T08:17:00.Z",
    "2026-11-21T08:17:00,5Z",
    "2026-11-21T08:17:00 Z",
    "2026-11-21T08:17:00ZZ",
    "2026-11-21T08:17:00Z\n",
    "\n2026-11-21T08:17:00Z",
    " 2026-11-21T08:17:00Z",
    "2026-11-21  08:17:00Z",
    "2026-11-21_08:17:00Z",
    "2026-11-21T08:17:00+1",
    "2026-11-21T08:17:00+01",
    "2026-11-21T08:17:00+01:0",
    "2026-11-21T08:17:00+01:00Z",
    "2026-11-21T08:17:00UTC",
    "2026/11/21T08:17:00Z",
    "2026-W47-6",
    "2026-325",
    "-2026-11-21T08:17:00Z",
    "02026-11-21T08:17:00Z",
    "2026-11-21T08.17.00Z",
    "２０２６-11-21T08:17:00Z",
    "2026-11-21T08:17:00.٣Z",
    "1763713020",
    "now",
]
BAD_VALUES = {
    "2026-00-21T08:17:00Z": "2026-00-21 is not a day of the calendar",
    "2026-13-21T08:17:00Z": "2026-13-21 is not a day of the calendar",
    "2026-11-00T08:17:00Z": "2026-11-00 is not a day of the calendar",
    "2026-11-31T08:17:00Z": "2026-11-31 is not a day of the calendar",
    "2026-02-29T08:17:00Z": "2026-02-29 is not a day of the calendar",
    "1900-02-29T08:17:00Z": "1900-02-29 is not a day of the calendar",
    "2026-11-21T24:00:00Z": "hour 24 is over 23",
    "2026-11-21T08:60:00Z": "minute 60 is over 59",
    "2026-11-21T08:17:61Z": "second 61 is over 60",
    "2026-11-21T08:17:00.1234567890Z": "10 fraction digits, at most 9",
    "2026-11-21T08:17:00+24:00": "offset hour 24 is over 23",
    "2026-11-21T08:17:00-01:60": "offset minute 60 is over 59",
}
OUT_OF_RANGE = [
    "0000-01-01T00:00:00Z",
    "0001-01-01T00:00:00Z",
    "1677-12-31T23:59:59.999999999Z",
    "1678-01-01T00:00:00+00:01",
    "2262-04-11T23:47:16.854775808Z",
    "2262-04-11T23:46:59-00:01",
    "2262-04-12",
    "9999-12-31T23:59:59Z",
]


def utc_ns(moment: datetime.datetime) -> int:
    return (moment - EPOCH) // datetime.timedelta(microseconds=1) * 1000


def alone(text: str) -> int | str:
    """The timestamp, or why it is none."""
    try:
        return parse_timestamp(text)
    except ValueError as error:
        return str(error)


def among(texts: list[str], index: int) -> int | str:
    """The timestamp at `index`, or why it is the first that is none."""
    try:
        return int(parse_timestamps(texts)[index])
    except BadTimestamp as error:
        return error.reason if error.index == index else f"{error.index} is blamed"


def nth(texts: list[str]) -> BadTimestamp:
    """What is said of the first bad one."""
    with pytest.raises(BadTimestamp) as caught:
        parse_timestamps(texts)
    return caught.value


@pytest.mark.parametrize(
    ("text", "ts_ns"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T00:00:00z", 0),
        ("1970-01-01t00:00:00Z", 0),
        ("1970-01-01 00:00:00Z", 0),
        ("1970-01-01T00:00:00", 0),
        ("1970-01-01 00:00:00", 0),
        ("1970-01-01", 0),
        ("1970-01-02", 86_400 * S),
        ("1970-01-01T00:00:00+00:00", 0),
        ("1970-01-01T00:00:00-00:00", 0),
        ("1970-01-01T01:30:00+01:30", 0),
        ("1970-01-01T01:30:00+0130", 0),
        ("1969-12-31T22:30:00-01:30", 0),
        ("1970-01-01T00:00:00.1Z", 100_000_000),
        ("1970-01-01T00:00:00.000000001Z", 1),
        ("1970-01-01 00:00:00.120+00:00", 120_000_000),
        ("1969-12-31T23:59:59.999999999Z", -1),
        ("2024-02-29T00:00:00Z", 1_709_164_800 * S),
        ("2000-02-29T00:00:00Z", 951_782_400 * S),
        ("1678-01-01T00:00:00Z", MIN_TS_NS),
        ("2262-04-11T23:47:16.854775807Z", MAX_TS_NS),
    ],
)
def test_every_accepted_form_is_read(text: str, ts_ns: int) -> None:
    assert parse_timestamp(text) == ts_ns


@pytest.mark.parametrize("fraction", ["", ".0", ".5", ".999999999"])
def test_a_leap_second_is_the_last_nanosecond_before_it(fraction: str) -> None:
    before = parse_timestamp("2016-12-31T23:59:59.999999999Z")
    assert parse_timestamp(f"2016-12-31T23:59:60{fraction}Z") == before
    assert parse_timestamp(f"2017-01-01T08:59:60{fraction}+09:00") == before


@pytest.mark.parametrize("text", BAD_FORMS)
def test_another_form_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not an RFC 3339 timestamp"):
        parse_timestamp(text)


@pytest.mark.parametrize(("text", "reason"), BAD_VALUES.items())
def test_a_value_out_of_its_bounds_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=f"^{reason}$"):
        parse_timestamp(text)


@pytest.mark.parametrize("text", OUT_OF_RANGE)
def test_an_instant_that_int64_does_not_hold_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"outside|not a day of the calendar"):
        parse_timestamp(text)


@given(MICROSECOND_INSTANTS, OFFSETS_MINUTES)
def test_one_timestamp_is_read_as_datetime_reads_it(
    moment: datetime.datetime, minutes: int
) -> None:
    zone = datetime.timezone(datetime.timedelta(minutes=minutes))
    text = moment.astimezone(zone).isoformat()
    assert parse_timestamp(text) == utc_ns(datetime.datetime.fromisoformat(text))


# ---------------------------------------------------------------- back to text


@pytest.mark.parametrize(
    ("ts_ns", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (1, "1970-01-01T00:00:00.000000001Z"),
        (1000, "1970-01-01T00:00:00.000001Z"),
        (1_000_000, "1970-01-01T00:00:00.001Z"),
        (1_001_000, "1970-01-01T00:00:00.001001Z"),
        (500_000_000, "1970-01-01T00:00:00.500Z"),
        (-1, "1969-12-31T23:59:59.999999999Z"),
        (MIN_TS_NS, "1678-01-01T00:00:00.000Z"),
        (MAX_TS_NS, "2262-04-11T23:47:16.854775807Z"),
    ],
)
def test_a_timestamp_is_written_with_3_6_or_9_fraction_digits(ts_ns: int, text: str) -> None:
    assert format_timestamp(ts_ns) == text


@given(INSTANTS)
def test_what_is_written_reads_back(ts_ns: int) -> None:
    assert parse_timestamp(format_timestamp(ts_ns)) == ts_ns


@given(MICROSECOND_INSTANTS)
def test_a_timestamp_is_written_as_datetime_writes_it(moment: datetime.datetime) -> None:
    text = moment.isoformat(timespec="microseconds").replace("+00:00", "Z")
    shortest = text.removesuffix("000Z") + "Z" if text.endswith("000Z") else text
    assert format_timestamp(utc_ns(moment)) == shortest


# ---------------------------------------------------------------- many at once

# How many texts of one length it takes is the module's own business: these are enough.
MANY = 100

LAYOUTS: list[Callable[[datetime.datetime, int], str]] = [
    lambda moment, digits: text_of(moment, digits) + "Z",
    lambda moment, digits: text_of(moment, digits).replace("T", " "),
    lambda moment, digits: text_of(moment, digits).replace("T", "t") + "z",
    lambda moment, digits: text_of(moment, digits) + "+05:30",
    lambda moment, digits: text_of(moment, digits) + "-0800",
    lambda moment, digits: moment.date().isoformat(),
]


def text_of(moment: datetime.datetime, digits: int) -> str:
    """Local time with that many fraction digits, 0-9, the last three repeating the first."""
    fraction = f"{moment.microsecond:06}"
    fraction = (fraction + fraction[:3])[:digits]
    return moment.strftime("%Y-%m-%dT%H:%M:%S") + (f".{fraction}" if digits else "")


@given(
    st.lists(
        st.datetimes(datetime.datetime(1680, 1, 1), datetime.datetime(2262, 4, 1)), min_size=1
    ),
    st.sampled_from(LAYOUTS),
    st.integers(0, 9),
)
def test_many_of_one_layout_are_read_as_one_by_one(
    moments: list[datetime.datetime], layout: Callable[[datetime.datetime, int], str], digits: int
) -> None:
    texts = [layout(moment, digits) for moment in moments] * MANY
    parsed = parse_timestamps(texts)
    assert parsed.dtype == np.int64
    assert parsed.tolist() == [parse_timestamp(text) for text in texts]


@given(
    st.lists(
        st.tuples(
            st.datetimes(datetime.datetime(1680, 1, 1), datetime.datetime(2262, 4, 1)),
            st.sampled_from(LAYOUTS),
            st.integers(0, 9),
        ),
        min_size=1,
    ),
    st.randoms(use_true_random=False),
)
def test_many_of_mixed_layouts_are_read_as_one_by_one(
    cases: list[tuple[datetime.datetime, Callable[[datetime.datetime, int], str], int]],
    source: random.Random,
) -> None:
    texts = [layout(moment, digits) for moment, layout, digits in cases] * MANY
    source.shuffle(texts)
    assert parse_timestamps(texts).tolist() == [parse_timestamp(text) for text in texts]


@given(
    st.one_of(
        st.datetimes(datetime.datetime(1680, 1, 1), datetime.datetime(2262, 4, 1)),
        st.just(datetime.datetime(2262, 4, 11, 23, 47)),
    ),
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 10**9 - 1)), min_size=1),
    st.sampled_from(["Z", "", "+05:30", "-0800"]),
    st.integers(0, 9),
)
def test_many_of_one_minute_are_read_as_one_by_one(
    minute: datetime.datetime, times: list[tuple[int, int]], zone: str, digits: int
) -> None:
    texts = []
    for second, ns in times:
        fraction = f".{ns:09}"[: digits + 1] if digits else ""
        texts.append(f"{minute.strftime('%Y-%m-%dT%H:%M')}:{second:02}{fraction}{zone}")
    texts *= MANY
    outcomes = [alone(text) for text in texts]
    bad = [index for index, outcome in enumerate(outcomes) if isinstance(outcome, str)]
    if bad:
        assert (nth(texts).index, nth(texts).reason) == (bad[0], outcomes[bad[0]])
    else:
        assert parse_timestamps(texts).tolist() == outcomes


@given(st.lists(INSTANTS, min_size=1))
def test_many_that_were_written_read_back(instants: list[int]) -> None:
    instants *= MANY
    assert parse_timestamps([format_timestamp(ts_ns) for ts_ns in instants]).tolist() == instants


def test_no_timestamps_are_an_empty_array() -> None:
    assert parse_timestamps([]).tolist() == []
    assert parse_timestamps([]).dtype == np.int64


def test_every_day_of_two_centuries_is_read() -> None:
    first = datetime.date(1899, 1, 1)
    days = [first + datetime.timedelta(days=n) for n in range(73_414)]
    parsed = parse_timestamps([f"{day.isoformat()}T00:00:00Z" for day in days])
    epoch_day = datetime.date(1970, 1, 1).toordinal()
    assert parsed.tolist() == [(day.toordinal() - epoch_day) * 86_400 * S for day in days]


@pytest.mark.parametrize("text", [*BAD_FORMS, *BAD_VALUES, *OUT_OF_RANGE])
@pytest.mark.parametrize("index", [0, 1, MANY // 2, MANY - 1])
def test_a_bad_one_among_many_is_found(text: str, index: int) -> None:
    texts = ["2026-11-21T08:17:00Z"] * MANY
    texts[index] = text
    assert nth(texts).index == index
    assert nth(texts).reason == str(nth(texts)) == alone(text)


def test_the_first_of_several_bad_ones_is_named() -> None:
    texts = ["2026-11-21T08:17:00Z"] * MANY
    texts[70], texts[30], texts[50] = "2026-13-01", "later", "2026-11-21T08:99:00Z"
    assert nth(texts).index == 30


def test_zones_of_one_length_may_differ_among_many() -> None:
    texts = ["2026-11-21T08:17:00+01:00"] * MANY
    texts[20], texts[60] = "2026-11-21T08:17:00+02:30", "2026-11-21T08:17:00-01:00"
    assert parse_timestamps(texts).tolist() == [parse_timestamp(text) for text in texts]


def test_a_leap_second_among_many_is_read() -> None:
    texts = ["2016-12-31T23:59:59Z"] * MANY
    texts[7] = "2016-12-31T23:59:60Z"
    expected = [parse_timestamp(texts[0])] * MANY
    expected[7] += S - 1
    assert parse_timestamps(texts).tolist() == expected


@given(st.integers(0, 18), st.characters(exclude_categories=["Cs"]), st.integers(0, MANY - 1))
def test_any_other_character_at_any_place_is_judged_as_alone(
    place: int, character: str, index: int
) -> None:
    good = "2026-11-21T08:17:00Z"
    bad = good[:place] + character + good[place + 1 :]
    texts = [good] * MANY
    texts[index] = bad
    assert among(texts, index) == alone(bad)


def test_texts_that_join_to_good_rows_are_still_bad() -> None:
    row = "2026-11-21T08:17:00Z"
    texts = [row] * MANY
    texts[10:13] = [row[:5], row[5:] + "\n" + row, row]
    assert nth(texts).index == 10
    texts = [row] * MANY
    texts[10], texts[11] = f"{row}\n{row[:9]}", row[10:]
    assert nth(texts).index == 10
