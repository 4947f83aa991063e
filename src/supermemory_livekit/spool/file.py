"""One spool file: what one call said in one document and nobody has acknowledged, locked while its process lives.

Methods that write raise `OSError` when the disk does not take it, and then the file is as it was before.
"""

from __future__ import annotations

import asyncio
import os
import stat
import time
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path

from supermemory_livekit.erasure.marks import ErasureMarks
from supermemory_livekit.scope import Scope
from supermemory_livekit.telemetry import logger
from supermemory_livekit.transcript import Line, Turn

from .directory import MADE, SpoolDirectory, try_lock
from .records import (
    Key,
    Left,
    ack_record,
    began_after,
    document_record,
    header_record,
    keys_of,
    read_records,
    refused_record,
    sent_record,
    turn_record,
    without_tag,
)

__all__ = ["MAX_AGE", "MAX_FILE", "SpoolFile", "erase_from", "take_over"]

MAX_FILE = 16_000_000
"""Bytes of one file. Turns that would exceed it are kept in memory alone."""

MAX_AGE = 7 * 86_400.0
"""Seconds after its last change until a file that nobody could deliver is deleted."""

_COMPACT_FROM = 1_000_000
"""Bytes from which on a file is written anew when more than half of it is of no use any more."""

_SYNC_WAIT = 2.0
"""Most seconds that a write to the service waits for the disk."""


