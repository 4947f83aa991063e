"""What is stored, as plain values: the rows that storage hands out."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, cast

import numpy as np
from numpy.typing import NDArray

from supermemory_livekit.retrieval import Place

from .database import Row

__all__ = [
    "Chunk",
    "Document",
    "DocumentOutline",
    "Memory",
    "Metadata",
    "NewMemory",
    "StoredPassage",
    "TagInfo",
    "chunk_of",
    "document_of",
    "memory_of",
    "outline_of",
]

Metadata = Mapping[str, "str | int | float | bool | Sequence[str]"]
"""Flat, as the client gave it."""


@dataclass(frozen=True)
class Document:
    """A stored text. Times in milliseconds since 1970."""

    seq: int
    id: str
    tag: str
    custom_id: str | None
    content: str
    metadata: Metadata
    task_type: str
    filepath: str | None
    dated_at: int | None
    dreamed: int
    epoch: int
    created_at: int
    updated_at: int
    embedding: bool
    """Some of its chunks wait for their vectors."""
    dreaming: bool
    """Some of its content is yet to become memories."""

    @property
    def status(self) -> Literal["embedding", "done"]:
        return "embedding" if self.embedding else "done"

    @property
    def dreaming_status(self) -> Literal["dreaming", "done"]:
        return "dreaming" if self.dreaming else "done"

    @property
    def title(self) -> str:
        """The first line, shortened."""
        line = self.content.lstrip().split("\n", 1)[0]
        return line if len(line) <= 80 else line[:79] + "…"


@dataclass(frozen=True)
class Chunk:
    """A window of a document's content that can be found on its own."""

    id: str
    document_seq: int
    position: int
    """The character of the content it starts at."""
    text: str
    at: int


@dataclass(frozen=True)
class DocumentOutline:
    """What documents are chosen by, without the text."""

    seq: int
    metadata: Metadata
    filepath: str | None


@dataclass(frozen=True)
class Memory:
    """One fact, in one version."""

    seq: int
    id: str
    text: str
    static: bool
    metadata: Metadata
    at: int
    version: int
    parent_id: str | None
    root_id: str | None
    latest: bool
    forgotten_at: int | None
    forget_reason: str | None
    forget_after: int | None
    created_at: int
    updated_at: int
    source_count: int

    def forgotten(self, now: int) -> bool:
        return self.forgotten_at is not None or self.expired(now)

    def expired(self, now: int) -> bool:
        return self.forget_after is not None and self.forget_after <= now


@dataclass(frozen=True)
class NewMemory:
    """A fact to be stored."""

    text: str
    static: bool
    at: int
    forget_after: int | None = None
    forget_reason: str | None = None
    metadata: Metadata | None = None
    replaces: tuple[str, ...] = ()
    """Ids of memories that are no longer true."""


@dataclass(frozen=True, eq=False)
class StoredPassage:
    """What an index needs to know of something that can be found."""

    kind: Literal["memory", "chunk"]
    id: str
    text: str
    at: int
    forget_after: int | None
    vector: NDArray[np.float32] | None
    vector_model: str | None
    place: Place | None
    """Of a piece of a document."""


@dataclass(frozen=True)
class TagInfo:
    """A container tag and how much is under it."""

    tag: str
    entity_context: str | None
    created_at: int
    updated_at: int
    documents: int
    memories: int


def document_of(row: Row) -> Document:
    return Document(
        **{name: row[name] for name in _DOCUMENT_COLUMNS},
        metadata=_metadata(row),
        embedding=bool(row["embedding"]),
        dreaming=bool(row["dreaming"]),
    )


def outline_of(row: Row) -> DocumentOutline:
    return DocumentOutline(row["seq"], _metadata(row), row["filepath"])


def chunk_of(row: Row) -> Chunk:
    return Chunk(row["id"], row["document_seq"], row["start"], row["text"], row["at"])


def memory_of(row: Row) -> Memory:
    return Memory(
        **{name: row[name] for name in _MEMORY_COLUMNS},
        metadata=_metadata(row),
        static=bool(row["static"]),
        latest=bool(row["latest"]),
    )


_DOCUMENT_COLUMNS = (
    "seq",
    "id",
    "tag",
    "custom_id",
    "content",
    "task_type",
    "filepath",
    "dated_at",
    "dreamed",
    "epoch",
    "created_at",
    "updated_at",
)
_MEMORY_COLUMNS = (
    "seq",
    "id",
    "text",
    "at",
    "version",
    "parent_id",
    "root_id",
    "forgotten_at",
    "forget_reason",
    "forget_after",
    "created_at",
    "updated_at",
    "source_count",
)


def _metadata(row: Row) -> Metadata:
    return cast(Metadata, json.loads(row["metadata"]))
