"""Whose memory it is when nobody is named, somebody else takes the line, or several people share a room."""

from __future__ import annotations

import asyncio
import logging
from typing import Any
from unittest.mock import MagicMock

import pytest
from livekit.agents import ChatContext, llm

from supermemory_livekit import InputParams, SupermemoryAgent, SupermemoryLiveKit
from supermemory_livekit.capture.consent import Consent
from supermemory_livekit.store import Profile
from supermemory_livekit.testing import ScriptedLLM, ScriptedStore, ToolCall
from tests.support.clock import VirtualClock
from tests.support.jobs import job
from tests.support.rooms import Line, Permissions, Person, hears
from tests.support.sessions import say, started

ATTRIBUTE = "supermemory_container_tag"


def memory_over(store: ScriptedStore, **params: Any) -> SupermemoryLiveKit:
    return SupermemoryLiveKit.from_store(store, session_id="room-1", params=InputParams(**params))


def agent_over(memory: SupermemoryLiveKit) -> SupermemoryAgent:
    return SupermemoryAgent(memory, instructions="Be kind.")


def model() -> ScriptedLLM:
    return ScriptedLLM(lambda context, tools: "Yes.")


def echoes(context: ChatContext, tools: list[llm.Tool]) -> str:
    said = [item.text_content for item in context.items if item.type == "message" and item.role == "user"]
    return f"You said: {said[-1]}"


def documents(store: ScriptedStore) -> dict[str, str]:
    """What is stored, by container tag."""
    return {tag: text for (tag, _), text in store.documents.items()}


# -- nobody


