"""From stored text to memories: in order, once, and also when a process dies."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from supermemory_livekit.local import Engine, open_local
from supermemory_livekit.local.extraction import Changes, ExtractionFailed, Fact
from supermemory_livekit.local.jobs import Job, JobQueue
from supermemory_livekit.local.location import database_at
from supermemory_livekit.local.storage import Storage
from supermemory_livekit.local.texts import now_ms

from .support import Held, KeepEverything, Scripted, Service, call, execute, word_model

DATABASES = ("sqlite", "postgresql")

SAID = datetime(2026, 11, 1, 10, 0, tzinfo=timezone.utc)


async def test_only_new_turns_are_worked_on_and_the_turns_before_are_shown(
    serve: Callable[..., Service],
) -> None:
    """Interface of extraction: `before` holds the turns right before, so that an answer is understood."""
    extractor = Scripted([Changes(), Changes()])
    service = serve(extractor=extractor)
    await service.sdk.add(
        content=call("C: Hello.", "A: Are you vegetarian?"),
        container_tag="ana",
        custom_id="c",
        dreaming="instant",
    )
    await service.settled()
    await service.sdk.add(
        content=call("C: Yes.", minute=1), container_tag="ana", custom_id="c", dreaming="instant"
    )
    await service.settled()
    assert extractor.shown == [
        (["Hello.", "Are you vegetarian?"], [], []),
        (["Yes."], [], ["Hello.", "Are you vegetarian?"]),
    ]


async def test_dynamic_documents_wait_for_quiet(serve: Callable[..., Service]) -> None:
    """Brief of the embedded service: dynamic is processed after a configurable quiet time."""
    held = Held()
    held.let_go.set()
    service = serve(extractor=held, dynamic_delay=0.3)
    for minute in range(3):
        text = call(f"C: number {minute}", minute=minute)
        await service.sdk.add(content=text, container_tag="ana", custom_id="c", dreaming="dynamic")
    await service.settled()
    assert (await service.sdk.documents.get("c")).dreaming_status == "dreaming"
    await held.until_entered()
    await service.settled()
    assert (await service.sdk.documents.get("c")).dreaming_status == "done"
    assert len(await service.profile("ana")) == 3


async def test_an_addition_while_work_is_under_way_is_worked_on_too(serve: Callable[..., Service]) -> None:
    """API reference 3: `done` only once the latest content has become memories."""
    held = Held()
    service = serve(extractor=held)
    add = service.sdk.add
    await add(content=call("C: one"), container_tag="ana", custom_id="c", dreaming="instant")
    await held.until_entered()
    await add(content=call("C: two", minute=1), container_tag="ana", custom_id="c", dreaming="instant")
    held.let_go.set()
    await service.settled()
    assert sorted(await service.profile("ana")) == ["[2026-11-01] one", "[2026-11-01] two"]
    assert (await service.sdk.documents.get("c")).dreaming_status == "done"


async def test_content_replaced_while_work_is_under_way_leaves_no_old_fact(
    serve: Callable[..., Service],
) -> None:
    """API reference 1.6: facts supported only by the previous content disappear."""
    held = Held()
    service = serve(extractor=held)
    await service.sdk.add(content=call("C: old"), container_tag="ana", custom_id="c", dreaming="instant")
    await held.until_entered()
    await service.sdk.documents.update("c", content=call("C: new"))
    held.let_go.set()
    await service.settled()
    assert await service.profile("ana") == ["[2026-11-01] new"]


async def test_a_document_or_tag_deleted_while_work_is_under_way_stays_deleted(
    serve: Callable[..., Service],
) -> None:
    """Deleting is final: work that was begun before does not bring anything back."""
    held = Held()
    service = serve(extractor=held)
    await service.sdk.add(content=call("C: one"), container_tag="ana", custom_id="c1", dreaming="instant")
    await service.sdk.add(content=call("C: two"), container_tag="ben", custom_id="c2", dreaming="instant")
    await held.until_entered()
    await service.sdk.documents.delete("c1")
    await service.http.delete("/v3/container-tags/ben")
    held.let_go.set()
    await service.settled()
    assert await service.profile("ana") == []
    assert [tag["containerTag"] for tag in (await service.http.get("/v3/container-tags/list")).json()] == [
        "ana"
    ]


async def test_searches_and_writes_do_not_wait_for_work_under_way(serve: Callable[..., Service]) -> None:
    """API reference 5.3: searches never queue behind ingestion."""
    held = Held()
    service = serve(extractor=held)
    await service.sdk.add(content=call("C: I sail."), container_tag="ana", custom_id="c", dreaming="instant")
    await held.until_entered()
    assert await asyncio.wait_for(service.found("ana", "sail"), 5)
    assert await asyncio.wait_for(service.profile("ana"), 5) == []
    await asyncio.wait_for(service.sdk.add(content="x", container_tag="ana"), 5)
    held.let_go.set()


async def test_facts_of_one_tag_are_made_one_document_after_another(serve: Callable[..., Service]) -> None:
    """API reference 2: ingest sequentially within a tag, because order decides what replaces what."""
    held = Held()
    service = serve(extractor=held)
    for number in range(3):
        await service.sdk.add(content=call(f"C: {number} for ana"), container_tag="ana", dreaming="instant")
    await held.until_entered()
    held.let_go.set()
    await service.settled()
    assert held.most_inside == 1
    assert len(await service.profile("ana")) == 3


async def test_work_that_fails_is_tried_again_and_nothing_is_lost(serve: Callable[..., Service]) -> None:
    """Design 6: a model that is down delays memories, it does not lose them."""
    extractor = Scripted([ExtractionFailed("down"), Changes(add=(Fact("Likes tea.", False, SAID),))])
    service = serve(extractor=extractor)
    await service.sdk.add(content=call("C: Tea."), container_tag="ana", custom_id="c", dreaming="instant")
    await service.settled()
    assert (await service.sdk.documents.get("c")).dreaming_status == "dreaming"
    assert await service.found("ana", "tea")
    execute(
        service.engine.location, "UPDATE jobs SET due_at=0"
    )  # as if the pause before the next attempt were over
    await service.settled()
    assert await service.profile("ana") == ["[2026-11-01] Likes tea."]


async def test_the_next_process_does_what_a_closed_one_left(serve: Callable[..., Service]) -> None:
    """Brief of the embedded service: work left is picked up by the next one that opens the file, at once."""
    held = Held()
    first = serve(extractor=held)
    await first.sdk.add(content=call("C: I sail."), container_tag="ana", dreaming="instant")
    await held.until_entered()
    await first.sdk.close()
    second = serve()
    await second.engine.start()
    await second.settled()
    assert await second.profile("ana") == ["[2026-11-01] I sail."]


async def test_work_in_the_background_is_no_change_of_a_caller(serve: Callable[..., Service]) -> None:
    """Brief of the inspector: callers by their last change, which a new model or a restart is not."""
    service = serve()
    body = {"containerTag": "ana", "memories": [{"content": "Likes tea"}]}
    await service.http.post("/v4/memories", json=body)
    await service.settled()
    execute(service.engine.location, "UPDATE tags SET updated_at=7")
    second = serve(load=lambda: word_model("words-2"))
    await second.engine.start()
    await second.settled()
    rows = execute(service.engine.location, "SELECT t.updated_at, m.vector_model FROM tags t, memories m")
    assert [(row["updated_at"], row["vector_model"]) for row in rows] == [(7, "words-2")]


async def test_work_of_a_process_that_died_is_taken_over_when_its_lease_runs_out(
    serve: Callable[..., Service],
) -> None:
    """Brief of the embedded service: jobs with a lease, so that a dead process's work is picked up."""
    first = serve(dynamic_delay=3600)
    await first.sdk.add(content=call("C: I sail."), container_tag="ana", custom_id="c")
    await first.settled()
    await first.sdk.close()
    # What a process killed while working leaves behind.
    leased = "UPDATE jobs SET due_at=0, owner='dead', lease_until=:until"
    execute(first.engine.location, leased, until=now_ms() + 3_600_000)
    second = serve()
    await second.engine.start()
    await second.settled()
    assert (await second.sdk.documents.get("c")).dreaming_status == "dreaming"
    execute(first.engine.location, "UPDATE jobs SET lease_until=:until", until=now_ms() - 1)
    await second.settled()
    assert await second.profile("ana") == ["[2026-11-01] I sail."]


