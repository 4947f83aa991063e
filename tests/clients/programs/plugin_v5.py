"""Tests of the plugin over the SDK 5.x. `tests/clients/test_plugin.py` runs them where that SDK is installed."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path
from typing import Any

import httpx
import pytest
from supermemory import AsyncSupermemory, Supermemory
from tests.service.world import World, agent_over, echo
from tests.support.clock import VirtualClock
from tests.support.sessions import say, started

from supermemory_livekit import SupermemoryLiveKit
from supermemory_livekit.erasure.write_gate import WriteGate
from supermemory_livekit.errors import (
    APIMismatch,
    CallerErased,
    ConfigurationError,
    Conflict,
    NotFound,
    ServiceError,
    ServiceUnavailable,
)
from supermemory_livekit.sdk.store import SDKStore, make_client
from supermemory_livekit.testing import Respond

TAG = "ana:zanzibar"
AT = datetime(2026, 11, 29, 17, 16, 29, 123_456, tzinfo=timezone.utc)
MEMORY = {"id": "m1", "memory": "Likes tea", "isStatic": True, "isLatest": True, "isForgotten": False}
NOTHING = {"documents": [], "chunks": [], "memories": [], "pagination": {"currentPage": 1, "totalPages": 0}}

Answer = tuple[int, object] | Callable[[httpx.Request], tuple[int, object]]


class Service:
    """Answers each route as told, by its method and the end of its path, and records what is sent."""

    def __init__(self, **answers: Answer) -> None:
        self.answers = answers
        self.requests: list[httpx.Request] = []

    async def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answer = self.answers[f"{request.method}_{request.url.path.split('/')[3]}"]
        status, body = answer(request) if callable(answer) else answer
        return httpx.Response(status, json=body)

    @property
    def sent(self) -> list[tuple[str, Any]]:
        return [
            (f"{one.method} {one.url.raw_path.decode()}", json.loads(one.content) if one.content else None)
            for one in self.requests
        ]


def store_over(**answers: Answer) -> tuple[SDKStore, Service]:
    """The real SDK, with its retries on as a careless user leaves them."""
    service = Service(**answers)
    http = httpx.AsyncClient(transport=httpx.MockTransport(service))
    return SDKStore(
        AsyncSupermemory(api_key="sm_key", base_url="http://service.test", http_client=http)
    ), service


def listing(kind: str, *items: object, page: int = 1, pages: int = 1) -> tuple[int, object]:
    return 200, {**NOTHING, kind: list(items), "pagination": {"currentPage": page, "totalPages": pages}}


def test_this_is_the_sdk_that_it_is_about() -> None:
    """Issue: 3.x and 5.x cannot be in one environment."""
    assert version("supermemory").startswith("5.")


# -- what is on the wire


async def test_an_append_names_the_caller_in_its_address_and_the_call_by_its_id() -> None:
    """API reference 1.1: the id makes it an append; the date tells when it was said."""
    store, service = store_over(POST_document=(200, {"id": "lk-room", "status": "queued"}))
    receipt = await store.append(TAG, "lk-room", "Caller: hi \ud83d", dreaming="instant", at=AT, timeout=2)
    assert receipt == "lk-room"
    assert service.sent == [
        (
            "POST /ns/ana:zanzibar/document",
            {
                "content": "Caller: hi ?",
                "id": "lk-room",
                "dreaming": "instant",
                "date": "2026-11-29T17:16:29.123Z",
                "metadata": {"source": "livekit"},
            },
        )
    ]


async def test_profile_search_and_lists_say_everything_themselves() -> None:
    """Design 2: threshold, limit and mode are always sent, as defaults vary."""
    store, service = store_over(
        POST_profile=(200, {"profile": None}), POST_search=(200, {"results": []}), POST_list=(200, NOTHING)
    )
    await store.profile(TAG, timeout=2)
    await store.search(TAG, "tea", limit=500, threshold=0.0, mode="memories", timeout=2)
    await store.memories(TAG, page=2, limit=1000, timeout=2)
    await store.latest_calls(TAG, limit=5, timeout=2)
    by_age = "sort=updatedAt&order=desc"
    assert service.sent == [
        ("POST /ns/ana:zanzibar/profile", {}),
        (
            "POST /ns/ana:zanzibar/search",
            {"query": "tea", "limit": 100, "threshold": 0.0, "searchMode": "memories"},
        ),
        (
            f"POST /ns/ana:zanzibar/list/memories?page=2&limit=100&{by_age}",
            {"include": {"forgotten": True}},
        ),
        (
            f"POST /ns/ana:zanzibar/list/documents?page=1&limit=5&{by_age}",
            {"include": {"content": True, "memoryCount": False}},
        ),
    ]


async def test_a_whole_call_uses_routes_of_v5_alone(tmp_path: Path) -> None:
    """Issue: the plugin itself works with SDK 5.x, mirror, capture and tools included."""
    world = World(tmp_path / "memory.db")
    memory = world.memory(TAG)
    try:
        await memory.remember("Has a parrot.")
        await world.settled()
        assert "Has a parrot." in await memory.search("parrot")
        assert (await memory.forget(memory_text="Has a parrot.")).startswith("Forgotten")
        assert (await memory.erase(timeout=20)).clean
    finally:
        await memory.aclose()
        await world.aclose()
    assert {request.path.split("/")[1] for request in world.wire.requests} == {"ns"}


# -- a server of the earlier generation

EVERY: dict[str, Callable[[SDKStore], Awaitable[object]]] = {
    "profile": lambda store: store.profile(TAG, timeout=2),
    "search": lambda store: store.search(TAG, "tea", limit=5, threshold=0.1, mode="hybrid", timeout=2),
    "append": lambda store: store.append(TAG, "lk-room", "hi", dreaming="instant", at=AT, timeout=2),
    "read": lambda store: store.read(TAG, "lk-room", service_id=None, timeout=2),
    "remember": lambda store: store.remember(TAG, "Likes tea", dreaming="instant", timeout=2),
    "unremember": lambda store: store.unremember(TAG, "d1", timeout=2),
    "forget": lambda store: store.forget(TAG, text="Likes tea", timeout=2),
    "memories": lambda store: store.memories(TAG, page=1, limit=5, timeout=2),
    "latest_calls": lambda store: store.latest_calls(TAG, limit=5, timeout=2),
    "delete_documents": lambda store: store.delete_documents(TAG, ["d1"], timeout=2),
}


@pytest.mark.parametrize("name", EVERY)
async def test_a_server_without_v5_is_told_apart_from_one_where_nothing_is_found(name: str) -> None:
    """Issue: an old server without the v5 routes gets an error that says what to install."""
    missing: Answer = (404, {"error": "Not found"})
    routes = ("POST_profile", "POST_search", "POST_document", "GET_document", "POST_list", "DELETE_document")
    store, _ = store_over(**dict.fromkeys(routes, missing))
    with pytest.raises(APIMismatch, match=r"pip install 'supermemory<5'") as caught:
        await EVERY[name](store)
    assert (caught.value.status, caught.value.uncertain) == (404, False)


async def test_a_call_on_a_server_without_v5_says_so_once(
    clock: VirtualClock, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Issue: said once in the log, whatever fails by it. No reply waits, and what was said is kept."""
    world = World(tmp_path / "memory.db")
    world.fail(Respond(404, {"error": "Not found"}))
    memory = world.memory(TAG)
    try:
        async with started(agent_over(memory), llm=echo()) as session:
            memory.attach(session)
            for words in ("I like tea.", "I sail."):
                assert await say(session, words) == f"You said {words}"
                await asyncio.sleep(5)
    finally:
        await memory.aclose()
        await world.aclose()
    told = [record for record in caplog.records if "supermemory<5" in record.getMessage()]
    assert [record.levelno for record in told] == [logging.ERROR]
    assert (memory.stats.turns_unwritten, memory.stats.turns_dropped) == (4, 0)


