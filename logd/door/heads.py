"""What the lane and the HTTP server hold alike of heads, lest a client could tell them apart."""

import re
import time
from typing import Final

_LABEL: Final = rb"[0-9A-Za-z_-]{1,63}"
HOST: Final = re.compile(
    rb"(?:%b(?:\.%b)*\.?|\[[0-9A-Fa-f:.]+\])?(?::[0-9]{1,5})?" % (_LABEL, _LABEL)
)

REASONS: Final = {
    100: b"Continue",
    200: b"OK",
    201: b"Created",
    204: b"No Content",
    207: b"Multi-Status",
    400: b"Bad Request",
    401: b"Unauthorized",
    403: b"Forbidden",
    404: b"Not Found",
    405: b"Method Not Allowed",
    408: b"Request Timeout",
    409: b"Conflict",
    413: b"Content Too Large",
    415: b"Unsupported Media Type",
    422: b"Unprocessable Content",
    429: b"Too Many Requests",
    431: b"Request Header Fields Too Large",
    500: b"Internal Server Error",
    501: b"Not Implemented",
    503: b"Service Unavailable",
    505: b"HTTP Version Not Supported",
}
"""For people who read the wire; a status that is not here has none."""

_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
# fmt: off
_MONTHS: Final = (
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
)
# fmt: on


def date_header(now_s: float) -> tuple[bytes, bytes]:
    """Name and value, of seconds since the epoch."""
    at = time.gmtime(now_s)
    month = _MONTHS[at.tm_mon - 1]
    text = f"{_DAYS[at.tm_wday]}, {at.tm_mday:02} {month} {at.tm_year}"
    return b"date", f"{text} {at.tm_hour:02}:{at.tm_min:02}:{at.tm_sec:02} GMT".encode()
