"""Bytes <-> values: bodies, WAL frames, segments, chunks, index values. No I/O, no clock."""
