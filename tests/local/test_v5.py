"""The v5 API: the same memory, named by namespace and id."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import httpx
import pytest

from .support import Service, call

DATABASES = ("sqlite", "postgresql")


async def ok(http: httpx.AsyncClient, method: str, path: str, body: Any = None, **query: Any) -> Any:
    """The answer to a request that has to succeed."""
    answer = await http.request(method, path, json=body, params=query or None)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def add(service: Service, namespace: str, content: str, **fields: Any) -> str:
    body = {"content": content, "dreaming": "instant", **fields}
    stored = await ok(service.http, "POST", f"/ns/{namespace}/document", body)
    assert stored["status"] == "queued"
    await service.settled()
    return str(stored["id"])


async def facts(http: httpx.AsyncClient, namespace: str) -> list[str]:
    listed = await ok(http, "POST", f"/ns/{namespace}/list/memories")
    return [memory["memory"] for memory in listed["memories"]]


async def test_a_text_becomes_a_memory_in_profile_and_search(service: Service) -> None:
    """v5 contract: document, profile and search of one namespace."""
    await add(service, "ana", "Likes tea", metadata={"from": "shop"})
    profile = (await ok(service.http, "POST", "/ns/ana/profile"))["profile"]
    (fact,) = profile["static"]
    assert fact["memory"].endswith("Likes tea")
    assert profile["dynamic"] == []
    assert profile["buckets"] == {}
    found = await ok(service.http, "POST", "/ns/ana/search", {"query": "tea", "searchMode": "memories"})
    (hit,) = found["results"]
    assert hit["id"] == fact["id"]
    assert hit["memory"] == "Likes tea"
    assert hit["metadata"] == {"from": "shop"}
    assert hit["isLatest"] is True


async def test_both_generations_of_the_api_speak_of_the_same_things(service: Service) -> None:
    """API reference 0: same stored data; a namespace is a container tag, an id a custom id."""
    assert await add(service, "ana", "Likes tea", id="note") == "note"
    assert (await service.sdk.documents.get("note")).content == "Likes tea"
    await service.sdk.add(content="Plays chess", container_tag="ana", custom_id="other", dreaming="instant")
    assert (await ok(service.http, "GET", "/ns/ana/document/other"))["content"] == "Plays chess"


async def test_the_same_id_adds_to_the_document(service: Service) -> None:
    """v5 contract: reuse an existing ID to append; `done` when nothing is new."""
    await add(service, "ana", "User: one", id="call")
    await add(service, "ana", "User: two", id="call")
    again = {"content": "User: one\nUser: two", "id": "call"}
    assert await ok(service.http, "POST", "/ns/ana/document", again) == {"id": "call", "status": "done"}
    assert (await ok(service.http, "GET", "/ns/ana/document/call"))["content"] == "User: one\nUser: two"


async def test_a_batch_stores_each_text(service: Service) -> None:
    """v5 contract: batch, with results in the order of the texts."""
    body = {
        "documents": [{"content": "Likes tea", "id": "a"}, {"content": "Plays chess"}],
        "dreaming": "instant",
    }
    stored = await ok(service.http, "POST", "/ns/ana/document/batch", body)
    assert (stored["count"], stored["failed"]) == (2, 0)
    assert stored["results"][0] == {"id": "a", "status": "queued"}
    await service.settled()
    assert sorted(await facts(service.http, "ana")) == ["Likes tea", "Plays chess"]


async def test_a_document_is_shown_with_its_pieces_and_memories_if_asked_for(service: Service) -> None:
    """v5 contract: `include` is a list with commas, or the parameter named twice, as the SDK does."""
    await add(service, "ana", call("C: I sail.", "A: Nice."), id="a/b ä")
    plain = await ok(service.http, "GET", "/ns/ana/document/a%2Fb%20%C3%A4")
    assert plain["id"] == "a/b ä"
    assert plain["system"]["status"] == "done"
    assert plain["system"]["dreamingStatus"] == "done"
    assert "chunks" not in plain
    assert "memories" not in plain
    whole = await ok(service.http, "GET", "/ns/ana/document/a%2Fb%20%C3%A4", include="chunks,memories")
    again = await ok(service.http, "GET", "/ns/ana/document/a%2Fb%20%C3%A4", include=["chunks", "memories"])
    assert again == whole
    assert [memory["memory"] for memory in whole["memories"]] == ["I sail."]
    assert "I sail." in whole["chunks"][0]["content"]


async def test_a_change_replaces_the_content_and_what_it_said(service: Service) -> None:
    """v5 contract: supplied content replaces; omitted fields remain unchanged."""
    await add(service, "ana", "Likes tea", id="note", metadata={"a": 1})
    body = {
        "content": "Likes coffee",
        "dreaming": "instant",
        "supportingContext": "drinks",
        "date": "2026-01-02",
    }
    changed = await ok(service.http, "PATCH", "/ns/ana/document/note", body)
    assert changed == {"id": "note", "status": "queued"}
    await service.settled()
    assert await facts(service.http, "ana") == ["Likes coffee"]
    document = await ok(service.http, "GET", "/ns/ana/document/note")
    assert document["metadata"] == {"a": 1}
    assert (await ok(service.http, "GET", "/ns/ana"))["supportingContext"] == "drinks"
    (fact,) = (await ok(service.http, "POST", "/ns/ana/profile"))["profile"]["static"]
    assert fact["memory"] == "[2026-01-02] Likes coffee"


async def test_documents_are_deleted_one_by_one(service: Service) -> None:
    """v5 contract: each ID is handled independently."""
    await add(service, "ana", "Likes tea", id="note")
    removed = await ok(service.http, "DELETE", "/ns/ana/document", {"ids": ["note", "none"]})
    assert removed == {"count": 1, "errors": [{"id": "none", "error": "Document not found"}]}
    assert await facts(service.http, "ana") == []


async def test_memories_are_forgotten_by_id_each_on_its_own(service: Service) -> None:
    """API reference 1.5: 200 does not mean forgotten: `matches` and `errors` tell."""
    await add(service, "ana", "Likes tea")
    await add(service, "ana", "Plays chess")
    listed = (await ok(service.http, "POST", "/ns/ana/list/memories"))["memories"]
    tea = next(one["id"] for one in listed if one["memory"] == "Likes tea")
    forgotten = await ok(service.http, "DELETE", "/ns/ana/memories", {"ids": [tea, "none", tea]})
    assert forgotten["count"] == 1
    assert forgotten["matches"] == [{"id": tea, "memory": "Likes tea"}]
    assert [error["id"] for error in forgotten["errors"]] == ["none", tea]
    assert await facts(service.http, "ana") == ["Plays chess"]
    whole = await ok(service.http, "POST", "/ns/ana/list/memories", {"include": {"forgotten": True}})
    assert {one["memory"]: one["isForgotten"] for one in whole["memories"]} == {
        "Likes tea": True,
        "Plays chess": False,
    }


async def test_forgetting_by_meaning_can_be_tried_first(meaning: Service) -> None:
    """v5 contract: dry-run results name what would be forgotten."""
    await add(meaning, "ana", "canine at home")
    await add(meaning, "ana", "Plays chess")
    body: dict[str, Any] = {"query": "dog at home", "dryRun": True}
    dry = await ok(meaning.http, "DELETE", "/ns/ana/memories/semantic", body)
    assert [match["memory"] for match in dry["matches"]] == ["canine at home"]
    assert len(await facts(meaning.http, "ana")) == 2
    done = await ok(meaning.http, "DELETE", "/ns/ana/memories/semantic", {**body, "dryRun": False})
    assert done == dry
    assert await facts(meaning.http, "ana") == ["Plays chess"]


async def test_a_memory_is_shown_with_its_versions_and_document(service: Service) -> None:
    """v5 contract: parents and children are earlier and later versions, nearest first."""
    await add(service, "ana", "Lives in Rome", id="note")
    texts = ["Lives in Rome", "Lives in Oslo", "Lives in Bergen"]
    for old, new in pairwise(texts):
        body = {"containerTag": "ana", "content": old, "newContent": new}
        await ok(service.http, "PATCH", "/v4/memories", body)
    everything = {"include": "related,documents"}
    (latest,) = (await ok(service.http, "POST", "/ns/ana/list/memories"))["memories"]
    shown = await ok(service.http, "GET", f"/ns/ana/memories/{latest['id']}", **everything)
    parents = shown["included"]["related"]["parents"]
    assert [(one["memory"], one["version"]) for one in parents] == [
        ("Lives in Oslo", -1),
        ("Lives in Rome", -2),
    ]
    assert shown["included"]["document"]["id"] == "note"
    first = await ok(
        service.http, "GET", f"/ns/ana/memories/{parents[1]['id']}", relatedLimit=1, **everything
    )
    assert first["isLatest"] is False
    children = first["included"]["related"]["children"]
    assert [(one["memory"], one["version"]) for one in children] == [("Lives in Oslo", 1)]
    assert children[0]["document"]["id"] == "note"
    plain = await ok(service.http, "GET", f"/ns/ana/memories/{latest['id']}")
    assert plain["included"] == {}


async def test_a_search_can_show_sources_earlier_versions_and_what_is_forgotten(service: Service) -> None:
    """v5 contract: `include`."""
    await add(service, "ana", "Lives in Rome", id="note")
    await ok(
        service.http,
        "PATCH",
        "/v4/memories",
        {"containerTag": "ana", "content": "Lives in Rome", "newContent": "Lives in Oslo"},
    )
    body = {"query": "lives in", "threshold": 0, "searchMode": "memories"}
    include = {"documents": True, "related": True}
    (hit,) = (await ok(service.http, "POST", "/ns/ana/search", {**body, "include": include}))["results"]
    assert hit["included"]["document"]["id"] == "note"
    assert [one["memory"] for one in hit["included"]["related"]["parents"]] == ["Lives in Rome"]
    await ok(service.http, "DELETE", "/ns/ana/memories", {"ids": [hit["id"]]})
    assert (await ok(service.http, "POST", "/ns/ana/search", body))["results"] == []
    again = await ok(service.http, "POST", "/ns/ana/search", {**body, "include": {"forgotten": True}})
    assert [one["memory"] for one in again["results"]] == ["Lives in Oslo"]


async def test_lists_are_paged_and_keep_their_shape(service: Service) -> None:
    """v5 contract: the other collection arrays remain empty."""
    for number in range(3):
        await add(service, "ana", call(f"C: Fact {number}."), id=f"n{number}")
    query: dict[str, Any] = {"limit": 2, "page": 2, "sort": "createdAt", "order": "asc"}
    documents = await ok(
        service.http, "POST", "/ns/ana/list/documents", {"include": {"content": True}}, **query
    )
    assert [one["id"] for one in documents["documents"]] == ["n2"]
    assert "Fact 2." in documents["documents"][0]["content"]
    assert documents["documents"][0]["system"]["memoryCount"] == 1
    assert (documents["chunks"], documents["memories"]) == ([], [])
    assert documents["pagination"] == {"currentPage": 2, "limit": 2, "totalItems": 3, "totalPages": 2}
    chunks = await ok(service.http, "POST", "/ns/ana/list/chunks", sort="position", order="asc")
    assert [one["documentId"] for one in chunks["chunks"]] == ["n0", "n1", "n2"]
    bare = await ok(service.http, "POST", "/ns/ana/list/documents", {"include": {"memoryCount": False}})
    assert "memoryCount" not in bare["documents"][0]["system"]
    assert "content" not in bare["documents"][0]
    counts = await ok(service.http, "POST", "/ns/ana/list/documents/memory-counts", {"ids": ["n1", "none"]})
    assert counts == {"counts": [{"id": "n1", "memoryCount": 1}]}


@pytest.mark.parametrize(
    ("kind", "sort"),
    [
        ("documents", "createdAt"),
        ("documents", "updatedAt"),
        ("chunks", "createdAt"),
        ("chunks", "position"),
    ],
)
@pytest.mark.parametrize("rule", [{}, {"filter": {"field": "team", "operator": "eq", "value": "red"}}])
async def test_pages_of_a_list_fit_together_in_every_order(
    service: Service, kind: str, sort: str, rule: dict[str, Any]
) -> None:
    """v5 contract: page, limit, sort and order; each thing is on one page."""
    for number in range(4):
        said = call("C: One.", "A: Two.", "C: Three.", minute=9 - number)
        metadata = {"team": "red" if number % 2 else "blue"}
        await add(service, "ana", said, id=f"n{number}", metadata=metadata)
    await ok(service.http, "PATCH", "/ns/ana/document/n1", {"metadata": {"team": "red", "new": True}})
    pages = [
        (
            await ok(
                service.http, "POST", f"/ns/ana/list/{kind}", rule, sort=sort, order="asc", limit=5, page=n
            )
        )
        for n in (1, 2, 3)
    ]
    found = [one for page in pages for one in page[kind]]
    backwards = await ok(
        service.http, "POST", f"/ns/ana/list/{kind}", rule, sort=sort, order="desc", limit=50
    )
    assert found == backwards[kind][::-1]
    expected = {"n1", "n3"} if rule else {"n0", "n1", "n2", "n3"}
    if kind == "documents":
        order = [one["id"] for one in found]
        assert order == sorted(expected, key=lambda name: (sort == "updatedAt" and name == "n1", name))
    else:
        order = [one["documentId"] for one in found]
        assert order == [name for name in sorted(expected, reverse=sort != "position") for _ in range(3)]
        assert [one["position"] for one in found] == sorted_within(found)
    assert {page["pagination"]["totalItems"] for page in pages} == {len(found)}


def sorted_within(found: list[dict[str, Any]]) -> list[int]:
    """Positions as they are when each document's pieces come in the order of its text."""
    names = dict.fromkeys(one["documentId"] for one in found)
    return [
        position
        for name in names
        for position in sorted(one["position"] for one in found if one["documentId"] == name)
    ]


