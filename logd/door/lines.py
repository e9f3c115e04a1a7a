"""What comes before h11 reads lines: its patterns go back and forth over blanks in front of what
they do not allow, for ten seconds where there are 32 KiB of them, and each line takes its time.

The buffer is internal to h11, as it is in 0.16: the dependency is bounded accordingly.
"""

import re
from typing import Final

import h11
from h11._receivebuffer import ReceiveBuffer

from logd.door.limits import MAX_HEADERS

_NEVER_IN_A_HEADER: Final = re.compile(rb"[\0\v\f\r]")


class Lines(ReceiveBuffer):
    """Raises h11.RemoteProtocolError where h11 would, but at once, and for too many lines."""

    def maybe_extract_lines(self) -> list[bytearray] | None:
        """Of a head, or of trailers."""
        lines = super().maybe_extract_lines()
        if lines is None:
            return None
        if len(lines) > 1 + MAX_HEADERS:
            raise h11.RemoteProtocolError("too many headers", error_status_hint=431)
        if any(map(_NEVER_IN_A_HEADER.search, lines)):
            raise h11.RemoteProtocolError("a header has a control character")
        return lines

    def maybe_extract_next_line(self) -> bytearray | None:
        """Of a chunk."""
        line = super().maybe_extract_next_line()
        if line is not None and line.find(b"\n") != len(line) - 1:
            raise h11.RemoteProtocolError("a chunk's header has a newline")
        return line