async def test_a_process_that_lost_its_lease_writes_nothing(serve: Callable[..., Service]) -> None:
    """Brief of the embedded service: two processes never process the same job at once; a slow one is fenced off."""
    held = Held()
    slow = serve(extractor=held, lease=3600)
    await slow.sdk.add(content=call("C: from the slow one"), container_tag="ana", dreaming="instant")
    await held.until_entered()
    execute(slow.engine.location, "UPDATE jobs SET lease_until=0")
    quick = serve(extractor=Scripted([Changes(add=(Fact("from the quick one", False, SAID),))]))
    await quick.engine.start()
    await quick.settled()
    held.let_go.set()
    await slow.settled()
    assert await quick.profile("ana") == ["[2026-11-01] from the quick one"]


def test_many_workers_never_hold_one_job_at_once(location: Path | str) -> None:
    """Brief of the embedded service: two processes never process the same job at once."""
    databases = [database_at(location) for _ in range(4)]
    for database in databases:
        database.open()
    storage = Storage(databases[0])
    for number in range(40):
        with storage.write(f"tag{number}") as writer:
            writer.enqueue("embed", 0)
    taken: list[str] = []

    def work(number: int) -> None:
        queue = JobQueue(databases[number], owner=f"worker{number}", lease=60)
        while (job := queue.claim()) is not None:
            taken.append(job.tag)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(taken) == sorted(f"tag{number}" for number in range(40))
    for database in databases:
        database.close()


