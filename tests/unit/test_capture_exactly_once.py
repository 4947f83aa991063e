"""Nothing lost, doubled, out of order or under the wrong tag: for any faults in any order."""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from tests.support.clock import VirtualLoop
from tests.unit.capturing import ANA, BEN, Call

from supermemory_livekit.capture.writer import LATE_COMMIT
from supermemory_livekit.errors import (
    AccessDenied,
    Conflict,
    NotFound,
    PaymentRequired,
    RateLimited,
    ServiceTimeout,
    ServiceUnavailable,
)
from supermemory_livekit.scope import Scope
from supermemory_livekit.store import Dreaming
from supermemory_livekit.testing import ScriptedStore
from supermemory_livekit.transcript import Role

_LINE = re.compile(r"\[([^\]]{24})\] (Caller|Agent)(?: \(part (\d) of (\d)\))?: (\w+)( .*)?")


@dataclass(frozen=True)
class Step:
    """What a request does: wait, perhaps commit, wait, then answer, fail or never come back."""

    before: float = 0.0
    commit: bool = True
    after: float = 0.0
    error: BaseException | None = None
    hang: bool = False
    late: float | None = None
    """Commit so many seconds after the client has gone, whatever made it go."""


class Service(ScriptedStore):
    """A service with one queue of faults for writes and one for reads; without faults it works."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: deque[Step] = deque()
        self.reads: deque[Step] = deque()
        self.running: dict[tuple[str, str], int] = {}

    async def append(
        self, tag: str, custom_id: str, text: str, *, dreaming: Dreaming, at: datetime, timeout: float
    ) -> str | None:
        key = (tag, custom_id)
        self.running[key] = self.running.get(key, 0) + 1
        assert self.running[key] == 1, "two writes of one document at once"

        async def commit() -> str | None:
            return await super(Service, self).append(
                tag, custom_id, text, dreaming=dreaming, at=at, timeout=timeout
            )

        try:
            return await self._act(self.writes.popleft() if self.writes else Step(), commit)
        finally:
            self.running[key] -= 1

    async def read(self, tag: str, custom_id: str, *, service_id: str | None, timeout: float) -> str | None:
        async def look() -> str | None:
            return await super(Service, self).read(tag, custom_id, service_id=service_id, timeout=timeout)

        return await self._act(self.reads.popleft() if self.reads else Step(), look)

    @staticmethod
    async def _act(step: Step, work: Callable[[], Coroutine[Any, Any, str | None]]) -> str | None:
        if step.late is not None:
            try:
                return await Service._act(replace(step, commit=False, late=None), work)
            finally:
                asyncio.get_running_loop().call_later(step.late, lambda: asyncio.ensure_future(work()))
        if step.before:
            await asyncio.sleep(step.before)
        result = await work() if step.commit else None
        if step.after:
            await asyncio.sleep(step.after)
        if step.hang:
            await asyncio.get_running_loop().create_future()
        if step.error is not None:
            raise step.error
        return result


def read_back(document: str | None) -> list[tuple[str, str]]:
    """Role and name of each turn; checks stamps, and that the pieces of a turn stand together."""
    turns: list[tuple[str, str]] = []
    stamps: list[str] = []
    expected = 1
    for line in (document or "").split("\n") if document else []:
        match = _LINE.fullmatch(line)
        assert match
        stamp, role, part, parts, name, _ = match.groups()
        stamps.append(stamp)
        assert int(part or 1) == expected, "a piece is missing, doubled or apart from its turn"
        expected = 1 if part == parts else expected + 1
        if part in (None, "1"):
            turns.append((role.lower(), name))
    assert stamps == sorted(set(stamps)), "stamps do not grow strictly"
    return turns


LATE = "late"
LATEST = LATE_COMMIT - 0.01
"""The latest commit after an unclear end that 0005 promises to find."""


def check(call: Call, service: Service, *, complete: bool) -> None:
    """What is stored is what was said. Turns whose event came late may stand later than they were said."""
    for scope in (ANA, BEN):
        said = [(role, text.split()[0]) for role, text in call.said.get(scope, [])]
        found = read_back(service.document(scope.container_tag, scope.document_id))
        assert len(found) == len(set(found)), "a turn is stored twice"
        assert set(found) <= set(said), "a turn is stored under the wrong tag"
        in_time = [turn for turn in said if not turn[1].startswith(LATE)]
        stored_in_time = [turn for turn in found if not turn[1].startswith(LATE)]
        assert stored_in_time == in_time[: len(stored_in_time)], "turns are out of order"
        if complete:
            assert set(found) == set(said), "a turn is lost"
    assert service.tags <= {ANA.container_tag, BEN.container_tag}
    stats = call.stats
    assert stats.turns_captured == stats.turns_written + stats.turns_unwritten + stats.turns_dropped
    assert stats.turns_dropped == 0


FAULTS: dict[str, Step] = {
    "works slowly, commits first": Step(after=3),
    "works slowly, commits last": Step(before=3),
    "503": Step(commit=False, error=ServiceUnavailable("append answered 503", status=503)),
    "reset before commit": Step(commit=False, error=ServiceUnavailable("reset", uncertain=True)),
    "reset after commit": Step(error=ServiceUnavailable("reset", uncertain=True)),
    "timeout before commit": Step(before=10, commit=False, error=ServiceTimeout("late", uncertain=True)),
    "timeout after commit": Step(after=10, error=ServiceTimeout("late", uncertain=True)),
    "hangs before commit": Step(commit=False, hang=True),
    "hangs after commit": Step(hang=True),
    "bug before commit": Step(commit=False, error=TypeError("bug")),
    "bug after commit": Step(error=TypeError("bug")),
    "client cancels itself": Step(commit=False, error=asyncio.CancelledError()),
    "client cancels itself after commit": Step(error=asyncio.CancelledError()),
    "reset, commits late": Step(late=LATEST, error=ServiceUnavailable("reset", uncertain=True)),
    "timeout, commits late": Step(before=10, late=LATEST, error=ServiceTimeout("late", uncertain=True)),
    "hangs, commits late": Step(late=LATEST, hang=True),
    "401": Step(commit=False, error=AccessDenied("append answered 401", status=401)),
    "402": Step(commit=False, error=PaymentRequired("append answered 402", status=402)),
    "404": Step(commit=False, error=NotFound("append answered 404", status=404)),
    "409": Step(commit=False, error=Conflict("append answered 409", status=409)),
    "429": Step(commit=False, error=RateLimited("append answered 429", retry_after=5)),
}

READ_FAULTS: dict[str, Step] = {
    "503": Step(error=ServiceUnavailable("read answered 503", status=503)),
    "429": Step(error=RateLimited("read answered 429")),
    "slow": Step(after=4),
    "hangs": Step(hang=True),
    "no answer": Step(error=ServiceTimeout("read timed out")),
}

DOUBTS: dict[str, Step] = {
    "not there yet": Step(commit=False),
    "409": Step(error=Conflict("read answered 409", status=409)),
    "bug": Step(error=TypeError("bug")),
}
"""Three of these in a row are believed, so a run has two at most."""


class CaptureMachine(RuleBasedStateMachine):
    """A call of which anything may happen at any time."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = VirtualLoop()
        self.loop.clock.start()
        self.service = Service()
        self.call = Call(self.service)
        self.scope: Scope = ANA
        self.turns = 0
        self.doubts = 0

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.loop.run_until_complete(work)

    def in_loop(self, action: Callable[[], Any]) -> None:
        async def act() -> None:
            action()

        self.run(act())

    @rule(role=st.sampled_from(["caller", "agent"]), length=st.sampled_from([0] * 6 + [60_000, 130_000]))
    def say(self, role: Role, length: int) -> None:
        self.turns += 1
        self.call.say(role, f"turn{self.turns}" + " x" * (length // 2), scope=self.scope)

    @rule(ago=st.integers(1, 5))
    def say_late(self, ago: int) -> None:
        self.turns += 1
        self.call.say("caller", f"{LATE}{self.turns}", scope=self.scope, ago=ago)

    @rule()
    def wake(self) -> None:
        self.in_loop(self.call.capture.wake)

    @rule(scope=st.sampled_from([ANA, BEN]))
    def bind(self, scope: Scope) -> None:
        self.scope = scope
        self.call.capture.bound(scope)

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

    @rule(seconds=st.sampled_from([0.0, 0.01, 1.0, 3.0, 10.0, 40.0]))
    def wait(self, seconds: float) -> None:
        self.run(asyncio.sleep(seconds))

    @rule(seconds=st.sampled_from([0.0, 0.5, 4.0, 8.0]))
    def flush(self, seconds: float) -> None:
        async def flushed() -> None:
            before = self.loop.time()
            left = await self.call.capture.flush(seconds)
            assert self.loop.time() - before <= seconds + 0.001
            assert left == self.call.stats.turns_unwritten

        self.run(flushed())

    @rule(seconds=st.sampled_from([0.0, 0.1, 2.0, 5.0]))
    def cancel_a_flush(self, seconds: float) -> None:
        async def cancelled() -> None:
            flush = asyncio.ensure_future(self.call.capture.flush(8))
            await asyncio.sleep(seconds)
            flush.cancel()
            await asyncio.gather(flush, return_exceptions=True)

        self.run(cancelled())

    @rule()
    def cancel_everything(self) -> None:
        async def cancelled() -> None:
            tasks = asyncio.all_tasks() - {asyncio.current_task()}
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

        self.run(cancelled())

    @invariant()
    def nothing_is_wrong(self) -> None:
        check(self.call, self.service, complete=False)

    def teardown(self) -> None:
        try:
            self.service.writes.clear()
            self.service.reads.clear()
            # A request that already hangs may take its ten seconds, and then there is one to be read back.
            assert self.run(self.call.capture.flush(30)) == 0
            self.run(asyncio.sleep(LATEST))
            check(self.call, self.service, complete=True)
            self.run(self.call.capture.aclose(8))
            assert not asyncio.all_tasks(self.loop)
        finally:
            self.loop.close()


TestAnyCall = CaptureMachine.TestCase
TestAnyCall.settings = settings(max_examples=80, stateful_step_count=30, deadline=None)


STEPS = ([0.0] * 6 + [0.7]) * 18
"""How the driver of a cancellation lets time pass: some passes of the loop, then a moment."""


@pytest.mark.parametrize("whole", [True, False], ids=["all tasks cancelled", "only the flush cancelled"])
@pytest.mark.parametrize("fault", sorted(FAULTS))
def test_a_cancellation_at_any_point_loses_and_doubles_nothing(fault: str, whole: bool) -> None:
    """Case C14: before sending, after the service accepted, while settling, in a pause. It is passed on."""
    for moment in range(len(STEPS)):
        loop = VirtualLoop()
        loop.clock.start()
        try:
            if loop.run_until_complete(_cancelled_at(moment, FAULTS[fault], whole=whole)):
                break
        finally:
            loop.close()
    else:
        pytest.fail("the scenario never came to its end: some points were not reached")


async def _cancelled_at(moment: int, fault: Step, *, whole: bool) -> bool:
    """Cancel after so many steps. Returns whether all was over by then."""
    service = Service()
    call = Call(service)
    call.exchange(1)
    await asyncio.sleep(0.1)
    service.writes.append(fault)
    call.exchange(2)
    call.say("caller", "x " * 60_000)
    flush = asyncio.ensure_future(call.capture.flush(12))
    for pause in STEPS[:moment]:
        await asyncio.sleep(pause)
    over = flush.done()
    tasks = (asyncio.all_tasks() - {asyncio.current_task()}) if whole else {flush}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert flush.cancelled() or over
    service.writes.clear()  # for refusals that a flush meets only once
    assert await call.capture.flush(30) == 0
    await asyncio.sleep(LATEST)
    check_words(call, service)
    await call.capture.aclose(8)
    return over


def check_words(call: Call, service: Service) -> None:
    document = service.document(ANA.container_tag, ANA.document_id) or ""
    stamps = [line[:26] for line in document.split("\n")]
    assert stamps == sorted(set(stamps))
    words = " ".join(line.split(": ", 1)[1] for line in document.split("\n"))
    assert words.split() == " ".join(text for _, text in call.said[ANA]).split()
