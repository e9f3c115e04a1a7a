"""logd from Python: a client of the /v1 interface, and a handler for `logging`."""

from logd.client.client import LogdClient
from logd.client.delivery import IngestResult, Rejection
from logd.client.errors import BadAnswer, ClientError, Refused, Unreachable
from logd.client.handler import LogdHandler
from logd.client.wire import LogEntry, NewEntry, Page, Stats

__all__ = [
    "BadAnswer",
    "ClientError",
    "IngestResult",
    "LogEntry",
    "LogdClient",
    "LogdHandler",
    "NewEntry",
    "Page",
    "Refused",
    "Rejection",
    "Stats",
    "Unreachable",
]