def test_many_workers_never_make_facts_of_one_tag_at_once(location: Path | str) -> None:
    """API reference 2: sequentially within a tag, also when several servers look for work at the same moment."""
    databases = [database_at(location) for _ in range(4)]
    for database in databases:
        database.open()
    with Storage(databases[0]).write("ana") as writer:
        for number in range(4):
            document = writer.insert_document(
                content=f"call {number}",
                custom_id=None,
                metadata={},
                task_type="memory",
                filepath=None,
                dated_at=None,
            )
            writer.enqueue("dream", 0, document)
    jobs = [row["seq"] for row in execute(location, "SELECT seq FROM jobs ORDER BY seq")]
    queues = [
        JobQueue(database, owner=f"worker{number}", lease=60) for number, database in enumerate(databases)
    ]
    start = threading.Barrier(len(queues))

    def claim(number: int) -> Job | None:
        """Each would like another job, so that none is in another's way."""
        start.wait(10)
        return queues[number].claim(under_way=[seq for seq in jobs if seq != jobs[number]])

    with ThreadPoolExecutor(len(queues)) as pool:
        for _ in range(15):
            taken = list(pool.map(claim, range(len(queues))))
            assert sum(job is not None for job in taken) == 1
            for queue, job in zip(queues, taken, strict=True):
                if job is not None:
                    queue.release(job)
    for database in databases:
        database.close()


async def test_closing_gives_due_work_a_moment(location: Path | str) -> None:
    """Brief of the embedded service: aclose drains pending instant ingest."""
    for _ in range(2):
        engine = Engine(location, extractor=KeepEverything(), load=lambda: None, drain=10)
        async with open_local(engine=engine) as client:
            body: dict[str, Any] = {
                "content": call("C: I sail."),
                "containerTag": "ana",
                "dreaming": "instant",
            }
            await client.post("/v3/documents", json=body)
    assert execute(location, "SELECT seq FROM jobs") == []
    assert len(execute(location, "SELECT seq FROM memories")) == 1


async def test_a_client_works_in_any_number_of_loops_and_threads(location: Path | str) -> None:
    """Brief of the embedded service: several event loops of one process, each open_local its own engine."""

    async def one(number: int) -> None:
        engine = Engine(location, extractor=KeepEverything(), load=lambda: None)
        async with open_local(engine=engine) as client:
            for turn in range(5):
                body = {"content": call(f"C: {number} {turn}"), "containerTag": "ana", "dreaming": "instant"}
                assert (await client.post("/v3/documents", json=body)).status_code == 200

    await asyncio.gather(*(asyncio.to_thread(lambda n=n: asyncio.run(one(n))) for n in range(4)))  # type: ignore[misc]
    assert len(execute(location, "SELECT seq FROM documents")) == 20
