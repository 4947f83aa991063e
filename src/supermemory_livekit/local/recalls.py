"""The last searches of this process, for people who watch an agent recall.

Off unless somebody looks (`RecentSearches.keep`). They hold what callers asked, so they are in memory alone and
few. What was found is kept as ids, not as words: a memory that is forgotten later is not shown from here.
"""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass, replace
from typing import Literal

__all__ = ["Found", "RecentSearches", "Search", "SearchKind"]

SearchKind = Literal["search", "profile", "documents"]
"""Of hits, of what holds of a caller, or of whole documents."""

_MOST = 200
_MOST_FOUND = 20
_QUERY_CHARS = 500


@dataclass(frozen=True)
class Found:
    """One hit: a memory, or else a document or a piece of one."""

    similarity: float
    memory_id: str | None = None
    document_id: str | None = None
    chunk_id: str | None = None


@dataclass(frozen=True)
class Search:
    """One search that was answered."""

    kind: SearchKind
    tag: str
    tag_id: int
    """Tells a tag from one of the same name that was erased before."""
    query: str
    """Blank for a profile without a question."""
    at: int
    """Milliseconds since 1970."""
    took: float
    """Milliseconds."""
    threshold: float
    found: tuple[Found, ...]
    """Best first."""
    total: int
    """How many were found, also those that are not kept here."""
    number: int = 0
    """Given when it is added: grows with every search of the process, from 1 on."""


class RecentSearches:
    """A bounded list, newest last. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: deque[Search] | None = None
        self._count = 0

    @property
    def kept(self) -> bool:
        """Whether searches are kept at all."""
        return self._kept is not None

    def keep(self) -> None:
        """Keep searches from now on. Safe to call twice."""
        with self._lock:
            if self._kept is None:
                self._kept = deque(maxlen=_MOST)

    def add(self, search: Search) -> None:
        """Add a search; the oldest one goes when there are too many. Does nothing unless they are kept."""
        with self._lock:
            if self._kept is None:
                return
            self._count += 1
            self._kept.append(
                replace(
                    search,
                    number=self._count,
                    query=search.query[:_QUERY_CHARS],
                    found=search.found[:_MOST_FOUND],
                )
            )

    def after(self, number: int) -> list[Search]:
        """Those with a greater number, oldest first."""
        with self._lock:
            return [search for search in self._kept or () if search.number > number]

    def discard(self, tag: str) -> None:
        """Drop those of a tag that is being erased."""
        with self._lock:
            if self._kept is not None:
                self._kept = deque((search for search in self._kept if search.tag != tag), maxlen=_MOST)
