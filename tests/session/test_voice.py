"""Spoken calls: recall and capture with timing, preemptive generation, interruption and hang-up."""

from __future__ import annotations

import asyncio
import importlib.metadata
from typing import Any

import pytest
from livekit.agents import ChatContext, llm

from supermemory_livekit import InputParams, SupermemoryAgent, SupermemoryLiveKit
from supermemory_livekit.recall.render import FENCE_OPEN
from supermemory_livekit.store import Hit, Profile
from supermemory_livekit.testing import Answer, ScriptedCaller, ScriptedLLM, ScriptedStore, Work

TAG = "caller-1"


def store_with(*hits: str) -> ScriptedStore:
    store = ScriptedStore()
    store.hits[TAG] = [Hit(text, 0.8, memory_id=f"mem-{index}") for index, text in enumerate(hits)]
    store.profiles[TAG] = Profile(static=("Is called Ana.",))
    return store


def memory_over(store: ScriptedStore, **params: Any) -> SupermemoryLiveKit:
    return SupermemoryLiveKit.from_store(
        store, container_tag=TAG, session_id="room-1", params=InputParams(**{"mirror": False, **params})
    )


def agent_over(memory: SupermemoryLiveKit) -> SupermemoryAgent:
    return SupermemoryAgent(memory, instructions="Be kind.")


def spoken(store: ScriptedStore) -> list[str]:
    document = store.document(TAG, "lk-room-1") or ""
    return [line.partition("] ")[2] for line in document.splitlines()]


def echo(context: ChatContext, tools: list[llm.Tool]) -> str:
    users = [item for item in context.items if item.type == "message" and item.role == "user"]
    return f"you said {users[-1].text_content}" if users else "hello"


async def test_recall_keeps_the_preemptive_generation() -> None:
    """Case L6, Design 4.1: one model call for a stable turn, with the memory in it."""
    store = store_with("Likes tea.")
    memory = memory_over(store)
    model = ScriptedLLM(echo)
    async with ScriptedCaller(agent_over(memory), llm=model) as caller:
        memory.attach(caller.session)
        for words in ("what do I drink", "and in the evening"):
            await caller.says(words)
            assert await caller.hears_reply() == f"you said {words}"
    await memory.aclose()
    assert len(model.seen) == 2
    assert not any(seen.cancelled for seen in model.seen)
    assert all("Likes tea." in seen.text and seen.text.count(FENCE_OPEN) == 1 for seen in model.seen)
    assert memory.stats.recalls == 2


async def test_a_turn_in_several_segments_recalls_within_bounds_and_answers_the_whole() -> None:
    """Case L7: attempts on the first words are bounded, their result does not serve the last, one turn is stored."""
    store = store_with()
    for words in ("I want", "I want to book", "I want to book a table"):
        store.script("search", Answer([Hit(f"About <{words}>.", 0.9, memory_id=words)], after=0.05))
    memory = memory_over(store)
    model = ScriptedLLM(echo)
    async with ScriptedCaller(agent_over(memory), llm=model) as caller:
        memory.attach(caller.session)
        await caller.says("I want", "to book", "a table")
        assert await caller.hears_reply() == "you said I want to book a table"
    await memory.aclose()
    assert [call.arguments["query"] for call in store.called("search")] == [
        "I want",
        "I want to book",
        "I want to book a table",
    ]
    assert "About ‹I want to book a table›." in model.seen[-1].text
    assert "About ‹I want›." not in model.seen[-1].text
    assert spoken(store) == ["Caller: I want to book a table", "Agent: you said I want to book a table"]


async def test_a_cancelled_attempt_leaves_the_recall_to_the_reply() -> None:
    """Design 4.2: a cancelled attempt does not cancel a recall that another one needs."""
    store = store_with().always("search", Answer([Hit("Likes tea.", 0.9, memory_id="m")], after=1.0))
    memory = memory_over(store)

    class Invalidating(SupermemoryAgent):
        async def on_user_turn_completed(self, turn_ctx: ChatContext, new_message: llm.ChatMessage) -> None:
            turn_ctx.add_message(role="system", content="another plugin changes the turn")

    model = ScriptedLLM(echo)
    async with ScriptedCaller(Invalidating(memory, instructions="Be kind."), llm=model) as caller:
        memory.attach(caller.session)
        await caller.says("what do I drink")
        await caller.hears_reply()
    await memory.aclose()
    assert len(store.called("search")) == 1
    assert "Likes tea." in model.seen[-1].text
    assert memory.stats.recalls == 1


