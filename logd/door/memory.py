"""What requests hold in memory at once, bounded all together: their bodies, and the answers that
clients have not taken yet.

What is large cannot keep out what is small: an eighth of the memory is for small bodies alone, and
an eighth for small answers. So four clients who send, or read, as slowly as they may do not stop
everybody else. Answers take half of it at most.
"""

from typing import Final, Literal

from logd.door.limits import SMALL_ANSWER_BYTES, SMALL_BODY_BYTES, UNCOUNTED_ANSWER_BYTES
from logd.errors import Overloaded

Part = Literal[0, 1, 2, 3]
"""What bytes are held for. No enum: looking at one costs as much as all else that is done here for
a single entry."""

SMALL_BODIES: Final = 0
LARGE_BODIES: Final = 1
SMALL_ANSWERS: Final = 2
LARGE_ANSWERS: Final = 3


class BodyMemory:
    """The sums over all requests."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._max_answers_bytes = max_bytes // 2
        self._reserve = max_bytes // 8
        self._held = [0, 0, 0, 0]

    def take(self, part: Part, count: int) -> None:
        """Raises Overloaded."""
        self._held[part] += count
        if part == SMALL_BODIES and self._held[part] <= self._reserve:
            return  # single entries come this way: without a look at the rest
        if not self._fits():
            self._held[part] -= count
            raise Overloaded("too many large requests at once")

    def give_back(self, part: Part, count: int) -> None:
        self._held[part] -= count

    def of_answer(self, size: int) -> tuple[Part, int]:
        """What an answer of so many bytes is held as: not its beginning, which the kernel has, and
        no more than there is room for when it is the only one."""
        large = size > SMALL_ANSWER_BYTES
        part: Part = LARGE_ANSWERS if large else SMALL_ANSWERS
        most = self._max_answers_bytes - self._reserve if large else self._reserve
        return part, min(max(size - UNCOUNTED_ANSWER_BYTES, 0), most)

    def _fits(self) -> bool:
        small_bodies, large_bodies, small_answers, large_answers = self._held
        answers = large_answers + max(small_answers, self._reserve)
        bodies = large_bodies + max(small_bodies, self._reserve)
        return bodies + answers <= self._max_bytes and answers <= self._max_answers_bytes


class Holding:
    """What one request holds of a part."""

    def __init__(self, memory: BodyMemory) -> None:
        self._memory = memory
        self._part: Part = SMALL_BODIES
        self.count = 0

    def change(self, part: Part, count: int) -> None:
        """Hold this in place of what was held. Raises Overloaded: then nothing is held, or all
        that come together would fail together."""
        self.release()
        self._memory.take(part, count)
        self._part, self.count = part, count

    def release(self) -> None:
        self._memory.give_back(self._part, self.count)
        self.count = 0


class HeldRequest:
    """What one request holds: the part of `Body` that is the same for all."""

    def __init__(self, memory: BodyMemory, declared_bytes: int | None) -> None:
        """`declared_bytes`: of the body; None where its head does not say."""
        self._memory = memory
        self._is_declared_large = (declared_bytes or 0) > SMALL_BODY_BYTES
        self._body = Holding(memory)
        self._answer = Holding(memory)

    def hold(self, count: int) -> None:
        """See `Body.hold`."""
        count += self._body.count
        large = self._is_declared_large or count > SMALL_BODY_BYTES
        self._body.change(LARGE_BODIES if large else SMALL_BODIES, count)

    def hold_answer(self, size: int) -> None:
        """See `Body.hold_answer`."""
        self._answer.change(*self._memory.of_answer(size))

    def release(self) -> None:
        """What was held is free again."""
        self._body.release()
        self._answer.release()
