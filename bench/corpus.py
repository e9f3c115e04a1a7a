"""The corpus: realistic log entries from a seed, one JSON object a line, the same for every peer.

Streaming: entries are made, written and judged by the oracle in blocks of `BLOCK` entries, so that
the size of a corpus is bounded by the disk and not by memory.
"""

import hashlib
import os
import re
from array import array
from bisect import bisect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from itertools import accumulate
from json import dumps
from json.encoder import encode_basestring
from pathlib import Path
from random import Random
from typing import Final, NamedTuple, Protocol

from bench.vocabulary import KINDS, TAG_LISTS, USER_IDS, VARIABLES, Draw, Level, Template

BLOCK: Final = 1_000
"""Entries a block. Batches and checkpoints are multiples or divisors of it."""

STEP_MS: Final = 3
"""Mean distance of two entries: 20,000 a minute, 1.2 million an hour."""

START_MS: Final = int(datetime(2026, 11, 1, tzinfo=UTC).timestamp() * 1000)

EVERYWHERE: Final = "prod"
"""A word that every message contains."""

RARE_WORD: Final = "segfault"
RARE_ID: Final = "7f3a9c41d2e8b605"
RARE_EVERY: Final = 100_000
"""The rare word and the rare id each stand in one of so many entries."""

RARE_WORDS: Final = ("sigbus", "sigabrt", "sigfpe", "sigill", "sigsys", "sigtrap",
                     "sigxcpu", "sigxfsz", "sigpipe", "sigquit", "sigstop", "sigterm")  # fmt: skip
RARE_IDS: Final = tuple(f"{Random(n).getrandbits(64):016x}" for n in range(12))
"""As rare: for questions of which each is asked once."""

_RARE_WORD_AT: Final = 1_919
_RARE_ID_AT: Final = 1_251
_SHUFFLE: Final = 4
"""Entries change places within groups of so many only, hence never across blocks."""


_WITH_USER: Final = 0.7
_SLOT: Final = re.compile(r"\{([a-z0-9]+)\}")


class Line(NamedTuple):
    """One entry, and the parts of it that the oracle judges. `json` has no line end."""

    ts_ms: int
    level: Level
    message: str
    user_id: str
    json: bytes


class _Compiled(NamedTuple):
    level: Level
    sources: tuple[str, ...]
    pattern: str
    draws: tuple[Draw, ...]
    rank: int


def _compile(template: Template, sources: tuple[str, ...], rank: int) -> _Compiled:
    draws = tuple(VARIABLES[name] for name in _SLOT.findall(template.text))
    pattern = _SLOT.sub("%s", template.text.replace("%", "%%")) + f" env={EVERYWHERE}"
    return _Compiled(template.level, sources, pattern, draws, rank)


def _weighted_templates() -> tuple[list[_Compiled], list[float]]:
    templates: list[_Compiled] = []
    weights: list[float] = []
    for kind in KINDS:
        shares = sum(t.share for t in kind.templates)
        for template in kind.templates:
            templates.append(_compile(template, kind.sources, len(templates)))
            weights.append(kind.share * template.share / shares)
    return templates, list(accumulate(weights))


_TEMPLATES, _WEIGHTS = _weighted_templates()
_RARE_MESSAGES = {
    _RARE_WORD_AT: _compile(
        Template("ERROR", 1, "worker[{pid}]: " + RARE_WORD + " at {hex8} ip {hex16} sp {hex16}"),
        ("kernel",),
        len(_TEMPLATES),
    ),
    _RARE_ID_AT: _compile(
        Template("WARN", 1, "request " + RARE_ID + " retried by {user}, attempt {small}"),
        ("checkout-api",),
        len(_TEMPLATES) + 1,
    ),
}
for _n, (_word, _id) in enumerate(zip(RARE_WORDS, RARE_IDS, strict=True)):
    _RARE_MESSAGES[2_003 + 601 * _n] = _compile(
        Template("ERROR", 1, "worker[{pid}]: ended by " + _word + ", host {host}"),
        ("kernel",),
        len(_TEMPLATES) + 2,
    )
    _RARE_MESSAGES[2_303 + 601 * _n] = _compile(
        Template("WARN", 1, "request " + _id + " dropped for {user}, attempt {small}"),
        ("checkout-api",),
        len(_TEMPLATES) + 3,
    )
_TAGS_JSON = [dumps(list(tags), separators=(",", ":")) for tags in TAG_LISTS]
_REGION_OF_TAGS = [tags[0] for tags in TAG_LISTS]


