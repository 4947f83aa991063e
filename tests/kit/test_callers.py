"""Callers of the kit on a real `AgentSession`: who answers them, and how long they wait."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from livekit.agents import Agent, AgentSession, function_tool

from supermemory_livekit.testing import (
    ScriptedCaller,
    ScriptedLLM,
    TextCaller,
    ToolCall,
    UnexpectedCall,
    VirtualClock,
)

Start = Callable[[AgentSession[Any]], Awaitable[object]]
Caller = Callable[[Start], "TextCaller | ScriptedCaller"]

CALLERS: dict[str, Caller] = {
    "text": lambda start: TextCaller(start, llm=ScriptedLLM("ok")),
    "voice": lambda start: ScriptedCaller(start, llm=ScriptedLLM("ok")),
}
every_caller = pytest.mark.parametrize("make", CALLERS.values(), ids=CALLERS.keys())


class Greeter(Agent):
    def __init__(self) -> None:
        super().__init__(instructions="Be kind.")

    async def on_enter(self) -> None:
        self.session.generate_reply(instructions="Greet the caller.")


@every_caller
async def test_a_function_that_starts_the_session_answers_the_call(make: Caller, clock: VirtualClock) -> None:
    """Kit: what production does around the agent is tested with it."""
    started: list[AgentSession[Any]] = []

    async def answer(session: AgentSession[Any]) -> None:
        started.append(session)
        await session.start(Agent(instructions="Be kind."))

    async with make(answer) as caller:
        await caller.says("hello")
        if isinstance(caller, ScriptedCaller):
            assert await caller.hears_reply() == "ok"
        assert caller.conversation() == [("user", "hello"), ("assistant", "ok")]
    assert started == [caller.session]


@every_caller
async def test_a_function_that_starts_nothing_is_told_so(make: Caller, clock: VirtualClock) -> None:
    """Kit: a test that forgets `session.start` would wait for a reply that cannot come."""

    async def forgetful(session: AgentSession[Any]) -> None:
        """Starts nothing."""

    with pytest.raises(RuntimeError, match="has to start the session it is given"):
        async with make(forgetful):
            pass


@every_caller
async def test_a_function_that_raises_leaves_no_session_behind(make: Caller, clock: VirtualClock) -> None:
    """Kit: what is wrong in the agent's set-up is what the test reports."""
    before = asyncio.all_tasks()

    async def broken(session: AgentSession[Any]) -> None:
        await session.start(Agent(instructions="Be kind."))
        raise ValueError("no such guest")

    with pytest.raises(ValueError, match="no such guest"):
        async with make(broken):
            pass
    await asyncio.sleep(5)
    assert asyncio.all_tasks() == before


async def test_a_greeting_is_heard_by_who_says_nothing(clock: VirtualClock) -> None:
    """Kit: agents speak first, too; the words may come before or after somebody waits."""
    model = ScriptedLLM(["Welcome!", "ok"], first_token=0.5)
    async with TextCaller(Greeter(), llm=model) as caller:
        assert await caller.hears_greeting() == "Welcome!"
        assert await caller.says("hello") == "ok"
        assert await caller.hears_greeting() == "Welcome!"


async def test_the_wait_of_a_typist_ends_with_the_reply(clock: VirtualClock) -> None:
    """Kit: what a fault adds to a reply is measured, not guessed."""
    async with TextCaller(Agent(instructions="Be kind."), llm=ScriptedLLM("ok", first_token=3)) as caller:
        assert caller.waited is None
        await caller.says("hello")
        assert caller.waited == pytest.approx(3, abs=0.1)


async def test_the_wait_of_a_speaker_ends_with_the_first_sound(clock: VirtualClock) -> None:
    """Kit: from the last word said to the first one heard, as a caller counts it."""
    model = ScriptedLLM("one two three four five", first_token=3)
    agent = Agent(instructions="Be kind.")
    async with ScriptedCaller(agent, llm=model, recognition=0.1, endpointing=0.5) as caller:
        for _ in range(2):
            await caller.says("what is", "my name")
            assert caller.waited is None
            await caller.hears_reply()
            # the preemptive attempt starts with the final transcript
            assert caller.waited == pytest.approx(3.1, abs=0.15)


@pytest.mark.parametrize("make", [TextCaller, ScriptedCaller])
@pytest.mark.parametrize("unknown", [False, True])
async def test_a_tool_that_was_not_offered_fails_the_call_and_names_those_that_were(
    make: type[TextCaller | ScriptedCaller], unknown: bool, clock: VirtualClock
) -> None:
    """A stranger's remark: a misspelt tool gave a green test. A session that speaks swallows what a model raises."""

    @function_tool
    async def book_slot() -> str:
        """Book a slot."""
        return "booked"

    model = ScriptedLLM([ToolCall("book_slott"), "Booked."], unknown_tools=unknown)
    agent = Agent(instructions="Be kind.", tools=[book_slot])

    async def call() -> None:
        async with make(agent, llm=model) as caller:
            await caller.says("Tuesday please")
            if isinstance(caller, ScriptedCaller):
                await caller.hears_reply()

    if unknown:
        await call()
        return
    with pytest.raises(UnexpectedCall, match=r"called 'book_slott'; the tools it was offered: 'book_slot'$"):
        await call()


async def test_a_speakers_call_fails_when_the_model_runs_out_of_replies(clock: VirtualClock) -> None:
    """Style 3: doubles fail loudly; the session swallows it."""

    async def call() -> None:
        async with ScriptedCaller(Agent(instructions="Be kind."), llm=ScriptedLLM(["Yes."])) as caller:
            for _ in range(2):
                await caller.says("Tuesday please")
                await caller.hears_reply()

    with pytest.raises(UnexpectedCall, match="has 1 replies and was asked once more"):
        await call()
