"""What decoding makes of any body, against how the body was written; and its two ways."""

from typing import Any

import pytest
from body_samples import RECEIVED_NS, WrittenBody, bodies, entry
from format_samples import PROJECT, Row, costly, metas, rows_of, unhurried
from hypothesis import given
from hypothesis import strategies as st

from logd.format import body as codec
from logd.format.body import (
    Batch,
    EntryError,
    ForeignProject,
    InvalidBody,
    InvalidEntries,
    decode_body,
    decode_good_entries,
)
from logd.format.wal_columns import decode_columns, encode_columns


def fast(body: bytes, ndjson: bool) -> Batch | None:
    return codec.decode_fast(body, PROJECT, RECEIVED_NS, ndjson)


def careful(body: bytes, ndjson: bool) -> Batch:
    return codec.decode_carefully(body, PROJECT, RECEIVED_NS, ndjson)


def indexes(errors: tuple[EntryError, ...]) -> list[int]:
    return sorted({error.index for error in errors})


def same(one: Batch, other: Batch) -> bool:
    texts = ("levels", "messages", "sources", "tags", "metas")
    return (
        one.count == other.count
        and one.ts.dtype == other.ts.dtype
        and one.ts.tolist() == other.ts.tolist()
        and all(getattr(one, name) == getattr(other, name) for name in texts)
    )


@costly
@given(bodies())
def test_a_body_is_taken_as_it_was_meant(written: WrittenBody) -> None:
    if written.faulty:
        with pytest.raises(InvalidEntries) as invalid:
            decode_body(written.body, PROJECT, RECEIVED_NS, ndjson=written.ndjson)
        assert indexes(invalid.value.errors) == written.faulty
    elif written.foreign:
        with pytest.raises(ForeignProject) as foreign:
            decode_body(written.body, PROJECT, RECEIVED_NS, ndjson=written.ndjson)
        assert indexes(foreign.value.errors) == written.foreign
    else:
        batch = decode_body(written.body, PROJECT, RECEIVED_NS, ndjson=written.ndjson)
        assert rows_of(batch) == written.rows


@costly
@given(bodies(faulty=False))
def test_what_the_fast_way_accepts_the_careful_way_accepts_alike(written: WrittenBody) -> None:
    batch = fast(written.body, written.ndjson)
    if batch is not None:
        assert same(batch, careful(written.body, written.ndjson))


@costly
@given(bodies(), st.integers(0, 200))
def test_a_large_body_is_decoded_slice_by_slice_as_it_is_at_once(
    written: WrittenBody, slice_bytes: int
) -> None:
    at_once = fast(written.body, written.ndjson)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(codec, "_LARGE_BYTES", 0)
        patch.setattr(codec, "_SLICE_BYTES", slice_bytes)
        in_slices = fast(written.body, written.ndjson)
    assert (at_once is None) == (in_slices is None)
    assert at_once is None or in_slices is None or same(at_once, in_slices)


