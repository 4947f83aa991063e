"""Nothing under one container tag is reached from another, on any route."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from supermemory_livekit.local import app
from supermemory_livekit.local.inspector.api import api_endpoints
from supermemory_livekit.local.recalls import RecentSearches

from .support import OTHER_THREADS_USE_RANDOM, Inspected, Service, call

BOTH_DATABASES = pytest.mark.parametrize("location", ["sqlite", "postgresql"], indirect=True)

SECRET = "The vault code is 88213"
READS: list[tuple[str, str, dict[str, Any]]] = [
    ("POST", "/v4/search", {"q": "vault code 88213", "threshold": 0, "searchMode": "hybrid"}),
    ("POST", "/v4/search", {"q": "vault code 88213", "threshold": 0, "include": {"forgottenMemories": True}}),
    ("POST", "/v3/search", {"q": "vault code 88213"}),
    ("POST", "/v4/profile", {"q": "vault code 88213", "threshold": 0}),
    ("POST", "/v3/documents/list", {"includeContent": True}),
    ("POST", "/v4/memories/list", {}),
    ("POST", "/v4/memories/forget-matching", {"query": "vault code 88213", "threshold": 0, "dryRun": True}),
]
PLURAL = ("/v3/documents/list", "/v4/memories/list")
"""Routes that name the tag in a list of one."""


def tagged(path: str, body: dict[str, Any], tag: str) -> dict[str, Any]:
    return {**body, "containerTags": [tag]} if path in PLURAL else {**body, "containerTag": tag}


@pytest.fixture
async def stored(service: Service) -> Service:
    """Ana's secret, and something of Ben's."""
    await service.sdk.add(content=SECRET, container_tag="ana", custom_id="lk-1", dreaming="instant")
    await service.sdk.add(content="Likes tea", container_tag="ben", dreaming="instant")
    await service.settled()
    return service


@pytest.mark.parametrize(("method", "path", "body"), READS)
async def test_no_read_reaches_another_tag(
    stored: Service, method: str, path: str, body: dict[str, Any]
) -> None:
    """Specification: memory is isolated by container tag."""
    own = await stored.http.request(method, path, json=tagged(path, body, "ana"))
    assert "88213" in own.text
    for tag in ("ben", "Ana", "an", "ana:", "nobody", "ana-"):
        answer = await stored.http.request(method, path, json=tagged(path, body, tag))
        assert answer.status_code == 200
        assert "88213" not in answer.text


async def test_no_write_reaches_another_tag(stored: Service) -> None:
    """Specification: the model cannot read or write another caller."""
    listed = await stored.http.post("/v4/memories/list", json={"containerTags": ["ana"]})
    (entry,) = listed.json()["memoryEntries"]
    for named in ({"id": entry["id"]}, {"content": SECRET}):
        body: dict[str, Any] = {"containerTag": "ben", **named}
        assert (await stored.http.request("DELETE", "/v4/memories", json=body)).status_code == 404
        changed = {**body, "newContent": "x"}
        assert (await stored.http.request("PATCH", "/v4/memories", json=changed)).status_code == 404
    for body in ({"query": "vault code", "threshold": 0}, {"ids": [entry["id"]]}):
        answer = await stored.http.post("/v4/memories/forget-matching", json={"containerTag": "ben", **body})
        assert SECRET not in answer.text
    moved = await stored.http.patch("/v3/documents/lk-1", json={"containerTag": "ben", "content": "x"})
    assert moved.status_code == 409
    await stored.sdk.add(content="More", container_tag="ben", custom_id="lk-1")
    assert await stored.profile("ana") != []
    assert await stored.found("ana", "vault code 88213", searchMode="documents") == [SECRET]


@pytest.mark.parametrize(("method", "path", "body"), READS)
@pytest.mark.parametrize(
    "tags",
    [
        {},
        {"containerTag": ""},
        {"containerTag": None},
        {"containerTags": []},
        {"containerTags": ["ana", "ben"]},
        {"containerTag": "ana", "containerTags": ["ben"]},
        {"containerTag": "ana\n"},
        {"containerTag": "%"},
        {"containerTag": "a" * 101},
    ],
)
async def test_without_exactly_one_valid_tag_nothing_is_read(
    http: httpx.AsyncClient, method: str, path: str, body: dict[str, Any], tags: dict[str, Any]
) -> None:
    """API reference 5.3: a plugin must never send an absent tag; here it gets 400, never everything."""
    answer = await http.request(method, path, json={**body, **tags})
    assert answer.status_code == 400


async def test_without_a_tag_nothing_is_written(http: httpx.AsyncClient) -> None:
    """Design 5.7: no write without exactly one non-empty container tag."""
    for path, body in (
        ("/v3/documents", {"content": "x"}),
        ("/v3/documents", {"content": "x", "containerTags": ["a", "b"]}),
        ("/v3/documents/batch", {"documents": [{"content": "x"}]}),
        ("/v4/memories", {"memories": [{"content": "x"}]}),
    ):
        answer = await http.post(path, json=body)
        assert answer.status_code == 400
        assert "containerTag" in answer.json()["details"]
    assert (await http.get("/v3/documents/processing")).status_code == 400
    assert (await http.get("/v3/container-tags/list")).json() == []


async def test_one_tag_in_a_list_is_accepted(http: httpx.AsyncClient) -> None:
    """API reference 5.1: `/v3/documents` takes `containerTag` and a `containerTags` of one."""
    answer = await http.post("/v3/documents", json={"content": "x", "containerTags": ["ana"]})
    assert answer.status_code == 200


TAG, KEY, MEMORY, TEXT = "{tag}", "{key}", "{memory}", "{text}"
"""Stand in a request for the intruder's tag, and for ids and the words of somebody else."""

