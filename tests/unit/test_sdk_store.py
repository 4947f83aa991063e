"""The official SDK behind the store, over a scripted transport that records what is on the wire."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import subprocess
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
from supermemory import AsyncSupermemory, Supermemory

from supermemory_livekit.errors import (
    AccessDenied,
    ConfigurationError,
    Conflict,
    NotFound,
    PaymentRequired,
    RateLimited,
    RequestRejected,
    ServiceError,
    ServiceTimeout,
    ServiceUnavailable,
)
from supermemory_livekit.sdk.store import SDKStore, make_client
from supermemory_livekit.store import Hit, Profile

TAG = "caller-7"
SPOKEN = "my secret word is marzipan"
AT = datetime(2026, 11, 29, 17, 16, 29, 123_456, tzinfo=timezone.utc)
KEY = "sm_test_key"

Answer = httpx.Response | Exception | Callable[[httpx.Request], Awaitable[httpx.Response]]


def json_answer(body: object, status: int = 200, headers: dict[str, str] | None = None) -> httpx.Response:
    content = json.dumps(body).encode()
    return httpx.Response(
        status, content=content, headers={"content-type": "application/json", **(headers or {})}
    )


class Service:
    """Answers requests in the order of its script, the last answer for ever, and records them."""

    def __init__(self, *answers: Answer) -> None:
        self._answers = list(answers)
        self.requests: list[httpx.Request] = []

    async def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, httpx.Response):
            return httpx.Response(answer.status_code, content=answer.content, headers=answer.headers)
        return await answer(request)

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [json.loads(request.content) if request.content else {} for request in self.requests]

    @property
    def paths(self) -> list[str]:
        return [f"{request.method} {request.url.path}" for request in self.requests]


def store_over(*answers: Answer, max_retries: int = 2) -> tuple[SDKStore, Service]:
    """The real SDK, with its retries on as a careless user leaves them."""
    service = Service(*answers)
    client = AsyncSupermemory(
        api_key=KEY,
        base_url="http://service.test",
        max_retries=max_retries,
        http_client=httpx.AsyncClient(transport=httpx.MockTransport(service)),
    )
    return SDKStore(client), service


async def hang(_: httpx.Request) -> httpx.Response:
    await asyncio.get_running_loop().create_future()
    raise AssertionError


def profile(store: SDKStore) -> Awaitable[object]:
    return store.profile(TAG, timeout=2)


def search(store: SDKStore) -> Awaitable[object]:
    return store.search(TAG, SPOKEN, limit=10, threshold=0.1, mode="hybrid", timeout=2)


def append(store: SDKStore, timeout: float = 2) -> Awaitable[object]:
    return store.append(TAG, "lk-room", SPOKEN, dreaming="instant", at=AT, timeout=timeout)


def read(store: SDKStore) -> Awaitable[object]:
    return store.read(TAG, "lk-room", service_id=None, timeout=2)


def remember(store: SDKStore) -> Awaitable[object]:
    return store.remember(TAG, SPOKEN, dreaming="instant", timeout=2)


def unremember(store: SDKStore) -> Awaitable[object]:
    return store.unremember(TAG, "doc-1", timeout=2)


def forget(store: SDKStore) -> Awaitable[object]:
    return store.forget(TAG, text=SPOKEN, timeout=2)


READS = [profile, search, read]
WRITES = [append, remember, unremember, forget]
Operation = Callable[[SDKStore], Awaitable[object]]
every_operation = pytest.mark.parametrize("operation", [*READS, *WRITES])
every_write = pytest.mark.parametrize("operation", WRITES)


# -- what is on the wire


async def test_an_append_sends_one_tag_the_custom_id_and_the_date() -> None:
    """Case P8; design 5.3: an append names its caller once, its document, and when it was said."""
    store, service = store_over(json_answer({"id": "doc-1", "status": "queued"}))
    assert await append(store) == "doc-1"
    assert service.paths == ["POST /v3/documents"]
    body = service.bodies[0]
    # SDKs older than 3.59 know no document date; everything else is the same.
    assert body.pop("documentDate", "2026-11-29T17:16:29.123Z") == "2026-11-29T17:16:29.123Z"
    assert body == {
        "content": SPOKEN,
        "containerTag": TAG,
        "customId": "lk-room",
        "dreaming": "instant",
        "metadata": {"source": "livekit"},
    }


async def test_a_remembered_fact_is_no_part_of_a_call() -> None:
    """Specification: remember stores a standalone fact, it is not appended to the call transcript."""
    store, service = store_over(json_answer({"id": "doc-2", "status": "queued"}))
    assert await store.remember(TAG, "Likes tea", dreaming="dynamic", timeout=2) == "doc-2"
    body = service.bodies[0]
    assert "customId" not in body
    assert (body["containerTag"], body["content"], body["dreaming"]) == (TAG, "Likes tea", "dynamic")


async def test_profile_and_search_say_everything_themselves() -> None:
    """Case P8; design 2: threshold, limit and searchMode are always sent, as defaults vary."""
    store, service = store_over(json_answer({}))
    await profile(store)
    await store.search(TAG, "tea", limit=500, threshold=0.0, mode="memories", timeout=2)
    assert service.paths == ["POST /v4/profile", "POST /v4/search"]
    assert service.bodies == [
        {"containerTag": TAG},
        {"containerTag": TAG, "q": "tea", "limit": 100, "threshold": 0.0, "searchMode": "memories"},
    ]


async def test_forget_names_the_memory_by_id_or_by_text() -> None:
    """Specification: forget one fact by id, or by exact text."""
    store, service = store_over(json_answer({"id": "m1", "forgotten": True}))
    assert await store.forget(TAG, memory_id="m1", timeout=2)
    assert await store.forget(TAG, text="Likes tea", timeout=2)
    assert service.paths == ["DELETE /v4/memories"] * 2
    assert service.bodies == [
        {"containerTag": TAG, "id": "m1"},
        {"containerTag": TAG, "content": "Likes tea"},
    ]
    with pytest.raises(ValueError, match="memory_id or text"):
        await store.forget(TAG, timeout=2)


async def test_unremember_deletes_the_document() -> None:
    """Case T7: a fact still being processed is taken back by its document."""
    store, service = store_over(httpx.Response(204))
    await unremember(store)
    assert service.paths == ["DELETE /v3/documents/doc-1"]


async def test_a_bare_link_is_kept_as_words() -> None:
    """API reference 1.0: content that is a URL is fetched as a web page, which nobody asked for."""
    store, service = store_over(json_answer({"id": "d"}))
    for fact in ("https://tea.example/shop", "www.tea.example", "Shops at https://tea.example"):
        await store.remember(TAG, fact, dreaming="instant", timeout=2)
    assert [body["content"] for body in service.bodies] == [
        "Link: https://tea.example/shop",
        "Link: www.tea.example",
        "Shops at https://tea.example",
    ]


async def test_a_lone_surrogate_does_not_stop_a_write() -> None:
    """Case C13: a transcript cut inside an emoji must not block every later write."""
    store, service = store_over(json_answer({"id": "d"}))
    await store.append(TAG, "lk-room", "fine \ud83d", dreaming="instant", at=AT, timeout=2)
    assert service.bodies[0]["content"] == "fine ?"


async def test_the_sdk_does_not_repeat_a_request_by_itself() -> None:
    """Case L9: the SDK's own retries do not multiply a wait; and a write is never doubled behind our back."""
    for status in (409, 429, 500):
        store, service = store_over(json_answer({}, status))
        with pytest.raises(ServiceError):
            await append(store)
        assert len(service.requests) == 1
    store, service = store_over(httpx.ReadError("reset"))
    with pytest.raises(ServiceError):
        await append(store)
    assert len(service.requests) == 1


