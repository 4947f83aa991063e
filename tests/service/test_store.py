"""What a store promises, over the official SDK that is installed and the embedded service.

`tests/clients/test_plugin.py` runs these tests again with the other generation of the SDK.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from datetime import datetime, timezone
from importlib.metadata import version

import pytest

from supermemory_livekit.errors import (
    AccessDenied,
    Conflict,
    NotFound,
    PaymentRequired,
    RateLimited,
    RequestRejected,
    ServiceError,
    ServiceTimeout,
    ServiceUnavailable,
)
from supermemory_livekit.sdk.store import SDKStore
from supermemory_livekit.store import StoredMemory
from supermemory_livekit.testing import Hang, Reset
from tests.support.clock import VirtualClock

from .faults import refusal
from .world import World

TAG = "ana:zanzibar"
OTHER = "bob-zanzibar"
CALL = "lk-room.1"
AT = datetime(2026, 11, 29, 17, 16, 29, 123_000, tzinfo=timezone.utc)
FIRST = "[2026-11-29T17:16:29.123Z] Caller: I sail to zanzibar on weekends."
SECOND = "[2026-11-29T17:16:31.456Z] Caller: My zanzibar parrot is called Coco."


@pytest.fixture
async def store(world: World) -> AsyncGenerator[SDKStore]:
    """Over a client that would repeat requests by itself, as a careless user leaves it."""
    store = SDKStore(world.client(), owns_client=False)
    yield store
    await store.aclose()


async def append(store: SDKStore, text: str = FIRST, *, tag: str = TAG, timeout: float = 5) -> str | None:
    return await store.append(tag, CALL, text, dreaming="instant", at=AT, timeout=timeout)


async def read(store: SDKStore, *, tag: str = TAG, service_id: str | None = None) -> str | None:
    return await store.read(tag, CALL, service_id=service_id, timeout=5)


async def listed(store: SDKStore, tag: str = TAG) -> list[StoredMemory]:
    return list((await store.memories(tag, page=1, limit=1000, timeout=5)).entries)


# -- what is stored and found


async def test_a_caller_nobody_knows_has_nothing_and_that_is_no_error(store: SDKStore) -> None:
    """Store protocol: profile, search, read and the lists."""
    assert not await store.profile(TAG, timeout=5)
    assert await store.search(TAG, "zanzibar", limit=5, threshold=0.0, mode="hybrid", timeout=5) == []
    assert await read(store) is None
    assert await listed(store) == []
    assert await store.latest_calls(TAG, limit=5, timeout=5) == []


async def test_a_second_append_adds_to_the_document(world: World, store: SDKStore) -> None:
    """Design 5.3: a call is one document; exactly-once rests on an append that never replaces."""
    receipt = await append(store)
    assert receipt
    assert await append(store, SECOND) == receipt
    await world.settled()
    for service_id in (receipt, None):
        assert await read(store, service_id=service_id) == f"{FIRST}\n{SECOND}"
    assert await world.documents(TAG) == {CALL: f"{FIRST}\n{SECOND}"}


async def test_the_same_custom_id_under_another_tag_is_another_document(
    world: World, store: SDKStore
) -> None:
    """Scope: one caller per request, whatever the ids."""
    receipt = await append(store)
    assert await read(store, tag=OTHER, service_id=receipt) is None
    await append(store, SECOND, tag=OTHER)
    await world.settled()
    assert await read(store) == FIRST
    assert await read(store, tag=OTHER) == SECOND


async def test_the_time_of_an_append_is_stored_with_it(world: World, store: SDKStore) -> None:
    """Store protocol: `at` is when the text was spoken, which is how old a memory of it is."""
    if tuple(map(int, version("supermemory").split(".")[:2])) < (3, 59):
        pytest.skip("SDKs before 3.59 know no document dates")
    await store.append(TAG, CALL, "User: I like zanzibar tea.", dreaming="instant", at=AT, timeout=5)
    await world.settled()
    (hit,) = await store.search(TAG, "zanzibar tea", limit=1, threshold=0.0, mode="memories", timeout=5)
    assert hit.updated_at == AT


async def test_what_was_said_is_found_as_text_and_as_a_memory(world: World, store: SDKStore) -> None:
    """Store protocol: search in both modes, best first, with ids that forget accepts for memories alone."""
    await append(store, f"{FIRST}\n{SECOND}")
    await world.settled()
    hybrid = await store.search(TAG, "zanzibar parrot Coco", limit=5, threshold=0.0, mode="hybrid", timeout=5)
    assert "parrot" in hybrid[0].text
    assert [hit.similarity for hit in hybrid] == sorted((hit.similarity for hit in hybrid), reverse=True)
    memories = await store.search(TAG, "zanzibar parrot", limit=1, threshold=0.0, mode="memories", timeout=5)
    assert len(memories) == 1
    assert memories[0].memory_id
    assert memories[0].updated_at is not None
    assert await store.search(TAG, "zanzibar", limit=5, threshold=1.0, mode="memories", timeout=5) == []


async def test_a_profile_and_a_list_hold_what_is_known(world: World, store: SDKStore) -> None:
    """Store protocol: durable facts in the profile, and each memory in the list with an id and a time."""
    await world.knows(TAG, "Likes zanzibar tea.", "Sails to zanzibar.")
    profile = await store.profile(TAG, timeout=5)
    assert {line.partition("] ")[2] or line for line in profile.static} == {
        "Likes zanzibar tea.",
        "Sails to zanzibar.",
    }
    page = await store.memories(TAG, page=1, limit=1000, timeout=5)
    assert {memory.text for memory in page.entries} == {"Likes zanzibar tea.", "Sails to zanzibar."}
    assert all(memory.static and memory.id and memory.updated_at for memory in page.entries)
    assert (page.more, page.total) == (False, 2)


async def test_lists_are_cut_into_pages(world: World, store: SDKStore) -> None:
    """Store protocol: `more` says that there are others."""
    await world.knows(TAG, *(f"zanzibar fact {number}" for number in range(3)))
    pages = [await store.memories(TAG, page=number, limit=2, timeout=5) for number in (1, 2)]
    assert [page.more for page in pages] == [True, False]
    assert len({memory.id for page in pages for memory in page.entries}) == 3


async def test_a_call_is_listed_by_its_custom_id_and_a_fact_without_one(
    world: World, store: SDKStore
) -> None:
    """Store protocol: `StoredCall.custom_id` tells calls from remembered facts."""
    receipt = await append(store)
    fact = await store.remember(TAG, "Likes zanzibar tea.", dreaming="instant", timeout=5)
    await world.settled()
    calls = await store.latest_calls(TAG, limit=5, timeout=5)
    assert {(call.id, call.custom_id, call.text, call.processed) for call in calls} == {
        (receipt, CALL, FIRST, True),
        (fact, None, "Likes zanzibar tea.", True),
    }
    assert all(call.updated_at for call in calls)
    page = await store.list_documents(TAG, page=1, limit=10, contents=True, timeout=5)
    assert {entry.text for entry in page.entries} == {FIRST, "Likes zanzibar tea."}
    assert all(entry.created_at for entry in page.entries)
    page = await store.list_documents(TAG, page=1, limit=1, contents=False, timeout=5)
    assert ([entry.text for entry in page.entries], page.more, page.total) == ([""], True, 2)


# -- what is taken back


async def test_a_memory_is_forgotten_once_by_its_id(world: World, store: SDKStore) -> None:
    """Store protocol: True, then a Conflict; an id that names nothing is NotFound."""
    await world.knows(TAG, "Likes zanzibar tea.", "Sails to zanzibar.")
    (tea,) = (memory for memory in await listed(store) if "tea" in memory.text)
    assert await store.forget(TAG, memory_id=tea.id, timeout=5)
    assert [memory.text for memory in await listed(store)] == ["Sails to zanzibar."]
    page = await store.memories(TAG, page=1, limit=1000, timeout=5)
    assert page.gone == (tea.id,)
    with pytest.raises(Conflict):
        await store.forget(TAG, memory_id=tea.id, timeout=5)
    with pytest.raises(NotFound):
        await store.forget(TAG, memory_id="none", timeout=5)


async def test_only_the_memory_that_reads_exactly_so_is_forgotten(world: World, store: SDKStore) -> None:
    """Specification of the tool forget: by exact text; near ones stay."""
    await world.knows(TAG, "Likes zanzibar tea.", "Likes zanzibar tea a lot.")
    with pytest.raises(NotFound):
        await store.forget(TAG, text="Likes zanzibar", timeout=5)
    assert await store.forget(TAG, text="Likes zanzibar tea.", timeout=5)
    assert [memory.text for memory in await listed(store)] == ["Likes zanzibar tea a lot."]


async def test_nobody_forgets_what_is_another_callers(world: World, store: SDKStore) -> None:
    """Scope: neither by id nor by text."""
    await world.knows(TAG, "Likes zanzibar tea.")
    (tea,) = await listed(store)
    for which in ({"memory_id": tea.id}, {"text": tea.text}):
        with pytest.raises(NotFound):
            await store.forget(OTHER, **which, timeout=5)
    assert await listed(store) == [tea]


async def test_a_remembered_fact_is_taken_back_by_its_document(world: World, store: SDKStore) -> None:
    """Case T7; and a document that is gone already is NotFound."""
    fact = await store.remember(TAG, "Likes zanzibar tea.", dreaming="dynamic", timeout=5)
    assert fact
    await store.unremember(TAG, fact, timeout=5)
    assert await world.documents(TAG) == {}
    with pytest.raises(NotFound):
        await store.unremember(TAG, fact, timeout=5)


async def test_documents_and_the_tag_are_deleted(world: World, store: SDKStore) -> None:
    """Store protocol: documents that are gone already are no error; a tag nobody knows is NotFound."""
    receipt = await append(store)
    fact = await store.remember(TAG, "Likes zanzibar tea.", dreaming="instant", timeout=5)
    await world.settled()
    assert receipt
    assert fact
    await store.delete_documents(TAG, [receipt], timeout=5)
    await store.delete_documents(TAG, [receipt, fact], timeout=5)
    assert await world.documents(TAG) == {}
    await append(store)
    await world.settled()
    assert (await store.delete_tag(TAG, timeout=5)).documents == 1
    with pytest.raises(NotFound):
        await store.delete_tag(TAG, timeout=5)


# -- what can go wrong


Operation = Callable[[SDKStore], Awaitable[object]]
READS: dict[str, Operation] = {
    "profile": lambda store: store.profile(TAG, timeout=2),
    "search": lambda store: store.search(TAG, "zanzibar", limit=5, threshold=0.1, mode="hybrid", timeout=2),
    "read": lambda store: store.read(TAG, CALL, service_id=None, timeout=2),
    "memories": lambda store: store.memories(TAG, page=1, limit=10, timeout=2),
    "latest_calls": lambda store: store.latest_calls(TAG, limit=5, timeout=2),
}
WRITES: dict[str, Operation] = {
    "append": lambda store: append(store, timeout=2),
    "remember": lambda store: store.remember(TAG, "Likes zanzibar tea.", dreaming="instant", timeout=2),
    "unremember": lambda store: store.unremember(TAG, "doc", timeout=2),
    "forget": lambda store: store.forget(TAG, memory_id="m", timeout=2),
    "delete_tag": lambda store: store.delete_tag(TAG, timeout=2),
}
OPERATIONS = {**READS, **WRITES}


async def asked(store: SDKStore, name: str) -> None:
    """Failing requests are logged by nobody; this line shows the check of every test's log that it sees one."""
    logging.getLogger("supermemory_livekit").debug("%s is asked for", name)
    await OPERATIONS[name](store)


