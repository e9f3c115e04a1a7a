"""Complete HTTP requests, encoded into a file before any clock starts.

While a load runs, the client only copies bytes from this file (mapped into memory, its pages
cached) to a socket: no peer is charged for the cost of encoding.
"""

import os
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.corpus import BLOCK, Corpus

BATCH_SIZES: Final = (1, BLOCK)


@dataclass(frozen=True)
class RequestForm:
    """How a peer wants entries: `head` is the request line and the headers but for the length;
    `body` makes the body of JSON lines."""

    head: bytes
    body: Callable[[Sequence[bytes]], bytes]


@dataclass(frozen=True)
class RequestFile:
    """`ends[i]`: file offset behind request i. `batch`: entries a request."""

    path: Path
    ends: "array[int]"
    batch: int
    first_entry: int

    @property
    def entries(self) -> int:
        return len(self.ends) * self.batch


def write_requests(
    path: Path, corpus: Corpus, first: int, last: int, batch: int, form: RequestForm
) -> RequestFile:
    """Encode the entries [first, last) of the corpus in requests of `batch` entries each.

    The three numbers are multiples of each other as the corpus' blocks demand.
    """
    ends, size = array("q"), 0
    with path.open("wb") as file:
        for lines in _batches(corpus, first, last, batch):
            size += file.write(request(form, lines))
            ends.append(size)
        file.flush()
        os.fsync(file.fileno())
    return RequestFile(path, ends, batch, first)


def request(form: RequestForm, lines: Sequence[bytes]) -> bytes:
    """One complete request."""
    body = form.body(lines)
    return b"%sContent-Length: %d\r\n\r\n%s" % (form.head, len(body), body)


def _batches(corpus: Corpus, first: int, last: int, batch: int) -> Iterator[list[bytes]]:
    if BLOCK % batch or (last - first) % batch:
        raise ValueError("a batch must divide a block, and the number of entries")
    for lines in corpus.read(first, last):
        for start in range(0, len(lines), batch):
            yield lines[start : start + batch]
