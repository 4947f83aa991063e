"""Search and profile: reading what is known under one tag."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from supermemory_livekit.retrieval import Index, Kind, Passage, Ranked

from .container import Container
from .encoder import Encoder
from .filters import Filter, matches
from .indexes import Indexes, Query
from .recalls import Found, RecentSearches, Search, SearchKind
from .records import Chunk, Document, Memory
from .schemas import DocumentSearch, MemorySearch, Profile
from .storage import Storage
from .texts import from_ms, iso, norm_form, now_ms

__all__ = ["Finder", "FoundDocument", "Hit", "ProfileLine", "ProfileLines"]

_STATIC_LINES = 50
_DYNAMIC_LINES = 20
_QUERY_CHARS = 4_000
"""A longer question is cut: the model reads no more, and full text gains nothing."""

_KINDS: dict[str, tuple[Kind, ...]] = {
    "memories": ("memory",),
    "hybrid": ("memory", "chunk"),
    "documents": ("chunk",),
}


@dataclass(frozen=True)
class Hit:
    """A memory or a piece of stored text, with the documents it comes from and the versions before it."""

    similarity: float
    memory: Memory | None
    chunk: Chunk | None
    documents: tuple[Document, ...]
    parents: tuple[Memory, ...] = ()


@dataclass(frozen=True)
class FoundDocument:
    document: Document
    score: float
    chunks: tuple[tuple[Chunk, float], ...]
    """Matching ones, best first."""


@dataclass(frozen=True)
class ProfileLine:
    """A memory as a profile shows it: with the date it was said."""

    id: str
    text: str


@dataclass(frozen=True)
class ProfileLines:
    """Newest first."""

    static: tuple[ProfileLine, ...]
    dynamic: tuple[ProfileLine, ...]


class Finder:
    """Blocks; thread-safe. Never waits for anything that is being stored."""

    def __init__(
        self, storage: Storage, indexes: Indexes, encoder: Encoder, recent: RecentSearches | None = None
    ) -> None:
        """What clients search is noted in `recent`."""
        self._storage = storage
        self._indexes = indexes
        self._encoder = encoder
        self._recent = recent or RecentSearches()

    def search(self, ask: MemorySearch, *, note: bool = True) -> list[Hit]:
        """At most `limit` hits with at least the threshold's similarity, best first."""
        started = time.perf_counter()
        mode = "hybrid" if ask.include.chunks and ask.search_mode == "memories" else ask.search_mode
        query = self._query(ask.q)
        with self._storage.read(ask.tag) as container:
            hits = self._hits(
                container,
                query,
                kinds=_KINDS[mode],
                limit=ask.limit,
                threshold=ask.threshold,
                filters=ask.filters,
                filepath=ask.filepath,
                with_sources=ask.include.documents or ask.include.summaries,
            )
            if ask.include.forgotten_memories and mode != "documents":
                forgotten = _forgotten(container, query, ask.threshold)
                hits = sorted([*hits, *forgotten], key=lambda hit: -hit.similarity)[: ask.limit]
            if ask.include.related_memories:
                hits = [_with_parents(container, hit) for hit in hits]
        if note:
            self._note("search", container, ask.q, ask.threshold, _found(hits), started)
        return hits

    def facts(self, tag: str, text: str, *, limit: int, threshold: float) -> list[Hit]:
        """Memories alone."""
        query = self._query(text)
        with self._storage.read(tag) as container:
            return self._hits(container, query, kinds=_KINDS["memories"], limit=limit, threshold=threshold)

    def search_documents(self, ask: DocumentSearch) -> list[FoundDocument]:
        """Documents, ranked by their best piece."""
        started = time.perf_counter()
        query = self._query(ask.q)
        with self._storage.read(ask.tag) as container:
            hits = self._hits(
                container,
                query,
                kinds=_KINDS["documents"],
                limit=None,
                threshold=ask.chunk_threshold,
                filters=ask.filters,
                filepath=ask.filepath,
            )
        found: dict[int, FoundDocument] = {}
        for hit in hits:
            assert hit.chunk is not None
            document = hit.documents[0]
            if ask.doc_id is not None and ask.doc_id not in (document.id, document.custom_id):
                continue
            before = found.get(document.seq)
            chunks = (*(before.chunks if before else ()), (hit.chunk, hit.similarity))
            found[document.seq] = FoundDocument(document, before.score if before else hit.similarity, chunks)
        best = [item for item in found.values() if item.score >= ask.document_threshold][: ask.limit]
        listed = [Found(item.score, document_id=item.document.id) for item in best]
        self._note("documents", container, ask.q, ask.chunk_threshold, listed, started)
        return best

    def profile(self, ask: Profile, *, note: bool = True) -> tuple[ProfileLines, list[Hit] | None]:
        """What holds of a caller, and with `q` also what bears on it. Nobody known yet is empty lines."""
        started = time.perf_counter()
        query = self._query(ask.q) if ask.q and ask.q.strip() else None
        with self._storage.read(ask.container_tag) as container:
            lines = ProfileLines(
                static=_lines(container, static=True, limit=_STATIC_LINES, filters=ask.filters),
                dynamic=_lines(container, static=False, limit=_DYNAMIC_LINES, filters=ask.filters),
            )
            hits = None
            if query is not None:
                hits = self._hits(
                    container,
                    query,
                    kinds=_KINDS["memories"],
                    limit=10,
                    threshold=ask.threshold,
                    filters=ask.filters,
                )
        if note:
            self._note("profile", container, ask.q or "", ask.threshold, _found(hits or []), started)
        return lines, hits

    def explain(self, tag: str, text: str, hits: Sequence[Hit]) -> list[dict[str, float] | None]:
        """What the similarity of each hit of a search for `text` is made of, see `Index.explain`.

        None for a hit that is gone meanwhile.
        """
        keys = [_key(hit) for hit in hits]
        query = self._query(text)
        with self._storage.read(tag) as container:
            parts = self._indexes.explain(container, query, keys)
        return [parts.get(key) for key in keys]

    def _note(
        self,
        kind: SearchKind,
        container: Container,
        query: str,
        threshold: float,
        found: list[Found],
        started: float,
    ) -> None:
        self._recent.add(
            Search(
                kind=kind,
                tag=container.tag,
                tag_id=container.tag_id,
                query=query,
                at=now_ms(),
                took=(time.perf_counter() - started) * 1000,
                threshold=threshold,
                found=tuple(found),
                total=len(found),
            )
        )

    def _query(self, text: str) -> Query:
        text = text[:_QUERY_CHARS]
        return Query(text, self._encoder.query(text) if text.strip() else None)

    def _hits(
        self,
        container: Container,
        query: Query,
        *,
        kinds: Collection[Kind],
        limit: int | None,
        threshold: float,
        filters: Filter | None = None,
        filepath: str | None = None,
        with_sources: bool = False,
    ) -> list[Hit]:
        narrowed = filters is not None or filepath is not None
        ranked = self._indexes.search(
            container, query, kinds=kinds, limit=None if narrowed else limit, threshold=threshold
        )
        keys = [
            (kind, row_id, one.similarity) for one in ranked for kind, _, row_id in [one.key.partition(":")]
        ]
        memories = container.memories([row_id for kind, row_id, _ in keys if kind == "memory"])
        excerpts = _pieces(container, ranked)
        sources: dict[int, list[Document]] = {}
        if with_sources or filepath is not None:
            sources = container.sources([memory.seq for memory in memories.values()])
        documents = container.documents_by_seq({parts[0].document_seq for parts in excerpts.values()})
        chunks = {
            row_id: _excerpt(row_id, parts, documents[parts[0].document_seq])
            for row_id, parts in excerpts.items()
            if parts[0].document_seq in documents
        }
        said = {norm_form(memory.text) for memory in memories.values()}
        hits: list[Hit] = []
        for _, row_id, similarity in keys:
            if row_id in memories:
                memory = memories[row_id]
                hit = Hit(similarity, memory, None, tuple(sources.get(memory.seq, ())))
                metadata = memory.metadata
            elif row_id in chunks:
                if norm_form(chunks[row_id].text) in said:
                    continue  # a remembered text is a document of its own: its memory is among the hits already
                document = documents[chunks[row_id].document_seq]
                hit = Hit(similarity, None, chunks[row_id], (document,))
                metadata = document.metadata
            else:
                continue
            if matches(filters, metadata) and _filed(hit, filepath):
                hits.append(hit)
        return hits if limit is None else hits[:limit]