# -- what the service answers


async def test_a_document_that_is_not_extracted_yet_is_not_read_as_it_was_before() -> None:
    """Exactly once: lines of the last write would be missed, and written again."""
    for state in ("queued", "extracting"):
        document = {"id": "lk-room", "content": "old", "system": {"status": state}}
        store, _ = store_over(GET_document=(200, document))
        with pytest.raises(ServiceUnavailable):
            await EVERY["read"](store)
    document = {"id": "lk-room", "content": "all", "system": {"status": "indexing"}}
    store, _ = store_over(GET_document=(200, document))
    assert await EVERY["read"](store) == "all"


async def test_a_document_is_absent_only_when_it_is_not_listed_either() -> None:
    """API reference 7: asked for right after a write, a document may be unknown."""
    document = {"id": "lk-room", "content": "all", "system": {"status": "done"}}
    answers = iter([(404, {}), (200, document)])
    store, service = store_over(
        GET_document=lambda _: next(answers), POST_list=listing("documents", document)
    )
    assert await EVERY["read"](store) == "all"
    assert len(service.requests) == 3
    other = {**document, "id": "lk-other"}
    store, _ = store_over(GET_document=(404, {}), POST_list=listing("documents", other))
    assert await EVERY["read"](store) is None


async def test_a_synthesised_memory_cannot_be_forgotten() -> None:
    """API reference 1.3: its id is no memory's."""
    hit = {"id": "aggregated_1", "memory": "Likes tea", "similarity": 0.9, "system": {"updatedAt": "x"}}
    chunk = {"id": "c1", "chunk": "tea, please", "similarity": 0.8}
    store, _ = store_over(POST_search=(200, {"results": [hit, chunk, None, {"id": "c2"}]}))
    hits = await store.search(TAG, "tea", limit=5, threshold=0.1, mode="hybrid", timeout=2)
    assert [(one.text, one.memory_id) for one in hits] == [("Likes tea", None), ("tea, please", None)]


