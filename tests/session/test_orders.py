"""What is kept of whom when speech, replies and commits come in an order that nobody thought of first.

LiveKit commits a typed turn before the answer that is still being spoken, a realtime model reports words after it
answered them, and a line, a tag or what is allowed may change at any moment between. Most of these orders were found
by somebody who set out to break the package.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from livekit.agents import ChatContext, llm

from supermemory_livekit import InputParams, SupermemoryAgent, SupermemoryLiveKit
from supermemory_livekit.store import Hit
from supermemory_livekit.testing import (
    ScriptedCaller,
    ScriptedLLM,
    ScriptedRealtimeModel,
    ScriptedStore,
    ToolCall,
    Work,
)
from tests.support.clock import VirtualClock
from tests.support.jobs import job
from tests.support.rooms import Line, Person, hears, speaks
from tests.support.sessions import say, started

ATTRIBUTE = "supermemory_container_tag"


def memory_over(store: ScriptedStore, tag: str | None = None, **params: Any) -> SupermemoryLiveKit:
    return SupermemoryLiveKit.from_store(
        store, container_tag=tag, session_id="room-1", params=InputParams(mirror=False, **params)
    )


def agent_over(memory: SupermemoryLiveKit) -> SupermemoryAgent:
    return SupermemoryAgent(memory, instructions="Be kind.")


def last_words(context: ChatContext) -> str:
    item = context.items[-1]
    return item.text_content or "" if item.type == "message" else ""


def answers_at_length(context: ChatContext, tools: list[llm.Tool]) -> str:
    """An answer that takes seconds to say, and repeats what was told."""
    hidden = "hidden" in last_words(context)
    return "your hidden pigeons are safe and sound with me for ever and a day" if hidden else "Good."


def echoes(context: ChatContext, tools: list[llm.Tool]) -> str:
    return f"You said: {last_words(context)}"


def sent(store: ScriptedStore, tag: str | None = None) -> str:
    """All that was sent to the service, under this tag or any."""
    return " ".join(str(call.arguments) for call in store.calls if tag in (None, call.tag))


# -- a turn is committed before the answer to the one before it


@pytest.mark.parametrize("interrupted", [False, True])
@pytest.mark.parametrize("why", ["off the record", "before consent", "another caller"])
async def test_an_answer_has_the_fate_of_its_own_turn_when_a_typed_turn_overtakes_it(
    why: str, interrupted: bool, clock: VirtualClock
) -> None:
    """Decision 19: LiveKit commits what is typed at once, and what is being said at its end."""
    store = ScriptedStore()
    memory = memory_over(store, "ana", capture="consent" if why == "before consent" else "always")
    async with ScriptedCaller(agent_over(memory), llm=ScriptedLLM(answers_at_length)) as caller:
        memory.attach(caller.session)
        if why == "off the record":
            with memory.off_the_record():
                await caller.says("my hidden thing")
                await caller.hears_beginning()
        else:
            await caller.says("my hidden thing")
            await caller.hears_beginning()
        if why == "before consent":
            memory.consent(True)
        if why == "another caller":
            memory.bind(container_tag="ben", session_id="room-1")
        if interrupted:
            await asyncio.sleep(1)
            caller.session.interrupt()
        await caller.session.generate_reply(user_input="what is the time")
        await asyncio.sleep(3)
    await memory.aclose()
    tag = "ben" if why == "another caller" else "ana"
    assert "what is the time" in sent(store, tag)
    assert "pigeons" not in sent(store, tag)
    if why == "another caller":
        assert "your hidden" in sent(store, "ana")


async def test_the_confirmation_of_forgetting_is_kept_out_when_a_typed_turn_overtakes_it(
    clock: VirtualClock,
) -> None:
    """Decision 19: the agent repeats what it was asked to forget."""
    store = ScriptedStore()
    store.hits["ana"] = [Hit("Lives at 5 Elm Street.", 0.9, memory_id="mem-0")]
    memory = memory_over(store, "ana")

    def reply(context: ChatContext, tools: list[llm.Tool]) -> Any:
        if context.items[-1].type == "function_call_output":
            return "I have forgotten that you live at 5 Elm Street, and all the rest of it too"
        return ToolCall("forget", {"memory_id": "mem-0"}) if "Forget" in last_words(context) else "Good."

    async with ScriptedCaller(agent_over(memory), llm=ScriptedLLM(reply)) as caller:
        memory.attach(caller.session)
        await caller.says("Forget where I live 5 Elm Street")
        await caller.hears_beginning()
        await caller.session.generate_reply(user_input="what is the time")
        await asyncio.sleep(3)
    await memory.aclose()
    assert "what is the time" in str(store.documents)
    assert "Elm" not in str(store.documents)


async def test_a_turn_is_not_written_while_its_reply_may_still_forget_something(clock: VirtualClock) -> None:
    """Decision 19: "one moment", a search for the id, and only then `forget`."""
    store = ScriptedStore()
    store.hits["ana"] = [Hit("Lives at 5 Elm Street.", 0.9, memory_id="mem-0")]
    memory = memory_over(store, "ana")

    def reply(context: ChatContext, tools: list[llm.Tool]) -> Any:
        answered = sum(item.type == "function_call_output" for item in context.items)
        first = ("One moment please.", ToolCall("search_memories", {"query": "address"}))
        return (first, ToolCall("forget", {"memory_id": "mem-0"}), "It is forgotten.")[answered]

    async with ScriptedCaller(agent_over(memory), llm=ScriptedLLM(reply)) as caller:
        memory.attach(caller.session)
        await caller.says("Forget that I live at 5 Elm Street")
        await caller.hears_reply()
        await asyncio.sleep(5)
    await memory.aclose()
    assert store.called("forget")
    assert "Elm" not in str(store.documents)


# -- a realtime model answers words before it reports them


@pytest.mark.parametrize("why", ["off the record", "before consent", "another participant"])
async def test_a_realtime_answer_is_private_before_the_words_that_it_answers_are_reported(
    why: str, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Decision 19: a realtime model reports what it heard when it likes."""
    ana, ben = Person("ana"), Person("ben")
    line = Line(monkeypatch, ana)
    store = ScriptedStore()
    memory = memory_over(store, capture="consent" if why == "before consent" else "always")
    memory.bind(participant=ana)
    model = ScriptedRealtimeModel(
        "Your secret pigeons are safe", turn_detection=True, user_transcription=True
    )
    async with ScriptedCaller(agent_over(memory), llm=model) as caller:
        memory.attach(caller.session)
        heard = model.sessions[-1]
        if why == "another participant":
            line.linked_participant = ben
        with memory.off_the_record() if why == "off the record" else _nothing():
            heard.emit("input_speech_started", llm.InputSpeechStartedEvent())
            await asyncio.sleep(1)
            heard.emit("input_speech_stopped", llm.InputSpeechStoppedEvent(user_transcription_enabled=True))
        line.linked_participant = ana
        memory.consent(True)
        heard.emit("generation_created", heard._generate(user_initiated=False, extra=None))  # pyright: ignore[reportPrivateUsage]
        await asyncio.sleep(6)
        heard.hears("I have secret pigeons")
        await asyncio.sleep(3)
    await memory.aclose()
    assert "pigeons" not in sent(store)


