"""The test kit on a real `AgentSession`: what LiveKit does with the calls that the kit makes."""

# LiveKit's event emitter and its generic models are partly untyped
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false, reportUnknownArgumentType=false

from __future__ import annotations

import asyncio
import importlib.metadata
from collections.abc import AsyncIterable
from typing import Any

import pytest
from livekit.agents import Agent, ModelSettings, llm

from supermemory_livekit.testing import (
    ScriptedCaller,
    ScriptedLLM,
    ScriptedRealtimeModel,
    SeenItem,
    snapshot,
)
from tests.support.clock import VirtualClock
from tests.support.sessions import say, started

VERSION = tuple(int(part) for part in importlib.metadata.version("livekit-agents").split(".")[:2])

needs_last_words = pytest.mark.skipif(
    VERSION < (1, 7), reason="LiveKit 1.6 cancels the commit of the last words when a session closes"
)

STORY = "once upon a time there was a king who had three daughters"


class NoteTaker(Agent):
    """Inserts a note right before the caller's words, on the context of the turn alone."""

    def __init__(self, *, spoil: bool = False) -> None:
        super().__init__(instructions="Be kind.")
        self.spoil = spoil
        self.completed: list[str] = []

    async def llm_node(
        self, chat_ctx: llm.ChatContext, tools: list[llm.Tool], model_settings: ModelSettings
    ) -> AsyncIterable[llm.ChatChunk]:
        note = llm.ChatMessage(id="note", role="system", content=["a note"])
        chat_ctx.items.insert(len(chat_ctx.items) - 1, note)
        async for chunk in Agent.default.llm_node(self, chat_ctx, tools, model_settings):
            assert isinstance(chunk, llm.ChatChunk)
            yield chunk

    async def on_user_turn_completed(self, turn_ctx: llm.ChatContext, new_message: llm.ChatMessage) -> None:
        self.completed.append(new_message.text_content or "")
        if self.spoil:
            turn_ctx.add_message(role="system", content="changed in between")


class Listener(Agent):
    """Does something when the caller's turn is over."""

    def __init__(self, does: str = "nothing") -> None:
        super().__init__(instructions="Be kind.")
        self.does = does
        self.completed: list[str] = []

    async def on_user_turn_completed(self, turn_ctx: llm.ChatContext, new_message: llm.ChatMessage) -> None:
        self.completed.append(new_message.text_content or "")
        if self.does == "edit the turn":
            turn_ctx.add_message(role="system", content="a note")
        elif self.does == "push context":
            context = self.chat_ctx.copy()
            context.add_message(role="system", content="a note")
            await self.update_chat_ctx(context)
        elif self.does == "push instructions":
            await self.update_instructions("Be kind. And: a note")


def interruptions(caller: ScriptedCaller) -> list[tuple[str, bool]]:
    return [
        (item.text_content or "", item.interrupted)
        for item in caller.session.history.items
        if item.type == "message" and item.role == "assistant"
    ]


async def test_a_preemptive_reply_is_adopted_when_only_the_llm_node_inserts() -> None:
    """Reference, section 2: an insertion on the copy that the node gets does not invalidate the attempt."""
    agent, model = NoteTaker(), ScriptedLLM("your name is Bob", first_token=0.1)
    async with ScriptedCaller(agent, llm=model) as caller:
        await caller.says("what is my name")
        assert await caller.hears_reply() == "your name is Bob"
        assert caller.conversation() == [("user", "what is my name"), ("assistant", "your name is Bob")]
    assert agent.completed == ["what is my name"]
    assert len(model.seen) == 1
    assert [(item.role, item.text) for item in model.last.items][-2:] == [
        ("system", "a note"),
        ("user", "what is my name"),
    ]


async def test_a_preemptive_reply_is_thrown_away_when_the_turn_is_changed_in_between() -> None:
    """Reference, section 2: shows that the test above can fail."""
    model = ScriptedLLM("your name is Bob", first_token=0.1)
    async with ScriptedCaller(NoteTaker(spoil=True), llm=model) as caller:
        await caller.says("what is my name")
        await caller.hears_reply()
    assert len(model.seen) == 2
    users = [[item.id for item in seen.items if item.role == "user"] for seen in model.seen]
    assert users[0] != users[1]


