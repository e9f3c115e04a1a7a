"""A process that builds one chunk and prints by how many bytes that raised its memory at most.

python build_peak.py MESSAGE_BYTES META_BYTES ENTRIES DIGITS: of all texts together, and how
many digits stand between two spaces.
"""

import sys
from pathlib import Path

import numpy as np

from logd.allocator import set_up_allocator
from logd.entry import Seq
from logd.format.body import Batch
from logd.format.chunk import build_chunk
from logd.format.separated import SEPARATOR

_STATUS = Path("/proc/self/status")


def numbers(total: int, entries: int, digits: int) -> bytes:
    """Separated texts of as many numbers as make them so large."""
    words = max(1, total // entries // (digits + 1))
    rng = np.random.default_rng(1)
    table = np.full((entries, words, digits + 1), ord(" "), np.uint8)
    table[:, :, :digits] = rng.integers(ord("0"), ord("9") + 1, (entries, words, digits))
    table[:, -1, -1] = SEPARATOR[0]
    return table.tobytes()[:-1]


def kilobytes(field: str) -> int:
    line = next(line for line in _STATUS.read_text().splitlines() if line.startswith(field))
    return int(line.split()[1])


def main() -> None:
    message_bytes, meta_bytes, entries, digits = map(int, sys.argv[1:])
    set_up_allocator(thrifty=message_bytes + meta_bytes < 1 << 20)
    batch = Batch(
        count=entries,
        ts=np.arange(entries, dtype=np.int64),
        levels=bytes(entries),
        messages=numbers(message_bytes, entries, digits),
        sources=SEPARATOR.join([b"api"] * entries),
        tags=SEPARATOR.join([b"[]"] * entries),
        metas=numbers(meta_bytes, entries, digits),
    )
    before = kilobytes("VmRSS:")
    Path("/proc/self/clear_refs").write_text("5")  # the peak counts anew
    build_chunk(batch, Seq(0))
    sys.stdout.write(str((kilobytes("VmHWM:") - before) * 1024))


if __name__ == "__main__":
    main()
