"""Listing and deleting documents and tags over the official SDK: what is on the wire, and what is logged of it."""

from __future__ import annotations

import logging

import httpx
import pytest
from tests.support.privacy import assert_private
from tests.unit.test_sdk_lists import AT, SPOKEN, STAMP, TAG, entry, listed, store_over

from supermemory_livekit.errors import AccessDenied, NotFound, ServiceUnavailable
from supermemory_livekit.sdk.store import SDKStore
from supermemory_livekit.store import DeletedTag, DocumentPage, MemoryPage, StoredCall, StoredMemory
from supermemory_livekit.testing import ScriptedStore

TAG_ROUTE = f"/v3/container-tags/{TAG}"


async def test_documents_are_listed_page_by_page_with_their_contents() -> None:
    """Reference 1.6, `POST /v3/documents/list`; documents of other tags are never taken for the caller's."""
    mine = {"id": "d1", "customId": "lk-1", "content": SPOKEN, "containerTags": [TAG], "updatedAt": STAMP}
    other = {**mine, "id": "d2", "containerTags": ["somebody-else"]}
    bare = {"id": "d3", "dreamingStatus": "dreaming"}
    pagination = {"currentPage": 2, "totalPages": 3, "totalItems": 21}
    store, service = store_over(
        {"/v3/documents/list": {"memories": [mine, other, bare], "pagination": pagination}}
    )
    page = await store.list_documents(TAG, page=2, limit=900, contents=True, timeout=2)
    body = {"containerTags": [TAG], "limit": 100, "page": 2, "sort": "updatedAt", "order": "desc"}
    assert service.requests == [("POST /v3/documents/list", {**body, "includeContent": True})]
    assert page == DocumentPage(
        entries=(
            StoredCall("d1", "lk-1", SPOKEN, processed=True, updated_at=AT),
            StoredCall("d3", None, "", processed=False),
        ),
        more=True,
        total=21,
    )
    await store.list_documents(TAG, page=2, limit=900, contents=False, timeout=2)
    assert service.requests[1] == ("POST /v3/documents/list", body)


async def test_documents_are_deleted_by_their_ids_in_one_request() -> None:
    """Reference 1.6, `DELETE /v3/documents/bulk`."""
    store, service = store_over({"/v3/documents/bulk": {"success": True, "deletedCount": 2}})
    await store.delete_documents(TAG, ["d1", "d2"], timeout=2)
    assert service.requests == [("DELETE /v3/documents/bulk", {"ids": ["d1", "d2"]})]


async def test_a_service_without_the_bulk_route_is_asked_one_by_one() -> None:
    """Reference 1.6: a document that is gone already is no error."""

    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(204 if request.url.path.endswith("/d1") else 404)

    store, service = store_over(answer)
    await store.delete_documents(TAG, ["d1", "d2"], timeout=2)
    assert [route for route, _ in service.requests] == [
        "DELETE /v3/documents/bulk",
        "DELETE /v3/documents/d1",
        "DELETE /v3/documents/d2",
    ]


async def test_a_tag_is_deleted_with_all_that_is_under_it() -> None:
    """Reference 1.7, `DELETE /v3/container-tags/{tag}`."""
    answer = {"success": True, "containerTag": TAG, "deletedDocumentsCount": 3, "deletedMemoriesCount": 9}
    store, service = store_over({TAG_ROUTE: answer})
    assert await store.delete_tag(TAG, timeout=2) == DeletedTag(documents=3, memories=9)
    assert service.requests == [(f"DELETE {TAG_ROUTE}", None)]


@pytest.mark.parametrize(
    ("status", "body", "error"),
    [
        (403, {"error": SPOKEN}, AccessDenied),
        (404, {"error": SPOKEN}, NotFound),
        (200, {"success": False}, ServiceUnavailable),
        (200, "<html>", ServiceUnavailable),
    ],
)
async def test_a_tag_that_is_not_deleted_is_an_error_without_words(
    status: int, body: object, error: type[Exception]
) -> None:
    """Design 6: no body is ever quoted, and no tag."""
    store, _ = store_over(lambda _: httpx.Response(status, json=body))
    with pytest.raises(error) as raised:
        await store.delete_tag(TAG, timeout=2)
    assert SPOKEN not in str(raised.value)
    assert TAG not in str(raised.value)


async def test_the_address_that_names_a_caller_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Design 6, case P2: no tag in a log message; httpx logs addresses. Other requests are logged as ever."""
    caplog.set_level(logging.DEBUG)
    store, _ = store_over({TAG_ROUTE: {"success": True}, "/v4/profile": {"profile": {}}})
    await store.delete_tag(TAG, timeout=2)
    assert_private(caplog, [TAG])
    assert not [record for record in caplog.records if record.name == "httpx"]
    await store.profile(TAG, timeout=2)
    assert [record for record in caplog.records if record.name == "httpx"]


async def test_a_client_without_these_methods_says_so() -> None:
    """Design 1: any object with the four methods is a client."""

    class Small:
        async def add(self, **_: object) -> None: ...
        async def profile(self, **_: object) -> None: ...

        class search:  # noqa: N801
            memories = staticmethod(lambda **_: None)  # pyright: ignore[reportUnknownLambdaType]

        class memories:  # noqa: N801
            forget = staticmethod(lambda **_: None)  # pyright: ignore[reportUnknownLambdaType]

    store = SDKStore(Small())
    for request in (
        store.list_documents(TAG, page=1, limit=1, contents=False, timeout=2),
        store.delete_documents(TAG, ["d1"], timeout=2),
        store.delete_tag(TAG, timeout=2),
    ):
        with pytest.raises(NotImplementedError):
            await request


async def test_forgotten_memories_are_told_apart_and_with_their_text() -> None:
    """Issue: `export` writes everything known, also what a service keeps of a forgotten memory."""
    page = await listed(entry(isForgotten=True), entry(id="m2", memory=None))
    assert page == MemoryPage(
        gone=("m1", "m2"),
        more=True,
        forgotten=(StoredMemory("m1", "Likes tea", updated_at=AT, documents=("d1",)),),
    )


async def test_the_double_lists_and_deletes_like_a_service() -> None:
    """Style 3: what `ScriptedStore` does without a script."""
    with ScriptedStore() as store:
        first = await store.append(TAG, "lk-1", "one", dreaming="instant", at=AT, timeout=2)
        second = await store.remember(TAG, "Likes tea", dreaming="instant", timeout=2)
        assert first is not None
        assert second is not None
        page = await store.list_documents(TAG, page=1, limit=1, contents=True, timeout=2)
        assert (page.total, page.more, [one.text for one in page.entries]) == (2, True, ["Likes tea"])
        await store.delete_documents(TAG, [first], timeout=2)
        assert store.document(TAG, "lk-1") is None
        assert store.remembered(TAG) == ["Likes tea"]
        assert await store.delete_tag(TAG, timeout=2) == DeletedTag(documents=1, memories=1)
        assert store.remembered(TAG) == []
        with pytest.raises(NotFound):
            await store.delete_tag("nobody", timeout=2)
