"""The budget that the tails of all projects share: who may add to them, and who makes room.

What holds:

1. The sum counts what all tails hold, and groups that were taken and are not shown yet. A group is
   begun only while the sum is below the budget, and takes no more requests once that is reached:
   together they exceed it by less than one request. What was found in WAL files when a project was
   opened comes on top of that. It is counted, and waited for, but was acknowledged long ago.
2. Who waits is waiting for something that is under way. From three quarters of the budget on the
   freezer has work: where nothing waits for it, the largest run that grows is rotated, full or not.
3. The tail of a project that cannot be frozen, or is being reopened, counts, and the others share
   the rest. Where there is none nobody can make room, and entries are refused, not kept waiting.
4. Those who wait have their turns in the order in which they came, and nobody passes them. Who had
   one is behind the others: a small project waits for one group of each of them at most.
5. A change is told by the project that it concerns, and costs the same however many there are. Who
   is the largest is looked for among all, once a freeze or so.

Everything here is called on the event loop, or by its deputy.
"""

from collections.abc import Callable
from typing import Final

from logd.errors import StorageFailed, StorageFull

Failure = StorageFull | StorageFailed

_FREEZE_FROM: Final = 0.75
"""Of the budget. The rest is taken while the freezer is at work, before anybody waits: for one
project in the default profile that is four full runs, more than it may have waiting."""


class TailShare:
    """What one project has of the budget. Only the budget changes it."""

    __slots__ = (
        "failure",
        "growing_bytes",
        "held_bytes",
        "is_closed",
        "is_rotating",
        "look_again",
        "make_room",
    )

    def __init__(self, make_room: Callable[[], None], look_again: Callable[[], None]) -> None:
        self.make_room = make_room
        self.look_again = look_again
        self.held_bytes = 0
        self.growing_bytes = 0  # in the run that grows
        self.is_rotating = False  # it was asked to make room, and has not yet
        self.is_closed = False
        self.failure: Failure | None = None  # why its tail cannot be frozen


class TailBudget:
    def __init__(self, max_bytes: int) -> None:
        self.max_bytes: Final = max_bytes
        self.held_bytes = 0
        self._shares: dict[TailShare, None] = {}
        self._in_hand: set[TailShare] = set()  # the freezer has something of theirs, or will soon
        self._stuck: dict[TailShare, Failure] = {}  # in the order in which they told of it
        self._stuck_bytes = 0
        self._line: dict[TailShare, None] = {}  # in the order in which they came

    def share(self, make_room: Callable[[], None], look_again: Callable[[], None]) -> TailShare:
        """For one more project. `make_room()` is to rotate the run that grows, soon; `look_again()`
        is called when it may be its turn, or in vain to wait for it. Neither does anything here."""
        share = TailShare(make_room, look_again)
        self._shares[share] = None
        return share

    # ------------------------------------------------------------ who may add

    @property
    def room_bytes(self) -> int:
        """The requests of a group may reach it, and the last of them exceed it."""
        return self.max_bytes - self.held_bytes

    def is_turn_of(self, share: TailShare) -> bool:
        """Whether it may begin a group now."""
        if self.held_bytes >= self.max_bytes:
            return False
        return not self._line or next(iter(self._line)) is share

    def line_up(self, share: TailShare) -> None:
        """It is not its turn. It keeps its place until it leaves: when it has begun a group, or
        would not begin one if it could, as nobody passes it."""
        self._line.setdefault(share)

    def leave_line(self, share: TailShare) -> None:
        if share in self._line:
            del self._line[share]
            self._call_next()

    @property
    def refusal(self) -> Failure | None:
        """Why nobody can make room. A new one each time: one that was raised holds on to the frames
        that it went through."""
        if self._stuck_bytes < self.max_bytes:
            return None
        failure = next(reversed(self._stuck.values()))
        return type(failure)(*failure.args)

    # ------------------------------------------------------------ what they hold

    def note(
        self,
        share: TailShare,
        *,
        growing_bytes: int,
        waiting_bytes: int,
        under_way_bytes: int,
        failure: Failure | None,
    ) -> None:
        """What the project holds now: in the run that grows, in those that wait to be frozen, in a
        group that is under way; and why its tail cannot be frozen, if it cannot."""
        self._forget(share)
        share.growing_bytes = growing_bytes
        share.held_bytes = growing_bytes + waiting_bytes + under_way_bytes
        share.failure = failure
        self.held_bytes += share.held_bytes
        if failure is not None:
            self._stuck[share] = failure
            self._stuck_bytes += share.held_bytes
        elif not share.is_closed and (share.is_rotating or waiting_bytes):
            self._in_hand.add(share)
        self._look()

    def rotated(self, share: TailShare) -> None:
        """It made room, or has none to make. `note` follows."""
        share.is_rotating = False

    def close(self, share: TailShare) -> None:
        """Nothing is added to it, and nothing of it frozen any more."""
        share.is_closed = True
        self._in_hand.discard(share)
        self.leave_line(share)
        self._look()

    def remove(self, share: TailShare) -> None:
        """Closed before, it holds nothing any more."""
        self._forget(share)
        del self._shares[share]
        self._look()

    def _forget(self, share: TailShare) -> None:
        self.held_bytes -= share.held_bytes
        if self._stuck.pop(share, None) is not None:
            self._stuck_bytes -= share.held_bytes
        self._in_hand.discard(share)

    # ------------------------------------------------------------ what comes of a change

    def _look(self) -> None:
        if self._stuck_bytes >= self.max_bytes:
            for share in self._line:  # they leave it
                share.look_again()
            return
        self._call_next()
        if not self._in_hand and self._is_freezing_due():
            self._rotate_largest()

    def _call_next(self) -> None:
        if self._line and self.held_bytes < self.max_bytes:
            next(iter(self._line)).look_again()

    def _is_freezing_due(self) -> bool:
        theirs = self.held_bytes - self._stuck_bytes
        return theirs >= _FREEZE_FROM * (self.max_bytes - self._stuck_bytes)

    def _rotate_largest(self) -> None:
        able = (s for s in self._shares if s.failure is None and not s.is_closed)
        largest = max(able, key=lambda share: share.growing_bytes, default=None)
        if largest is not None and largest.growing_bytes:  # or all is under way, and noted then
            largest.is_rotating = True
            self._in_hand.add(largest)
            largest.make_room()
