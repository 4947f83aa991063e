"""One worker process of the soak: several calls at once, each a real session with its memory.

    python -m bench.soak.worker TASK

TASK is a file with a `plan.Task` as JSON. The service and the key come from the environment. SIGTERM ends the calls as
the shutdown of a job does: the sessions are closed, then the memories.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import random
import signal
import sys
import time
from pathlib import Path

from livekit.agents import AgentSession, ChatContext

from supermemory_livekit import InputParams, SupermemoryAgent, SupermemoryLiveKit
from supermemory_livekit.testing import ScriptedLLM

from .plan import PlannedCall, Task
from .truth import TruthFile

REPLY_LIMIT = 30.0
"""Seconds after which a reply counts as missing, which ends the soak."""

LONGEST_ENDING = 180.0
"""Seconds for which a call without a spool stays on the line until everything is written."""

_TEXT = (
    "I live in Porto now. My sister Zoë works at a bakery in Graz; call me after six, please. Das Wetter war "
    "schön, 東京 was far, and my dog's name is Bruno. I am allergic to nuts, [really], and that <is> it — so: 7/8."
)
_WORDS = _TEXT.split()


class Lateness:
    """Seconds by which the event loop was late so far: what a busy machine adds to a reply."""

    def __init__(self) -> None:
        self.seconds = 0.0

    async def watch(self) -> None:
        while True:
            began = time.perf_counter()
            await asyncio.sleep(0.02)
            self.seconds += max(0.0, time.perf_counter() - began - 0.025)


class Call:
    """One call, or what is left of it: the caller speaks, is interrupted, cut off, and replaced by somebody else."""

    def __init__(
        self, plan: PlannedCall, task: Task, truth: TruthFile, stopping: asyncio.Event, lateness: Lateness
    ) -> None:
        self._plan = plan
        self._task = task
        self._truth = truth
        self._stopping = stopping
        self._lateness = lateness
        self._made = random.Random(f"{task.seed} {plan.session_id} {task.generation}")
        self._left = plan.turns

    async def run(self) -> None:
        await self._ring()
        while self._left > 0 and not self._stopping.is_set():
            await self._something()
            await self._pause(self._made.expovariate(1 / self._task.pace) if self._task.pace else 0.0)
        await self._hang_up()
        if not self._stopping.is_set():
            self._truth.note("end", session_id=self._plan.session_id)

    async def _something(self) -> None:
        draw = self._made.random()
        if draw < 0.74:
            await self._exchange()
        elif draw < 0.84:
            await self._interrupted_exchange()
        elif draw < 0.90:
            await self._cancelled_flush()
        elif draw < 0.95:
            self._truth.note("did", what="rebound")
            others = (self._plan.caller, *self._plan.others)
            self._memory.bind(container_tag=self._made.choice(others))
        else:
            self._truth.note("did", what="reconnected")
            await self._hang_up()
            await self._ring()

    async def _exchange(self) -> None:
        began, late = time.perf_counter(), self._lateness.seconds
        await asyncio.wait_for(self._run(self._words()), REPLY_LIMIT)
        seconds = time.perf_counter() - began
        self._truth.note("reply", seconds=seconds, late=self._lateness.seconds - late)

    async def _run(self, words: str) -> None:
        await self._session.run(user_input=words)

    async def _interrupted_exchange(self) -> None:
        self._truth.note("did", what="interrupted a reply")
        self._llm.pace = 0.05
        reply = self._session.generate_reply(user_input=self._words())
        await asyncio.sleep(self._made.uniform(0.0, 0.4))
        await self._session.interrupt()
        await asyncio.wait_for(reply.wait_for_playout(), REPLY_LIMIT)
        self._llm.pace = 0.0

    async def _cancelled_flush(self) -> None:
        self._truth.note("did", what="cancelled a flush")
        await self._cancelled(self._memory._capture.flush(5.0))

    async def _cancelled(self, work: object) -> None:
        task = asyncio.ensure_future(work)  # type: ignore[call-overload]
        await asyncio.wait([task], timeout=self._made.uniform(0.0, 0.3))
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    async def _ring(self) -> None:
        self._memory = SupermemoryLiveKit(
            container_tag=self._plan.caller,
            session_id=self._plan.session_id,
            params=InputParams(spool_dir=self._task.spool),
        )
        self._truth.watch(self._memory._capture, self._plan.session_id, self._taken)
        context = ChatContext.empty()
        await self._memory.preload(context)
        self._llm = ScriptedLLM(lambda context, tools: self._words())
        self._session: AgentSession[None] = AgentSession(llm=self._llm)
        self._memory.attach(self._session)
        agent = SupermemoryAgent(self._memory, instructions="Be kind.", chat_ctx=context)
        await self._session.start(agent)

    async def _hang_up(self) -> None:
        await self._session.aclose()
        if self._task.spool is None:
            await self._stay_until_written()
        if self._made.random() < 0.3:
            self._truth.note("did", what="cancelled an aclose")
            await self._cancelled(self._memory.aclose())
        await self._memory.aclose()

    async def _stay_until_written(self) -> None:
        """Without a spool an ending of eight seconds cannot outlast an outage, so the call goes on for a while."""
        deadline = time.monotonic() + LONGEST_ENDING
        while self._memory.stats.turns_unwritten and not self._stopping.is_set():
            if time.monotonic() > deadline:
                raise TimeoutError("the service took nothing for three minutes")
            await self._memory._capture.flush(6.0)

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), min(seconds, 4 * self._task.pace))

    def _words(self) -> str:
        first = self._made.randrange(len(_WORDS) - 4)
        return " ".join([self._truth.token(), *_WORDS[first : first + self._made.randint(2, 12)]])

    def _taken(self) -> None:
        self._left -= 1


async def work(task: Task) -> None:
    truth = TruthFile(Path(task.truth), task.slot, task.generation)
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    slots = asyncio.Semaphore(task.at_once)

    async def ring(plan: PlannedCall) -> None:
        async with slots:
            if not stopping.is_set():
                await Call(plan, task, truth, stopping, lateness).run()

    lateness = Lateness()
    watch = asyncio.ensure_future(lateness.watch())
    await asyncio.gather(*(ring(plan) for plan in task.calls))
    watch.cancel()


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    asyncio.run(work(Task.from_json(json.loads(Path(sys.argv[1]).read_text()))))
