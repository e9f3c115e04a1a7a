"""Flipped bits in WAL and segments: found or harmless, no row is wrong, nothing else is missing."""

import functools
import random
import shutil
from collections.abc import Iterator

import pytest
from damage_world import Trial, flip_a_bit
from store_world import TINY, memory_directory
from victim import Answer, Examination

from logd.store.layout import ProjectLayout

Row = tuple[int, str]


@pytest.fixture(scope="module")
def trial() -> Iterator[Trial]:
    with memory_directory() as work:
        yield Trial(work)


def _flip_in_the_wal(layout: ProjectLayout, random_: random.Random) -> None:
    flip_a_bit(random_.choice(sorted(layout.wal.iterdir())), random_)


def _flip_in_a_segment(lose_index: bool, layout: ProjectLayout, random_: random.Random) -> None:
    flip_a_bit(random_.choice(sorted(layout.segments.iterdir())), random_)
    if lose_index:
        shutil.rmtree(layout.index)


def answers(found: Examination) -> list[Answer]:
    return [*found.opened, *found.written, *found.reopened]


def flip_the_wal(trial: Trial, count: int, seed: int) -> None:
    """Each frame of the tail is an entry, so that at most one may be missing: reported, or taken
    for the torn end of a frame that was never acknowledged."""
    right = trial.expected
    last = max(right.opened[0].rows)
    for number, outcome in enumerate(trial.run([_flip_in_the_wal] * count, seed)):
        found = outcome.examination()
        missing = set(right.opened[0].rows) - set(found.opened[0].rows)
        assert len(missing) <= 1, number
        assert found.damage or missing <= {last}, number
        gone = {message for _, message in missing}
        for expected, answer in zip(answers(right), answers(found), strict=True):
            kept = [message for _, message in expected.rows if message not in gone]
            assert [message for _, message in answer.rows] == kept, number
            assert (answer.total, answer.damaged) == (len(kept), False), number


def flip_the_segments(trial: Trial, count: int, seed: int, *, lose_index: bool) -> None:
    """Of one chunk something may be missing, and then that is reported."""
    flip = functools.partial(_flip_in_a_segment, lose_index)
    for number, outcome in enumerate(trial.run([flip] * count, seed)):
        found = outcome.examination()
        for expected, answer in zip(answers(trial.expected), answers(found), strict=True):
            rows = set(answer.rows)
            assert answer.rows == [row for row in expected.rows if row in rows], number
            missing = [seq for seq, _ in expected.rows if (seq, _) not in rows]
            if answer.damaged:
                assert answer.total <= expected.total, number
            else:
                assert answer.total == len(rows), number
                assert found.damage or not missing, number
            assert not missing or max(missing) - min(missing) < TINY.chunk_entries, number


def test_a_flipped_bit_in_the_wal_costs_one_frame_at_most(trial: Trial) -> None:
    flip_the_wal(trial, 60, seed=0)


def test_a_flipped_bit_in_a_segment_costs_one_chunk_at_most(trial: Trial) -> None:
    flip_the_segments(trial, 60, seed=0, lose_index=False)


def test_a_flipped_bit_in_a_segment_costs_one_chunk_at_most_without_the_index(
    trial: Trial,
) -> None:
    flip_the_segments(trial, 30, seed=0, lose_index=True)


@pytest.mark.slow
def test_a_thousand_flipped_bits_in_the_wal(trial: Trial) -> None:
    for seed in range(1, 11):
        flip_the_wal(trial, 100, seed)


@pytest.mark.slow
@pytest.mark.parametrize("lose_index", [False, True])
def test_a_thousand_flipped_bits_in_segments(trial: Trial, lose_index: bool) -> None:
    for seed in range(1, 11):
        flip_the_segments(trial, 100, seed, lose_index=lose_index)
