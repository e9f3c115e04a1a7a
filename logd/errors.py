"""Every error the layers below HTTP raise. None of them knows a status code."""

from pathlib import Path


class LogdError(Exception):
    """Base of all errors that a layer raises on purpose."""


class BadQuery(LogdError):
    """A search, filter or cursor that cannot be understood.

    `field` names the parameter at fault, `code` is flat and machine-readable, `position` is the
    offset in characters within the field's text where there is one.
    """

    def __init__(self, field: str, code: str, detail: str, position: int | None = None) -> None:
        super().__init__(detail)
        self.field = field
        self.code = code
        self.detail = detail
        self.position = position


class NoSuchProject(LogdError):
    """No project of that id is stored here."""


class NoSuchEntry(LogdError):
    """The project holds no entry of that id."""


class Overloaded(LogdError):
    """A bounded queue is full; the caller may try again after `retry_after_seconds`."""

    def __init__(self, detail: str, retry_after_seconds: int = 1) -> None:
        super().__init__(detail)
        self.retry_after_seconds = retry_after_seconds


class StorageFull(LogdError):
    """Free space is below min_free_disk_bytes, or the file system said ENOSPC."""


class StorageFailed(LogdError):
    """A write or sync failed; the project takes no entries until it is reopened."""


class DirectoryLocked(LogdError):
    """Another daemon owns the data directory."""


class UnsupportedFormat(LogdError):
    """A file says a newer format version than this program writes."""


class Cancelled(LogdError):
    """The caller went away; the work was stopped between two slices."""


class Corruption(LogdError):
    """Stored bytes fail their checksum or their format's rules."""

    def __init__(self, path: Path | str, offset: int, reason: str) -> None:
        super().__init__(f"{path} at byte {offset}: {reason}")
        self.path = Path(path)
        self.offset = offset
        self.reason = reason


class Unreadable(Corruption):
    """The disk did not give the bytes, for `error`; they may be as they should."""

    def __init__(self, path: Path | str, offset: int, error: OSError) -> None:
        super().__init__(path, offset, f"cannot be read: {error.strerror or error}")
        self.error = error
