"""Listing memories and calls over the official SDK: what is on the wire, and what is read of the answer."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any

import httpx
import pytest
from supermemory import AsyncSupermemory

from supermemory_livekit.errors import (
    AccessDenied,
    NotFound,
    PaymentRequired,
    RateLimited,
    RequestRejected,
    ServiceError,
    ServiceTimeout,
    ServiceUnavailable,
)
from supermemory_livekit.sdk.store import SDKStore
from supermemory_livekit.store import Hit, MemoryPage, MemoryStore, StoredCall, StoredMemory
from supermemory_livekit.testing import ScriptedStore

TAG = "caller-7"
SPOKEN = "my secret word is marzipan"
AT = datetime(2026, 11, 29, 17, 16, 29, 123_000, tzinfo=timezone.utc)
STAMP = "2026-11-29T17:16:29.123Z"

Handler = Callable[[httpx.Request], httpx.Response]


class Service:
    """Answers by path, and records what was asked."""

    def __init__(self, answers: dict[str, object] | Handler) -> None:
        self._answers = answers
        self.requests: list[tuple[str, Any]] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content) if request.content else None
        self.requests.append((f"{request.method} {request.url.path}", body))
        if callable(self._answers):
            return self._answers(request)
        answer = self._answers.get(request.url.path)
        return httpx.Response(404 if answer is None else 200, json=answer or {"error": SPOKEN})


def store_over(answers: dict[str, object] | Handler) -> tuple[SDKStore, Service]:
    service = Service(answers)
    http = httpx.AsyncClient(transport=httpx.MockTransport(service))
    return SDKStore(AsyncSupermemory(api_key="k", base_url="http://service.test", http_client=http)), service


def entry(**fields: object) -> dict[str, object]:
    return {
        "id": "m1",
        "memory": "Likes tea",
        "isLatest": True,
        "isForgotten": False,
        "isStatic": False,
        "updatedAt": STAMP,
        "forgetAfter": None,
        "history": [],
        "documentIds": ["d1"],
        **fields,
    }


async def listed(*entries: object, **pagination: object) -> MemoryPage:
    answer: dict[str, object] = {"memoryEntries": list(entries)}
    if pagination:
        answer["pagination"] = pagination
    store, _ = store_over({"/v4/memories/list": answer})
    return await store.memories(TAG, page=1, limit=10, timeout=2)


async def test_memories_are_asked_for_by_one_tag_newest_first() -> None:
    """Case P8: one tag; the list has no other form than the plural. The SDK has this route only through `post`."""
    store, service = store_over({"/v4/memories/list": {"memoryEntries": []}})
    await store.memories(TAG, page=3, limit=5_000, timeout=2)
    body = {"containerTags": [TAG], "page": 3, "limit": 1_000, "sort": "updatedAt", "order": "desc"}
    assert service.requests == [("POST /v4/memories/list", body)]


async def test_a_listed_memory_is_read_with_its_age_and_its_sources() -> None:
    """Reference 1.5, `POST /v4/memories/list`."""
    page = await listed(
        entry(
            isStatic=True,
            temporalContext={"documentDate": "2026-11-01"},
            forgetAfter="2126-01-01T00:00:00.000Z",
        ),
        currentPage=1,
        totalPages=2,
        totalItems=11,
        limit=10,
    )
    assert page == MemoryPage(
        entries=(
            StoredMemory(
                "m1",
                "Likes tea",
                static=True,
                updated_at=AT,
                said_at=datetime(2026, 11, 1, tzinfo=timezone.utc),
                expires_at=datetime(2126, 1, 1, tzinfo=timezone.utc),
                documents=("d1",),
            ),
        ),
        more=True,
        total=11,
    )


@pytest.mark.parametrize(
    "fields",
    [
        {"isForgotten": True},
        {"isLatest": False},
        {"forgetAfter": "2026-01-01T00:00:00.000Z"},
        {"memory": "  "},
        {"memory": None},
    ],
)
async def test_what_no_longer_holds_is_left_out_and_named(fields: dict[str, object]) -> None:
    """Brief of the mirror: forgotten, old versions and expired left out; a refresh must know that they went."""
    page = await listed(entry(id="old", **fields), entry(history=[{"id": "m0"}, {"id": "m1"}, {}]))
    assert [one.id for one in page.entries] == ["m1"]
    assert page.gone == ("old",)
    assert page.replaced == ("m0",)


@pytest.mark.parametrize(
    ("pagination", "more"),
    [
        ({"currentPage": 2.0, "totalPages": 2.0}, False),
        ({"currentPage": "1", "totalPages": "2"}, True),
        ({"currentPage": 1}, True),
        ({}, True),
    ],
)
async def test_a_page_is_the_last_only_when_the_service_says_so(
    pagination: dict[str, object], more: bool
) -> None:
    """Robustness: a service may give fewer than it was asked for; a mirror that ends early would call itself whole."""
    assert (await listed(entry(), **pagination)).more is more
    assert not (await listed(**pagination)).more


async def test_junk_in_a_list_is_skipped_and_a_list_that_is_none_is_an_outage() -> None:
    """Seam: an answer that is not what the API describes is a `ServiceError`."""
    page = await listed(
        None, 7, {}, entry(history="x", documentIds=[None, 3], temporalContext="y", updatedAt="z")
    )
    assert page.entries == (StoredMemory("m1", "Likes tea"),)
    for answer in ({"memoryEntries": "many"}, ["m1"], "page"):
        store, _ = store_over({"/v4/memories/list": answer})
        with pytest.raises(ServiceUnavailable):
            await store.memories(TAG, page=1, limit=10, timeout=2)


def document(**fields: object) -> dict[str, object]:
    return {
        "id": "d1",
        "customId": "lk-1",
        "containerTags": [TAG],
        "content": "a\nb",
        "updatedAt": STAMP,
        **fields,
    }


async def test_calls_are_asked_for_with_their_contents() -> None:
    """Brief of the mirror: newest first, processed when the list says so; nobody is asked twice."""
    answer = {
        "memories": [
            document(dreamingStatus="dreaming"),
            document(id="d2", customId=None, dreamingStatus="done"),
            document(id="d3", containerTags=["someone-else"], dreamingStatus="done"),
            document(id="d4", content=None),
            document(id="d5", content="  "),
            document(id=None),
            7,
        ]
    }
    store, service = store_over({"/v3/documents/list": answer})
    assert await store.latest_calls(TAG, limit=20, timeout=2) == [
        StoredCall("d1", "lk-1", "a\nb", False, AT),
        StoredCall("d2", None, "a\nb", True, AT),
    ]
    ((path, body),) = service.requests
    assert path == "POST /v3/documents/list"
    assert body == {
        "containerTags": [TAG],
        "includeContent": True,
        "limit": 20,
        "page": 1,
        "sort": "updatedAt",
        "order": "desc",
    }


async def test_the_newest_are_asked_one_by_one_when_the_list_does_not_tell() -> None:
    """Brief of the mirror: `documents.get` of the newest few. One that does not answer is better kept than missed."""
    answers: dict[str, object] = {
        "/v3/documents/list": {"memories": [document(id=f"d{n}", customId=f"lk-{n}") for n in range(5)]},
        "/v3/documents/d0": document(id="d0", dreamingStatus="dreaming"),
        "/v3/documents/d1": document(id="d1", dreamingStatus="done"),
    }
    store, service = store_over(answers)
    found = await store.latest_calls(TAG, limit=20, timeout=2)
    assert [one.processed for one in found] == [False, True, False, True, True]
    assert len(service.requests) == 4


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, RequestRejected),
        (401, AccessDenied),
        (402, PaymentRequired),
        (403, AccessDenied),
        (404, NotFound),
        (429, RateLimited),
        (500, ServiceUnavailable),
    ],
)
@pytest.mark.parametrize("operation", ["memories", "latest_calls"])
async def test_a_list_fails_like_everything_else(
    status: int, kind: type[ServiceError], operation: str
) -> None:
    """Seam: one error tree, nothing of the request or the answer in the text, no retry."""
    store, service = store_over(lambda _: httpx.Response(status, json={"error": SPOKEN}))
    with pytest.raises(kind) as caught:
        await _ask(store, operation)
    assert "marzipan" not in str(caught.value)
    assert TAG not in str(caught.value)
    assert not caught.value.uncertain
    assert len(service.requests) == 1


@pytest.mark.parametrize("operation", ["memories", "latest_calls"])
async def test_a_list_keeps_its_deadline(operation: str) -> None:
    """Seam: deadlines in seconds."""

    def late(_: httpx.Request) -> httpx.Response:
        raise httpx.ReadTimeout("late")

    store, _ = store_over(late)
    with pytest.raises(ServiceTimeout):
        await _ask(store, operation)


class Plain:
    """The least client there is."""

    def __init__(self) -> None:
        self.search = self.memories = self

    async def add(self, **_: object) -> object: ...

    async def profile(self, **_: object) -> object: ...

    async def forget(self, **_: object) -> object: ...


class Searching(Plain):
    async def __call__(self, **_: object) -> object: ...


async def test_a_client_without_lists_says_so() -> None:
    """Seam: `NotImplementedError`, for clients of other people's making and for stores written before."""
    client: Any = Plain()
    client.search = type("Search", (), {"memories": staticmethod(Searching().__call__)})()
    client.memories = client
    for store in (SDKStore(client), _Old()):
        for operation in ("memories", "latest_calls"):
            with pytest.raises(NotImplementedError):
                await _ask(store, operation)


