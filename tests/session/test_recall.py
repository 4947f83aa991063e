"""Recall through a real `AgentSession`: what the model sees, how often the service is asked, who waits for whom."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable
from itertools import pairwise
from typing import Any

import pytest
from livekit.agents import Agent, ChatContext, FlushSentinel, ModelSettings, function_tool, llm

from supermemory_livekit import (
    AccessDenied,
    InputParams,
    ServiceUnavailable,
    SupermemoryAgent,
    SupermemoryLiveKit,
)
from supermemory_livekit.recall.render import FENCE_OPEN
from supermemory_livekit.store import Hit, Profile
from supermemory_livekit.testing import Answer, Fail, Hang, ScriptedLLM, ScriptedStore, ToolCall, Work
from tests.support.clock import VirtualClock
from tests.support.sessions import say, started

TAG = "caller-1"


def store_with(*hits: str, profile: Profile | None = None, tag: str = TAG) -> ScriptedStore:
    store = ScriptedStore()
    store.hits[tag] = [Hit(text, 0.8, memory_id=f"mem-{index}") for index, text in enumerate(hits)]
    store.profiles[tag] = profile or Profile(static=("Is called Ana.",), dynamic=("Booked room 12.",))
    return store


def memory_over(store: ScriptedStore, **params: Any) -> SupermemoryLiveKit:
    return SupermemoryLiveKit.from_store(
        store, container_tag=TAG, session_id="room-1", params=InputParams(**{"mirror": False, **params})
    )


def agent_over(memory: SupermemoryLiveKit, **options: Any) -> SupermemoryAgent:
    return SupermemoryAgent(memory, instructions="Be kind.", **options)


def fenced(context_text: str) -> int:
    return context_text.count(FENCE_OPEN)


async def test_a_reply_knows_the_profile_and_what_bears_on_the_words() -> None:
    """Specification: recall runs before the model replies, profile and search merged in mode full."""
    store = store_with("Prefers a quiet room.")
    memory = memory_over(store)
    model = ScriptedLLM(lambda context, tools: "Of course.")
    async with started(agent_over(memory), llm=model) as session:
        await say(session, "Which room would I like?")
    (seen,) = model.seen
    assert "Is called Ana." in seen.text
    assert "Booked room 12." in seen.text
    assert "Prefers a quiet room." in seen.text
    assert [item.role for item in seen.items][-2:] == ["system", "user"]
    await memory.aclose()


async def test_ten_turns_show_one_block_and_leave_none_behind() -> None:
    """Case R5, Design 4.1: one block in what the model sees, none in the agent's context or the history."""
    store = store_with()
    memory = memory_over(store)
    model = ScriptedLLM(lambda context, tools: "Yes.")
    agent = agent_over(memory)
    async with started(agent, llm=model) as session:
        memory.attach(session)
        for turn in range(10):
            store.hits[TAG] = [Hit(f"Fact number {turn}.", 0.9, memory_id=f"m{turn}")]
            await say(session, f"Question {turn}?")
        kept = [*agent.chat_ctx.items, *session.history.items]
    assert [fenced(seen.text) for seen in model.seen] == [1] * 10
    assert "Fact number 9." in model.seen[9].text
    assert "Fact number 8." not in model.seen[9].text
    assert not any(FENCE_OPEN in str(getattr(item, "text_content", "")) for item in kept)
    await memory.aclose()


async def test_the_prefix_up_to_the_last_user_message_is_the_same_from_turn_to_turn() -> None:
    """Case L10: prompt caches hold, since memory stands right before the last user message only."""
    store = store_with("Likes tea.")
    memory = memory_over(store)
    model = ScriptedLLM(lambda context, tools: "Yes.")
    async with started(agent_over(memory), llm=model) as session:
        for turn in range(5):
            await say(session, f"Question {turn}?")
    prefixes = [[(item.id, item.text) for item in seen.items[:-2]] for seen in model.seen]
    for before, after in pairwise(prefixes):
        assert after[: len(before)] == before
    await memory.aclose()


