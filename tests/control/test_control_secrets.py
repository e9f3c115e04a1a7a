import hashlib
import os
import random
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logd.control import secrets
from logd.entry import RandomBytes


def seeded(seed: int) -> RandomBytes:
    return random.Random(seed).randbytes


@pytest.mark.parametrize("kind", [secrets.KEY, secrets.TOKEN])
def test_a_secret_has_its_kind_and_53_url_safe_characters(kind: secrets.Kind) -> None:
    secret = secrets.new_secret(kind, os.urandom)
    assert secret.startswith(kind)
    assert len(secret) == 53
    assert set(secret[4:]) <= set(string.ascii_letters + string.digits)
    assert secrets.well_formed(secret)


def test_the_golden_secret_of_ascending_bytes() -> None:
    secret = secrets.new_secret(secrets.KEY, lambda size: bytes(range(size)))
    assert secret == "ldk_003aUlTJC7tjlCTQj2uNU3MFagCXG9LRKRcwGkBIDlf1abELp"


def test_the_extremes_of_the_random_bytes_fit_the_width() -> None:
    for byte in (b"\0", b"\xff"):
        secret = secrets.new_secret(secrets.TOKEN, byte.__mul__)
        assert len(secret) == 53
        assert secrets.well_formed(secret)


@given(st.integers(0, 1000), st.integers(0, 52), st.sampled_from(string.ascii_letters + "059_-"))
def test_one_wrong_character_is_seen(seed: int, position: int, character: str) -> None:
    secret = secrets.new_secret(secrets.KEY, seeded(seed))
    typo = secret[:position] + character + secret[position + 1 :]
    assert secrets.well_formed(typo) == (typo == secret)


def test_an_api_key_does_not_pass_for_a_token_of_the_same_body() -> None:
    secret = secrets.new_secret(secrets.KEY, seeded(1))
    assert not secrets.well_formed("ldu_" + secret[4:])


@given(st.text())
def test_any_text_may_be_asked_about(text: str) -> None:
    assert not secrets.well_formed(text)
    assert not secrets.well_formed("ldk_" + text)


@pytest.mark.parametrize("text", ["", "ldk_", "ldk_" + "\udc80" * 49, "ldk_" + "²" * 49, "x" * 53])
def test_what_only_looks_like_a_secret_is_refused(text: str) -> None:
    assert not secrets.well_formed(text)


def test_what_is_kept_is_the_sha_256_and_what_is_shown_the_first_12_characters() -> None:
    secret = secrets.new_secret(secrets.KEY, seeded(2))
    assert secrets.digest(secret) == hashlib.sha256(secret.encode()).digest()
    assert secrets.display_prefix(secret) == secret[:12]
