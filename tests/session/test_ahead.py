"""Recall that is here before the caller has spoken: the mirror, early search, and what waits for what."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from livekit.agents import ChatContext, StopResponse, llm

from supermemory_livekit import InputParams, ServiceUnavailable, SupermemoryAgent, SupermemoryLiveKit
from supermemory_livekit.recall.lookups import MOST_SEARCHES
from supermemory_livekit.recall.render import FENCE_OPEN
from supermemory_livekit.store import Hit, Profile, StoredMemory
from supermemory_livekit.testing import (
    Answer,
    Fail,
    Hang,
    ScriptedCaller,
    ScriptedLLM,
    ScriptedStore,
    ToolCall,
    Work,
)
from tests.support.clock import VirtualClock
from tests.support.sessions import say, started

TAG = "caller-1"


@pytest.fixture(autouse=True)
def _no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUPERMEMORY_LIVEKIT_CACHE", "off")


def store_with(*facts: str, tag: str = TAG) -> ScriptedStore:
    store = ScriptedStore()
    store.stored[tag] = [StoredMemory(f"mem-{index}", fact) for index, fact in enumerate(facts)]
    store.profiles[tag] = Profile(static=("Is called Ana.",))
    return store


def memory_over(store: ScriptedStore, **params: Any) -> SupermemoryLiveKit:
    return SupermemoryLiveKit.from_store(
        store, container_tag=TAG, session_id="room-1", params=InputParams(**params)
    )


def agent_over(memory: SupermemoryLiveKit) -> SupermemoryAgent:
    return SupermemoryAgent(memory, instructions="Be kind.")


async def loaded(memory: SupermemoryLiveKit, clock: VirtualClock) -> None:
    """Preload, and let the mirror load and embed."""
    await memory.preload(ChatContext())
    for _ in range(200):
        if memory._recall._all_here():  # pyright: ignore[reportPrivateUsage]
            return
        await asyncio.sleep(0.05)
    pytest.fail("the mirror did not load")


def echo(context: ChatContext, tools: list[llm.Tool]) -> str:
    return "certainly"


async def test_with_everything_here_no_turn_asks_the_service_or_waits(clock: VirtualClock) -> None:
    """Design 4.3: the mirror answers with the finished words; the service is its source."""
    store = store_with("Likes tea in the morning.", "Has a dog called Rex.").forbid("search")
    memory = memory_over(store)
    model = ScriptedLLM(echo)
    await loaded(memory, clock)
    profiles = len(store.called("profile"))
    async with started(agent_over(memory), llm=model) as session:
        memory.attach(session)
        await say(session, "What do I drink in the morning?")
        await say(session, "What is my dog called?")
    await memory.aclose()
    assert "Likes tea in the morning." in model.seen[0].text
    assert "Has a dog called Rex." in model.seen[1].text
    assert "Is called Ana." in model.seen[1].text
    assert len(store.called("profile")) == profiles
    store.verify()


async def test_a_service_that_hangs_after_preload_adds_nothing(clock: VirtualClock) -> None:
    """Design 4.4: what is here needs no service."""
    store = store_with("Likes tea.")
    memory = memory_over(store)
    model = ScriptedLLM(echo)
    await loaded(memory, clock)
    for operation in ("profile", "search", "memories", "latest_calls", "append"):
        store.always(operation, Hang())
    loop = asyncio.get_running_loop()
    async with started(agent_over(memory), llm=model) as session:
        memory.attach(session)
        before = loop.time()
        for turn in range(20):
            await say(session, f"Do I like tea at {turn}?")
        assert loop.time() - before < 0.1
    await memory.aclose()
    assert all("Likes tea." in seen.text for seen in model.seen)


async def test_a_service_hung_from_the_start_adds_one_budget_in_twenty_turns(clock: VirtualClock) -> None:
    """Case L9: with the mirror as without."""
    store = store_with("Likes tea.")
    for operation in ("profile", "search", "memories", "latest_calls"):
        store.always(operation, Hang())
    memory = memory_over(store)
    model = ScriptedLLM(echo)
    loop = asyncio.get_running_loop()
    async with started(agent_over(memory), llm=model) as session:
        memory.attach(session)
        before = loop.time()
        for turn in range(20):
            await say(session, f"What do I drink at {turn}?")
        assert loop.time() - before <= 2.1
    await memory.aclose()


async def test_a_service_that_lists_nothing_is_searched_as_before(
    clock: VirtualClock, caplog: pytest.LogCaptureFixture
) -> None:
    """Design 4.3: where there is no mirror, the search waits within the budget; said once."""
    store = store_with()
    store.hits[TAG] = [Hit("Likes tea.", 0.9, memory_id="tea")]
    store.always("memories", Fail(NotImplementedError()))
    memory = memory_over(store)
    model = ScriptedLLM(echo)
    async with started(agent_over(memory), llm=model) as session:
        memory.attach(session)
        for turn in range(3):
            await say(session, f"What do I drink at {turn}?")
    await memory.aclose()
    assert len(store.called("search")) == 3
    assert all("Likes tea." in seen.text for seen in model.seen)


async def test_what_is_remembered_and_forgotten_in_this_call_shows_at_once(clock: VirtualClock) -> None:
    """Design 4.3: read your own writes."""
    store = store_with()
    store.hits[TAG] = [Hit("Lives in Lisbon.", 0.9, memory_id="mem-0")]
    memory = memory_over(store)
    model = ScriptedLLM(echo)
    await loaded(memory, clock)
    async with started(agent_over(memory), llm=model) as session:
        memory.attach(session)
        await memory.remember("Parks in space 4471.")
        await say(session, "Where do I park my car?")
        assert "Forgotten" in await memory.forget(memory_id="mem-0")
        await say(session, "In which city do I live, Lisbon?")
    await memory.aclose()
    assert "Parks in space 4471." in model.seen[0].text
    assert "Lives in Lisbon." not in model.seen[1].text


async def test_a_rebind_leaves_nothing_of_the_first_callers_mirror(clock: VirtualClock) -> None:
    """Case S9: the mirror belongs to one tag and is gone on rebind."""
    store = store_with("Secret of Ana: likes tea.")
    store.stored["caller-2"] = [StoredMemory("bo-1", "Bo likes tea too.")]
    memory = memory_over(store)
    model = ScriptedLLM(echo)
    await loaded(memory, clock)
    async with started(agent_over(memory), llm=model) as session:
        memory.attach(session)
        await say(session, "Do I like tea?")
        memory.bind(container_tag="caller-2")
        await say(session, "Do I like tea?")
        await asyncio.sleep(5)
        await say(session, "Do I really like tea?")
    await memory.aclose()
    assert "Secret of Ana" in model.seen[0].text
    for seen in model.seen[1:]:
        assert "Secret of Ana" not in seen.text
        assert "Is called Ana." not in seen.text
    assert "Bo likes tea too." in model.seen[-1].text


async def test_trivial_turns_search_nothing_and_keep_the_profile() -> None:
    """Design 4.3: "ok" and "uh-huh" ask for nothing."""
    store = store_with().forbid("search")
    memory = memory_over(store, mirror=False)
    model = ScriptedLLM(echo)
    async with started(agent_over(memory), llm=model) as session:
        memory.attach(session)
        for words in ("ok", "Uh-huh.", "[laughter]"):
            await say(session, words)
    await memory.aclose()
    assert all("Is called Ana." in seen.text and seen.text.count(FENCE_OPEN) == 1 for seen in model.seen)
    store.verify()


async def test_a_search_begun_while_the_caller_speaks_serves_when_it_found_what_was_missing() -> None:
    """Design 4.3: where there is no mirror, search starts early, and the finished words choose from what it found."""
    store = store_with().always(
        "search", Answer([Hit("The dog is called Rex.", 0.9, memory_id="m")], after=0.7)
    )
    memory = memory_over(store, mirror=False, mode="query")
    model = ScriptedLLM(echo)
    async with ScriptedCaller(agent_over(memory), llm=model) as caller:
        memory.attach(caller.session)
        loop = asyncio.get_running_loop()
        await caller.says("what is the name of my old brown dog then would you")
        over = loop.time()
        await caller.hears_reply()
    await memory.aclose()
    assert len(store.called("search")) <= 2
    assert "The dog is called Rex." in model.seen[-1].text
    assert model.seen[-1].at - over < 0.1


async def test_words_that_go_on_get_a_search_of_their_own_and_two_in_all() -> None:
    """Design 4.3: at most two searches for a message; the finished words' result replaces the early one."""
    early, finished = (
        Hit("Something about the early words.", 0.5, memory_id="e"),
        Hit("The point.", 0.9, memory_id="p"),
    )
    store = store_with().script("search", Answer([early], after=0.3), Answer([finished], after=0.1))
    memory = memory_over(store, mirror=False, mode="query")
    model = ScriptedLLM(echo)
    async with ScriptedCaller(agent_over(memory), llm=model) as caller:
        memory.attach(caller.session)
        await caller.says("tell me which restaurant served the grilled octopus with lemon potatoes in Porto")
        await caller.hears_reply()
    await memory.aclose()
    assert len(store.called("search")) == 2
    assert "The point." in model.seen[-1].text
    store.verify()


