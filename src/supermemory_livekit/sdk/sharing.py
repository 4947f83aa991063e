"""One connection to the service for several memories: it is closed with the last of them."""

from __future__ import annotations

from supermemory_livekit.store import MemoryStore

__all__ = ["Lease", "SharedStore"]


class SharedStore:
    """A store that the memories of several people in one room use."""

    def __init__(self, store: MemoryStore) -> None:
        self.store = store
        self._leases = 0

    def lease(self) -> Lease:
        """The right to use the store until the lease is closed."""
        self._leases += 1
        return Lease(self)

    async def left(self) -> None:
        """A lease was closed."""
        self._leases -= 1
        if self._leases == 0:
            await self.store.aclose()


class Lease:
    """One memory's use of a `SharedStore`."""

    def __init__(self, shared: SharedStore) -> None:
        self._shared = shared
        self._open = True

    async def aclose(self) -> None:
        """The memory is done with the store. Safe to call twice."""
        if self._open:
            self._open = False
            await self._shared.left()
