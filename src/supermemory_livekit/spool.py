"""What was said and is not acknowledged yet, on disk: a process that is killed loses none of it.

One file per call and process, for its user alone, locked while the process lives. Each line is a checksum and one
JSON record; a damaged line costs only itself. docs/decisions/0008-spool.md has the format and its limits.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import stat
import time
import uuid
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, cast

from .scope import Scope
from .telemetry import logger
from .transcript import Line, Turn, restored_line

try:
    import fcntl
except (
    ImportError
):  # Windows has no such lock: without one a live call's file could be taken for a dead one's
    fcntl = None  # type: ignore[assignment]

__all__ = ["MAX_AGE", "MAX_FILE", "Left", "Spool", "left_behind", "take_over"]

MAX_FILE = 16_000_000
"""Bytes of one file. Turns that would exceed it are kept in memory alone."""

MAX_AGE = 7 * 86_400.0
"""Seconds after its last change until a file that nobody could deliver is deleted."""

_SYNC_WAIT = 2.0
"""Most seconds that a write to the service waits for the disk."""

_SUFFIX = ".spool"
_HEADER = {"format": "supermemory-livekit-spool", "version": 1}
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


@dataclass
class Left:
    """What a file holds that no acknowledgement covers."""

    waiting: dict[Scope, list[Turn]] = field(default_factory=lambda: dict[Scope, list[Turn]]())
    """Pieces of turns that were never sent."""
    sent: dict[Scope, list[Line]] = field(default_factory=lambda: dict[Scope, list[Line]]())
    """Lines that may be stored, with the stamps they were sent with."""
    unscoped: int = 0
    """Turns whose caller was never bound."""
    damaged: int = 0
    """Records that cannot be read."""
    known: bool = True
    """False for a file of another format or version: it is not ours to judge."""


class Spool:
    """The file of one call. Nothing here raises: what the disk does not take is said once, and the call goes on."""

    def __init__(self, directory: str | Path) -> None:
        self._directory = Path(directory).expanduser()
        self._path: Path | None = None
        self._fd: int | None = None
        self._size = 0
        self._open: set[tuple[int, int]] = set()
        """`(order, part)` of the pieces on disk that are not acknowledged."""
        self._scopes: list[Scope] = []
        self._failed = False
        self._last_lived: float | None = None
        """When the dead process changed the file last. Attempts to deliver it do not make it younger."""

    @property
    def directory(self) -> Path:
        return self._directory

    def turns(self, pieces: Sequence[Turn], scope: Scope | None) -> None:
        """Keep these. They outlive the process when this returns, and a loss of power after `synced`."""
        records = [
            {
                "t": "turn",
                "d": self._number(scope) if scope else None,
                "n": piece.order,
                "p": piece.part,
                "of": piece.parts,
                "role": piece.role,
                "at": _to_ms(piece.at),
                "i": piece.interrupted,
                "text": piece.text,
            }
            for piece in pieces
        ]
        if self._write(records, bounded=True):
            self._open.update((piece.order, piece.part) for piece in pieces)

    def bound(self, scope: Scope) -> None:
        """Turns that came without a caller belong to this one."""
        if self._open:
            self._write([{"t": "bound", "d": self._number(scope)}])

    def sending(self, scope: Scope, lines: Sequence[Line]) -> None:
        """These lines are about to be sent, with these stamps."""
        if self._fd is not None:
            marked = [[line.turn.order, line.turn.part, _to_ms(line.stamp)] for line in lines]
            self._write([{"t": "sent", "d": self._number(scope), "lines": marked}])

    def acked(self, pieces: Sequence[Turn]) -> None:
        """The service has these. When nothing else is left the file becomes empty."""
        if self._fd is None:
            return
        self._open.difference_update((piece.order, piece.part) for piece in pieces)
        if self._open:
            self._write([{"t": "ack", "lines": [[piece.order, piece.part] for piece in pieces]}])
            return
        self._scopes = []
        self._guarded(self._empty)

    async def synced(self) -> None:
        """Wait until the disk has what was written, off the event loop and for two seconds at most."""
        if self._fd is None:
            return
        try:
            copy = os.dup(self._fd)  # `close` may come while the thread still writes
        except OSError:
            return
        work = asyncio.get_running_loop().run_in_executor(None, _sync, copy)
        await asyncio.wait([work], timeout=_SYNC_WAIT)

    def close(self) -> None:
        """Let go of the file: delete it when everything is acknowledged, leave it to the next process otherwise."""
        if self._fd is not None:
            if not self._open and self._path is not None:
                self._guarded(self._path.unlink)
            elif self._last_lived is not None and self._path is not None:
                path, when = self._path, self._last_lived
                self._guarded(lambda: os.utime(path, (when, when)))
            os.close(self._fd)
            self._fd = None
        self._failed = True  # nothing is taken any more

    def adopt(self, path: Path, fd: int, left: Left) -> None:
        """Go on with the file of a dead process, whose lock this process has."""
        about = os.fstat(fd)
        self._path, self._fd, self._size, self._last_lived = path, fd, about.st_size, about.st_mtime
        self._scopes = list(dict.fromkeys([*left.waiting, *left.sent]))
        # A torn last line must not swallow the first record that is added.
        records = [_doc(number, scope) for number, scope in enumerate(self._scopes)]
        self._guarded(lambda: self._append(b"\n" + b"".join(map(_encoded, records))))
        self._open = {(turn.order, turn.part) for turns in left.waiting.values() for turn in turns}
        self._open |= {(line.turn.order, line.turn.part) for lines in left.sent.values() for line in lines}
        if left.unscoped:
            self._open.add((-1, -1))  # keeps the file

    def _number(self, scope: Scope) -> int:
        if scope not in self._scopes:
            self._scopes.append(scope)
            self._write([_doc(len(self._scopes) - 1, scope)])
        return self._scopes.index(scope)

    def _write(self, records: Sequence[dict[str, Any]], *, bounded: bool = False) -> bool:
        data = b"".join(map(_encoded, records))

        def write() -> None:
            if self._fd is None:
                self._create()
            if bounded and self._size + len(data) > MAX_FILE:
                raise OSError("full")
            self._append(data)

        return self._guarded(write)

    def _append(self, data: bytes) -> None:
        assert self._fd is not None
        if os.write(self._fd, data) != len(data):
            os.ftruncate(self._fd, self._size)
            raise OSError("short write")
        self._size += len(data)

    def _create(self) -> None:
        if self._failed or fcntl is None:
            raise OSError("no file locks")
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._directory / (uuid.uuid4().hex + _SUFFIX)
        # Others look at files with the suffix alone: this one gets it when it is locked.
        made = path.with_suffix(".new")
        fd = os.open(made, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_APPEND, 0o600)
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._fd, self._path, self._size = fd, path, 0
        self._append(_encoded({**_HEADER, "created": _to_ms(datetime.now(timezone.utc))}))
        made.rename(path)

    def _empty(self) -> None:
        assert self._fd is not None
        os.ftruncate(self._fd, 0)
        self._size = 0
        self._append(_encoded({**_HEADER, "created": _to_ms(datetime.now(timezone.utc))}))

    def _guarded(self, work: Callable[[], object]) -> bool:
        try:
            work()
        except OSError as error:
            if not self._failed:
                self._failed = True
                logger.error(
                    "The spool cannot be written (%s): what is said is kept in memory alone",
                    type(error).__name__,
                )
            return False
        return True


def left_behind(directory: Path) -> list[Path]:
    """Files of spools, the oldest first."""
    found: list[tuple[float, Path]] = []
    with contextlib.suppress(
        OSError
    ):  # a file that its process deletes meanwhile; the next look finds the others
        found.extend((path.stat().st_mtime, path) for path in directory.glob("*" + _SUFFIX))
    return [path for _, path in sorted(found)]


def take_over(path: Path) -> tuple[Spool, Left] | None:
    """The file, if its process is dead and it is the user's own; None otherwise.

    A file that holds nothing, or is older than `MAX_AGE`, is deleted. Close the spool in the end.
    """
    if fcntl is None:
        return None
    try:
        fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        about = os.fstat(fd)
        ours = stat.S_ISREG(about.st_mode) and about.st_uid == os.geteuid() and not about.st_mode & 0o077
        if not ours or about.st_nlink == 0:
            os.close(fd)
            return None
        left = _read(fd, about.st_size)
        spool = Spool(path.parent)
        if not left.known:
            os.close(fd)
            return spool, left
        if time.time() - about.st_mtime > MAX_AGE:
            logger.warning("A spool file that nobody could deliver for a week is deleted")
            left = Left()
        spool.adopt(path, fd, left)
    except OSError:  # locked: its process lives
        os.close(fd)
        return None
    return spool, left


def _read(fd: int, size: int) -> Left:
    left = Left()
    first, *lines = os.pread(fd, size, 0).split(b"\n")
    header = _decoded(first)
    if header is None or {key: header.get(key) for key in _HEADER} != _HEADER:
        left.known = size == 0
        return left
    scopes: dict[int, Scope] = {}
    pieces: dict[tuple[int, int], Turn] = {}
    owners: dict[tuple[int, int], int | None] = {}
    stamps: dict[tuple[int, int], datetime] = {}
    for raw in filter(None, lines):
        record = _decoded(raw)
        try:
            if record is None:
                raise ValueError
            kind = record["t"]
            if kind == "doc":
                scopes[record["d"]] = Scope(record["tag"], record["doc"], record["doc"])
            elif kind == "turn":
                turn = Turn(
                    record["role"],
                    record["text"],
                    _from_ms(record["at"]),
                    record["n"],
                    record["i"],
                    record["p"],
                    record["of"],
                )
                pieces[turn.order, turn.part] = turn
                owners[turn.order, turn.part] = record["d"]
            elif kind == "bound":
                owners.update({key: record["d"] for key, owner in owners.items() if owner is None})
            elif kind == "sent":
                stamps.update({(n, p): _from_ms(at) for n, p, at in record["lines"]})
            elif kind == "ack":
                for n, p in record["lines"]:
                    pieces.pop((n, p), None)
            else:
                raise ValueError
        except (KeyError, TypeError, ValueError):
            left.damaged += 1
    for key, turn in pieces.items():
        owner = owners[key]
        scope = scopes.get(owner) if owner is not None else None
        if scope is None:
            left.unscoped += turn.part == turn.parts
        elif key in stamps:
            left.sent.setdefault(scope, []).append(restored_line(turn, stamps[key]))
        else:
            left.waiting.setdefault(scope, []).append(turn)
    for sent in left.sent.values():
        sent.sort(key=lambda line: line.stamp)
    return left


def _doc(number: int, scope: Scope) -> dict[str, Any]:
    return {"t": "doc", "d": number, "tag": scope.container_tag, "doc": scope.document_id}


def _encoded(record: dict[str, Any]) -> bytes:
    data = json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode()
    return b"%08x %s\n" % (zlib.crc32(data), data)


def _decoded(line: bytes) -> dict[str, Any] | None:
    checksum, _, data = line.partition(b" ")
    if b"%08x" % zlib.crc32(data) != checksum:
        return None
    try:
        record = json.loads(data)
    except ValueError:
        return None
    return cast("dict[str, Any]", record) if isinstance(record, dict) else None


def _to_ms(at: datetime) -> int:
    return (at - _EPOCH) // timedelta(milliseconds=1)


def _from_ms(milliseconds: int) -> datetime:
    return _EPOCH + timedelta(milliseconds=milliseconds)


def _sync(fd: int) -> None:
    try:
        os.fsync(fd)
    except OSError:
        pass
    finally:
        os.close(fd)