async def test_a_service_that_knows_no_document_dates_still_stores_the_turns() -> None:
    """API reference 1.1: unknown keys are refused with 400, and dates are newer than some servers."""

    async def old_server(request: httpx.Request) -> httpx.Response:
        dated = "documentDate" in json.loads(request.content)
        return json_answer({"error": "unknown key"}, 400) if dated else json_answer({"id": "doc-1"})

    store, service = store_over(old_server)
    assert await append(store) == "doc-1"
    assert await append(store) == "doc-1"
    assert ["documentDate" in body for body in service.bodies[-2:]] == [False, False]


# -- what the service answers


@pytest.mark.parametrize(
    "body",
    [
        None,
        {},
        {"profile": None, "searchResults": None},
        {"profile": {}},
        {"profile": {"static": None, "dynamic": None}},
        {"profile": {"static": [], "dynamic": []}},
    ],
)
async def test_a_new_caller_has_an_empty_profile(body: object) -> None:
    """Case R1."""
    store, _ = store_over(json_answer(body))
    assert await profile(store) == Profile()


async def test_profile_lines_come_as_strings_or_as_objects() -> None:
    """Case R2, and newer services answer {"memory": …}; what is no text is skipped."""
    lines = ["Likes tea", {"id": "m1", "memory": "Lives in Porto"}, None, 7, "  ", {"id": "m2"}, ["x"]]
    store, _ = store_over(json_answer({"profile": {"static": lines, "dynamic": ["Called today"]}}))
    assert await profile(store) == Profile(("Likes tea", "Lives in Porto"), ("Called today",))


