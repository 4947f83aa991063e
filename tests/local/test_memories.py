"""Facts stored, changed and forgotten one by one."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone

import httpx
import pytest
from supermemory import AsyncSupermemory, ConflictError, NotFoundError

from supermemory_livekit.local.extraction import Changes, Fact

from .support import Scripted, Service, call

DATABASES = ("sqlite", "postgresql")

SAID = datetime(2026, 11, 1, 10, 0, tzinfo=timezone.utc)


async def create(http: httpx.AsyncClient, *texts: str, tag: str = "ana") -> list[str]:
    body = {"containerTag": tag, "memories": [{"content": text} for text in texts]}
    answer = await http.post("/v4/memories", json=body)
    assert answer.status_code == 201
    return [memory["id"] for memory in answer.json()["memories"]]


async def listed(http: httpx.AsyncClient, tag: str = "ana") -> list[dict[str, object]]:
    answer = await http.post("/v4/memories/list", json={"containerTags": [tag], "limit": 100})
    entries: list[dict[str, object]] = answer.json()["memoryEntries"]
    return entries


async def test_a_remembered_text_becomes_one_memory_word_for_word(service: Service) -> None:
    """Specification: `remember` stores a standalone fact. Brief: exactly that text."""
    text = "Note: my sister's name is Zoë; she moved. Call before 9."
    await service.sdk.add(content=text, container_tag="ana", dreaming="instant")
    await service.settled()
    assert [memory["memory"] for memory in await listed(service.http)] == [text]


async def test_stored_text_for_retrieval_alone_makes_no_memory(service: Service) -> None:
    """API reference 1.1: taskType `superrag`."""
    await service.sdk.add(
        content="Opening hours", container_tag="ana", task_type="superrag", dreaming="instant"
    )
    await service.settled()
    assert await listed(service.http) == []
    assert await service.found("ana", "hours") == ["Opening hours"]


async def test_the_same_fact_twice_is_one_memory_with_the_later_date(serve: Callable[..., Service]) -> None:
    """Brief of the embedded service: the same fact twice in a tag is stored once, refreshed in date."""
    later = SAID.replace(day=9)
    changes = [
        Changes(add=(Fact("Likes tea.", False, SAID),)),
        Changes(add=(Fact("likes  TEA", False, later),)),
    ]
    service = serve(extractor=Scripted(list(changes)))
    for _ in changes:
        await service.sdk.add(content=call("C: Tea."), container_tag="ana", dreaming="instant")
        await service.settled()
    assert await service.profile("ana") == ["[2026-11-09] Likes tea."]


@pytest.mark.parametrize(
    "words",
    [
        "Allergic to nuts",
        "  allergic TO nuts \n",
        "[2026-11-01] Allergic to nuts",
    ],
)
async def test_exact_text_forgives_space_around_it_case_and_the_date(service: Service, words: str) -> None:
    """Brief of the embedded service: exact-text forget is tolerant of these three only."""
    (memory_id,) = await create(service.http, "Allergic to nuts")
    answer = await service.sdk.memories.forget(container_tag="ana", content=words)
    assert (answer.id, answer.forgotten) == (memory_id, True)
    assert await service.profile("ana") == []
    assert await service.found("ana", "nuts") == []


@pytest.mark.parametrize("words", ["Allergic to milk", "Allergic", "Allergic to nuts.", "Allergic  to nuts"])
async def test_other_words_forget_nothing(service: Service, words: str) -> None:
    """Case T2: stored "Allergic to nuts", forget "allergic to milk": nothing deleted."""
    await create(service.http, "Allergic to nuts")
    with pytest.raises(NotFoundError):
        await service.sdk.memories.forget(container_tag="ana", content=words)
    assert len(await service.profile("ana")) == 1


async def test_forgetting_twice_is_a_conflict(service: Service) -> None:
    """API reference 1.5: 404 not found, 409 already forgotten."""
    (memory_id,) = await create(service.http, "Likes tea")
    await service.sdk.memories.forget(container_tag="ana", id=memory_id, reason="asked")
    for named in ({"id": memory_id}, {"content": "likes tea"}):
        with pytest.raises(ConflictError):
            await service.sdk.memories.forget(container_tag="ana", **named)  # type: ignore[arg-type]
    (entry,) = await listed(service.http)
    assert (entry["isForgotten"], entry["forgetReason"]) == (True, "asked")


async def test_a_document_id_is_no_memory_id(service: Service) -> None:
    """Case T1: forget by a document id is an honest "no such memory"."""
    document = await service.sdk.add(content="Likes tea", container_tag="ana", dreaming="instant")
    await service.settled()
    with pytest.raises(NotFoundError):
        await service.sdk.memories.forget(container_tag="ana", id=document.id)


async def test_what_was_forgotten_does_not_come_back_from_an_old_call(serve: Callable[..., Service]) -> None:
    """What a caller had forgotten stays so when a transcript from before is processed afterwards."""
    fact = Changes(add=(Fact("PIN is 4711.", True, SAID),))
    said_again = Changes(add=(Fact("PIN is 4711.", True, datetime(2100, 1, 1, tzinfo=timezone.utc)),))
    service = serve(extractor=Scripted([fact, fact, said_again]))
    await service.sdk.add(content=call("C: My PIN."), container_tag="ana", dreaming="instant")
    await service.settled()
    await service.sdk.memories.forget(container_tag="ana", content="PIN is 4711.")
    await service.sdk.add(content=call("C: My PIN.", "C: And more."), container_tag="ana", dreaming="instant")
    await service.settled()
    assert await service.profile("ana") == []
    await service.sdk.add(content=call("C: My PIN, again."), container_tag="ana", dreaming="instant")
    await service.settled()
    assert len(await service.profile("ana")) == 1


async def test_a_caller_can_take_back_a_fact_in_the_call(serve: Callable[..., Service]) -> None:
    """Interface of extraction: `Changes.forget`."""
    extractor = Scripted([Changes(add=(Fact("Likes tea.", False, SAID),))])
    service = serve(extractor=extractor)
    await service.sdk.add(content=call("C: Tea."), container_tag="ana", dreaming="instant")
    await service.settled()
    (entry,) = await listed(service.http)
    extractor.changes.append(Changes(forget=(str(entry["id"]), "unknown-id")))
    await service.sdk.add(content=call("C: Forget that."), container_tag="ana", dreaming="instant")
    await service.settled()
    assert await service.profile("ana") == []


async def test_an_update_is_a_new_version_and_keeps_the_old(
    sdk: AsyncSupermemory, http: httpx.AsyncClient
) -> None:
    """API reference 1.5: PATCH; old version kept with isLatest false."""
    (old,) = await create(http, "Lives in Porto")
    answer = await sdk.memories.update_memory(
        container_tag="ana", content="lives in porto", new_content="Lives in Lisbon"
    )
    assert (answer.memory, answer.version, answer.parent_memory_id, answer.root_memory_id) == (
        "Lives in Lisbon",
        2,
        old,
        old,
    )
    again = await sdk.memories.update_memory(container_tag="ana", id=answer.id, new_content="Lives in Faro")
    (entry,) = await listed(http)
    assert (entry["version"], entry["rootMemoryId"]) == (3, old)
    assert [version["memory"] for version in entry["history"]] == ["Lives in Lisbon", "Lives in Porto"]  # type: ignore[attr-defined]
    assert [version["isLatest"] for version in entry["history"]] == [False, False]  # type: ignore[attr-defined]
    with pytest.raises(NotFoundError):
        await sdk.memories.forget(container_tag="ana", id=old)
    assert entry["id"] == again.id


async def test_matching_memories_are_named_first_and_forgotten_then(service: Service) -> None:
    """API reference 1.5: forget-matching with and without dryRun."""
    await create(service.http, "Drinks green tea", "Drinks black tea", "Sails")
    body = {"containerTag": "ana", "query": "tea", "threshold": 0.1, "dryRun": True}
    preview = (await service.http.post("/v4/memories/forget-matching", json=body)).json()
    assert {one["memory"] for one in preview["candidates"]} == {"Drinks green tea", "Drinks black tea"}
    assert len(await service.profile("ana")) == 3
    done = (await service.http.post("/v4/memories/forget-matching", json={**body, "dryRun": False})).json()
    assert done["count"] == len(done["forgotten"]) == 2
    assert [line[13:] for line in await service.profile("ana")] == ["Sails"]
    ids = await create(service.http, "Cooks", "Reads")
    body = {"containerTag": "ana", "ids": [ids[0], "unknown"]}
    assert (await service.http.post("/v4/memories/forget-matching", json=body)).json()["count"] == 1


async def test_a_deleted_tag_is_gone_with_everything_under_it(service: Service) -> None:
    """API reference 1.7: DELETE container tag; and nothing cached returns when the tag is used again."""
    await service.sdk.add(content="Likes tea", container_tag="ana", dreaming="instant")
    await service.settled()
    assert await service.found("ana", "tea")
    settings = await service.http.get("/v3/container-tags/ana")
    assert settings.json()["containerTag"] == "ana"
    deleted = (await service.http.delete("/v3/container-tags/ana")).json()
    assert (deleted["deletedDocumentsCount"], deleted["deletedMemoriesCount"]) == (1, 1)
    assert (await service.http.get("/v3/container-tags/ana")).status_code == 404
    assert (await service.http.delete("/v3/container-tags/ana")).status_code == 404
    await create(service.http, "Likes sailing")
    assert await service.found("ana", "tea") == []
    assert await service.found("ana", "sailing") == ["Likes sailing"]
