"""CRC-32 as zlib has it (ISO 3309), from the library that is quickest at it, where there is one."""

try:
    from isal.isal_zlib import crc32
except ImportError:  # not built for this machine
    from zlib import crc32

__all__ = ["crc32"]
