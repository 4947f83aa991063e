"""Storing, changing and deleting texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .container import Container
from .faults import AlreadyDone, Missing, TooLarge
from .filters import matches
from .records import Chunk, Document, DocumentOutline, Memory
from .schemas import AddDocument, ListChunks, ListDocuments, UpdateDocument
from .storage import Storage
from .texts import now_ms
from .writer import Writer

__all__ = ["Documents", "Stored"]

_MAX_DOCUMENT = 10_000_000
"""Most characters of one document, all its additions together: weeks of speech."""


@dataclass(frozen=True)
class Stored:
    id: str
    status: str


class Documents:
    """Blocks; thread-safe. `wake` is called after work was put into the queue."""

    def __init__(self, storage: Storage, *, dynamic_delay: float, wake: Callable[[], None]) -> None:
        """`dynamic_delay`: seconds of quiet after which a document stored as `dynamic` becomes memories."""
        self._storage = storage
        self._dynamic_delay = round(dynamic_delay * 1000)
        self._wake = wake

    def add(self, ask: AddDocument, *, addition: Callable[[str, str], str] | None = None) -> Stored:
        """Store a text. With a custom id that the tag has already, it adds to that document:

        - the same content again changes nothing (`done`),
        - content that begins with what is stored adds the rest,
        - anything else is added on a new line.

        `addition` takes the place of these rules: from the stored and the sent content to what is added.
        """
        with self._storage.write(ask.tag) as writer:
            if ask.entity_context is not None:
                writer.set_entity_context(ask.entity_context)
            existing = writer.document_by_custom_id(ask.custom_id) if ask.custom_id else None
            if existing is None:
                document = writer.insert_document(
                    content=ask.content,
                    custom_id=ask.custom_id,
                    metadata=ask.metadata or {},
                    task_type=ask.task_type or "memory",
                    filepath=ask.filepath,
                    dated_at=ask.document_date,
                )
            else:
                document = existing
                added = (addition or _addition)(existing.content, ask.content)
                if not added:
                    return Stored(existing.id, "done")
                if len(existing.content) + len(added) > _MAX_DOCUMENT:
                    raise TooLarge("Document too large", "content: the document is full")
                writer.append(existing, added, metadata=ask.metadata or {}, dated_at=ask.document_date)
            self._process(writer, document, instant=ask.dreaming == "instant")
        self._wake()
        return Stored(document.id, "queued")

    # The v3 API names a document by its key alone, v5 by tag and key: hence `tag` below. Without it the tag is the
    # one that has such a document.

    def get(self, key: str, tag: str | None = None) -> tuple[Document, list[Memory]]:
        """By id or custom id, with the memories made from it."""
        with self._storage.read(tag or self._tag_of(key)) as container:
            document = _existing(container, key)
            return document, container.memories_of(document)

    def chunks(self, key: str, tag: str | None = None) -> tuple[Document, list[Chunk]]:
        """A document with the pieces it is searched by, in order."""
        with self._storage.read(tag or self._tag_of(key)) as container:
            document = _existing(container, key)
            return document, container.chunks_of(document)

    def memory_counts(self, tag: str, keys: Sequence[str]) -> dict[str, int]:
        """How many memories that hold now come from each document; keys without a document are left out."""
        with self._storage.read(tag) as container:
            found = {key: document for key in keys if (document := container.document(key)) is not None}
            counts = container.memory_counts(found.values())
        return {key: counts.get(document.seq, 0) for key, document in found.items()}

    def update(
        self,
        key: str,
        ask: UpdateDocument,
        tag: str | None = None,
        *,
        document_date: int | None = None,
        instant: bool = True,
    ) -> Stored:
        """Change metadata and such; content replaces, and what only the old content said is forgotten."""
        tag = tag or self._tag_of(key)
        named = ask.container_tag or (ask.container_tags or [tag])[0]
        if named != tag:
            raise AlreadyDone("A document cannot be moved to another container tag")
        with self._storage.write(tag) as writer:
            document = _existing(writer, key)
            if ask.custom_id is not None:
                other = writer.document_by_custom_id(ask.custom_id)
                if other is not None and other.seq != document.seq:
                    raise AlreadyDone("Another document has this custom id")
            writer.set_document(
                document,
                metadata=ask.metadata,
                custom_id=ask.custom_id,
                filepath=ask.filepath,
                task_type=ask.task_type,
                dated_at=document_date,
            )
            if ask.content is None or ask.content == document.content:
                return Stored(document.id, document.status)
            writer.replace(document, ask.content)
            self._process(writer, document, instant=instant)
        self._wake()
        return Stored(document.id, "queued")

    def delete(self, key: str, tag: str | None = None) -> None:
        with self._storage.write(tag or self._tag_of(key)) as writer:
            writer.delete_document(_existing(writer, key))

    def delete_under(self, tag: str, filepath: str | None) -> int:
        """Delete all documents of a tag. How many there were."""
        with self._storage.write(tag) as writer:
            found = {outline.seq for outline in writer.outlines() if _under(outline, filepath)}
            for document in writer.documents_by_seq(found).values():
                writer.delete_document(document)
        return len(found)

    def page(self, ask: ListDocuments) -> tuple[list[Document], int]:
        """One page, and how many there are in all."""
        with self._storage.read(ask.tag) as container:
            outlines = container.outlines(by_update=ask.sort == "updatedAt", descending=ask.order == "desc")
            found = [
                outline.seq
                for outline in outlines
                if _under(outline, ask.filepath) and matches(ask.filters, outline.metadata)
            ]
            page = found[(ask.page - 1) * ask.limit :][: ask.limit]
            documents = container.documents_by_seq(page)
        return [documents[seq] for seq in page], len(found)

    def page_of_chunks(self, ask: ListChunks) -> tuple[list[tuple[Chunk, Document]], int]:
        """One page of the pieces of all documents, each with its document, and how many there are in all."""
        with self._storage.read(ask.tag) as container:
            kept = {one.seq for one in container.outlines() if matches(ask.filters, one.metadata)}
            chunks, total = container.chunks_page(
                kept,
                ask.limit,
                (ask.page - 1) * ask.limit,
                by_position=ask.sort == "position",
                descending=ask.order == "desc",
            )
            documents = container.documents_by_seq({chunk.document_seq for chunk in chunks})
        return [(chunk, documents[chunk.document_seq]) for chunk in chunks], total

    def processing(self, tag: str) -> list[Document]:
        """Those not found by meaning yet, or not yet made into memories."""
        with self._storage.read(tag) as container:
            return container.documents_under_way()

    def _process(self, writer: Writer, document: Document, *, instant: bool) -> None:
        now = now_ms()
        writer.enqueue("embed", now)
        writer.enqueue("dream", now if instant else now + self._dynamic_delay, document)

    def _tag_of(self, key: str) -> str:
        tags = self._storage.locate(key)
        if not tags:
            raise Missing("Document not found")
        if len(tags) > 1:
            raise AlreadyDone(
                "Several container tags have a document with this custom id; use the document's id"
            )
        return tags[0]


def _existing(container: Container, key: str) -> Document:
    document = container.document(key)
    if document is None:
        raise Missing("Document not found")
    return document


def _addition(stored: str, content: str) -> str:
    if content.startswith(stored):
        return content[len(stored) :]
    return content if stored.endswith("\n") else "\n" + content


def _under(document: DocumentOutline, filepath: str | None) -> bool:
    """Exact, or below a path that ends in a slash."""
    if filepath is None:
        return True
    path = document.filepath or ""
    return path.startswith(filepath) if filepath.endswith("/") else path == filepath
