"""Storing, changing, forgetting and listing facts directly."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from .container import Container
from .faults import AlreadyDone, Missing
from .filters import matches
from .finding import Finder
from .records import Document, Memory, NewMemory
from .schemas import CreateMemories, ForgetMatching, ForgetMemory, ListMemories, UpdateMemory
from .storage import Storage
from .texts import now_ms
from .writer import Writer

__all__ = ["Listed", "Matched", "Memories", "Related"]


@dataclass(frozen=True)
class Listed:
    """A memory with what it took the place of, newest version first, and the documents it comes from."""

    memory: Memory
    history: tuple[Memory, ...]
    document_ids: tuple[str, ...]


@dataclass(frozen=True)
class Matched:
    memory: Memory
    score: float


@dataclass(frozen=True)
class Related:
    """A memory with the versions before and after it, nearest first."""

    memory: Memory
    parents: tuple[Memory, ...]
    children: tuple[Memory, ...]
    documents: Mapping[int, tuple[Document, ...]]
    """What each of them comes from, by `Memory.seq`."""


class Memories:
    """Blocks; thread-safe. `wake` is called after work was put into the queue."""

    def __init__(self, storage: Storage, finder: Finder, wake: Callable[[], None]) -> None:
        self._storage = storage
        self._finder = finder
        self._wake = wake

    def create(self, ask: CreateMemories) -> list[Memory]:
        """Store facts as they are."""
        created: list[Memory] = []
        with self._storage.write(ask.container_tag) as writer:
            for item in ask.memories:
                said = item.temporal_context.document_date if item.temporal_context else None
                new = NewMemory(
                    text=item.content,
                    static=item.is_static,
                    at=now_ms() if said is None else said,
                    forget_after=item.forget_after,
                    forget_reason=item.forget_reason,
                    metadata=item.metadata,
                )
                memory = writer.add_memory(new)
                assert memory is not None
                created.append(memory)
            writer.enqueue("embed", now_ms())
        self._wake()
        return created

    def update(self, ask: UpdateMemory) -> Memory:
        """The next version of a memory. The old one is kept as history."""
        with self._storage.write(ask.container_tag) as writer:
            old = _find(writer, ask.id, ask.content)
            said = ask.temporal_context.document_date if ask.temporal_context else None
            new = NewMemory(
                text=ask.new_content,
                static=old.static,
                at=now_ms() if said is None else said,
                forget_after=ask.forget_after,
                forget_reason=ask.forget_reason,
                metadata=old.metadata if ask.metadata is None else ask.metadata,
                replaces=(old.id,),
            )
            memory = writer.update_memory(old, new)
            writer.enqueue("embed", now_ms())
        self._wake()
        return memory

    def forget(self, ask: ForgetMemory) -> Memory:
        """Forget one memory, by its id or its exact text.

        Raises `Missing`, or `AlreadyDone` when it is forgotten already.
        """
        with self._storage.write(ask.container_tag) as writer:
            memory = _find(writer, ask.id, ask.content)
            writer.forget(memory, ask.reason)
        return memory

    def forget_matching(self, ask: ForgetMatching) -> list[Matched]:
        """Forget (or with `dry_run` only name) memories by ids, or those near enough to a query."""
        if ask.query is not None:
            near = self._finder.facts(
                ask.container_tag, ask.query, limit=ask.max_forget, threshold=ask.threshold
            )
            scores = {hit.memory.id: hit.similarity for hit in near if hit.memory is not None}
        else:
            scores = dict.fromkeys((ask.ids or [])[: ask.max_forget], 1.0)
        if not scores:
            return []
        if ask.dry_run:
            with self._storage.read(ask.container_tag) as container:
                return _matched(container, scores)
        with self._storage.write(ask.container_tag) as writer:
            matched = _matched(writer, scores)
            for match in matched:
                writer.forget(match.memory, ask.reason)
        return matched

    def get(self, tag: str, memory_id: str) -> Related:
        """One version of a memory, forgotten or not, with its neighbours."""
        with self._storage.read(tag) as container:
            memory = container.memory(memory_id)
            if memory is None:
                raise Missing("Memory not found")
            before = _walk(memory, lambda one: filter(None, [container.memory(one.parent_id or "")]))
            after = _walk(memory, container.versions_after)
            sources = container.sources([one.seq for one in (memory, *before, *after)])
        return Related(
            memory,
            parents=tuple(before),
            children=tuple(after),
            documents={seq: tuple(documents) for seq, documents in sources.items()},
        )

    def page(self, ask: ListMemories, *, forgotten: bool = True) -> tuple[list[Listed], int]:
        """One page of the latest versions and how many there are in all; `forgotten` ones too, or not."""
        with self._storage.read(ask.tag) as container:
            memories = container.all_memories()
            by_id = {memory.id: memory for memory in memories}
            now = now_ms()
            found = [
                memory
                for memory in memories
                if memory.latest
                and (forgotten or not memory.forgotten(now))
                and matches(ask.filters, memory.metadata)
            ]
            found.sort(
                key=lambda memory: (
                    memory.created_at if ask.sort == "createdAt" else memory.updated_at,
                    memory.seq,
                ),
                reverse=ask.order == "desc",
            )
            first = (ask.page - 1) * ask.limit
            page = found[first : first + ask.limit]
            sources = container.sources([memory.seq for memory in page])
        return [
            Listed(memory, _history(memory, by_id), tuple(document.id for document in sources[memory.seq]))
            for memory in page
        ], len(found)


def _find(writer: Writer, memory_id: str | None, text: str | None) -> Memory:
    if memory_id:
        memory = writer.memory(memory_id)
        found = [memory] if memory is not None and memory.latest else []
    else:
        found = writer.memories_like(text or "")
    now = now_ms()
    live = [memory for memory in found if not memory.forgotten(now)]
    if live:
        return live[0]
    if found:
        raise AlreadyDone("Memory already forgotten")
    raise Missing("Memory not found")


def _matched(container: Container, scores: dict[str, float]) -> list[Matched]:
    live = container.memories(scores)
    return [Matched(live[memory_id], score) for memory_id, score in scores.items() if memory_id in live]


def _walk(memory: Memory, next_to: Callable[[Memory], Iterable[Memory]]) -> list[Memory]:
    """Everything that is reached from a memory step by step, nearest first, without the memory itself."""
    reached: list[Memory] = []
    waiting = list(next_to(memory))
    while waiting:
        one = waiting.pop(0)
        if one.seq != memory.seq and one not in reached:
            reached.append(one)
            waiting.extend(next_to(one))
    return reached


def _history(memory: Memory, by_id: dict[str, Memory]) -> tuple[Memory, ...]:
    history: list[Memory] = []
    parent = by_id.get(memory.parent_id or "")
    while parent is not None and parent not in history:
        history.append(parent)
        parent = by_id.get(parent.parent_id or "")
    return tuple(history)