async def test_preemptive_generation_starts_with_the_final_transcript_and_can_be_switched_off(
    clock: VirtualClock,
) -> None:
    """Reference, sections 2 and 3: the lead is the endpointing delay less the delay of recognition."""
    lead: dict[bool, float] = {}
    for preemptive in (True, False):
        model = ScriptedLLM("yes")
        agent = Listener()
        async with ScriptedCaller(agent, llm=model, preemptive=preemptive, endpointing=1.0) as caller:
            begun = asyncio.get_running_loop().time()
            await caller.says("one two")
            await caller.hears_reply()
        lead[preemptive] = model.seen[0].at - begun
    assert lead[True] == pytest.approx(0.6 + 0.15, abs=0.01)
    assert lead[False] == pytest.approx(0.6 + 1.0, abs=0.01)


async def test_two_final_transcripts_are_one_turn() -> None:
    """Case L7: the attempt over the first words is superseded, the whole turn is committed once."""
    model = ScriptedLLM("your name is Bob", first_token=5.0)
    async with ScriptedCaller(Agent(instructions="Be kind."), llm=model) as caller:
        await caller.says("what is", "my name")
        await caller.hears_reply()
        assert caller.conversation()[0] == ("user", "what is my name")
    assert [(seen.last_user, seen.cancelled) for seen in model.seen] == [
        ("what is", True),
        ("what is my name", False),
    ]


async def test_segments_further_apart_than_the_endpointing_delay_are_two_turns() -> None:
    """Reference, section 3."""
    model = ScriptedLLM("mhm")
    async with ScriptedCaller(Agent(instructions="Be kind."), llm=model) as caller:
        await caller.says("what is", "my name", pause=3.0)
        await caller.hears_reply()
        assert [text for role, text in caller.conversation() if role == "user"] == ["what is", "my name"]


async def test_an_interrupted_reply_is_kept_as_far_as_it_was_heard() -> None:
    """Design 5.1, reference section 4: only what was played is committed, and it is marked."""
    async with ScriptedCaller(Agent(instructions="Be kind."), llm=ScriptedLLM([STORY, "ok"])) as caller:
        await caller.says("tell me a story")
        await caller.hears_beginning()
        await asyncio.sleep(0.85)
        await caller.says("please stop it")
        await caller.hears_reply()
        # it went on for half a second, until the voice was long enough to interrupt
        assert interruptions(caller) == [("once upon a time", True), ("ok", False)]


async def test_a_reply_interrupted_before_its_first_sound_leaves_no_item() -> None:
    """Case C3: user, user, assistant."""
    model = ScriptedLLM([STORY, "ok"], first_token=5.0)
    async with ScriptedCaller(Agent(instructions="Be kind."), llm=model, preemptive=False) as caller:
        await caller.says("tell me a story")
        await asyncio.sleep(1.0)
        await caller.says("no stop please")
        await caller.hears_reply()
        assert [role for role, _ in caller.conversation()] == ["user", "user", "assistant"]


@needs_last_words
async def test_hanging_up_in_the_middle_of_a_sentence_commits_what_was_understood(
    clock: VirtualClock,
) -> None:
    """Case C2: the words come between the disconnect and the end, after the wait for a final transcript."""
    items: list[tuple[str, float]] = []
    async with ScriptedCaller(Agent(instructions="Be kind."), llm=ScriptedLLM("ok")) as caller:
        await caller.begins("my new address is")
        left = clock.elapsed
        caller.session.on(
            "conversation_item_added",
            lambda event: items.append((event.item.text_content, clock.elapsed - left)),
        )
        await caller.hangs_up()
    assert [text for text, _ in items] == ["my new address is"]
    assert items[0][1] == pytest.approx(2.0, abs=0.01)


@needs_last_words
async def test_hanging_up_right_after_the_last_word_waits_for_the_final_transcript(
    clock: VirtualClock,
) -> None:
    """Case C2: the final words arrive while the session closes."""
    async with ScriptedCaller(Agent(instructions="Be kind."), llm=ScriptedLLM("ok")) as caller:
        await caller.begins("my new address")
        closing = asyncio.create_task(caller.hangs_up())
        await caller.pauses("my new address is 5 Main Street")
        await closing
        assert caller.conversation() == [("user", "my new address is 5 Main Street")]