# Every route that names a tag, with everything it can be asked for.
TAGGED: list[tuple[str, str, dict[str, Any] | None]] = [
    ("POST", "/v3/documents", {"containerTag": TAG, "customId": KEY, "content": "Something else"}),
    ("POST", "/v3/documents/batch", {"containerTag": TAG, "documents": [{"content": "x", "customId": KEY}]}),
    ("POST", "/v3/documents/list", {"containerTags": [TAG], "includeContent": True}),
    ("DELETE", "/v3/documents/bulk", {"containerTags": [TAG]}),
    ("GET", "/v3/documents/processing?containerTags={tag}", None),
    ("PATCH", "/v3/documents/{key}", {"containerTag": TAG, "content": "Something else"}),
    ("POST", "/v3/search", {"containerTag": TAG, "q": TEXT, "docId": KEY, "includeFullDocs": True}),
    ("GET", "/v3/container-tags/{tag}", None),
    ("PATCH", "/v3/container-tags/{tag}", {"entityContext": "x"}),
    ("DELETE", "/v3/container-tags/{tag}", None),
    ("POST", "/v4/profile", {"containerTag": TAG, "q": TEXT, "threshold": 0}),
    (
        "POST",
        "/v4/search",
        {
            "containerTag": TAG,
            "q": TEXT,
            "threshold": 0,
            "searchMode": "hybrid",
            "include": {
                "documents": True,
                "relatedMemories": True,
                "forgottenMemories": True,
                "chunks": True,
            },
        },
    ),
    ("POST", "/v4/memories", {"containerTag": TAG, "memories": [{"content": "Something else"}]}),
    ("DELETE", "/v4/memories", {"containerTag": TAG, "id": MEMORY}),
    ("DELETE", "/v4/memories", {"containerTag": TAG, "content": TEXT}),
    ("PATCH", "/v4/memories", {"containerTag": TAG, "id": MEMORY, "newContent": "x"}),
    ("POST", "/v4/memories/list", {"containerTags": [TAG]}),
    ("POST", "/v4/memories/forget-matching", {"containerTag": TAG, "query": TEXT, "threshold": 0}),
    ("POST", "/v4/memories/forget-matching", {"containerTag": TAG, "ids": [MEMORY]}),
    (
        "POST",
        "/v4/conversations",
        {"containerTags": [TAG], "conversationId": KEY, "messages": [{"role": "user", "content": "x"}]},
    ),
    ("POST", "/ns/{tag}/document", {"id": KEY, "content": "Something else"}),
    ("DELETE", "/ns/{tag}/document", {"ids": [KEY]}),
    ("POST", "/ns/{tag}/document/batch", {"documents": [{"id": KEY, "content": "Something else"}]}),
    ("GET", "/ns/{tag}/document/{key}", None),
    ("GET", "/ns/{tag}/document/{key}?include=chunks,memories", None),
    ("PATCH", "/ns/{tag}/document/{key}", {"content": "Something else"}),
    (
        "POST",
        "/ns/{tag}/search",
        {"query": TEXT, "threshold": 0, "include": {"documents": True, "related": True, "forgotten": True}},
    ),
    ("POST", "/ns/{tag}/profile", None),
    ("DELETE", "/ns/{tag}/memories", {"ids": [MEMORY]}),
    ("DELETE", "/ns/{tag}/memories/semantic", {"query": TEXT, "dryRun": False}),
    ("GET", "/ns/{tag}/memories/{memory}?include=related,documents", None),
    ("POST", "/ns/{tag}/list/documents/memory-counts", {"ids": [KEY]}),
    ("POST", "/ns/{tag}/list/documents", {"include": {"content": True, "forgotten": True}}),
    ("POST", "/ns/{tag}/list/chunks", {}),
    ("POST", "/ns/{tag}/list/memories", {"include": {"forgotten": True}}),
    ("GET", "/ns/{tag}", None),
    ("PATCH", "/ns/{tag}", {"supportingContext": "x"}),
    ("DELETE", "/ns/{tag}", None),
    ("POST", "/inspector/api/caller", {"tag": TAG}),
    ("POST", "/inspector/api/memories", {"tag": TAG, "state": "all"}),
    ("POST", "/inspector/api/memories", {"tag": TAG, "state": "all", "find": "vault"}),
    ("POST", "/inspector/api/memory", {"tag": TAG, "id": MEMORY}),
    ("POST", "/inspector/api/calls", {"tag": TAG}),
    ("POST", "/inspector/api/call", {"tag": TAG, "id": KEY}),
    ("POST", "/inspector/api/search", {"tag": TAG, "q": TEXT, "threshold": 0, "limit": 100}),
    ("POST", "/inspector/api/forget", {"tag": TAG, "id": MEMORY}),
    ("POST", "/inspector/api/erase-call", {"tag": TAG, "id": KEY}),
    ("POST", "/inspector/api/erase-caller", {"tag": TAG}),
]
UNTAGGED = {
    # Tell nothing that was stored.
    ("GET", "/"),
    ("GET", "/health"),
    ("GET", "/openapi.json"),
    # Name a document by its id alone: whoever holds the key of the service may do that, as in the API.
    ("GET", "/v3/documents/{id:path}/chunks"),
    ("GET", "/v3/documents/{id:path}"),
    ("DELETE", "/v3/documents/{id:path}"),
    # Tell which tags there are, and how much is under each.
    ("GET", "/v3/container-tags/list"),
    ("GET", "/ns"),
    ("GET", "/namespaces"),
    ("POST", "/inspector/api/overview"),
    ("POST", "/inspector/api/callers"),
    # Tells what was asked last under any tag: whoever watches agents recall holds the key of the service.
    ("POST", "/inspector/api/recalls"),
}
GENERIC = {
    "{tag}": {"{namespace}", "{tag}"},
    "{key}": {"{id:path}"},
    "{memory}": {"{id}"},
    "documents": {"{type}", "documents"},
    "chunks": {"{type}", "chunks"},
    "memories": {"{type}", "memories"},
}


