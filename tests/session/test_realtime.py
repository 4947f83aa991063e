"""Realtime models: what was recalled really reaches the model, by the way it supports."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from livekit.agents import Agent, ChatContext, ConversationItemAddedEvent, llm

from supermemory_livekit import InputParams, SupermemoryAgent, SupermemoryLiveKit
from supermemory_livekit.recall.render import FENCE_OPEN
from supermemory_livekit.store import Hit, Profile
from supermemory_livekit.testing import ScriptedCaller, ScriptedRealtimeModel, ScriptedStore

TAG = "caller-1"


def memory_over(store: ScriptedStore, **params: Any) -> SupermemoryLiveKit:
    return SupermemoryLiveKit.from_store(
        store, container_tag=TAG, session_id="room-1", params=InputParams(**{"mirror": False, **params})
    )


def store_with(*hits: str) -> ScriptedStore:
    store = ScriptedStore()
    store.hits[TAG] = [Hit(text, 0.8, memory_id=f"mem-{index}") for index, text in enumerate(hits)]
    store.profiles[TAG] = Profile(static=("Is called Ana.",))
    return store


class OwnAgent(Agent):
    """An agent of one's own, wired as the documentation says."""

    def __init__(self, memory: SupermemoryLiveKit) -> None:
        super().__init__(instructions="Be kind.", tools=memory.tools())
        self.memory = memory

    async def on_user_turn_completed(self, turn_ctx: ChatContext, new_message: llm.ChatMessage) -> None:
        await self.memory.on_user_turn_completed(turn_ctx, new_message)


@pytest.mark.parametrize("kind", ["SupermemoryAgent", "own agent"])
@pytest.mark.parametrize("way", ["chat context", "instructions"])
async def test_what_was_recalled_reaches_the_model_before_its_reply(kind: str, way: str) -> None:
    """Specification: realtime models skip llm_node; Design 4.8: by context or by instructions, replaced each turn."""
    store = store_with("Likes tea.")
    memory = memory_over(store)
    agent: Agent = (
        SupermemoryAgent(memory, instructions="Be kind.") if kind == "SupermemoryAgent" else OwnAgent(memory)
    )
    model = ScriptedRealtimeModel(mutable_chat_context=way == "chat context")
    async with ScriptedCaller(agent, llm=model) as caller:
        memory.attach(caller.session)
        await caller.says("what do I drink")
        await caller.hears_reply()
        store.hits[TAG] = [Hit("Has a dog.", 0.8, memory_id="dog")]
        await caller.says("and who waits at home")
        await caller.hears_reply()
        requests = model.sessions[-1].requests
    await memory.aclose()
    assert "Likes tea." in requests[0].text
    assert "Has a dog." in requests[1].text
    assert "Likes tea." not in requests[1].text
    assert [request.text.count(FENCE_OPEN) for request in requests] == [1, 1]
    assert (requests[1].instructions or "").startswith("Be kind.")
    assert (FENCE_OPEN in (requests[1].instructions or "")) is (way == "instructions")


async def test_a_model_that_accepts_nothing_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    """Design 4.8: where neither is possible, preload and tools; said once in the log."""
    memory = memory_over(store_with("Likes tea."))
    model = ScriptedRealtimeModel(mutable_chat_context=False, mutable_instructions=False)
    async with ScriptedCaller(SupermemoryAgent(memory, instructions="Be kind."), llm=model) as caller:
        memory.attach(caller.session)
        for words in ("one", "two"):
            await caller.says(words)
            await caller.hears_reply()
    await memory.aclose()
    said = [r for r in caplog.records if "accepts no change of its context" in r.getMessage()]
    assert len(said) == 1


async def test_a_rebind_takes_the_first_callers_memory_away_from_the_model() -> None:
    """Case S9: also from the context of a realtime session."""
    store = store_with("Secret of Ana.")
    memory = memory_over(store)
    model = ScriptedRealtimeModel()
    async with ScriptedCaller(SupermemoryAgent(memory, instructions="Be kind."), llm=model) as caller:
        memory.attach(caller.session)
        await caller.says("who am I")
        await caller.hears_reply()
        memory.bind(container_tag="caller-2")
        await asyncio.sleep(1)
        await caller.says("who am I")
        await caller.hears_reply()
        last = model.sessions[-1].requests[-1]
    await memory.aclose()
    assert "Secret of Ana." not in last.text
    assert "Is called Ana." not in last.text


async def test_the_call_is_captured_as_usual() -> None:
    """Specification: turn capture still listens for conversation_item_added."""
    store = store_with()
    memory = memory_over(store)
    model = ScriptedRealtimeModel("good morning", user_transcription=True)
    async with ScriptedCaller(SupermemoryAgent(memory, instructions="Be kind."), llm=model) as caller:
        memory.attach(caller.session)
        await caller.says("hello there")
        await caller.hears_reply()
        model.sessions[-1].hears("hello there")
        await asyncio.sleep(1)
    await memory.aclose()
    document = store.document(TAG, "lk-room-1") or ""
    assert "Agent: good morning" in document
    assert "Caller: hello there" in document


async def test_a_model_that_takes_turns_itself_gets_what_was_recalled_for_its_next_reply() -> None:
    """Specification: the hook runs only when turns are detected in the agent; here nothing runs before the reply."""
    store = store_with("Likes tea.")
    memory = memory_over(store)
    model = ScriptedRealtimeModel("yes", turn_detection=True, user_transcription=True)
    async with ScriptedCaller(SupermemoryAgent(memory, instructions="Be kind."), llm=model) as caller:
        memory.attach(caller.session)
        model.sessions[-1].hears("what do I drink")
        await asyncio.sleep(1)
        context = model.sessions[-1].chat_ctx
        assert any("Likes tea." in str(getattr(item, "text_content", "")) for item in context.items)
    await memory.aclose()


async def test_a_caller_who_is_never_transcribed_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    """Case C4: a session that emits only assistant items: stored as they are; one line says how to mend it."""
    store = store_with()
    memory = memory_over(store)
    model = ScriptedRealtimeModel("good morning", turn_detection=True)
    agent = SupermemoryAgent(memory, instructions="Be kind.")
    async with ScriptedCaller(agent, llm=model, transcribes=False) as caller:
        memory.attach(caller.session)
        for _ in range(5):
            model.sessions[-1].takes_turn()
            await asyncio.sleep(3)
    await memory.aclose()
    assert (store.document(TAG, "lk-room-1") or "").count("Agent: good morning") == 5
    assert len([r for r in caplog.records if "transcription on" in r.getMessage()]) == 1


async def test_words_reported_after_the_reply_are_stored_before_it() -> None:
    """Design 5.3: in order, also when a provider reports the caller's words late with an earlier time."""
    store = store_with()
    memory = memory_over(store)
    model = ScriptedRealtimeModel("good morning", turn_detection=True, user_transcription=True)
    agent = SupermemoryAgent(memory, instructions="Be kind.")
    async with ScriptedCaller(agent, llm=model, transcribes=False) as caller:
        memory.attach(caller.session)
        before = time.time()
        await asyncio.sleep(0.1)
        model.sessions[-1].takes_turn()
        await caller.hears_reply()
        caller.session.emit(
            "conversation_item_added",
            ConversationItemAddedEvent(
                item=llm.ChatMessage(role="user", content=["hello there"], created_at=before)
            ),
        )
        await asyncio.sleep(3)
    await memory.aclose()
    lines = (store.document(TAG, "lk-room-1") or "").splitlines()
    assert [line.partition("] ")[2] for line in lines] == ["Caller: hello there", "Agent: good morning"]
