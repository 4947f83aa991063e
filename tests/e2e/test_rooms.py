"""Calls in rooms: LiveKit's real client and real worker, and the quick start, against a double of LiveKit's server.

The server is a double (`tests.e2e.double`) unless LIVEKIT_URL, LIVEKIT_API_KEY and LIVEKIT_API_SECRET name a real
one. Callers type; the agent's voice is scripted and goes nowhere. Real processes and real time; every wait is bounded.
"""

from __future__ import annotations

import json

import pytest

from tests.e2e.world import World, spoken

pytestmark = [pytest.mark.timeout(120), pytest.mark.asyncio(loop_scope="module")]

HOME = "I live in Porto."
WHERE = "where do I live"


async def test_job_metadata_decides_whose_memory_it_is(here: World) -> None:
    """Specification, "Scope": the tag usually comes from job metadata."""
    first, second, third = (here.room(name) for name in ("metadata-1", "metadata-2", "metadata-3"))
    metadata = json.dumps({"container_tag": "user_7"})
    assert await here.conversation(first, "ana", HOME, metadata=metadata) == ["Noted."]
    assert await here.conversation(second, "her-phone", WHERE, metadata=metadata) == ["You live in Porto."]
    assert await here.conversation(third, "ana", WHERE) == ["I do not know."]
    assert await here.remembered(first, second, third) == {
        ("user_7", f"lk-{first}"): spoken([HOME], ["Noted."]),
        ("user_7", f"lk-{second}"): spoken([WHERE], ["You live in Porto."]),
        ("ana", f"lk-{third}"): spoken([WHERE], ["I do not know."]),
    }
