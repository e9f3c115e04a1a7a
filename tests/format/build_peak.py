"""A process that builds one chunk and prints by how many bytes that raised its memory at most.

python build_peak.py MESSAGE_BYTES META_BYTES ENTRIES SIZE [FIRST LAST]: of all texts together, how
many characters stand between two spaces, and which they are (digits).
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


def texts(total: int, entries: int, size: int, first: str, last: str) -> bytes:
    """Separated texts of as many words of this size as make them so large."""
    words = max(1, total // entries // (size + 1))
    rng = np.random.default_rng(1)
    table = np.full((entries, words, size + 1), ord(" "), np.uint8)
    table[:, :, :size] = rng.integers(ord(first), ord(last) + 1, (entries, words, size))
    table[:, -1, -1] = SEPARATOR[0]
    return table.tobytes()[:-1]


def kilobytes(field: str) -> int:
    line = next(line for line in _STATUS.read_text().splitlines() if line.startswith(field))
    return int(line.split()[1])


def main() -> None:
    message_bytes, meta_bytes, entries, size = map(int, sys.argv[1:5])
    first, last = sys.argv[5:] or ("0", "9")
    set_up_allocator(thrifty=message_bytes + meta_bytes < 1 << 20)
    batch = Batch(
        count=entries,
        ts=np.arange(entries, dtype=np.int64),
        levels=bytes(entries),
        messages=texts(message_bytes, entries, size, first, last),
        sources=SEPARATOR.join([b"api"] * entries),
        tags=SEPARATOR.join([b"[]"] * entries),
        metas=texts(meta_bytes, entries, size, first, last),
    )
    before = kilobytes("VmRSS:")
    Path("/proc/self/clear_refs").write_text("5")  # the peak counts anew
    build_chunk(batch, Seq(0))
    sys.stdout.write(str((kilobytes("VmHWM:") - before) * 1024))


if __name__ == "__main__":
    main()