async def test_a_tool_follow_up_reuses_the_recall_of_its_turn() -> None:
    """Specification: each user message is recalled once and tool follow-ups reuse it."""
    store = store_with("Allergic to nuts.")

    @function_tool
    async def check_menu() -> str:
        """Look at the menu."""
        return "nut cake"

    def reply(context: ChatContext, tools: list[llm.Tool]) -> Any:
        used = any(item.type == "function_call_output" for item in context.items)
        return "Not for you." if used else ToolCall("check_menu")

    memory = memory_over(store)
    model = ScriptedLLM(reply)
    async with started(agent_over(memory, tools=[check_menu]), llm=model) as session:
        await say(session, "What can I eat?")
    assert len(model.seen) == 2
    assert [fenced(seen.text) for seen in model.seen] == [1, 1]
    assert "Allergic to nuts." in model.seen[1].text
    assert len(store.called("search")) == 1
    assert memory.stats.recalls == 1
    await memory.aclose()


async def test_the_same_words_in_a_later_turn_recall_again() -> None:
    """Specification: the recall is keyed on the user message, not on its text."""
    store = store_with("Old fact.")
    memory = memory_over(store)
    model = ScriptedLLM(lambda context, tools: "Yes.")
    async with started(agent_over(memory), llm=model) as session:
        memory.attach(session)
        await say(session, "Who am I?")
        store.hits[TAG] = [Hit("New fact.", 0.9, memory_id="n")]
        await say(session, "Who am I?")
    assert len(store.called("search")) == 2
    assert "New fact." in model.seen[1].text
    await memory.aclose()


@pytest.mark.parametrize(
    ("mode", "operations", "shown"),
    [
        ("profile", {"profile"}, {"Is called Ana.": True, "Booked room 12.": True, "Likes tea.": False}),
        ("query", {"search"}, {"Is called Ana.": False, "Booked room 12.": False, "Likes tea.": True}),
        (
            "full",
            {"profile", "search"},
            {"Is called Ana.": True, "Booked room 12.": True, "Likes tea.": True},
        ),
    ],
)
async def test_a_mode_asks_for_and_shows_its_parts_alone(
    mode: str, operations: set[str], shown: dict[str, bool]
) -> None:
    """Specification: the table of modes."""
    store = store_with("Likes tea.")
    memory = memory_over(store, mode=mode)
    model = ScriptedLLM(lambda context, tools: "Yes.")
    async with started(agent_over(memory), llm=model) as session:
        await say(session, "What do I drink?")
    assert {call.operation for call in store.calls} == operations
    assert {text: text in model.seen[0].text for text in shown} == shown
    await memory.aclose()


async def test_limit_and_threshold_are_sent_with_every_search() -> None:
    """Specification: search_limit and search_threshold; Design 2: always sent, since the service's defaults differ."""
    store = store_with("Likes tea.")
    memory = memory_over(store, search_limit=3, search_threshold=0.4)
    model = ScriptedLLM(lambda context, tools: "Yes.")
    async with started(agent_over(memory), llm=model) as session:
        await say(session, "What do I drink?")
    (search,) = store.called("search")
    assert search.arguments["limit"] == 3
    assert search.arguments["threshold"] == 0.4
    assert search.arguments["mode"] == "hybrid"
    await memory.aclose()


async def test_the_greeting_knows_what_preload_brought() -> None:
    """Specification: preload puts the caller's profile into the first turn, so that the greeting can use it."""
    store = store_with()
    memory = memory_over(store)
    chat_ctx = ChatContext()
    assert await memory.preload(chat_ctx) is True
    model = ScriptedLLM(lambda context, tools: "Hello Ana.")
    async with started(agent_over(memory, chat_ctx=chat_ctx), llm=model) as session:
        await asyncio.wait_for(_greet(session), 20)
    assert "Is called Ana." in model.seen[0].text
    assert fenced(model.seen[0].text) == 1
    assert len(store.called("profile")) == 1
    await memory.aclose()


async def _greet(session: Any) -> None:
    await session.generate_reply(instructions="Greet the caller.")


async def test_preload_says_false_for_a_caller_nobody_knows() -> None:
    """Case R1: an empty profile is no failure and puts nothing into the context."""
    store = ScriptedStore()
    memory = memory_over(store)
    chat_ctx = ChatContext()
    assert await memory.preload(chat_ctx) is False
    assert chat_ctx.items == []
    await memory.aclose()


