"""Vectors of texts that were embedded in an earlier call: one bounded file per machine.

The file holds keyed hashes and vectors, no text. The key is random and its own, so that the hashes of two files
have nothing in common and no table of hashes made elsewhere fits; whoever can read the file can still test a
guess, and a vector tells roughly what its text is about. So the file is for its owner alone (mode 0600).

It is a cache: whatever is wrong with it costs time and nothing else. A file that is damaged, or of another
version, is thrown away and made anew. Any number of processes may use it at once.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import sqlite3
import stat
import time
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Self

from supermemory_livekit.telemetry import logger

__all__ = ["EmbeddingCache"]

_T = TypeVar("_T")

ENVIRONMENT = "SUPERMEMORY_LIVEKIT_CACHE"
"""`off` for no cache, else the directory in which the file is."""

FILE = "embeddings.db"

MAX_VECTORS = 50_000
"""About 60 MB of vectors of 512 numbers."""

_VERSION = 1
_HASH_BYTES = 16
_TRIMMED = 0.05
"""Share that goes when there are too many, so that it does not happen at every call."""

_USED_AGAIN = 86_400
"""Seconds in which a second use is not written down: reading need not write."""

_SCHEMA = """
CREATE TABLE meta (key BLOB NOT NULL);
CREATE TABLE vectors (hash BLOB PRIMARY KEY, used INTEGER NOT NULL, vector BLOB NOT NULL);
CREATE INDEX vectors_by_use ON vectors (used);
"""


class EmbeddingCache:
    """Thread-safe; blocks for milliseconds. Nothing in it raises: what cannot be read is not known."""

    def __init__(
        self,
        path: str | Path,
        *,
        max_vectors: int = MAX_VECTORS,
        patience: float = 1.0,
        now: Callable[[], float] = time.time,
    ) -> None:
        """Does no I/O. `patience`: seconds to wait for another process; what takes longer is embedded anew.
        `now`: seconds since 1970.
        """
        self._patience = patience
        self.path = Path(path)
        self._max = max_vectors
        self._now = now
        self._said = False

    @classmethod
    def from_env(cls) -> Self | None:
        """The cache of this machine's user: `embeddings.db` in `$SUPERMEMORY_LIVEKIT_CACHE`, else in the user's
        cache directory. None when it is switched off, or when there is no such directory."""
        named = os.environ.get(ENVIRONMENT, "").strip()
        if named.lower() in ("off", "0", "false", "no"):
            return None
        if named:
            # A directory, so that no file of somebody else is ever taken for a damaged one of ours.
            return cls(Path(named).expanduser() / FILE)
        base = os.environ.get("XDG_CACHE_HOME", "").strip()
        try:
            directory = Path(base) if os.path.isabs(base) else Path.home() / ".cache"  # noqa: PTH117 - "" too
        except RuntimeError:  # a user without a home
            return None
        return cls(directory / "supermemory-livekit" / FILE)

    def get(self, model_id: str, texts: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        """The vectors that are known, by text. `model_id` names the model and the form of the text."""
        return self._attempt(lambda connection: self._get(connection, model_id, texts)) or {}

    def put(self, model_id: str, vectors: dict[str, NDArray[np.float32]]) -> None:
        """Keep these vectors, as float16. Those used longest ago go when there are too many."""
        self._attempt(lambda connection: self._put(connection, model_id, vectors))

    def clear(self) -> None:
        """Throw all vectors away."""
        try:
            for name in (self.path.name, self.path.name + "-journal"):
                self.path.with_name(name).unlink(missing_ok=True)
        except OSError as error:
            self._say(error)

    # -- the file ------------------------------------------------------------------------------------------------

    def _attempt(self, work: Callable[[sqlite3.Connection], _T], *, again: bool = True) -> _T | None:
        try:
            with self._opened() as connection:
                return work(connection)
        except (sqlite3.DatabaseError, _Unfit) as error:
            if not _is_damage(error):
                self._say(error)
            elif again and self._thrown_away():
                return self._attempt(work, again=False)
        except (OSError, ValueError) as error:
            self._say(error)
        return None

    @contextlib.contextmanager
    def _opened(self) -> Generator[sqlite3.Connection]:
        """A connection without a transaction. Opened for each use, so that nobody has to close the cache."""
        self._make_private()
        connection = sqlite3.connect(self.path, timeout=self._patience, isolation_level=None)
        try:
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            if version not in (0, _VERSION):
                raise _Unfit
            if version == 0:
                self._create(connection)
            yield connection
        finally:
            connection.close()

    def _create(self, connection: sqlite3.Connection) -> None:
        connection.execute("BEGIN IMMEDIATE")
        if connection.execute("PRAGMA user_version").fetchone()[0] == 0:
            for statement in filter(str.strip, _SCHEMA.split(";")):
                connection.execute(statement)
            connection.execute("INSERT INTO meta VALUES (?)", (secrets.token_bytes(32),))
            connection.execute(f"PRAGMA user_version = {_VERSION}")
        connection.execute("COMMIT")

    def _make_private(self) -> None:
        """See that the file is ours and for us alone, before anything is written to it."""
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
        descriptor = os.open(self.path, flags, 0o600)
        try:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode) or (hasattr(os, "geteuid") and found.st_uid != os.geteuid()):
                raise OSError("not a file of this user")
            if hasattr(os, "fchmod") and stat.S_IMODE(found.st_mode) & 0o077:
                os.fchmod(descriptor, 0o600)
        finally:
            os.close(descriptor)

    def _thrown_away(self) -> bool:
        logger.info("The embedding cache is damaged or of another version: it is made anew")
        self.clear()
        return not self.path.exists()

    def _say(self, error: Exception) -> None:
        if not self._said:
            self._said = True
            logger.info(
                "The embedding cache cannot be used now (%s): texts are embedded anew", type(error).__name__
            )

    # -- its contents --------------------------------------------------------------------------------------------

    def _get(
        self, connection: sqlite3.Connection, model_id: str, texts: Sequence[str]
    ) -> dict[str, NDArray[np.float32]]:
        hashes = _hashes(connection, model_id, texts)
        found: dict[str, NDArray[np.float32]] = {}
        old: list[tuple[int, bytes]] = []
        now = int(self._now())
        connection.execute("BEGIN")
        for text, digest in hashes.items():
            row = connection.execute("SELECT vector, used FROM vectors WHERE hash=?", (digest,)).fetchone()
            if row is None or (vector := _vector(row[0])) is None:
                continue
            found[text] = vector
            if abs(now - int(row[1])) > _USED_AGAIN:
                old.append((now, digest))
        connection.execute("COMMIT")
        if old:
            with contextlib.suppress(sqlite3.OperationalError):  # somebody writes: the use is noted next time
                connection.execute("BEGIN IMMEDIATE")
                connection.executemany("UPDATE vectors SET used=? WHERE hash=?", old)
                connection.execute("COMMIT")
        return found

    def _put(
        self, connection: sqlite3.Connection, model_id: str, vectors: dict[str, NDArray[np.float32]]
    ) -> None:
        now = int(self._now())
        hashes = _hashes(connection, model_id, list(vectors))
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(
            "INSERT OR REPLACE INTO vectors (hash, used, vector) VALUES (?, ?, ?)",
            [(digest, now, vectors[text].astype("<f2").tobytes()) for text, digest in hashes.items()],
        )
        (held,) = connection.execute("SELECT count(*) FROM vectors").fetchone()
        if held > self._max:
            surplus = held - self._max + int(self._max * _TRIMMED)
            connection.execute(
                "DELETE FROM vectors WHERE hash IN (SELECT hash FROM vectors ORDER BY used LIMIT ?)",
                (surplus,),
            )
        connection.execute("COMMIT")


class _Unfit(Exception):
    """The file is not what this version makes."""


def _is_damage(error: Exception) -> bool:
    """Whether the file is beyond use, rather than busy, read-only or on a full disk."""
    return not isinstance(error, sqlite3.OperationalError) or str(error).startswith("no such ")


def _hashes(connection: sqlite3.Connection, model_id: str, texts: Sequence[str]) -> dict[str, bytes]:
    row = connection.execute("SELECT key FROM meta").fetchone()
    if row is None or not isinstance(row[0], bytes) or len(row[0]) != 32:
        raise _Unfit
    model = hashlib.blake2b(model_id.encode(), digest_size=32, key=row[0]).digest()
    return {
        text: hashlib.blake2b(
            model + text.encode("utf-8", "surrogatepass"), digest_size=_HASH_BYTES, key=row[0]
        ).digest()
        for text in texts
    }


def _vector(stored: object) -> NDArray[np.float32] | None:
    """The vector; None when it is none: a flipped bit must not raise in a search much later."""
    if not isinstance(stored, bytes) or not stored or len(stored) % 2:
        return None
    vector = np.frombuffer(stored, dtype="<f2").astype(np.float32)
    length = float(np.sqrt(np.sum(vector * vector)))
    return vector / length if 0.9 < length < 1.1 else None
