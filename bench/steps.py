"""What each step on the way of an entry costs, and what an entry takes on disk.

    python -m bench.steps [--entries 65,536 at most]

CPU time of one core, in this process, without HTTP: the least of several rounds over the generated
corpus, in batches of 1,000. Bytes of the one chunk that these entries make, and of what the index
stores of it.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from functools import cache
from typing import Final

from bench.corpus import blocks
from bench.tables import grid, number
from logd.entry import ProjectId, Seq
from logd.format.body import Batch, concatenate_batches, decode_body
from logd.format.chunk import Part, build_chunk
from logd.format.logid import ids_json
from logd.format.separated import edges
from logd.format.templates import TemplateCodes, split_block
from logd.format.wal import Frame, encode_frame
from logd.store.tail import TailRun

_PROJECT: Final = ProjectId("00000000-0000-4000-8000-000000000000")
_BATCH: Final = 1_000
_ROUNDS: Final = 5
_BLOCK_ENTRIES: Final = 4096
_REST_OF_METAS: Final = "their lengths, and all else of metas"
_REST: Final = "levels, sources, tags, head"
_CONTENT: Final = {
    Part.VAR_DATA: "variables of messages",
    Part.VAR_LENGTHS: "their lengths",
    Part.TEMPLATES: "templates of messages",
    Part.TEMPLATE_CODES: "which template",
    Part.SLOT_CLASSES: "classes of slots",
    Part.VALUES: "dictionaries of values, and codes",
    Part.VALUE_CODES: "dictionaries of values, and codes",
    Part.META_SLOT_CLASSES: _REST_OF_METAS,
    Part.META_VALUES: "the same of metas",
    Part.META_VALUE_CODES: "the same of metas",
    Part.META_DATA: "variables of metas",
    Part.META_LENGTHS: _REST_OF_METAS,
    Part.META_TEMPLATES: _REST_OF_METAS,
    Part.META_CODES: _REST_OF_METAS,
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
        ("WAL frame, with its checksum", _least(lambda: _frame_all(bodies, counts))),
        ("tail", _least(lambda: _publish(batches))),
        ("build a chunk, all of it", _least(lambda: build_chunk(whole, Seq(0)))),
        ("- of that: split messages", _least(lambda: _split(messages))),
        ("- of that: split metas", _least(lambda: _split(metas))),
    ]
    return [(step, seconds / entries * 1e6) for step, seconds in costs]


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


def _frame_all(bodies: Sequence[bytes], counts: Sequence[int]) -> None:
    for body, count in zip(bodies, counts, strict=True):
        encode_frame(Frame(Seq(0), count, 0, False, body, None))


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
    rows = [(step, number(cost)) for step, cost in steps(options.entries)]
    print(grid(("step", "us an entry"), rows))
    sizes = disk(options.entries)
    sizes.append(("all of it", sum(size for _, size in sizes)))
    print(grid(("on disk", "bytes an entry"), [(what, number(size)) for what, size in sizes]))


if __name__ == "__main__":
    main()
