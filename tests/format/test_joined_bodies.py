"""Accepted bodies decoded together are what each is alone."""

from body_samples import RECEIVED_NS, WrittenBody, array, bodies, entry
from format_samples import PROJECT, unhurried
from hypothesis import given
from hypothesis import strategies as st
from test_body_agreement import same

from logd.errors import LogdError
from logd.format.body import Batch, concatenate_batches, decode_body
from logd.format.joined_bodies import decode_bodies


def alone(body: bytes, received_ns: int, ndjson: bool) -> Batch | None:
    try:
        batch = decode_body(body, PROJECT, received_ns, ndjson=ndjson)
    except LogdError:
        return None
    return batch if batch.count else None


@unhurried
@given(st.lists(bodies(), min_size=1, max_size=6), st.booleans())
def test_together_they_are_what_they_are_one_by_one(
    written: list[WrittenBody], ndjson: bool
) -> None:
    accepted = [
        (one.body, RECEIVED_NS + n, batch)
        for n, one in enumerate(written)
        if one.ndjson == ndjson and (batch := alone(one.body, RECEIVED_NS + n, ndjson)) is not None
    ]
    if not accepted:
        return
    texts, received, batches = zip(*accepted, strict=True)
    counts = [batch.count for batch in batches]
    together = decode_bodies(texts, counts, received, PROJECT, ndjson=ndjson)
    if together is not None:
        assert same(together, concatenate_batches(batches))


def test_plain_bodies_are_decoded_together() -> None:
    one, two = entry(message='"one"'), entry(message='"two"', timestamp='"1970-01-01T00:00:00Z"')
    texts = [one, b" " + array(two, one) + b"\n", array(one)]
    batch = decode_bodies(texts, [1, 2, 1], [5, 6, 7], PROJECT, ndjson=False)
    assert batch is not None
    assert batch.ts.tolist() == [5, 0, 6, 7]
    assert batch.messages == b"one\xfetwo\xfeone\xfeone"
    lines = decode_bodies([one, two + b"\n\n" + one], [1, 2], [5, 6], PROJECT, ndjson=True)
    assert lines is not None
    assert lines.ts.tolist() == [5, 0, 6]


def test_what_is_not_what_it_was_is_not_decoded_together() -> None:
    good = entry()
    for odd in (b"{}", b"[", good[:-1], b"", b"7", good + b"," + good):
        assert decode_bodies([good, odd], [1, 1], [5, 6], PROJECT, ndjson=False) is None, odd
    assert decode_bodies([good, good], [1, 2], [5, 6], PROJECT, ndjson=False) is None
