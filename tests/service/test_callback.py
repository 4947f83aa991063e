"""A caller who rings back at once: the end of the last call, over the official SDK.

With the embedded service, and with answers in the shapes of the hosted API's contract: its list does not say whether
memories were made of a document, its `GET` does.
"""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import httpx
import pytest
from livekit.agents import ChatContext
from supermemory import AsyncSupermemory

from supermemory_livekit import InputParams, SupermemoryLiveKit
from supermemory_livekit.testing import FaultyTransport, Respond
from tests.support.clock import VirtualClock
from tests.support.sessions import say, started

from .world import KEY, World, agent_over, echo

TAG = "ana-zanzibar"
MARK = "The end of the last call"


async def preloaded(memory: SupermemoryLiveKit) -> str:
    context = ChatContext()
    await memory.preload(context)
    return "\n".join(item.text_content or "" for item in context.items if item.type == "message")


async def test_the_embedded_service_brings_a_call_that_it_has_not_processed(
    world: World, clock: VirtualClock
) -> None:
    """Issue: the callback gap, with the embedded service."""
    memory = world.memory(TAG, "monday", capture_dreaming="dynamic")
    async with started(agent_over(memory), llm=echo()) as session:
        memory.attach(session)
        await say(session, "I want the blue bicycle")
    await memory.aclose()
    soon = world.memory(TAG, "tuesday")
    shown = await preloaded(soon)
    await soon.aclose()
    assert MARK in shown
    assert "Caller: I want the blue bicycle" in shown


async def test_the_embedded_service_brings_none_of_a_call_that_is_processed(
    world: World, clock: VirtualClock
) -> None:
    """Issue: its memories tell of it then."""
    memory = world.memory(TAG, "monday")
    async with started(agent_over(memory), llm=echo()) as session:
        memory.attach(session)
        await say(session, "I want the blue bicycle")
    await memory.aclose()
    await world.settled()
    later = world.memory(TAG, "tuesday")
    shown = await preloaded(later)
    await later.aclose()
    assert MARK not in shown
    assert "I want the blue bicycle" in shown


def hosted(*, state: str, lists: bool = True) -> FaultyTransport:
    """Answers as the contract of the hosted API has them, of one call that was just held."""
    now = datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    text = f"[{now}] Caller: I want the blue bicycle"
    document: dict[str, Any] = {
        "id": "doc1",
        "customId": "lk-monday",
        "containerTags": [TAG],
        "content": text,
        "status": "done",
        "createdAt": now,
        "updatedAt": now,
        "title": None,
        "summary": None,
        "type": "text",
        "metadata": None,
        "connectionId": None,
    }
    pages = {"currentPage": 1, "limit": 20, "totalItems": 1, "totalPages": 1}
    chunk = {
        "id": "chunk1",
        "chunk": text,
        "similarity": 0.4,
        "updatedAt": now,
        "metadata": None,
    }
    listed = Respond(200, {"memories": [document], "pagination": pages})
    refused = Respond(403, {"error": "Forbidden", "details": "not with this key"})
    empty = {"memoryEntries": [], "pagination": {**pages, "totalItems": 0}}
    return (
        FaultyTransport()
        .always("POST /v4/profile", Respond(200, {"profile": {"static": ["Is called Ana."], "dynamic": []}}))
        .always("POST /v3/documents/list", listed if lists else refused)
        .always("GET /v3/documents/doc1", Respond(200, {**document, "dreamingStatus": state}))
        .always("POST /v4/memories/list", Respond(200, empty) if lists else refused)
        .always("POST /v4/search", Respond(200, {"results": [chunk], "timing": 3, "total": 1}))
    )


@pytest.mark.parametrize(
    ("lists", "state", "told"),
    [(True, "dreaming", True), (True, "done", False), (False, "dreaming", True)],
    ids=["not processed", "processed", "a key that may not list"],
)
@pytest.mark.parametrize("mirror", [True, False], ids=["mirror", "no mirror"])
async def test_the_hosted_contract_tells_whether_a_call_is_processed(
    lists: bool, state: str, told: bool, mirror: bool, clock: VirtualClock
) -> None:
    """Issue: the callback gap, with the contract of the hosted API."""
    wire = hosted(state=state, lists=lists)
    client = AsyncSupermemory(
        api_key=KEY,
        base_url="http://memory.test",
        http_client=httpx.AsyncClient(transport=wire),
        max_retries=0,
    )
    memory = SupermemoryLiveKit(
        client=client, container_tag=TAG, session_id="tuesday", params=InputParams(mirror=mirror)
    )
    shown = await preloaded(memory)
    await memory.aclose()
    await client.close()
    assert "Is called Ana." in shown
    assert ("Caller: I want the blue bicycle" in shown) is told
    wire.verify()
