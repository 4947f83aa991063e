"""What `SDKStore` needs of one generation of the official SDK.

Two adapters provide it, `sdk_v3` and `sdk_v5`. They know the names of methods and fields of their generation and
nothing else: limits, deadlines, errors and what is allowed in a text are the store's, and the same for both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from supermemory_livekit.store import (
    DeletedTag,
    DocumentPage,
    Dreaming,
    Hit,
    MemoryPage,
    Profile,
    SearchMode,
    StoredCall,
)

__all__ = ["METADATA", "MOST_DOCUMENTS", "SDKAdapter"]

METADATA = {"source": "livekit"}
"""Of every document that is written."""

MOST_DOCUMENTS = 100
"""Documents per page, in both generations."""


class SDKAdapter(Protocol):
    """The operations of a `MemoryStore` as the client's calls.

    What the client raises passes through. A method that the client lacks is `NotOffered`, an answer of another shape
    than the API describes `UnreadableAnswer`.
    """

    async def profile(self, tag: str, *, timeout: float) -> Profile: ...

    async def search(
        self, tag: str, query: str, *, limit: int, threshold: float, mode: SearchMode, timeout: float
    ) -> list[Hit]: ...

    async def append(
        self, tag: str, custom_id: str, text: str, *, dreaming: Dreaming, date: str, timeout: float
    ) -> str | None:
        """`date`: when it was said, ISO 8601 in UTC. Returns the service's id of the document."""
        ...

    async def read(
        self, tag: str, custom_id: str, *, service_id: str | None, timeout: float
    ) -> str | None: ...

    async def remember(self, tag: str, text: str, *, dreaming: Dreaming, timeout: float) -> str | None: ...

    async def unremember(self, tag: str, service_id: str, *, timeout: float) -> None: ...

    async def forget(self, tag: str, *, memory_id: str | None, text: str | None, timeout: float) -> bool: ...

    async def memories(self, tag: str, *, page: int, limit: int, timeout: float) -> MemoryPage: ...

    async def latest_calls(self, tag: str, *, limit: int, timeout: float) -> list[StoredCall]: ...

    async def list_documents(
        self, tag: str, *, page: int, limit: int, contents: bool, timeout: float
    ) -> DocumentPage: ...

    async def delete_documents(self, tag: str, ids: Sequence[str], *, timeout: float) -> None: ...

    async def delete_tag(self, tag: str, *, timeout: float) -> DeletedTag: ...