HITS = {
    "results": [
        {
            "id": "m1",
            "memory": "Likes tea",
            "similarity": 0.8,
            "updatedAt": "2026-11-01T08:00:00.000Z",
            "metadata": None,
        },
        {"id": "c1", "memory": None, "chunk": "Caller: tea, please", "similarity": 0.7, "updatedAt": "soon"},
        {"id": "c2", "chunks": [{"content": "one"}, {"content": "two"}, {"x": 1}], "similarity": 0.6},
        {"id": "c3", "memory": None, "chunk": None, "similarity": 0.9},
        "junk",
        None,
    ],
    "total": 6,
    "timing": 3,
}
READ_HITS = [
    Hit("Likes tea", 0.8, "m1", datetime(2026, 11, 1, 8, tzinfo=timezone.utc)),
    Hit("Caller: tea, please", 0.7),
    Hit("one\ntwo", 0.6),
]


async def test_hits_are_read_from_memories_and_raw_text_alike() -> None:
    """Cases R3 and T1: usable lines only, and an id only where it can be forgotten."""
    store, _ = store_over(json_answer(HITS))
    assert await search(store) == READ_HITS


async def test_hits_may_be_plain_dicts() -> None:
    """Case R2: a client of the user's own may answer with dicts."""
    store = SDKStore(DictClient())
    assert await search(store) == READ_HITS
    assert await profile(store) == Profile(("Likes tea",), ())
    assert await append(store) == "doc-1"
    assert await forget(store) is True


async def test_limit_threshold_and_order_hold_whatever_the_service_does() -> None:
    """Case R9: no hit below the threshold is shown; API reference 0.5: limits are enforced here."""
    results = [
        {"id": f"m{n}", "memory": f"fact {n}", "similarity": s}
        for n, s in enumerate([0.2, 0.9, None, float(7), 0.5, 0.6])
    ]
    store, _ = store_over(json_answer({"results": results}))
    expected = [("fact 3", 1.0), ("fact 1", 0.9), ("fact 5", 0.6)]
    for limit, threshold in ((3, 0.1), (10, 0.6)):
        hits = await store.search(TAG, "tea", limit=limit, threshold=threshold, mode="hybrid", timeout=2)
        assert [(hit.text, hit.similarity) for hit in hits] == expected


@pytest.mark.parametrize(
    ("told", "at"),
    [
        ("2026-11-01T08:00:00Z", datetime(2026, 11, 1, 8, tzinfo=timezone.utc)),
        ("2026-11-01T08:00:00.1234567Z", datetime(2026, 11, 1, 8, 0, 0, 123_456, tzinfo=timezone.utc)),
        ("2026-11-01T09:00:00+01:00", datetime(2026, 11, 1, 8, tzinfo=timezone.utc)),
        ("2026-11-01T08:00:00", datetime(2026, 11, 1, 8, tzinfo=timezone.utc)),
        ("yesterday", None),
        (None, None),
    ],
)
async def test_a_hit_has_the_time_of_its_last_change_with_a_zone(told: object, at: datetime | None) -> None:
    """Case R10: a line carries its date or age; a time without a zone is the API's UTC."""
    results = [{"id": "m1", "memory": "Likes tea", "similarity": 0.9, "updatedAt": told}]
    store, _ = store_over(json_answer({"results": results}))
    (hit,) = cast("list[Hit]", await search(store))
    assert hit.updated_at == at
    assert hit.updated_at is None or hit.updated_at.tzinfo is not None


