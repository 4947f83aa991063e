"""Word that a caller was erased, for other processes: in the spool directory, and in the user's cache directory.

A mark is an empty file that is named after a hash of the container tag; its time is that of the erasure. Calls that
began before it store nothing of the caller any more, and nobody delivers what was said before it. It outlives every
spool file that it can concern, and is swept up then.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from collections.abc import Sequence
from pathlib import Path

from supermemory_livekit.mirror.embedding_cache import EmbeddingCache

__all__ = ["ErasureMarks"]

_SUFFIX = ".erased"

_KEPT = 14 * 86_400.0
"""Seconds that a mark is kept: twice as long as a spool file that nobody delivers."""

_AHEAD = 1.0
"""Seconds by which a mark may lie in the future. One further off is of a clock that was set back since."""


class ErasureMarks:
    """The marks of some directories. Looking costs one `stat` for each."""

    def __init__(self, directories: Sequence[str | Path]) -> None:
        self._directories = [Path(directory).expanduser() for directory in directories]

    @classmethod
    def of_machine(cls, spool_dir: str | Path | None) -> ErasureMarks:
        """Those that processes of this user see: in the spool if there is one, and beside the embedding cache."""
        cache = EmbeddingCache.from_env()
        found = [spool_dir, cache.path.parent if cache is not None else None]
        return cls([directory for directory in found if directory is not None])

    def set(self, tag: str, at: float) -> None:
        """The caller was erased at this moment, in seconds since 1970.

        Raises `OSError` when a disk does not take it. The mark is then in those directories that took it.
        """
        failures = [_set(directory, tag, at) for directory in self._directories]
        if failure := next(filter(None, failures), None):
            raise failure

    def time(self, tag: str) -> float | None:
        """When the caller was erased last, in seconds since 1970; None when nothing is known of it."""
        times: list[float] = []
        for directory in self._directories:
            with contextlib.suppress(OSError):
                times.append((directory / _name(tag)).stat().st_mtime)
        latest = time.time() + _AHEAD
        return max((at for at in times if at <= latest), default=None)

    def erased_since(self, tag: str, moment: float) -> bool:
        """Whether the caller was erased after `moment`, in seconds since 1970."""
        erased_at = self.time(tag)
        return erased_at is not None and erased_at >= moment


def _name(tag: str) -> str:
    return hashlib.sha256(f"erased\0{tag}".encode()).hexdigest()[:32] + _SUFFIX


def _set(directory: Path, tag: str, at: float) -> OSError | None:
    """What the disk did not take, so that the other directories get their marks all the same."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = directory / _name(tag)
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW, 0o600))
        os.utime(path, (at, at))
        _sweep(directory)
    except OSError as error:
        return error
    return None


def _sweep(directory: Path) -> None:
    for path in directory.glob("*" + _SUFFIX):
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > _KEPT:
                path.unlink()