def served(method: str, path: str) -> set[tuple[str, str]]:
    """The routes of the app that a request above may be for."""
    paths = [""]
    for part in path.partition("?")[0].split("/")[1:]:
        paths = [f"{path}/{one}" for path in paths for one in GENERIC.get(part, {part})]
    return {(method, path) for path in paths}


def test_every_route_of_the_service_is_tried() -> None:
    """A new route must not escape the tests of isolation."""
    tried = set[tuple[str, str]]().union(*(served(method, path) for method, path, _ in TAGGED))
    endpoints = (*app.ENDPOINTS, *api_endpoints(RecentSearches()))
    assert {(one.method, one.path) for one in endpoints} - tried == UNTAGGED


async def everything(page: Inspected, tag: str) -> list[Any]:
    """All that is stored under a tag, forgotten things too."""
    body = {"include": {"content": True, "forgotten": True}}
    answers = [
        await page.http.post(f"/ns/{tag}/list/{kind}?limit=100", json=body if kind != "chunks" else {})
        for kind in ("documents", "chunks", "memories")
    ]
    settings_of = await page.http.get(f"/ns/{tag}")
    return [*(answer.json() for answer in answers), settings_of.json()["supportingContext"]]


def filled(value: Any, names: dict[str, str]) -> Any:
    """The request with the intruder's tag and the owner's ids in it."""
    if isinstance(value, str):
        for name, text in names.items():
            value = value.replace(name, text)
        return value
    if isinstance(value, list):
        return [filled(item, names) for item in value]
    if isinstance(value, dict):
        return {key: filled(item, names) for key, item in value.items()}
    return value