async def test_a_failing_recall_falls_back_to_the_preloaded_profile(caplog: pytest.LogCaptureFixture) -> None:
    """Specification: when the profile call fails, the turn falls back to the profile loaded by preload."""
    store = store_with("Likes tea.")
    memory = memory_over(store)
    await memory.preload(ChatContext())
    store.always("profile", Fail(ServiceUnavailable("profile answered 503", status=503)))
    store.always("search", Fail(ServiceUnavailable("search answered 503", status=503)))
    model = ScriptedLLM(lambda context, tools: "Yes.")
    async with started(agent_over(memory), llm=model) as session:
        await say(session, "Who am I?")
        await say(session, "And now?")
    for seen in model.seen:
        assert "Is called Ana." in seen.text
        assert "Likes tea." not in seen.text
    warnings = [r for r in caplog.records if r.name == "supermemory_livekit" and r.levelname == "WARNING"]
    assert len(warnings) == 2  # one for each kind of request, not one for each turn
    await memory.aclose()


async def test_a_failing_recall_without_preload_costs_the_memory_and_not_the_reply() -> None:
    """Specification: an outage is skipped and does not end the call."""
    store = store_with("Likes tea.")
    store.always("profile", Fail(ServiceUnavailable("profile answered 503", status=503)))
    store.always("search", Fail(RuntimeError("a bug of the client")))
    memory = memory_over(store)
    model = ScriptedLLM(lambda context, tools: "I am here.")
    async with started(agent_over(memory), llm=model) as session:
        assert await say(session, "Who am I?") == "I am here."
    assert fenced(model.seen[0].text) == 0
    assert memory.stats.recalls_failed == 2
    await memory.aclose()


@pytest.mark.parametrize("ending", ["answer", "empty", "error", "hang"])
async def test_a_second_caller_never_sees_the_first_however_recall_ends(
    ending: str, clock: VirtualClock
) -> None:
    """Case S9, Specification: memory from the earlier caller is never shown to the new one."""
    store = store_with("Secret of Ana.")
    store.profiles["caller-2"] = Profile()
    memory = memory_over(store)
    chat_ctx = ChatContext()
    await memory.preload(chat_ctx)
    model = ScriptedLLM(lambda context, tools: "Yes.")
    async with started(agent_over(memory, chat_ctx=chat_ctx), llm=model) as session:
        await say(session, "Who am I?")
        memory.bind(container_tag="caller-2")
        for operation in ("profile", "search"):
            if ending == "empty":
                store.always(operation, None)
            elif ending == "error":
                store.always(operation, Fail(ServiceUnavailable("answered 503", status=503)))
            elif ending == "hang":
                store.always(operation, Hang())
        if ending == "answer":
            store.profiles["caller-2"] = Profile(static=("Is called Bo.",))
        await say(session, "Who am I?")
    seen = model.seen[-1]
    assert "Secret of Ana." not in seen.text
    assert "Is called Ana." not in seen.text
    assert fenced(seen.text) == (1 if ending == "answer" else 0)
    await memory.aclose()


async def test_an_answer_that_arrives_after_a_rebind_is_dropped(clock: VirtualClock) -> None:
    """Design 4.5: late answers carry the tag they were asked for and are dropped when it is not the bound one."""
    store = store_with("Secret of Ana.")
    store.always("search", Answer([Hit("Secret of Ana.", 0.9, memory_id="m")], after=1.0))
    store.always("profile", Answer(Profile(static=("Is called Ana.",)), after=1.0))
    memory = memory_over(store)
    model = ScriptedLLM(lambda context, tools: "Yes.")
    async with started(agent_over(memory), llm=model) as session:
        turn = asyncio.ensure_future(say(session, "Who am I?"))
        await asyncio.sleep(0.5)
        memory.bind(container_tag="caller-2")
        await turn
    assert fenced(model.seen[0].text) == 0
    await memory.aclose()


async def test_enrich_works_from_an_agent_of_ones_own() -> None:
    """Specification: keep your Agent class, pass the tools in, and recall from llm_node."""
    store = store_with("Likes tea.")
    memory = memory_over(store)

    class Assistant(Agent):
        def __init__(self) -> None:
            super().__init__(instructions="You are helpful.", tools=memory.tools())

        async def llm_node(
            self, chat_ctx: ChatContext, tools: list[llm.Tool], model_settings: ModelSettings
        ) -> AsyncIterable[llm.ChatChunk | str | FlushSentinel]:
            await memory.enrich(chat_ctx)
            return Agent.default.llm_node(self, chat_ctx, tools, model_settings)

    model = ScriptedLLM(lambda context, tools: "Yes.")
    async with started(Assistant(), llm=model) as session:
        memory.attach(session)
        await say(session, "What do I drink?")
    assert "Likes tea." in model.seen[0].text
    assert set(model.seen[0].tools) == {"search_memories", "remember", "forget"}
    await memory.aclose()


