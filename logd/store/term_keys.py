"""What caches know the terms of a search by.

A term itself would be a key of any size, a hundred bytes or a hundred kilobytes, that no budget
counts.
"""

from logd.query.ast import Filter, Term
from logd.query.cursor import filter_digest


class TermKeys:
    """Of one search. A key is worked out once, however many parts of the log ask for it."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Term, bytes]] = {}

    def of(self, term: Term) -> bytes:
        """16 bytes, the same for equal terms. It is known by the term's identity, as the search's
        own terms come again, and to hash a long one for each part takes longer than all else."""
        found = self._known.get(id(term))
        if found is None:  # the term is kept beside: while it is, no other has its identity
            found = self._known[id(term)] = term, filter_digest(Filter(search=term))
        return found[1]
