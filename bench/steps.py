"""What each step on the way of an entry costs, and what an entry takes on disk.

    python -m bench.steps [--entries 65,536 at most]

CPU time of one core, in this process, without HTTP: the least of several rounds over the generated
corpus, in batches of 1,000. For comparison, what the plain way to do a part of it costs in the same
minute: machines differ, and many change their pace. Bytes of the one chunk that these entries make,
and of what the index stores of it.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from functools import cache
from typing import Final

import msgspec
import numpy as np
import zstandard

from bench.corpus import blocks
from bench.ending import ended_orderly, show
from bench.tables import grid, number
from logd.entry import LevelName, ProjectId, Seq
from logd.format.body import Batch, concatenate_batches, decode_body
from logd.format.chunk import build_chunk
from logd.format.logid import ids_json
from logd.format.part_table import Part
from logd.format.separated import SEPARATOR, edges
from logd.format.templates import PLACEHOLDER, TemplateCodes, is_word_byte, split_block
from logd.format.wal import Form, Frame, encode_frame
from logd.format.wal_columns import encode_columns
from logd.store.tail import TailRun

_PROJECT: Final = ProjectId("00000000-0000-4000-8000-000000000000")
_BATCH: Final = 1_000
_MOST_ENTRIES: Final = 65_536
_ROUNDS: Final = 5
_BLOCK_ENTRIES: Final = 4096
_REST_OF_METAS: Final = "their lengths, and all else of metas"
_REST: Final = "levels, sources, tags, kinds of metas, head"
_CONTENT: Final = {
    Part.VAR_DATA: "variables of messages",
    Part.VAR_LENGTHS: "their lengths",
    Part.TEMPLATES: "templates of messages",
    Part.TEMPLATE_CODES: "which template",
    Part.SLOT_COUNTS: "numbers and classes of slots",
    Part.SLOT_CLASSES: "numbers and classes of slots",
    Part.VALUES: "dictionaries of values, and codes",
    Part.VALUE_CODES: "dictionaries of values, and codes",
    Part.META_SLOT_COUNTS: _REST_OF_METAS,
    Part.META_SLOT_CLASSES: _REST_OF_METAS,
    Part.META_VALUES: "the same of metas",
    Part.META_VALUE_CODES: "the same of metas",
    Part.META_DATA: "variables of metas",
    Part.META_LENGTHS: _REST_OF_METAS,
    Part.META_TEMPLATES: _REST_OF_METAS,
    Part.METAS: _REST_OF_METAS,
    Part.TIMES: "times",
}
_MEMBER: Final = b'{"projectId":"' + _PROJECT.encode() + b'",'


def steps(entries: int) -> list[tuple[str, float]]:
    """(step, microseconds an entry), in the order of the way."""
    bodies = _bodies(entries)
    batches = [_decode(body) for body in bodies]
    counts = [batch.count for batch in batches]
    whole = concatenate_batches(batches)
    messages, metas = _cut(whole.messages, entries), _cut(whole.metas, entries)
    costs = [
        ("decode and validate a body", _least(lambda: [_decode(body) for body in bodies])),
        ("ids of the answer", _least(lambda: [ids_json(_PROJECT, Seq(0), n) for n in counts])),
        ("WAL frame, with its checksum", _least(lambda: [_frame(batch) for batch in batches])),
        ("tail", _least(lambda: _publish(batches))),
        ("build a chunk, all of it", _least(lambda: build_chunk(whole, Seq(0)))),
        ("- of that: split messages", _least(lambda: _split(messages))),
        ("- of that: split metas", _least(lambda: _split(metas))),
    ]
    return [(step, seconds / entries * 1e6) for step, seconds in costs]


def plain_steps(entries: int) -> list[tuple[str, float]]:
    """(what, microseconds an entry): parts of the way, done as it is usual."""
    bodies = _bodies(entries)
    batch = concatenate_batches([_decode(body) for body in bodies])
    messages, metas = _cut(batch.messages, entries), _cut(batch.metas, entries)
    decode = msgspec.json.Decoder(list[_PlainEntry]).decode
    compress = zstandard.ZstdCompressor(level=1).compress
    costs = [
        ("decode a body with msgspec, and no more", lambda: [decode(body) for body in bodies]),
        ("split messages, word by word, no more", lambda: split_plainly(messages)),
        ("zstd, level 1, messages and metas", lambda: [compress(b) for b in messages + metas]),
    ]
    return [(what, _least(work) / entries * 1e6) for what, work in costs]


class _PlainEntry(msgspec.Struct, gc=False):
    """An entry as typed decoding gives it quickest: tags and meta stay as they came."""

    projectId: str  # noqa: N815  # as it is sent
    level: LevelName
    message: str
    source: str
    timestamp: str
    tags: msgspec.Raw = msgspec.Raw(b"")
    meta: msgspec.Raw = msgspec.Raw(b"")


def split_plainly(blocks_of_texts: Sequence[bytes]) -> list[bytes]:
    """The templates of separated texts, in order of appearance: the edges of all words, those that
    hold a digit, and what is left without these. After CLP, as `format/templates.py` is."""
    numbers: dict[bytes, int] = {}
    for texts in blocks_of_texts:
        array = np.frombuffer(texts, np.uint8)
        in_word, is_digit = is_word_byte(array)
        edges_of_words = np.flatnonzero(np.diff(in_word, prepend=False, append=False))
        begins, ends = edges_of_words[::2], edges_of_words[1::2]
        # From a word to the next one: what is between them holds no digit.
        digits = np.add.reduceat(is_digit, begins, dtype=np.int32) if len(begins) else begins
        begins, ends = begins[digits > 0], ends[digits > 0]
        steps_in = np.zeros(len(array) + 1, np.int8)
        steps_in[begins] = 1
        steps_in[ends] -= 1
        is_variable = np.cumsum(steps_in[:-1], dtype=np.int8).view(np.bool_)
        _ = array[is_variable]  # the variables, which a split is for: they cost too
        is_variable[begins] = False
        marked = array.copy()
        marked[begins] = PLACEHOLDER[0]
        for template in marked[~is_variable].tobytes().split(SEPARATOR):
            numbers.setdefault(template, len(numbers))
    return list(numbers)


def disk(entries: int) -> list[tuple[str, float]]:
    """(what it is, bytes an entry), of a chunk and its part of the index."""
    built = build_chunk(concatenate_batches([_decode(body) for body in _bodies(entries)]), Seq(0))
    sizes = dict.fromkeys(_CONTENT.values(), 0)
    sizes[_REST] = built.head.head_bytes
    for (kind, _), part in built.head.parts.items():
        sizes[_CONTENT.get(Part(kind), _REST)] += part.stored_bytes
    sizes["index: postings"] = len(built.postings)
    sizes["index: vocabulary"] = len(built.vocabulary)
    return [(what, size / entries) for what, size in sizes.items()]


def logged(entries: int) -> list[tuple[str, float]]:
    """(what it is, bytes an entry), of requests before their entries are in a chunk."""
    bodies = _bodies(entries)
    frames = [buffer for body in bodies for buffer in _frame(_decode(body))]
    sizes = [("requests, as they are sent", bodies), ("their frames in the WAL", frames)]
    return [(what, sum(map(len, parts)) / entries) for what, parts in sizes]


@cache
def _bodies(entries: int) -> list[bytes]:
    lines = [line.json for block in blocks(1, entries) for line in block]
    return [
        b"[" + b",".join(_MEMBER + line[1:] for line in lines[start : start + _BATCH]) + b"]"
        for start in range(0, entries, _BATCH)
    ]


def _least(work: Callable[[], object]) -> float:
    """CPU seconds of the quickest round."""
    times = []
    for _ in range(_ROUNDS):
        began = time.process_time()
        work()
        times.append(time.process_time() - began)
    return min(times)


def _decode(body: bytes) -> Batch:
    return decode_body(body, _PROJECT, 0, ndjson=False)


def _frame(batch: Batch) -> list[bytes]:
    body = encode_columns(batch)
    return encode_frame(Frame(Seq(0), batch.count, 0, Form.COLUMNS, body, None))


def _publish(batches: Sequence[Batch]) -> None:
    run = TailRun(Seq(0))
    for batch in batches:
        run.extend(run.next_seq, batch)
    run.seal()


def _cut(blob: bytes, count: int) -> list[bytes]:
    """Blocks of texts, as a chunk has them."""
    at = edges(blob, count)
    spans = [(n, min(n + _BLOCK_ENTRIES, count)) for n in range(0, count, _BLOCK_ENTRIES)]
    return [blob[int(at[low]) : int(at[high]) - 1] for low, high in spans]


def _split(texts: Sequence[bytes]) -> None:
    templates = TemplateCodes()
    for blob in texts:
        split_block(blob, templates)


def main() -> None:
    parser = argparse.ArgumentParser(description="What an entry costs, and what it takes on disk.")
    parser.add_argument("--entries", type=int, default=64_000, help="of one chunk (64,000)")
    options = parser.parse_args()
    if not 0 < options.entries <= _MOST_ENTRIES:
        parser.error(f"argument --entries: not from 1 to {_MOST_ENTRIES:,}: {options.entries}")
    ended_orderly(lambda: _show(options.entries))


def _show(entries: int) -> int:
    rows = [(step, number(cost)) for step, cost in steps(entries)]
    show(grid(("step", "us an entry"), rows))
    plain = [(what, number(cost)) for what, cost in plain_steps(entries)]
    show(grid(("for comparison", "us an entry"), plain))
    in_log = [(what, number(size)) for what, size in logged(entries)]
    show(grid(("before it is in a chunk", "bytes an entry"), in_log))
    sizes = disk(entries)
    sizes.append(("all of it", sum(size for _, size in sizes)))
    show(grid(("on disk", "bytes an entry"), [(what, number(size)) for what, size in sizes]))
    return 0


if __name__ == "__main__":
    main()
