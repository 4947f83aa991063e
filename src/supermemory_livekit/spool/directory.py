"""The directory of a spool: how its files are called, how much they may take together, and what is swept up.

<document>-<random>.spool     what one call left of one document, locked while its process lives
unbound-<random>.spool        what was said before a caller was bound
<document>.lock               who may write to that document now, see `document_lock`
<random>.new                  a file that is being made
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import time
import uuid
from pathlib import Path

from supermemory_livekit.scope import Scope

try:
    import fcntl
except ImportError:  # Windows has no such lock: a live call's file could be taken for a dead one's
    fcntl = None  # type: ignore[assignment]

__all__ = ["LOCK", "MADE", "MAX_BYTES", "MAX_FILES", "SpoolDirectory", "document_key", "key_of", "try_lock"]

MAX_FILES = 2_000
"""Most files of one directory. Turns that would need one more are kept in memory alone."""

MAX_BYTES = 256_000_000
"""Most bytes of all files of one directory. Turns that would exceed it are kept in memory alone."""

_UNMEASURED = 1_000_000
"""Bytes that one call may add until the directory is measured again."""

_REFUSED_FOR = 10.0
"""Seconds that a directory which was full counts as full."""

_STILL_MADE = 60.0
"""Seconds for which a file may be in the making."""

LOCK = ".lock"
MADE = ".new"
_SUFFIX = ".spool"
_UNBOUND = "unbound"


def document_key(scope: Scope) -> str:
    """What names the document in the names of files; no tag can be read from it."""
    return hashlib.sha256(f"{scope.container_tag}\0{scope.document_id}".encode()).hexdigest()[:32]


def key_of(path: Path) -> str | None:
    """The key of the document that a spool file belongs to; None when it is not said in the name."""
    key, dash, _ = path.name.partition("-")
    return key if dash and key != _UNBOUND else None


def try_lock(fd: int) -> bool:
    """Lock the file for this process, unless another one holds it. Raises `OSError` where there are no locks."""
    if fcntl is None:
        raise OSError(errno.ENOTSUP, "no file locks")
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


class SpoolDirectory:
    """One directory, as one call uses it. Bounds hold over all its files, with `_UNMEASURED` per live call beyond."""

    def __init__(self, path: str | Path, *, max_files: int = MAX_FILES, max_bytes: int = MAX_BYTES) -> None:
        self.path = Path(path).expanduser()
        self._max_files = max_files
        self._max_bytes = max_bytes
        self._added: int | None = None
        """Bytes since the directory was measured; None when it never was."""
        self._full_until = 0.0

    def new_name(self, scope: Scope | None) -> Path:
        """Where a new file of this document comes to lie."""
        key = document_key(scope) if scope else _UNBOUND
        return self.path / f"{key}-{uuid.uuid4().hex}{_SUFFIX}"

    def files(self, key: str | None = None) -> list[Path]:
        """The spool files, of all documents or of the one with this key; the one changed last comes last."""
        pattern = "*" if key is None else f"{key}-*"
        found: list[tuple[float, Path]] = []
        with contextlib.suppress(FileNotFoundError):
            for path in self.path.glob(pattern + _SUFFIX):
                with contextlib.suppress(FileNotFoundError):  # its process deletes it meanwhile
                    found.append((path.stat().st_mtime, path))
        return [path for _, path in sorted(found)]

    def admit(self, size: int, *, new_file: bool = False) -> None:
        """Raise `OSError` when there is no room for so many bytes more, or for another file."""
        if time.monotonic() < self._full_until:
            raise OSError(errno.ENOSPC, "full")
        if new_file or self._added is None or self._added + size > _UNMEASURED:
            sizes = self._sizes()
            if len(sizes) + new_file > self._max_files or sum(sizes) + size > self._max_bytes:
                self._full_until = time.monotonic() + _REFUSED_FOR
                raise OSError(errno.ENOSPC, "full")
            self._added = 0
        self._added += size

    def sweep(self) -> None:
        """Delete what processes left that ended while they made a file, or held a lock."""
        for path in [*self.path.glob("*" + MADE), *self.path.glob("*" + LOCK)]:
            with contextlib.suppress(OSError):
                fd = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
                try:
                    # A file without its lock may be a moment old. A lock is only ever deleted by its holder.
                    old = path.suffix == LOCK or time.time() - os.fstat(fd).st_mtime > _STILL_MADE
                    if old and try_lock(fd) and os.fstat(fd).st_nlink:
                        path.unlink()
                finally:
                    os.close(fd)

    def _sizes(self) -> list[int]:
        sizes: list[int] = []
        for path in self.path.glob("*" + _SUFFIX):
            with contextlib.suppress(FileNotFoundError):
                sizes.append(path.stat().st_size)
        return sizes
