"""A program that uses `supermemory` 5.x as its own documentation does. Prints what it saw as JSON."""

import asyncio
import json
import sys
from importlib.metadata import version

from supermemory import AsyncSupermemory, Supermemory

CALL = "User: I sail on weekends.\nAssistant: Nice"
NS = "tenant:ana"


def write(client: Supermemory) -> dict[str, object]:
    added = client.add(NS, content=CALL, id="call/1", dreaming="instant")
    client.add(NS, content="Likes tea", metadata={"kind": "note"}, dreaming="instant")
    batch = client.documents.batch_add(
        NS, documents=[{"content": "Plays chess", "id": "b"}], dreaming="instant"
    )
    return {"id": added.id, "status": added.status, "batch": [batch.count, batch.failed]}


async def recall() -> dict[str, list[str]]:
    client = AsyncSupermemory()
    profile, found = await asyncio.gather(
        client.profile(NS), client.search(NS, query="sail", search_mode="hybrid", threshold=0.1)
    )
    return {
        "static": [fact.memory for fact in profile.profile.static],
        "dynamic": [fact.memory for fact in profile.profile.dynamic],
        "found": [str(hit.memory or hit.chunk) for hit in found.results],
    }


def read(client: Supermemory) -> dict[str, object]:
    document = client.documents.get(NS, "call/1", include=["memories", "chunks"])
    listed = client.list(NS, "memories", limit=2, order="asc")
    filtered = client.list(
        NS,
        "documents",
        filter={"field": "kind", "operator": "eq", "value": "note"},
        include={"content": True},
    )
    tea = next(
        hit for hit in client.search(NS, query="likes tea", search_mode="memories", threshold=0.5).results
    )
    memory = client.memories.get(NS, tea.id, include=["documents"])
    dry = client.memories.forget_matching(NS, query="likes tea", dry_run=True)
    forgotten = client.memories.forget(NS, ids=[tea.id, "none"])
    updated = client.documents.update(NS, "b", content="Plays go", dreaming="instant")
    namespaces = client.namespaces.list(limit=5)
    described = client.namespaces.update(NS, supporting_context="A sailor")
    deleted = client.documents.delete(NS, ids=["call/1"])
    retired = client.namespaces.delete(NS)
    return {
        "status": [document.system.status, document.system.dreaming_status],
        "made": [one.memory for one in document.memories or []],
        "pieces": any("sail" in chunk.content for chunk in document.chunks or []),
        "listed": [len(listed.memories), listed.pagination.total_items],
        "filtered": [one.content for one in filtered.documents],
        "memory": [memory.memory, memory.is_latest],
        "dry": [one.memory for one in dry.matches],
        "forgotten": [forgotten.count, [one.id for one in forgotten.errors]],
        "updated": updated.id,
        "namespaces": [one.namespace for one in namespaces.namespaces],
        "described": described.supporting_context,
        "deleted": deleted.count,
        "retired": retired.status,
    }


sdk = Supermemory()
seen = write(sdk) if sys.argv[1] == "write" else {**asyncio.run(recall()), **read(sdk)}
print(json.dumps({"version": version("supermemory"), **seen}))