@pytest.mark.parametrize(
    ("rule", "kept"),
    [
        ({"field": "team", "operator": "eq", "value": "red"}, ["a"]),
        ({"field": "team", "operator": "eq", "value": "RED", "caseSensitive": False}, ["a"]),
        ({"field": "team", "operator": "eq", "value": "RED"}, []),
        ({"field": "team", "operator": "neq", "value": "red"}, ["b"]),
        ({"field": "age", "operator": "eq", "value": 5}, ["a"]),
        ({"field": "age", "operator": "gt", "value": 5}, ["b"]),
        ({"field": "age", "operator": "lte", "value": 5.0}, ["a"]),
        ({"field": "new", "operator": "eq", "value": True}, ["b"]),
        ({"field": "team", "operator": "contains", "value": "lu"}, ["b"]),
        ({"field": "team", "operator": "notContains", "value": "lu"}, ["a"]),
        ({"field": "tags", "operator": "arrayContains", "value": "x"}, ["a"]),
        ({"field": "tags", "operator": "arrayNotContains", "value": "x"}, ["b"]),
        (
            {
                "operator": "or",
                "operands": [
                    {"field": "team", "operator": "eq", "value": "red"},
                    {"operator": "and", "operands": [{"field": "age", "operator": "gte", "value": 9}]},
                ],
            },
            ["a", "b"],
        ),
    ],
)
async def test_a_filter_keeps_what_its_conditions_hold_for(
    service: Service, rule: dict[str, Any], kept: list[str]
) -> None:
    """v5 contract: `FilterExpression`."""
    a = {"team": "red", "age": 5, "new": False, "tags": ["x"]}
    b = {"team": "blue", "age": 9, "new": True, "tags": ["y"]}
    for key, metadata in (("a", a), ("b", b)):
        await ok(
            service.http,
            "POST",
            "/ns/ana/document",
            {"content": f"Tea {key}", "id": key, "metadata": metadata},
        )
    await service.settled()
    listed = await ok(service.http, "POST", "/ns/ana/list/documents", {"filter": rule}, order="asc")
    assert [one["id"] for one in listed["documents"]] == kept
    found = await ok(service.http, "POST", "/ns/ana/search", {"query": "tea", "threshold": 0, "filter": rule})
    assert sorted({one["metadata"]["team"] for one in found["results"]}) == sorted(
        {"a": "red", "b": "blue"}[key] for key in kept
    )


