"""What was said and is not acknowledged yet, on disk: a process that is killed loses none of it.

A call has one file per document, see `spool_file`. docs/decisions/0008-spool.md has the format and its limits.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from pathlib import Path

from supermemory_livekit.scope import Scope
from supermemory_livekit.telemetry import Stats, logger
from supermemory_livekit.transcript import Line, Turn

from .directory import SpoolDirectory
from .file import SpoolFile, erase_from

__all__ = ["Spool", "erase_spooled"]

_Document = tuple[str, str]


class Spool:
    """The files of one call. Nothing here raises: what the disk does not take is said once, and the call goes on.

    Args:
        directory: Where the files lie.
        stats: `turns_unspooled` counts what the disk did not take.
    """

    def __init__(self, directory: str | Path | SpoolDirectory, stats: Stats | None = None) -> None:
        self.directory = directory if isinstance(directory, SpoolDirectory) else SpoolDirectory(directory)
        self._stats = stats or Stats()
        self._began = datetime.fromtimestamp(time.time(), timezone.utc)
        self._files: dict[_Document | None, SpoolFile] = {}
        self._said = False
        self._closed = False

    @classmethod
    def of_file(cls, directory: SpoolDirectory, file: SpoolFile, scopes: Sequence[Scope]) -> Spool:
        """The file of a dead process, which holds turns of these documents."""
        spool = cls(directory)
        spool._files = {_document(scope): file for scope in scopes} or {None: file}
        return spool

    def owns(self, path: Path) -> bool:
        """Whether this is a file of this call."""
        return any(file.path == path for file in self._files.values())

    def turns(self, pieces: Sequence[Turn], scope: Scope | None) -> bool:
        """Keep these; without a scope until `bound`. False when they are kept in memory alone."""

        def write() -> None:
            self.directory.admit(sum(len(piece.text.encode()) for piece in pieces))
            self._file(scope).turns(pieces)

        kept = self._guarded(write)
        if not kept:
            self._stats.turns_unspooled += sum(piece.part == piece.parts for piece in pieces)
        return kept

    def bound(self, pieces: Sequence[Turn], scope: Scope) -> None:
        """These pieces came without a caller, and belong to this one."""
        if (unbound := self._files.get(None)) is not None and self.turns(pieces, scope):
            self._guarded(lambda: unbound.acked(pieces))

    def sending(self, scope: Scope, lines: Sequence[Line]) -> None:
        """These lines are about to be sent, with these stamps."""
        if (file := self._files.get(_document(scope))) is not None:
            self._guarded(lambda: file.sending(lines))

    def acked(self, scope: Scope, pieces: Sequence[Turn]) -> None:
        """The service has these."""
        if (file := self._files.get(_document(scope))) is not None:
            self._guarded(lambda: file.acked(pieces))

    def refused(self, scope: Scope, pieces: Sequence[Turn]) -> None:
        """The service will never take these."""
        if (file := self._files.get(_document(scope))) is not None:
            self._guarded(lambda: file.refused(pieces))

    def dropped(self, scope: Scope | None, pieces: Sequence[Turn]) -> None:
        """These are not to be stored after all, by no process, and leave the disk."""
        if (file := self._files.get(_document(scope) if scope else None)) is not None:
            self._guarded(lambda: file.dropped(pieces))

    async def synced(self, scope: Scope) -> None:
        """Wait until the disk has what was written of this document, off the event loop and bounded."""
        if (file := self._files.get(_document(scope))) is not None:
            await file.synced()

    def erase(self, tag: str) -> None:
        """Delete what this call has kept of a caller."""
        for document in [document for document in self._files if document is not None and document[0] == tag]:
            self._guarded(self._files.pop(document).erase)

    def close(self) -> None:
        """Let go of the files: what is left in them is for the next process."""
        self._closed = True
        for file in self._files.values():
            self._guarded(file.close)
        self._files = {}

    def _file(self, scope: Scope | None) -> SpoolFile:
        document = _document(scope) if scope else None
        if document not in self._files:
            if self._closed:
                raise OSError("closed")
            self._files[document] = SpoolFile.create(self.directory, scope, self._began)
        return self._files[document]

    def _guarded(self, work: Callable[[], object]) -> bool:
        try:
            work()
        except OSError as error:
            if not self._said:
                self._said = True
                logger.error(
                    "The spool cannot be written (%s): what is said is kept in memory alone",
                    type(error).__name__,
                )
            return False
        return True


def erase_spooled(directory: Path, tag: str, erased_at: datetime) -> tuple[int, int]:
    """Delete what dead processes left of a caller, for good. Reads every file: not for the event loop.

    Files of calls that began after `erased_at` stay as they are.

    Returns how many turns that were, and how many are left in the files of live processes, which drop them once they
    see the mark, see `erasure.marks`. Raises `OSError` when the disk fails.
    """
    erased = left = 0
    for path in SpoolDirectory(directory).files():
        with contextlib.suppress(FileNotFoundError):  # delivered and deleted meanwhile
            turns, gone = erase_from(path, tag, erased_at)
            erased, left = (erased + turns, left) if gone else (erased, left + turns)
    return erased, left


def _document(scope: Scope) -> _Document:
    return scope.container_tag, scope.document_id