@pytest.mark.parametrize("identity", ["", "sip_anonymous", "+266696687"])
async def test_of_a_caller_who_is_nobody_nothing_is_stored_or_recalled(
    identity: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Issue: callers who are nobody, no recall and no write unless asked for."""
    caplog.set_level(logging.INFO)
    store = ScriptedStore()
    memory = memory_over(store)
    memory.bind(participant=Person(identity))
    assert memory.container_tag is None
    async with started(agent_over(memory), llm=model()) as session:
        memory.attach(session)
        assert await memory.preload(ChatContext()) is False
        await say(session, "It is me.")
        assert "NOT saved: it is not known who the caller is" in await memory.remember("Likes tea.")
    await memory.aclose()
    assert store.calls == []
    assert memory.stats.turns_withheld == 2
    assert [record.levelno for record in caplog.records if record.name == "supermemory_livekit"] == [
        logging.INFO
    ]


async def test_a_caller_who_is_nobody_has_a_memory_of_the_call_when_asked_for() -> None:
    """Decision 19: no two anonymous callers share one."""
    store = ScriptedStore()
    tags: list[str | None] = []
    for room in ("room-1", "room-2"):
        memory = SupermemoryLiveKit.from_store(store, session_id=room, params=InputParams(anonymous="call"))
        memory.bind(participant=Person("anonymous"))
        tags.append(memory.container_tag)
        async with started(agent_over(memory), llm=model()) as session:
            memory.attach(session)
            await say(session, f"It is me in {room}.")
        await memory.aclose()
    assert len(set(tags)) == 2
    assert set(documents(store)) == set(tags)


@pytest.mark.parametrize("identities", [("anonymous", "sip_unknown"), ("", "")])
async def test_two_people_in_a_room_who_are_nobody_share_no_memory(identities: tuple[str, str]) -> None:
    """Decision 19: what the first one tells is not told to the second."""
    store = ScriptedStore()
    first = memory_over(store, anonymous="call")
    memories = [first.for_participant(Person(identity)) for identity in identities]
    for number, memory in enumerate(memories):
        async with started(agent_over(memory), llm=model()) as session:
            memory.attach(session)
            await say(session, f"This is voice {number}.")
    await first.aclose()
    assert len({memory.container_tag for memory in memories}) == 2
    assert sorted(documents(store)) == sorted(str(memory.container_tag) for memory in memories)


async def test_what_nobody_said_is_not_stored_under_the_one_who_is_named_later() -> None:
    """Decision 19: who says who they are later may be another person."""
    store = ScriptedStore()
    memory = memory_over(store)
    async with started(agent_over(memory), llm=model()) as session:
        memory.attach(session)
        await say(session, "Before any bind.")
        memory.bind(participant=Person("anonymous"))
        await say(session, "A voice.")
        memory.bind(container_tag="ana", session_id="room-1")
        await say(session, "I am Ana.")
    await memory.aclose()
    assert "I am Ana." in documents(store)["ana"]
    assert "A voice." not in documents(store)["ana"]
    assert "Before any bind." not in documents(store)["ana"]


async def test_an_attribute_that_arrives_names_a_caller_who_was_nobody() -> None:
    """Case S5: never bound to the fallback for the whole call."""
    with job() as running:
        memory = memory_over(ScriptedStore())
        person = Person("anonymous")
        memory.bind(participant=person)
        person.attributes[ATTRIBUTE] = "user_1"
        running.context.room.emit("participant_attributes_changed", {ATTRIBUTE: "user_1"}, person)
        assert memory.container_tag == "user_1"


# -- attributes


async def test_an_attribute_that_the_caller_may_change_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    """Issue: attributes a caller can change themselves are refused with a warning."""
    memory = memory_over(ScriptedStore())
    memory.bind(participant=Person("ana", {ATTRIBUTE: "ben"}, Permissions(can_update_metadata=True)))
    assert memory.container_tag == "ana"
    warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert len(warnings) == 1
    assert "canUpdateOwnMetadata" in warnings[0]
    assert "not used" in warnings[0]
    assert "ben" not in warnings[0]


# -- another participant on the line


async def test_the_tools_tell_another_participant_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue: a linked participant who changes is never stored or recalled under the first one's tag."""
    store = ScriptedStore().finds("ana", "Has a boat.")
    memory = memory_over(store)
    memory.bind(participant=Person("ana"))
    line = Line(monkeypatch, Person("ana"))
    calls = [
        ToolCall("search_memories", {"query": "boat"}),
        ToolCall("remember", {"memory": "Hates tea."}),
        ToolCall("forget", {"memory_text": "Has a boat."}),
    ]

    def reply(context: ChatContext, tools: list[Any]) -> Any:
        if context.items[-1].type == "function_call_output":
            return str(context.items[-1].output)
        return calls.pop(0)

    async with started(agent_over(memory), llm=ScriptedLLM(reply)) as session:
        memory.attach(session)
        assert "Has a boat." in await say(session, "Do I have a boat?")
        await asyncio.sleep(1)
        line.linked_participant = Person("ben")
        asked = len(store.calls)
        for words in ("I hate tea.", "Forget the boat."):
            assert "another person is on the line" in await say(session, words)
        assert len(store.calls) == asked
    await memory.aclose()


async def test_another_participant_is_bound_by_rule_when_the_memory_follows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Issue: follow=True rebinds by rule; decision 19: and back to the scope that was bound first."""
    store = ScriptedStore().knows("user_1", "Lives in Lisbon.").knows("user_2", "Lives in Graz.")
    memory = memory_over(store, follow=True)
    memory.bind(container_tag="user_1", session_id="room-1")
    line = Line(monkeypatch, Person("ana"))
    llm = model()
    async with started(agent_over(memory), llm=llm) as session:
        memory.attach(session)
        await say(session, "Ana speaks.")
        assert "Lisbon" in llm.last.text
        line.linked_participant = Person("ben", {ATTRIBUTE: "user_2"})
        await say(session, "Ben speaks.")
        assert "Graz" in llm.last.text
        assert "Lisbon" not in llm.last.text
        line.linked_participant = Person("anonymous")
        await say(session, "Nobody speaks.")
        assert "Graz" not in llm.last.text
        line.linked_participant = Person("ana")
        await say(session, "Ana again.")
        assert "Lisbon" in llm.last.text
        assert "Graz" not in llm.last.text
    await memory.aclose()
    stored = documents(store)
    assert set(stored) == {"user_1", "user_2"}
    assert "Ana speaks." in stored["user_1"]
    assert "Ana again." in stored["user_1"]
    assert "Ben speaks." in stored["user_2"]
    assert "Ben" not in stored["user_1"]
    assert "Ana" not in stored["user_2"]
    assert "Nobody" not in "".join(stored.values())


@pytest.mark.parametrize("follow", [False, True])
async def test_words_are_whose_they_were_though_the_first_is_back_when_they_are_committed(
    follow: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue: never stored or recalled under the first one's tag; the line changes twice within a turn."""
    ana, ben = Person("ana"), Person("ben")
    line = Line(monkeypatch, ana)
    store = ScriptedStore()
    memory = memory_over(store, follow=follow, mirror=False)
    memory.bind(participant=ana)
    async with started(agent_over(memory), llm=ScriptedLLM(echoes)) as session:
        memory.attach(session)
        await say(session, "Ana speaks.")
        line.linked_participant = ben
        hears(session, "ben speaks of pigeons")
        line.linked_participant = ana
        await say(session, "Ben speaks of pigeons.")
        await say(session, "Ana is back.")
    await memory.aclose()
    of_ana = documents(store)["ana"]
    assert "Ana speaks." in of_ana
    assert "Caller: Ana is back." in of_ana
    assert "pigeons" not in of_ana
    assert set(documents(store)) == ({"ana", "ben"} if follow else {"ana"})
    if follow:
        assert "Caller: Ben speaks of pigeons." in documents(store)["ben"]
        assert "Agent: You said: Ben speaks of pigeons." in documents(store)["ben"]
    assert not [
        call for call in store.called("search") if "pigeons" in str(call.arguments) and call.tag == "ana"
    ]


async def test_words_are_not_looked_up_for_who_takes_the_line_while_they_are_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Issue: never recalled under another's tag; a tool takes its time, and another one has the phone by then."""
    ana, ben = Person("ana"), Person("ben")
    line = Line(monkeypatch, ana)
    store = ScriptedStore()
    memory = memory_over(store, follow=True, mirror=False)
    memory.bind(participant=ana)

    @llm.function_tool
    async def look() -> str:
        """Looks."""
        line.linked_participant = ben
        return "seen"

    def reply(context: ChatContext, tools: list[llm.Tool]) -> Any:
        return "Done." if context.items[-1].type == "function_call_output" else ToolCall("look", {})

    agent = SupermemoryAgent(memory, instructions="Be kind.", tools=[look])
    async with started(agent, llm=ScriptedLLM(reply)) as session:
        memory.attach(session)
        await say(session, "Where are my pigeons?")
    assert memory.container_tag == "ben"
    searched = [call.tag for call in store.called("search") if "pigeons" in str(call.arguments)]
    assert searched == ["ana"]
    await memory.aclose()


@pytest.mark.parametrize("follow", [False, True])
async def test_words_of_two_people_in_one_turn_are_nobodys(
    follow: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Decision 19: nobody can tell which of them are whose."""
    ana, ben = Person("ana"), Person("ben")
    line = Line(monkeypatch, ana)
    store = ScriptedStore()
    memory = memory_over(store, follow=follow, mirror=False)
    memory.bind(participant=ana)
    async with started(agent_over(memory), llm=ScriptedLLM(echoes)) as session:
        memory.attach(session)
        hears(session, "I am ana and")
        line.linked_participant = ben
        hears(session, "I am ana and ben likes pigeons")
        line.linked_participant = ana
        await say(session, "I am Ana and Ben likes pigeons.")
        await say(session, "Ana is back.")
    await memory.aclose()
    assert "pigeons" not in str(documents(store))
    assert "Ana is back." in documents(store)["ana"]


async def test_the_last_words_are_kept_when_their_speaker_has_left_the_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Issue: a hang-up loses no word; nobody is linked when they are committed."""
    ana = Person("ana")
    line = Line(monkeypatch, ana)
    store = ScriptedStore()
    memory = memory_over(store)
    memory.bind(participant=ana)
    async with started(agent_over(memory), llm=model()) as session:
        memory.attach(session)
        hears(session, "goodbye")
        line.linked_participant = None
        await say(session, "Goodbye.")
    await memory.aclose()
    assert "Goodbye." in documents(store)["ana"]


async def test_who_takes_the_line_has_not_consented(monkeypatch: pytest.MonkeyPatch) -> None:
    """Decision 19: consent is a caller's, and following asks nobody."""
    store = ScriptedStore()
    memory = memory_over(store, follow=True, capture="consent")
    memory.bind(participant=Person("ana"))
    memory.consent(True)
    line = Line(monkeypatch, Person("ana"))
    async with started(agent_over(memory), llm=model()) as session:
        memory.attach(session)
        await say(session, "Ana speaks.")
        line.linked_participant = Person("ben")
        await say(session, "Ben speaks.")
    await memory.aclose()
    assert set(documents(store)) == {"ana"}
    assert "Ben" not in documents(store)["ana"]


# -- several people in one room


class Closing(ScriptedStore):
    """Counts how often it is closed."""

    closings = 0

    async def aclose(self) -> None:
        self.closings += 1
        await super().aclose()


async def test_people_in_one_room_have_a_memory_each_over_one_connection() -> None:
    """Issue: several people in one room, one memory per person, by participant."""
    store = Closing()
    store.knows("ana", "Lives in Lisbon.").knows("ben", "Lives in Graz.")
    first = memory_over(store)
    people = [Person("ana"), Person("ben")]
    memories = [first.for_participant(person) for person in people]
    assert [first.for_participant(person) for person in people] == memories
    assert [memory.container_tag for memory in memories] == ["ana", "ben"]
    assert {memory.session_id for memory in memories} == {"room-1"}
    models = [model(), model()]
    sessions = [started(agent_over(memory), llm=llm) for memory, llm in zip(memories, models, strict=True)]
    async with sessions[0] as of_ana, sessions[1] as of_ben:
        memories[0].attach(of_ana)
        memories[1].attach(of_ben)
        await asyncio.gather(say(of_ana, "Ana speaks."), say(of_ben, "Ben speaks."))
        assert "Lisbon" in models[0].last.text
        assert "Graz" not in models[0].last.text
    await memories[0].aclose()
    await memories[0].aclose()
    assert store.closings == 0
    await first.aclose()
    assert store.closings == 1
    assert len({custom_id for _, custom_id in store.documents}) == 2
    stored = documents(store)
    assert ("Ana speaks." in stored["ana"], "Ben speaks." in stored["ben"]) == (True, True)
    assert ("Ben" in stored["ana"], "Ana" in stored["ben"]) == (False, False)


async def test_the_memories_of_a_room_are_stored_when_its_job_shuts_down() -> None:
    """Design 5.6: the end of the job is the end of each of them; the one that made them was never used itself."""
    store = Closing()
    with job() as running:
        first = memory_over(store)
        ana = first.for_participant(Person("ana"))
        async with started(agent_over(ana), llm=model()) as session:
            ana.attach(session)
            await say(session, "Ana speaks.")
            await running.end(session)
    assert "Ana speaks." in documents(store)["ana"]
    assert store.closings == 1


async def test_mocks_in_place_of_a_linked_participant_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Case S11: console and simulated jobs give mocks."""
    store = ScriptedStore()
    memory = memory_over(store, follow=True)
    memory.bind(participant=Person("ana"))
    Line(monkeypatch, MagicMock())
    async with started(agent_over(memory), llm=model()) as session:
        memory.attach(session)
        await say(session, "Ana speaks.")
    await memory.aclose()
    assert set(documents(store)) == {"ana"}


async def test_an_answer_is_stored_under_the_caller_it_was_given_to(clock: VirtualClock) -> None:
    """Design 5.2: every turn keeps the tag under which it was spoken, also when LiveKit commits it after a rebind."""
    store = ScriptedStore()
    store.profiles["ana"] = Profile(static=("Lives in Zanzibar street.",))
    memory = SupermemoryLiveKit.from_store(store, container_tag="ana", session_id="room-1")

    def answer(context: ChatContext, tools: list[llm.Tool]) -> str:
        memory.bind(container_tag="bo", session_id="room-1")
        return "You live in Zanzibar street"

    model = ScriptedLLM(answer)
    async with started(SupermemoryAgent(memory, instructions="Be kind."), llm=model) as session:
        memory.attach(session)
        await say(session, "Where do I live?")
    await memory.aclose()
    assert not [tag for tag, _ in store.documents if tag == "bo"]
    assert "Agent: You live in Zanzibar street" in str(store.documents)


async def test_what_was_forgotten_in_this_call_stays_out_of_the_last_calls_end_after_a_rebind(
    clock: VirtualClock,
) -> None:
    """A call's end may hold the words of a fact that the caller had forgotten."""
    store = ScriptedStore()
    first = SupermemoryLiveKit.from_store(store, container_tag="ana", session_id="monday")
    async with started(
        SupermemoryAgent(first, instructions="Be kind."), llm=ScriptedLLM("Noted.")
    ) as session:
        first.attach(session)
        await say(session, "I live in Zanzibar street")
    await first.aclose()
    memory = SupermemoryLiveKit.from_store(store, container_tag="ana", session_id="tuesday")
    await memory.remember("Lives in Zanzibar street.")
    await memory.forget(memory_text="Lives in Zanzibar street.")
    memory.bind(container_tag="bo", session_id="tuesday")
    memory.bind(container_tag="ana", session_id="tuesday")
    context = ChatContext()
    await memory.preload(context)
    await memory.aclose()
    assert "Zanzibar" not in str([item.text_content for item in context.items if item.type == "message"])


async def test_consent_given_to_nobody_is_not_the_next_callers(clock: VirtualClock) -> None:
    """Consent belongs to a caller: whoever is bound next is asked anew."""
    consent = Consent(asked=True)
    consent.unbound()
    consent.answer(True)
    consent.bound("bo")
    assert not consent.given


async def test_off_the_record_lasts_while_somebody_else_is_on_the_line(clock: VirtualClock) -> None:
    """Off the record belongs to the caller who asked for it, until they take it back."""
    consent = Consent(asked=False)
    consent.bound("ana")
    consent.caller_goes(off=True)
    consent.bound("bo")
    assert not consent.off
    consent.bound("ana")
    assert consent.off


async def test_an_answer_that_never_came_leaves_the_next_callers_answer_to_them(clock: VirtualClock) -> None:
    """Case C3, Design 5.2: a reply cut before its first sound produces no item; the next one is not stored for it."""
    store = ScriptedStore()
    memory = SupermemoryLiveKit.from_store(store, container_tag="ana", session_id="room-1")

    model = ScriptedLLM("Hello Bo")
    async with started(SupermemoryAgent(memory, instructions="Be kind."), llm=model) as session:
        memory.attach(session)
        # The state that such a reply leaves: who was answered when the next caller was bound.
        memory._conversation._finishing = memory._binding.scope  # pyright: ignore[reportPrivateUsage]
        memory.bind(container_tag="bo", session_id="room-1")
        await say(session, "This is Bo")
    await memory.aclose()
    assert [tag for tag, _ in store.documents] == ["bo"]
    assert "Agent: Hello Bo" in str(store.documents)
