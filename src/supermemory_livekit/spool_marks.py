"""Word that a caller was erased, for processes that share a spool directory.

A mark is an empty file that is named after a hash of the container tag; its time is that of the erasure. Calls that
began before it store nothing of the caller any more, and nobody delivers what was said before it. It outlives every
spool file that it can concern, and is swept up then.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from pathlib import Path

__all__ = ["ErasureMarks"]

_SUFFIX = ".erased"

_KEPT = 14 * 86_400.0
"""Seconds that a mark is kept: twice as long as a spool file that nobody delivers."""


class ErasureMarks:
    """The marks of one directory. Looking costs one `stat`."""

    def __init__(self, directory: str | Path) -> None:
        self._directory = Path(directory).expanduser()

    def set(self, tag: str) -> None:
        """The caller is erased now. Raises `OSError` when the disk does not take it."""
        self._sweep()
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._path(tag)
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW, 0o600))
        now = time.time()
        os.utime(path, (now, now))

    def time(self, tag: str) -> float | None:
        """When the caller was erased last, in seconds since 1970; None when nothing is known of it."""
        try:
            return self._path(tag).stat().st_mtime
        except OSError:
            return None

    def erased_since(self, tag: str, moment: float) -> bool:
        """Whether the caller was erased after `moment`, in seconds since 1970."""
        erased_at = self.time(tag)
        return erased_at is not None and erased_at >= moment

    def _path(self, tag: str) -> Path:
        return self._directory / (hashlib.sha256(f"erased\0{tag}".encode()).hexdigest()[:32] + _SUFFIX)

    def _sweep(self) -> None:
        for path in self._directory.glob("*" + _SUFFIX):
            with contextlib.suppress(OSError):
                if time.time() - path.stat().st_mtime > _KEPT:
                    path.unlink()
