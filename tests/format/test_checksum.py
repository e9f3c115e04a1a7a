import zlib

from hypothesis import given
from hypothesis import strategies as st

from logd.format.checksum import crc32


@given(st.binary(), st.integers(0, 2**32 - 1))
def test_checksums_are_those_of_zlib(data: bytes, before: int) -> None:
    assert crc32(data) == zlib.crc32(data)
    assert crc32(data, before) == zlib.crc32(data, before)
    assert crc32(memoryview(data)) == zlib.crc32(data)
