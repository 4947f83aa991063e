"""The mirror over the official SDK and the embedded service: it finds what the service's own search would find."""

from __future__ import annotations

import asyncio
from datetime import datetime, timezone

from supermemory_livekit.mirror.mirror import REFRESH_INTERVAL, Mirror
from supermemory_livekit.sdk.store import SDKStore
from tests.support.clock import VirtualClock
from tests.unit.mirroring import found, until

from .world import World

TAG = "caller-zanzibar"
QUESTIONS = ("dog", "zanzibar tea", "what is my dog called", "kayak order", "where do I live")


def over(world: World) -> tuple[Mirror, SDKStore]:
    store = SDKStore(world.client(), owns_client=False)
    return Mirror(store, TAG, load_embedder=lambda: None), store


async def test_it_finds_what_the_service_finds(world: World) -> None:
    """Issue "memory that costs the caller no time", point 1: the same retrieval code as the embedded service."""
    await world.knows(TAG, "Has a dog called Rex Zanzibar", "Likes zanzibar tea", "Lives in Porto")
    await world.knows("someone-else", "Has a dog called Zanzibar")
    mirror, store = over(world)
    text = "[2026-11-28T10:00:00.000Z] Caller: zanzibar kayak order\n[2026-11-28T10:00:02.000Z] Agent: Noted."
    now = datetime.now(timezone.utc)
    await store.append(TAG, "lk-1", text, dreaming="dynamic", at=now, timeout=5)
    mirror.start()
    await until(lambda: mirror.complete)
    for question in QUESTIONS:
        there = await store.search(TAG, question, limit=5, threshold=0.1, mode="hybrid", timeout=5)
        here = await mirror.search(question, limit=5, threshold=0.1)
        assert [(hit.text, hit.memory_id, hit.updated_at) for hit in here] == [
            (hit.text, hit.memory_id, hit.updated_at) for hit in there
        ]
        assert [round(hit.similarity, 2) for hit in here] == [round(hit.similarity, 2) for hit in there]
    assert (await found(mirror, "zanzibar kayak"))[0] == text
    await mirror.aclose()


async def test_old_versions_and_forgotten_facts_are_not_in_it(world: World) -> None:
    """Issue, point 1, on the wire of the official SDK."""
    await world.knows(TAG, "Lives in zanzibar", "Likes tea")
    client = world.client()
    old = await client.memories.update_memory(
        container_tag=TAG, content="Lives in zanzibar", new_content="Lives in Porto"
    )
    assert old.id
    await client.memories.forget(container_tag=TAG, content="Likes tea")
    mirror, _ = over(world)
    mirror.start()
    await until(lambda: mirror.complete)
    assert await found(mirror, "lives in zanzibar porto likes tea") == ["Lives in Porto"]
    assert len(mirror) == 1
    await mirror.aclose()


async def test_a_remembered_fact_gets_its_id_with_a_refresh(world: World, clock: VirtualClock) -> None:
    """Issue, point 1: read your own writes; after that the mirror is refreshed in the background."""
    mirror, store = over(world)
    mirror.start()
    await until(lambda: mirror.complete)
    fact = "Has a boat called Zanzibar"
    receipt = await store.remember(TAG, fact, dreaming="instant", timeout=5)
    mirror.remembered(fact, receipt)
    assert await found(mirror, "boat") == [fact]
    await world.settled()
    listed = len(world.wire.sent("POST /v4/memories/list"))
    await asyncio.sleep(REFRESH_INTERVAL)
    await until(lambda: len(world.wire.sent("POST /v4/memories/list")) > listed and len(mirror) == 1)
    (hit,) = await mirror.search("boat", limit=5, threshold=0.1)
    assert hit.memory_id is not None
    assert clock.elapsed < 2 * REFRESH_INTERVAL
    await mirror.aclose()
