"""What a call shows of its memory: spans under LiveKit's own, metrics, and events for one's own code."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Generator
from typing import Any

import pytest
from livekit.agents import ChatContext, llm
from opentelemetry.trace import SpanKind

from supermemory_livekit import (
    Degraded,
    InputParams,
    Recalled,
    Restored,
    ServiceUnavailable,
    Stored,
    SupermemoryAgent,
    SupermemoryLiveKit,
)
from supermemory_livekit.observability.spans import CAPTURE_CONTENT
from supermemory_livekit.recall.recall import Recall
from supermemory_livekit.store import Hit, Profile, StoredMemory
from supermemory_livekit.telemetry import Stats
from supermemory_livekit.testing import Fail, Hang, ScriptedLLM, ScriptedStore, ToolCall, Work
from tests.support.clock import VirtualClock
from tests.support.sessions import say, started
from tests.support.telemetry import Measured, Traced, traced

TAG = "caller-1"
SECRETS = ("zanzibar", TAG, "room-1")


@pytest.fixture(autouse=True)
def _no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUPERMEMORY_LIVEKIT_CACHE", "off")


@pytest.fixture
def spans() -> Generator[Traced]:
    with traced() as spans:
        yield spans


def knowing(*facts: str) -> ScriptedStore:
    store = ScriptedStore()
    store.hits[TAG] = [Hit(fact, 0.8, memory_id=f"mem-{index}") for index, fact in enumerate(facts)]
    store.stored[TAG] = [StoredMemory(f"mem-{index}", fact) for index, fact in enumerate(facts)]
    store.profiles[TAG] = Profile(static=("Is called Ana.",))
    return store


def memory_over(store: ScriptedStore, **params: Any) -> SupermemoryLiveKit:
    return SupermemoryLiveKit.from_store(
        store, container_tag=TAG, session_id="room-1", params=InputParams(**{"mirror": False, **params})
    )


def agent_over(memory: SupermemoryLiveKit) -> SupermemoryAgent:
    return SupermemoryAgent(memory, instructions="Be kind.")


def yes(context: ChatContext, tools: list[llm.Tool]) -> str:
    return "Yes."


class Listener:
    """Keeps what it hears of a memory."""

    def __init__(self, memory: SupermemoryLiveKit) -> None:
        self.heard: list[Any] = []
        for name in ("recalled", "stored", "degraded", "restored"):
            memory.on(name, self.hear)

    async def hear(self, event: Any) -> None:
        self.heard.append(event)

    def of(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.heard if isinstance(event, kind)]


# -- spans


async def test_a_recall_is_a_span_under_llm_node_that_ends_before_the_model_is_asked(spans: Traced) -> None:
    """Issue: search_memory nested under llm_node, and no span held across a yield."""
    memory = memory_over(knowing("Likes zanzibar tea."))
    async with started(agent_over(memory), llm=ScriptedLLM(yes)) as session:
        memory.attach(session)
        await say(session, "What do I drink in zanzibar?")
    await memory.aclose()
    (recall,) = spans.ours("recall")
    assert recall.name == "search_memory supermemory"
    assert recall.kind is SpanKind.INTERNAL
    assert dict(recall.attributes or {}) | {
        "gen_ai.operation.name": "search_memory",
        "gen_ai.provider.name": "supermemory",
        "supermemory.part": "recall",
        "supermemory.recall.outcome": "found",
        "supermemory.recall.hits": 1,
        "supermemory.recall.sources": ("service",),
    } == dict(recall.attributes or {})
    node = spans.parent(recall)
    assert node.name == "llm_node"
    (asked,) = [span for span in spans.every if span.name == "llm_request"]
    assert spans.parent(asked).context.span_id == node.context.span_id
    assert recall.end_time is not None
    assert asked.start_time is not None
    assert recall.end_time <= asked.start_time
    assert not [span for span in spans.every if span.parent and span.parent.span_id == recall.context.span_id]


async def test_what_is_stored_remembered_forgotten_and_erased_is_a_span_of_its_operation(
    spans: Traced,
) -> None:
    """Issue: create_memory and delete_memory, for the call and for the tools, under the tool that was called."""

    def reply(context: ChatContext, tools: list[llm.Tool]) -> Any:
        last = context.items[-1]
        if last.type != "message" or "Hello" in (last.text_content or ""):
            return "Done."
        return (
            ToolCall("remember", {"memory": "Has a zanzibar parrot."}),
            ToolCall("search_memories", {"query": "zanzibar"}),
            ToolCall("forget", {"memory_id": "mem-0"}),
        )

    memory = memory_over(knowing("Likes zanzibar tea."))
    async with started(agent_over(memory), llm=ScriptedLLM(reply)) as session:
        memory.attach(session)
        await say(session, "Hello, it is me.")
        await asyncio.sleep(1)  # virtual: the write that follows the reply
        await say(session, "Remember and forget.")
        await memory.erase()
    await memory.aclose()
    operations = {
        str((span.attributes or {})["supermemory.part"]): (span.attributes or {})["gen_ai.operation.name"]
        for span in spans.ours()
    }
    assert operations == {
        "recall": "search_memory",
        "search_memories": "search_memory",
        "remember": "create_memory",
        "capture": "create_memory",
        "forget": "delete_memory",
        "erase": "delete_memory",
    }
    for tool in ("search_memories", "remember", "forget"):
        (span,) = spans.ours(tool)
        assert spans.parent(span).name == "function_tool"
        assert span.kind is SpanKind.CLIENT


@pytest.mark.parametrize("wanted", ["", "true"])
async def test_content_is_in_a_span_when_the_operator_wants_it_and_in_the_fields_for_it_alone(
    wanted: str, spans: Traced, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue: no secret outside the `gen_ai.memory` fields; the GenAI conventions leave content to an opt-in."""
    monkeypatch.setenv(CAPTURE_CONTENT, wanted)
    memory = memory_over(knowing("Likes zanzibar tea."))
    async with started(agent_over(memory), llm=ScriptedLLM(yes)) as session:
        memory.attach(session)
        await say(session, "What do I drink in zanzibar?")
        await memory.remember("Has a zanzibar parrot.")
    await memory.aclose()
    (recall,) = spans.ours("recall")
    content = {key: value for key, value in (recall.attributes or {}).items() if "gen_ai.memory" in key}
    if wanted:
        assert content["gen_ai.memory.query.text"] == "What do I drink in zanzibar?"
        records = json.loads(str(content["gen_ai.memory.records"]))
        assert records == [{"id": "mem-0", "content": "Likes zanzibar tea.", "score": 0.8}]
    else:
        assert content == {}
    for span in spans.ours():
        others = {key: value for key, value in (span.attributes or {}).items() if key not in content}
        shown = json.dumps([span.name, repr(others), repr(span.events), span.status.description])
        assert not any(secret in shown for secret in SECRETS)