class SpoolFile:
    """A file that this process has locked: made by it, or left behind by a dead one (`take_over`)."""

    def __init__(self, path: Path, fd: int, size: int, *, last_lived: float | None = None) -> None:
        self._path = path
        self._fd = fd
        self._size = size
        self._head = b""
        """The records that a file begins with; empty for a file of a dead process, which is never written anew."""
        self._numbered = False
        self._open: dict[Key, bytes] = {}
        """Records of the pieces that are not acknowledged; empty ones in a file of a dead process."""
        self._sent: dict[Key, tuple[datetime, datetime]] = {}
        """Stamp, and time of sending, of those that may be stored."""
        self._refused: set[Key] = set()
        self._kept = False
        """Whether the file holds what can never be delivered, and stays for a person to see."""
        self._last_lived = last_lived
        """When the dead process changed the file last. Attempts to deliver it do not make it younger."""

    @classmethod
    def create(
        cls, directory: SpoolDirectory, scope: Scope | None, began: datetime | None = None
    ) -> SpoolFile:
        """A new file for what is said in this document, or by a caller who is not known yet. `began`: the beginning
        of the call."""
        directory.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        directory.admit(0, new_file=True)
        path = directory.new_name(scope)
        head = header_record(began) + (document_record(0, scope) if scope else b"")
        file = cls(path, _written(path, head), len(head))
        file._head, file._numbered = head, scope is not None
        return file

    def adopt(self, left: Left) -> None:
        """Go on with what a dead process left in this file; one of another format stays as it is."""
        self._kept = bool(left.unscoped or left.refused) or not left.known
        if left.known:
            if self._size:
                self._append(b"\n")  # a torn last line must not swallow the first record that is added
            self._open = dict.fromkeys(keys_of(left.pieces), b"")

    @property
    def path(self) -> Path:
        return self._path

    def turns(self, pieces: Sequence[Turn]) -> None:
        """Keep these. They outlive the process when this returns, and a loss of power after `synced`."""
        number = 0 if self._numbered else None
        records = {
            key: turn_record(piece, number) for key, piece in zip(keys_of(pieces), pieces, strict=True)
        }
        if self._size + sum(map(len, records.values())) > MAX_FILE:
            raise OSError("full")
        self._append(b"".join(records.values()))
        self._open.update(records)

    def sending(self, lines: Sequence[Line]) -> None:
        """These lines are about to be sent, with these stamps."""
        now = datetime.now(timezone.utc)
        stamps = {(line.turn.order, line.turn.part): line.stamp for line in lines}
        self._append(sent_record(stamps.items(), now))
        self._sent.update({key: (stamp, now) for key, stamp in stamps.items() if key in self._open})
        self._compact()

    def acked(self, pieces: Sequence[Turn]) -> None:
        """The service has these. When nothing else is left the file becomes empty."""
        for key in keys_of(pieces):
            self._open.pop(key, None)
            self._sent.pop(key, None)
        if self._open or self._kept:
            self._append(ack_record(keys_of(pieces)))
            self._compact()
        else:
            self._empty()

    def dropped(self, pieces: Sequence[Turn]) -> None:
        """These are not to be stored after all, and no word of them is to stay on the disk.

        When the disk does not take that, they are at least delivered by nobody; it raises all the same.
        """
        if not self._head:  # of a dead process
            self.acked(pieces)
            return
        for key in keys_of(pieces):
            self._open.pop(key, None)
            self._sent.pop(key, None)
        # Another descriptor: what is written through one that appends overwrites nothing.
        old = os.open(self._path, os.O_RDWR | os.O_NOFOLLOW)
        try:
            try:
                self._write_anew()
            except OSError:
                self.acked(pieces)
                raise
            _wipe(old)
        finally:
            os.close(old)

    def refused(self, pieces: Sequence[Turn]) -> None:
        """The service will never take these: they stay for a person to see, and nobody delivers them."""
        here = [key for key in keys_of(pieces) if key in self._open]
        self._append(refused_record(here))
        self._refused.update(here)
        self._kept = self._kept or bool(here)

    async def synced(self) -> None:
        """Wait until the disk has what was written, off the event loop and for two seconds at most."""
        try:
            copy = os.dup(self._fd)  # `close` may come while the thread still writes
        except OSError:
            return
        work = asyncio.get_running_loop().run_in_executor(None, _sync, copy)
        await asyncio.wait([work], timeout=_SYNC_WAIT)

    def close(self) -> None:
        """Let go of the file: delete it when nothing is left, leave it to the next process otherwise."""
        if self._fd < 0:
            return
        try:
            if not self._open and not self._kept:
                self._path.unlink(missing_ok=True)
            elif self._last_lived is not None:
                os.utime(self._path, (self._last_lived, self._last_lived))
        finally:
            os.close(self._fd)
            self._fd = -1

    def erase(self) -> None:
        """Delete the file with all that is in it, and let go of it."""
        if self._fd < 0:
            return
        try:
            # Another descriptor: what is written through one that appends overwrites nothing.
            fd = os.open(self._path, os.O_RDWR | os.O_NOFOLLOW)
            try:
                _wipe(fd)
            finally:
                os.close(fd)
            self._path.unlink(missing_ok=True)
        finally:
            os.close(self._fd)
            self._fd = -1
            self._open.clear()

    def _append(self, data: bytes) -> None:
        if self._fd < 0:
            raise OSError("closed")
        if self._size == 0:
            data = self._head + data
        written = os.write(self._fd, data)
        if written != len(data):
            os.ftruncate(self._fd, self._size)
            raise OSError("short write")
        self._size += len(data)

    def _empty(self) -> None:
        os.ftruncate(self._fd, 0)
        self._size = 0

    def _compact(self) -> None:
        """Write a file that has grown anew, with what is open alone: a call may go on for hours while it has."""
        if not self._head or self._size < _COMPACT_FROM:
            return
        if self._size < 2 * sum(map(len, self._open.values())):
            return
        self._write_anew()

    def _write_anew(self) -> None:
        """Put a file with what is open alone in the place of this one."""
        if self._fd < 0:
            raise OSError("closed")
        times: dict[datetime, list[tuple[Key, datetime]]] = {}
        for key, (stamp, at) in self._sent.items():
            times.setdefault(at, []).append((key, stamp))
        records = [
            self._head,
            *self._open.values(),
            *(sent_record(stamps, at) for at, stamps in times.items()),
            *([refused_record(sorted(self._refused))] if self._refused else []),
        ]
        data = b"".join(records)
        # Whoever has the old file open and locks it when it is closed finds that it has no name any more.
        fd = _written(self._path, data)
        os.close(self._fd)
        self._fd, self._size = fd, len(data)


