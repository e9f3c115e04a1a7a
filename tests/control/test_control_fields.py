from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logd.control import fields
from logd.control.errors import InvalidField
from logd.control.model import Scope


def refused(check: Callable[..., object], *arguments: object) -> str:
    with pytest.raises(InvalidField) as caught:
        check(*arguments)
    return f"{caught.value.field} {caught.value.code}"


def test_a_name_is_stripped_and_keeps_what_is_inside() -> None:
    assert fields.name("  Ünï  日本 👩‍👩‍👧 ") == "Ünï  日本 👩‍👩‍👧"
    assert fields.name("x" * 200) == "x" * 200


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "too_short"),
        (" \t\n ", "too_short"),
        ("x" * 201, "too_long"),
        ("a\x00b", "control_character"),
        ("a\nb", "control_character"),
        ("a\x7fb", "control_character"),
        ("a\x9bb", "control_character"),
        ("a\u2028b", "control_character"),
        ("a\ud800b", "bad_format"),
    ],
)
def test_a_bad_name_is_refused(text: str, code: str) -> None:
    assert refused(fields.name, text) == f"name {code}"


@given(st.text())
def test_a_name_is_refused_or_storable_as_it_is(text: str) -> None:
    try:
        name = fields.name(text)
    except InvalidField:
        return
    assert name.encode().decode() == name == name.strip()
    assert 1 <= len(name) <= 200


@pytest.mark.parametrize("slug", ["a", "acme", "a-b-9", "0", "x" * 63])
def test_a_good_slug_stays_as_it_is(slug: str) -> None:
    assert fields.slug(slug) == slug


@pytest.mark.parametrize(
    ("slug", "code"),
    [
        ("", "too_short"),
        ("x" * 64, "too_long"),
        ("Acme", "bad_format"),
        ("a_b", "bad_format"),
        ("a b", "bad_format"),
        ("a\n", "bad_format"),
        ("ä", "bad_format"),
        ("a/b", "bad_format"),
        ("٣", "bad_format"),
    ],
)
def test_a_bad_slug_is_refused(slug: str, code: str) -> None:
    assert refused(fields.slug, slug) == f"slug {code}"


@pytest.mark.parametrize("email", ["a@b", "First.Last+tag@mail.example.org", "o'neil@x-y.io"])
def test_a_good_address_keeps_its_case(email: str) -> None:
    assert fields.email(f" {email} ") == email


@pytest.mark.parametrize(
    "email",
    ["", "a", "@b", "a@", "a@b@c", "a b@c", "a@b..c", "a@b\nBcc: x@y", "<a@b>", "ä@b", "a@b,c@d"],
)
def test_a_bad_address_is_refused(email: str) -> None:
    assert refused(fields.email, email) == "email bad_format"


def test_an_address_over_254_characters_is_refused() -> None:
    assert refused(fields.email, "a@" + "b" * 253) == "email too_long"


def test_a_colour_is_six_hexadecimal_digits_and_stays_as_given() -> None:
    assert fields.color("#aBc019") == "#aBc019"
    for text in ("", "abc019", "#abc", "#abcdeg", "#abc0190", "#abc019\n"):
        assert refused(fields.color, text) == "color bad_format"


@given(st.lists(st.sampled_from(fields.PALETTE)))
def test_the_next_colour_is_one_that_is_used_least(used: list[str]) -> None:
    counts = Counter(used)
    assert counts[fields.next_color(used)] == min(counts[color] for color in fields.PALETTE)


def test_colours_outside_the_palette_do_not_count_and_case_does_not_matter() -> None:
    first, second = fields.PALETTE[:2]
    assert fields.next_color(["#123456"]) == first
    assert fields.next_color([first.lower()]) == second


def test_scopes_lose_repetition_and_order() -> None:
    given_twice = [Scope.READ, Scope.INGEST, Scope.READ]
    assert fields.scopes(given_twice) == (Scope.INGEST, Scope.READ)
    assert fields.scopes([Scope.READ]) == (Scope.READ,)
    assert refused(fields.scopes, []) == "scopes empty"


def test_an_expiry_is_in_the_future() -> None:
    assert fields.expiry(None, 5) is None
    assert fields.expiry(6, 5) == 6
    assert refused(fields.expiry, 5, 5) == "expires_at in_past"
    assert refused(fields.expiry, 2**63, 5) == "expires_at out_of_range"


def test_an_overlap_is_30_days_at_most() -> None:
    assert fields.overlap_seconds(0) == 0
    assert fields.overlap_seconds(2_592_000) == 2_592_000
    for seconds in (-1, 2_592_001):
        assert refused(fields.overlap_seconds, seconds) == ("overlap_seconds out_of_range")