@lru_cache(maxsize=16)
def _second(whole: int) -> str:
    return f"{datetime.fromtimestamp(whole, UTC):%Y-%m-%dT%H:%M:%S}"


def timestamp(ts_ms: int) -> str:
    """The 24-character form, `2026-11-01T00:00:00.000Z`."""
    return f"{_second(ts_ms // 1000)}.{ts_ms % 1000:03d}Z"


def blocks(seed: int, entries: int) -> Iterator[list[Line]]:
    """All entries in order of arrival, `BLOCK` a list (the last may be shorter)."""
    rng = Random(seed)
    for first in range(0, entries, BLOCK):
        count = min(BLOCK, entries - first)
        lines = [_line(rng, first + n) for n in range(count)]
        yield _with_late_arrivals(rng, lines)


def _line(rng: Random, number: int) -> Line:
    draw = rng.random
    template = _RARE_MESSAGES.get(number % RARE_EVERY)
    if template is None:
        template = _TEMPLATES[bisect(_WEIGHTS, draw() * _WEIGHTS[-1])]
    message = template.pattern % tuple([d(rng) for d in template.draws])
    tags = (template.rank + int(9 * draw() ** 2)) % len(TAG_LISTS)
    user_id = USER_IDS[int(len(USER_IDS) * draw() ** 3)] if draw() < _WITH_USER else ""
    source = template.sources[int(len(template.sources) * draw())]
    ts_ms = START_MS + number * STEP_MS + int(STEP_MS * draw())
    text = (
        f'{{"timestamp":"{timestamp(ts_ms)}","level":"{template.level}","source":"{source}",'
        f'"message":{encode_basestring(message)},"tags":{_TAGS_JSON[tags]},'
        f'"meta":{{{_meta(rng, user_id, _REGION_OF_TAGS[tags])}}}}}'
    )
    return Line(ts_ms, template.level, message, user_id, text.encode())


def _meta(rng: Random, user_id: str, region: str) -> str:
    """The inside of a meta object; `user_id` empty: the entry belongs to no user."""
    latency = int(2_000 * rng.random() ** 4)
    if not user_id:
        return f'"region":"{region}","latencyMs":{latency}'
    text = f'"requestId":"{rng.getrandbits(64):016x}","userId":"{user_id}","latencyMs":{latency}'
    extra = rng.random()
    if extra < 0.08:
        text += f',"retry":{int(extra * 40)},"http":{{"cached":true}}'
    return text


def _with_late_arrivals(rng: Random, lines: list[Line]) -> list[Line]:
    """In one of 16 groups of four the entries arrive out of order, as shippers deliver them."""
    for first in range(0, len(lines) - _SHUFFLE + 1, _SHUFFLE):
        if not rng.getrandbits(4):
            lines[first : first + _SHUFFLE] = lines[first : first + _SHUFFLE][::-1]
    return lines


class Judge(Protocol):
    """Sees every block on its way to the file; the oracle is one."""

    def see(self, lines: Sequence[Line]) -> None: ...


@dataclass(frozen=True)
class Corpus:
    """A corpus on disk. `block_ends[i]` is the file offset behind block i."""

    path: Path
    seed: int
    entries: int
    size_bytes: int
    sha256: str
    block_ends: "array[int]"

    def read(self, first: int, last: int) -> Iterator[list[bytes]]:
        """The JSON lines [first, last), block by block. Both must be multiples of `BLOCK`, or
        the end."""
        if first % BLOCK or (last % BLOCK and last != self.entries):
            raise ValueError("a corpus is read in whole blocks")
        with self.path.open("rb") as file:
            offset = self.block_ends[first // BLOCK - 1] if first else 0
            file.seek(offset)
            for end in self.block_ends[first // BLOCK : -(-last // BLOCK)]:
                yield file.read(end - offset).splitlines()
                offset = end


def write_corpus(path: Path, seed: int, entries: int, judge: Judge) -> Corpus:
    """Write the corpus as NDJSON, synced, so that no write-back disturbs what is measured next."""
    digest, ends, size = hashlib.sha256(), array("q"), 0
    with path.open("wb") as file:
        for lines in blocks(seed, entries):
            judge.see(lines)
            data = b"\n".join([line.json for line in lines]) + b"\n"
            digest.update(data)
            size += file.write(data)
            ends.append(size)
        file.flush()
        os.fsync(file.fileno())
    return Corpus(path, seed, entries, size, digest.hexdigest(), ends)
