"""From what is left on disk to the records: pure decisions, taken at every opening.

The journal is the truth. Where it is not whole and the LMDB copy is sound, the copy stands for
everything up to its position and the journal's frames for what came after. Each transaction is in
the journal, synced, before it is in the copy, and in both before it is acknowledged; so bytes at
the journal's end that are no frame, and that the copy knows nothing of, were never acknowledged.
"""

from collections.abc import Iterable

import msgspec

from logd.control.frames import Frame, Gap, Scan
from logd.control.mirror import Contents


class Recovered(msgspec.Struct, frozen=True):
    """The records as of `sequence`, and what the files need.

    `rewrite`: the journal must be written anew before anything is appended. `damage`: what was
    wrong, as sentences; the files it speaks of are to be kept.
    """

    records: dict[str, bytes]
    sequence: int
    rewrite: bool
    damage: tuple[str, ...]


def recover(journal: Scan | None, copy: Contents | None) -> Recovered:
    """`journal` None: there is no such file. `copy` None: there is none that can be read."""
    if journal is None:
        return _without_journal(copy)
    if journal.whole and (copy is None or copy.sequence <= journal.last_sequence):
        return Recovered(replay({}, journal.frames), journal.last_sequence, False, ())
    if copy is None or not _reaches(copy, journal):
        damage = _describe(journal, None)
        return Recovered(replay({}, journal.frames), journal.last_sequence, True, damage)
    newer = [frame for frame in journal.frames if frame.sequence > copy.sequence]
    return Recovered(
        replay(copy.records, newer),
        max(copy.sequence, journal.last_sequence),
        True,
        _describe(journal, copy.sequence),
    )


def replay(records: dict[str, bytes], frames: Iterable[Frame]) -> dict[str, bytes]:
    """The records after these transactions; changes and returns the mapping it is given."""
    for frame in frames:
        for key, value in frame.changes.items():
            if value is None:
                records.pop(key, None)
            else:
                records[key] = value
    return records


def _without_journal(copy: Contents | None) -> Recovered:
    if copy is None:
        return Recovered({}, 0, True, ())
    damage = f"the journal is missing; all up to transaction {copy.sequence} is from the LMDB copy"
    return Recovered(copy.records, copy.sequence, True, (damage,))


def _reaches(copy: Contents, journal: Scan) -> bool:
    """Whether the journal goes on where the copy ends. If not, the journal was rewritten since,
    and says all that the copy says, and what was deleted too."""
    return journal.first_sequence is None or copy.sequence >= journal.first_sequence - 1


def _describe(journal: Scan, restored_to: int | None) -> tuple[str, ...]:
    """What is wrong with the journal. `restored_to`: the position of the copy that was used."""
    damage = [_describe_gap(gap, restored_to or 0) for gap in journal.gaps]
    if journal.first_sequence is None:
        damage.insert(0, "the journal's header is damaged")
    last = journal.last_sequence
    if restored_to is not None and restored_to > last:
        lost = _numbers(last + 1, restored_to)
        damage.append(f"the journal ends before {lost}: restored from the LMDB copy")
    elif journal.tail is not None and restored_to is None and not journal.tail.torn:
        damage.append(
            f"the journal from byte {journal.tail.offset} on is set aside: {journal.tail.reason}"
        )
    return tuple(damage)


def _describe_gap(gap: Gap, restored_to: int) -> str:
    where = f"the journal's bytes {gap.offset} to {gap.end}: {gap.reason}"
    if gap.first_missing > gap.last_missing:
        return f"{where}; no transaction is missing"
    missing = _numbers(gap.first_missing, gap.last_missing)
    fate = "restored from the LMDB copy" if gap.last_missing <= restored_to else "lost"
    return f"{where}; {missing}: {fate}"


def _numbers(first: int, last: int) -> str:
    return f"transaction {first}" if first == last else f"transactions {first} to {last}"
