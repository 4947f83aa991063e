"""What a log may hold when everything is logged: kinds of errors and numbers, nothing of a caller."""

from __future__ import annotations

import asyncio
import json
import logging

import pytest
from livekit.agents import ChatContext, llm

from supermemory_livekit.capture.memory_talk import FOLLOW_UPS
from supermemory_livekit.testing import Fail, ScriptedLLM, ToolCall, WireStep, Work
from supermemory_livekit.testing.llm import Reply
from tests.support.clock import VirtualClock
from tests.support.privacy import assert_private
from tests.support.sessions import say, started

from .conftest import LOGGERS, SECRETS
from .faults import FAULTS
from .world import World, agent_over, echo

ANA, BO = "ana-zanzibar", "bo@zanzibar.example"


@pytest.mark.parametrize("fault", [Work(), *FAULTS.values()], ids=["no fault", *FAULTS])
async def test_no_word_memory_tag_or_key_is_logged_on_any_path(
    clock: VirtualClock, world: World, caplog: pytest.LogCaptureFixture, fault: WireStep
) -> None:
    """Case P2, Design 6: recall, capture, tools, rebind and closing, all of them well and badly, at DEBUG."""
    await world.knows(ANA, "Likes zanzibar tea.")
    memory = world.memory(ANA, "zanzibar room")
    calls = (
        ToolCall("remember", {"memory": "Has a zanzibar parrot."}),
        ToolCall("forget", {"memory_text": "Likes zanzibar coffee."}),
        ToolCall("search_memories", {"query": "zanzibar tea"}),
    )

    def reply(context: ChatContext, offered: list[llm.Tool]) -> Reply:
        last = context.items[-1]
        plain = last.type != "message" or "plainly" in (last.text_content or "")
        return "Done." if plain else calls

    tools = ScriptedLLM(reply)
    async with started(agent_over(memory), llm=tools) as session:
        memory.attach(session)
        await say(session, "Hello from zanzibar.")
        world.fail(fault)
        await say(session, "Hello again from zanzibar.")
        # The turn before is kept out of the call where something may have been forgotten in it.
        for _ in range(1 + FOLLOW_UPS):
            await say(session, "This is plainly said in zanzibar.")
        await asyncio.sleep(20)
        memory.bind(container_tag=BO)
        await say(session, "And hello from somebody else in zanzibar.")
    await memory.aclose()
    sent = json.dumps([[request.path, request.body] for request in world.wire.requests])
    assert all(words in sent for words in ("plainly said in zanzibar", "zanzibar parrot", ANA))
    assert any(record.name == "supermemory_livekit" for record in caplog.records)
    for name in LOGGERS:
        assert_private(caplog, SECRETS, logger=name)


async def test_an_error_that_nobody_foresaw_is_logged_without_its_text(
    clock: VirtualClock, world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """Case P2: an exception of another library may quote the request; its kind is all that is said of it."""
    memory = world.memory(ANA)
    world.fail(Fail(RuntimeError(f"could not send {SECRETS}")))
    async with started(agent_over(memory), llm=echo()) as session:
        memory.attach(session)
        assert await say(session, "Hello from zanzibar.") == "You said Hello from zanzibar."
        assert (await memory.remember("Has a zanzibar parrot.")).startswith("NOT saved")
    await memory.aclose()
    ours = [record for record in caplog.records if record.name == "supermemory_livekit"]
    assert any(record.levelno == logging.WARNING for record in ours)
    assert_private(caplog, SECRETS)
