"""Nothing under one container tag is reached from another, on any route."""

from __future__ import annotations

import re
from typing import Any

import httpx
import pytest

from supermemory_livekit.local import app

from .support import Service

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


def test_every_route_of_the_service_is_listed_here() -> None:
    """A new route must not escape the tests of isolation."""
    looked_at = {path for _, path, _ in READS} | {
        "/v3/documents",
        "/v3/documents/batch",
        "/v3/documents/processing",
        "/v3/documents/bulk",
        "/v4/memories",
    }
    by_id = re.compile(r"/v3/(documents|container-tags)/\{")
    others = {path for _, path, *_ in app._ROUTES if path not in looked_at and not by_id.match(path)}  # pyright: ignore[reportPrivateUsage]
    assert others == {"/", "/health", "/v3/container-tags/list"}
