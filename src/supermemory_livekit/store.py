"""The seam: what the plugin needs from whatever keeps the memory.

Recall, capture and the tools speak to a `MemoryStore` and to nothing else. `sdk_store.SDKStore` puts the official
SDK behind it (hosted, self-hosted or embedded); `testing.ScriptedStore` is the double for tests.

Every method takes exactly one container tag, so that no request can leave a caller's scope, and raises a subclass of
`ServiceError` when the service does not do what it was asked. No method retries: the caller of the method knows
whether somebody is waiting.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

__all__ = [
    "DeletedTag",
    "DocumentPage",
    "Dreaming",
    "Hit",
    "MemoryPage",
    "MemoryStore",
    "Profile",
    "SearchMode",
    "StoredCall",
    "StoredMemory",
]

Dreaming = Literal["instant", "dynamic"]
"""When a stored text becomes memories: on its own and at once, or on the service's schedule."""

SearchMode = Literal["memories", "hybrid"]
"""Search memories alone, or memories and the raw text of stored calls."""


@dataclass(frozen=True)
class Profile:
    """What is known of a caller without asking a question. Lines of text, most important first."""

    static: tuple[str, ...] = ()
    """Durable facts."""
    dynamic: tuple[str, ...] = ()
    """What happened lately."""

    def __bool__(self) -> bool:
        return bool(self.static or self.dynamic)


@dataclass(frozen=True)
class Hit:
    """One search result."""

    text: str
    similarity: float
    """From 0 to 1."""
    memory_id: str | None = None
    """Id that `forget` accepts. None for raw call text, which is part of a document and cannot be forgotten alone."""
    updated_at: datetime | None = None
    """When the service last changed it, with time zone."""


@dataclass(frozen=True)
class StoredMemory:
    """One memory as it is listed: the latest version, and held to be true."""

    id: str
    """Id that `forget` accepts."""
    text: str
    static: bool = False
    """A durable fact, as in `Profile.static`."""
    updated_at: datetime | None = None
    """When the service last changed it, with time zone."""
    said_at: datetime | None = None
    """When it was said, with time zone, if the service tells; this is what tells a reader how old it is."""
    expires_at: datetime | None = None
    """When it stops being true, with time zone."""
    documents: tuple[str, ...] = ()
    """The service's ids of the documents it comes from: what `append` and `remember` return."""


@dataclass(frozen=True)
class MemoryPage:
    """One page of a caller's memories, those changed last first."""

    entries: tuple[StoredMemory, ...] = ()
    gone: tuple[str, ...] = ()
    """Ids of memories on the page that are no longer true: forgotten or expired."""
    replaced: tuple[str, ...] = ()
    """Ids of earlier versions of memories on the page."""
    more: bool = False
    """There may be a further page."""
    total: int | None = None
    """How many memories there are on all pages, those of `gone` included, if the service tells."""
    forgotten: tuple[StoredMemory, ...] = ()
    """Those of `gone` whose text the service still tells."""


@dataclass(frozen=True)
class StoredCall:
    """One stored text: a call, or a remembered fact, which is a document of its own."""

    id: str
    """The service's id of the document."""
    custom_id: str | None
    """Custom id that `append` was given. None for a remembered fact."""
    text: str
    processed: bool
    """The service has made memories of all of it."""
    updated_at: datetime | None = None
    """When the service last changed it, with time zone."""
    created_at: datetime | None = None
    """When it was stored first, with time zone, if the service tells."""


@dataclass(frozen=True)
class DocumentPage:
    """One page of a caller's stored texts, those changed last first."""

    entries: tuple[StoredCall, ...] = ()
    """Without contents `text` is empty."""
    more: bool = False
    """There may be a further page."""
    total: int | None = None
    """How many there are on all pages, if the service tells."""


@dataclass(frozen=True)
class DeletedTag:
    """What went with a container tag; None where the service does not tell."""

    documents: int | None = None
    memories: int | None = None


class MemoryStore(Protocol):
    """Where memories live. Deadlines in seconds; ids are the service's own unless said otherwise."""

    async def profile(self, tag: str, *, timeout: float) -> Profile:
        """The caller's profile. A caller nobody knows yet has an empty one; that is no error."""
        ...

    async def search(
        self, tag: str, query: str, *, limit: int, threshold: float, mode: SearchMode, timeout: float
    ) -> list[Hit]:
        """At most `limit` hits with `similarity >= threshold`, best first."""
        ...

    async def append(
        self, tag: str, custom_id: str, text: str, *, dreaming: Dreaming, at: datetime, timeout: float
    ) -> str | None:
        """Add `text` to the document with this custom id, creating it if need be.

        `at` is when the text was spoken. Returns the service's id of the document, if it tells.
        `ServiceError.uncertain` says whether the text may be stored although this raised.
        """
        ...

    async def read(self, tag: str, custom_id: str, *, service_id: str | None, timeout: float) -> str | None:
        """The text the document holds now; None when there is no such document.

        `service_id` is what an earlier `append` returned. Raises `NotImplementedError` when the client cannot read
        documents at all.
        """
        ...

    async def remember(self, tag: str, text: str, *, dreaming: Dreaming, timeout: float) -> str | None:
        """Store one fact of its own. Returns the service's id of the document that carries it, if it tells."""
        ...

    async def unremember(self, tag: str, service_id: str, *, timeout: float) -> None:
        """Delete the document of a remembered fact that has not become a memory yet.

        Raises `NotImplementedError` when the client cannot delete documents.
        """
        ...

    async def forget(
        self, tag: str, *, memory_id: str | None = None, text: str | None = None, timeout: float
    ) -> bool:
        """Forget one memory by its id or by its exact text. False when the service says that it forgot nothing.

        Raises `NotFound` when there is no such memory and `Conflict` when it is already forgotten.
        """
        ...

    async def memories(self, tag: str, *, page: int, limit: int, timeout: float) -> MemoryPage:
        """One page, counted from 1, of at most `limit` memories; those changed last come first.

        Services take at most 1,000 per page; one that gives fewer says in `more` that there are others.
        Raises `NotImplementedError` when the client cannot list memories at all.
        """
        raise NotImplementedError

    async def latest_calls(self, tag: str, *, limit: int, timeout: float) -> list[StoredCall]:
        """The last `limit` stored texts with their contents, those changed last first.

        Raises `NotImplementedError` when the client cannot list documents.
        """
        raise NotImplementedError

    async def list_documents(
        self, tag: str, *, page: int, limit: int, contents: bool, timeout: float
    ) -> DocumentPage:
        """One page, counted from 1, of at most `limit` stored texts, those changed last first.

        Services take at most 100 per page. Raises `NotImplementedError` when the client cannot list documents.
        """
        raise NotImplementedError

    async def delete_documents(self, tag: str, ids: Sequence[str], *, timeout: float) -> None:
        """Delete documents, and what is known from them alone. `ids` are the service's own, at most 100.

        Those that are gone already are no error. Raises `NotImplementedError` when the client cannot delete documents.
        """
        raise NotImplementedError

    async def delete_tag(self, tag: str, *, timeout: float) -> DeletedTag:
        """Delete everything under the tag, and the tag, in one request.

        Raises `AccessDenied` for keys that may not do so, and `NotFound` when there is no such tag. Raises
        `NotImplementedError` when the client cannot delete tags.
        """
        raise NotImplementedError

    async def aclose(self) -> None:
        """Close connections. Safe to call twice."""
        ...