# -- metrics


async def test_a_call_is_measured_and_leaves_no_turn_open() -> None:
    """Issue: recall latency and outcome, unwritten turns, write latency."""
    measured = Measured()
    store = knowing("Likes tea.")
    memory = memory_over(store)
    async with started(agent_over(memory), llm=ScriptedLLM(yes)) as session:
        memory.attach(session)
        await say(session, "What do I drink?")
        await asyncio.sleep(1)
        store.always("append", Hang())
        await say(session, "What else do I drink?")
        assert measured.change("supermemory.capture.unwritten") == 2
        store.always("append", Work())
    await memory.aclose()
    assert measured.change("supermemory.recall.duration", outcome="found", source="service") == 2
    assert measured.change("supermemory.capture.write.duration", outcome="ok") >= 2
    assert measured.change("supermemory.capture.turns", outcome="written") == 4
    assert measured.change("supermemory.capture.unwritten") == 0


async def test_turns_that_the_service_did_not_take_are_counted_as_left() -> None:
    """Issue: unwritten turns; a call that is over has none, whatever became of them."""
    measured = Measured()
    store = knowing()
    store.always("append", Fail(ServiceUnavailable("append answered 503", status=503)))
    memory = memory_over(store)
    async with started(agent_over(memory), llm=ScriptedLLM(yes)) as session:
        memory.attach(session)
        await say(session, "Hello there, it is me.")
    await memory.aclose()
    await memory.aclose()
    assert measured.change("supermemory.capture.turns", outcome="left") == 2
    assert measured.change("supermemory.capture.unwritten") == 0
    failed = {"outcome": "failed", "error.type": "ServiceUnavailable"}
    assert measured.change("supermemory.capture.write.duration", **failed) >= 1
    outage = {"part": "capture", "error.type": "ServiceUnavailable"}
    assert measured.change("supermemory.outages", **outage) == 1


