"""A paged value with its directory, as tests look at it."""

from logd.format.pages import PageDirectory


class PagedValue:
    """A value and its directory."""

    def __init__(self, magic: bytes, value: bytes | memoryview) -> None:
        """Raises ValueError where the directory does not hold."""
        self.directory = PageDirectory(magic, value)
        self.head = self.directory.head
        self.keys = self.directory.keys
        self._value = value

    def __len__(self) -> int:
        return len(self.directory)

    def page(self, index: int) -> bytes:
        """Raises ValueError if the page is damaged."""
        return self.directory.page(self._value, index)