def _key(hit: Hit) -> str:
    """Of its passage in the index."""
    if hit.memory is not None:
        return f"memory:{hit.memory.id}"
    assert hit.chunk is not None
    return f"chunk:{hit.chunk.id}"


def _found(hits: list[Hit]) -> list[Found]:
    return [
        Found(hit.similarity, memory_id=hit.memory.id)
        if hit.memory is not None
        else Found(
            hit.similarity,
            document_id=hit.documents[0].id,
            chunk_id=None if hit.chunk is None else hit.chunk.id,
        )
        for hit in hits
    ]


def _pieces(container: Container, ranked: Sequence[Ranked]) -> dict[str, list[Chunk]]:
    """The pieces of stored text of each hit, in reading order, by the id of the one that it is named by."""
    ids = {one.key: [_row_id(key) for key in one.keys] for one in ranked if one.key.startswith("chunk:")}
    chunks = container.chunks([row_id for row_ids in ids.values() for row_id in row_ids])
    return {
        _row_id(key): [chunks[row_id] for row_id in row_ids if row_id in chunks]
        for key, row_ids in ids.items()
        if _row_id(key) in chunks
    }


def _row_id(key: str) -> str:
    return key.partition(":")[2]


def _excerpt(row_id: str, pieces: Sequence[Chunk], document: Document) -> Chunk:
    """The stretch of the document that these pieces make, as the one with this id."""
    best = next(piece for piece in pieces if piece.id == row_id)
    start = pieces[0].position
    stop = max(piece.position + len(piece.text) for piece in pieces)
    return replace(best, position=start, text=document.content[start:stop])


