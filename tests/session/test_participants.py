"""Whose words they are when participants, attributes and permissions are as LiveKit rooms have them."""

from __future__ import annotations

import logging
from typing import Any
from unittest.mock import MagicMock

import pytest
from livekit import rtc
from livekit.agents import AgentSession

from supermemory_livekit import ConfigurationError, SupermemoryAgent, SupermemoryLiveKit
from supermemory_livekit.testing import ScriptedLLM, ScriptedStore
from tests.support.jobs import job
from tests.support.rooms import Permissions, Person
from tests.support.sessions import say, started

ATTRIBUTE = "supermemory_container_tag"


def memory_over(store: ScriptedStore) -> SupermemoryLiveKit:
    return SupermemoryLiveKit.from_store(store, session_id="room-1")


def warnings_in(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [
        record.getMessage()
        for record in caplog.records
        if record.name == "supermemory_livekit" and record.levelno >= logging.WARNING
    ]


async def test_the_attribute_wins_over_the_identity() -> None:
    """Specification: the participant attribute names the memory, the identity is the fallback."""
    memory = memory_over(ScriptedStore())
    memory.bind(participant=Person("ana", {ATTRIBUTE: "user_1"}))
    assert memory.container_tag == "user_1"
    memory.bind(participant=Person("ana"))
    assert memory.container_tag == "ana"


async def test_an_explicit_tag_wins_over_the_participant() -> None:
    """Specification: pass container_tag yourself."""
    memory = memory_over(ScriptedStore())
    memory.bind(container_tag="user_9", participant=Person("ana", {ATTRIBUTE: "user_1"}))
    assert memory.container_tag == "user_9"


async def test_mocks_in_place_of_attributes_are_ignored() -> None:
    """Case S11: console and simulated jobs give mocks."""
    memory = memory_over(ScriptedStore())
    mock = MagicMock()
    mock.identity = "mock_user"
    memory.bind(participant=mock)
    assert memory.container_tag == "mock_user"


@pytest.mark.parametrize("nobody", ["", "   "])
async def test_a_blank_tag_is_refused_at_bind(nobody: str) -> None:
    """Case S1: an empty one is refused at bind."""
    memory = memory_over(ScriptedStore())
    with pytest.raises(ConfigurationError):
        memory.bind(container_tag=nobody)
    with pytest.raises(ConfigurationError):
        memory.bind()
    assert memory.container_tag is None


async def test_a_caller_who_may_change_the_attribute_is_warned_about(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Case S6, Specification: do not grant the caller canUpdateOwnMetadata."""
    memory = memory_over(ScriptedStore())
    memory.bind(participant=Person("ana", permissions=Permissions(can_update_metadata=True)))
    assert [text for text in warnings_in(caplog) if "canUpdateOwnMetadata" in text]


async def test_an_attribute_that_changes_after_bind_is_not_followed(caplog: pytest.LogCaptureFixture) -> None:
    """Case S6: the bound tag stays."""
    with job() as running:
        memory = memory_over(ScriptedStore())
        person = Person("ana", {ATTRIBUTE: "user_1"})
        memory.bind(participant=person)
        person.attributes[ATTRIBUTE] = "user_2"
        _attributes_changed(running.context.room, {ATTRIBUTE: "user_2"}, person)
        assert memory.container_tag == "user_1"
    assert len([text for text in warnings_in(caplog) if "changed after bind" in text]) == 1


@pytest.mark.parametrize("may_change", [False, True])
async def test_a_late_attribute_is_used_if_only_the_backend_can_have_set_it(
    may_change: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Case S5: never silently bound to the fallback for the whole call."""
    with job() as running:
        memory = memory_over(ScriptedStore())
        person = Person("ana", permissions=Permissions(can_update_metadata=may_change))
        memory.bind(participant=person)
        person.attributes[ATTRIBUTE] = "user_1"
        _attributes_changed(running.context.room, {ATTRIBUTE: "user_1"}, person)
        assert memory.container_tag == ("ana" if may_change else "user_1")
    said = [record.getMessage() for record in caplog.records if ATTRIBUTE in record.getMessage()]
    assert bool(said) is may_change


async def test_another_participants_attribute_changes_nothing() -> None:
    """Case S6: only the bound participant is listened to at all."""
    with job() as running:
        memory = memory_over(ScriptedStore())
        memory.bind(participant=Person("ana"))
        _attributes_changed(running.context.room, {ATTRIBUTE: "user_2"}, Person("bo", {ATTRIBUTE: "user_2"}))
        assert memory.container_tag == "ana"


def _attributes_changed(room: rtc.Room, changed: dict[str, str], person: Person) -> None:
    """What the room does when its server reports the change."""
    room.emit("participant_attributes_changed", changed, person)


async def test_words_of_another_participant_are_not_stored_under_the_bound_caller(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Case S7: the linked participant becomes another one in the middle of the call."""
    store = ScriptedStore()
    memory = memory_over(store)
    memory.bind(participant=Person("ana"))
    linked = Person("ana")
    # RoomIO needs a room on a server; what is asked of it here is who is linked.
    monkeypatch.setattr(AgentSession, "room_io", property(lambda self: MagicMock(linked_participant=linked)))
    model = ScriptedLLM(lambda context, tools: "Yes.")
    async with started(SupermemoryAgent(memory, instructions="Be kind."), llm=model) as session:
        memory.attach(session)
        await say(session, "Ana speaks.")
        searches = len(store.called("search"))
        linked.identity = "bo"
        await say(session, "Bo speaks.")
        assert len(store.called("search")) == searches
        linked.identity = "ana"
        await say(session, "Ana again.")
    await memory.aclose()
    document = store.document("ana", "lk-room-1") or ""
    assert "Ana speaks." in document
    assert "Ana again." in document
    assert "Bo speaks." not in document
    assert memory.stats.turns_dropped == 2
    assert len([text for text in warnings_in(caplog) if "Another participant" in text]) == 1


@pytest.mark.parametrize("session_id", ["", "  ", None])
async def test_a_call_without_a_name_gets_one_of_its_own(session_id: str | None) -> None:
    """Case S2: two calls never share a document because nobody named them."""
    ids: list[str | None] = []
    for _ in range(2):
        memory = SupermemoryLiveKit.from_store(ScriptedStore())
        memory.bind(container_tag="ana", session_id=session_id)
        ids.append(memory.session_id)
    assert all(ids)
    assert ids[0] != ids[1]


async def test_a_bind_that_is_refused_changes_nothing() -> None:
    """Design 1: wrong set-up is raised where it is given; the caller bound before stays."""
    memory = memory_over(ScriptedStore())
    memory.bind(container_tag="ana", session_id="room-1")
    wrong: Any = 7
    with pytest.raises(ConfigurationError, match="session_id"):
        memory.bind(container_tag="bo", session_id=wrong)
    assert (memory.container_tag, memory.session_id) == ("ana", "room-1")