def nested(levels: int) -> dict[str, Any]:
    rule: dict[str, Any] = {"field": "a", "operator": "eq", "value": "x"}
    for _ in range(levels - 1):
        rule = {"operator": "and", "operands": [rule]}
    return rule


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/ns/a%20b/search", {"query": "x"}, "namespace"),
        ("/ns/ana/search", {"q": "x"}, "query"),
        ("/ns/ana/search", {"query": "x", "searchMode": "documents"}, "searchMode"),
        (
            "/ns/ana/search",
            {"query": "x", "filter": {"field": "a", "operator": "gt", "value": "5"}},
            "filter",
        ),
        (
            "/ns/ana/search",
            {"query": "x", "filter": {"field": "a", "operator": "contains", "value": 5}},
            "filter",
        ),
        ("/ns/ana/search", {"query": "x", "filter": nested(6)}, "filter"),
        ("/ns/ana/document", {"content": "x", "customId": "y"}, "body"),
        ("/ns/ana/list/everything", {}, "type"),
        ("/ns/ana/list/memories?sort=position", {}, "sort"),
        ("/ns/ana/list/memories?limit=101", {}, "limit"),
        ("/ns/ana/profile", {"buckets": ["A b"]}, "buckets"),
    ],
)
async def test_what_the_contract_does_not_allow_is_refused(
    http: httpx.AsyncClient, path: str, body: dict[str, Any], field: str
) -> None:
    """v5 contract: 400 with the field's name."""
    answer = await http.post(path, json=body)
    assert answer.status_code == 400
    assert field in answer.json()["details"]