class Owner:
    """What somebody stored, and attempts of others to get at it."""

    def __init__(self, page: Inspected, before: list[Any], documents: list[str]) -> None:
        self._page = page
        self._before = before
        _, chunks, memories, _ = before
        self.keys = ["lk-1", "lk-2", *documents, *(one["id"] for one in chunks["chunks"])]
        self.memories = [one["id"] for one in memories["memories"]]

    @classmethod
    async def of(cls, page: Inspected) -> Owner:
        """Ana, with a note, a call, and facts of her own."""
        service = page.service
        await service.sdk.add(content=SECRET, container_tag="ana", custom_id="lk-1", dreaming="instant")
        for fact in ("She has a vault", "The vault is new"):
            body = {"containerTag": "ana", "memories": [{"content": fact}]}
            await service.http.post("/v4/memories", json=body)
        said = call("C: code 88213 again")
        await service.sdk.add(content=said, container_tag="ana", custom_id="lk-2", dreaming="instant")
        await service.settled()
        listed = await service.sdk.documents.list(container_tags=["ana"])
        return cls(page, await everything(page, "ana"), [one.id for one in listed.memories])

    async def asked_by(
        self, tag: str, request: tuple[str, str, dict[str, Any] | None], key: str, memory: str
    ) -> None:
        """Somebody else asks for her things, and is not shown them."""
        method, path, body = request
        names = {TAG: tag, KEY: key, MEMORY: memory, TEXT: SECRET}
        path = filled(path, {name: quote(text, safe="") for name, text in names.items()})
        answer = await self._page.http.request(method, path, json=filled(body, names))
        assert answer.status_code in (200, 201, 400, 404, 409)
        assert "88213" not in answer.text

    async def lost_nothing(self) -> None:
        await self._page.service.settled()
        assert await everything(self._page, "ana") == self._before


@BOTH_DATABASES
async def test_no_route_reaches_another_tag_by_any_id(page: Inspected) -> None:
    """Specification: memory is isolated by container tag. Every route with every id of another caller."""
    ana = await Owner.of(page)
    for number, request in enumerate(TAGGED):
        own = {"containerTag": f"ben{number}", "memories": [{"content": "Likes tea"}]}
        await page.http.post("/v4/memories", json=own)
        for key in ana.keys:
            for memory in ana.memories if MEMORY in str(request) else ana.memories[:1]:
                await ana.asked_by(f"ben{number}", request, key, memory)
    await ana.lost_nothing()


@BOTH_DATABASES
@OTHER_THREADS_USE_RANDOM
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
async def test_no_route_shows_or_changes_what_is_under_another_tag(
    data: st.DataObject, page: Inspected
) -> None:
    """Specification: memory is isolated by container tag, whatever is asked for, in whatever order."""
    ana = await Owner.of(page)
    intruders = st.sampled_from(["ben", "Ana", "an", "ana:", "ana-", "anan"])
    for request in data.draw(st.lists(st.sampled_from(TAGGED), min_size=1, max_size=12)):
        key, memory = data.draw(st.sampled_from(ana.keys)), data.draw(st.sampled_from(ana.memories))
        await ana.asked_by(data.draw(intruders), request, key, memory)
    await ana.lost_nothing()
