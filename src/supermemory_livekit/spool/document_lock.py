"""One writer per document, among all processes that share a spool directory."""

from __future__ import annotations

import asyncio
import contextlib
import os
from pathlib import Path

from .directory import LOCK, try_lock

__all__ = ["DocumentLock"]

_POLL = 0.2
"""Seconds between looks at a lock that another writer holds."""


class DocumentLock:
    """A file lock that the system lets go of when its process ends, however it ends.

    The file is deleted by who holds the lock, so that a directory does not fill up with them.
    """

    def __init__(self, directory: Path, key: str) -> None:
        self._path = directory / (key + LOCK)
        self._fd: int | None = None

    @property
    def held(self) -> bool:
        return self._fd is not None

    def try_acquire(self) -> bool:
        """Take the lock, unless somebody holds it. Raises `OSError` when the disk does not take it."""
        if self._fd is not None:
            return True
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fd = os.open(self._path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o600)
        try:
            # A file that was deleted between `open` and the lock protects nothing: others make a new one.
            if try_lock(fd) and os.fstat(fd).st_nlink:
                self._fd, fd = fd, -1
        finally:
            if fd >= 0:
                os.close(fd)
        return self.held

    async def acquire(self, patience: float | None = None) -> bool:
        """Wait for the lock, `patience` seconds at most. Returns whether it is held now."""
        loop = asyncio.get_running_loop()
        until = None if patience is None else loop.time() + patience
        while not self.try_acquire():
            if until is not None and loop.time() >= until:
                return False
            await asyncio.sleep(_POLL)
        return True

    def release(self) -> None:
        if self._fd is not None:
            # Else an empty file stays; the lock itself goes with the descriptor.
            with contextlib.suppress(OSError):
                self._path.unlink(missing_ok=True)
            os.close(self._fd)
            self._fd = None