class _nothing:  # noqa: N801 - a context manager like `contextlib.nullcontext`, which 3.10 types otherwise
    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


# -- what is allowed changes without any event


@pytest.mark.parametrize("how", ["block", "tool"])
async def test_words_spoken_all_through_a_block_are_private_though_none_were_reported_within(
    how: str,
) -> None:
    """Decision 19: a turn of which any part was spoken within."""
    store = ScriptedStore()
    memory = memory_over(store, "ana", off_the_record_tools=True)
    off, on = (tool for tool in memory.tools() if "_the_record" in str(getattr(tool, "info", "")))
    async with started(agent_over(memory), llm=ScriptedLLM(echoes)) as session:
        memory.attach(session)
        speaks(session)
        if how == "block":
            with memory.off_the_record():
                await asyncio.sleep(0)
        else:
            await off()  # pyright: ignore[reportCallIssue, reportUnknownVariableType]
            await on()  # pyright: ignore[reportCallIssue, reportUnknownVariableType]
        hears(session, "my hidden boat number is seven")
        await say(session, "My hidden boat number is seven.")
        await say(session, "This is for the record.")
    await memory.aclose()
    assert "This is for the record." in sent(store)
    assert "hidden" not in sent(store)


@pytest.mark.parametrize("begun", ["before", "within"])
async def test_what_the_agent_says_in_a_block_is_private_when_it_is_committed_after_it(
    begun: str, clock: VirtualClock
) -> None:
    """Decision 19: what the caller or the agent says in the block."""
    store = ScriptedStore()
    memory = memory_over(store, "ana")
    words = "well then your secret number is four one one one and so on and so forth"
    async with ScriptedCaller(agent_over(memory), llm=ScriptedLLM(echoes)) as caller:
        memory.attach(caller.session)
        if begun == "before":
            speech = caller.session.say(words)
            await asyncio.sleep(0.5)
            with memory.off_the_record():
                await asyncio.sleep(1)
        else:
            with memory.off_the_record():
                speech = caller.session.say(words)
                await asyncio.sleep(1)
        await speech
        await caller.session.say("this is for the record")
    await memory.aclose()
    assert "for the record" in sent(store)
    assert "secret" not in sent(store)


