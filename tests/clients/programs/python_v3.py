"""A program that uses `supermemory` 3.x as its own documentation does. Prints what it saw as JSON.

The first argument is the step: the service gets time to make memories of what was stored in between.
"""

import asyncio
import json
import sys

from supermemory import AsyncSupermemory, Supermemory, __version__

CALL = "User: I sail on weekends.\nAssistant: Nice"


def write(client: Supermemory) -> dict[str, object]:
    added = client.add(content=CALL, container_tag="ana", custom_id="call-1", dreaming="instant")
    client.documents.add(
        content="Likes tea", container_tag="ana", metadata={"kind": "note"}, dreaming="instant"
    )
    batch = client.documents.batch_add(
        documents=[{"content": "Plays chess", "container_tag": "ana"}], dreaming="instant"
    )
    return {"id": added.id, "status": added.status, "batch": batch.success}


async def recall() -> list[str]:
    async with AsyncSupermemory(max_retries=0) as client:
        answer = await client.profile(container_tag="ana", q="tea", threshold=0.1)
    assert answer.search_results is not None
    # Objects or dictionaries, by version.
    return [hit["memory"] if isinstance(hit, dict) else hit.memory for hit in answer.search_results.results]


def read(client: Supermemory) -> dict[str, object]:
    profile = client.profile(container_tag="ana").profile
    found = client.search.memories(q="sail", container_tag="ana", search_mode="hybrid", threshold=0.1)
    documents = client.search.documents(q="sail", container_tag="ana")
    executed = client.search.execute(q="tea", container_tags=["ana"])
    document = client.documents.get("call-1")
    listed = client.documents.list(container_tags=["ana"], limit=2, order="asc")
    client.documents.update("call-1", metadata={"seen": True})
    updated = client.memories.update_memory(
        container_tag="ana", content="Plays chess", new_content="Plays go"
    )
    (hit,) = client.search.memories(q="likes tea", container_tag="ana", threshold=0.5).results
    forgotten = client.memories.forget(container_tag="ana", id=hit.id)
    client.documents.delete(document.id)
    bulk = client.documents.delete_bulk(container_tags=["ana"])
    return {
        "static": profile.static,
        "dynamic": profile.dynamic,
        "found": [one.memory or one.chunk for one in found.results],
        "documents": [one.chunks[0].content for one in documents.results],
        "executed": [one.metadata for one in executed.results],
        "status": [document.status, document.dreaming_status],
        "listed": [len(listed.memories), listed.pagination.total_items],
        "updated": [updated.memory, updated.version],
        "forgotten": forgotten.forgotten,
        "deleted": bulk.deleted_count,
    }


with Supermemory(max_retries=0) as sdk:
    seen = write(sdk) if sys.argv[1] == "write" else {"recalled": asyncio.run(recall()), **read(sdk)}
print(json.dumps({"version": __version__, **seen}))