async def test_a_filter_of_five_levels_is_taken(http: httpx.AsyncClient) -> None:
    """API reference 1.4: at most 5 levels."""
    await ok(http, "POST", "/ns/ana/search", {"query": "x", "filter": nested(5)})


async def test_namespaces_are_listed_described_and_retired(service: Service) -> None:
    """v5 contract: namespaces; a move that is not offered must not become a deletion."""
    assert (await service.http.get("/ns/ana")).status_code == 404
    assert (await service.http.patch("/ns/ana", json={"supportingContext": "x"})).status_code == 404
    await add(service, "ana", "Likes tea")
    await add(service, "ben", "Likes milk")
    listed = await ok(service.http, "GET", "/ns", limit=1)
    assert [one["namespace"] for one in listed["namespaces"]] == ["ben"]
    assert listed["pagination"]["totalItems"] == 2
    (only,) = (await ok(service.http, "GET", "/namespaces", q="AN"))["namespaces"]
    assert (only["namespace"], only["documentCount"], only["memoryCount"]) == ("ana", 1, 1)
    described = await ok(service.http, "PATCH", "/ns/ana", {"supportingContext": "a shop"})
    assert described["supportingContext"] == "a shop"
    assert (await ok(service.http, "PATCH", "/ns/ana", {}))["supportingContext"] == "a shop"
    assert (await ok(service.http, "PATCH", "/ns/ana", {"supportingContext": None}))[
        "supportingContext"
    ] is None
    assert (await service.http.delete("/ns/ana", params={"moveTo": "ben"})).status_code == 400
    assert await facts(service.http, "ana") == ["Likes tea"]
    retired = await ok(service.http, "DELETE", "/ns/ana")
    assert retired == {
        "status": "deleted",
        "namespace": "ana",
        "deletedDocumentsCount": 1,
        "deletedMemoriesCount": 1,
    }
    assert await facts(service.http, "ana") == []
    assert (await service.http.delete("/ns/ana")).status_code == 404


async def test_a_profile_can_be_read_as_markdown(service: Service) -> None:
    """v5 contract: `Accept: text/markdown`."""
    await add(service, "ana", "Likes tea")
    answer = await service.http.post("/ns/ana/profile", headers={"accept": "text/markdown"})
    assert answer.headers["content-type"].startswith("text/markdown")
    assert answer.text.startswith("## Static\n\n- [")
    assert answer.text.endswith("] Likes tea\n")
