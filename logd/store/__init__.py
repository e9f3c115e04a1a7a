"""The log store: projects of append-only files with an index. Synchronous, no HTTP."""