def _filed(hit: Hit, filepath: str | None) -> bool:
    if filepath is None:
        return True
    paths = [document.filepath or "" for document in hit.documents]
    return any(path.startswith(filepath) if filepath.endswith("/") else path == filepath for path in paths)


def _lines(
    container: Container, *, static: bool, limit: int, filters: Filter | None
) -> tuple[ProfileLine, ...]:
    memories = container.live_memories(static=static, limit=limit if filters is None else None)
    kept = [memory for memory in memories if matches(filters, memory.metadata)]
    return tuple(ProfileLine(memory.id, _dated(memory)) for memory in kept[:limit])


def _dated(memory: Memory) -> str:
    prefix = f"[{iso(memory.at)[:10]}] "
    return memory.text if memory.text.startswith(prefix) else prefix + memory.text


def _forgotten(container: Container, query: Query, threshold: float) -> list[Hit]:
    memories = {memory.id: memory for memory in container.forgotten_memories()}
    index = Index()
    index.add([Passage(memory.id, memory.text, "memory", from_ms(memory.at)) for memory in memories.values()])
    ranked = index.search(query.text, limit=len(memories), threshold=threshold)
    return [Hit(one.similarity, memories[one.key], None, ()) for one in ranked]


def _with_parents(container: Container, hit: Hit) -> Hit:
    parents: list[Memory] = []
    parent_id = hit.memory.parent_id if hit.memory else None
    while parent_id is not None:
        parent = container.memory(parent_id)
        if parent is None or parent in parents:
            break
        parents.append(parent)
        parent_id = parent.parent_id
    return Hit(hit.similarity, hit.memory, hit.chunk, hit.documents, tuple(parents))