async def test_a_synthesised_memory_cannot_be_forgotten() -> None:
    """Case T1: an aggregated result is no memory of its own, so it shows no id."""
    results = [{"id": "aggregated_1", "memory": "Likes tea", "similarity": 0.9, "isAggregated": True}]
    store, _ = store_over(json_answer({"results": results}))
    assert [hit.memory_id for hit in cast("list[Hit]", await search(store))] == [None]


@pytest.mark.parametrize("body", [{}, {"results": None}, {"results": []}, None])
async def test_no_results_are_no_failure(body: object) -> None:
    """Case R1: an empty answer is an answer."""
    store, _ = store_over(json_answer(body))
    assert await search(store) == []


async def test_forgetting_nothing_is_told_apart_from_an_unclear_answer() -> None:
    """Case T3: `{"forgotten": false}` is a no, `{}` is no answer at all."""
    store, _ = store_over(json_answer({"id": "m1", "forgotten": False}))
    assert await forget(store) is False
    store, _ = store_over(json_answer({}))
    with pytest.raises(ServiceUnavailable) as caught:
        await forget(store)
    assert caught.value.uncertain


# -- reading a document back


def document(**fields: object) -> dict[str, object]:
    return {"id": "doc-1", "customId": "lk-room", "containerTags": [TAG], "content": "a\nb", **fields}


async def test_a_known_document_is_read_by_its_id() -> None:
    """Design 5.4: before a retry, find out what the service already has."""
    store, service = store_over(json_answer(document()))
    assert await store.read(TAG, "lk-room", service_id="doc-1", timeout=2) == "a\nb"
    assert service.paths == ["GET /v3/documents/doc-1"]


async def test_an_unknown_document_is_looked_up_among_the_callers_newest() -> None:
    """Design 5.4; the list is asked for without contents."""
    other = document(id="doc-9", customId="lk-other")
    pages = json_answer({"memories": [other, document()], "pagination": {}})
    store, service = store_over(pages, json_answer(document()))
    assert await read(store) == "a\nb"
    assert service.paths == ["POST /v3/documents/list", "GET /v3/documents/doc-1"]
    assert service.bodies[0]["containerTags"] == [TAG]
    assert not service.bodies[0].get("includeContent")


async def test_a_document_that_is_nowhere_is_absent() -> None:
    """Store protocol: None when there is no such document. A lookup ends with the pages."""
    gone = json_answer({"error": "not found"}, 404)
    page = json_answer({"memories": [document(customId="lk-other")], "pagination": {}})
    empty = json_answer({"memories": [], "pagination": {}})
    store, service = store_over(gone, page, empty)
    assert await store.read(TAG, "lk-room", service_id="doc-1", timeout=2) is None
    assert service.paths == [
        "GET /v3/documents/doc-1",
        "POST /v3/documents/list",
        "POST /v3/documents/list",
    ]


@pytest.mark.parametrize("fields", [{"containerTags": ["someone-else"]}, {"customId": "lk-other"}])
async def test_another_callers_document_is_never_read(fields: dict[str, object]) -> None:
    """Design 4.5 and 5.2: an id that leads to another scope leads nowhere."""
    store, _ = store_over(json_answer(document(**fields)), json_answer({"memories": []}))
    assert await store.read(TAG, "lk-room", service_id="doc-1", timeout=2) is None


async def test_a_document_without_its_text_is_not_called_absent() -> None:
    """Design 5.4: to call it absent would have its turns stored twice."""
    store, _ = store_over(json_answer(document(content=None)))
    with pytest.raises(ServiceUnavailable):
        await store.read(TAG, "lk-room", service_id="doc-1", timeout=2)


# -- failures


@every_operation
@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, RequestRejected),
        (401, AccessDenied),
        (402, PaymentRequired),
        (403, AccessDenied),
        (404, NotFound),
        (409, Conflict),
        (413, RequestRejected),
        (422, RequestRejected),
        (429, RateLimited),
        (500, ServiceUnavailable),
        (503, ServiceUnavailable),
        (302, ServiceUnavailable),
    ],
)
async def test_every_status_has_its_error(
    operation: Operation, status: int, kind: type[ServiceError]
) -> None:
    """Error tree; cases T4, P10, S10: by status code alone; only after a 5xx is a write unclear."""
    echo = {"error": SPOKEN, "data": {"containerTag": TAG, "content": SPOKEN}}
    store, _ = store_over(json_answer(echo, status, {"location": "http://elsewhere.test/"}))
    with pytest.raises(kind) as caught:
        await operation(store)
    assert type(caught.value) is kind
    assert caught.value.status == status
    assert caught.value.uncertain == (operation in WRITES and status >= 500)
    assert str(status) in str(caught.value)


