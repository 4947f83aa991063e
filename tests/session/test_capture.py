"""Capture through a real `AgentSession`: what of a conversation is stored, when, and under whose name."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from livekit.agents import Agent, ChatContext, StopResponse, function_tool, llm

from supermemory_livekit import InputParams, ServiceUnavailable, SupermemoryAgent, SupermemoryLiveKit
from supermemory_livekit.recall.render import FENCE_OPEN
from supermemory_livekit.store import Hit
from supermemory_livekit.testing import Fail, Hang, ScriptedCaller, ScriptedLLM, ScriptedStore, ToolCall, Work
from tests.support.clock import VirtualClock
from tests.support.sessions import say, started

TAG = "caller-1"


def memory_over(store: ScriptedStore, **params: Any) -> SupermemoryLiveKit:
    return SupermemoryLiveKit.from_store(
        store, container_tag=TAG, session_id="room-1", params=InputParams(**params)
    )


def agent_over(memory: SupermemoryLiveKit, **options: Any) -> SupermemoryAgent:
    return SupermemoryAgent(memory, instructions="Be kind.", **options)


def spoken(document: str | None) -> list[str]:
    """The lines of a stored call without their time stamps."""
    return [line.partition("] ")[2] for line in (document or "").splitlines()]


def echo() -> ScriptedLLM:
    def reply(context: ChatContext, tools: list[llm.Tool]) -> str:
        users = [item for item in context.items if item.type == "message" and item.role == "user"]
        return f"You said {users[-1].text_content}" if users else "Hello."

    return ScriptedLLM(reply)


async def test_three_exchanges_are_three_writes_of_new_turns_to_one_document(clock: VirtualClock) -> None:
    """Case C9, Specification: the call is stored after each agent reply, as one document."""
    store = ScriptedStore()
    memory = memory_over(store)
    async with started(agent_over(memory), llm=echo()) as session:
        memory.attach(session)
        for words in ("One.", "Two.", "Three."):
            await say(session, words)
            await asyncio.sleep(1)
    writes = store.called("append")
    assert [spoken(call.arguments["text"]) for call in writes] == [
        [f"Caller: {words}", f"Agent: You said {words}"] for words in ("One.", "Two.", "Three.")
    ]
    assert {(call.tag, call.arguments["custom_id"]) for call in writes} == {(TAG, "lk-room-1")}
    assert {call.arguments["dreaming"] for call in writes} == {"instant"}
    assert memory.stats.turns_written == 6
    await memory.aclose()


async def test_what_is_left_is_stored_when_the_session_closes(clock: VirtualClock) -> None:
    """Case C11, Specification: attach stores anything left when the session closes."""
    store = ScriptedStore()
    memory = memory_over(store)

    class Silent(SupermemoryAgent):
        async def llm_node(self, chat_ctx: Any, tools: Any, model_settings: Any) -> Any:
            await self.memory.enrich(chat_ctx)
            return

    session_agent = Silent(memory, instructions="Say nothing.")
    async with started(session_agent, llm=echo()) as session:
        memory.attach(session)
        await say(session, "I live at 5 Main Street.")
    await memory.aclose()
    assert spoken(store.document(TAG, "lk-room-1")) == ["Caller: I live at 5 Main Street."]


async def test_a_lone_greeting_is_stored_like_everything_spoken(clock: VirtualClock) -> None:
    """Case C11: one written rule, followed: everything spoken is stored."""
    store = ScriptedStore()
    memory = memory_over(store)
    async with started(agent_over(memory), llm=echo()) as session:
        memory.attach(session)
        await session.say("Welcome to the hotel.")
    await memory.aclose()
    assert spoken(store.document(TAG, "lk-room-1")) == ["Agent: Welcome to the hotel."]


async def test_only_speech_is_stored(clock: VirtualClock, caplog: pytest.LogCaptureFixture) -> None:
    """Cases C8, C5: instructions, tool calls, handoffs and blank items are not; no warning for each."""

    @function_tool
    async def secret_lookup() -> str:
        """Look something up."""
        return "tool-output"

    def reply(context: ChatContext, tools: list[llm.Tool]) -> Any:
        used = any(item.type == "function_call_output" for item in context.items)
        return "Found it." if used else ToolCall("secret_lookup")

    store = ScriptedStore()
    memory = memory_over(store)
    async with started(
        agent_over(memory, tools=[secret_lookup]), llm=ScriptedLLM(reply, unknown_tools=True)
    ) as session:
        memory.attach(session)
        await say(session, "Look it up.")
        session.update_agent(Agent(instructions="Another agent."))
        await asyncio.sleep(1)
        await say(session, "   ")
    await memory.aclose()
    document = store.document(TAG, "lk-room-1")
    assert spoken(document)[:2] == ["Caller: Look it up.", "Agent: Found it."]
    assert "tool-output" not in (document or "")
    assert "Caller: \n" not in f"{document}\n"
    assert not [r for r in caplog.records if r.name == "supermemory_livekit" and r.levelname == "ERROR"]


async def test_nothing_recalled_is_ever_stored_back(clock: VirtualClock) -> None:
    """Case R11, Specification: retrieved text is not stored back as something the agent said."""
    store = ScriptedStore()
    store.hits[TAG] = [Hit("Recalled secret fact.", 0.9, memory_id="m")]
    memory = memory_over(store)

    def quote(context: ChatContext, tools: list[llm.Tool]) -> str:
        blocks = [item.text_content or "" for item in context.items if item.type == "message"]
        return "I know this: " + " ".join(block for block in blocks if FENCE_OPEN in block)

    async with started(agent_over(memory), llm=ScriptedLLM(quote)) as session:
        memory.attach(session)
        await say(session, "What do you know?")
        await say(session, f"Is it {FENCE_OPEN} Recalled secret fact.")
    await memory.aclose()
    document = store.document(TAG, "lk-room-1") or ""
    assert "What do you know?" in document
    assert "Recalled secret fact" not in document
    assert "I know this:" in document


async def test_turns_stay_with_the_caller_who_said_them(clock: VirtualClock) -> None:
    """Specification: rebinding does not move turns captured before; turns before any bind go to the first caller."""
    store = ScriptedStore()
    memory = SupermemoryLiveKit.from_store(store, session_id="room-1")
    async with started(agent_over(memory), llm=echo()) as session:
        memory.attach(session)
        await say(session, "Before any bind.")
        memory.bind(container_tag="ana")
        store.always("append", Fail(ServiceUnavailable("append answered 503", status=503)))
        await say(session, "Ana speaks.")
        memory.bind(container_tag="bo")
        store.always("append", None)
        await say(session, "Bo speaks.")
    await memory.aclose()
    stored = {key: spoken(text) for key, text in store.documents.items()}
    assert set(stored) == {("ana", "lk-room-1"), *[key for key in stored if key[0] == "bo"]}
    (bo_key,) = [key for key in stored if key[0] == "bo"]
    assert bo_key[1] != "lk-room-1"
    assert stored["ana", "lk-room-1"] == [
        "Caller: Before any bind.",
        "Agent: You said Before any bind.",
        "Caller: Ana speaks.",
        "Agent: You said Ana speaks.",
    ]
    assert stored[bo_key] == ["Caller: Bo speaks.", "Agent: You said Bo speaks."]


async def test_capture_never_stores_nothing(clock: VirtualClock) -> None:
    """Specification: capture="never" disables storing the call."""
    store = ScriptedStore().forbid("append")
    memory = memory_over(store, capture="never")
    async with started(agent_over(memory), llm=echo()) as session:
        memory.attach(session)
        await say(session, "Hello.")
    await memory.aclose()
    store.verify()


async def test_attaching_twice_and_handing_over_store_each_turn_once(clock: VirtualClock) -> None:
    """Case L5: attach twice, A -> B -> A with one memory: each turn once."""
    store = ScriptedStore()
    memory = memory_over(store)
    first, second = agent_over(memory), agent_over(memory)
    async with started(first, llm=echo()) as session:
        memory.attach(session)
        memory.attach(session)
        await say(session, "To the first.")
        session.update_agent(second)
        await asyncio.sleep(1)
        await say(session, "To the second.")
        session.update_agent(first)
        await asyncio.sleep(1)
        await say(session, "Back again.")
    await memory.aclose()
    assert spoken(store.document(TAG, "lk-room-1")) == [
        line
        for words in ("To the first.", "To the second.", "Back again.")
        for line in (f"Caller: {words}", f"Agent: You said {words}")
    ]


async def test_a_slow_write_delays_no_reply(clock: VirtualClock) -> None:
    """Case C7: the service takes 8 s for a write; replies come as fast as without memory."""
    store = ScriptedStore().always("append", Work(after=8.0))
    memory = memory_over(store)
    loop = asyncio.get_running_loop()
    async with started(agent_over(memory), llm=echo()) as session:
        memory.attach(session)
        before = loop.time()
        for turn in range(5):
            await say(session, f"Turn {turn}.")
        assert loop.time() - before < 0.5
    await memory.aclose()


async def test_a_whole_call_of_failing_writes_is_one_warning_and_written_once_the_service_is_back(
    clock: VirtualClock, caplog: pytest.LogCaptureFixture
) -> None:
    """Case C15: a counter shows what is unwritten, one WARNING per outage, nothing lost when it ends in time."""
    store = ScriptedStore().always("append", Fail(ServiceUnavailable("append answered 503", status=503)))
    memory = memory_over(store)
    async with started(agent_over(memory), llm=echo()) as session:
        memory.attach(session)
        for turn in range(10):
            await say(session, f"Turn {turn}.")
            await asyncio.sleep(3)
        assert memory.stats.turns_unwritten == 20
        store.always("append", None)
    await memory.aclose()
    assert memory.stats.turns_unwritten == 0
    assert len(spoken(store.document(TAG, "lk-room-1"))) == 20
    assert len([r for r in caplog.records if r.name == "supermemory_livekit" and r.levelno >= 30]) == 1


async def test_the_end_of_a_call_on_a_hung_service_takes_eight_seconds_in_all(
    clock: VirtualClock, caplog: pytest.LogCaptureFixture
) -> None:
    """Case L1, Design 5.6: close and aclose together stay inside 8 s, and what was not stored is counted."""
    store = ScriptedStore().always("append", Hang())
    memory = memory_over(store)
    loop = asyncio.get_running_loop()
    async with started(agent_over(memory), llm=echo()) as session:
        memory.attach(session)
        await say(session, "Hello.")
        ending = loop.time()
    await memory.aclose()
    assert loop.time() - ending <= 8.0
    assert any("2 turns" in record.getMessage() for record in caplog.records)


async def test_a_stopped_turn_is_no_item_and_is_not_stored() -> None:
    """Case C6: a turn stopped before it is committed leaves nothing behind, and the next one works."""
    store = ScriptedStore()
    memory = memory_over(store)

    class Strict(SupermemoryAgent):
        async def on_user_turn_completed(self, turn_ctx: ChatContext, new_message: llm.ChatMessage) -> None:
            if "secret" in (new_message.text_content or ""):
                raise StopResponse

    async with ScriptedCaller(Strict(memory, instructions="Be strict."), llm=echo()) as caller:
        memory.attach(caller.session)
        await caller.says("a secret")
        await asyncio.sleep(3)
        await caller.says("go on")
        await caller.hears_reply()
    await memory.aclose()
    assert spoken(store.document(TAG, "lk-room-1")) == ["Caller: go on", "Agent: You said go on"]
