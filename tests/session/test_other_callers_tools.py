"""What tools found for one caller, in the context of a reply to another one."""

from __future__ import annotations

from typing import Any

import pytest
from livekit.agents import ChatContext, llm

from supermemory_livekit import InputParams, SupermemoryAgent, SupermemoryLiveKit
from supermemory_livekit.scope import TAG_ATTRIBUTE
from supermemory_livekit.testing import ScriptedLLM, ScriptedStore, ToolCall
from tests.support.jobs import job
from tests.support.rooms import Person
from tests.support.sessions import say, started

pytestmark = pytest.mark.usefixtures("clock")


def memory_over(store: ScriptedStore, **params: Any) -> SupermemoryLiveKit:
    return SupermemoryLiveKit.from_store(
        store, session_id="room-1", params=InputParams(mirror=False, **params)
    )


def uses(call: ToolCall, when: str) -> ScriptedLLM:
    """A model that makes this call when the caller says this."""

    def reply(context: ChatContext, tools: list[llm.Tool]) -> Any:
        last = context.items[-1]
        asked = last.type == "message" and last.role == "user" and when in (last.text_content or "")
        return call if asked else "Yes."

    return ScriptedLLM(reply)


CALLS = [
    ToolCall("search_memories", {"query": "secret pigeons"}),
    ToolCall("remember", {"memory": "Has secret pigeons."}),
    ToolCall("forget", {"memory_text": "Has secret pigeons."}),
]


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.name)
async def test_the_next_caller_is_not_answered_from_what_tools_found_for_the_last(call: ToolCall) -> None:
    """Decision 19: nothing of one caller is shown to another; a call keeps its output, as models demand."""
    store = ScriptedStore().finds("ana", "Keeps the secret pigeons in Porto.")
    memory = memory_over(store)
    memory.bind(container_tag="ana")
    model = uses(call, "What do I have?")
    async with started(SupermemoryAgent(memory, instructions="Be kind."), llm=model) as session:
        memory.attach(session)
        await say(session, "What do I have?")
        assert "pigeons" in model.last.text
        memory.bind(container_tag="ben")
        await say(session, "Ben is here.")
        assert "pigeons" not in model.last.text
        kinds = [item.type for item in model.last.items if item.type.startswith("function")]
        assert kinds == ["function_call", "function_call_output"]
        memory.bind(container_tag="ana")
        await say(session, "Ana is back.")
        assert "pigeons" in model.last.text, "what is in the conversation itself was not touched"
    await memory.aclose()


async def test_what_tools_found_stays_when_a_caller_is_bound_by_a_better_name() -> None:
    """Decision 19: the backend's name for the caller, which arrives after the identity, makes them nobody else."""
    store = ScriptedStore().finds("ana", "Keeps the secret pigeons in Porto.")
    model = uses(CALLS[0], "What do I have?")
    with job() as running:
        memory = memory_over(store)
        person = Person("ana")
        memory.bind(participant=person)
        async with started(SupermemoryAgent(memory, instructions="Be kind."), llm=model) as session:
            memory.attach(session)
            await say(session, "What do I have?")
            person.attributes[TAG_ATTRIBUTE] = "user_1"
            running.context.room.emit("participant_attributes_changed", {TAG_ATTRIBUTE: "user_1"}, person)
            assert memory.container_tag == "user_1"
            await say(session, "And?")
            assert "pigeons" in model.last.text
        await memory.aclose()
