import itertools
import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from bench.corpus import (
    BLOCK,
    EVERYWHERE,
    RARE_ID,
    RARE_WORD,
    Corpus,
    Line,
    blocks,
    timestamp,
    write_corpus,
)
from bench.new_questions import KINDS, new_questions, prefix_questions
from bench.oracle import Oracle, differences, predicate
from bench.peers.base import milliseconds
from bench.queries import queries
from bench.wire import RequestForm, write_requests

ENTRIES = 20_000


class Collected:
    """A judge that keeps every line."""

    def __init__(self) -> None:
        self.lines: list[Line] = []

    def see(self, lines: Sequence[Line]) -> None:
        self.lines += lines


@pytest.fixture(scope="module")
def lines() -> list[Line]:
    return [line for block in blocks(1, ENTRIES) for line in block]


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    return write_corpus(tmp_path / "corpus", 7, 3 * BLOCK + 10, Collected())


def test_a_seed_makes_the_same_corpus_every_time() -> None:
    assert list(blocks(3, 2_500)) == list(blocks(3, 2_500))


def test_another_seed_makes_another_corpus() -> None:
    assert list(blocks(3, 1_000)) != list(blocks(4, 1_000))


def test_a_longer_corpus_begins_with_the_shorter_one() -> None:
    assert list(blocks(3, 3_000))[:2] == list(blocks(3, 2_000))


def test_every_line_is_a_json_object_of_what_the_oracle_judges(lines: list[Line]) -> None:
    for line in lines[:5_000]:
        entry = json.loads(line.json)
        assert entry["message"] == line.message
        assert entry["level"] == line.level
        assert entry["meta"].get("userId", "") == line.user_id
        assert milliseconds(entry["timestamp"]) == line.ts_ms
        assert set(entry) == {"timestamp", "level", "source", "message", "tags", "meta"}


def test_an_entry_has_about_280_bytes(lines: list[Line]) -> None:
    assert 260 < sum(len(line.json) for line in lines) / len(lines) < 300


def test_no_two_entries_share_a_time(lines: list[Line]) -> None:
    assert len({line.ts_ms for line in lines}) == len(lines)


def test_some_entries_arrive_late_but_never_across_blocks(lines: list[Line]) -> None:
    times = [line.ts_ms for line in lines]
    late = sum(later < earlier for earlier, later in itertools.pairwise(times))
    assert 0.02 < late / len(times) < 0.2
    for first in range(0, ENTRIES - BLOCK, BLOCK):
        assert max(times[first : first + BLOCK]) < min(times[first + BLOCK : first + 2 * BLOCK])


def test_times_have_24_characters() -> None:
    assert timestamp(1_793_491_200_007) == "2026-11-01T00:00:00.007Z"


def test_kinds_levels_sources_and_tags_are_many(lines: list[Line]) -> None:
    entries = [json.loads(line.json) for line in lines]
    assert len({entry["source"] for entry in entries}) >= 25
    assert {entry["level"] for entry in entries} == {"DEBUG", "INFO", "WARN", "ERROR"}
    assert 24 <= len({tuple(entry["tags"]) for entry in entries}) <= 64


def test_words_are_as_frequent_as_the_questions_need(lines: list[Line]) -> None:
    def part(text: str) -> float:
        return sum(text in line.message for line in lines) / len(lines)

    assert part(EVERYWHERE) == 1
    assert 0.05 < part("connection") < 0.2
    assert 0.05 < part("timeout") < 0.2
    assert 0.008 < part("authentication failure") < 0.02
    assert 0.001 < part("登录") < 0.01
    assert part("zyzzyva") == 0
    assert sum(RARE_WORD in line.message for line in lines) == 1
    assert sum(RARE_ID in line.message for line in lines) == 1


def test_new_questions_are_all_different_and_find_something(lines: list[Line]) -> None:
    asked = [*new_questions(), *prefix_questions(), *queries(ENTRIES)]
    conditions = [(q.words, q.phrase, q.prefix, q.substring, q.user_id) for q in asked]
    assert len({query.name for query in asked}) == len(asked)
    assert len(set(conditions)) == len(asked) - 2  # newest, errors and a minute have none
    for kind in KINDS:
        for query in kind.questions():
            found = sum(map(predicate(query), lines))
            assert found or kind.name == "new_meta", query
            assert found == 1 or kind.name not in ("new_word", "new_id")