GARBAGE = {
    "html": httpx.Response(200, html=f"<html>{SPOKEN}</html>"),
    "broken json": httpx.Response(200, content=b'{"id": "d', headers={"content-type": "application/json"}),
    "no utf-8": httpx.Response(200, content=b"\xff\xfe{", headers={"content-type": "application/json"}),
    "a list": json_answer([SPOKEN]),
    "a string": json_answer(SPOKEN),
    "a number": json_answer(7),
    "an error": json_answer({"error": SPOKEN}),
}


@pytest.mark.parametrize("operation", [append, remember, forget])
@pytest.mark.parametrize("garbage", GARBAGE.values(), ids=GARBAGE.keys())
async def test_a_write_answered_with_garbage_may_have_happened(
    operation: Operation, garbage: httpx.Response
) -> None:
    """Error tree: an answer nobody can read; the write is settled before it is sent again."""
    store, _ = store_over(garbage)
    with pytest.raises(ServiceUnavailable) as caught:
        await operation(store)
    assert caught.value.uncertain


@pytest.mark.parametrize("operation", READS)
@pytest.mark.parametrize("garbage", list(GARBAGE.values())[:-1], ids=list(GARBAGE)[:-1])
async def test_a_read_answered_with_garbage_is_an_outage(
    operation: Operation, garbage: httpx.Response
) -> None:
    """Specification: a Supermemory outage is skipped; a page of a captive portal is one."""
    store, _ = store_over(garbage)
    with pytest.raises(ServiceUnavailable) as caught:
        await operation(store)
    assert not caught.value.uncertain


@pytest.mark.parametrize(
    ("operation", "body"),
    [
        (profile, {"profile": "Likes tea"}),
        (profile, {"profile": ["Likes tea"]}),
        (profile, {"profile": {"static": "Likes tea"}}),
        (profile, {"profile": {"dynamic": {"a": 1}}}),
        (search, {"results": "Likes tea"}),
        (search, {"results": {"0": {}}}),
        (search, {"results": 4}),
        (read, {"memories": "doc-1"}),
    ],
)
async def test_an_answer_of_another_shape_is_an_outage(operation: Operation, body: object) -> None:
    """Design 6: recall that is answered malformed costs the memory of a turn, never the turn."""
    store, _ = store_over(json_answer(body))
    with pytest.raises(ServiceUnavailable):
        await operation(store)


@every_operation
@pytest.mark.parametrize(
    ("error", "kind", "sent"),
    [
        (httpx.ConnectError("no route"), ServiceUnavailable, False),
        (httpx.ConnectTimeout("no route"), ServiceTimeout, False),
        (httpx.PoolTimeout("busy"), ServiceTimeout, False),
        (httpx.ReadTimeout("slow"), ServiceTimeout, True),
        (httpx.WriteTimeout("slow"), ServiceTimeout, True),
        (httpx.ReadError("reset"), ServiceUnavailable, True),
        (httpx.WriteError("reset"), ServiceUnavailable, True),
        (httpx.RemoteProtocolError("server disconnected"), ServiceUnavailable, True),
        (RuntimeError(SPOKEN), ServiceUnavailable, True),
    ],
)
async def test_a_broken_connection_says_whether_the_request_may_have_arrived(
    operation: Operation, error: Exception, kind: type[ServiceError], sent: bool
) -> None:
    """Design 5.4: after an unclear end (timeout, reset) find out first; without a connection, no need."""
    store, _ = store_over(error)
    with pytest.raises(kind) as caught:
        await operation(store)
    assert caught.value.uncertain == (operation in WRITES and sent)


async def test_a_service_that_hangs_is_left_at_the_deadline() -> None:
    """Specification: capture writes time out; the deadline is the store's, not the SDK's."""
    store, _ = store_over(hang)
    with pytest.raises(ServiceTimeout) as caught:
        await asyncio.wait_for(store.append(TAG, "d", "x", dreaming="instant", at=AT, timeout=0.01), 5)
    assert caught.value.uncertain
    with pytest.raises(ServiceTimeout):
        await asyncio.wait_for(store.profile(TAG, timeout=0.01), 5)