async def test_hanging_up_while_the_agent_speaks_keeps_the_heard_part() -> None:
    """Case C1."""
    async with ScriptedCaller(Agent(instructions="Be kind."), llm=ScriptedLLM(STORY)) as caller:
        await caller.says("tell me a story")
        await caller.hears_beginning()
        await asyncio.sleep(0.65)
        await caller.hangs_up()
        assert caller.conversation() == [("user", "tell me a story"), ("assistant", "once upon")]
        assert interruptions(caller) == [("once upon", True)]


@pytest.mark.parametrize(
    ("does", "in_context", "in_instructions"),
    [
        ("nothing", False, False),
        ("edit the turn", False, False),
        ("push context", True, False),
        ("push instructions", False, True),
    ],
)
async def test_a_realtime_model_sees_what_is_pushed_and_no_edit_of_the_turn(
    does: str, in_context: bool, in_instructions: bool
) -> None:
    """Reference, section 5: with client-side turn taking the hook runs; edits of turn_ctx are lost."""
    agent, model = Listener(does), ScriptedRealtimeModel("hello Bob")
    async with ScriptedCaller(agent, llm=model) as caller:
        await caller.says("what is my name")
        assert await caller.hears_reply() == "hello Bob"
    assert agent.completed == ["what is my name"]
    assert model.current.committed == 1
    (request,) = model.current.requests
    assert ("a note" in " ".join(item.text for item in request.items)) is in_context
    assert ("a note" in (request.instructions or "")) is in_instructions
    assert model.current.closed


async def test_a_realtime_model_with_its_own_turn_detection_replies_without_the_hook() -> None:
    """Reference, section 5, and case C4: the hook is not called; its transcript becomes the caller's item."""
    agent = Listener()
    model = ScriptedRealtimeModel("hello Bob", turn_detection=True, user_transcription=True)
    options: dict[str, Any] = {"turn_handling": {"turn_detection": "realtime_llm"}}
    async with ScriptedCaller(agent, llm=model, transcribes=False, **options) as caller:
        model.current.takes_turn("what is my name")
        await caller.hears_reply()
        assert sorted(caller.conversation()) == [("assistant", "hello Bob"), ("user", "what is my name")]
    assert agent.completed == []


async def test_a_realtime_model_that_cannot_change_says_so() -> None:
    """Design 4.8: capabilities decide what may be pushed."""
    agent = Listener()
    model = ScriptedRealtimeModel(mutable_chat_context=False, mutable_instructions=False)
    async with started(agent, llm=model):
        with pytest.raises(llm.RealtimeError):
            await agent.update_instructions("more")
        with pytest.raises(llm.RealtimeError):
            await agent.update_chat_ctx(agent.chat_ctx.copy())
    assert model.current.instructions == "Be kind."


async def test_a_text_turn_of_a_realtime_model_reaches_it_as_context() -> None:
    """Reference, section 5: text turns never call the hook."""
    agent, model = Listener(), ScriptedRealtimeModel(lambda context: f"{len(context.items)} items")
    async with started(agent, llm=model) as session:
        assert await say(session, "hello") == "1 items"
    assert agent.completed == []
    assert [item.text for item in model.current.requests[0].items] == ["hello"]


async def test_a_snapshot_does_not_follow_later_changes() -> None:
    """Test kit: contexts are compared with what they were."""
    message = llm.ChatMessage(id="m", role="user", content=["before"], created_at=1.0)
    seen = snapshot([message])
    message.content.append("after")
    assert seen == (SeenItem("m", "message", "user", "before", None, 1.0),)


async def test_a_long_call_takes_no_real_time(clock: VirtualClock) -> None:
    """Style 6: an hour of silence is no reason to wait."""
    async with ScriptedCaller(Agent(instructions="Be kind."), llm=ScriptedLLM("ok")) as caller:
        await asyncio.sleep(120)
        await caller.says("still there?")
        assert await caller.hears_reply() == "ok"
    assert clock.elapsed > 120