def take_over(path: Path) -> tuple[SpoolFile, Left] | None:
    """The file, if its process is dead and it is the user's own; None otherwise. Close it in the end.

    A file of another format is `Left.known=False` and is not changed. One that is older than `MAX_AGE` is deleted.
    Reads up to `MAX_FILE` bytes: not for the event loop.
    """
    try:
        fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW)
    except OSError:
        return None
    taken = False
    try:
        if not try_lock(fd):  # its process lives
            return None
        about = os.fstat(fd)
        ours = stat.S_ISREG(about.st_mode) and about.st_uid == os.geteuid() and not about.st_mode & 0o077
        if not ours or about.st_nlink == 0:
            return None
        left = _without_erased(read_records(os.pread(fd, about.st_size, 0)), path.parent)
        file = SpoolFile(path, fd, about.st_size, last_lived=about.st_mtime)
        if left.known and time.time() - about.st_mtime > MAX_AGE:
            logger.warning("A spool file that nobody could deliver for a week is deleted")
            left = Left()
        file.adopt(left)
        taken = True
        return file, left
    except OSError:
        return None
    finally:
        if not taken:
            os.close(fd)


def erase_from(path: Path, tag: str, erased_at: datetime) -> tuple[int, bool]:
    """Take what belongs to a container tag out of a file of a dead process, unless its call began after `erased_at`.

    Returns how many turns it held of it, and whether they are gone: not from the file of a live process.
    Raises `OSError` when the disk fails.
    """
    fd = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
    try:
        about = os.fstat(fd)
        if not stat.S_ISREG(about.st_mode) or about.st_uid != os.geteuid():
            return 0, True
        locked = try_lock(fd)
        data = os.pread(fd, about.st_size, 0)
        rest, turns = without_tag(data, tag)
        if rest == data or began_after(data, erased_at):
            return 0, True
        if not locked:
            return turns, turns == 0
        if rest:
            os.close(_written(path, rest))
        else:
            path.unlink(missing_ok=True)
        _wipe(fd)
        return turns, True
    finally:
        os.close(fd)


def _without_erased(left: Left, directory: Path) -> Left:
    """What is left to deliver: nothing of a call during which, or after which, its caller was erased."""
    # Who erased the caller may not have known of this directory.
    marks = ErasureMarks.of_machine(directory)
    for scope in left.scopes:
        erased_at = marks.time(scope.container_tag)
        if erased_at is not None:
            left.drop_erased(scope, datetime.fromtimestamp(erased_at, timezone.utc))
    return left


def _wipe(fd: int) -> None:
    """Overwrite, then empty. Disks and file systems that copy on write may keep the old blocks for a while."""
    os.pwrite(fd, bytes(os.fstat(fd).st_size), 0)
    os.fsync(fd)
    os.ftruncate(fd, 0)


def _written(path: Path, data: bytes) -> int:
    """A locked file that holds `data`, in place of what was there. Others look at it by its last name alone."""
    made = path.with_suffix(MADE)
    fd = os.open(made, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_APPEND, 0o600)
    try:
        if not try_lock(fd):
            raise OSError("locked by another")
        if os.write(fd, data) != len(data):
            raise OSError("short write")
        if path.exists():
            os.fsync(fd)  # a loss of power must not leave less than there was
        made.rename(path)
    except BaseException:
        made.unlink(missing_ok=True)
        os.close(fd)
        raise
    return fd


def _sync(fd: int) -> None:
    try:
        os.fsync(fd)
    except OSError:
        pass
    finally:
        os.close(fd)
