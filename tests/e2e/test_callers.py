"""Whose memory it is: LiveKit's real client and real worker, and the quick start, against a double of LiveKit's server.

The server is a double (`tests.e2e.double`) unless LIVEKIT_URL, LIVEKIT_API_KEY and LIVEKIT_API_SECRET name a real
one. Callers type; the agent's voice is scripted and goes nowhere. Real processes and real time; every wait is bounded.
"""

from __future__ import annotations

import asyncio
import json

import pytest

from supermemory_livekit.scope import container_tag
from tests.e2e.world import World, spoken

pytestmark = [pytest.mark.timeout(180), pytest.mark.asyncio(loop_scope="module")]

EXECUTOR = "thread"
"""Jobs share one process: what one call left behind, the next would find."""

HOME = "I live in Porto."
NOTED = "Noted."
WHERE = "where do I live"
KNOWN = "You live in Porto."
UNKNOWN = "I do not know."


async def test_job_metadata_decides_whose_memory_it_is(here: World) -> None:
    """Specification, "Scope": the tag usually comes from job metadata."""
    first, again, other = here.room("metadata-1"), here.room("metadata-2"), here.room("metadata-3")
    metadata = json.dumps({"container_tag": "user_7"})
    assert await here.conversation(first, "ana", HOME, metadata=metadata) == [NOTED]
    known, unknown = await asyncio.gather(
        here.conversation(again, "her-phone", WHERE, metadata=metadata),
        here.conversation(other, "ana", WHERE),
    )
    assert (known, unknown) == ([KNOWN], [UNKNOWN])
    assert await here.remembered(first, again, other) == {
        ("user_7", f"lk-{first}"): spoken([HOME], [NOTED]),
        ("user_7", f"lk-{again}"): spoken([WHERE], [KNOWN]),
        ("ana", f"lk-{other}"): spoken([WHERE], [UNKNOWN]),
    }


async def test_the_attribute_in_the_callers_token_decides_whose_memory_it_is(here: World) -> None:
    """Specification, "Scope": without a tag in metadata, the participant's attribute wins over the identity."""
    first, again, other = here.room("attribute-1"), here.room("attribute-2"), here.room("attribute-3")
    attributes = {"supermemory_container_tag": "user_8"}
    assert await here.conversation(first, "bo", HOME, attributes=attributes) == [NOTED]
    known, unknown = await asyncio.gather(
        here.conversation(again, "his-phone", WHERE, attributes=attributes),
        here.conversation(other, "bo", WHERE),
    )
    assert (known, unknown) == ([KNOWN], [UNKNOWN])
    assert await here.remembered(first, again, other) == {
        ("user_8", f"lk-{first}"): spoken([HOME], [NOTED]),
        ("user_8", f"lk-{again}"): spoken([WHERE], [KNOWN]),
        ("bo", f"lk-{other}"): spoken([WHERE], [UNKNOWN]),
    }


async def test_a_caller_is_known_by_their_identity_and_a_room_that_is_used_again_is_one_document(
    here: World,
) -> None:
    """Specification, "Scope": last the identity, made safe; a later call with the same session id appends."""
    room, phone = here.room("identity"), "sip:+1 555 0100@example.com"
    assert await here.conversation(room, phone, HOME) == [NOTED]
    assert await here.conversation(room, phone, WHERE) == [KNOWN]
    assert await here.remembered(room) == {
        (container_tag(phone), f"lk-{room}"): spoken([HOME, WHERE], [NOTED, KNOWN])
    }


async def test_two_calls_at_once_do_not_meet(here: World) -> None:
    """Specification: one memory per call; a worker handles many calls."""
    homes = {"gil": "Lisbon", "hal": "Graz"}
    first = {name: here.room(f"{name}-1") for name in homes}
    again = {name: here.room(f"{name}-2") for name in homes}
    async with here.rings(first["gil"], "gil") as gil, here.rings(first["hal"], "hal") as hal:
        calls = {"gil": gil, "hal": hal}
        for said in ("Hello.", "I live in {}."):
            replies = [call.say(said.format(homes[name])) for name, call in calls.items()]
            assert await asyncio.gather(*replies) == [NOTED, NOTED]
        await asyncio.gather(*(call.hang_up() for call in calls.values()))
    for room in first.values():
        await here.ended(room)
    assert await asyncio.gather(*(here.conversation(again[name], name, WHERE) for name in homes)) == [
        ["You live in Lisbon."],
        ["You live in Graz."],
    ]
    expected = {}
    for name, city in homes.items():
        expected[name, f"lk-{first[name]}"] = spoken(["Hello.", f"I live in {city}."], [NOTED, NOTED])
        expected[name, f"lk-{again[name]}"] = spoken([WHERE], [f"You live in {city}."])
    assert await here.remembered(*first.values(), *again.values()) == expected


async def test_two_callers_one_after_the_other_in_one_process_do_not_meet(here: World) -> None:
    """Specification: memory is isolated by container tag; here jobs are threads, so nothing ends with a call."""
    rooms = [here.room(f"in-turn-{number}") for number in range(3)]
    assert await here.conversation(rooms[0], "ida", HOME) == [NOTED]
    assert await here.conversation(rooms[1], "jon", WHERE) == [UNKNOWN]
    assert await here.conversation(rooms[2], "ida", WHERE) == [KNOWN]
    assert await here.remembered(*rooms) == {
        ("ida", f"lk-{rooms[0]}"): spoken([HOME], [NOTED]),
        ("jon", f"lk-{rooms[1]}"): spoken([WHERE], [UNKNOWN]),
        ("ida", f"lk-{rooms[2]}"): spoken([WHERE], [KNOWN]),
    }