async def test_an_early_result_is_used_when_the_finished_one_is_late() -> None:
    """Design 4.4: whatever part is ready is used, once the budget is over."""
    early = Hit("Something about the early words.", 0.5, memory_id="e")
    store = store_with().script("search", Answer([early], after=0.3), Hang())
    memory = memory_over(store, mirror=False, mode="query")
    model = ScriptedLLM(echo)
    async with ScriptedCaller(agent_over(memory), llm=model) as caller:
        memory.attach(caller.session)
        loop = asyncio.get_running_loop()
        await caller.says("tell me which restaurant served the grilled octopus with lemon potatoes in Porto")
        over = loop.time()
        await caller.hears_reply()
    await memory.aclose()
    assert "Something about the early words." in model.seen[-1].text
    assert model.seen[-1].at - over < 2.1


async def test_an_early_result_of_another_turn_is_not_used() -> None:
    """Design 4.2: reset on the committed message."""
    store = store_with().always("search", Answer([], after=0.1))
    memory = memory_over(store, mirror=False, mode="query")
    model = ScriptedLLM(echo)
    async with ScriptedCaller(agent_over(memory), llm=model) as caller:
        memory.attach(caller.session)
        await caller.says("where does my brown dog sleep")
        await caller.hears_reply()
        store.always("search", Answer([Hit("In the shed.", 0.9, memory_id="m")], after=0.1))
        await say(caller.session, "where does my brown dog sleep")
    await memory.aclose()
    assert "In the shed." in model.seen[-1].text