async def test_a_cancelled_call_is_cancelled() -> None:
    """Style 8: CancelledError is passed on."""
    entered = asyncio.Event()

    async def enter(request: httpx.Request) -> httpx.Response:
        entered.set()
        return await hang(request)

    store, _ = store_over(enter)
    task = asyncio.ensure_future(append(store))
    await asyncio.wait_for(entered.wait(), 5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 5)


@pytest.mark.parametrize(
    ("header", "least", "most"),
    [
        ("7", 7, 7),
        ("3600", 3600, 3600),
        ("1.5", 1.5, 1.5),
        ("-4", 0, 0),
        (format_datetime(datetime.now(timezone.utc) + timedelta(days=1), usegmt=True), 80_000, 86_401),
        (format_datetime(datetime(2020, 1, 1, tzinfo=timezone.utc), usegmt=True), 0, 0),
    ],
)
async def test_the_service_can_say_when_to_come_back(header: str, least: float, most: float) -> None:
    """Design 6: 429 is retried after the hint; Retry-After has two forms."""
    store, _ = store_over(json_answer({}, 429, {"Retry-After": header}))
    with pytest.raises(RateLimited) as caught:
        await append(store)
    assert caught.value.retry_after is not None
    assert least <= caught.value.retry_after <= most


@pytest.mark.parametrize("header", ["soon", "nan", "inf", ""])
async def test_a_hint_nobody_can_read_is_no_hint(header: str) -> None:
    """Design 6: a broken Retry-After must not become an endless wait."""
    store, _ = store_over(json_answer({}, 429, {"Retry-After": header}))
    with pytest.raises(RateLimited) as caught:
        await append(store)
    assert caught.value.retry_after is None


@every_operation
async def test_nothing_of_a_caller_is_logged_or_raised(
    operation: Operation, caplog: pytest.LogCaptureFixture
) -> None:
    """Case P2: all paths at DEBUG, the SDK's own loggers by name included."""
    for name in (None, "supermemory", "supermemory._base_client"):
        caplog.set_level(logging.DEBUG, logger=name)
    for answer in (
        json_answer({"error": SPOKEN, "data": {"tag": TAG}}, 400),
        json_answer({"error": SPOKEN}, 503),
        httpx.Response(200, html=SPOKEN),
        RuntimeError(SPOKEN + TAG + KEY),
        httpx.ReadError(SPOKEN),
        json_answer({"id": "d", "memories": [], "forgotten": True}),
    ):
        store, _ = store_over(answer)
        result = (await asyncio.gather(operation(store), return_exceptions=True))[0]
        if isinstance(result, BaseException):
            assert isinstance(result, ServiceError)
            assert result.__suppress_context__
            assert not any(secret in f"{result!r} {result.__cause__!r}" for secret in (SPOKEN, TAG, KEY))
    assert not any(secret in caplog.text for secret in (SPOKEN, TAG, KEY))


# -- which clients are accepted


class DictClient:
    """The least a client of the user's own needs; it takes no timeout, no metadata and no date."""

    def __init__(self) -> None:
        self.search = self
        self.closed = 0

    async def add(
        self, *, content: str, container_tag: str, custom_id: str = "", dreaming: str = ""
    ) -> object:
        return {"id": "doc-1"}

    async def profile(self, *, container_tag: str) -> object:
        return {"profile": {"static": ["Likes tea"]}}

    @property
    def memories(self) -> Any:
        return _DictMemories()

    async def close(self) -> None:
        self.closed += 1


class _DictMemories:
    async def __call__(
        self, *, q: str, container_tag: str, limit: int, threshold: float, search_mode: str
    ) -> object:
        return HITS

    async def forget(self, *, container_tag: str, id: str = "", content: str = "") -> object:  # noqa: A002
        return {"forgotten": True}


class Parts:
    def __init__(self, **parts: object) -> None:
        self.__dict__.update(parts)


async def anything(**_: object) -> object:
    return {}


