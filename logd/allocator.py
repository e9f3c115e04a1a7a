"""The C allocator, told how a daemon of large, short-lived blocks uses it.

glibc maps blocks above a bound singly, and moves the bound with what it sees freed, up to 32 MiB.
Both ends hurt here. Where a bound is low, each of the many temporary arrays of a freeze costs a
page fault for every 4 KiB of it. Where it is high, request bodies come from the heap and fragment
it: 20 bodies of 16 MB left 318 MB resident, 71 MB with a fixed bound. So the bound is fixed between
the two: above the arrays of a block of rows, below large bodies. Other C libraries lack the call.

Where memory is dearer than time, all that is not small is mapped, and given back when it is freed.
"""

import ctypes
from typing import Final

_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
_M_ARENA_MAX: Final = -8

_MMAP_BYTES: Final = 4 << 20
_TRIM_BYTES: Final = 16 << 20
_ARENAS: Final = 2  # one for the event loop, one for the threads: more only fragment

_THRIFTY_BYTES: Final = 64 << 10
_THRIFTY_ARENAS: Final = 1


def set_up_allocator(*, thrifty: bool, kept_bytes: int = _TRIM_BYTES) -> None:
    """`thrifty`: memory counts for more than time; if it does not, `kept_bytes` of free memory are
    kept for the next who wants some."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _THRIFTY_BYTES if thrifty else _MMAP_BYTES)
        mallopt(_M_TRIM_THRESHOLD, _THRIFTY_BYTES if thrifty else kept_bytes)
        mallopt(_M_ARENA_MAX, _THRIFTY_ARENAS if thrifty else _ARENAS)


def give_back() -> None:
    """Free memory goes back to the system."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