async def test_more_memories_than_the_mirror_holds_are_searched_at_the_service_too(
    clock: VirtualClock,
) -> None:
    """Design 4.3: the mirror holds the newest; the service's own search adds the rest when it answers in time."""
    store = store_with(*[f"Fact {number} about tea." for number in range(2100)])
    store.hits[TAG] = [Hit("Old fact about coffee.", 0.9)]
    memory = memory_over(store)
    model = ScriptedLLM(echo)
    await memory.preload(ChatContext())
    for _ in range(100):
        await asyncio.sleep(0.05)
        if memory._recall._mirror_ready():  # pyright: ignore[reportPrivateUsage]
            break
    async with started(agent_over(memory), llm=model) as session:
        memory.attach(session)
        await say(session, "What do I drink, tea or coffee?")
        store.always("search", Fail(ServiceUnavailable("search answered 503", status=503)))
        await say(session, "And at night, tea or coffee?")
    await memory.aclose()
    assert "Old fact about coffee." in model.seen[0].text
    assert "about tea." in model.seen[0].text
    assert "about tea." in model.seen[1].text


async def test_a_tool_follow_up_shows_what_was_found_here() -> None:
    """Specification: tool follow-ups reuse the recall of their turn."""
    store = store_with().script("search", Work())
    store.hits[TAG] = [Hit("Likes tea.", 0.9, memory_id="tea")]
    memory = memory_over(store, mirror=False)

    def reply(context: ChatContext, tools: list[llm.Tool]) -> Any:
        used = any(item.type == "function_call_output" for item in context.items)
        return "Done." if used else ToolCall("search_memories", {"query": "tea"})

    model = ScriptedLLM(reply)
    async with started(agent_over(memory), llm=model) as session:
        memory.attach(session)
        await say(session, "What do I drink?")
    await memory.aclose()
    assert all("Likes tea." in seen.text for seen in model.seen)
    assert memory.stats.recalls == 1