async def test_an_agent_that_forgets_the_hook_is_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    """Case R8: an overridden llm_node without our part is never silent."""
    memory = memory_over(store_with())

    class Forgetful(SupermemoryAgent):
        async def llm_node(
            self, chat_ctx: ChatContext, tools: list[llm.Tool], model_settings: ModelSettings
        ) -> AsyncIterable[llm.ChatChunk | str | FlushSentinel]:
            async for chunk in Agent.default.llm_node(self, chat_ctx, tools, model_settings):
                yield chunk

    model = ScriptedLLM(lambda context, tools: "Yes.")
    async with started(Forgetful(memory, instructions="Be kind."), llm=model) as session:
        memory.attach(session)
        await say(session, "One?")
        await say(session, "Two?")
    said = [record.getMessage() for record in caplog.records if "without recall" in record.getMessage()]
    assert len(said) == 1
    await memory.aclose()


async def test_without_a_bind_nothing_is_asked_and_one_line_says_so(caplog: pytest.LogCaptureFixture) -> None:
    """Case S4: no request without a tag; preload and enrich do nothing."""
    store = store_with()
    memory = SupermemoryLiveKit.from_store(store)
    chat_ctx = ChatContext()
    assert await memory.preload(chat_ctx) is False
    model = ScriptedLLM(lambda context, tools: "Yes.")
    async with started(agent_over(memory, chat_ctx=chat_ctx), llm=model) as session:
        memory.attach(session)
        assert await say(session, "Who am I?") == "Yes."
    await memory.aclose()
    assert store.calls == []
    assert len([r for r in caplog.records if "No caller is bound" in r.getMessage()]) == 1


async def test_a_hung_service_is_waited_for_once_in_twenty_turns(clock: VirtualClock) -> None:
    """Case L9: the total wait is bounded by one budget, and the log says it once for each kind of request."""
    store = store_with().always("profile", Hang()).always("search", Hang())
    memory = memory_over(store)
    model = ScriptedLLM(lambda context, tools: "Yes.")
    loop = asyncio.get_running_loop()
    async with started(agent_over(memory), llm=model) as session:
        memory.attach(session)
        before = loop.time()
        for turn in range(20):
            assert await say(session, f"Question {turn}?") == "Yes."
        waited = loop.time() - before
    assert 2.0 <= waited < 2.5
    assert memory.stats.recalls_late == 1
    await memory.aclose()


async def test_a_service_that_comes_back_is_used_again(clock: VirtualClock) -> None:
    """Design 4.4: probe in the background, and wait again once it answers."""
    store = store_with("Likes tea.").always("profile", Hang()).always("search", Hang())
    memory = memory_over(store)
    model = ScriptedLLM(lambda context, tools: "Yes.")
    async with started(agent_over(memory), llm=model) as session:
        memory.attach(session)
        await say(session, "One?")
        store.always("profile", None).always("search", None)
        await asyncio.sleep(40)
        await say(session, "What do I drink?")
    assert "Likes tea." in model.seen[-1].text
    assert "Is called Ana." in model.seen[-1].text
    await memory.aclose()


@pytest.mark.parametrize(("delay", "in_time"), [(1.9, True), (2.1, False), (2.6, False), (9.0, False)])
async def test_a_late_answer_serves_the_next_turn(delay: float, in_time: bool, clock: VirtualClock) -> None:
    """Case L8: within the budget it serves its own turn, later the next one; the reply waits 2 s at most."""
    store = store_with().script("search", Answer([Hit("Likes tea.", 0.9, memory_id="m")], after=delay))
    store.always("search", Answer([], after=60))
    memory = memory_over(store, mode="query")
    model = ScriptedLLM(lambda context, tools: "Yes.")
    loop = asyncio.get_running_loop()
    async with started(agent_over(memory), llm=model) as session:
        memory.attach(session)
        before = loop.time()
        await say(session, "What do I drink?")
        assert loop.time() - before == pytest.approx(min(delay, 2.0), abs=0.2)
        await asyncio.sleep(10)
        await say(session, "Well?")
    assert ("Likes tea." in model.seen[0].text) is in_time
    assert ("Likes tea." in model.seen[1].text) is not in_time
    await memory.aclose()


