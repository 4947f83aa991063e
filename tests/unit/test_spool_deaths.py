"""Processes that are killed at any moment: what was spoken is in the document once, in order, whoever delivers it."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

import pytest

if sys.platform != "linux":
    pytest.skip("needs the locks of POSIX and the file descriptors of Linux", allow_module_level=True)

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from tests.unit.capturing import ANA, BEN, turns_in
from tests.unit.processes import Process, SharedService
from tests.unit.test_capture_exactly_once import DOUBTS, FAULTS, LATEST, READ_FAULTS

from supermemory_livekit.scope import Scope
from supermemory_livekit.transcript import Role

ENDS = st.sampled_from([None, 0.0, 0.5, LATEST])
"""When the service carries out what a dead client had under way; None is never."""


def check(service: SharedService, said: dict[Scope, list[tuple[str, str]]], *, complete: bool) -> None:
    for scope in (ANA, BEN):
        found = turns_in(service.document(scope.container_tag, scope.document_id))
        spoken = said.get(scope, [])
        assert found == (spoken if complete else spoken[: len(found)])


class DyingMachine(RuleBasedStateMachine):
    """One call, continued by one process after another. Each may meet any fault, and die at any moment."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.service = SharedService()
        self.said: dict[Scope, list[tuple[str, str]]] = {}
        self.dead: list[Process] = []
        self.process = Process(self.service, Path(self.folder.name))
        self.turns = 0
        self.doubts = 0

    @rule(role=st.sampled_from(["caller", "agent"]), scope=st.sampled_from([ANA, ANA, ANA, BEN]))
    def say(self, role: Role, scope: Scope) -> None:
        self.turns += 1
        self.said.setdefault(scope, []).append((role, f"turn {self.turns}"))
        self.process.do(lambda: self.process.call.say(role, f"turn {self.turns}", scope=scope))

    @rule()
    def wake(self) -> None:
        self.process.do(self.process.call.capture.wake)

    @rule()
    def bind(self) -> None:
        self.process.do(lambda: self.process.call.capture.bound(ANA))

    @rule(name=st.sampled_from(sorted(FAULTS)))
    def break_writes(self, name: str) -> None:
        self.service.writes.append(FAULTS[name])

    @rule(name=st.sampled_from(sorted(READ_FAULTS)))
    def break_reads(self, name: str) -> None:
        self.service.reads.append(READ_FAULTS[name])

    @precondition(lambda self: self.doubts < 2)
    @rule(name=st.sampled_from(sorted(DOUBTS)))
    def doubt_reads(self, name: str) -> None:
        self.doubts += 1
        self.service.reads.append(DOUBTS[name])

    @rule(seconds=st.sampled_from([0.01, 1.0, 3.0, 12.0, 40.0]))
    def wait(self, seconds: float) -> None:
        self.process.run(asyncio.sleep(seconds))

    @rule(count=st.integers(1, 12))
    def a_few_passes(self, count: int) -> None:
        self.process.passes(count)

    @rule(seconds=st.sampled_from([0.5, 4.0, 8.0]))
    def flush(self, seconds: float) -> None:
        self.process.run(self.process.call.capture.flush(seconds))

    @rule(late=ENDS, closed=st.booleans())
    def end(self, late: float | None, closed: bool) -> None:
        """The process is killed, or its call is closed first with what it could not write."""
        before, self.process = self.process, Process(self.service, Path(self.folder.name), self.process)
        if closed:
            before.run(before.call.capture.aclose(1.0))
        before.die(self.process, late)
        self.dead.append(before)

    @invariant()
    def nothing_is_wrong(self) -> None:
        check(self.service, self.said, complete=False)

    def teardown(self) -> None:
        try:
            self.service.writes.clear()
            self.service.reads.clear()
            self.process.run(self.process.call.capture.aclose(30))
            last = Process(self.service, Path(self.folder.name), self.process)
            self.process.die(last, None)
            self.dead += [self.process, last]
            result = last.recover()
            last.run(asyncio.sleep(LATEST))
            assert (result.left, result.unscoped, result.damaged, result.refused) == (0, 0, 0, 0)
            check(self.service, self.said, complete=True)
            assert list(Path(self.folder.name).iterdir()) == []
        finally:
            for process in self.dead:
                process.bury()
            self.folder.cleanup()


TestAnyDeaths = DyingMachine.TestCase
TestAnyDeaths.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)


SWEPT = ["hangs after commit", "hangs before commit", "503", "reset after commit", "reset, commits late"]
PAUSES = ([0.0] * 9 + [0.7]) * 3


@pytest.mark.parametrize("late", [None, LATEST], ids=["never carried out", "carried out late"])
@pytest.mark.parametrize("fault", SWEPT)
def test_a_death_at_any_pass_of_the_loop_loses_doubles_and_reorders_nothing(
    fault: str, late: float | None, tmp_path: Path
) -> None:
    """0008: what is spoken in the next process comes after what the killed one had not delivered."""
    for moment in range(len(PAUSES)):
        _dies_at(moment, fault, late, tmp_path / str(moment))


def _dies_at(moment: int, fault: str, late: float | None, directory: Path) -> None:
    service = SharedService()
    first = Process(service, directory)
    first.do(lambda: first.call.exchange(1))
    first.run(asyncio.sleep(0.1))
    service.writes.append(FAULTS[fault])
    first.do(lambda: first.call.exchange(2))
    first.do(lambda: first.call.exchange(3))
    for pause in PAUSES[:moment]:
        first.run(asyncio.sleep(pause))
    second = Process(service, directory, first)
    first.die(second, late)
    service.writes.clear()
    second.do(lambda: second.call.exchange(4))
    second.run(asyncio.sleep(40))
    second.run(second.call.capture.aclose(8))
    check(service, {ANA: first.call.said[ANA] + second.call.said[ANA]}, complete=True)
    assert list(directory.iterdir()) == []
    for process in (first, second):
        process.bury()
