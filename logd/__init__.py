"""logd: a single-node, append-only log store daemon."""

__version__ = "0.1.0"