async def test_the_profile_is_refreshed_while_the_caller_speaks() -> None:
    """Design 4.3: the profile needs no query, so no reply waits for it: it is asked for at the first sound."""
    store = store_with().always("profile", Work(after=1.5))
    memory = memory_over(store, mode="profile")
    model = ScriptedLLM(echo)
    async with ScriptedCaller(agent_over(memory), llm=model) as caller:
        memory.attach(caller.session)
        loop = asyncio.get_running_loop()
        await caller.says("one two three four five six")  # 1.8 s
        over = loop.time()
        await caller.hears_reply()
        first_token = model.seen[0].at - over
    await memory.aclose()
    assert first_token < 0.1
    assert "Is called Ana." in model.seen[0].text
    assert len(store.called("profile")) == 1


async def test_an_interrupted_reply_is_stored_as_far_as_it_was_heard() -> None:
    """Case C1, Design 5.1: interrupted replies as far as they were spoken, and marked so."""
    store = store_with()
    memory = memory_over(store)
    model = ScriptedLLM(lambda context, tools: "once upon a time there was a very long story about a caller")
    async with ScriptedCaller(agent_over(memory), llm=model) as caller:
        memory.attach(caller.session)
        await caller.says("tell a story")
        await caller.hears_beginning()
        await asyncio.sleep(1.0)
        await caller.says("stop that please now")
        await caller.hears_reply()
    await memory.aclose()
    lines = spoken(store)
    assert lines[0] == "Caller: tell a story"
    assert lines[1].startswith("Agent (interrupted): once upon")
    assert not lines[1].endswith("caller")
    assert lines[2] == "Caller: stop that please now"


@pytest.mark.skipif(
    importlib.metadata.version("livekit-agents").startswith("1.6."),
    reason="LiveKit 1.6 cancels the commit of the last words when a session closes",
)
async def test_a_hang_up_in_mid_sentence_stores_the_words_so_far() -> None:
    """Case C2, Specification: what is left is stored, including a caller who hangs up in mid-turn."""
    store = store_with()
    memory = memory_over(store)
    async with ScriptedCaller(agent_over(memory), llm=ScriptedLLM(echo)) as caller:
        memory.attach(caller.session)
        await caller.says("first turn")
        await caller.hears_reply()
        await caller.begins("my new address is five main street")
        await caller.hangs_up()
    await memory.aclose()
    assert spoken(store) == [
        "Caller: first turn",
        "Agent: you said first turn",
        "Caller: my new address is five main street",
    ]


async def test_a_hang_up_while_the_agent_speaks_waits_for_nothing() -> None:
    """Case C1: the question is stored, and the heard part of the answer."""
    store = store_with()
    memory = memory_over(store)
    model = ScriptedLLM(lambda context, tools: "well that is a long answer with very many words in it")
    async with ScriptedCaller(agent_over(memory), llm=model) as caller:
        memory.attach(caller.session)
        await caller.says("when do you open")
        await caller.hears_beginning()
        await asyncio.sleep(1.0)
        await caller.hangs_up()
    await memory.aclose()
    lines = spoken(store)
    assert lines[0] == "Caller: when do you open"
    assert lines[1].startswith("Agent (interrupted): well")
    assert memory.stats.turns_unwritten == 0


@pytest.mark.parametrize("delay", [0.2, 0.8])
async def test_recall_hides_behind_the_end_of_the_turn(delay: float) -> None:
    """Design 4: a reply waits only for what recall takes longer than the silence that ends a turn."""

    async def answered_after(store: ScriptedStore | None) -> float:
        model = ScriptedLLM(echo)
        memory = memory_over(store or store_with(), mode="query")
        agent: Any = agent_over(memory)
        async with ScriptedCaller(agent, llm=model, endpointing=0.6) as caller:
            loop = asyncio.get_running_loop()
            await caller.says("what do I drink")
            over = loop.time()
            await caller.hears_beginning()
            heard = loop.time() - over
        await memory.aclose()
        return heard

    alone = await answered_after(None)
    with_recall = await answered_after(store_with().always("search", Answer([], after=delay)))
    assert with_recall - alone <= max(0.0, delay - 0.4)
