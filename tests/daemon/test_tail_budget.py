"""The budget by itself: whatever happens in whatever order, nobody waits in vain."""

from collections import deque
from typing import Any

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from logd.daemon.desk import MAX_WAITING_FREEZES
from logd.daemon.tail_budget import Failure, TailBudget
from logd.errors import StorageFull

MAX_BYTES = 100
LARGEST_REQUEST = 60
FULL_RUN = 40


class Project:
    """A project and its writer, as a desk is one, but with numbers for entries. It does something
    only where it was woken."""

    def __init__(self, budget: TailBudget, due: deque["Project"]) -> None:
        self.budget = budget
        self.due = due
        self.growing = self.under_way = 0
        self.waiting: list[int] = []
        self.queue: list[int] = []
        self.failure: Failure | None = None
        self.is_broken = False
        self.is_woken = self.is_asked = False
        self.stored = self.refused = 0
        self.share = budget.share(self.make_room, self.wake)
        self.note()

    def wake(self) -> None:
        self.is_woken = True

    def make_room(self) -> None:
        self.is_asked = self.is_woken = True

    @property
    def held(self) -> int:
        return self.growing + sum(self.waiting) + self.under_way

    @property
    def is_behind(self) -> bool:
        return len(self.waiting) > MAX_WAITING_FREEZES

    def note(self) -> None:
        self.budget.note(
            self.share,
            growing_bytes=self.growing,
            waiting_bytes=sum(self.waiting),
            under_way_bytes=self.under_way,
            failure=self.failure,
        )

    def write(self) -> None:
        """Until it sleeps, or its group is under way."""
        if self.under_way:
            return
        self.is_woken = False
        if self.is_asked or self.growing >= FULL_RUN:
            self._rotate()
        if self.budget.refusal is not None or (self.failure is not None and self.is_behind):
            self.refused += len(self.queue)
            self.queue.clear()
        if self.queue and not self.is_behind and self.budget.is_turn_of(self.share):
            self._begin_group()
        elif self.queue and not self.is_behind:
            self.budget.line_up(self.share)
        else:
            self.budget.leave_line(self.share)

    def _rotate(self) -> None:
        if self.growing:
            self.waiting.append(self.growing)
            self.growing = 0
        self.is_asked = False
        self.budget.rotated(self.share)
        self.note()
        if self not in self.due:
            self.due.append(self)

    def _begin_group(self) -> None:
        room = self.budget.room_bytes
        while self.queue and self.under_way < room:
            self.under_way += self.queue.pop(0)
            self.stored += 1
        self.note()
        self.budget.leave_line(self.share)

    def end_group(self) -> None:
        self.growing, self.under_way = self.growing + self.under_way, 0
        self.note()
        self.wake()

    def freeze(self) -> None:
        """A run, or not where it is broken."""
        self.failure = StorageFull("no space is left") if self.is_broken else None
        if self.waiting and not self.is_broken:
            self.waiting.pop(0)
        self.note()
        self.wake()
        if self.waiting:
            self.due.append(self)


class BudgetMachine(RuleBasedStateMachine):
    @initialize(projects=st.integers(1, 6))
    def begin(self, projects: int) -> None:
        self.budget = TailBudget(MAX_BYTES)
        self.due: deque[Project] = deque()
        self.projects = [Project(self.budget, self.due) for _ in range(projects)]
        self.came = self.gone = 0

    def pick(self, data: Any) -> Project:
        project = data.draw(st.sampled_from(self.projects))
        assert isinstance(project, Project)
        return project

    @rule(data=st.data(), sizes=st.lists(st.integers(1, LARGEST_REQUEST), min_size=1, max_size=5))
    def come(self, data: Any, sizes: list[int]) -> None:
        project = self.pick(data)
        project.queue += sizes
        project.wake()
        self.came += len(sizes)

    @rule(data=st.data())
    def run_writer(self, data: Any) -> None:
        project = self.pick(data)
        if project.is_woken:
            project.write()

    @rule(data=st.data())
    def end_group(self, data: Any) -> None:
        project = self.pick(data)
        if project.under_way:
            project.end_group()

    @rule()
    def freeze(self) -> None:
        if self.due:
            self.due.popleft().freeze()

    @rule(data=st.data(), is_broken=st.booleans())
    def break_or_mend(self, data: Any, is_broken: bool) -> None:
        self.pick(data).is_broken = is_broken

    @rule(data=st.data())
    def delete(self, data: Any) -> None:
        project = self.pick(data)
        if len(self.projects) == 1 or project.under_way:
            return
        self.budget.close(project.share)
        self.budget.remove(project.share)
        self.projects.remove(project)
        if project in self.due:
            self.due.remove(project)
        self.gone += len(project.queue) + project.stored + project.refused

    @invariant()
    def it_is_kept(self) -> None:
        assert self.budget.held_bytes == sum(project.held for project in self.projects)
        assert self.budget.held_bytes < MAX_BYTES + LARGEST_REQUEST

    def teardown(self) -> None:
        """Nobody waits for what does not come; nor, where all is mended, is anything refused."""
        if not hasattr(self, "projects"):
            return
        self._go_on()
        waiting = [project for project in self.projects if project.queue]
        assert not waiting
        told = sum(project.stored + project.refused for project in self.projects)
        assert told + self.gone == self.came
        for project in self.projects:
            project.is_broken = False
        self._go_on()
        refused = sum(project.refused for project in self.projects)
        for project in self.projects:
            project.queue += [LARGEST_REQUEST] * 4
            project.wake()
        self._go_on()
        assert sum(project.refused for project in self.projects) == refused
        assert not any(project.queue for project in self.projects)

    def _go_on(self) -> None:
        """As long as anything changes: broken projects are tried again for ever."""
        for _ in range(1000):
            for project in self.projects:
                if project.is_woken:
                    project.write()
                if project.under_way:
                    project.end_group()
            if self.due:
                self.due.popleft().freeze()


TestBudget = BudgetMachine.TestCase
TestBudget.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


def test_the_turns_are_in_the_order_in_which_they_came() -> None:
    budget, due = TailBudget(MAX_BYTES), deque[Project]()
    first, second, third = (Project(budget, due) for _ in range(3))
    first.queue += [MAX_BYTES, MAX_BYTES]
    first.write()
    first.end_group()
    second.queue += [1]
    second.write()
    third.queue += [1]
    third.write()
    first.write()  # is rotated, and lines up behind them
    due.popleft().freeze()
    assert (second.is_woken, third.is_woken) == (True, False)
    assert not budget.is_turn_of(first.share)
    second.write()
    assert third.is_woken
    third.write()
    assert [project.under_way for project in (first, second, third)] == [0, 1, 1]
    first.write()
    assert first.under_way == MAX_BYTES


def test_the_largest_run_is_rotated_and_only_where_nothing_waits_to_be_frozen() -> None:
    budget, due = TailBudget(MAX_BYTES), deque[Project]()
    projects = [Project(budget, due) for _ in range(3)]
    for project, size in zip(projects, (5, 39, 30), strict=True):
        project.queue.append(size)
        project.write()
        project.end_group()
    assert not any(project.is_asked for project in projects)
    projects[0].queue.append(1)
    projects[0].write()
    assert [project.is_asked for project in projects] == [False, True, False]
    projects[0].end_group()
    projects[1].write()
    assert [project.is_asked for project in projects] == [False, False, False]
    projects[0].queue.append(LARGEST_REQUEST - 1)
    projects[0].write()
    due.popleft().freeze()
    assert [project.is_asked for project in projects] == [False, False, True]
