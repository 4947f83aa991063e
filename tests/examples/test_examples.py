"""What each example shows is what happens, with the embedded service and scripted models."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from livekit import rtc
from livekit.agents import Agent, AgentSession, ChatContext, llm

from supermemory_livekit.recall.render import FENCE_OPEN
from supermemory_livekit.scope import container_tag
from supermemory_livekit.testing import (
    Reply,
    ScriptedCaller,
    ScriptedLLM,
    ScriptedRealtimeModel,
    ToolCall,
)
from tests.examples.calls import EXAMPLES, Caller, call, example, knows, on_the_line, stored, text_session
from tests.jobs import quickstart
from tests.support.clock import VirtualClock

NAMES = sorted(path.stem for path in EXAMPLES.glob("*.py"))


@pytest.mark.parametrize("name", [name for name in NAMES if name != "quickstart"])
async def test_the_session_of_an_example_takes_its_models(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Style 11: documentation is executed; here up to the models in the cloud, which a test must not ask."""
    for key in ("LIVEKIT_API_KEY", "LIVEKIT_API_SECRET", "OPENAI_API_KEY"):
        monkeypatch.setenv(key, "unused" * 6)
    session: AgentSession[None] = example(name).create_session()
    await session.aclose()


async def test_the_quick_start_remembers_by_the_tag_in_its_metadata() -> None:
    """Specification, "Quick start": bind by metadata, preload before connect, attach, reply with memory."""
    metadata = json.dumps({"container_tag": "user_7"})
    replies: list[str] = []
    for room, words in (("room-1", "I live in Porto."), ("room-2", "where do I live")):
        async with on_the_line(quickstart, None, room=room, metadata=metadata) as line:
            replies.append(await line.says(words))
    assert replies == ["Noted.", "You live in Porto."]
    assert await stored("user_7", "room-1") == ["Caller: I live in Porto.", "Agent: Noted."]
    assert await stored("ana", "room-1") == []


@pytest.mark.parametrize("known", [True, False])
async def test_the_greeting_uses_the_name_from_memory(known: bool) -> None:
    """Specification: a greeting that uses the caller's memory; preload puts the profile into the first turn."""
    if known:
        await knows("ana", "My name is Ana.")

    def greet(context: ChatContext, tools: list[llm.Tool]) -> Reply:
        shown = "\n".join(item.text_content or "" for item in context.items if item.type == "message")
        return "Welcome back, Ana!" if "Ana" in shown else "Welcome! Who is speaking?"

    model = ScriptedLLM(greet)
    async with on_the_line(example("greeting_agent"), lambda: text_session(model)) as line:
        greeting = await line.hears()
    assert greeting == ("Welcome back, Ana!" if known else "Welcome! Who is speaking?")
    assert await stored("ana", "room-1") == [f"Agent: {greeting}"]


async def test_an_agent_of_ones_own_recalls_and_has_the_tools() -> None:
    """Specification, "Your own agent": pass the tools in, and recall from llm_node."""
    await knows("ana", "Is allergic to peanuts.")
    model = ScriptedLLM("No peanuts.")
    assert await call(example("own_agent"), model, ["What can I not eat?"]) == ["No peanuts."]
    assert "allergic to peanuts" in model.last.text
    assert model.last.text.count(FENCE_OPEN) == 1
    assert model.last.tools == ("search_memories", "remember", "forget")
    assert await stored("ana", "room-1") == ["Caller: What can I not eat?", "Agent: No peanuts."]


async def test_a_realtime_model_is_shown_what_is_known_before_it_replies(clock: VirtualClock) -> None:
    """Specification: realtime models skip llm_node; the agent picks the right hook."""
    await knows("ana", "Is allergic to peanuts.")
    model = ScriptedRealtimeModel("no peanuts", user_transcription=True)
    caller = ScriptedCaller(Agent(instructions="The example brings its own."), llm=model)

    def session_on_the_phone() -> AgentSession[None]:
        session = caller.session
        session.input.audio = caller.microphone
        session.output.audio = caller.loudspeaker
        session.output.transcription = caller.subtitles
        return session

    async with on_the_line(example("realtime_agent"), session_on_the_phone):
        await caller.says("what can I not eat")
        assert await caller.hears_reply() == "no peanuts"
        model.current.hears("what can I not eat")
        (request,) = model.current.requests
        caller.microphone.close()
    assert "allergic to peanuts" in request.text
    assert sorted(await stored("ana", "room-1")) == ["Agent: no peanuts", "Caller: what can I not eat"]