async def test_a_fact_remembered_and_forgotten_by_id_in_one_call_is_gone(clock: VirtualClock) -> None:
    """Case T7: the mirror knows such a fact by its text alone until the service lists it."""
    store = store_with()
    memory = memory_over(store)
    model = ScriptedLLM(echo)
    await loaded(memory, clock)
    async with started(agent_over(memory), llm=model) as session:
        memory.attach(session)
        await memory.remember("My dog is called Fidget.")
        shown = await memory.search("My dog is called Fidget.")
        assert "Forgotten" in await memory.forget(memory_id=shown.partition("id=")[2].split()[0])
        await say(session, "What is my dog called?")
    await memory.aclose()
    assert "Fidget" not in model.seen[-1].text


@pytest.mark.parametrize(("delay", "waited"), [(0.4, 0.4), (1.5, 1.5), (5.0, 2.0)])
async def test_preload_waits_for_the_first_memories_within_its_budget(
    delay: float, waited: float, clock: VirtualClock
) -> None:
    """Design 4.3: memory is here before the caller speaks; preload never takes longer than `recall_timeout`."""
    store = store_with("Likes tea.").always("memories", Work(after=delay))
    memory = memory_over(store)
    loop = asyncio.get_running_loop()
    started = loop.time()
    assert await memory.preload(ChatContext()) is True
    assert loop.time() - started == pytest.approx(waited, abs=0.1)
    await memory.aclose()


@pytest.mark.parametrize(
    "refusal", [NotImplementedError(), ServiceUnavailable("memories answered 503", status=503)]
)
async def test_preload_waits_for_no_list_that_does_not_come(refusal: Exception, clock: VirtualClock) -> None:
    """Design 4.3: a service or key that refuses the list costs no time; one that fails, no more than the budget."""
    store = store_with().always("memories", Fail(refusal))
    memory = memory_over(store)
    loop = asyncio.get_running_loop()
    started = loop.time()
    assert await memory.preload(ChatContext()) is True
    assert loop.time() - started <= (0.1 if isinstance(refusal, NotImplementedError) else 2.05)
    await memory.aclose()


async def test_a_service_that_hung_at_preload_is_not_waited_for_again(clock: VirtualClock) -> None:
    """Design 4.4: one hard budget in all, that of preload included."""
    store = store_with("Likes tea.")
    for operation in ("profile", "search", "memories", "latest_calls"):
        store.always(operation, Hang())
    memory = memory_over(store)
    model = ScriptedLLM(echo)
    loop = asyncio.get_running_loop()
    before = loop.time()
    await memory.preload(ChatContext())
    async with started(agent_over(memory), llm=model) as session:
        memory.attach(session)
        for turn in range(20):
            await say(session, f"What do I drink at {turn}?")
    assert loop.time() - before <= 2.1
    await memory.aclose()