def test_words_that_are_searched_for_have_one_spelling(lines: list[Line]) -> None:
    """Case-sensitive and case-insensitive peers must find the same."""
    messages = "\n".join([line.message for line in lines])
    folded = messages.casefold()
    for query in (*queries(ENTRIES), *new_questions()):
        starts = [query.prefix] if query.prefix else []
        for word in (*query.words, *(query.phrase or "").split(), *starts):
            in_any_case = _occurrences(word.casefold(), folded, whole=word not in starts)
            assert _occurrences(word, messages, whole=word not in starts) == in_any_case


def _occurrences(word: str, text: str, *, whole: bool) -> int:
    """`whole`: as a word, not only as the start of one."""
    end = r"(?!\w)" if whole else ""
    return len(re.findall(rf"{re.escape(word)}(?<!\w{re.escape(word)}){end}", text))


def test_words_that_are_searched_for_stand_in_messages_only(lines: list[Line]) -> None:
    """Peers that also search source and tags must find the same."""
    others = []
    for line in lines[:5_000]:
        entry = json.loads(line.json)
        others.append(Line(0, line.level, " ".join([entry["source"], *entry["tags"]]), "", b""))
    for query in (*queries(ENTRIES), *new_questions()):
        if query.words or query.phrase or query.prefix or query.substring:
            assert not any(map(predicate(query), others))


def test_a_corpus_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    judge = Collected()
    corpus = write_corpus(tmp_path / "corpus", 7, 3 * BLOCK + 10, judge)
    read = [line for block in corpus.read(0, corpus.entries) for line in block]
    assert read == [line.json for line in judge.lines]
    assert [line for block in corpus.read(BLOCK, 2 * BLOCK) for line in block] == read[1000:2000]
    assert corpus.size_bytes == corpus.path.stat().st_size


def test_a_corpus_is_not_read_from_the_middle_of_a_block(corpus: Corpus) -> None:
    with pytest.raises(ValueError, match="whole blocks"):
        list(corpus.read(5, 1_000))


@pytest.mark.parametrize("batch", [1, 10, 1_000])
def test_batches_round_trip_as_json(corpus: Corpus, tmp_path: Path, batch: int) -> None:
    def body(lines: Sequence[bytes]) -> bytes:
        return b"[" + b",".join(lines) + b"]"

    form = RequestForm(b"POST / HTTP/1.1\r\n", body)
    file = write_requests(tmp_path / "requests", corpus, 0, 2 * BLOCK, batch, form)
    data, entries, start = file.path.read_bytes(), [], 0
    for end in file.ends:
        head, _, content = data[start:end].partition(b"\r\n\r\n")
        assert head.endswith(b"Content-Length: %d" % len(content))
        entries += json.loads(content)
        start = end
    assert file.entries == 2 * BLOCK
    assert entries == [json.loads(line) for block in corpus.read(0, 2 * BLOCK) for line in block]


def test_a_batch_must_divide_a_block(corpus: Corpus, tmp_path: Path) -> None:
    form = RequestForm(b"", b"".join)
    with pytest.raises(ValueError, match="divide"):
        write_requests(tmp_path / "requests", corpus, 0, 2 * BLOCK, 300, form)


def test_the_oracle_keeps_the_answers_of_every_checkpoint(lines: list[Line]) -> None:
    asked = queries(ENTRIES)
    oracle = Oracle(asked, [2 * BLOCK, ENTRIES])
    for first in range(0, ENTRIES, BLOCK):
        oracle.see(lines[first : first + BLOCK])
    for count in (2 * BLOCK, ENTRIES):
        for query in asked:
            found = sorted(
                ((n.ts_ms, n.message) for n in lines[:count] if predicate(query)(n)), reverse=True
            )
            answer = oracle.answer(count, query)
            assert answer.total == len(found)
            assert answer.page == tuple(found[:100])
        assert sum(oracle.levels(count).values()) == count


def test_a_wrong_answer_is_told(lines: list[Line]) -> None:
    query = queries(ENTRIES)[0]
    oracle = Oracle([query], [BLOCK])
    oracle.see(lines[:BLOCK])
    answer = oracle.answer(BLOCK, query)
    assert differences("q", answer, answer.total, list(reversed(answer.page))) == []
    assert differences("q", answer, 7, answer.page) == ["q: total 7 instead of 1,000"]
    assert differences("q", answer, answer.total, answer.page[1:]) == [
        "q: the page differs in 1 entries"
    ]