@pytest.mark.parametrize("missing", ["add", "profile", "search.memories", "memories.forget"])
def test_a_client_without_a_needed_method_is_refused_at_once(missing: str) -> None:
    """Case P7: a missing SDK method fails at construction, not in the call."""
    parts = {
        "add": anything,
        "profile": anything,
        "search": Parts(memories=anything),
        "memories": Parts(forget=anything),
    }
    SDKStore(Parts(**parts))
    del parts[missing.split(".")[0]]
    with pytest.raises(ConfigurationError, match=missing):
        SDKStore(Parts(**parts))


def test_a_client_of_another_generation_is_refused_at_once() -> None:
    """Case P7: the same method names with other arguments."""

    async def add(content: str, *, user: str, id: str = "") -> object:  # noqa: A002
        return {}

    client = Parts(
        add=add, profile=anything, search=Parts(memories=anything), memories=Parts(forget=anything)
    )
    with pytest.raises(ConfigurationError, match="container_tag"):
        SDKStore(client)


def test_the_blocking_client_is_refused() -> None:
    """Design 1: the client is the async one; the other would stop the whole call at every request."""
    with pytest.raises(ConfigurationError, match="AsyncSupermemory"):
        SDKStore(Supermemory(api_key=KEY, base_url="http://service.test"))


async def test_a_client_without_documents_cannot_read_and_says_so() -> None:
    """Store protocol: NotImplementedError, not a failing service."""
    store = SDKStore(DictClient())
    with pytest.raises(NotImplementedError):
        await read(store)
    with pytest.raises(NotImplementedError):
        await unremember(store)


async def test_only_an_own_client_is_closed_and_only_once() -> None:
    """Store protocol: closing twice is safe; a client given by the user stays the user's."""
    mine, theirs = DictClient(), DictClient()
    for store in (SDKStore(mine), SDKStore(theirs, owns_client=False)):
        await store.aclose()
        await store.aclose()
    assert (mine.closed, theirs.closed) == (1, 0)


# -- which service is meant


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SUPERMEMORY_API_KEY", "SUPERMEMORY_BASE_URL", "SUPERMEMORY_CUSTOM_HEADERS"):
        monkeypatch.delenv(name, raising=False)


def test_without_any_service_all_three_ways_out_are_named() -> None:
    """Design 1: no key, no client and no base_url."""
    with pytest.raises(ConfigurationError) as caught:
        make_client(None, None)
    for way in ("api_key", "SUPERMEMORY_API_KEY", "client", 'base_url="local"'):
        assert way in str(caught.value)


async def test_a_key_alone_means_the_platform(monkeypatch: pytest.MonkeyPatch) -> None:
    """Specification: create a key; for a self-hosted API, pass base_url."""
    by_argument = make_client(KEY, None)
    monkeypatch.setenv("SUPERMEMORY_API_KEY", f" {KEY}\n")
    monkeypatch.setenv("SUPERMEMORY_BASE_URL", "  ")
    by_environment = make_client()
    for client in (by_argument, by_environment):
        assert str(client.base_url).rstrip("/") == "https://api.supermemory.ai"
        assert client.api_key == KEY
        assert client.max_retries == 0
        await client.close()


@pytest.mark.parametrize(
    "address",
    ["ftp://host", "localhost:6767", "http://", "api.supermemory.ai", "http://u:p@host", "http://h/?a=1"],
)
def test_an_address_that_is_none_is_refused(address: str) -> None:
    """Case P5 in kind: a wrong value is an error that names the field and what it takes."""
    with pytest.raises(ConfigurationError, match="base_url takes an http://"):
        make_client(KEY, address)


@pytest.mark.parametrize("key", ["sm_a b", "sm_ä", "sm_a\nb"])
def test_a_key_that_no_header_can_carry_is_refused_and_not_quoted(key: str) -> None:
    """Case P2: an HTTP library would quote the header, and with it the key, in its error."""
    with pytest.raises(ConfigurationError) as caught:
        make_client(key, "http://localhost:6767")
    assert key not in str(caught.value)


def test_settings_take_strings() -> None:
    """Case P5 in kind."""
    with pytest.raises(ConfigurationError, match="base_url takes a string"):
        make_client(KEY, cast("Any", 6767))


def test_the_platform_needs_a_key_even_when_it_is_named() -> None:
    """Design 1: found at construction rather than as a 401 in the first call."""
    with pytest.raises(ConfigurationError, match="SUPERMEMORY_API_KEY"):
        make_client(None, "https://api.supermemory.ai/")


