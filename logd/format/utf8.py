"""Whether bytes are UTF-8, for those that are mostly ASCII."""

from typing import Final

import numpy as np

_WORD_BYTES: Final = 8
_STRETCH_WORDS: Final = 32
_STRETCH_BYTES: Final = _WORD_BYTES * _STRETCH_WORDS
_HIGH_BITS: Final = np.uint64(0x8080808080808080)
_FEW: Final = 64  # more stretches are not worth a look at each


def is_utf8(data: bytes) -> bool:
    """As if all of it were decoded, but only stretches that hold something else than ASCII are."""
    words = np.frombuffer(data, np.uint64, len(data) // _WORD_BYTES)
    rest = data[len(words) * _WORD_BYTES :]
    if not len(words) or not rest.isascii():
        return _is_decodable(data)
    together = np.bitwise_or.reduceat(words, np.arange(0, len(words), _STRETCH_WORDS))
    others = np.flatnonzero(together & _HIGH_BITS)
    if len(others) > _FEW:
        return _is_decodable(data)
    # A character reaches into the next stretch only if that is one of them too.
    for run in np.split(others, np.flatnonzero(np.diff(others) > 1) + 1):
        if len(run):
            start, end = int(run[0]) * _STRETCH_BYTES, (int(run[-1]) + 1) * _STRETCH_BYTES
            if not _is_decodable(data[start:end]):
                return False
    return True


def _is_decodable(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