every_operation = pytest.mark.parametrize("name", OPERATIONS)


@every_operation
async def test_every_refusal_has_its_error_and_is_sent_once(world: World, store: SDKStore, name: str) -> None:
    """Case L9 and the tree of errors: the SDK's own retries are off, and an answer's body is quoted nowhere."""
    for status, kind in {
        400: RequestRejected,
        401: AccessDenied,
        402: PaymentRequired,
        403: AccessDenied,
        409: Conflict,
        429: RateLimited,
        503: ServiceUnavailable,
    }.items():
        world.fail(refusal(status, retry_after="7"))
        sent = len(world.wire.requests)
        with pytest.raises(ServiceError) as caught:
            await asked(store, name)
        assert (type(caught.value), caught.value.status) == (kind, status)
        assert "zanzibar" not in str(caught.value)
        assert caught.value.uncertain is (name in WRITES and status >= 500)
        # Servers without document dates refuse an append with 400, which is why that is sent again.
        again = name == "append" and status == 400
        assert len(world.wire.requests) - sent in ((1, 2) if again else (1,))
        if isinstance(caught.value, RateLimited):
            assert caught.value.retry_after == 7


@every_operation
async def test_a_service_that_hangs_is_left_at_the_deadline(
    clock: VirtualClock, world: World, store: SDKStore, name: str
) -> None:
    """Case L2: the deadline holds for the operation, whatever it sends; a write may have happened."""
    world.fail(Hang())
    begun = asyncio.get_running_loop().time()
    with pytest.raises(ServiceTimeout) as caught:
        await asked(store, name)
    assert asyncio.get_running_loop().time() - begun == pytest.approx(2.0, abs=0.1)
    assert caught.value.uncertain is (name in WRITES)


@every_operation
async def test_a_broken_connection_says_whether_the_request_may_have_arrived(
    world: World, store: SDKStore, name: str
) -> None:
    """Errors: `uncertain` decides whether a write is settled before it is sent again."""
    for step, maybe in ((Reset(connected=False), False), (Reset(), True)):
        world.fail(step)
        with pytest.raises(ServiceUnavailable) as caught:
            await asked(store, name)
        assert caught.value.uncertain is (maybe and name in WRITES)


async def test_a_write_whose_answer_is_lost_is_found_by_reading(world: World, store: SDKStore) -> None:
    """Exactly once: what a settle rests on."""
    world.fail(Reset(committed=True))
    with pytest.raises(ServiceUnavailable):
        await append(store)
    world.work()
    await world.settled()
    assert await read(store) == FIRST