@asynccontextmanager
async def listening(answer: bytes) -> AsyncGenerator[tuple[int, list[bytes]]]:
    """A server on the loopback that gives everybody the same bytes: its port, and the heads it was sent."""
    heads: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        heads.append(head)
        length = [
            int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")
        ]
        await reader.readexactly(length[0] if length else 0)
        writer.write(answer)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1], heads
    finally:
        server.close()
        await server.wait_closed()


OK_ANSWER = (
    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}"
)


@pytest.mark.parametrize("slash", ["", "/"])
@pytest.mark.parametrize("by", ["argument", "environment"])
@pytest.mark.parametrize("key", [KEY, None])
async def test_every_request_goes_to_the_given_address(
    monkeypatch: pytest.MonkeyPatch, slash: str, by: str, key: str | None
) -> None:
    """Case P4: with and without the slash, by argument and by environment, proxy or not."""
    async with listening(OK_ANSWER) as (port, heads), listening(OK_ANSWER) as (proxy_port, proxied):
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy_port}")
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        address = f"http://127.0.0.1:{port}{slash}"
        if by == "environment":
            monkeypatch.setenv("SUPERMEMORY_BASE_URL", address)
        store = SDKStore(make_client(key, address if by == "argument" else None))
        monkeypatch.setenv("SUPERMEMORY_BASE_URL", f"http://127.0.0.1:{proxy_port}")
        assert await store.profile(TAG, timeout=5) == Profile()
        await store.aclose()
    assert proxied == []
    assert [head.split(b"\r\n")[0] for head in heads] == [b"POST /v4/profile HTTP/1.1"]
    assert b"x-sm-source: supermemory-livekit" in heads[0]
    assert f"authorization: bearer {key or 'no-key'}".encode() in heads[0].lower()


async def test_a_redirect_does_not_carry_words_to_another_host() -> None:
    """Case P4: no connection to any other host."""
    async with listening(OK_ANSWER) as (other_port, elsewhere):
        moved = (
            f"HTTP/1.1 307 Moved\r\nlocation: http://127.0.0.1:{other_port}/v3/documents\r\n"
            "content-length: 0\r\nconnection: close\r\n\r\n"
        )
        async with listening(moved.encode()) as (port, _):
            store = SDKStore(make_client(KEY, f"http://127.0.0.1:{port}"))
            with pytest.raises(ServiceUnavailable, match="307"):
                await append(store, timeout=5)
            await store.aclose()
        assert elsewhere == []


def test_construction_opens_nothing() -> None:
    """Case L4: an unreachable address is no reason to wait; there is not even an event loop here."""
    SDKStore(make_client(KEY, "http://127.0.0.1:9"))


@pytest.mark.parametrize("by", ["argument", "environment"])
async def test_local_is_the_embedded_service_in_this_process(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, by: str
) -> None:
    """Design 1: base_url="local" needs no key and no network; "local:PATH" says where. Case L4: no I/O before use."""
    path = tmp_path / "memory.db"
    if by == "environment":
        monkeypatch.setenv("SUPERMEMORY_BASE_URL", f"local:{path}")
    store = SDKStore(make_client(None, f"local:{path}" if by == "argument" else None))
    assert not path.exists()
    identifier = await store.append(TAG, "lk-room", "Caller: hi", dreaming="dynamic", at=AT, timeout=30)
    assert await store.read(TAG, "lk-room", service_id=identifier, timeout=30) == "Caller: hi"
    assert await store.read(TAG, "lk-room", service_id=None, timeout=30) == "Caller: hi"
    assert await store.read("caller-8", "lk-room", service_id=identifier, timeout=30) is None
    await store.aclose()
    assert path.exists()


def test_a_missing_extra_is_named_at_construction() -> None:
    """Design 1: the embedded service is an extra of its own."""
    program = (
        "import sys\n"
        "sys.modules['starlette'] = None\n"
        "from supermemory_livekit.sdk.store import make_client\n"
        "from supermemory_livekit.errors import ConfigurationError\n"
        "try:\n"
        "    make_client(None, 'local')\n"
        "except ConfigurationError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=50,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert 'pip install "supermemory-livekit[local]"' in done.stdout, done.stderr