async def test_a_refused_key_is_one_error_no_waiting_and_no_other_tag(
    clock: VirtualClock, caplog: pytest.LogCaptureFixture
) -> None:
    """Cases S10 and P10: 403 or 401: no other scope is tried, one ERROR with a hint, replies wait for nothing."""
    denied = Fail(AccessDenied("search answered 403", status=403), after=1.5)
    store = (
        store_with("Likes tea.").always("profile", denied).always("search", denied).always("append", denied)
    )
    memory = memory_over(store)
    model = ScriptedLLM(lambda context, tools: "Yes.")
    loop = asyncio.get_running_loop()
    async with started(agent_over(memory), llm=model) as session:
        memory.attach(session)
        before = loop.time()
        for turn in range(10):
            await say(session, f"Question {turn}?")
        assert loop.time() - before < 2.0
    await memory.aclose()
    errors = [
        r.getMessage() for r in caplog.records if r.name == "supermemory_livekit" and r.levelname == "ERROR"
    ]
    assert len(errors) == 3  # one for each kind of request: profile, search, writing
    assert all("SUPERMEMORY_API_KEY" in error for error in errors)
    assert store.tags == {TAG}


async def test_a_forgotten_fact_is_not_shown_again_not_even_as_a_fall_back() -> None:
    """Specification: the model can forget; what was recalled before must not bring the fact back in this call."""
    store = store_with("Lives in Lisbon.", profile=Profile(static=("Lives in Lisbon.",)))
    memory = memory_over(store)

    def reply(context: ChatContext, tools: list[llm.Tool]) -> Any:
        used = any(item.type == "function_call_output" for item in context.items)
        return "Done." if used else ToolCall("forget", {"memory_id": "mem-0"})

    model = ScriptedLLM(reply)
    async with started(agent_over(memory), llm=model) as session:
        memory.attach(session)
        await memory.preload(ChatContext())
        store.script("profile", Work(), Fail(ServiceUnavailable("profile answered 503", status=503)))
        store.always("profile", Fail(ServiceUnavailable("profile answered 503", status=503)))
        await say(session, "Forget where I live.")
    assert "Lives in Lisbon." in model.seen[0].text
    assert FENCE_OPEN not in model.seen[1].text
    await memory.aclose()


@pytest.mark.parametrize("mirror", [False, True])
async def test_words_of_this_call_take_no_fact_its_place(mirror: bool) -> None:
    """Design 4.6: `search_limit` results are merged into the turn; what the context holds already is none of them."""
    facts = ("Owns a blue boat.", "The boat is old.")
    store = store_with(*facts)
    memory = memory_over(store, search_limit=2, mirror=mirror, mode="query")
    model = ScriptedLLM(lambda context, tools: "Certainly.")
    async with started(agent_over(memory), llm=model) as session:
        memory.attach(session)
        for words in ("A blue boat, please.", "The boat is blue.", "My boat is called Nina."):
            await say(session, words)
        await asyncio.sleep(1)
        lines = (store.document(TAG, "lk-room-1") or "").splitlines()
        said = [Hit(line, 0.9) for line in lines if "Caller" in line]
        store.hits[TAG] = [*said, *store.hits[TAG]]
        await say(session, "Which boat do I own?")
    assert all(fact in model.last.text for fact in facts)
    await memory.aclose()


async def test_words_of_this_call_are_not_shown_to_the_model_a_second_time() -> None:
    """Design 4.6: the block holds notes from earlier; what the context holds already would crowd them out."""
    store = store_with()
    memory = memory_over(store)
    model = ScriptedLLM(lambda context, tools: "Certainly.")
    async with started(agent_over(memory), llm=model) as session:
        memory.attach(session)
        await say(session, "I would like  a table.")
        await asyncio.sleep(1)
        now, before = (
            store.document(TAG, "lk-room-1") or "",
            "[2026-01-02T10:00:00.000Z] Caller: A window seat.",
        )
        store.hits[TAG] = [Hit(now, 0.9), Hit(before, 0.8), Hit(now + "\n" + before, 0.7)]
        await say(session, "By the window?")
    assert model.seen[-1].text.count("Caller: I would like a table.") == 1
    assert model.seen[-1].text.count("A window seat.") == 2
    await memory.aclose()