async def test_a_query_is_not_sent_when_it_goes_off_the_record_while_it_is_redacted() -> None:
    """Decision 19: what is allowed is asked again after each wait."""
    store = ScriptedStore()
    working = asyncio.Event()

    async def redact(text: str) -> str:
        await working.wait()
        return text

    memory = memory_over(store, "ana", redact=redact)
    async with started(agent_over(memory), llm=ScriptedLLM("Yes.")) as session:
        memory.attach(session)
        context = ChatContext.empty()
        context.add_message(role="user", content="my hidden pigeons")
        attempt = asyncio.ensure_future(memory.enrich(context))
        await asyncio.sleep(0.05)
        with memory.off_the_record():
            working.set()
            await attempt
    await memory.aclose()
    assert "pigeons" not in sent(store)


# -- the same person gets another tag


@pytest.mark.parametrize("refusal", ["consent", "off the record"])
async def test_a_refusal_holds_when_the_callers_attribute_arrives(refusal: str) -> None:
    """Decision 19: it is a person who refuses, not a tag."""
    store = ScriptedStore()
    with job() as running:
        memory = memory_over(store, off_the_record_tools=True)
        person = Person("ana")
        memory.bind(participant=person)
        model = ScriptedLLM(
            lambda context, tools: (
                ToolCall("go_off_the_record") if "go off" in last_words(context) else "Yes."
            )
        )
        async with started(agent_over(memory), llm=model) as session:
            memory.attach(session)
            if refusal == "consent":
                memory.consent(False)
            else:
                await say(session, "go off")
            person.attributes[ATTRIBUTE] = "user_1"
            running.context.room.emit("participant_attributes_changed", {ATTRIBUTE: "user_1"}, person)
            await say(session, "My secret pigeons.")
            assert memory.container_tag == "user_1"
        await memory.aclose()
    assert "pigeons" not in sent(store)