async def test_the_breaker_is_open_while_no_reply_waits_and_closed_when_the_call_ends() -> None:
    """Issue: breaker state. Case: a gauge that is never taken back counts calls that are long over."""
    measured = Measured()
    store = knowing("Likes tea.")
    memory = memory_over(store, mode="query")
    async with started(agent_over(memory), llm=ScriptedLLM(yes)) as session:
        memory.attach(session)
        store.always("search", Hang())
        store.always("profile", Hang())
        await say(session, "What do I drink in the morning?")
        assert measured.change("supermemory.breaker.open", request="search") == 1
        await say(session, "What do I eat in the evening?")
    await memory.aclose()
    assert measured.change("supermemory.recall.duration", outcome="late", source="none") == 1
    assert measured.change("supermemory.recall.duration", outcome="skipped", source="none") == 1
    assert measured.change("supermemory.breaker.open", request="search") == 0


async def test_no_label_names_a_caller_a_call_or_what_was_said() -> None:
    """Issue: container tags and keys are never metric labels. Everything is used, well and badly."""
    measured = Measured()
    store = knowing("Likes zanzibar tea.")
    memory = memory_over(store)
    async with started(agent_over(memory), llm=ScriptedLLM(yes)) as session:
        memory.attach(session)
        await say(session, "What do I drink in zanzibar?")
        await memory.remember("Has a zanzibar parrot.")
        for operation in ("search", "profile", "append", "remember"):
            store.always(operation, Fail(RuntimeError(f"{SECRETS}")))  # type: ignore[arg-type]
        await say(session, "Where am I in zanzibar?")
        await memory.remember("Has a zanzibar cat.")
        await memory.erase()
    await memory.aclose()
    used = {name for name, _ in measured.changes()}
    assert {"supermemory.recall.duration", "supermemory.tool.duration", "supermemory.outages"} <= used
    assert not any(secret in Measured.text() for secret in SECRETS)


async def test_a_search_begun_while_the_caller_speaks_is_told_from_one_that_came_after() -> None:
    """Issue: early-use rate."""
    measured = Measured()
    recall = Recall(knowing("Likes tea in the morning."), InputParams(mirror=False, mode="query"), Stats())
    recall.bind(TAG)
    recall.caller_says("what do I drink in the morning", final=False)
    await asyncio.sleep(1)
    found = await recall.for_message("item-1", "What do I drink in the morning?")
    await recall.aclose()
    assert [hit.text for hit in found.hits] == ["Likes tea in the morning."]
    assert measured.change("supermemory.recall.duration", outcome="found", source="early") == 1


# -- events


async def test_ones_own_code_hears_of_recalls_and_of_what_is_stored(clock: VirtualClock) -> None:
    """Issue: memory.on("recalled") and memory.on("stored")."""
    memory = memory_over(knowing("Likes tea."))
    listener = Listener(memory)
    async with started(agent_over(memory), llm=ScriptedLLM(yes)) as session:
        memory.attach(session)
        await say(session, "What do I drink?")
        users = [item for item in session.history.items if item.type == "message" and item.role == "user"]
    await memory.aclose()
    (recalled,) = listener.of(Recalled)
    assert recalled == Recalled(users[0].id, "found", 1, ("service",), recalled.duration_s, recalled.waited_s)
    assert 0 <= recalled.waited_s <= recalled.duration_s < 2
    told = listener.of(Stored)
    assert {event.document_id for event in told} == {"lk-room-1"}
    assert sum(event.turns for event in told) == 2
    assert not listener.of(Degraded)


async def test_turns_that_were_stored_although_nobody_said_so_are_told_without_a_time() -> None:
    """Design 4.4: a write with an unclear end is settled by reading the document back."""
    store = knowing()
    store.script("append", Fail(ServiceUnavailable("no answer", uncertain=True), committed=True))
    memory = memory_over(store)
    listener = Listener(memory)
    async with started(agent_over(memory), llm=ScriptedLLM(yes)) as session:
        memory.attach(session)
        await say(session, "Hello there, it is me.")
        await asyncio.sleep(10)
    await memory.aclose()
    assert listener.of(Stored) == [Stored("lk-room-1", 2, None)]
    assert [event.what for event in listener.of(Restored)] == ["capture"]


