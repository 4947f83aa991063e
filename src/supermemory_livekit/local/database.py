"""What keeps the rows, as the rest of the service sees it: transactions, statements and errors.

`sqlite.SQLiteDatabase` and `postgres.PostgresDatabase` stand behind it; `location.database_at` picks one.
Statements are written once, in the SQL that both understand, with two additions that each backend turns
into its own: parameters are `:name`, and `= ANY(:name)` tests for membership in a list parameter.

    StorageError                the storage cannot be used: not ours, damaged, newer, unreachable, closed
    └── StorageUnavailable      it cannot be used just now: busy, full, connection lost, statement too slow
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["Connection", "Database", "Row", "StorageError", "StorageUnavailable", "Values"]

Values = Mapping[str, object]
"""Parameters by name: None, int, str, a list of one of these, or a vector (float32)."""


class StorageError(Exception):
    """The storage cannot be used.

    The message says why, and holds no stored text and no password.
    """


class StorageUnavailable(StorageError):
    """The storage cannot be used just now; what was asked may succeed when it is asked again.

    A transaction that ends with this has written nothing, save when the connection was lost in the moment of
    its commit: then nobody knows.
    """


class Row(Protocol):
    """One row of a result, by column name."""

    def __getitem__(self, column: str, /) -> Any: ...


class Connection(Protocol):
    """Inside one transaction. Not thread-safe."""

    def execute(self, statement: str, values: Values | None = None) -> Sequence[Row]:
        """Run a statement; all rows it gives."""
        ...

    def execute_many(self, statement: str, values: Sequence[Values]) -> None:
        """Run a statement that gives no rows, once for each of the `values`."""
        ...

    def vector(self, stored: Any) -> NDArray[np.float32]:
        """A vector as it was given, from the column of a row that holds it. Shape `(dimensions,)`."""
        ...


class Database(Protocol):
    """Where the rows are. Thread-safe; blocks; called from worker threads, never from an event loop. A thread has
    one transaction at a time.

    `open` first; `close` after the last worker has finished. `StorageUnavailable` may come out of every
    transaction, at its begin, inside it or at its end.
    """

    @property
    def name(self) -> str:
        """How a person would name it: a path, or an address without its password."""
        ...

    def open(self) -> None:
        """Create or check the schema, and bring an older one up to date: all of it or nothing.

        Raises `StorageError`.
        """
        ...

    def close(self) -> None:
        """Close every connection. Safe to call twice."""
        ...

    def read(self) -> AbstractContextManager[Connection]:
        """A snapshot: everything read inside is of one moment, whatever is written meanwhile."""
        ...

    def write(self, *, durable: bool = True) -> AbstractContextManager[Connection]:
        """A transaction: on leaving the block all of it is on the disk, or after an exception none of it.

        Who writes a row keeps others from writing it until the transaction ends; reading never waits.

        What is not `durable` survives the death of every process, but that of the machine may undo the last of it.
        It is for work that is then done again.
        """
        ...

    def write_alone(self, *, durable: bool = True) -> AbstractContextManager[Connection]:
        """A `write` that no other `write_alone` overlaps, whichever process or machine it comes from."""
        ...