@pytest.mark.parametrize("identity", ["anonymous", "sip_1555"])
async def test_a_refusal_holds_when_the_agent_identifies_who_is_on_the_line(
    identity: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Decision 19: the same participant under another tag may be the same person, so what they refused holds."""
    person = Person(identity)
    Line(monkeypatch, person)
    store = ScriptedStore()
    memory = memory_over(store, off_the_record_tools=True)
    memory.bind(participant=person)
    model = ScriptedLLM(
        lambda context, tools: ToolCall("go_off_the_record") if "go off" in last_words(context) else "Yes."
    )
    async with started(agent_over(memory), llm=model) as session:
        memory.attach(session)
        await say(session, "go off")
        memory.bind(container_tag="user_1")
        await say(session, "My secret pigeons.")
    await memory.aclose()
    assert "pigeons" not in sent(store)


# -- another person


@pytest.mark.parametrize("follow", [False, True])
async def test_words_before_the_first_bind_are_not_given_to_somebody_else(
    follow: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Decision 19: words are held until somebody is bound; by then another one may have the phone."""
    ana, ben = Person("ana"), Person("ben")
    line = Line(monkeypatch, ana)
    store = ScriptedStore()
    memory = memory_over(store, follow=follow)
    async with started(agent_over(memory), llm=ScriptedLLM(echoes)) as session:
        memory.attach(session)
        hears(session, "ana has secret pigeons")
        await say(session, "Ana has secret pigeons.")
        line.linked_participant = ben
        memory.bind(participant=ben)
        hears(session, "ben is here")
        await say(session, "Ben is here.")
    await memory.aclose()
    assert "Ben is here." in sent(store, "ben")
    assert "pigeons" not in sent(store)


async def test_words_before_the_first_bind_are_kept_when_their_speaker_has_left_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Design 5: capture loses no word; a backend may find out who it was when the caller has hung up."""
    ana = Person("ana")
    line = Line(monkeypatch, ana)
    store = ScriptedStore()
    memory = memory_over(store)
    async with started(agent_over(memory), llm=ScriptedLLM(echoes)) as session:
        memory.attach(session)
        hears(session, "ana has pigeons")
        await say(session, "Ana has pigeons.")
        line.linked_participant = None
        memory.bind(container_tag="user_1", session_id="room-1")
    await memory.aclose()
    assert "Caller: Ana has pigeons." in sent(store, "user_1")


async def test_the_answer_to_what_another_participant_typed_is_not_stored_when_the_first_is_back(
    monkeypatch: pytest.MonkeyPatch, clock: VirtualClock
) -> None:
    """Issue: never stored under the first one's tag; what is typed is not heard."""
    ana, ben = Person("ana"), Person("ben")
    line = Line(monkeypatch, ana)
    store = ScriptedStore()
    memory = memory_over(store)
    memory.bind(participant=ana)
    async with ScriptedCaller(agent_over(memory), llm=ScriptedLLM(answers_at_length)) as caller:
        memory.attach(caller.session)
        line.linked_participant = ben
        answer = caller.session.generate_reply(user_input="my hidden thing")
        await caller.hears_beginning()
        line.linked_participant = ana
        await answer
    await memory.aclose()
    assert "pigeons" not in sent(store)


@pytest.mark.parametrize("first", ["ana", "ben"])
async def test_words_are_not_searched_for_ahead_when_the_line_changed_since_they_were_begun(
    first: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue: never recalled under another's tag; the words so far may be those of either."""
    ana, ben = Person("ana"), Person("ben")
    line = Line(monkeypatch, ana if first == "ana" else ben)
    store = ScriptedStore()
    memory = memory_over(store, follow=True)
    memory.bind(participant=ana if first == "ana" else ben)
    async with started(agent_over(memory), llm=ScriptedLLM(echoes)) as session:
        memory.attach(session)
        speaks(session)
        line.linked_participant = ben if first == "ana" else ana
        hears(session, f"{first} likes secret pigeons")
        await asyncio.sleep(0.05)
        await say(session, "Who likes secret pigeons?")
    await memory.aclose()
    assert "pigeons" not in sent(store)


async def test_words_spoken_before_another_tag_was_bound_are_the_first_ones() -> None:
    """Design 5.2: every turn keeps the tag under which it was spoken."""
    store = ScriptedStore()
    memory = memory_over(store, "ana")
    async with started(agent_over(memory), llm=ScriptedLLM(echoes)) as session:
        memory.attach(session)
        speaks(session)
        hears(session, "ana has secret pigeons")
        memory.bind(container_tag="ben", session_id="room-1")
        await say(session, "Ana has secret pigeons.")
        await say(session, "Ben is here.")
    await memory.aclose()
    assert "Caller: Ana has secret pigeons." in sent(store, "ana")
    assert "Ben is here." in sent(store, "ben")
    assert "pigeons" not in sent(store, "ben")


async def test_nobody_else_agrees_for_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    """Decision 19: consent is the bound caller's."""
    ana, ben = Person("ana"), Person("ben")
    line = Line(monkeypatch, ana)
    store = ScriptedStore()
    memory = memory_over(store, capture="consent")
    memory.bind(participant=ana)
    async with started(agent_over(memory), llm=ScriptedLLM(echoes)) as session:
        memory.attach(session)
        await say(session, "Ana speaks.")
        line.linked_participant = ben
        memory.consent(True)
        line.linked_participant = ana
        await say(session, "Ana never agreed to pigeons.")
    await memory.aclose()
    assert store.calls == []


async def test_a_cough_of_somebody_else_costs_the_caller_no_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Design 5: capture loses no word; who only began to speak said nothing."""
    ana, ben = Person("ana"), Person("ben")
    line = Line(monkeypatch, ana)
    store = ScriptedStore()
    memory = memory_over(store)
    memory.bind(participant=ana)
    async with started(agent_over(memory), llm=ScriptedLLM(echoes)) as session:
        memory.attach(session)
        line.linked_participant = ben
        speaks(session)
        line.linked_participant = ana
        speaks(session)
        hears(session, "ana goes on")
        await say(session, "Ana goes on.")
    await memory.aclose()
    assert "Caller: Ana goes on." in sent(store, "ana")


async def test_what_is_said_after_a_tool_has_named_the_caller_is_theirs() -> None:
    """Design 5.2: the turn was the unnamed caller's; the answer is to the one who is known by then."""
    store = ScriptedStore()
    memory = memory_over(store, "phone-1")

    @llm.function_tool
    async def identify() -> str:
        """Finds out who calls."""
        memory.bind(container_tag="ana", session_id="room-1")
        return "Ana"

    def reply(context: ChatContext, tools: list[llm.Tool]) -> Any:
        return "Hello Ana." if context.items[-1].type == "function_call_output" else ToolCall("identify", {})

    agent = SupermemoryAgent(memory, instructions="Be kind.", tools=[identify])
    async with started(agent, llm=ScriptedLLM(reply)) as session:
        memory.attach(session)
        await say(session, "It is me.")
    await memory.aclose()
    assert "Caller: It is me." in sent(store, "phone-1")
    assert "Agent: Hello Ana." in sent(store, "ana")
    assert "Hello Ana." not in sent(store, "phone-1")


async def test_what_preload_found_is_not_shown_to_a_caller_who_is_bound_while_it_waits(
    clock: VirtualClock,
) -> None:
    """Issue: one caller must never meet another's memory."""
    store = ScriptedStore().knows("ana", "Lives in Lisbon.").always("profile", Work(after=0.5))
    memory = memory_over(store, "ana")
    context = ChatContext()
    loading = asyncio.ensure_future(memory.preload(context))
    await asyncio.sleep(0.1)
    memory.bind(container_tag="ben", session_id="room-1")
    assert await loading is False
    assert context.items == []
    await memory.aclose()