async def test_a_memory_that_search_does_not_show_is_forgotten_by_the_list() -> None:
    """Specification of the tool forget: by exact text. v5 itself forgets by id or by meaning."""
    near = {"id": "m2", "memory": "Likes tea a lot", "similarity": 0.9}

    def page(request: httpx.Request) -> tuple[int, object]:
        number = int(request.url.params["page"])
        other = {**MEMORY, "id": "m3", "memory": "Likes milk"}
        return listing("memories", other if number == 1 else MEMORY, page=number, pages=2)

    store, service = store_over(
        POST_search=(200, {"results": [near]}),
        POST_list=page,
        DELETE_memories=(200, {"count": 1, "errors": [], "matches": [MEMORY]}),
    )
    assert await store.forget(TAG, text="Likes tea", timeout=2)
    assert service.sent[-1] == ("DELETE /ns/ana:zanzibar/memories", {"ids": ["m1"]})


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("Memory not found", NotFound),
        ("Memory already forgotten", Conflict),
        ("Still processing", Conflict),
        ("zanzibar", ServiceUnavailable),
        (None, ServiceUnavailable),
    ],
)
async def test_an_answer_of_200_that_forgot_nothing_is_no_success(
    reason: str | None, kind: type[ServiceError]
) -> None:
    """API reference 1.5: 200 does not mean forgotten; why not is told in words alone, which are not passed on."""
    problem = {"id": "m1", "error": reason}
    store, _ = store_over(DELETE_memories=(200, {"count": 0, "errors": [problem], "matches": []}))
    with pytest.raises(kind) as caught:
        await store.forget(TAG, memory_id="m1", timeout=2)
    assert type(caught.value) is kind
    assert "zanzibar" not in str(caught.value)
    store, _ = store_over(DELETE_memories=(200, {"count": 0, "errors": [], "matches": []}))
    assert not await store.forget(TAG, memory_id="m1", timeout=2)


async def test_calls_and_facts_are_told_apart_by_their_ids() -> None:
    """v5 has one id for a document: its client's, or one that the service made."""
    own, made = "lk-0123456789abcdefghi", "V1StGXR8Z5jdHi6BmyTabc"
    assert (len(own), len(made)) == (22, 22)
    entries = [
        {"id": name, "content": name, "system": {"dreamingStatus": "done"}} for name in (own, made, "a/b")
    ]
    store, _ = store_over(POST_list=listing("documents", *entries))
    calls = await store.latest_calls(TAG, limit=5, timeout=2)
    assert [call.custom_id for call in calls] == [own, None, "a/b"]


@pytest.mark.parametrize(
    "body", [[], "text", 7, {"unforeseen": 1}, {"profile": "p", "results": 4, "id": 7, "count": "x"}]
)
@pytest.mark.parametrize("name", ["append", "remember", "read", "memories", "latest_calls", "unremember"])
async def test_an_answer_of_another_shape_is_an_outage(name: str, body: object) -> None:
    """Case P5: nothing that was answered is taken for an empty memory, or for a write that was done."""
    routes = ("POST_profile", "POST_search", "POST_document", "GET_document", "POST_list", "DELETE_document")
    store, _ = store_over(**dict.fromkeys(routes, (200, body)))
    with pytest.raises(ServiceUnavailable):
        await EVERY[name](store)