async def test_an_early_search_that_hangs_is_waited_for_once() -> None:
    """Case L9: also where the words that were searched early are all there is to search for."""
    store = store_with().always("search", Hang()).always("profile", Hang())
    memory = memory_over(store, mirror=False, mode="query")
    model = ScriptedLLM(echo)
    async with ScriptedCaller(agent_over(memory), llm=model) as caller:
        memory.attach(caller.session)
        loop = asyncio.get_running_loop()
        waits: list[float] = []
        for _ in range(3):
            await caller.says("my brown dog then")
            over = loop.time()
            await caller.hears_reply()
            waits.append(model.seen[-1].at - over)
    await memory.aclose()
    assert 1.5 < waits[0] <= 2.1
    assert max(waits[1:]) < 0.1


async def test_a_service_that_begins_to_hang_while_preload_waits_for_its_list_adds_nothing(
    clock: VirtualClock, caplog: pytest.LogCaptureFixture
) -> None:
    """Design 4.4: a service that hangs after preload is not waited for, also when its list did not come in time."""
    store = store_with("Likes tea.").always("memories", Hang()).always("search", Hang())
    memory = memory_over(store)
    model = ScriptedLLM(echo)
    assert await memory.preload(ChatContext()) is True
    for operation in ("profile", "latest_calls", "append"):
        store.always(operation, Hang())
    loop = asyncio.get_running_loop()
    async with started(agent_over(memory), llm=model) as session:
        memory.attach(session)
        before = loop.time()
        for turn in range(20):
            await say(session, f"What do I drink at {turn}?")
        assert loop.time() - before < 0.1
    await memory.aclose()
    # Nothing was known to have failed when the first of them was asked.
    assert "Searching" not in caplog.text.split("Loading")[0]


async def test_a_service_whose_list_is_slow_is_searched_as_soon_as_a_probe_is_answered(
    clock: VirtualClock,
) -> None:
    """Design 4.3: before the mirror is ready the search waits within the budget; a long list is no outage."""
    store = store_with("Likes tea.").always("memories", Work(after=30.0))
    store.always("search", Answer([Hit("Likes tea.", 0.9, memory_id="mem-0")], after=0.7))
    memory = memory_over(store)
    model = ScriptedLLM(echo)
    await memory.preload(ChatContext())
    await asyncio.sleep(1.5)
    async with started(agent_over(memory), llm=model) as session:
        memory.attach(session)
        await say(session, "What do I drink in the morning?")
    await memory.aclose()
    assert "Likes tea." in model.seen[-1].text


async def test_a_turn_in_many_segments_costs_a_bounded_number_of_searches(clock: VirtualClock) -> None:
    """Case L7: recalls are bounded, however many attempts at a reply a turn has; the last words choose from what the
    first ones found."""
    found = [Hit("The dog is called Rex.", 0.5, memory_id="rex"), Hit("Plays the viola.", 0.3, memory_id="v")]
    store = store_with().always("search", Answer(found, after=0.2))
    memory = memory_over(store, mirror=False, mode="query")
    model = ScriptedLLM(echo)
    segments = (
        "my brown dog",
        "the grey cat",
        "a green parrot",
        "some goldfish",
        "a pony",
        "my viola",
    )
    async with ScriptedCaller(agent_over(memory), llm=model) as caller:
        memory.attach(caller.session)
        for turn, opening in enumerate(("I wanted to ask about Monday", "I thought about Tuesday"), start=1):
            await caller.says(opening, *segments)
            await caller.hears_reply()
            assert len(store.called("search")) == turn * MOST_SEARCHES
    await memory.aclose()
    # LiveKit makes three preemptive attempts at a turn, and the reply itself.
    assert len(model.seen) == 2 * (3 + 1)
    assert "Plays the viola." in model.seen[-1].text