async def test_every_agent_of_a_handoff_recalls_and_the_call_is_one_document() -> None:
    """Case L5 and the specification's one document per call, over a handoff."""
    await knows("ana", "Is called Ana and lives in Porto.")

    def reply(context: ChatContext, tools: list[llm.Tool]) -> Reply:
        if context.items[-1].type == "function_call_output":
            return "One moment."
        said = [item for item in context.items if item.type == "message"]
        if any("about invoices" in (item.text_content or "") for item in said if item.role == "system"):
            return "Your invoice is paid."
        questions = [item.text_content or "" for item in said if item.role == "user"]
        return ToolCall("to_billing") if "bill" in questions[-1] else "Hello."

    model = ScriptedLLM(reply)
    says = ["Good morning.", "It is about my bill.", "Is it paid?"]
    replies = await call(example("handoffs"), model, says)
    assert replies[0] == "Hello."
    assert replies[-1] == "Your invoice is paid."
    answered = {seen.last_user: seen for seen in model.seen}
    for words, instructions in ((says[0], "find out what they need"), (says[2], "questions about invoices")):
        assert instructions in answered[words].text
        assert "lives in Porto" in answered[words].text
        assert answered[words].text.count(FENCE_OPEN) >= 1
    lines = await stored("ana", "room-1")
    assert [line for line in lines if line.startswith("Caller: ")] == [f"Caller: {words}" for words in says]
    assert lines[-1] == "Agent: Your invoice is paid."
    assert len(lines) == len(says) + sum(1 for line in lines if line.startswith("Agent: "))


SIP = rtc.ParticipantKind.PARTICIPANT_KIND_SIP
NUMBER = "+15550100"


@pytest.mark.parametrize(
    ("metadata", "attributes", "tag"),
    [
        ('{"container_tag": "customer_1"}', {"sip.phoneNumber": NUMBER}, "customer_1"),
        ('{"container_tag": "customer_1"}', {"sip.phoneNumber": "anonymous"}, "customer_1"),
        ("", {"sip.phoneNumber": NUMBER, "supermemory_container_tag": "customer_2"}, "customer_2"),
        ("", {"supermemory_container_tag": "customer_2"}, "customer_2"),
        ("", {"sip.phoneNumber": NUMBER}, container_tag(f"sip_{NUMBER}")),
    ],
    ids=[
        "metadata",
        "metadata of a withheld number",
        "attribute",
        "attribute of a withheld number",
        "number",
    ],
)
async def test_a_phone_call_is_remembered_under(metadata: str, attributes: dict[str, str], tag: str) -> None:
    """Specification, "Scope": metadata, then the attribute, then the identity, made a stable tag."""
    await knows(tag, "Has a red bicycle.")
    caller = Caller(f"sip_{NUMBER}", {**attributes, "sip.callID": "SCL_1"}, SIP)
    model = ScriptedLLM("It is ready.")
    await call(example("telephony"), model, ["Is my bicycle ready?"], caller=caller, metadata=metadata)
    assert "red bicycle" in model.last.text
    assert await stored(tag, "SCL_1") == ["Caller: Is my bicycle ready?", "Agent: It is ready."]


@pytest.mark.parametrize(
    ("identity", "attributes"),
    [
        ("sip_anonymous", {"sip.phoneNumber": "anonymous"}),
        ("sip_Anonymous", {"sip.phoneNumber": " Anonymous "}),
        ("sip_", {"sip.phoneNumber": ""}),
        ("sip_5d0c2a", {}),
    ],
    ids=["anonymous", "as some trunks write it", "empty", "no number at all"],
)
async def test_a_caller_who_withholds_the_number_is_neither_recalled_nor_stored(
    identity: str, attributes: dict[str, str], database: Path
) -> None:
    """Case S4: no scope, no request; all callers who withhold their number would otherwise share a memory."""
    model = ScriptedLLM("It is ready.")
    caller = Caller(identity, attributes, SIP)
    replies = await call(example("telephony"), model, ["Is my bicycle ready?"], caller=caller)
    assert replies == ["It is ready."]
    assert FENCE_OPEN not in model.last.text
    assert not database.exists()  # noqa: ASYNC240 - a look at a local file


async def test_a_participant_that_is_no_phone_is_known_by_its_identity() -> None:
    """Specification, "Scope": the participant identity is the fallback."""
    await call(example("telephony"), ScriptedLLM("Yes."), ["Hello?"], caller=Caller("ana"))
    assert await stored("ana", "room-1") == ["Caller: Hello?", "Agent: Yes."]