# -- a document made anew


@pytest.mark.parametrize("alone", [True, False])
async def test_a_call_notices_by_its_document_that_its_caller_was_erased(tmp_path: Path, alone: bool) -> None:
    """Decision 0017, where an append is answered with our own id: when the document was made tells it from another.

    A document that vanished alone is no erasure.
    """
    world = World(tmp_path / "memory.db")
    store, noticed = SDKStore(world.client()), list[str]()
    gate = WriteGate(store, erased=noticed.append)

    async def say_in_call(words: str) -> str | None:
        return await gate.append(TAG, "lk-room", words, dreaming="dynamic", at=AT, timeout=5)

    try:
        if not alone:
            await world.knows(TAG, "Likes tea.")
        assert [await say_in_call("one"), await say_in_call("two")] == ["lk-room", "lk-room"]
        await store.delete_documents(TAG, ["lk-room"], timeout=5)
        if alone:
            with pytest.raises(CallerErased):
                await say_in_call("three")
        else:
            assert await say_in_call("three") == "lk-room"
        assert noticed == ([TAG] if alone else [])
        assert ("lk-room" in await world.documents(TAG)) is not alone
    finally:
        await world.aclose()


# -- the client


@asynccontextmanager
async def listening(answer: bytes) -> AsyncGenerator[tuple[int, list[bytes]]]:
    """A server on the loopback that gives one answer to everything and keeps the heads of requests."""
    heads: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(answer)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1], heads
    finally:
        server.close()
        await server.wait_closed()


@pytest.mark.parametrize("slash", ["", "/"])
async def test_requests_carry_the_key_and_who_sends_them(slash: str) -> None:
    """Case P4: to the given address, with the headers that 3.x sends as well."""
    head = (
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\nconnection: close\r\n\r\n"
    )
    async with listening(head + b"{}") as (port, heads):
        store = SDKStore(make_client("sm_key", f"http://127.0.0.1:{port}{slash}"))
        assert not await store.profile(TAG, timeout=5)
        await store.aclose()
    assert heads[0].startswith(b"POST /ns/ana:zanzibar/profile HTTP/1.1\r\n")
    assert b"x-sm-source: supermemory-livekit" in heads[0].lower()
    assert b"authorization: bearer sm_key" in heads[0].lower()


async def test_a_redirect_does_not_carry_words_to_another_host() -> None:
    """Case P4: no connection to any other host."""
    async with listening(b"") as (other, elsewhere):
        moved = f"HTTP/1.1 307 Moved\r\nlocation: http://127.0.0.1:{other}/\r\ncontent-length: 0\r\n\r\n"
        async with listening(moved.encode()) as (port, _):
            store = SDKStore(make_client("sm_key", f"http://127.0.0.1:{port}"))
            with pytest.raises(ServiceUnavailable, match="307"):
                await EVERY["append"](store)
            await store.aclose()
    assert elsewhere == []


async def test_the_client_that_we_made_is_closed_with_its_connections() -> None:
    """Store protocol: `aclose` closes connections, which the SDK 5.x leaves to who gave them to it."""
    async with listening(b"") as (port, heads):
        store = SDKStore(make_client("sm_key", f"http://127.0.0.1:{port}"))
        await store.aclose()
        await store.aclose()
        with pytest.raises(ServiceUnavailable):
            await store.profile(TAG, timeout=2)
    assert heads == []
    mine = httpx.AsyncClient()
    await SDKStore(AsyncSupermemory(api_key="k", http_client=mine), owns_client=False).aclose()
    assert not mine.is_closed
    await mine.aclose()


async def test_local_is_the_embedded_service_in_this_process(tmp_path: Path) -> None:
    """Design 1: base_url="local" works with either SDK."""
    memory = SupermemoryLiveKit(base_url=f"local:{tmp_path / 'memory.db'}", container_tag=TAG, session_id="r")
    assert (await memory.remember("Has a parrot.")).startswith("Saved")
    await memory.aclose()


def test_the_blocking_client_is_refused() -> None:
    """Design 1: the client is the async one; the other would stop the whole call at every request."""
    with pytest.raises(ConfigurationError, match="AsyncSupermemory"):
        SDKStore(Supermemory(api_key="k"))
