"""Ends of calls: LiveKit's real client and real worker, and the quick start, against a double of LiveKit's server.

The server is a double (`tests.e2e.double`) unless LIVEKIT_URL, LIVEKIT_API_KEY and LIVEKIT_API_SECRET name a real
one. Callers type; the agent's voice is scripted and goes nowhere. Real processes and real time; every wait is bounded.
"""

from __future__ import annotations

import asyncio

import pytest

from tests.e2e.agent import HARD_QUESTION, STORY
from tests.e2e.world import World, spoken

pytestmark = [pytest.mark.timeout(180), pytest.mark.asyncio(loop_scope="module")]

EXECUTOR = "process"
"""Each job is a process, as LiveKit does by default: what is not stored when it ends is lost."""

HOME = "I live in Porto."
NOTED = "Noted."
WHERE = "where do I live"
KNOWN = "You live in Porto."


async def test_a_hang_up_while_the_agent_speaks_keeps_the_question_and_what_was_heard(here: World) -> None:
    """Case C1: the question is stored, and the heard part of the answer if LiveKit emits it."""
    room, again = here.room("speaking-1"), here.room("speaking-2")
    async with here.rings(room, "cy") as call:
        assert await call.say(HOME) == NOTED
        await call.ask("Tell me a story.")
        await call.hears("a time")
        await call.hang_up()
    replies, _ = await asyncio.gather(here.conversation(again, "cy", WHERE), here.ended(room))
    assert replies == [KNOWN]
    documents = await here.remembered(room)
    lines = documents.pop(("cy", f"lk-{room}"))
    assert documents == {}
    assert lines[:-1] == [*spoken([HOME], [NOTED]), "Caller: Tell me a story."]
    speaker, _, heard = lines[-1].partition(": ")
    assert speaker == "Agent (interrupted)"
    assert heard.startswith("Once upon a")
    assert STORY.startswith(heard)
    assert heard != STORY


async def test_a_call_that_the_backend_ends_while_the_agent_listens_is_stored(here: World) -> None:
    """Design, "Lifecycle": the last turns are stored however the call ends."""

    async def ended(caller: str, order: str) -> str:
        room, again = here.room(f"{caller}-1"), here.room(f"{caller}-2")
        async with here.rings(room, caller) as call:
            assert await call.say(HOME) == NOTED
            reason = await call.ends_by(order)
        await here.ended(room)
        assert await here.remembered(room) == {(caller, f"lk-{room}"): spoken([HOME], [NOTED])}
        assert await here.conversation(again, caller, WHERE) == [KNOWN]
        return reason

    removed, deleted = await asyncio.gather(ended("di", "be removed"), ended("ed", "delete room"))
    assert (removed, deleted) == ("PARTICIPANT_REMOVED", "ROOM_DELETED")


async def test_a_caller_whose_connection_is_lost_comes_back_into_the_same_call_and_is_lost_again(
    here: World,
) -> None:
    """A connection timeout ends no session; cases C2 and C11: what waits for an answer that never comes is stored."""
    room, again = here.room("lost-1"), here.room("lost-2")
    async with here.rings(room, "fay", departure_timeout=16) as call:
        assert await call.say(HOME) == NOTED
        await call.vanish()
    async with here.rings(room, "fay", with_agent=False) as call:
        await call.ask(HARD_QUESTION)
        await call.sees("thinking")
        await call.vanish()
    replies, _ = await asyncio.gather(here.conversation(again, "fay", WHERE), here.ended(room))
    assert replies == [KNOWN]
    assert await here.remembered(room) == {
        ("fay", f"lk-{room}"): [*spoken([HOME], [NOTED]), f"Caller: {HARD_QUESTION}"]
    }
