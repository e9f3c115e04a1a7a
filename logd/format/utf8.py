"""Whether bytes are UTF-8, for those that are mostly ASCII."""

from typing import Final

import numpy as np

_WORD_BYTES: Final = 8
_STRETCH_WORDS: Final = 32
_STRETCH_BYTES: Final = _WORD_BYTES * _STRETCH_WORDS
_HIGH_BITS: Final = np.uint64(0x8080808080808080)
_LITTLE_BYTES: Final = 65_536  # are decoded sooner than looked at
_FEW: Final = 64  # more stretches are not worth a look at each


def is_utf8(data: bytes) -> bool:
    """As if all of it were decoded, but only stretches that hold something else than ASCII are."""
    if len(data) < _LITTLE_BYTES:
        return _is_decodable(data)
    words = np.frombuffer(data, np.uint64, len(data) // _WORD_BYTES)
    together = np.bitwise_or.reduceat(words, np.arange(0, len(words), _STRETCH_WORDS))
    others = np.flatnonzero(together & _HIGH_BITS)
    if len(others) > _FEW or not data[len(words) * _WORD_BYTES :].isascii():
        return _is_decodable(data)
    # A character reaches into the next stretch only if that is one of them too.
    runs = np.split(others, np.flatnonzero(np.diff(others) > 1) + 1)
    return all(
        _is_decodable(data[int(run[0]) * _STRETCH_BYTES : (int(run[-1]) + 1) * _STRETCH_BYTES])
        for run in runs
        if len(run)  # without any there is one without any
    )


def _is_decodable(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
