"""Building a chunk takes memory in proportion to the chunk, whatever its texts are."""

import subprocess
import sys
from pathlib import Path

import pytest

_SCRIPT = Path(__file__).with_name("build_peak.py")
_IMPORTED_BY_A_BUILD = """
import sys
import numpy as np
import logd.run
from logd.entry import Seq
from logd.format.body import Batch
from logd.format.chunk import build_chunk

before = set(sys.modules)
one = {"ts": np.zeros(1, np.int64), "levels": bytes(1), "messages": b"user 17 from 10.0.0.8"}
build_chunk(Batch(count=1, **one, sources=b"api", tags=b"[]", metas=b'{"a":"b"}'), Seq(0))
print(*set(sys.modules) - before)
"""
_MIB = 1 << 20


def peak(message_bytes: int, meta_bytes: int, entries: int, size: int, *characters: str) -> int:
    """Bytes that the build of such a chunk takes at most, on top of its texts."""
    arguments = map(str, (message_bytes, meta_bytes, entries, size, *characters))
    done = subprocess.run(
        [sys.executable, str(_SCRIPT), *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return int(done.stdout)


def test_all_that_a_build_needs_is_there_from_the_start() -> None:
    """Some of numpy's functions import what takes several MiB, and a tenth of a second."""
    done = subprocess.run(
        [sys.executable, "-c", _IMPORTED_BY_A_BUILD],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.split() == []


@pytest.mark.parametrize("digits", [1, 3, 7])
@pytest.mark.parametrize("entries", [2100, 65_536])
def test_messages_that_are_nothing_but_numbers(entries: int, digits: int) -> None:
    assert peak(16 * _MIB, 0, entries, digits) < 192 * _MIB


@pytest.mark.parametrize("entries", [2100, 65_536])
def test_messages_without_a_number_and_none_like_another(entries: int) -> None:
    assert peak(16 * _MIB, 0, entries, 3, "a", "z") < 256 * _MIB


@pytest.mark.parametrize("entries", [260, 65_536])
def test_metas_that_are_nothing_but_numbers(entries: int) -> None:
    assert peak(0, 16 * _MIB, entries, 1) < 128 * _MIB


@pytest.mark.parametrize("entries", [64, 4096])
def test_a_small_chunk_takes_little(entries: int) -> None:
    assert peak(_MIB // 2, 0, entries, 1) < 18 * _MIB
    assert peak(0, _MIB // 2, entries, 1) < 18 * _MIB
