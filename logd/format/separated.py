"""Separated text: many UTF-8 texts in one bytes object, with 0xFE between them.

    text 0 | FE | text 1 | FE | ... | text n-1          (n texts, n - 1 separators)

0xFE never occurs in UTF-8, so nothing is ever escaped. `n` is kept beside the bytes: no texts and
one empty text look alike.
"""

import contextlib
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

SEPARATOR: Final = b"\xfe"
_SEPARATOR_CODE: Final = 0xFE

_FEW: Final = 64  # texts: each is looked at in less time than an array costs

Int64s = npt.NDArray[np.int64]


def join_texts(texts: Sequence[str]) -> bytes:
    """The separated form of `texts`."""
    return join_ascii(
        [text if text.isascii() else text.encode().decode("latin-1") for text in texts]
    )


def join_ascii(texts: Sequence[str]) -> bytes:
    """The separated form of texts that are known to be ASCII."""
    return "\xfe".join(texts).encode("latin-1")


def join_names(texts: Sequence[str]) -> bytes:
    """The separated form of texts that are ASCII, as a rule all of them."""
    if len(texts) < _FEW:
        return join_texts(texts)
    with contextlib.suppress(UnicodeEncodeError):
        blob = join_ascii(texts)
        if np.count_nonzero(np.frombuffer(blob, np.int8) < 0) == len(texts) - 1:
            return blob
    return join_texts(texts)


def edges(blob: bytes, count: int) -> Int64s:
    """int64[count + 1]: text i is `blob[edges[i]:edges[i + 1] - 1]`.

    Raises ValueError if the blob does not hold `count` texts.
    """
    if count == 0:
        if blob:
            raise ValueError("separated text: bytes where no text was announced")
        return np.zeros(1, np.int64)
    array = np.frombuffer(blob, np.uint8)
    found = np.flatnonzero(array == _SEPARATOR_CODE)
    if len(found) != count - 1:
        raise ValueError(f"separated text: {len(found) + 1} texts where {count} were announced")
    out = np.empty(count + 1, np.int64)
    out[0] = 0
    out[1:-1] = found
    out[1:-1] += 1
    out[-1] = len(blob) + 1
    return out


def longest(blob: bytes, count: int) -> int:
    """Length in bytes of the longest text."""
    if count < 2:
        return len(blob)
    return int(np.diff(edges(blob, count)).max()) - 1


def is_any_longer(blob: bytes, count: int, size: int) -> bool:
    """Whether a text has more than `size` bytes (at least one)."""
    # Two separators in neighbouring stretches are less than two stretches apart, and so is the
    # last one from the end.
    stretch = (size + 2) // 2
    starts = range(0, len(blob) - stretch + 1, stretch)
    if all([blob.find(SEPARATOR, start, start + stretch) >= 0 for start in starts]):
        return False
    return longest(blob, count) > size


class Numbering(dict[bytes, int]):
    """Distinct texts, numbered in order of appearance. Looking a text up numbers it, so that a
    whole column is encoded without a step of the interpreter per entry."""

    def __missing__(self, text: bytes) -> int:
        number = self[text] = len(self)
        return number

    def encode(self, blob: bytes) -> Int64s:
        """int64[n]: the number of each of at least one separated text."""
        texts = blob.split(SEPARATOR)
        return np.fromiter(map(self.__getitem__, texts), np.int64, len(texts))


def concatenate(blobs: Sequence[bytes]) -> bytes:
    """One blob of all texts; every blob given holds at least one text."""
    return blobs[0] if len(blobs) == 1 else SEPARATOR.join(blobs)
