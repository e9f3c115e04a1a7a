import pytest

from bench.corpus import blocks
from bench.steps import disk, logged, plain_steps, split_plainly, steps
from logd.entry import ProjectId, Seq
from logd.format.body import decode_body
from logd.format.chunk import BuiltChunk, build_chunk
from logd.format.separated import SEPARATOR
from logd.format.templates import TemplateCodes, split_block


def test_every_step_has_a_cost() -> None:
    found = steps(2_000)
    assert len(found) == 7
    assert all(cost > 0 for _, cost in found)


def test_what_they_are_compared_with_has_a_cost() -> None:
    assert [cost > 0 for _, cost in plain_steps(2_000)] == [True] * 3


def test_the_log_takes_less_than_the_requests() -> None:
    (_, sent), (_, kept) = logged(2_000)
    assert 0 < kept < sent


def test_the_plain_split_finds_the_same_templates() -> None:
    texts = [line.message.encode() for block in blocks(1, 2_000) for line in block]
    separated = [
        SEPARATOR.join(texts[:1_500]),
        SEPARATOR.join([b"", b"-", b"a1 b", *texts[1_500:]]),
    ]
    templates = TemplateCodes()
    for block in separated:
        split_block(block, templates)
    assert split_plainly(separated) == templates.texts()


def chunk_of(entries: int) -> BuiltChunk:
    project = ProjectId("11111111-1111-4111-8111-111111111111")
    member = b'{"projectId":"' + project.encode() + b'",'
    lines = [member + line.json[1:] for block in blocks(1, entries) for line in block]
    return build_chunk(decode_body(b"\n".join(lines), project, 0, ndjson=True), Seq(0))


def test_all_that_a_chunk_takes_is_listed_once() -> None:
    built = chunk_of(2_000)
    found = dict(disk(2_000))
    assert len(found) == len(disk(2_000))
    assert all(size > 0 for size in found.values())
    assert 2_000 * found["index: postings"] == pytest.approx(len(built.postings))
    whole = len(built.data) + len(built.postings) + len(built.vocabulary)
    assert 2_000 * sum(found.values()) == pytest.approx(whole)