async def test_attempts_and_tool_follow_ups_of_a_message_are_one_event() -> None:
    """Design 4.2: each user message is recalled once."""

    def reply(context: ChatContext, tools: list[llm.Tool]) -> Any:
        used = context.items[-1].type == "function_call_output"
        return "Done." if used else ToolCall("search_memories", {"query": "tea"})

    memory = memory_over(knowing("Likes tea."))
    listener = Listener(memory)
    model = ScriptedLLM(reply)
    async with started(agent_over(memory), llm=model) as session:
        memory.attach(session)
        await say(session, "What do I drink?")
    await memory.aclose()
    assert len(model.seen) == 2
    assert len(listener.of(Recalled)) == 1


async def test_an_outage_is_told_once_and_so_is_its_end(clock: VirtualClock) -> None:
    """Issue: memory.on("degraded"); as often as the log says it, and "restored" when it is over."""
    store = knowing("Likes tea.")
    memory = memory_over(store)
    listener = Listener(memory)
    async with started(agent_over(memory), llm=ScriptedLLM(yes)) as session:
        memory.attach(session)
        store.always("search", Fail(ServiceUnavailable("search answered 503", status=503)))
        await say(session, "What do I drink in the morning?")
        await say(session, "What do I eat in the evening?")
        assert [(event.what, event.reason) for event in listener.of(Degraded)] == [
            ("search", "ServiceUnavailable")
        ]
        assert not listener.of(Restored)
        store.always("search", Work())
        await say(session, "Which tea do I like at noon?")
        await say(session, "Which coffee do I like at night?")
    await memory.aclose()
    (begun,) = listener.of(Degraded)
    assert listener.of(Restored) == [Restored("search", begun.since)]


async def test_a_reply_of_the_mirror_is_told_as_such(clock: VirtualClock) -> None:
    """Design 4.3: where hits come from shows whether the memory was here before the words were."""
    measured = Measured()
    memory = memory_over(knowing("Likes tea in the morning."), mirror=True)
    listener = Listener(memory)
    await memory.preload(ChatContext())
    for _ in range(200):
        if memory._recall._all_here():
            break
        await asyncio.sleep(0.05)
    async with started(agent_over(memory), llm=ScriptedLLM(yes)) as session:
        memory.attach(session)
        await say(session, "What do I drink in the morning?")
    await memory.aclose()
    (recalled,) = listener.of(Recalled)
    assert (recalled.outcome, recalled.sources) == ("found", ("mirror",))
    assert measured.change("supermemory.recall.duration", outcome="found", source="mirror") == 1


async def test_hits_that_the_model_has_before_it_already_are_no_find(clock: VirtualClock) -> None:
    """Decision 18: `found` and `hits` tell what the model was shown; a call finds its own words."""
    store = ScriptedStore()
    memory = memory_over(store)
    listener = Listener(memory)
    async with started(agent_over(memory), llm=ScriptedLLM(yes)) as session:
        memory.attach(session)
        await say(session, "I would like a new horn.")
        await asyncio.sleep(1)
        store.hits[TAG] = [Hit(store.document(TAG, "lk-room-1") or "", 0.9)]
        await say(session, "And a second horn please.")
    await memory.aclose()
    assert [(recalled.outcome, recalled.hits) for recalled in listener.of(Recalled)] == [
        ("empty", 0),
        ("empty", 0),
    ]


async def test_an_outage_of_the_search_is_over_when_the_mirror_needs_it_no_more(clock: VirtualClock) -> None:
    """Decision 18: "restored" when it is over; the search is not asked again, so nothing else would end it."""
    store = knowing("Likes tea in the morning.").script(
        "search", Fail(ServiceUnavailable("search answered 503", status=503))
    )
    store.script("memories", Work(after=1.0))
    memory = memory_over(store, mirror=True)
    listener = Listener(memory)
    async with started(agent_over(memory), llm=ScriptedLLM(yes)) as session:
        memory.attach(session)
        await say(session, "What do I drink in the morning?")
        for _ in range(200):
            if memory._recall._all_here():
                break
            await asyncio.sleep(0.05)
        await say(session, "What do I drink in the morning, then?")
    await memory.aclose()
    (begun,) = [outage for outage in listener.of(Degraded) if outage.what == "search"]
    assert Restored("search", begun.since) in listener.of(Restored)