@pytest.mark.parametrize("between", [b",", b", ", b" ,\n  "])
@pytest.mark.parametrize(
    "hidden",
    [
        {},
        {"message": '"a },{ b } , { "'},
        {"meta": '{"list": [{"x": 1}, {"y": 2},{}], "},{": "},{"}'},
        {"tags": '["},{", "}, {"]'},
    ],
)
def test_what_looks_like_the_end_of_an_entry_is_none_within_one(
    between: bytes, hidden: dict[str, str]
) -> None:
    one = entry(**hidden)
    body = b"[" + between.join([one] * (2 * codec._LARGE_BYTES // len(one))) + b"]"
    batch = fast(body, ndjson=False)
    assert batch is not None
    assert same(batch, careful(body, ndjson=False))


def test_objects_in_a_meta_do_not_keep_a_large_body_in_one_piece(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sizes: list[int] = []
    decode = codec._decode

    def decoding(body: bytes, *rest: Any) -> Batch | None:
        sizes.append(len(body))
        return decode(body, *rest)

    monkeypatch.setattr(codec, "_decode", decoding)
    one = entry(meta='{"list": [{"x": 1}, {"y": 2}, {}, {"z": 3}]}')
    body = b"[" + b",".join([one] * (4 * codec._LARGE_BYTES // len(one))) + b"]"
    assert fast(body, ndjson=False) is not None
    assert max(sizes) <= codec._LARGE_BYTES


@pytest.mark.parametrize("ndjson", [False, True])
def test_the_end_of_an_entry_is_not_looked_for_in_all_of_a_body(
    monkeypatch: pytest.MonkeyPatch, ndjson: bool
) -> None:
    looked: list[int] = []

    class Between:
        def search(self, body: bytes, start: int, stop: int | None = None) -> None:
            looked.append((len(body) if stop is None else min(stop, len(body))) - start)

    for name in ("_BETWEEN_ENTRIES", "_BETWEEN_LINES"):
        monkeypatch.setattr(codec, name, Between())
    assert fast(b"[" + b"}" * (4 * codec._LARGE_BYTES), ndjson) is None
    assert looked
    assert max(looked) <= codec._LARGE_BYTES


@costly
@given(bodies())
def test_the_good_entries_are_kept(written: WrittenBody) -> None:
    found = decode_good_entries(written.body, PROJECT, RECEIVED_NS, ndjson=written.ndjson)
    assert found.count == len(written.entries)
    assert list(found.kept) == written.good
    assert indexes(found.errors) == sorted({*written.faulty, *written.foreign})
    kept = [] if found.batch is None else rows_of(found.batch)
    assert kept == [written.rows[index] for index in written.good]


@costly
@given(bodies())
def test_what_the_log_keeps_says_the_same_again(written: WrittenBody) -> None:
    found = decode_good_entries(written.body, PROJECT, RECEIVED_NS, ndjson=written.ndjson)
    if found.batch is not None:
        kept = encode_columns(found.batch)
        assert same(decode_columns(kept, len(found.kept)), found.batch)


@costly
@given(bodies(faulty=False), st.data())
def test_the_two_ways_agree_on_damaged_bodies(written: WrittenBody, data: st.DataObject) -> None:
    body = bytearray(written.body)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(body)))
        cut = data.draw(st.sampled_from([0, 0, 1, 2]))
        body[at : at + cut] = data.draw(
            st.sampled_from([b"", b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":", b"\0", b"\n",
                             b"\xfe", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\\ud800", b"\\u0000",
                             b"NaN", b"-", b"0", b"null", b" "])
        )  # fmt: skip
    batch = fast(bytes(body), written.ndjson)
    try:
        expected = careful(bytes(body), written.ndjson)
    except (InvalidBody, InvalidEntries, ForeignProject):
        assert batch is None
        return
    assert batch is None or same(batch, expected)


@unhurried
@given(st.binary(max_size=60), st.booleans())
def test_any_bytes_are_decoded_or_refused(body: bytes, ndjson: bool) -> None:
    try:
        batch = decode_body(body, PROJECT, RECEIVED_NS, ndjson=ndjson)
    except (InvalidBody, InvalidEntries):
        return
    assert batch.count == 0


@unhurried
@given(metas)
def test_metas_are_kept_to_the_byte(meta: bytes) -> None:
    text = meta.strip(b" \t\r\n")
    body = b'{"projectId":"%s","level":"WARN","message":"m","source":"s","meta":%s}' % (
        PROJECT.encode(),
        meta,
    )
    for decode in (fast, careful):
        batch = decode(body, False)
        assert batch is not None
        assert rows_of(batch) == [
            Row(ts_ns=RECEIVED_NS, level=2, message="m", source="s", meta=text)
        ]


@costly
@given(bodies())
def test_single_entries_taken_together_are_what_each_is(written: WrittenBody) -> None:
    """All of them, or none where one is refused."""
    texts = [entry.text.encode() for entry in written.entries]
    if not texts:
        return
    batch = codec.decode_singles(texts, PROJECT, RECEIVED_NS)
    if batch is None:
        assert any(fast(text, ndjson=False) is None for text in texts)
        return
    each = [decode_body(text, PROJECT, RECEIVED_NS, ndjson=False) for text in texts]
    assert same(batch, codec.concatenate_batches(each))


@pytest.mark.parametrize("size", [1, 2, 9])
def test_texts_that_are_entries_only_when_joined_are_refused(size: int) -> None:
    good = entry()
    for at in range(1, len(good)):
        pieces = [good[:at], good[at:]]
        assert codec.decode_singles(pieces + [good] * size, PROJECT, RECEIVED_NS) is None
    twice = good + b"," + good
    assert codec.decode_singles([twice] * size, PROJECT, RECEIVED_NS) is None
    assert codec.decode_singles([twice, b"", *[good] * size], PROJECT, RECEIVED_NS) is None


@pytest.mark.parametrize(
    "member", [b'"tags":["\xff"]', b'"meta":{"a":"\xfe"}', b'"\\u0074ags":["\xff"]']
)
@pytest.mark.parametrize("more", [b"", b',"source":"gr\xc3\xb6"', b',"source":"\\u00f6"'])
@pytest.mark.parametrize("count", [1, 3])
def test_what_a_later_member_replaces_has_to_be_utf8_too(
    member: bytes, more: bytes, count: int
) -> None:
    last = member.replace(b"\xff", b"a").replace(b"\xfe", b"a")
    head = b'{"projectId":"%b","level":"INFO","message":"m"' % PROJECT.encode()
    source = more or b',"source":"s"'
    good, bad = (
        head + source + b"," + last + b"}",
        head + source + b"," + member + b"," + last + b"}",
    )
    for entries, is_good in (([good] * count, True), ([good] * (count - 1) + [bad], False)):
        body = b"[" + b",".join(entries) + b"]"
        assert (codec.decode_fast(body, PROJECT, 0, ndjson=False) is not None) == is_good
