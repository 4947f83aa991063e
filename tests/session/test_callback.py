"""A caller who rings back at once, before the service has made memories of the last call."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from livekit.agents import ChatContext

from supermemory_livekit import InputParams, SupermemoryAgent, SupermemoryLiveKit
from supermemory_livekit.store import Hit, Profile
from supermemory_livekit.testing import Answer, Hang, ScriptedLLM, ScriptedStore
from tests.support.clock import VirtualClock
from tests.support.sessions import say, started

TAG = "caller-1"
MARK = "The end of the last call"


async def after_a_call(**options: Any) -> ScriptedStore:
    """A store that holds one call, spoken through a real session, and no memory of it."""
    store = ScriptedStore(**options)
    store.profiles[TAG] = Profile(static=("Is called Ana.",))
    memory = memory_over(store, "monday")
    async with started(
        SupermemoryAgent(memory, instructions="Be kind."), llm=ScriptedLLM("The blue one it is.")
    ) as session:
        memory.attach(session)
        await say(session, "I would like the blue bicycle")
    await memory.aclose()
    return store


def memory_over(store: ScriptedStore, session_id: str, **params: Any) -> SupermemoryLiveKit:
    return SupermemoryLiveKit.from_store(
        store, container_tag=TAG, session_id=session_id, params=InputParams(**params)
    )


async def preloaded(memory: SupermemoryLiveKit) -> str:
    context = ChatContext()
    await memory.preload(context)
    return "\n".join(item.text_content or "" for item in context.items if item.type == "message")


@pytest.mark.parametrize("mirror", [True, False], ids=["mirror", "no mirror"])
async def test_preload_brings_the_end_of_a_call_that_is_not_processed(
    mirror: bool, clock: VirtualClock
) -> None:
    """Issue: a caller who rings back at once is remembered although the service has not processed the last call."""
    store = await after_a_call()
    memory = memory_over(store, "tuesday", mirror=mirror)
    shown = await preloaded(memory)
    assert MARK in shown
    assert "- Caller: I would like the blue bicycle\n- Agent: The blue one it is." in shown
    model = ScriptedLLM("Of course.")
    async with started(SupermemoryAgent(memory, instructions="Be kind."), llm=model) as session:
        memory.attach(session)
        await say(session, "hello")
        await say(session, "As I was saying")
    assert all(seen.text.count("I would like the blue bicycle") == 1 for seen in model.seen)
    await memory.aclose()


@pytest.mark.parametrize("mirror", [True, False], ids=["mirror", "no mirror"])
async def test_a_processed_call_brings_no_tail(mirror: bool, clock: VirtualClock) -> None:
    """Issue: only text that the service has not turned into memories."""
    store = await after_a_call()
    store.processed.add("lk-monday")
    memory = memory_over(store, "tuesday", mirror=mirror)
    assert MARK not in await preloaded(memory)
    await memory.aclose()


async def test_a_reconnect_brings_what_was_said_before_it(clock: VirtualClock) -> None:
    """Issue: the same session id goes on with the same document, whose text the new model has not seen."""
    store = await after_a_call()
    memory = memory_over(store, "monday")
    assert "I would like the blue bicycle" in await preloaded(memory)
    await memory.aclose()


async def test_where_nothing_can_be_listed_a_search_brings_the_tail(clock: VirtualClock) -> None:
    """Issue: by hybrid search, for a client or key that lists nothing."""
    store = await after_a_call(lists=False)
    text = store.document(TAG, "lk-monday")
    assert text is not None
    store.always("search", Answer([Hit(text, 0.2)]))
    memory = memory_over(store, "tuesday")
    assert "I would like the blue bicycle" in await preloaded(memory)
    await memory.aclose()


async def test_in_mode_query_nothing_is_preloaded(clock: VirtualClock) -> None:
    """The tail belongs to what is known before a word was said, as the profile does."""
    store = await after_a_call()
    memory = memory_over(store, "tuesday", mode="query")
    assert await preloaded(memory) == ""
    await memory.aclose()


@pytest.mark.parametrize("mirror", [True, False], ids=["mirror", "no mirror"])
async def test_what_was_forgotten_does_not_come_back_in_the_tail(mirror: bool, clock: VirtualClock) -> None:
    """A call's end may hold the words of a fact that the caller has just had forgotten."""
    store = await after_a_call()
    memory = memory_over(store, "tuesday", mirror=mirror)
    await memory.remember("Wants the blue bicycle.")
    assert MARK in await preloaded(memory)
    assert "Forgotten" in await memory.forget(memory_text="Wants the blue bicycle.")
    model = ScriptedLLM("Of course.")
    async with started(SupermemoryAgent(memory, instructions="Be kind."), llm=model) as session:
        memory.attach(session)
        await say(session, "What did I want?")
    assert "I would like the blue bicycle" not in model.last.text
    await memory.aclose()


@pytest.mark.parametrize("mirror", [True, False], ids=["mirror", "no mirror"])
async def test_another_caller_sees_no_tail_of_the_first(mirror: bool, clock: VirtualClock) -> None:
    """Case S9: nothing of the first caller survives a rebind."""
    store = await after_a_call()
    memory = memory_over(store, "tuesday", mirror=mirror)
    assert MARK in await preloaded(memory)
    memory.bind(container_tag="caller-2", session_id="tuesday")
    assert MARK not in await preloaded(memory)
    await memory.aclose()


async def test_a_list_of_calls_that_hangs_costs_preload_no_more_than_its_budget(clock: VirtualClock) -> None:
    """`recall_timeout` is the most that preload takes, whatever it waits for."""
    store = await after_a_call()
    store.always("latest_calls", Hang())
    for mirror in (True, False):
        memory = memory_over(store, "tuesday", mirror=mirror)
        before = asyncio.get_running_loop().time()
        assert "Is called Ana." in await preloaded(memory)
        assert asyncio.get_running_loop().time() - before <= 2.05
        await memory.aclose()