class _Old(ScriptedStore):
    """A store from before there were lists."""

    memories = MemoryStore.memories
    latest_calls = MemoryStore.latest_calls


async def _ask(store: MemoryStore, operation: str) -> object:
    if operation == "memories":
        return await store.memories(TAG, page=1, limit=10, timeout=2)
    return await store.latest_calls(TAG, limit=10, timeout=2)


async def test_the_scripted_store_lists_what_it_keeps() -> None:
    """Style 3: a double that needs no set-up for the usual case."""
    store = ScriptedStore()
    receipt = await store.remember(TAG, "Likes tea", dreaming="instant", timeout=2)
    await store.remember(TAG, "Likes milk", dreaming="instant", timeout=2)
    await store.forget(TAG, text="Likes milk", timeout=2)
    store.stored[TAG] = [StoredMemory("s1", "Has a dog")]
    store.hits[TAG] = [Hit("Lives in Porto", 0.5, "h1"), Hit("raw text", 0.5)]
    whole = await store.memories(TAG, page=1, limit=10, timeout=2)
    assert [one.text for one in whole.entries] == ["Likes tea", "Has a dog", "Lives in Porto"]
    assert whole.entries[0].documents == (receipt,)
    assert (len(whole.gone), whole.more, whole.total) == (1, False, 4)
    second = await store.memories(TAG, page=2, limit=1, timeout=2)
    assert ([one.text for one in second.entries], second.more) == (["Has a dog"], True)
    for custom_id in ("lk-1", "lk-2"):
        await store.append(TAG, custom_id, custom_id, dreaming="instant", at=AT, timeout=2)
    store.processed.add("lk-1")
    found = await store.latest_calls(TAG, limit=5, timeout=2)
    assert [(one.custom_id, one.processed) for one in found] == [("lk-2", False), ("lk-1", True)]
    assert await store.latest_calls("nobody", limit=5, timeout=2) == []