async def test_an_early_search_that_fails_leaves_the_finished_words_theirs() -> None:
    """Design 4.4: one failed request does not cost the turn its memory while there is time."""
    store = store_with().script(
        "search",
        Fail(ServiceUnavailable("search answered 503", status=503), after=1.9),
        Answer([Hit("The dog is called Rex.", 0.9, memory_id="m")], after=0.2),
    )
    memory = memory_over(store, mirror=False, mode="query")
    model = ScriptedLLM(echo)
    async with ScriptedCaller(agent_over(memory), llm=model) as caller:
        memory.attach(caller.session)
        await caller.says("my brown dog then")
        await caller.hears_reply()
    await memory.aclose()
    assert "The dog is called Rex." in model.seen[-1].text
    store.verify()


async def test_words_of_a_discarded_turn_use_up_no_search_of_the_next() -> None:
    """Case C6: a turn that is stopped is never committed; the next one is searched for as any other."""
    store = store_with().always("search", Answer([Hit("In the shed.", 0.9, memory_id="m")], after=0.1))
    memory = memory_over(store, mirror=False, mode="query")

    class Picky(SupermemoryAgent):
        async def on_user_turn_completed(self, turn_ctx: ChatContext, new_message: llm.ChatMessage) -> None:
            if "nonsense" in (new_message.text_content or ""):
                raise StopResponse

    model = ScriptedLLM(echo)
    async with ScriptedCaller(Picky(memory, instructions="Be kind."), llm=model) as caller:
        memory.attach(caller.session)
        await caller.says("some nonsense of purple", "bicycles and trumpets")
        await asyncio.sleep(3)
        searched = len(store.called("search"))
        await caller.says("where does my brown dog sleep at night nowadays")
        await caller.hears_reply()
    await memory.aclose()
    assert searched == 2
    assert len(store.called("search")) > searched
    assert "In the shed." in model.seen[-1].text


async def test_the_last_words_find_their_hits_here_already(
    clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Decision 9: the words so far are searched here while the caller speaks; the same words need no search again."""
    store = store_with("Likes tea in the morning.", "Plays the viola.")
    memory = memory_over(store)
    model = ScriptedLLM(echo)
    await loaded(memory, clock)
    mirror = memory._recall._mirror  # pyright: ignore[reportPrivateUsage]
    assert mirror is not None
    asked: list[str] = []
    search = mirror.search

    async def noted(query: str, *, limit: int, threshold: float) -> list[Hit]:
        asked.append(query)
        return await search(query, limit=limit, threshold=threshold)

    monkeypatch.setattr(mirror, "search", noted)
    async with ScriptedCaller(agent_over(memory), llm=model) as caller:
        memory.attach(caller.session)
        await caller.says("what do I drink in the morning")
        await caller.hears_reply()
        assert asked.count("what do I drink in the morning") == 1
        assert asked[-1] == "what do I drink in the morning"
        await caller.says("which instrument", "do I play")
        await caller.hears_reply()
    await memory.aclose()
    assert "Likes tea in the morning." in model.seen[0].text
    assert "Plays the viola." in model.seen[-1].text
    assert "which instrument do I play" in asked


async def test_what_is_forgotten_while_the_caller_speaks_is_not_in_what_was_searched_ahead(
    clock: VirtualClock,
) -> None:
    """Design 4.3: what is forgotten in this call shows at once."""
    store = store_with("Lives in Lisbon.", "Has a dog called Rex.")
    store.hits[TAG] = [Hit("Lives in Lisbon.", 0.9, memory_id="mem-0")]
    memory = memory_over(store)
    model = ScriptedLLM(echo)
    await loaded(memory, clock)
    async with ScriptedCaller(agent_over(memory), llm=model) as caller:
        memory.attach(caller.session)
        await caller.begins("where do I live")
        await asyncio.sleep(0.2)  # the last of these words are heard
        assert "Forgotten" in await memory.forget(memory_id="mem-0")
        await caller.pauses("where do I live")
        await caller.hears_reply()
    await memory.aclose()
    assert "Lives in Lisbon." not in model.seen[-1].text
