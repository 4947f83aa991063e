"""Whatever the order of words, attempts, cancellations, rebinds and answers: whose result a reply may hold."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.clock import VirtualLoop

from supermemory_livekit.params import InputParams
from supermemory_livekit.recall.recall import Recall, Recollection
from supermemory_livekit.store import Hit, Profile
from supermemory_livekit.telemetry import Stats
from supermemory_livekit.testing import ScriptedStore

WORDS = ["dog", "garden", "piano", "bicycle", "kitchen", "birthday", "Porto", "Lisbon", "allergy", "octopus"]


class EchoStore(ScriptedStore):
    """Answers each search, after a delay drawn for it, with a hit that names the caller and the words asked for."""

    def __init__(self, delays: Sequence[float]) -> None:
        super().__init__()
        self._delays = list(delays)

    async def search(self, tag: str, query: str, **_: Any) -> list[Hit]:
        await asyncio.sleep(self._delays.pop() if self._delays else 0.1)
        return [Hit(f"{tag}|{query}", 0.9, memory_id=f"{tag}|{query}")]

    async def profile(self, tag: str, *, timeout: float) -> Profile:
        await asyncio.sleep(self._delays.pop() if self._delays else 0.1)
        return Profile(static=(f"{tag}|profile",))


@dataclass
class Attempt:
    """One run of `llm_node` for a message."""

    tag: str
    words: str
    previous: set[str]
    """What earlier messages of this caller said."""
    task: asyncio.Task[tuple[Recollection, str]]
    """What was found, and who was bound when it was."""
    cancelled: bool = False


@dataclass
class Call:
    recall: Recall
    tag: str = "ana"
    message: int = 0
    spoken: list[str] = field(default_factory=list)
    said: dict[str, set[str]] = field(default_factory=dict)
    attempts: list[Attempt] = field(default_factory=list)

    def attempt(self) -> None:
        words = " ".join(self.spoken)
        if not words:
            return
        task = asyncio.ensure_future(self.reply(f"m{self.message}-{len(self.attempts)}", words))
        self.attempts.append(Attempt(self.tag, words, set(self.said.get(self.tag, ())), task))

    async def reply(self, message_id: str, words: str) -> tuple[Recollection, str]:
        return await self.recall.for_message(message_id, words), self.tag

    def commit(self) -> None:
        if self.attempts and self.spoken:
            self.recall.committed(f"m{self.message}-{len(self.attempts) - 1}")
            self.said.setdefault(self.tag, set()).add(" ".join(self.spoken))
        self.message += 1
        self.spoken.clear()


STEPS = st.one_of(
    st.tuples(st.just("word"), st.sampled_from(WORDS)),
    st.tuples(st.sampled_from(["final", "attempt", "cancel", "commit", "speaks", "changed"]), st.just("")),
    st.tuples(st.just("bind"), st.sampled_from(["ana", "bo"])),
    st.tuples(st.just("wait"), st.sampled_from([0.05, 0.3, 1.0, 3.0])),
)


async def play(steps: Sequence[tuple[str, Any]], delays: Sequence[float]) -> Call:
    call = Call(Recall(EchoStore(delays), InputParams(mirror=False), Stats()))
    call.recall.bind("ana")
    for step, value in steps:
        if step == "word":
            call.spoken.append(value)
            call.recall.caller_says(" ".join(call.spoken), final=False)
        elif step == "final":
            # One segment a turn: the transcript is the whole of it.
            call.recall.caller_says(" ".join(call.spoken), final=False)
        elif step == "attempt":
            call.attempt()
        elif step == "cancel" and call.attempts:
            call.attempts[-1].cancelled = True
            call.attempts[-1].task.cancel()
        elif step == "commit":
            call.commit()
        elif step == "speaks":
            call.recall.caller_speaks()
        elif step == "changed":
            call.recall.changed()
        elif step == "bind" and value != call.tag:
            call.tag = value
            call.recall.bind(value)
            call.spoken.clear()
        elif step == "wait":
            await asyncio.sleep(value)
        await asyncio.sleep(0)
    await asyncio.wait_for(asyncio.gather(*(a.task for a in call.attempts), return_exceptions=True), 60)
    await call.recall.aclose()
    return call


@settings(max_examples=150, deadline=None)
@given(st.lists(STEPS, max_size=40), st.lists(st.sampled_from([0.01, 0.2, 0.8, 2.5, 9.0]), max_size=30))
def test_a_reply_never_holds_another_callers_or_another_turns_result(
    steps: list[tuple[str, Any]], delays: list[float]
) -> None:
    """Cases S9 and L7, Design 4.2 and 4.5: by tag, and by words that are this turn's or a late answer to one before."""
    loop = VirtualLoop()
    loop.clock.start()
    try:
        call = loop.run_until_complete(play(steps, delays))
    finally:
        loop.clock.stop()
        loop.close()
    for attempt in call.attempts:
        if attempt.cancelled:
            continue
        found, bound = attempt.task.result()
        for line in found.profile.static if found.profile else ():
            assert line == f"{bound}|profile"
        for hit in found.hits:
            tag, _, words = hit.text.partition("|")
            assert tag == bound == attempt.tag
            assert attempt.words.startswith(words) or words in attempt.previous
